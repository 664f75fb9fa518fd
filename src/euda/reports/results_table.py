"""Metrics of runs → one table with a row per run and evaluation; what could not be read is named and counted."""

from __future__ import annotations

import dataclasses
import io
import math
import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from euda.errors import EudaError
from euda.reports import labels
from euda.reports.labels import Source
from euda.reports.statistics import Floats
from euda.runs import atomic_files, metrics, run_folder
from euda.runs.config import RunConfig
from euda.studies.study_folder import Study, stranger

SCHEMA: dict[str, Any] = {
    "task": pl.String,
    "curve": pl.String,
    "method": pl.String,
    "share": pl.Float64,
    "seed": pl.Int64,
    "step": pl.Int64,
    "hours": pl.Float64,
    "return_mean": pl.Float64,
    "return_low": pl.Float64,
    "return_high": pl.Float64,
    "episodes": pl.Int64,
    "steps_planned": pl.Int64,
    "identity": pl.String,
    "run": pl.String,
}
"""After these come the losses and whatever else a learner measures, by the names in `metrics.jsonl`."""
_COUNTED = {"event", "step", "seconds", "episode", "return", "share", "unstable"}
"""Numbers of a training event that no learner measures."""


@dataclasses.dataclass(frozen=True)
class Table:
    """Evaluations of runs."""

    frame: pl.DataFrame
    sources: tuple[Source, ...]
    damaged: tuple[str, ...] = ()
    """A sentence for each file with lines that are no events, or whose run cannot be read."""
    choices: tuple[tuple[Source, list[dict[str, Any]]], ...] = ()
    """Training events with a `share`, of runs that choose it as they learn."""

    @property
    def tasks(self) -> tuple[str, ...]:
        """In order of appearance."""
        return tuple(dict.fromkeys(source.task for source in self.sources))

    @property
    def curves(self) -> tuple[str, ...]:
        """In order of appearance."""
        return tuple(dict.fromkeys(source.curve for source in self.sources))

    def of(self, task: str, curve: str) -> tuple[Source, ...]:
        """The runs of one curve."""
        return tuple(s for s in self.sources if (s.task, s.curve) == (task, curve))

    def curve(self, task: str, curve: str) -> Curve:
        """One curve as arrays; runs without any evaluation are no rows."""
        rows = self.frame.filter((pl.col("task") == task) & (pl.col("curve") == curve))
        steps = rows["step"].unique().sort().to_numpy()
        seeds = rows["seed"].unique().sort().to_list()
        values, hours = np.full((2, len(seeds), len(steps)), np.nan)
        for seed, step, value, hour in rows.select("seed", "step", "return_mean", "hours").iter_rows():
            place = seeds.index(seed), int(np.searchsorted(steps, step))
            values[place], hours[place] = value, hour
        return Curve(task, curve, tuple(seeds), len(self.of(task, curve)), steps, values, hours)


@dataclasses.dataclass(frozen=True)
class Curve:
    """The runs of one curve on one task."""

    task: str
    name: str
    seeds: tuple[int, ...]
    planned: int
    """Runs there should be."""
    steps: Any
    """[evaluations]."""
    values: Floats
    """Mean return [runs, evaluations]; NaN where a run has no such evaluation."""
    hours: Floats
    """Spent until then, alike."""


def of_study(study: Study) -> Table:
    """The evaluations of a study's runs, up to the steps that the study asks for."""
    sources = [labels.source(p.config, study.folder_of(p), study.name_of(p), p.curve) for p in study.plan.runs]
    begun = [source for source in sources if (source.folder / run_folder.CONFIG).is_file()]
    wrong = {source: words for source in begun if (words := stranger(source.config, source.folder))}
    table = build(source for source in sources if source not in wrong)
    said = tuple(f"{source.name} holds another run ({words}), which is left out" for source, words in wrong.items())
    return dataclasses.replace(table, damaged=(*said, *table.damaged))


def of_folders(folders: Sequence[Path]) -> Table:
    """The evaluations of all runs in and below some folders, each run once."""
    sources, damaged = [], []
    for path, name in _runs_below(folders).items():
        try:
            config = run_folder.load(path).config
        except EudaError as error:
            damaged.append(str(error))
            continue
        sources.append(labels.source(config, path, name))
    if not sources:
        named = ", ".join(repr(str(folder)) for folder in folders)
        raise EudaError(f"there are no runs in {named}" + (f": {damaged[0]}" if damaged else ""))
    table = build(sources)
    return dataclasses.replace(table, damaged=(*damaged, *table.damaged))


def _runs_below(folders: Sequence[Path]) -> dict[Path, str]:
    """The folder of each run, and its name: the path below what was named, or below what all of them share."""
    found = {path.resolve(): path for folder in folders for path in run_folder.find(folder)}
    if len(folders) == 1 or not found:
        return {path: str(path.relative_to(folders[0])) if path != folders[0] else path.name for path in found.values()}
    shared = os.path.commonpath([path.parent for path in found])
    return {path: str(resolved.relative_to(shared)) for resolved, path in found.items()}


def build(sources: Iterable[Source]) -> Table:
    """Read the metrics of runs, which get names that tell them apart."""
    named = tuple(labels.told_apart(sources))
    rows, damaged, choices = [], [], []
    for source in named:
        events, sentence = _events(source)
        damaged += [sentence] if sentence else []
        evaluations = list(_evaluations(events, source.config.steps))
        training = [event for event in events if event["event"] == "train"]
        means = _means(training, [event["step"] for event in evaluations])
        rows += [_row(source, event) | mean for event, mean in zip(evaluations, means, strict=True)]
        chosen = [event for event in training if "share" in event]
        choices += [(source, chosen)] if chosen else []
    measured = sorted({name for row in rows for name in row} - SCHEMA.keys())
    frame = pl.DataFrame(rows, SCHEMA | dict.fromkeys(measured, pl.Float64), orient="row")
    return Table(frame, named, tuple(damaged), tuple(choices))


def _means(training: list[dict[str, Any]], steps: Sequence[int]) -> list[dict[str, float]]:
    """For each evaluation the mean of what the learner measured since the one before."""
    since: list[dict[str, list[float]]] = [{} for _ in steps]
    for event in training:
        place = int(np.searchsorted(steps, event["step"]))
        for name, value in event.items() if place < len(steps) else ():
            if name not in _COUNTED and isinstance(value, int | float) and math.isfinite(value):
                since[place].setdefault(name, []).append(value)
    return [{name: float(np.mean(values)) for name, values in measured.items()} for measured in since]


def _events(source: Source) -> tuple[list[dict[str, Any]], str]:
    """The events of a run, and a sentence about lines that are none; the last line may still be being written."""
    path = source.folder / "metrics.jsonl"
    if not path.is_file():
        return [], ""
    with atomic_files.readable_errors(path, "read"):
        *lines, rest = path.read_bytes().split(b"\n")
    if rest and not run_folder.is_locked(source.folder):
        lines.append(rest)
    events = [metrics.parse(line) for line in lines]
    bad = [str(i) for i, event in enumerate(events, start=1) if event is None or not _is_sound(event)]
    kept = [event for event in events if event is not None and _is_sound(event)]
    if not bad:
        return kept, ""
    named = ", ".join([*bad[:5], *(["…"] if len(bad) > 5 else [])])
    words = f"{len(bad)} lines are not events and were" if len(bad) > 1 else "one line is not an event and was"
    return kept, f"{source.name}/metrics.jsonl: {words} skipped (line {named})"


def _is_sound(event: dict[str, Any]) -> bool:
    """Whether an evaluation has its numbers."""
    if event["event"] != "eval":
        return True
    returns, mean = event.get("returns"), event.get("return_mean")
    numbers = [mean, event["seconds"], *(returns if isinstance(returns, list) else [None])]
    return all(isinstance(value, int | float) and math.isfinite(value) for value in numbers)


def _evaluations(events: list[dict[str, Any]], steps: int) -> Iterator[dict[str, Any]]:
    """One evaluation per step; the last one said counts."""
    found = {event["step"]: event for event in events if event["event"] == "eval" and event["step"] <= steps}
    yield from (found[step] for step in sorted(found))


def _row(source: Source, event: dict[str, Any]) -> dict[str, Any]:
    config, returns = source.config, event["returns"]
    what = (source.task, source.curve, config.method, config_share(config), config.seed)
    when = (event["step"], event["seconds"] / 3600)
    numbers = (float(event["return_mean"]), float(min(returns)), float(max(returns)), len(returns))
    row = (*what, *when, *numbers, config.steps, config.identity, source.name)
    return dict(zip(SCHEMA, row, strict=True))


def config_share(config: RunConfig) -> float | None:
    """The share of a batch that a run changes; None if it chooses one as it learns."""
    return None if config.augmentation.chooses_share else config.augmentation.share


def write(table: Table, path: Path) -> None:
    """Write the table as Parquet or CSV, by the file's ending."""
    writers = {".parquet": table.frame.write_parquet, ".csv": table.frame.write_csv}
    if path.suffix not in writers:
        raise EudaError(f"results are written as .parquet or .csv, not as {path.name!r}")
    content = io.BytesIO()
    writers[path.suffix](content)
    with atomic_files.readable_errors(path):
        path.parent.mkdir(parents=True, exist_ok=True)
    atomic_files.write_atomically(path, content.getvalue())
