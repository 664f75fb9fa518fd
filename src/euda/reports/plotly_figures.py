"""Table of evaluations → interactive plots: Plotly figures as JSON, with every number that their controls can show."""

from __future__ import annotations

import html
from typing import Any

import numpy as np
import plotly.graph_objects as go

from euda.reports import statistics, style
from euda.reports.results_table import Curve, Table

WINDOWS = (1, 3, 5, 9, 15)
"""Evaluations that a smoothed line is the mean of."""
CONFIG = {"responsive": True, "displaylogo": False, "modeBarButtonsToRemove": ["select2d", "lasso2d", "autoScale2d"]}
"""Of every plot: what Plotly calls its configuration."""
_FONT = "system-ui, -apple-system, Segoe UI, Roboto, Arial, sans-serif"


def curves(table: Table, task: str, axis: str) -> dict[str, Any]:
    """The learning curves of one task."""
    found = [curve for name in table.curves if (curve := table.curve(task, name)).seeds]
    longest = max((float(curve.steps[-1]) for curve in found), default=1.0)
    scale, name = style.unit(longest)
    palette = style.colours(table.curves)
    traces = [trace for curve in found for trace in _traces(curve, palette[curve.name], scale, axis)]
    names = {"steps": name, "hours": "hours"}
    ends = [float(f"{end:.4g}") for end in style.limits(table, task)]
    figure = go.Figure(traces, _layout(names[axis], "return", {"names": names, "range": ends}))
    figure.update_yaxes(range=ends)
    return figure.to_plotly_json()


def choices(table: Table) -> dict[str, Any]:
    """Which share each run that chooses for itself used."""
    traces = []
    for i, (source, events) in enumerate(table.choices):
        steps = [event["step"] for event in events]
        shares = [100 * event["share"] for event in events]
        colour, name = style.COLOURS[i % len(style.COLOURS)], html.escape(source.title)
        look: dict[str, Any] = {"name": name, "legendgroup": name}
        dots = {"size": 4, "color": colour, "opacity": 0.45}
        traces.append(go.Scatter(x=steps, y=shares, mode="markers", marker=dots, showlegend=False, **look))
        mean = statistics.smooth(shares, 21)
        traces.append(go.Scatter(x=steps, y=_listed(mean), mode="lines", line={"color": colour, "width": 2}, **look))
    figure = go.Figure(traces, _layout("steps", "share turned, %", {}))
    figure.update_layout(showlegend=True, legend={"orientation": "h", "y": -0.25})
    figure.update_yaxes(range=[-5, 105])
    return figure.to_plotly_json()


def _traces(curve: Curve, colour: str, scale: float, axis: str) -> list[go.Scatter]:
    """Interval and median of one curve, or the runs themselves if they are few; the interval is one closed outline."""
    band = statistics.median_band(curve.values)
    x = {"steps": _listed(curve.steps / scale), "hours": _listed(style.positions(curve, "hours"))}
    parts: list[go.Scatter] = []
    if len(curve.seeds) >= statistics.ENOUGH:
        inside = np.flatnonzero(np.isfinite(band.low))
        order = np.concatenate([inside, inside[::-1]])
        outlines = {str(w): _outline(band, inside, w) for w in WINDOWS}
        where = {key: [values[i] for i in order] for key, values in x.items()}
        parts.append(_scatter(curve, where, outlines, axis, fill="toself", fillcolor=_clear(colour), mode="lines",
                              line={"width": 0, "color": colour}, hoverinfo="skip"))  # fmt: skip
    elif len(curve.seeds) > 1:
        for values in curve.values:
            own = {str(w): _listed(statistics.smooth(values, w)) for w in WINDOWS}
            parts.append(_scatter(curve, x, own, axis, mode="lines", opacity=0.5,
                                  line={"width": 0.9, "color": colour}, hoverinfo="skip"))  # fmt: skip
    lines = {str(w): _listed(statistics.smooth(band.median, w)) for w in WINDOWS}
    parts.append(_scatter(curve, x, lines, axis, mode="lines", line={"width": 2.2, "color": colour},
                          customdata=_hover(curve, band), hovertemplate="%{y:.1f} %{customdata}"))  # fmt: skip
    return parts


def _hover(curve: Curve, band: statistics.Band) -> list[str]:
    """What the median at each evaluation rests on: its interval, or the seeds."""
    texts = []
    for i, (low, high, count) in enumerate(zip(band.low, band.high, band.count, strict=True)):
        seeds = f"{count} seed{'s' if count != 1 else ''}"
        if np.isfinite(low):
            texts.append(f"[{style.number(low, 1)}, {style.number(high, 1)}], {seeds}")
        else:
            values = ", ".join(style.number(value) for value in statistics.known(curve.values[:, i]))
            texts.append(f"{seeds}: {values}" if count > 1 else seeds)
    return texts


def _outline(band: statistics.Band, inside: Any, window: int) -> list[float | None]:
    low, high = statistics.smooth(band.low, window)[inside], statistics.smooth(band.high, window)[inside]
    return _listed(np.concatenate([high, low[::-1]]))


def _scatter(curve: Curve, x: dict[str, list], y: dict[str, list], axis: str, **look: Any) -> go.Scatter:
    name = html.escape(curve.name)  # Plotly reads some HTML in names
    meta = {"curve": curve.name, "x": x, "y": y}
    return go.Scatter(x=x[axis], y=y["1"], name=name, legendgroup=name, meta=meta, **look)


def _layout(x: str, y: str, meta: dict[str, Any]) -> go.Layout:
    """Without colours of ink and grid, which follow the page's light or dark."""
    axis: dict[str, Any] = {"zeroline": False, "ticks": "outside", "automargin": True}
    return go.Layout(
        template="none", autosize=True, margin={"l": 52, "r": 18, "t": 10, "b": 44}, showlegend=False,
        hovermode="x unified", hoverlabel={"font": {"size": 12}, "namelength": -1}, meta=meta,
        font={"family": _FONT, "size": 12},
        xaxis={**axis, "title": {"text": x, "standoff": 8}, "hoverformat": ".3~f"},
        yaxis={**axis, "title": {"text": y, "standoff": 6}},
        modebar={"bgcolor": "rgba(0,0,0,0)"}, paper_bgcolor="rgba(0,0,0,0)", plot_bgcolor="rgba(0,0,0,0)",
    )  # fmt: skip


def _clear(colour: str) -> str:
    red, green, blue = (int(colour[i : i + 2], 16) for i in (1, 3, 5))
    return f"rgba({red},{green},{blue},0.16)"


def _listed(values: Any) -> list[float | None]:
    """Six digits are more than a screen shows; null where there is nothing."""
    return [float(f"{value:.6g}") if np.isfinite(value) else None for value in np.asarray(values, np.float64)]
