"""Metrics of runs → one table with a row per run and evaluation; what could not be read is named and counted."""

from __future__ import annotations

import dataclasses
import io
import math
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from euda.errors import EudaError
from euda.study import metrics, run, storage
from euda.study.plan import Planned
from euda.study.record import Study
from euda.study.settings import RunConfig
from euda.study.statistics import Floats

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


@dataclasses.dataclass(frozen=True)
class Source:
    """A run that a table is made of."""

    planned: Planned
    folder: Path
    name: str
    """Of the folder, below the runs' folder."""


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
        return tuple(dict.fromkeys(source.planned.config.task for source in self.sources))

    @property
    def curves(self) -> tuple[str, ...]:
        """In order of appearance."""
        return tuple(dict.fromkeys(source.planned.curve for source in self.sources))

    def of(self, task: str, curve: str) -> tuple[Source, ...]:
        """The runs of one curve."""
        return tuple(s for s in self.sources if (s.planned.config.task, s.planned.curve) == (task, curve))

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
    """The runs of one method on one task."""

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
    return build(Source(p, study.folder_of(p), p.folder_name) for p in study.plan.runs)


def of_folder(folder: Path) -> Table:
    """The evaluations of all runs in and below a folder."""
    sources, damaged = [], []
    for path in run.find(folder):
        try:
            config = run.load(path).config
        except EudaError as error:
            damaged.append(str(error))
            continue
        name = str(path.relative_to(folder)) if path != folder else folder.name
        sources.append(Source(Planned(_label(config), config), path, name))
    if not sources:
        raise EudaError(f"there are no runs in {str(folder)!r}")
    table = build(_told_apart(sources))
    return dataclasses.replace(table, damaged=(*damaged, *table.damaged))


def _label(config: RunConfig) -> str:
    """`rotate 0.25` as studies write it: `rotate 25 %`."""
    share = config.augmentation.share
    name = config.label.removesuffix(f" {share:.4g}")
    return config.label if name == config.label else f"{name} {100 * share:.4g} %"


def _told_apart(sources: list[Source]) -> Iterator[Source]:
    """Runs of one label whose settings differ in more than task, cone, seed and steps get those settings in theirs."""
    settings = [_flat(source.planned.config.to_json()) for source in sources]
    variants: dict[str, dict[str, set[Any]]] = {}
    for source, entries in zip(sources, settings, strict=True):
        seen = variants.setdefault(source.planned.curve, {})
        for key, value in entries.items():
            seen.setdefault(key, set()).add(value)
    for source, entries in zip(sources, settings, strict=True):
        seen = variants[source.planned.curve]
        named = [f"{key} {value}" for key, value in entries.items() if len(seen[key]) > 1]
        planned = source.planned
        label = f"{planned.curve} ({', '.join(named)})" if named else planned.curve
        yield dataclasses.replace(source, planned=dataclasses.replace(planned, curve=label))


def _flat(config: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for key, value in config.items():
        if isinstance(value, dict):
            flat |= _flat(value, f"{key}.")
        elif prefix or key not in ("task", "cone", "seed", "steps"):
            flat[prefix + key] = value
    return flat


def build(sources: Iterable[Source]) -> Table:
    """Read the metrics of runs."""
    sources = tuple(sources)
    rows, damaged, choices = [], [], []
    for source in sources:
        events, sentence = _events(source)
        damaged += [sentence] if sentence else []
        rows += [_row(source, event) for event in _evaluations(events, source.planned.config.steps)]
        chosen = [event for event in events if event["event"] == "train" and "share" in event]
        choices += [(source, chosen)] if chosen else []
    return Table(pl.DataFrame(rows, SCHEMA, orient="row"), sources, tuple(damaged), tuple(choices))


def _events(source: Source) -> tuple[list[dict[str, Any]], str]:
    """The events of a run, and a sentence about lines that are none; the last line may still be being written."""
    path = source.folder / "metrics.jsonl"
    if not path.is_file():
        return [], ""
    with storage.readable_errors(path, "read"):
        *lines, rest = path.read_bytes().split(b"\n")
    if rest and not run.is_locked(source.folder):
        lines.append(rest)
    events = [metrics.parse(line) for line in lines]
    bad = [str(i) for i, event in enumerate(events, start=1) if event is None or not _is_sound(event)]
    kept = [event for event in events if event is not None and _is_sound(event)]
    if not bad:
        return kept, ""
    named = ", ".join([*bad[:5], *(["…"] if len(bad) > 5 else [])])
    words = f"{len(bad)} lines are no events and were" if len(bad) > 1 else "one line is no event and was"
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


def _row(source: Source, event: dict[str, Any]) -> tuple[Any, ...]:
    config, returns = source.planned.config, event["returns"]
    what = (config.task, source.planned.curve, config.method, config_share(config), config.seed)
    when = (event["step"], event["seconds"] / 3600)
    numbers = (float(event["return_mean"]), float(min(returns)), float(max(returns)), len(returns))
    return (*what, *when, *numbers, config.steps, config.identity, source.name)


def config_share(config: RunConfig) -> float | None:
    """The share of a batch that a run changes; None if it chooses one as it learns."""
    augmentation = config.augmentation
    return None if augmentation.name == "rotate-auto" else augmentation.share if augmentation.name != "none" else 0.0


def write(table: Table, path: Path) -> None:
    """Write the table as Parquet or CSV, by the file's ending."""
    writers = {".parquet": table.frame.write_parquet, ".csv": table.frame.write_csv}
    if path.suffix not in writers:
        raise EudaError(f"results are written as .parquet or .csv, not as {path.name!r}")
    content = io.BytesIO()
    writers[path.suffix](content)
    with storage.readable_errors(path):
        path.parent.mkdir(parents=True, exist_ok=True)
    storage.write_atomically(path, content.getvalue())
