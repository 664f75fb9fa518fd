"""A first success: one robot learns twice, without and with symmetry, and a sentence says what that did.

It is a study of two runs that differ in nothing else: the same base, seed and steps. On two cores they go on side by
side, on one core one after the other; one that was stopped goes on.
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from euda.media import video
from euda.reports import matplotlib_figures, results_table
from euda.runs import atomic_files, bases, run_folder
from euda.runs.resolution import merged
from euda.runs.signals import Stop
from euda.studies import plan, study_folder
from euda.studies.engines.local import LocalEngine
from euda.studies.launcher import Launch, Result, View
from euda.studies.plan import Plan
from euda.studies.study_folder import Study

TASK, STEPS, EVERY = "reacher_hard", 15_000, 2500
FILMED = {"episodes": 4, "steps": 100, "width": 480, "height": 360}
"""Four targets, two seconds each: after that an arm that has learnt stays where it is."""
SOLVED = 900.0
"""Of a return that is at most 1000: on the target for nine tenths of the time, the way there included."""
WITHOUT, WITH = "without symmetry", "with symmetry"
Evaluations = Sequence[tuple[int, float]]
"""Step and mean return of each evaluation of a run."""


def plan_of(seed: int = 0, steps: int = STEPS, base: str = bases.DEFAULT, overrides: Any = None) -> Plan:
    """The two runs."""
    methods = {WITHOUT: {"method": "limb"}, WITH: {"method": "canonical"}}
    often = {"evaluation": {"every": EVERY}, "checkpoint_every": EVERY}
    common = {"tasks": [TASK], "seeds": [seed], "steps": steps, "base": base}
    return plan.parse("demo", {"methods": methods, **common, "overrides": merged(often, overrides or {})})


def run(study: Study, workers: int | None, view: View) -> Result:
    """Train both, or go on with what was begun."""
    stop, engine = Stop(), LocalEngine(workers)
    with study_folder.locked(study) as stale, stop.on_signals(second_interrupts=False):
        if stale:
            view.say(stale)
        return Launch(study, engine, view).go(stop)


def evaluations(study: Study) -> dict[str, Evaluations]:
    """What each run reached, by its curve."""
    found: dict[str, Evaluations] = {}
    for planned in study.plan.runs:
        events = run_folder.Run(study.folder_of(planned), planned.config).events()
        found[planned.curve] = [(event["step"], event["return_mean"]) for event in events if event["event"] == "eval"]
    return found


def show(study: Study) -> str:
    """Draw both curves, film both policies, and say what happened and what to do next."""
    figure, films = study.runs / "learning.png", dict[str, Path]()
    curves = matplotlib_figures.learning_curves(results_table.of_study(study))
    atomic_files.write_atomically(figure, matplotlib_figures.render(curves, "png"))
    for planned in study.plan.runs:
        films[planned.curve] = study.runs / f"{planned.curve.replace(' ', '-')}.mp4"
        video.film(run_folder.load(study.folder_of(planned)), films[planned.curve], **FILMED)
    reached = evaluations(study)
    learnt = next(planned for planned in study.plan.runs if planned.curve == WITH)
    commands = {
        "euda train quadruped_run": "a robot that runs",
        f"euda evaluate {shlex.quote(str(study.folder_of(learnt)))} --yaws 8": "this policy, facing every way",
        "euda demo --seed 1 --out runs/demo-1": "the same with another seed",
        "euda tasks": "all robots",
    }
    width = max(map(len, commands)) + 3
    return "\n".join(
        [
            told(reached[WITHOUT], reached[WITH]),
            f"both curves: {figure}",
            *(f"film {name}: {path}" for name, path in films.items()),
            "next:",
            *(f"  {command.ljust(width)}{what}" for command, what in commands.items()),
        ]
    )


def told(without: Evaluations, with_: Evaluations) -> str:
    """What happened, whatever happened."""
    first, second = _solved_at(without), _solved_at(with_)
    steps = with_[-1][0]
    if first is None and second is None:
        said = f"Neither run came to {SOLVED:g} in {steps} steps: {_end(with_)} with symmetry, {_end(without)} without."
    elif first is None:
        said = (
            f"With symmetry the return was {SOLVED:g} or more after {second} steps; without it never was"
            f" in {steps} steps, at best {max(value for _, value in without):.0f}."
        )
    elif second is None:
        said = (
            f"Without symmetry the return was {SOLVED:g} or more after {first} steps; with it never was in {steps}"
            f" steps, at best {max(value for _, value in with_):.0f}: here symmetry did not help."
        )
    else:
        order = "no difference" if first == second else "sooner" if second < first else "later"
        said = (
            f"With symmetry the return was {SOLVED:g} or more after {second} steps, without it after {first}: {order}"
            f" ({_end(with_)} and {_end(without)} at the end)."
        )
    return f"{said} This is one seed; results/README.md has many."


def _solved_at(evaluated: Evaluations) -> int | None:
    return next((step for step, value in evaluated if value >= SOLVED), None)


def _end(evaluated: Evaluations) -> str:
    return f"{evaluated[-1][1]:.0f}"
