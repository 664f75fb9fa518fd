"""Report → one HTML page that opens offline by double click: data, styles and videos are inside, plotly.js too.

This module says in texts and numbers what the page shows; the template makes HTML of it and escapes every value.
Nothing runs in the page but its own script and plotly.js, which its policy names by their hashes.
"""

from __future__ import annotations

import base64
import dataclasses
import functools
import gzip
import hashlib
import importlib.resources
import json
from collections.abc import Iterator
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any

import jinja2
import plotly.offline
from markupsafe import Markup

from euda.reports import page_tables, plotly_figures, statistics, style
from euda.reports.comparison import LEVEL
from euda.reports.summary import Row

if TYPE_CHECKING:
    from euda.reports.report import Report


@dataclasses.dataclass(frozen=True)
class Library:
    """Where the page has plotly.js from: a file at an address, or its own packed copy."""

    address: str = ""
    packed: str = ""


def build(report: Report, library: str = "") -> str:
    """The whole page; `library` is the address of a file with plotly.js, by default it is inside."""
    numbers, table = report.summary, report.table
    script = Markup(_asset("page.js"))
    palette = style.colours(table.curves)
    content = {
        "title": report.title,
        "facts": _facts(report),
        "caption": _caption(report),
        "palette": list(palette.items()),
        "selects": _selects(report),
        "cards": [_card(report, task, palette) for task in table.tasks],
        "enough": statistics.ENOUGH,
        "has_default_goal": report.has_default_goal,
        "level": LEVEL,
        "reference": numbers.reference,
        "returns": list(page_tables.returns(numbers)),
        "claims": page_tables.claims(numbers.claims),
        "overall": page_tables.overall(numbers.overall, numbers.reference),
        "shares": page_tables.shares(numbers.shares),
        "choices": {"name": "choices", "content": plotly_figures.choices(table)} if table.choices else None,
        "certificates": page_tables.certificates(report.certificates),
        "videos": [(name, _data(path)) for name, path in report.videos],
        "scenes": report.scenes,
        "missing": list(_missing(report)),
        "runs": list(_runs(report)),
        "version": report.version,
        "latest": report.latest,
        "stamp": report.stamp,
    }
    frame = {
        "policy": _policy(script, library, bool(report.stamp), bool(report.scenes)),
        "style": Markup(_asset("page.css")),
        "script": script,
        "library": Library(library) if library else Library(packed=_packed_plotly()),
        "config": plotly_figures.CONFIG,
    }
    return _environment().get_template("report.html").render(content | frame)


@functools.cache
def _environment() -> jinja2.Environment:
    """Templates that escape every value and refuse one that is not there."""
    return jinja2.Environment(
        loader=jinja2.PackageLoader("euda.reports"), autoescape=True, undefined=jinja2.StrictUndefined,
        trim_blocks=True, lstrip_blocks=True,
    )  # fmt: skip


def plotly_js() -> str:
    """The plotting library."""
    return plotly.offline.get_plotlyjs()


@functools.cache
def _packed_plotly() -> str:
    """Plotly.js as text, packed to less than half; `page.js` unpacks it in the browser."""
    return base64.b64encode(gzip.compress(plotly_js().encode(), mtime=0)).decode()


_SELF, _NONE = "'self'", "'none'"


def _policy(script: str, library: str, is_served: bool, has_scenes: bool) -> str:
    """What the page may do: run these two scripts, style itself, show what is inside; load nothing.

    A file beside the page is allowed by its origin, which a browser calls `self` or `file:`, because it checks no hash
    of files; so are scenes, which may do nothing in their frames but run. Plotly sets styles as it draws.
    """
    beside = f"{_SELF} file:"
    scripts = [_hash(script), beside if library else _plotly_hash()]
    return (
        f"default-src {_NONE}; script-src {' '.join(scripts)}; style-src 'unsafe-inline'; img-src data: blob:;"
        f" media-src data:; frame-src {beside if has_scenes else _NONE};"
        f" connect-src {_SELF if is_served else _NONE}; base-uri {_NONE}; form-action {_NONE}"
    )


@functools.cache
def _plotly_hash() -> str:
    return _hash(plotly_js())


def _hash(script: str) -> str:
    return f"'sha256-{base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()}'"


# -- curves --------------------------------------------------------------------------------------------------


def _facts(report: Report) -> list[tuple[str, str]]:
    done = sum(row.state == "finished" for row in report.progress)
    seeds = {len(report.table.of(task, curve)) for task in report.table.tasks for curve in report.table.curves} - {0}
    return [
        ("runs complete", f"{done} of {len(report.progress)}"),
        ("tasks" if len(report.table.tasks) != 1 else "task", str(len(report.table.tasks))),
        ("methods" if len(report.table.curves) != 1 else "method", str(len(report.table.curves))),
        ("seeds planned", _range(seeds)),
        ("steps planned", _range({source.config.steps for source in report.table.sources})),
    ]


def _caption(report: Report) -> str:
    parts = style.caption(report.table, "where not all seeds have got so far it is over fewer, as the tooltip says")
    text = "; ".join(parts)
    return f"{text[:1].upper()}{text[1:]}." if text else ""


def _selects(report: Report) -> list[tuple[str, str, list[tuple[str, str]]]]:
    """Name, label and options of each control."""
    axes = [*report.axes, *(axis for axis in ("steps", "hours") if axis not in report.axes)]
    windows = [(str(w), "none" if w == 1 else f"{w} evaluations") for w in plotly_figures.WINDOWS]
    scales = [("linear", "linear"), ("log x", "log x")]
    if not style.has_negative(report.table):
        scales.append(("log y", "log return"))
    return [("smooth", "smoothing", windows), ("scale", "scale", scales), ("axis", "against", [(a, a) for a in axes])]


def _card(report: Report, task: str, palette: dict[str, str]) -> dict[str, Any]:
    """A plot, and what each of its curves rests on."""
    rows = [row for row in report.summary.rows if row.task == task]
    figure = None
    if any(row.runs for row in rows):
        name = str(report.table.tasks.index(task))
        figure = {"name": name, "content": plotly_figures.curves(report.table, task, report.axes[0])}
    return {"task": task, "figure": figure, "rests": [(palette[row.curve], _rests(row)) for row in rows]}


def _rests(row: Row) -> str:
    """What a curve rests on, plainly."""
    if not row.runs:
        return f"{row.curve}: nothing yet, {_seeds(row.planned)} planned"
    seeds = _seeds(row.runs) if row.runs == row.planned else f"{row.runs} of {_seeds(row.planned)}"
    if row.step == row.longest:
        return f"{row.curve}: {seeds}, {_short(row.longest)} steps"
    return f"{row.curve}: {seeds}, all to {_short(row.step or 0)}, longest {_short(row.longest)} steps"


# -- the rest ------------------------------------------------------------------------------------------------


def _missing(report: Report) -> Iterator[str]:
    for source, row in zip(report.table.sources, report.progress, strict=True):
        if row.state != "finished":
            how = (
                f"{row.state} at {page_tables.steps(row.step)} of {page_tables.steps(row.steps)} steps"
                if row.step
                else row.state
            )
            yield f"{source.title}: {how}{': ' + row.reason if row.reason else ''}"
    yield from report.table.damaged
    yield from report.notes


def _runs(report: Report) -> Iterator[dict[str, str]]:
    for source, sessions in report.provenance:
        configuration = source.config.to_json()
        if (robot := configuration.get("robot")) and robot.get("path"):
            robot["path"] = PurePath(robot["path"]).name  # a page is passed on: it names no folder of its author
        content = json.dumps({"configuration": configuration, "sessions": sessions}, indent=1)
        yield {"title": source.title, "identity": source.config.identity, "content": content}


def _seeds(count: int) -> str:
    return f"{count} seed{'s' if count != 1 else ''}"


def _range(numbers: set[int]) -> str:
    low, high = min(numbers, default=0), max(numbers, default=0)
    return _short(low) if low == high else f"{_short(low)} to {_short(high)}"


def _short(steps: float) -> str:
    """1.2 M, 100 k, 120."""
    scale, name = (1e6, " M") if steps >= 1e6 else (1e3, " k") if steps >= 1e3 else (1, "")
    return f"{steps / scale:.4g}{name}"


def _data(path: Path) -> str:
    return f"data:video/mp4;base64,{base64.b64encode(path.read_bytes()).decode()}"


def _asset(name: str) -> str:
    return importlib.resources.files("euda.reports").joinpath("templates", name).read_text("utf-8")
