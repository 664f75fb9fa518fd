"""The commands about studies: show, run, status, export."""

from __future__ import annotations

import contextlib
import json
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import tyro

from euda.errors import EudaError
from euda.study import plan, record
from euda.study.environments import cautions
from euda.study.plan import Planned
from euda.study.record import Study

if TYPE_CHECKING:
    from euda.study.launch import Engine
    from euda.study.progress import Progress
    from euda.study.report import Subject

Positional = tyro.conf.Positional
File = Annotated[Positional[Path], tyro.conf.arg(metavar="FILE")]
RUNS = Path("runs")


def show(
    file: File,
    runs: Path = RUNS,
    measure: bool = True,
    json_: Annotated[bool, tyro.conf.arg(name="json")] = False,
) -> int:
    """List the runs of a study with an estimate of steps and core-hours, before anything starts.

    Args:
        file: A study, for example studies/quick.toml.
        runs: The folder that all runs live in.
        measure: Estimate core-hours from this machine's speed, which is measured where no run has shown it.
        json_: Print JSON instead of a table.
    """
    from euda.study.progress import Reader

    study = Study(plan.load(file), runs)
    rows = Reader().look(study)
    hours = _hours(study) if measure else {}
    if json_:
        listed = [
            {"run": r.planned.folder_name, "task": r.planned.config.task, "method": r.planned.curve,
             "seed": r.planned.config.seed, "steps": r.steps, "state": r.state, "step": r.step,
             "core_hours": hours.get(r.planned)}
            for r in rows
        ]  # fmt: skip
        _print(json.dumps({"title": study.plan.title, "runs": listed}, indent=2))
        return 0
    _print(study.plan.title)
    header = ("task", "method", "seeds", "steps each", "finished", *(["core-hours"] if hours else []))
    table(header, list(_shown(study, rows, hours)))
    _print(_total(rows, hours))
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
    from euda.study.commands import prepare
    from euda.study.speed import Speeds

    prepare()
    speeds = Speeds(study.runs, _complain)
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
    """Run a study: finished runs are skipped, interrupted ones go on, failures are tried again and then named.

    Exit code 0: every run is complete; 1: some failed; 130 or 143: stopped, the same command goes on.

    Args:
        file: A study, for example studies/quick.toml.
        runs: The folder that all runs live in; for a cluster on storage that every node sees.
        on: local (this machine's cores) or ray (a cluster; extra `ray`).
        workers: Runs at once; by default one for each core.
        address: Of the Ray cluster, host:port; by default the one on this machine.
        changed: Go on although the study file has changed and runs that were begun no longer belong to it.
    """
    from euda.study import watch
    from euda.study.launch import Launch
    from euda.study.stopping import Stop

    study = Study(plan.load(file), runs)
    if not changed:
        record.refuse_strangers(study)
    if address is not None and on != "ray":
        raise EudaError("--address is for --on ray")
    for sentence in dict.fromkeys(sentence for planned in study.plan.runs for sentence in cautions(planned.config)):
        _complain(sentence)
    stop = Stop()
    with record.locked(study) as stale:
        engine = _engine(on, workers, address)  # first: Ray has a mind of its own about SIGTERM
        with stop.on_signals(second_interrupts=False), watch.make(min(engine.slots, len(study.plan.runs))) as view:
            if stale:
                view.say(stale)
            result = Launch(study, engine, view).go(stop)
    return _tell(study, result.finished, result.failures, result.signal)


def _engine(on: str, workers: int | None, address: str | None) -> Engine:
    if on == "local":
        from euda.study.local_engine import LocalEngine

        return LocalEngine(workers)
    from euda.study.ray_engine import RayEngine

    return RayEngine(address, workers)


def _tell(study: Study, finished: int, failures: dict[str, str], signal: int | None) -> int:
    """Say how a launch ended; its exit code."""
    names = {planned.config.identity: planned for planned in study.plan.runs}
    for identity, reason in failures.items():
        planned = names[identity]
        _complain(f"failed: {planned.name}: {reason} (see {str(study.log(planned))!r})")
    _print(f"{finished} of {len(study.plan.runs)} runs are complete")
    if signal is not None and finished < len(study.plan.runs):
        _print("stopped, everything is saved; the same command goes on")
        return 128 + signal
    return 1 if failures else 0


def status(file: File, runs: Path = RUNS, json_: Annotated[bool, tyro.conf.arg(name="json")] = False) -> int:
    """Show how far a study is, from anywhere that sees its runs.

    Args:
        file: A study.
        runs: The folder that all runs live in.
        json_: Print JSON instead of a table.
    """
    from euda.study import watch
    from euda.study.progress import Reader

    study = Study(plan.load(file), runs)
    rows = Reader().look(study)
    if json_:
        listed = [
            {"run": r.planned.folder_name, "task": r.planned.config.task, "method": r.planned.curve,
             "seed": r.planned.config.seed, "state": r.state, "step": r.step, "steps": r.steps,
             "return": r.last_return, "speed": r.speed, "seconds_left": r.seconds_left, "reason": r.reason}
            for r in rows
        ]  # fmt: skip
        _print(json.dumps({"is_running": record.is_running(study), "runs": listed}, indent=2))
        return 0
    table(("task", "method", "seed", "state", "progress", "steps/s", "return", "left"), watch.lines(rows))
    running = sum(row.state == "running" for row in rows)
    _print(watch.summary(rows, max(1, running)) + ("" if record.is_running(study) else "; nobody is running it"))
    for row in rows:
        if row.reason:
            _print(f"failed: {row.planned.name}: {row.reason}")
    if gone := study.strangers():
        _print(f"no longer in the study file: {', '.join(gone)}")
    return 0


def export(file: File, out: Path, runs: Path = RUNS) -> int:
    """Write one row per run and evaluation as Parquet or CSV.

    Args:
        file: A study.
        out: The file to write, results.parquet or results.csv.
        runs: The folder that all runs live in.
    """
    from euda.study import table as tables

    found = tables.of_study(Study(plan.load(file), runs))
    tables.write(found, out)
    for sentence in found.damaged:
        _complain(sentence)
    _print(f"wrote {out}: {found.frame.height} evaluations of {found.frame['run'].n_unique()} runs")
    return 0


def report(
    subject: Annotated[Positional[Path], tyro.conf.arg(metavar="STUDY|RUNS")],
    out: Path | None = None,
    runs: Path = RUNS,
    hours: bool = False,
    reach: float | None = None,
    certificates: bool = True,
    serve: bool = False,
    port: int = 8123,
) -> int:
    """Make figures and one HTML page of a study or of the runs in a folder.

    Args:
        subject: A study (a .toml file) or a folder of runs.
        out: The folder to write: curves as PNG, SVG and PDF, report.html, summary.json.
        runs: The folder that all runs of a study live in.
        hours: Draw the curves against hours too.
        reach: The return of "steps to reach"; by default the study's, or half of the best on each task.
        certificates: Prove the symmetry of each task in the simulator (some seconds each, once).
        serve: Serve the page on this machine alone, made anew while a study runs.
        port: Of the server; 0 takes any that is free.
    """
    from euda.study import report as reports

    found = reports.find(subject, runs, ("steps", "hours") if hours else (), reach)
    if out is None and not serve:
        raise EudaError("name the folder to write with --out, or look at it with --serve")
    if out is not None:
        made = reports.gather(found, _complain, certificates)
        for sentence in made.table.damaged:
            _complain(sentence)
        written = reports.write(made, out)
        _print(f"wrote {len(written)} files; open {out / reports.PAGE}")
    return _serve(found, port, certificates) if serve else 0


def _serve(subject: Subject, port: int, certificates: bool) -> int:
    from euda.study import serve

    follower = serve.Follower(subject, _complain, certificates)
    with serve.make_server(follower, port) as server:
        _print(f"serving http://{serve.HOST}:{server.server_port}/ to this machine (Ctrl-C ends it)")
        with contextlib.suppress(KeyboardInterrupt):
            server.serve_forever()
    return 0


COMMANDS: dict[str, Callable[..., int]] = {"show": show, "run": run, "status": status, "export": export}


def table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Plain aligned columns: texts left, numbers right."""
    cells = [[str(cell) for cell in row] for row in (header, *rows)]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    for row in cells:
        padded = [
            cell.ljust(w) if i < 2 else cell.rjust(w) for i, (cell, w) in enumerate(zip(row, widths, strict=True))
        ]
        _print("  ".join(padded).rstrip())


def _print(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def _complain(text: str) -> None:
    sys.stderr.write(f"euda: {text}\n")
