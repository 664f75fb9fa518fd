"""Report → one HTML page that opens offline by double click: plotly.js, styles, data and videos are all inside."""

from __future__ import annotations

import base64
import functools
import gzip
import html
import importlib.resources
import json
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import plotly.offline

from euda.study import figures, plots
from euda.study.statistics import Interval
from euda.study.summary import Row, Summary

if TYPE_CHECKING:
    from euda.study.report import Report

_POLICY = (  # nothing is loaded from anywhere; only the server of `euda report --serve` is asked for news
    "default-src 'none'; script-src 'unsafe-inline' 'unsafe-eval'; style-src 'unsafe-inline'; img-src data: blob:;"
    " media-src data:; connect-src 'self'; font-src data:; base-uri 'none'; form-action 'none'"
)


def build(report: Report) -> str:
    """The whole page."""
    title = html.escape(report.title)
    parts = [_head(report), "<main>", *_sections(report), "</main>", _foot(report)]
    body = "\n".join(parts)
    return f"""<!doctype html>
<html lang="en" data-stamp="{html.escape(report.stamp)}">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="{_POLICY}">
<link rel="icon" href="data:,">
<title>{title}</title>
<style>{_asset("page.css")}</style>
</head>
<body>
{body}
<script type="text/plain" id="plotly">{_packed_plotly()}</script>
<script type="{plots.LATER}">{_asset("page.js")}</script>
<script>{_asset("unpack.js")}</script>
</body>
</html>
"""


@functools.cache
def _packed_plotly() -> str:
    """Plotly.js as text, packed to less than half of a page's former size; `unpack.js` runs it in the browser."""
    return base64.b64encode(gzip.compress(plotly.offline.get_plotlyjs().encode(), mtime=0)).decode()


def _sections(report: Report) -> Iterator[str]:
    yield _curves(report)
    yield _finals(report.summary)
    yield _overall(report.summary)
    yield _shares(report.summary)
    yield _choices(report)
    yield _certificates(report.certificates)
    yield _videos(report.videos)
    yield _missing(report)
    yield _runs(report)


def _head(report: Report) -> str:
    done = sum(row.state == "finished" for row in report.progress)
    seeds = {len(report.table.of(task, curve)) for task in report.table.tasks for curve in report.table.curves} - {0}
    steps = {source.planned.config.steps for source in report.table.sources}
    facts = {
        "runs complete": f"{done} of {len(report.progress)}",
        "tasks": str(len(report.table.tasks)),
        "methods": str(len(report.table.curves)),
        "seeds planned": _range(seeds),
        "steps planned": _range(steps),
    }
    listed = "".join(f"<li><b>{html.escape(value)}</b>{name}</li>" for name, value in facts.items())
    return f'<header class="top"><h1>{html.escape(report.title)}</h1><ul class="facts">{listed}</ul></header>'


def _curves(report: Report) -> str:
    palette = figures.colours(report.table.curves)
    cards = "".join(_card(report, task, palette) for task in report.table.tasks)
    return f"""<section id="curves"><h2>Learning curves</h2>
<p class="soft">Mean return of the evaluation episodes over seeds; shaded: 95 % interval of that mean (Student t). Fewer
than {figures.ENOUGH} seeds are thin lines instead; the tooltip has their interval. Where not all seeds have got so far
the mean is over fewer, as the tooltip says.</p>
{_controls(report, palette)}
<div class="grid{" one" if len(report.table.tasks) == 1 else ""}">{cards}</div></section>"""


def _controls(report: Report, palette: dict[str, str]) -> str:
    chips = "".join(
        f'<button type="button" class="chip" aria-pressed="true" data-curve="{html.escape(name)}">'
        f'<span class="dot" style="background:{colour}"></span>{html.escape(name)}</button>'
        for name, colour in palette.items()
    )
    axes = [*report.axes, *(axis for axis in ("steps", "hours") if axis not in report.axes)]
    windows = {str(w): "none" if w == 1 else f"{w} evaluations" for w in plots.WINDOWS}
    return f"""<div class="controls"><div class="chips" role="group" aria-label="methods">{chips}</div>
{_select("smooth", "smoothing", windows)}
{_select("scale", "scale", {"linear": "linear", "log x": "log x", "log y": "log return"})}
{_select("axis", "against", {axis: axis for axis in axes})}</div>"""


def _select(name: str, label: str, options: dict[str, str]) -> str:
    listed = "".join(f'<option value="{value}">{text}</option>' for value, text in options.items())
    return f'<label>{label} <select name="{name}">{listed}</select></label>'


def _card(report: Report, task: str, palette: dict[str, str]) -> str:
    rows = [row for row in report.summary.rows if row.task == task]
    rests = "".join(
        f'<li><span class="dot" style="background:{palette[row.curve]}"></span>{html.escape(_rests(row))}</li>'
        for row in rows
    )
    plot = plots.curves(report.table, task, report.axes[0]) if any(row.runs for row in rows) else _NOTHING
    return f"""<article class="card"><h3>{html.escape(task)}</h3><div class="plot">{plot}</div>
<ul class="rests">{rests}</ul></article>"""


_NOTHING = '<p class="soft">No evaluation yet.</p>'


def _rests(row: Row) -> str:
    """What a curve rests on, plainly."""
    if not row.runs:
        return f"{row.curve}: nothing yet, {_seeds(row.planned)} planned"
    seeds = _seeds(row.runs) if row.runs == row.planned else f"{row.runs} of {_seeds(row.planned)}"
    if row.step == row.longest:
        return f"{row.curve}: {seeds}, {_short(row.longest)} steps"
    return f"{row.curve}: {seeds}, all to {_short(row.step or 0)}, longest {_short(row.longest)} steps"


def _finals(summary: Summary) -> str:
    tables = []
    for task in dict.fromkeys(row.task for row in summary.rows):
        rows = [row for row in summary.rows if row.task == task]
        best = max((row.final.value for row in rows if row.final), default=None)
        goal = rows[0].goal
        header = ("method", "share", "seeds", "at step", "return, t interval", "bootstrap interval", "area under curve",
                  f"steps to {goal:.0f}", "steps/s")  # fmt: skip
        tables.append(_table(task, header, [_final(row, best) for row in rows]))
    return f"""<section id="returns"><h2>Returns</h2>
<p class="soft">Return at the last evaluation that all runs of a method have, with two 95 % intervals of its mean over
seeds: Student t, and percentile bootstrap (2000 resamples). Area under the curve: mean return up to that step. Steps to
a return: median over the runs that reached it. With two or three seeds the bootstrap's interval is too narrow: believe
the Student t interval. Steps per second include evaluations.</p>{"".join(tables)}</section>"""


def _final(row: Row, best: float | None) -> list[tuple[str, str]]:
    share = "varies" if row.share is None else f"{100 * row.share:.4g} %" if row.share else "–"
    reached = "not reached" if row.reach_steps is None else f"{_steps(row.reach_steps)} ({row.reached}/{row.runs})"
    if not row.runs or row.goal < 1:  # half of next to nothing is reached by chance
        reached = "–"
    is_best = row.final is not None and row.final.value == best
    return [
        (html.escape(row.curve), "text"), (share, ""),
        (f"{row.runs}/{row.planned}", "" if row.runs == row.planned else "warn"),
        (_steps(row.step) if row.step is not None else "–", ""), (_interval(row.final), "best" if is_best else ""),
        (_bounds(row.bootstrap), ""), (_interval(row.area), ""), (reached, ""),
        (f"{row.speed:.0f}" if row.speed else "–", ""),
    ]  # fmt: skip


def _overall(summary: Summary) -> str:
    rows = [
        [
            (html.escape(o.curve), "text"), (str(o.tasks), ""), (_interval(o.middle), ""),
            (_interval(o.improvement, 2), ""), (str(o.compared) if o.improvement else "–", ""),
        ]
        for o in summary.overall
    ]  # fmt: skip
    reference = html.escape(summary.reference)
    header = ("method", "tasks", "interquartile mean", f"better than {reference}", "tasks compared")
    return f"""<section id="overall"><h2>Over all tasks</h2>
<p class="soft">Interquartile mean of the final returns of all runs, and the probability that a run is better than one
of {reference} on the same task at the last step both have (one half: no difference), each with a 95 % interval by
bootstrap stratified over tasks. No interval where a task has one run only.</p>{_table("", header, rows)}</section>"""


def _shares(summary: Summary) -> str:
    if not summary.shares:
        return ""
    shares = sorted({share for best in summary.shares for share in best.scores})
    header = ("task", "best share", "not told from it", "to step", *(f"at {100 * s:.4g} %" for s in shares))
    tasks = Counter(best.task for best in summary.shares)
    rows = []
    for best in summary.shares:
        of = f" ({html.escape(best.curve)})" if tasks[best.task] > 1 else ""
        rivals = f"{', '.join(f'{100 * share:.4g}' for share in best.rivals)} %" if best.rivals else "none"
        digits = 0 if best.scores[best.best].value >= 100 else 1  # so that five shares have room beside each other
        cells = [(_interval(best.scores.get(s), digits), "best" if s == best.best else "") for s in shares]
        head = [
            (html.escape(best.task), "text"),
            (f"{100 * best.best:.4g} %{of}", ""),
            (rivals, ""),
            (_steps(best.step), ""),
        ]
        rows.append([*head, *cells])
    return f"""<section id="shares"><h2>Best share of turned transitions</h2>
<p class="soft">By area under the curve up to the last step that all runs of all shares have; a share is not told from
the best where their 95 % intervals overlap or there is one seed only.</p>{_table("", header, rows)}</section>"""


def _choices(report: Report) -> str:
    if not report.table.choices:
        return ""
    return f"""<section id="choices"><h2>Shares that runs chose</h2>
<p class="soft">rotate-auto: the share of each training episode (dots) and its mean over 21 episodes (line).</p>
<div class="card"><div class="plot">{plots.choices(report.table)}</div></div></section>"""


def _certificates(certificates: Sequence[dict[str, Any]]) -> str:
    if not certificates:
        return ""
    looks = {"exact": "good", "broken": "warn"}
    rows = [
        [
            (html.escape(c["task"]), "text"), (html.escape(c["features"]), ""), (html.escape(c["cone"]), ""),
            (c["verdict"], looks.get(c["verdict"], "")), (f"{c['worst']:.1e}", ""),
            (f"{c['states']} × {c['yaws']}", ""), (html.escape("; ".join(c["causes"]) or "–"), "text"),
        ]
        for c in certificates
    ]  # fmt: skip
    header = ("task", "features", "cone", "symmetry", "worst relative error", "states × yaws", "because")
    return f"""<section id="certificates"><h2>Certificates</h2>
<p class="soft">The world turned in the simulator: whether dynamics, features and reward turn along.</p>
{_table("", header, rows)}</section>"""


def _videos(videos: Sequence[tuple[str, Path]]) -> str:
    if not videos:
        return ""
    cards = "".join(
        f'<figure class="card"><video controls muted loop playsinline preload="metadata" src="{_data(path)}"></video>'
        f'<figcaption class="soft">{html.escape(name)}</figcaption></figure>'
        for name, path in videos
    )
    return f'<section id="videos"><h2>Videos</h2><div class="grid">{cards}</div></section>'


def _missing(report: Report) -> str:
    items = []
    for row in report.progress:
        if row.state != "finished":
            how = f"{row.state} at {_steps(row.step)} of {_steps(row.steps)} steps" if row.step else row.state
            items.append(f"{row.planned.name}: {how}{': ' + row.reason if row.reason else ''}")
    items += [*report.table.damaged, *report.notes]
    listed = "".join(f"<li>{html.escape(item)}</li>" for item in items)
    text = f'<ul class="plain">{listed}</ul>' if items else "<p>Nothing: every planned run is complete.</p>"
    if len(items) > 12:
        text = f"<details><summary>{len(items)} things are missing or damaged</summary>{text}</details>"
    return f'<section id="missing"><h2>What is missing</h2>{text}</section>'


def _runs(report: Report) -> str:
    parts = []
    for source, sessions in report.provenance:
        content = json.dumps({"configuration": source.planned.config.to_json(), "sessions": sessions}, indent=1)
        parts.append(
            f"<details><summary>{html.escape(source.planned.name)} "
            f'<span class="soft">{html.escape(source.planned.config.identity)}</span></summary>'
            f"<pre>{html.escape(content)}</pre></details>"
        )
    listed = "".join(parts)
    if len(parts) > 12:
        listed = f'<details><summary>{len(parts)} runs</summary><div class="inner">{listed}</div></details>'
    return f"""<section id="runs"><h2>Configuration and versions of every run</h2>
<p class="soft">A run is identified by the content of its configuration.</p>{listed}</section>"""


def _foot(report: Report) -> str:
    latest = f" · newest run begun or resumed {html.escape(report.latest)}" if report.latest else ""
    return f"<footer>euda {html.escape(report.version)}{latest}</footer>"


# -- small parts ---------------------------------------------------------------------------------------------


def _table(caption: str, header: Sequence[str], rows: Iterable[Sequence[tuple[str, str]]]) -> str:
    """A table of (HTML, class) cells."""
    rows = list(rows)
    looks = [look if look == "text" else "" for _, look in rows[0]] if rows else [""] * len(header)
    head = "".join(f'<th class="{look}">{html.escape(name)}</th>' for name, look in zip(header, looks, strict=True))
    lines = "".join(
        "<tr>"
        + "".join(f'<td class="{look}">{cell}</td>' if look else f"<td>{cell}</td>" for cell, look in row)
        + "</tr>"
        for row in rows
    )
    named = f"<caption>{html.escape(caption)}</caption>" if caption else ""
    return f'<div class="wide"><table>{named}<thead><tr>{head}</tr></thead><tbody>{lines}</tbody></table></div>'


def _interval(interval: Interval | None, digits: int = 1) -> str:
    if interval is None or not interval.count:
        return "–"
    return f'{interval.value:.{digits}f} <span class="soft">{_bounds(interval, digits)}</span>'


def _bounds(interval: Interval | None, digits: int = 1) -> str:
    if interval is None or not interval.is_known:
        return "no interval"
    return f"[{interval.low:.{digits}f}, {interval.high:.{digits}f}]"


def _steps(number: float) -> str:
    return f"{number:,.0f}".replace(",", "\u202f")  # a narrow space between thousands


def _seeds(count: int) -> str:
    return f"{count} seed{'s' if count != 1 else ''}"


def _range(numbers: set[int]) -> str:
    low, high = min(numbers, default=0), max(numbers, default=0)
    return _short(low) if low == high else f"{_short(low)} to {_short(high)}"


def _short(number: float) -> str:
    """1.2 M, 100 k, 120."""
    scale, name = (1e6, " M") if number >= 1e6 else (1e3, " k") if number >= 1e3 else (1, "")
    return f"{number / scale:.4g}{name}"


def _data(path: Path) -> str:
    return f"data:video/mp4;base64,{base64.b64encode(path.read_bytes()).decode()}"


def _asset(name: str) -> str:
    return importlib.resources.files("euda.study").joinpath("assets", name).read_text("utf-8")
