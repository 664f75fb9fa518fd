"""Table of evaluations → interactive plots: Plotly figures, with every number that their controls can show."""

from __future__ import annotations

import html
import re
from typing import Any

import numpy as np
import plotly.graph_objects as go
import plotly.io

from euda.study import figures, statistics
from euda.study.table import Curve, Table

WINDOWS = (1, 3, 5, 9, 15)
"""Evaluations that a smoothed line is the mean of."""
_FONT = "system-ui, -apple-system, Segoe UI, Roboto, Arial, sans-serif"
LATER = "text/later"
"""The type of scripts that run once plotly.js is unpacked."""
_CONFIG = {"responsive": True, "displaylogo": False, "modeBarButtonsToRemove": ["select2d", "lasso2d", "autoScale2d"]}


def curves(table: Table, task: str, axis: str) -> str:
    """The learning curves of one task, as a part of a page that has plotly.js."""
    found = [curve for name in table.curves if (curve := table.curve(task, name)).seeds]
    longest = max((float(curve.steps[-1]) for curve in found), default=1.0)
    scale, name = figures.unit(longest)
    palette = figures.colours(table.curves)
    traces = [trace for curve in found for trace in _traces(curve, palette[curve.name], scale, axis)]
    names = {"steps": name, "hours": "hours"}
    top = float(f"{figures.ceiling(table, task):.4g}")
    figure = go.Figure(traces, _layout(names[axis], "return", {"names": names, "top": top}))
    figure.update_yaxes(range=[0, top])
    return _part(figure, f"plot-{task}")


def choices(table: Table) -> str:
    """Which share each run that chooses for itself used."""
    traces = []
    for i, (source, events) in enumerate(table.choices):
        steps = [event["step"] for event in events]
        shares = [100 * event["share"] for event in events]
        colour, name = figures.COLOURS[i % len(figures.COLOURS)], html.escape(source.planned.name)
        look: dict[str, Any] = {"name": name, "legendgroup": name}
        dots = {"size": 4, "color": colour, "opacity": 0.45}
        traces.append(go.Scatter(x=steps, y=shares, mode="markers", marker=dots, showlegend=False, **look))
        mean = statistics.smooth(shares, 21)
        traces.append(go.Scatter(x=steps, y=_listed(mean), mode="lines", line={"color": colour, "width": 2}, **look))
    figure = go.Figure(traces, _layout("steps", "share turned, %", {}))
    figure.update_layout(showlegend=True, legend={"orientation": "h", "y": -0.25})
    figure.update_yaxes(range=[-5, 105])
    return _part(figure, "plot-choices")


def _traces(curve: Curve, colour: str, scale: float, axis: str) -> list[go.Scatter]:
    """Interval and mean of one curve, or the runs themselves if they are few; the interval is one closed outline."""
    band = statistics.student_band(curve.values)
    x = {"steps": _listed(curve.steps / scale), "hours": _listed(figures.positions(curve, "hours"))}
    known = np.isfinite(band.low)
    parts: list[go.Scatter] = []
    if 1 < len(curve.seeds) < figures.ENOUGH:
        for values in curve.values:
            own = {str(w): _listed(statistics.smooth(values, w)) for w in WINDOWS}
            parts.append(_scatter(curve, x, own, axis, mode="lines", opacity=0.5,
                                  line={"width": 0.9, "color": colour}, hoverinfo="skip"))  # fmt: skip
    elif known.any():
        inside = np.flatnonzero(known)
        order = np.concatenate([inside, inside[::-1]])
        outlines = {str(w): _outline(band, inside, w) for w in WINDOWS}
        where = {key: [values[i] for i in order] for key, values in x.items()}
        parts.append(_scatter(curve, where, outlines, axis, fill="toself", fillcolor=_clear(colour), mode="lines",
                              line={"width": 0, "color": colour}, hoverinfo="skip"))  # fmt: skip
    lines = {str(w): _listed(statistics.smooth(band.mean, w)) for w in WINDOWS}
    parts.append(_scatter(curve, x, lines, axis, mode="lines", line={"width": 2.2, "color": colour},
                          customdata=_hover(band), hovertemplate=_TEMPLATE))  # fmt: skip
    return parts


_TEMPLATE = "%{y:.1f} %{customdata[1]}, %{customdata[0]}"


def _hover(band: statistics.Band) -> list[list[str]]:
    """Number of seeds and interval at each evaluation, in words."""
    rows = []
    for low, high, count in zip(band.low, band.high, band.count, strict=True):
        interval = f"[{low:.1f}, {high:.1f}]" if np.isfinite(low) else "(no interval)"
        rows.append([f"{count} seed{'s' if count != 1 else ''}", interval])
    return rows


def _outline(band: statistics.Band, inside: Any, window: int) -> list[float | None]:
    low, high = statistics.smooth(band.low, window)[inside], statistics.smooth(band.high, window)[inside]
    return _listed(np.concatenate([high, low[::-1]]))


def _scatter(curve: Curve, x: dict[str, list], y: dict[str, list], axis: str, **look: Any) -> go.Scatter:
    name = html.escape(curve.name)
    meta = {"curve": curve.name, "x": x, "y": y}
    return go.Scatter(x=x[axis], y=y["1"], name=name, legendgroup=name, meta=meta, **look)


def _layout(x: str, y: str, meta: dict[str, Any]) -> go.Layout:
    axis: dict[str, Any] = {"gridcolor": "#edf0f3", "zeroline": False, "linecolor": "#c9d2db", "ticks": "outside",
                            "tickcolor": "#c9d2db", "automargin": True, "title": {"standoff": 8}}  # fmt: skip
    return go.Layout(
        template="none", autosize=True, margin={"l": 52, "r": 18, "t": 10, "b": 44}, showlegend=False,
        hovermode="x unified", hoverlabel={"font": {"size": 12}, "namelength": -1}, meta=meta,
        font={"family": _FONT, "size": 12, "color": "#44515e"},
        xaxis={**axis, "title": {"text": x, "standoff": 8}, "hoverformat": ".3~f"},
        yaxis={**axis, "title": {"text": y, "standoff": 6}, "rangemode": "tozero"},
        modebar={"bgcolor": "rgba(0,0,0,0)", "color": "#b5c0ca", "activecolor": "#2f6fb0"},
        paper_bgcolor="rgba(0,0,0,0)", plot_bgcolor="rgba(0,0,0,0)",
    )  # fmt: skip


def _part(figure: go.Figure, name: str) -> str:
    part = plotly.io.to_html(
        figure, config=_CONFIG, include_plotlyjs=False, full_html=False, div_id=name, default_height="100%"
    )
    return re.sub(r"<script[^>]*>", f'<script type="{LATER}">', part)


def _clear(colour: str) -> str:
    red, green, blue = (int(colour[i : i + 2], 16) for i in (1, 3, 5))
    return f"rgba({red},{green},{blue},0.16)"


def _listed(values: Any) -> list[float | None]:
    """Six digits are more than a screen shows; null where there is nothing."""
    return [float(f"{value:.6g}") if np.isfinite(value) else None for value in np.asarray(values, np.float64)]
