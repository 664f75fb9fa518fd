"""The goals of our bases beside what was reached and what others published, as a table of Markdown."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import headlines  # beside this file
import polars as pl
import published

from euda.reports import style
from euda.reports.report import Report
from euda.runs import bases


class Goal(NamedTuple):
    """A mean return over seeds after so many environment steps."""

    task: str
    step: int
    goal: float


GOALS = (
    Goal("reacher_hard", 15_000, 900),
    Goal("quadruped_run", 50_000, 450),
    Goal("quadruped_run", 100_000, 650),
    Goal("cheetah_run", 50_000, 450),
    Goal("cheetah_run", 100_000, 640),
    Goal("walker_run", 100_000, 500),
    Goal("hopper_hop", 100_000, 86),
    Goal("humanoid_stand", 500_000, 350),
)
OURS = (bases.SWIFT, bases.FRUGAL)
"""The bases that are held against them; one that was not run on a task has no line."""
_HEADER = ("task", "at step", "goal", "base", "mean", "of each seed", "minutes, median", "method", "best published")


def table(reports: Iterable[Report]) -> str:
    """A line for each goal and base: of methods with its own settings, the best among those of most seeds."""
    kept = list(reports)
    frames = {base: [_on(base, found) for found in kept] for base in OURS}
    rows = [row for goal in GOALS for row in _rows(goal, frames)]
    return "\n".join(f"| {' | '.join(row)} |" for row in (_HEADER, ("---",) * len(_HEADER), *rows)) + "\n"


def _on(base: str, found: Report) -> pl.DataFrame:
    """The evaluations of runs that learn as the base says: a goal is the base's, not that of a variant of it."""
    configs = [source.config for source in found.table.sources]
    runs = [config.identity for config in configs if config.base == base and headlines.is_own(config)]
    return found.table.frame.filter(pl.col("identity").is_in(runs))


def _rows(goal: Goal, frames: dict[str, list[pl.DataFrame]]) -> list[tuple[str, ...]]:
    rows = [row for base in OURS if (row := _row(goal, base, frames[base])) is not None]
    missing = (goal.task, style.thousands(goal.step), f"{goal.goal:g}", "–", "not run", "–", "–", "–")
    return rows or [(*missing, published.best(goal.task, goal.step))]


def _row(goal: Goal, base: str, frames: list[pl.DataFrame]) -> tuple[str, ...] | None:
    step, others = style.thousands(goal.step), published.best(goal.task, goal.step)
    best: tuple[int, float, pl.DataFrame] | None = None
    for frame in frames:
        there = frame.filter((pl.col("task") == goal.task) & (pl.col("step") == goal.step))
        for _, rows in there.group_by("curve"):
            found = min(len(rows), headlines.ENOUGH), float(rows["return_mean"].mean())  # type: ignore[arg-type]
            if best is None or found > best[:2]:
                best = *found, rows.sort("seed")
    if best is None:
        return None
    seeds, mean, rows = best
    each = ", ".join(f"{value:.0f}" for value in rows["return_mean"])
    minutes = 60 * float(rows["hours"].median())  # type: ignore[arg-type]
    reached = "reached" if mean >= goal.goal else "missed"
    if seeds < headlines.ENOUGH:
        reached = f"{seeds} of {headlines.ENOUGH} seeds"
    return (goal.task, step, f"{goal.goal:g}", base, f"{mean:.0f} ({reached})", each, f"{minutes:.1f}",
            rows["curve"][0], others)  # fmt: skip
