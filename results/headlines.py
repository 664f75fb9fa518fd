"""The table of results in README.md: what the same base reaches with and without symmetry, task by task."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

import polars as pl

from euda.reports.report import Report
from euda.reports.style import number, thousands
from euda.runs import bases
from euda.runs.config import RunConfig

COLUMNS: dict[tuple[str, str, str, str], str] = {
    ("joint", "none", "world", "yaw"): "joint features",
    ("limb", "none", "world", "yaw"): "limb features",
    ("joint", "rotate", "world", "yaw"): "joint, turned",
    ("joint", "rotate", "world", "mirror"): "joint, mirrored",
    ("limb", "rotate", "world", "yaw"): "limb, turned",
    ("limb", "rotate", "world", "mirror"): "limb, mirrored",
    ("limb", "rotate", "world", "all"): "limb, turned and mirrored",
    ("limb", "none", "own", "yaw"): "limb, own frame",
    ("limb", "rotate", "own", "mirror"): "limb, own frame, mirrored",
}
"""By features, augmentation, frame and group. A column without a number is left out."""

ENOUGH = 5
"""Seeds from which on a mean counts as known."""


class Cell(NamedTuple):
    """The median over seeds of the returns at one step, and of how many seeds."""

    median: float
    seeds: int
    share: float | None

    def __str__(self) -> str:
        share = f", {100 * self.share:.4g} %" if self.share else ""
        return f"{number(self.median)} ({self.seeds}{share})"


def table(reports: Iterable[Report]) -> str:
    """A line for each task and last step of enough seeds on the default base; of curves alike that with most seeds.

    A run that goes on for longer stands beside the shorter ones with what it had at their last step.
    """
    curves = [curve for found in reports for curve in _curves(found)]
    cells: dict[tuple[str, int], dict[str, Cell]] = {}
    for task, step in {(task, last) for task, last, _, at in curves if at[last].seeds >= ENOUGH}:
        line = cells.setdefault((task, step), {})
        for column, cell in (
            (column, cell) for other, _, column, at in curves if other == task and (cell := at.get(step)) is not None
        ):
            if column not in line or line[column].seeds < cell.seeds:
                line[column] = cell
    lines = {key: line for key, line in cells.items() if len(line) > 1}
    used = [name for name in COLUMNS.values() if any(name in line for line in lines.values())]
    header = ("task", "steps", *used)
    shown = [
        (task, thousands(step), *(str(lines[task, step].get(name, "–")) for name in used))
        for task, step in sorted(lines)
    ]
    rows = [header, ("---",) * len(header), *shown]
    return "\n".join(f"| {' | '.join(row)} |" for row in rows) + "\n"


def _curves(found: Report) -> Iterator[tuple[str, int, str, dict[int, Cell]]]:
    """Task, last step, column, and the cell at each step of every curve that the table may show."""
    for row in found.summary.rows:
        if row.step is None:
            continue
        config = found.table.of(row.task, row.curve)[0].config
        if config.base != bases.DEFAULT or (column := _column(config)) is None:
            continue
        own = found.table.frame.filter((pl.col("task") == row.task) & (pl.col("curve") == row.curve))
        medians = own.group_by("step").agg(pl.col("return_mean").median(), pl.len())
        yield (row.task, row.step, column,
               {step: Cell(value, seeds, row.share) for step, value, seeds in medians.iter_rows()})  # fmt: skip


def _column(config: RunConfig) -> str | None:
    """Where a run belongs; None if it is not its base's own, but for what is observed and done with symmetry."""
    key = config.features, config.augmentation.name, config.frame, config.group
    return COLUMNS.get(key) if is_own(config) else None


def is_own(config: RunConfig) -> bool:
    """Whether a run learns as its base says, on the task as it is; only method, steps and evaluation may differ."""
    base = bases.find(config.base)
    parts = (config.learning, config.architecture, config.inputs, config.replay)
    is_base = (config.agent, config.network) == (base.agent, base.network)
    task = config.direction, config.targets, config.robot, config.payload, config.action_repeat
    is_task = task == (None, None, None, 0, 1)
    return is_base and is_task and all(part == base.of(type(part)) for part in parts)
