"""Returns in turned worlds → a polar figure: how good a policy is in every direction, one closed line per curve."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.figure import Figure
from matplotlib.projections.polar import PolarAxes
from matplotlib.ticker import MaxNLocator

from euda.errors import EudaError
from euda.reports import style
from euda.reports.matplotlib_figures import FORMATS, STYLE, render
from euda.runs import atomic_files
from euda.runs.turned_evaluation import TurnedReturns

Judged = Sequence[TurnedReturns]
"""What one policy got at each yaw."""
LAST_DASHES: Mapping[int, Any] = {0: (0, (1, 2)), 1: (0, (5, 3))}
"""Of the last curve and the one before it: policies that are equally good in every world lie on one line."""


def draw(curves: Mapping[str, Sequence[Judged]], title: str = "") -> Figure:
    """One line for each curve: the median over its policies (seeds) of the mean return at each yaw.

    Where a curve has several policies, thin lines are these; where it has one, dots are its episodes.

    >>> from euda.reports import polar
    >>> from euda.runs.turned_evaluation import TurnedReturns
    >>> judged = [TurnedReturns(yaw, (1.0, 3.0)) for yaw in (0.0, 1.57, 3.14, 4.71)]
    >>> [line.get_label() for line in polar.draw({"limb": [judged]}).axes[0].lines][0]
    'limb'
    """
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(5.2, 4.6), layout="constrained", dpi=200)
        axes = figure.add_subplot(projection="polar")
        assert isinstance(axes, PolarAxes)
        for later, (name, colour) in zip(
            reversed(range(len(curves))), style.colours(tuple(curves)).items(), strict=True
        ):
            _curve(axes, name, curves[name], colour, LAST_DASHES.get(later if len(curves) > 1 else -1, "solid"))
        low = min(r for policies in curves.values() for judged in policies for one in judged for r in one.returns)
        axes.set_rlim(min(0.0, low))
        _label_returns(axes)
        axes.set_title(title)
        several = any(len(policies) > 1 for policies in curves.values())
        thin = "thick: median over seeds, thin: each seed" if several else "line: mean return, dots: episodes"
        figure.legend(loc="outside lower center", ncols=3, frameon=False, title=thin, title_fontsize="small")
        return figure


def _label_returns(axes: PolarAxes) -> None:
    """Few numbers, between two of eight yaws, that can be read where lines pass below them."""
    axes.set_rlabel_position(22.5)
    axes.yaxis.set_major_locator(MaxNLocator(4))
    for label in axes.get_yticklabels():
        label.set(fontsize="x-small", zorder=5)
        label.set_bbox({"facecolor": "white", "edgecolor": "none", "alpha": 0.75, "pad": 0.8})


def _curve(axes: PolarAxes, name: str, policies: Sequence[Judged], colour: str, dashes: Any) -> None:
    yaws = [one.yaw for one in policies[0]]
    means = np.array([[one.mean for one in judged] for judged in policies])
    axes.plot(*_closed(yaws, np.median(means, axis=0)), color=colour, linewidth=1.8, linestyle=dashes, label=name)
    if len(policies) > 1:
        for one in means:
            axes.plot(*_closed(yaws, one), color=colour, linewidth=0.6, alpha=0.55)
    else:
        for one in policies[0]:
            axes.plot([one.yaw] * len(one.returns), one.returns, ".", color=colour, markersize=3, alpha=0.4)


def _closed(yaws: Sequence[float], values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """A line that comes back to where it began."""
    return np.append(yaws, yaws[0]), np.append(values, values[0])


def check(path: Path) -> None:
    """Refuse a file that a figure cannot be, before anything is computed for it."""
    if _kind(path) not in FORMATS:
        raise EudaError(f"a figure is a {', '.join(f'.{name}' for name in FORMATS)} file, not {path.name!r}")
    if not path.absolute().parent.is_dir():
        raise EudaError(f"no folder {str(path.parent)!r} to write {path.name!r} into")


def write(figure: Figure, path: Path) -> None:
    """Save a figure as what the file's ending says."""
    check(path)
    atomic_files.write_atomically(path, render(figure, _kind(path)))


def _kind(path: Path) -> str:
    return path.suffix.lower().removeprefix(".")
