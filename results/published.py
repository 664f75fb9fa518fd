"""Returns that others published for our tasks, and a figure of ours beside them.

`published.json` has, for each task and method, the mean and the standard deviation over seeds at some steps, computed
from the files that the named repository publishes. All of them are on joint features and with networks sized for GPUs;
`action_repeat` says for how many steps an action is held. Steps are those of the simulation in all of them, as here.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Literal, NamedTuple

import headlines  # beside this file
import matplotlib as mpl
import numpy as np
import polars as pl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from euda.reports import matplotlib_figures, style
from euda.reports.report import Report
from euda.runs import bases

FARTHEST = 200_000
"""Steps that the figure shows."""
LINES: dict[str, Literal["-", "--"]] = {bases.SWIFT: "-", bases.FRUGAL: "--"}
"""How our curves are drawn, by the base."""


class Published(NamedTuple):
    """One method on one task."""

    task: str
    method: str
    repository: str
    file: str
    action_repeat: int
    seeds: int
    points: list[tuple[int, float, float]]
    """Step, mean and standard deviation over seeds."""

    def at(self, step: int) -> float | None:
        """The mean at a step, if it is there."""
        return next((mean for there, mean, _ in self.points if there == step), None)


def load() -> list[Published]:
    """Everything in `published.json`."""
    text = (Path(__file__).resolve().parent / "published.json").read_text("utf-8")
    return [Published(**{**entry, "points": [tuple(point) for point in entry["points"]]}) for entry in json.loads(text)]


def best(task: str, step: int) -> str:
    """The highest mean at a step, or at the first step after it that anybody gives, in words."""
    known = [one for one in load() if one.task == task]
    for there in sorted({point[0] for one in known for point in one.points if point[0] >= step}):
        found = [(mean, one) for one in known if (mean := one.at(there)) is not None]
        mean, one = max(found, key=lambda pair: pair[0])
        return f"{mean:.0f} ({one.method}){'' if there == step else f' at {style.thousands(there)}'}"
    return "–"


def figure(reports: Iterable[Report]) -> Figure:
    """A panel for each task that both have: our means over seeds, one for each of our bases, and theirs."""
    ours = _ours(reports)
    theirs = [one for one in load() if one.task in ours]
    colours = style.colours(tuple(dict.fromkeys(one.method for one in theirs)))
    with mpl.rc_context(matplotlib_figures.STYLE):
        drawn, panels = matplotlib_figures.grid(len(ours))
        for task, axes in zip(ours, panels, strict=True):
            for one in theirs:
                if one.task == task:
                    _draw_theirs(axes, one, colours[one.method])
            titles = [task]
            for base, (curve, rows) in ours[task].items():
                _draw_ours(axes, rows, LINES[base])
                seeds = rows["seed"].n_unique()
                titles.append(f"{base}: {curve.removeprefix(base).strip()}, {seeds} seed{'s' if seeds > 1 else ''}")
            axes.set(title="\n".join(titles), xlabel="thousand steps", ylabel="mean return")
            axes.set_xlim(0, FARTHEST / 1000)
            axes.set_ylim(bottom=0)
        used = [base for base in LINES if any(base in found for found in ours.values())]
        handles = [Line2D([], [], color="black", linewidth=2.2, linestyle=LINES[base],
                          label=f"euda, base {base}, one CPU core") for base in used]  # fmt: skip
        handles += [Line2D([], [], color=colour, label=name, linewidth=1.2) for name, colour in colours.items()]
        drawn.legend(handles=handles, loc="outside lower center", ncols=4, frameon=False, title_fontsize="small",
                     title="points: published means over 3 to 15 seeds; black: our mean and seeds")  # fmt: skip
        return drawn


def _draw_theirs(axes: Axes, one: Published, colour: str) -> None:
    shown = [(step / 1000, mean) for step, mean, _ in one.points if step <= FARTHEST]
    axes.plot(*zip(*shown, strict=True), "o-", color=colour, markersize=3, linewidth=1.0)


def _draw_ours(axes: Axes, rows: pl.DataFrame, line: Literal["-", "--"]) -> None:
    by_seed = rows.pivot(on="seed", index="step", values="return_mean").sort("step").drop_nulls()
    steps, returns = by_seed["step"].to_numpy() / 1000, by_seed.drop("step").to_numpy()
    axes.plot(steps, returns, color="black", linewidth=0.5, alpha=0.35, linestyle=line)
    axes.plot(steps, np.mean(returns, axis=1), color="black", linewidth=2.2, linestyle=line)


def _ours(reports: Iterable[Report]) -> dict[str, dict[str, tuple[str, pl.DataFrame]]]:
    """By task and base, of curves that learn as the base says: the best among those of most seeds; name and rows."""
    tasks, found = {one.task for one in load()}, dict[str, dict[str, dict[str, pl.DataFrame]]]()
    for report in reports:
        for source in report.table.sources:
            config = source.config
            if config.task in tasks and config.base in LINES and headlines.is_own(config):
                rows = report.table.frame.filter(pl.col("identity") == config.identity)
                if rows.is_empty():
                    continue
                place = found.setdefault(config.task, {}).setdefault(config.base, {})
                kept = rows.select("step", "seed", "return_mean")
                before = place.get(source.curve)
                place[source.curve] = kept if before is None else before.vstack(kept).unique(["step", "seed"])
    return {task: {base: _best(ours[base]) for base in LINES if base in ours} for task, ours in sorted(found.items())}


def _best(curves: dict[str, pl.DataFrame]) -> tuple[str, pl.DataFrame]:
    """Of the curves with most seeds (five are as good as more), the highest mean at the last step that all have."""
    seeds = {name: min(rows["seed"].n_unique(), headlines.ENOUGH) for name, rows in curves.items()}
    most = {name: rows for name, rows in curves.items() if seeds[name] == max(seeds.values())}
    lasts = [rows.group_by("seed").agg(pl.col("step").max())["step"].to_numpy() for rows in most.values()]
    last = np.concatenate(lasts).min()
    means = {
        name: np.mean(rows.filter(pl.col("step") == last)["return_mean"].to_numpy()) for name, rows in most.items()
    }
    name = max(most, key=lambda name: means[name])
    return name, most[name]
