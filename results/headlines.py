"""The table of results in README.md: what the same base reaches with and without symmetry, task by task."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable

from euda.reports.report import Report
from euda.reports.style import number, thousands
from euda.reports.summary import Row
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


@dataclasses.dataclass(frozen=True)
class Cell:
    """The median of the seeds' last returns."""

    row: Row

    def __str__(self) -> str:
        share = f", {100 * self.row.share:.4g} %" if self.row.share else ""
        return f"{number(self.row.final.value)} ({self.row.runs}{share})" if self.row.final is not None else "–"


def table(reports: Iterable[Report]) -> str:
    """A line for each task and number of steps on the default base; of several curves the one with most seeds."""
    cells: dict[tuple[str, int], dict[str, Cell]] = {}
    for found in reports:
        for row in found.summary.rows:
            config = found.table.of(row.task, row.curve)[0].config
            if row.step is None or config.base != bases.DEFAULT or (column := _column(config)) is None:
                continue
            line = cells.setdefault((row.task, row.step), {})
            if column not in line or line[column].row.runs < row.runs:
                line[column] = Cell(row)
    lines = {key: line for key, line in cells.items() if len(line) > 1}
    used = [name for name in COLUMNS.values() if any(name in line for line in lines.values())]
    header = ("task", "steps", *used)
    shown = [
        (task, thousands(step), *(str(lines[task, step].get(name, "–")) for name in used))
        for task, step in sorted(lines)
    ]
    rows = [header, ("---",) * len(header), *shown]
    return "\n".join(f"| {' | '.join(row)} |" for row in rows) + "\n"


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
