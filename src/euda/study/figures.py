"""Table of evaluations → figures as in the paper: a grid of tasks, mean lines, shaded 95 % intervals.

The interval of two or three runs is wider than the panel and hides all others, so few runs are drawn themselves.
"""

from __future__ import annotations

import io
import math
from collections.abc import Sequence
from typing import Any

import matplotlib as mpl
import numpy as np
import polars as pl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from euda.study import statistics
from euda.study.table import Curve, Table

FORMATS = ("png", "svg", "pdf")
COLOURS = (
    *("#4477AA", "#EE6677", "#228833", "#CCBB44", "#AA3377", "#EE7733"),
    *("#009988", "#777777", "#332288", "#66CCEE", "#882255", "#999933"),
)
"""After Paul Tol: told apart with any colour vision, and in grey."""
ENOUGH = 4
"""Runs of a curve whose interval is drawn; fewer are drawn one by one, as thin lines."""
_STYLE: Any = {
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": "#e6e6e6",
    "grid.linewidth": 0.6,
    "axes.axisbelow": True,
    "svg.hashsalt": "euda",
    "pdf.fonttype": 42,
}
_NO_DATES: dict[str, dict[str, Any]] = {"svg": {"Date": None}, "pdf": {"CreationDate": None}, "png": {"Software": None}}


def colours(names: Sequence[str]) -> dict[str, str]:
    """One colour for each curve, the same everywhere in a report."""
    return {name: COLOURS[i % len(COLOURS)] for i, name in enumerate(names)}


def unit(most: float) -> tuple[float, str]:
    """What to divide steps by, and its name."""
    return (1e6, "million steps") if most >= 200_000 else (1e3, "thousand steps") if most >= 2000 else (1.0, "steps")


def positions(curve: Curve, axis: str) -> Any:
    """Where the evaluations of a curve are on the x axis: steps, or hours averaged over the runs that have them."""
    if axis == "steps":
        return np.asarray(curve.steps, np.float64)
    counts = np.isfinite(curve.hours).sum(axis=0)
    return np.nansum(curve.hours, axis=0) / np.maximum(counts, 1)


def learning_curves(table: Table, axis: str = "steps") -> Figure:
    """A grid of tasks, one panel each."""
    with mpl.rc_context(_STYLE):
        figure, panels = _grid(len(table.tasks))
        palette = colours(table.curves)
        longest = max(table.frame["step"].to_list(), default=1)
        scale, name = unit(longest) if axis == "steps" else (1.0, "hours")
        counts: dict[str, set[int]] = {}
        for task, axes in zip(table.tasks, panels, strict=True):
            for curve in (table.curve(task, name) for name in table.curves):
                if curve.seeds:
                    _draw(axes, curve, positions(curve, axis) / scale, palette[curve.name])
                    counts.setdefault(curve.name, set()).add(len(curve.seeds))
            axes.set(title=task, xlabel=name, ylabel="return")
            axes.set_ylim(0, ceiling(table, task))
            axes.set_xlim(left=0)
        _legend(figure, palette, counts)
        return figure


def ceiling(table: Table, task: str) -> float:
    """The top of a panel: above every run, but not above every interval, which for two seeds can be enormous."""
    returns = table.frame.filter(pl.col("task") == task)["return_mean"].to_list()
    return 1.08 * max(returns, default=0.0) or 1.0


def choices(table: Table) -> Figure | None:
    """Which share each run that chooses for itself used, episode by episode."""
    if not table.choices:
        return None
    with mpl.rc_context(_STYLE):
        figure, panels = _grid(len(table.choices))
        for (source, events), axes in zip(table.choices, panels, strict=True):
            steps = np.array([event["step"] for event in events], np.float64)
            scale, name = unit(float(steps.max()))
            shares = [100 * event["share"] for event in events]
            axes.plot(steps / scale, shares, ".", color=COLOURS[0], markersize=4, alpha=0.6)
            axes.plot(steps / scale, statistics.smooth(shares, 21), color=COLOURS[1], label="mean of 21 episodes")
            axes.set(title=source.planned.name, xlabel=name, ylabel="share turned, %", ylim=(-5, 105))
        panels[0].legend(frameon=False)
        return figure


def _draw(axes: Axes, curve: Curve, x: Any, colour: str) -> None:
    """Mean, and the interval or the runs themselves; dotted where only some of the runs have got so far."""
    band = statistics.student_band(curve.values)
    whole = band.count == len(curve.seeds)
    axes.plot(x, np.where(whole, band.mean, np.nan), color=colour, linewidth=1.6)
    if not whole.all():
        axes.plot(x, np.where(_widened(~whole), band.mean, np.nan), ":", color=colour, linewidth=1.2)
    if len(curve.seeds) >= ENOUGH:
        axes.fill_between(x, band.low, band.high, color=colour, alpha=0.18, linewidth=0)
    elif len(curve.seeds) > 1:
        axes.plot(x, curve.values.T, color=colour, linewidth=0.6, alpha=0.55)


def _widened(some: Any) -> Any:
    """Also the evaluation before, so that the two parts of a line meet."""
    return some | np.append(some[1:], False)


def _grid(count: int) -> tuple[Figure, list[Axes]]:
    columns = min(3, max(1, count))
    rows = math.ceil(max(1, count) / columns)
    # one panel alone is larger, so that the legend's words fit beneath it
    size = (6.6, 3.8) if count <= 1 else (3.3 * columns, 2.6 * rows + 0.5)
    figure = Figure(figsize=size, layout="constrained", dpi=200)
    panels = figure.subplots(rows, columns, squeeze=False).ravel().tolist()
    for empty in panels[count:]:
        empty.set_axis_off()
    return figure, panels[:count]


def _legend(figure: Figure, palette: dict[str, str], counts: dict[str, set[int]]) -> None:
    handles = [Line2D([], [], color=palette[name], label=f"{name} ({_seeds(n)})") for name, n in counts.items()]
    if handles:
        columns = min(len(handles), 3 if figure.get_figwidth() < 9 else 4)
        legend = figure.legend(
            handles=handles, loc="outside lower center", ncols=columns, frameon=False, title_fontsize="small",
            title=f"mean over seeds; shaded: its 95 % interval (Student t); thin: the seeds, if fewer than {ENOUGH};\n"
            "dotted: where not all seeds have got so far",
        )  # fmt: skip
        legend.get_title().set_multialignment("center")


def _seeds(counts: set[int]) -> str:
    low, high = min(counts), max(counts)
    return f"{low} to {high} seeds" if low != high else f"{low} seed{'s' if low > 1 else ''}"


def render(figure: Figure, kind: str) -> bytes:
    """A figure as the content of a file, the same bytes for the same data."""
    content = io.BytesIO()
    with mpl.rc_context(_STYLE):
        figure.savefig(content, format=kind, metadata=_NO_DATES[kind])
    return content.getvalue()
