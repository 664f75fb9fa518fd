"""Core-minutes and steps until given returns: ours beside what a user would pick instead.

    python benchmarks/time_to_return.py [--tasks reacher_hard …] [--programs 'euda canonical' …] [--seeds 0 1 2]
                                        [--minutes 15] [--core 0] [--peers build/peers/bin/python] [--table]

One run after the other, each in a process that is pinned to one core, judged every few thousand steps; a run ends when
it has reached the highest return of its task, or with its steps or minutes. Core-minutes are CPU time without that of
the judging (see `learners`). Every run is a line of `results/benchmarks/time-to-return.jsonl`, written as it ends; runs
that are there are not run again, so a launch that was stopped goes on. What is not installed is reported as missing
(`make bench-peers` installs it). `--table` only prints the table of what is there.

A return counts as reached at the first judgement whose mean is that high: five episodes, so luck plays a part, the
same for all programs.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import learners
import recording
from processes import ROOT, Worker

RAW = ROOT / "results" / "benchmarks" / "time-to-return.jsonl"


class Goal(NamedTuple):
    """What is asked of a task."""

    returns: tuple[float, ...]
    """In rising order."""
    steps: int
    """At most."""
    every: int
    """Steps between two judgements."""


GOALS: dict[str, Goal] = {
    "reacher_hard": Goal((500, 900), 100_000, 2500),
    "cheetah_run": Goal((300, 450, 600), 200_000, 5000),
    "quadruped_run": Goal((300, 450, 650), 200_000, 5000),
}


def runs(path: Path = RAW) -> list[dict[str, Any]]:
    """What is there."""
    lines = path.read_text("utf-8").splitlines() if path.is_file() else []
    return [json.loads(line) for line in lines if line.strip()]


def run(program: str, task: str, seed: int, core: int, python: str, minutes: float) -> dict[str, Any]:
    """One run, from its first step to its goal or its end."""
    goal, judged = GOALS[task], list[dict[str, Any]]()
    worker = Worker("learners.py", (program, task, seed, core), python)
    while not judged or _goes_on(judged[-1], goal, minutes):
        judged.append(worker.ask(f"go {goal.every}"))
        last = judged[-1]
        mean = statistics.mean(last["returns"])
        print(
            f"{program}, {task}, seed {seed}: step {last['step']:6}, {last['cpu'] / 60:5.2f} core-minutes, {mean:6.1f}"
        )
    worker.close()
    key = {"program": program, "task": task, "seed": seed}
    return {**key, "minutes": minutes, "judged": judged, "machine": recording.machine()}


def _goes_on(last: dict[str, Any], goal: Goal, minutes: float) -> bool:
    is_reached = statistics.mean(last["returns"]) >= goal.returns[-1]
    return not is_reached and last["step"] < goal.steps and last["cpu"] < 60 * minutes


def reached(judged: Sequence[dict[str, Any]], value: float) -> tuple[int, float] | None:
    """Step and core-minutes of the first judgement that is so high."""
    return next(((one["step"], one["cpu"] / 60) for one in judged if statistics.mean(one["returns"]) >= value), None)


def rows(found: Sequence[dict[str, Any]]) -> Iterator[tuple[str, ...]]:
    """A line for each task, return and program: how many seeds reached it, and medians over those that did."""
    for task, goal in GOALS.items():
        for value in goal.returns:
            for program in learners.PROGRAMS:
                own = [one["judged"] for one in found if (one["program"], one["task"]) == (program, task)]
                hits = [hit for judged in own if (hit := reached(judged, value)) is not None]
                if not own:
                    continue
                steps, cores = (statistics.median(part) for part in zip(*hits, strict=True)) if hits else (None, None)
                shown = ("–", "–") if steps is None or cores is None else (f"{steps:.0f}", f"{cores:.1f}")
                yield (task, f"{value:g}", program, f"{len(hits)} of {len(own)}", *shown)


def table(found: Sequence[dict[str, Any]]) -> str:
    """In Markdown."""
    head = ("task", "return", "program", "seeds that reached it", "steps (median)", "core-minutes (median)")
    lines = [head, ("---",) * len(head), *rows(found)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tasks", nargs="+", default=list(GOALS), choices=list(GOALS))
    parser.add_argument("--programs", nargs="+", default=list(learners.PROGRAMS), choices=list(learners.PROGRAMS))
    parser.add_argument("--seeds", nargs="+", type=int, default=[0, 1, 2])
    parser.add_argument("--minutes", type=float, default=15.0, help="core-minutes of a run, at most")
    parser.add_argument("--core", type=int, default=min(os.sched_getaffinity(0)))
    parser.add_argument("--peers", default=str(ROOT / "build" / "peers" / "bin" / "python"))
    parser.add_argument("--out", type=Path, default=RAW)
    parser.add_argument("--table", action="store_true", help="only print what is there")
    options = parser.parse_args()
    done = {(one["program"], one["task"], one["seed"]) for one in runs(options.out)}
    wanted = [(p, task, seed) for seed in options.seeds for task in options.tasks for p in options.programs]
    missing: dict[str, str] = {}
    for program, task, seed in wanted if not options.table else []:
        python = sys.executable if program.startswith("euda") else options.peers
        if (program, task, seed) in done or program in missing:
            continue
        if not Path(python).exists():
            missing[program] = "not installed: make bench-peers"
            continue
        try:
            line = run(program, task, seed, options.core, python, options.minutes)
        except RuntimeError as error:
            missing[program] = str(error)
            continue
        options.out.parent.mkdir(parents=True, exist_ok=True)
        with options.out.open("a", encoding="utf-8") as file:
            file.write(json.dumps(line) + "\n")
    print(table(runs(options.out)))
    for program, why in missing.items():
        print(f"missing: {program}: {why}")


if __name__ == "__main__":
    main()
