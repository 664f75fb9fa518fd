"""Rebuilds every figure, page and table of `results/` from the raw data beside it: `make results`.

Reads `results/<study>/*.toml` and `results/<study>/runs`, writes the study's report next to them and the table of
numbers into `results/README.md`, between its two markers, and a short one into the repository's README. Single runs
that belong to no study have a table of their evaluations in the README of their folder.
"""

from __future__ import annotations

import dataclasses
import json
import runpy
import statistics
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import polars as pl
from matplotlib.figure import Figure

from euda.replay.settings import YAW
from euda.reports import matplotlib_figures, page, page_tables, report
from euda.reports.claims import Claim
from euda.reports.statistics import Interval
from euda.reports.style import number, thousands
from euda.reports.summary import Row
from euda.runs import bases, run_folder
from euda.runs.config import RunConfig

RESULTS = Path(__file__).resolve().parent
sys.path[:0] = [str(RESULTS), str(RESULTS.parent / "benchmarks")]
import goals  # noqa: E402 - beside this file
import headlines  # noqa: E402
import published  # noqa: E402
import time_to_return  # noqa: E402 - a benchmark
import turned  # noqa: E402

BEGIN, END = "<!-- numbers: written by results/build.py -->\n", "<!-- end of numbers -->"
LIBRARY = RESULTS / "plotly.min.js"
"""The plotting library that the pages of all studies share."""
_COLUMNS = ("task", "method", "seeds", "at step", "mean return", "median", "of each seed", "area under curve, median",
            "steps to reach")  # fmt: skip
_CLAIMS = ("claim", "seeds", "areas, medians", "better with probability", "p, exact", "p, all claims together",
           "verdict")  # fmt: skip
SINGLE_RUNS = ("initialisation", "robot")
"""Folders of runs that belong to no study."""
POLICIES = "policies"
"""Policies that come with the repository."""
SCREENING = "screening"
"""Short runs that chose a setting."""


def studies() -> list[Path]:
    """The TOML of every study that has results."""
    return sorted(path for path in RESULTS.glob("*/*.toml") if (path.parent / "runs").is_dir())


def gather(study: Path, with_certificates: bool = True) -> report.Report:
    """What there is of a study."""
    subject = report.find(study, study.parent / "runs")
    return report.gather(subject, lambda sentence: print(f"  {sentence}"), with_certificates)


def tables(reports: dict[str, report.Report]) -> str:
    """The goals, other programs beside ours, and a section of Markdown for each study."""
    goal = f"### What the bases should reach, and what they reached\n\n{goals.table(reports.values())}\n"
    return goal + _others() + "\n".join(line for name, found in reports.items() for line in _section(name, found))


def _others() -> str:
    """Core-minutes and steps of other programs beside ours."""
    runs = time_to_return.runs()
    limits = ", ".join(f"{minutes:g}" for minutes in sorted({run["minutes"] for run in runs}))
    said = (
        "`benchmarks/time_to_return.py`: one core, everything included but the judging, each run ended after "
        f"{limits} core-minutes. SBX's agents have SBX's own defaults (layers of 256 units, CrossQ's critics of 1024; "
        "ours have 128) and dm_control's own observations. [Raw data](benchmarks/time-to-return.jsonl)"
    )
    return f"### Beside what a user would pick instead\n\n{said}\n\n{time_to_return.table(runs)}\n\n"


def _section(name: str, found: report.Report) -> Iterator[str]:
    yield f"### {found.title}\n"
    yield f"[Report]({name}/report.html) · [curves]({name}/curves-steps.png) · [raw data]({name}/runs)\n"
    yield from _markdown(_COLUMNS, [_row(row) for row in found.summary.rows])
    if claims := [claim for claim in found.summary.claims if min(claim.seeds) > 1]:
        yield from _markdown(_CLAIMS, [_claim(claim) for claim in claims])
    (study,) = (RESULTS / name).glob("*.toml")
    yield from turned.links(study)
    yield from turned.table(study)


def _markdown(header: tuple[str, ...], rows: list[tuple[str, ...]]) -> Iterator[str]:
    yield f"| {' | '.join(header)} |"
    yield "|---" * len(header) + "|"
    yield from (f"| {' | '.join(row)} |" for row in rows)
    yield ""


def _row(row: Row) -> tuple[str, ...]:
    seeds = f"{row.runs} of {row.planned}"
    if row.mean is None or row.step is None:
        return (row.task, row.curve, seeds, "–", "not run", "–", "–", "–", "–")
    returns = ", ".join(number(value) for value in row.returns)
    return (row.task, row.curve, seeds, str(row.step), number(row.mean), _interval(row.final), returns,
            _interval(row.area), _reached(row))  # fmt: skip


def _reached(row: Row) -> str:
    if row.goal is None:
        return "–"
    text = f"{row.reached} of {row.runs} reached {number(row.goal)}"
    return text if row.reach_steps is None else f"{text}, after {row.reach_steps:.0f} (median)"


def _claim(claim: Claim) -> tuple[str, ...]:
    verdict = page_tables.verdict(claim)
    areas = ", ".join(number(area) for area in claim.areas)
    return (f"{claim.task}: {claim.first} better than {claim.second}", f"{claim.seeds[0]}, {claim.seeds[1]}", areas,
            _interval(claim.improvement, 2), page_tables.p_value(claim.p), page_tables.p_value(claim.adjusted),
            f"{verdict.text}: {verdict.soft}")  # fmt: skip


def _interval(found: Interval | None, digits: int = 0) -> str:
    if found is None:
        return "–"
    bounds = f" ({number(found.low, digits)} to {number(found.high, digits)})" if found.is_known else ""
    return number(found.value, digits) + bounds


def headline(found: report.Report) -> Figure | None:
    """The curves with the most seeds alone; None where all have as many."""
    runs = found.table.frame.select("curve", "identity").unique()
    counts = Counter(runs["curve"].to_list())
    names = [name for name, count in counts.items() if count == max(counts.values())]
    if len(names) == len(counts):
        return None
    sources = tuple(source for source in found.table.sources if source.curve in names)
    frame = found.table.frame.filter(pl.col("curve").is_in(names))
    return matplotlib_figures.learning_curves(dataclasses.replace(found.table, frame=frame, sources=sources))


def evaluations(folder: Path) -> str:
    """The mean return of every run in a folder at the evaluations that most of them have, as a table of Markdown."""
    runs = {path.name: run_folder.load(path) for path in run_folder.find(folder)}
    returns = {
        name: {event["step"]: event["return_mean"] for event in kept.events() if event["event"] == "eval"}
        for name, kept in runs.items()
    }
    counts = Counter(step for found in returns.values() for step in found)
    steps = sorted(step for step, count in counts.items() if count * 2 >= len(returns))
    lines = [
        "| run | " + " | ".join(thousands(step) for step in steps) + " |",
        "|---" * (len(steps) + 1) + "|",
    ]
    for name, found in returns.items():
        cells = (f"{found[step]:.0f}" if step in found else "–" for step in steps)
        lines.append(f"| `{name}` | {' | '.join(cells)} |")
    return "\n".join([*lines, ""])


def screened() -> str:
    """A line for each variant of the base that was tried: its area and its last return with every seed."""
    found: dict[tuple[str, str, str], list[dict[str, Any]]] = {}
    for run in json.loads((RESULTS / SCREENING / "returns.json").read_text())["runs"]:
        found.setdefault((run["task"], run["method"], run["variant"]), []).append(run)
    rows = [
        (*names, ", ".join(str(run["seed"]) for run in runs), thousands(runs[0]["steps"][-1]),
         ", ".join(f"{statistics.fmean(run['returns'][1:]):.0f}" for run in runs),
         ", ".join(f"{run['returns'][-1]:.0f}" for run in runs))
        for names, runs in found.items()
    ]  # fmt: skip
    return "\n".join(_markdown(("task", "method", "variant", "seeds", "steps", "area", "last return"), sorted(rows)))


def command(config: RunConfig) -> list[str]:
    """The words that train such a run again."""
    share = config.augmentation.share if config.augmentation.row.make is not None else None
    flags = {"base": config.base, "method": config.method, "share": share, "group": config.group,
             "seed": config.seed, "steps": config.steps}  # fmt: skip
    usual = {"share": None, "group": YAW}
    words = [[f"--{name}", str(value)] for name, value in flags.items() if name not in usual or value != usual[name]]
    return ["euda", "train", config.task, *(word for pair in words for word in pair), *_unlike_base(config)]


def _unlike_base(config: RunConfig) -> Iterator[str]:
    """The flags of settings that are numbers or names and not the base's own."""
    base = bases.find(config.base)
    groups = {config.agent: config.learning, config.network: config.architecture, "inputs": config.inputs,
              "replay": config.replay}  # fmt: skip
    for group, part in groups.items():
        for name, value in dataclasses.asdict(part).items():
            if value != getattr(base.of(type(part)), name):
                yield from (f"--{group}.{name.replace('_', '-')}", str(value))


def kept_policies() -> str:
    """A line for each trained policy: its return over a hundred episodes, and the command that trains it."""
    rows = []
    for folder in sorted(path for path in (RESULTS / POLICIES).iterdir() if path.is_dir()):
        config, said = run_folder.load(folder).config, json.loads((folder / "return.json").read_text())
        returns = (number(said[name]) for name in ("mean", "lowest", "highest"))
        rows.append((config.task, *returns, f"`{' '.join(command(config))}`"))
    return "\n".join(_markdown(("task", "mean return", "lowest", "highest", "trained by"), rows))


def put(text: str, page: str) -> str:
    """The page with the tables between its markers."""
    before, _, rest = page.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}\n{text}\n{END}{after}"


def write(path: Path, content: bytes) -> None:
    """Write a file if there is something new to write."""
    if not path.is_file() or path.read_bytes() != content:
        path.write_bytes(content)


def main() -> None:
    reports = {}
    write(LIBRARY, page.plotly_js().encode())
    for study in studies():
        print(study.parent.name)
        reports[study.parent.name] = found = gather(study)
        report.write(found, study.parent, LIBRARY)
        turned.draw(study)
        if (figure := headline(found)) is not None:
            write(study.parent / "curves-most-seeds.png", matplotlib_figures.render(figure, "png"))
    beside = published.figure(reports.values())
    write(RESULTS / "beside-published.png", matplotlib_figures.render(beside, "png"))
    pages = {RESULTS: tables(reports), RESULTS.parent: headlines.table(reports.values())}
    pages |= {RESULTS / name: evaluations(RESULTS / name) for name in SINGLE_RUNS}
    pages |= {RESULTS / SCREENING: screened(), RESULTS / POLICIES: kept_policies()}
    for folder, text in pages.items():
        readme = folder / "README.md"
        write(readme, put(text, readme.read_text("utf-8")).encode())
    runpy.run_path(str(RESULTS / "segnn" / "draw.py"), run_name="__main__")
    print(f"rebuilt {len(reports)} studies")
    sys.exit(0 if reports else 1)


if __name__ == "__main__":
    main()
