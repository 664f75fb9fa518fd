"""What all figures of a report share: colours, units, the ends of the axes, and the words under a figure."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import polars as pl

from euda.reports import statistics
from euda.reports.results_table import Curve, Table
from euda.reports.statistics import Floats

COLOURS = (
    *("#4477AA", "#EE6677", "#228833", "#CCBB44", "#AA3377", "#EE7733"),
    *("#009988", "#808080", "#7E6BC9", "#66CCEE", "#A8743A", "#999933"),
)
"""Mostly Paul Tol's, made to be told apart with any colour vision; visible on white and on a dark page."""
_MARGIN = 0.08  # of a panel's height, beyond the outermost run


def colours(names: Sequence[str]) -> dict[str, str]:
    """One colour for each curve, the same everywhere in a report."""
    return {name: COLOURS[i % len(COLOURS)] for i, name in enumerate(names)}


def unit(most: float) -> tuple[float, str]:
    """What to divide steps by, and its name."""
    return (1e6, "million steps") if most >= 200_000 else (1e3, "thousand steps") if most >= 2000 else (1.0, "steps")


def positions(curve: Curve, axis: str) -> Floats:
    """Where the evaluations of a curve are on the x axis: steps, or hours averaged over the runs that have them."""
    if axis == "steps":
        return np.asarray(curve.steps, np.float64)
    counts = np.isfinite(curve.hours).sum(axis=0)
    return np.nansum(curve.hours, axis=0) / np.maximum(counts, 1)


def limits(table: Table, task: str) -> tuple[float, float]:
    """The ends of a panel's axis of returns: from zero where nothing is negative, with every run inside."""
    returns = table.frame.filter(pl.col("task") == task)["return_mean"].to_numpy()
    low, high = (float(returns.min()), float(returns.max())) if len(returns) else (0.0, 1.0)
    if low >= 0:
        return 0.0, (1 + _MARGIN) * high or 1.0
    margin = _MARGIN * (high - low) or _MARGIN * abs(high)
    return low - margin, high + margin


def number(value: float, digits: int = 0) -> str:
    """A number with so many digits after the point, and no minus before a zero."""
    return f"{value:z.{digits}f}"


def thousands(value: int) -> str:
    """A whole number with spaces between its thousands."""
    return f"{value:,}".replace(",", " ")


def has_negative(table: Table) -> bool:
    """Whether any return is below zero, so that a logarithmic axis would hide it."""
    return bool((table.frame["return_mean"] < 0).any())


def caption(table: Table, shows_shorter: str) -> list[str]:
    """What the marks of a figure of learning curves mean: only those that are there.

    `shows_shorter` says how the figure marks evaluations that not all seeds have.
    """
    curves = [curve for task in table.tasks for name in table.curves if (curve := table.curve(task, name)).seeds]
    seeds = {len(curve.seeds) for curve in curves}
    if not seeds:
        return []
    enough = statistics.ENOUGH
    parts = ["line: median over seeds" if max(seeds) > 1 else "one seed each"]
    if max(seeds) >= enough:
        parts.append("shaded: its 95 % interval, whatever the distribution of returns")
    if seeds & set(range(2, enough)):
        parts.append("thin: the seeds" + (f", where fewer than {enough}" if max(seeds) >= enough else ""))
    if any(np.isnan(curve.values).any() for curve in curves):
        parts.append(shows_shorter)
    return parts
