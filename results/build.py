"""Rebuilds every figure, page and table of `results/` from the raw data beside it: `make results`.

Reads `results/<study>/*.toml` and `results/<study>/runs`, writes the study's report next to them and the table of
numbers into `results/README.md`, between its two markers. Single runs that belong to no study have a table of their
evaluations in the README of their folder.
"""

from __future__ import annotations

import dataclasses
import itertools
import runpy
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import polars as pl
from matplotlib.figure import Figure
from scipy import stats

from euda.study import figures, report, run, statistics
from euda.study.statistics import Interval
from euda.study.summary import Row
from euda.study.table import Curve

RESULTS = Path(__file__).resolve().parent
BEGIN, END = "<!-- numbers: written by results/build.py -->\n", "<!-- end of numbers -->"
_COLUMNS = ("task", "method", "seeds", "at step", "return, 95 % interval", "of each seed", "area under curve",
            "steps to reach")  # fmt: skip
SINGLE_RUNS = ("initialisation", "robot")
"""Folders of runs that belong to no study."""


def studies() -> list[Path]:
    """The TOML of every study that has results."""
    return sorted(path for path in RESULTS.glob("*/*.toml") if (path.parent / "runs").is_dir())


def gather(study: Path, with_certificates: bool = True) -> report.Report:
    """What there is of a study."""
    subject = report.find(study, study.parent / "runs")
    return report.gather(subject, lambda sentence: print(f"  {sentence}"), with_certificates)


def tables(reports: dict[str, report.Report]) -> str:
    """A section of Markdown for each study."""
    return "\n".join(line for name, found in reports.items() for line in _table(name, found))


def _table(name: str, found: report.Report) -> Iterator[str]:
    yield f"### {found.title}\n"
    yield f"[Report]({name}/report.html) · [curves]({name}/curves-steps.png) · [raw data]({name}/runs)\n"
    yield f"| {' | '.join(_COLUMNS)} |"
    yield "|---" * len(_COLUMNS) + "|"
    yield from (_row(row, found.table.curve(row.task, row.curve)) for row in found.summary.rows)
    yield ""
    yield from _comparisons(found)


def _comparisons(found: report.Report) -> Iterator[str]:
    """Every two methods with at least four seeds, by the area under the curves of their runs."""
    for task in found.table.tasks:
        curves = [found.table.curve(task, name) for name in found.table.curves]
        areas = {c.name: statistics.area_under_curve(c.steps, c.values) for c in curves if len(c.seeds) >= 4}
        if len(areas) < 2:
            continue
        yield f"| {task}: area under curve | better with probability, 95 % interval | p (Mann and Whitney, exact) |"
        yield "|---|---|---|"
        for (first, a), (second, b) in itertools.combinations(reversed(areas.items()), 2):
            better = statistics.improvement_interval([(a, b)], np.random.default_rng(0))
            p = stats.mannwhitneyu(a, b, method="exact").pvalue
            interval = f"{better.value:.2f} ({better.low:.2f} to {better.high:.2f})"
            yield f"| {first} against {second} | {interval} | {p:.2f} |"
        yield ""


def _row(row: Row, curve: Curve) -> str:
    seeds = f"{row.runs} of {row.planned}"
    if row.final is None or row.step is None:
        return f"| {row.task} | {row.curve} | {seeds} | – | not run | – | – | – |"
    reach = f"{row.reached} of {row.runs} reached {row.goal:.0f}"
    if row.reach_steps is not None:
        reach += f", after {row.reach_steps:.0f} (median)"
    returns = ", ".join(f"{value:.0f}" for value in curve.values[:, list(curve.steps).index(row.step)])
    cells = (row.task, row.curve, seeds, str(row.step), _interval(row.final), returns, _interval(row.area), reach)
    return f"| {' | '.join(cells)} |"


def _interval(found: Interval | None) -> str:
    if found is None:
        return "–"
    return f"{found.value:.0f}" + (f" ({found.low:.0f} to {found.high:.0f})" if found.is_known else " (one seed)")


def headline(found: report.Report) -> Figure | None:
    """The curves with the most seeds alone; None where all have as many."""
    counts = Counter(source.planned.curve for source in found.table.sources)
    names = [name for name, count in counts.items() if count == max(counts.values())]
    if len(names) == len(counts):
        return None
    sources = tuple(source for source in found.table.sources if source.planned.curve in names)
    frame = found.table.frame.filter(pl.col("curve").is_in(names))
    return figures.learning_curves(dataclasses.replace(found.table, frame=frame, sources=sources))


def evaluations(folder: Path) -> str:
    """The mean return of every run in a folder at the evaluations that most of them have, as a table of Markdown."""
    runs = {path.name: run.load(path) for path in run.find(folder)}
    returns = {
        name: {event["step"]: event["return_mean"] for event in kept.events() if event["event"] == "eval"}
        for name, kept in runs.items()
    }
    counts = Counter(step for found in returns.values() for step in found)
    steps = sorted(step for step, count in counts.items() if count * 2 >= len(returns))
    lines = [
        "| run | " + " | ".join(f"{step:,}".replace(",", " ") for step in steps) + " |",
        "|---" * (len(steps) + 1) + "|",
    ]
    for name, found in returns.items():
        cells = (f"{found[step]:.0f}" if step in found else "–" for step in steps)
        lines.append(f"| `{name}` | {' | '.join(cells)} |")
    return "\n".join([*lines, ""])


def put(text: str, page: str) -> str:
    """The page with the tables between its markers."""
    before, _, rest = page.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}\n{text}\n{END}{after}"


def main() -> None:
    reports = {}
    for study in studies():
        print(study.parent.name)
        reports[study.parent.name] = found = gather(study)
        report.write(found, study.parent)
        if (figure := headline(found)) is not None:
            (study.parent / "curves-most-seeds.png").write_bytes(figures.render(figure, "png"))
    pages = {RESULTS: tables(reports)} | {RESULTS / name: evaluations(RESULTS / name) for name in SINGLE_RUNS}
    for folder, text in pages.items():
        readme = folder / "README.md"
        readme.write_text(put(text, readme.read_text("utf-8")), "utf-8")
    runpy.run_path(str(RESULTS / "segnn" / "draw.py"), run_name="__main__")
    print(f"rebuilt {len(reports)} studies")
    sys.exit(0 if reports else 1)


if __name__ == "__main__":
    main()
