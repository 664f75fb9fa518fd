"""Table of evaluations → figures for papers: a grid of tasks, median lines, their intervals or the seeds themselves."""

from __future__ import annotations

import io
import math
import textwrap
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
import numpy.typing as npt
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from euda.reports import results_table, statistics, style
from euda.reports.results_table import Curve, Table
from euda.reports.statistics import Floats

FORMATS = ("png", "svg", "pdf")
STYLE: Any = {
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.color": "#e6e6e6",
    "grid.linewidth": 0.6,
    "axes.axisbelow": True,
    "svg.hashsalt": "euda",
    "pdf.fonttype": 42,
    "text.parse_math": False,  # names of curves are names, whatever they contain
}
_NO_DATES: dict[str, dict[str, Any]] = {"svg": {"Date": None}, "pdf": {"CreationDate": None}, "png": {"Software": None}}
_LETTER, _LINE = 0.066, 0.19  # inches of a letter of this size, a little more than the mean, and of a line


def draw_runs(*runs: str | Path, axis: str = "steps") -> Figure:
    """The learning curves of runs, or of all runs in folders, as `euda report RUN RUN` draws them.

    >>> import tempfile
    >>> import euda
    >>> short = {"steps": 40, "episode_steps": 20, "evaluation": {"every": 20, "episodes": 2}}
    >>> runs = [euda.train("reacher_hard", method, out=tempfile.mkdtemp(), **short) for method in ("limb", "rotate")]
    >>> figure = euda.draw_runs(*(run.folder for run in runs))
    >>> [panel.get_title() for panel in figure.axes]
    ['reacher_hard']
    """
    return learning_curves(results_table.of_folders([Path(run) for run in runs]), axis)


def learning_curves(table: Table, axis: str = "steps") -> Figure:
    """A grid of tasks, one panel each; those without runs are left out, unless there are none at all."""
    run = [task for task in table.tasks if any(table.curve(task, name).seeds for name in table.curves)]
    tasks = run or table.tasks
    with mpl.rc_context(STYLE):
        figure, panels = grid(len(tasks))
        palette = style.colours(table.curves)
        longest = max(table.frame["step"].to_list(), default=1)
        scale, name = style.unit(longest) if axis == "steps" else (1.0, "hours")
        counts: dict[str, set[int]] = {}
        for task, axes in zip(tasks, panels, strict=True):
            for curve in (table.curve(task, name) for name in table.curves):
                if curve.seeds:
                    _draw(axes, curve, style.positions(curve, axis) / scale, palette[curve.name])
                    counts.setdefault(curve.name, set()).add(len(curve.seeds))
            axes.set(title=_wrapped(task, 44), xlabel=name, ylabel="return", ylim=style.limits(table, task))
            axes.set_xlim(left=0)
        caption = style.caption(table, "dotted: where not all seeds have got so far")
        _legend(figure, {f"{name} ({_seeds(n)})": palette[name] for name, n in counts.items()}, "; ".join(caption))
        return figure


def choices(table: Table) -> Figure | None:
    """Which share each run that chooses for itself used, episode by episode."""
    if not table.choices:
        return None
    with mpl.rc_context(STYLE):
        figure, panels = grid(len(table.choices))
        for (source, events), axes in zip(table.choices, panels, strict=True):
            steps = np.array([event["step"] for event in events], np.float64)
            scale, name = style.unit(float(steps.max()))
            shares = [100 * event["share"] for event in events]
            axes.plot(steps / scale, shares, ".", color=style.COLOURS[0], markersize=4, alpha=0.6)
            axes.plot(steps / scale, statistics.smooth(shares, 21), color=style.COLOURS[1], label="mean of 21 episodes")
            axes.set(title=_wrapped(source.title, 44), xlabel=name, ylabel="share turned, %", ylim=(-5, 105))
        panels[0].legend(frameon=False)
        return figure


def _draw(axes: Axes, curve: Curve, x: Floats, colour: str) -> None:
    """Median, and its interval or the runs themselves; dotted where only some of the runs have got so far."""
    band = statistics.median_band(curve.values)
    whole = band.count == len(curve.seeds)
    axes.plot(x, np.where(whole, band.median, np.nan), color=colour, linewidth=1.6)
    if not whole.all():
        axes.plot(x, np.where(_widened(~whole), band.median, np.nan), ":", color=colour, linewidth=1.2)
    if len(curve.seeds) >= statistics.ENOUGH:
        axes.fill_between(x, band.low, band.high, color=colour, alpha=0.18, linewidth=0)
    elif len(curve.seeds) > 1:
        axes.plot(x, curve.values.T, color=colour, linewidth=0.6, alpha=0.55)


def _widened(some: npt.NDArray[np.bool_]) -> npt.NDArray[np.bool_]:
    """Also the evaluation before, so that the two parts of a line meet."""
    return some | np.append(some[1:], False)


def grid(count: int) -> tuple[Figure, list[Axes]]:
    """A figure with so many panels, at most three beside each other."""
    columns = min(3, max(1, count))
    rows = math.ceil(max(1, count) / columns)
    # one panel alone is larger, so that the legend's words fit beneath it
    size = (6.6, 3.8) if count <= 1 else (3.3 * columns, 2.6 * rows + 0.5)
    figure = Figure(figsize=size, layout="constrained", dpi=200)
    panels = figure.subplots(rows, columns, squeeze=False).ravel().tolist()
    for empty in panels[count:]:
        empty.set_axis_off()
    return figure, panels[:count]


def _legend(figure: Figure, palette: dict[str, str], caption: str) -> None:
    """Below the panels, in as many columns as its words have room for."""
    if not palette:
        return
    width = figure.get_figwidth()
    labels = {name: _wrapped(name, int(width / _LETTER) - 8) for name in palette}
    longest = max(len(line) for label in labels.values() for line in label.splitlines())
    columns = max(1, min(len(labels), 4, int(width / (_LETTER * longest + 0.6))))
    rows = math.ceil(len(labels) / columns)
    figure.set_figheight(figure.get_figheight() + _LINE * max(0, rows - 2))  # so that the panels keep their height
    handles = [Line2D([], [], color=colour, label=labels[name]) for name, colour in palette.items()]
    legend = figure.legend(handles=handles, loc="outside lower center", ncols=columns, frameon=False,
                           title_fontsize="small", title=_wrapped(caption, int(width / _LETTER)))  # fmt: skip
    legend.get_title().set_multialignment("center")


def _wrapped(text: str, letters: int) -> str:
    return "\n".join(textwrap.wrap(text, max(letters, 10)))


def _seeds(counts: set[int]) -> str:
    low, high = min(counts), max(counts)
    return f"{low} to {high} seeds" if low != high else f"{low} seed{'s' if low > 1 else ''}"


def render(figure: Figure, kind: str) -> bytes:
    """A figure as the content of a file, the same bytes for the same data."""
    content = io.BytesIO()
    with mpl.rc_context(STYLE):
        figure.savefig(content, format=kind, metadata=_NO_DATES[kind])
    return content.getvalue()
