"""The commands about studies: show, run, status, export."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from euda.errors import EudaError
from euda.runs.environments import cautions
from euda.studies import plan, premises, study_folder
from euda.studies.plan import Planned
from euda.studies.study_folder import Study
from euda.terminal import printing, process, tables
from euda.terminal.flags import Argument

if TYPE_CHECKING:
    from euda.reports.report import Subject
    from euda.studies.launcher import Engine
    from euda.studies.status import Progress

File = Annotated[Path, Argument("FILE")]
RUNS = Path("runs")


def show(
    file: File,
    runs: Path = RUNS,
    measure: bool = True,
    json_: bool = False,
) -> int:
    """List the runs of a study and estimate their core-hours.

    Args:
        file: A study, for example studies/quick.toml.
        runs: The folder that all runs live in.
        measure: Estimate core-hours from the speed of this machine, which is measured if there are no runs yet.
        json_: Print JSON instead of a table.
    """
    from euda.studies.status import Reader

    study = Study(plan.load(file), runs)
    rows = Reader().look(study)
    hours = _hours(study) if measure else {}
    if json_:
        listed = [
            {"run": study.name_of(r.planned), "task": r.planned.config.task, "method": r.planned.curve,
             "seed": r.planned.config.seed, "steps": r.steps, "state": r.state, "step": r.step,
             "core_hours": hours.get(r.planned)}
            for r in rows
        ]  # fmt: skip
        printing.line(json.dumps({"title": study.plan.title, "runs": listed}, indent=2))
        return 0
    printing.line(study.plan.title)
    header = ("task", "method", "seeds", "steps each", "finished", *(["core-hours"] if hours else []))
    tables.show(header, list(_shown(study, rows, hours)), texts=2)
    printing.line(_total(rows, hours))
    return 0


def _shown(study: Study, rows: Sequence[Progress], hours: dict[Planned, float]) -> Iterator[tuple[str, ...]]:
    """A line for each task and curve."""
    for task in study.plan.tasks:
        for curve in study.plan.curves:
            members = [r for r in rows if (r.planned.config.task, r.planned.curve) == (task, curve)]
            if not members:
                continue
            seeds = ",".join(str(r.planned.config.seed) for r in members)
            done = sum(r.state == "finished" for r in members)
            cost = [_few(sum(hours[r.planned] for r in members))] if hours else []
            yield (task, curve, seeds, str(members[0].steps), f"{done}/{len(members)}", *cost)


def _hours(study: Study) -> dict[Planned, float]:
    """Core-hours of each run on this machine."""
    from euda.studies.cost import Speeds

    process.prepare()
    speeds = Speeds(study.runs, printing.complain)
    return {p: speeds.seconds_per_step(p.config) * p.config.steps / 3600 for p in study.plan.runs}


def _total(rows: Sequence[Progress], hours: dict[Planned, float]) -> str:
    ahead = [row for row in rows if row.state != "finished"]
    steps = sum(max(row.steps - row.step, 0) for row in ahead)
    text = f"{len(rows)} runs, {len(rows) - len(ahead)} finished; {steps} steps to do"
    if not hours:
        return text
    left = sum(hours[row.planned] * max(row.steps - row.step, 0) / row.steps for row in ahead)
    return f"{text}, about {_few(left)} core-hours on this machine"


def _few(hours: float) -> str:
    return f"{hours:.0f}" if hours >= 100 else f"{hours:.1f}" if hours >= 1 else f"{hours:.2g}"


def run(
    file: File,
    runs: Path = RUNS,
    on: Literal["local", "ray"] = "local",
    workers: int | None = None,
    address: str | None = None,
    changed: bool = False,
) -> int:
    """Run a study, or resume one that was stopped.

    Finished runs are skipped, interrupted runs resumed, failures retried twice and then reported.

    Exit code 0: every run is complete; 1: some failed; 130 or 143: stopped, the same command resumes.

    Args:
        file: A study, for example studies/quick.toml.
        runs: The folder that all runs live in; for a cluster on storage that every node sees.
        on: local (this machine's cores) or ray (a cluster; extra `ray`).
        workers: Runs at once; by default one for each core.
        address: Of the Ray cluster, host:port; by default the one on this machine.
        changed: Continue although the study file has changed and runs that were started no longer belong to it.
    """
    from euda.runs.signals import Stop
    from euda.studies.launcher import Launch
    from euda.terminal import study_display

    study = Study(plan.load(file), runs)
    if not changed:
        study_folder.refuse_strangers(study)
    if address is not None and on != "ray":
        raise EudaError("--address is for --on ray")
    for sentence in dict.fromkeys(sentence for planned in study.plan.runs for sentence in cautions(planned.config)):
        printing.complain(sentence)
    premises.check(study, printing.complain)
    stop = Stop()
    with study_folder.locked(study) as stale:
        engine = _engine(on, workers, address)  # first: Ray has a mind of its own about SIGTERM
        with (
            stop.on_signals(second_interrupts=False),
            study_display.make(min(engine.slots, len(study.plan.runs))) as view,
        ):
            if stale:
                view.say(stale)
            result = Launch(study, engine, view).go(stop)
    return _tell(study, result.finished, result.failures, result.signal)


def _engine(on: str, workers: int | None, address: str | None) -> Engine:
    if on == "local":
        from euda.studies.engines.local import LocalEngine

        return LocalEngine(workers)
    from euda.studies.engines.ray import RayEngine

    return RayEngine(address, workers)


def _tell(study: Study, finished: int, failures: dict[str, str], signal: int | None) -> int:
    """Say how a launch ended; its exit code."""
    names = {planned.config.identity: planned for planned in study.plan.runs}
    for identity, reason in failures.items():
        planned = names[identity]
        printing.complain(f"failed: {planned.name}: {reason} (see {str(study.log(planned))!r})")
    printing.line(f"{finished} of {len(study.plan.runs)} runs are complete")
    if signal is not None and finished < len(study.plan.runs):
        printing.line("stopped, everything is saved; the same command resumes")
        return 128 + signal
    return 1 if failures else 0


def status(file: File, runs: Path = RUNS, json_: bool = False) -> int:
    """Show the progress of a study.

    Args:
        file: A study.
        runs: The folder that all runs live in.
        json_: Print JSON instead of a table.
    """
    from euda.studies.status import Reader
    from euda.terminal import study_display

    study = Study(plan.load(file), runs)
    rows = Reader().look(study)
    if json_:
        listed = [
            {"run": study.name_of(r.planned), "task": r.planned.config.task, "method": r.planned.curve,
             "seed": r.planned.config.seed, "state": r.state, "step": r.step, "steps": r.steps,
             "return": r.last_return, "speed": r.speed, "seconds_left": r.seconds_left, "reason": r.reason}
            for r in rows
        ]  # fmt: skip
        printing.line(json.dumps({"is_running": study_folder.is_running(study), "runs": listed}, indent=2))
        return 0
    header = ("task", "method", "seed", "state", "progress", "steps/s", "return", "left")
    tables.show(header, study_display.lines(rows), texts=2)
    running = sum(row.state == "running" for row in rows)
    printing.line(
        study_display.summary(rows, max(1, running)) + ("" if study_folder.is_running(study) else "; not running")
    )
    for row in rows:
        if row.reason:
            printing.line(f"failed: {row.planned.name}: {row.reason}")
    if gone := study.strangers():
        printing.line(f"no longer in the study file: {', '.join(gone)}")
    return 0


def export(file: File, out: Path, runs: Path = RUNS) -> int:
    """Write the results of a study as one table (Parquet or CSV).

    One row per run and evaluation: returns, and the mean losses since the previous evaluation.

    Args:
        file: A study.
        out: The file to write, results.parquet or results.csv.
        runs: The folder that all runs live in.
    """
    from euda.reports import results_table

    found = results_table.of_study(Study(plan.load(file), runs))
    results_table.write(found, out)
    for sentence in found.damaged:
        printing.complain(sentence)
    printing.line(f"wrote {out}: {found.frame.height} evaluations of {found.frame['run'].n_unique()} runs")
    return 0


def report(
    subjects: Annotated[tuple[Path, ...], Argument("STUDY|RUN [RUN ...]")],
    out: Path | None = None,
    runs: Path = RUNS,
    hours: bool = False,
    reach: float | None = None,
    certificates: bool = True,
    scenes: bool = False,
    serve: bool = False,
    port: int = 8123,
) -> int:
    """Make figures and one HTML page of a study, or compare any runs.

    Args:
        subjects: A study (a .toml file), or runs and folders of runs.
        out: The folder to write: curves as PNG, SVG and PDF, report.html, summary.json.
        runs: The folder that all runs of a study live in.
        hours: Draw the curves against hours too.
        reach: The return of "steps to reach"; by default the study's, or halfway from untrained to the best.
        certificates: Test the symmetry of each robot in the simulator (a few seconds each, once).
        scenes: With --out, show the first run of each method moving, with its turned and mirrored twins (extra `view`).
        serve: Serve the page on this machine only, and update it while a study runs.
        port: Of the server; 0 chooses a free one.
    """
    from euda.reports import report as reports

    found = reports.find(subjects, runs, ("steps", "hours") if hours else (), reach)
    if out is None and not serve:
        raise EudaError("name the folder to write with --out, or look at it with --serve")
    if scenes and out is None:
        raise EudaError("--scenes are pages beside the report: name its folder with --out")
    if out is not None:
        made = reports.gather(found, printing.complain, certificates, scenes)
        for sentence in made.table.damaged:
            printing.complain(sentence)
        written = reports.write(made, out)
        printing.line(f"wrote {len(written)} files; open {out / reports.PAGE}")
    return _serve(found, port, certificates) if serve else 0


def _serve(subject: Subject, port: int, certificates: bool) -> int:
    from euda.reports import server

    follower = server.Follower(subject, printing.complain, certificates)
    with server.make_server(follower, port) as listening:
        printing.line(f"serving http://{server.HOST}:{listening.server_port}/ to this machine (Ctrl-C ends it)")
        with contextlib.suppress(KeyboardInterrupt):
            listening.serve_forever()
    return 0


COMMANDS: dict[str, Callable[..., int]] = {"show": show, "run": run, "status": status, "export": export}
