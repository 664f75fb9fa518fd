"""Numbers of a report → the tables of its page, as texts: what each cell says and how it looks."""

from __future__ import annotations

import dataclasses
import math
from collections import Counter
from collections.abc import Iterator, Sequence

from euda.reports.certificates import Shown
from euda.reports.claims import ENOUGH, Claim
from euda.reports.comparison import MOST_SEEDS
from euda.reports.statistics import Interval
from euda.reports.style import number
from euda.reports.summary import BestShare, Overall, Row, Summary


@dataclasses.dataclass(frozen=True)
class Cell:
    """One entry of a table."""

    text: str
    soft: str = ""
    """Smaller and paler, after the text."""
    look: str = ""
    """A class of the style sheet: text, best, warn or good."""


@dataclasses.dataclass(frozen=True)
class Grid:
    """A table."""

    header: Sequence[str]
    rows: Sequence[Sequence[Cell]]
    caption: str = ""

    def look(self, column: int) -> str:
        """Of a column's heading: that of its texts."""
        return "text" if any(row[column].look == "text" for row in self.rows) else ""


def returns(summary: Summary) -> Iterator[Grid]:
    """A table for each task."""
    for task in dict.fromkeys(row.task for row in summary.rows):
        rows = [row for row in summary.rows if row.task == task]
        best = max((row.final.value for row in rows if row.final), default=None)
        goal = "a goal" if rows[0].goal is None else number(rows[0].goal)
        header = ("method", "share", "seeds", "at step", "mean", "median, 95 % interval or the seeds",
                  "area under curve", f"steps to {goal}", "steps/s")  # fmt: skip
        yield Grid(header, [_return(row, best) for row in rows], task)


def _return(row: Row, best: float | None) -> list[Cell]:
    is_best = row.final is not None and row.final.value == best
    return [
        Cell(row.curve, look="text"),
        Cell("varies" if row.share is None else f"{100 * row.share:.4g} %" if row.share else "–"),
        Cell(f"{row.runs}/{row.planned}", look="" if row.runs == row.planned else "warn"),
        Cell(steps(row.step) if row.step is not None else "–"),
        Cell("–" if row.mean is None else number(row.mean, 1)),
        _median(row, is_best),
        _interval(row.area),
        _reached(row),
        Cell(f"{row.speed:.0f}" if row.speed else "–"),
    ]


def _median(row: Row, is_best: bool) -> Cell:
    """The median with its interval, or with the seeds where there are too few for one."""
    if row.final is None:
        return Cell("–")
    seeds = ", ".join(number(value) for value in row.returns)
    soft = _bounds(row.final) if row.final.is_known else seeds if len(row.returns) > 1 else "one seed"
    return Cell(number(row.final.value, 1), soft, "best" if is_best else "")


def _reached(row: Row) -> Cell:
    if not row.runs or row.goal is None:
        return Cell("–")
    if row.reach_steps is None:
        return Cell("not reached")
    return Cell(steps(row.reach_steps), f"{row.reached}/{row.runs}")


def claims(judged: Sequence[Claim]) -> Grid:
    """Which method is better, and how sure that is."""
    header = ("task", "comparison", "seeds", "to step", "areas, medians", "better with probability", "p", "p adjusted",
              "verdict")  # fmt: skip
    rows = [
        [
            Cell(c.task, look="text"), Cell(f"{c.first} against {c.second}", look="text"),
            Cell(f"{c.seeds[0]}, {c.seeds[1]}"), Cell(steps(c.step)),
            Cell(f"{number(c.areas[0], 1)}, {number(c.areas[1], 1)}"), _interval(c.improvement, 2),
            Cell(p_value(c.p)), Cell(p_value(c.adjusted)), verdict(c),
        ]
        for c in judged
    ]  # fmt: skip
    return Grid(header, rows)


def verdict(claim: Claim) -> Cell:
    """Who is better, or how many seeds would say."""
    if claim.is_decided:
        better, worse = (claim.first, claim.second) if claim.verdict == "confirmed" else (claim.second, claim.first)
        return Cell("decided", f"{better} is better than {worse}", "text")
    if min(claim.seeds) < ENOUGH:
        return Cell("open", "too few seeds to say how many would decide", "text")
    needed = f"about {claim.seeds_to_decide}" if claim.seeds_to_decide else f"more than {MOST_SEEDS}"
    return Cell("open", f"{needed} seeds of each would decide", "text")


def p_value(p: float) -> str:
    """Two digits of a p; a dash where so few seeds can decide nothing."""
    return "–" if math.isnan(p) else f"{p:.2f}" if p >= 0.1 else f"{p:.2g}"


def overall(rows: Sequence[Overall], reference: str) -> Grid:
    """Each method over all tasks."""
    header = ("method", "tasks", "interquartile mean", f"better than {reference}", "tasks compared")
    cells = [
        [
            Cell(o.curve, look="text"), Cell(str(o.tasks)), Cell(number(o.middle, 1) if o.tasks else "–"),
            _interval(o.improvement, 2), Cell(str(o.compared) if o.improvement else "–"),
        ]
        for o in rows
    ]  # fmt: skip
    return Grid(header, cells)


def shares(found: Sequence[BestShare]) -> Grid:
    """The best share on each task."""
    every = sorted({share for best in found for share in best.scores})
    header = ("task", "best share", "statistically indistinguishable", "to step", *(f"at {_percent(s)}" for s in every))
    tasks = Counter(best.task for best in found)
    rows = []
    for best in found:
        digits = 0 if best.scores[best.best].value >= 100 else 1  # so that five shares have room beside each other
        areas = [_interval(best.scores.get(s), digits) for s in every]
        rows.append(
            [
                Cell(best.task, look="text"),
                Cell(_percent(best.best), best.curve if tasks[best.task] > 1 else ""),
                Cell(", ".join(map(_percent, best.rivals)) or "none"),
                Cell(steps(best.step)),
                *(
                    dataclasses.replace(a, look="best") if s == best.best else a
                    for s, a in zip(every, areas, strict=True)
                ),
            ]
        )
    return Grid(header, rows)


def _percent(share: float) -> str:
    return f"{100 * share:.4g} %"


def _look(verdict: str) -> str:
    return "good" if verdict.startswith("exact") else "" if verdict == "near" else "warn"


def certificates(shown: Sequence[Shown]) -> Grid:
    """What the simulator says about each task."""
    header = ("task", "features", "cone", "symmetry", "worst relative error", "tested in × yaws", "contact pairs",
              "limits", "because")  # fmt: skip
    rows = [
        [
            Cell(c.task, look="text"), Cell(c.features), Cell(c.cone), Cell(c.verdict, look=_look(c.verdict)),
            Cell("–" if c.worst is None else f"{c.worst:.1e}"), Cell(c.tested or "–"), Cell(c.contacts or "–"),
            Cell(c.limits or "–"), Cell("; ".join(c.causes) or "–", look="text"),
        ]
        for c in shown
    ]  # fmt: skip
    return Grid(header, rows)


def _interval(interval: Interval | None, digits: int = 1) -> Cell:
    if interval is None or not interval.count:
        return Cell("–")
    return Cell(number(interval.value, digits), _bounds(interval, digits) if interval.is_known else "")


def _bounds(interval: Interval, digits: int = 1) -> str:
    return f"[{number(interval.low, digits)}, {number(interval.high, digits)}]"


def steps(count: float) -> str:
    """A number of steps with a narrow space between thousands."""
    return f"{count:,.0f}".replace(",", "\u202f")
