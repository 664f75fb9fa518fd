"""Table of evaluations → the numbers of a report: a row for each curve, comparisons, claims, the best share."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from euda.reports import claims, comparison, statistics
from euda.reports.claims import Claim
from euda.reports.results_table import Curve, Table, config_share
from euda.reports.statistics import Floats, Interval
from euda.runs.config import RunConfig

Curves = dict[tuple[str, str], Curve]
"""By task and name."""


@dataclasses.dataclass(frozen=True)
class Row:
    """One curve on one task."""

    task: str
    curve: str
    share: float | None
    """Of the batch that is changed; None where runs differ in it or choose it as they learn."""
    runs: int
    planned: int
    step: int | None
    """The last evaluation that all its runs have; returns and areas are up to there."""
    longest: int
    """The last evaluation of any run."""
    steps: int
    """That were planned."""
    returns: tuple[float, ...]
    """Of each seed at that step."""
    mean: float | None
    """Of these."""
    final: Interval | None
    """Their median."""
    area: Interval | None
    """Median of the areas under the seeds' curves."""
    goal: float | None
    """Return of `reached`; None where no run got better than untrained policies."""
    reached: int
    """Runs that reached the goal."""
    reach_steps: float | None
    """Median of their steps to it."""
    speed: float | None
    """Median over runs, environment steps per second, evaluations included."""


@dataclasses.dataclass(frozen=True)
class Overall:
    """One method over all tasks that it has."""

    curve: str
    tasks: int
    middle: float
    """Interquartile mean of the final returns."""
    improvement: Interval | None
    """Probability that it is better than the reference on a task both have, at the last step both have."""
    compared: int
    """Tasks of that comparison."""


@dataclasses.dataclass(frozen=True)
class BestShare:
    """Which share was best on a task, among runs that are otherwise the same."""

    task: str
    best: float
    curve: str
    """The method that has it."""
    rivals: list[float]
    """Others that are statistically indistinguishable from it."""
    scores: dict[float, Interval]
    step: int


@dataclasses.dataclass(frozen=True)
class Summary:
    """Everything a report says in tables."""

    rows: tuple[Row, ...]
    overall: tuple[Overall, ...]
    reference: str
    shares: tuple[BestShare, ...]
    claims: tuple[Claim, ...]

    def to_json(self) -> dict[str, Any]:
        """Plain JSON values; what is not known is null."""
        return _plain(dataclasses.asdict(self))


def summarise(table: Table, reach: float | None = None, pairs: Sequence[tuple[str, str]] | None = None) -> Summary:
    """The numbers of a report; `pairs` are the curves of its claims, by default each other one and the first."""
    curves = {(task, name): table.curve(task, name) for task in table.tasks for name in table.curves}
    curves = {key: curve for key, curve in curves.items() if curve.planned}
    rows: list[Row] = []
    for task in table.tasks:
        here = [curve for curve in curves.values() if curve.task == task]
        goal = _goal(here) if reach is None else reach
        rows += [_row(table, curve, goal) for curve in here]
    reference = table.curves[0] if table.curves else ""
    if pairs is None:
        pairs = [(name, reference) for name in table.curves[1:]]
    paired = [[curves[task, name] for name in pair if (task, name) in curves] for task in table.tasks for pair in pairs]
    judged = claims.judge((pair[0], pair[1]) for pair in paired if len(pair) == 2)
    overall = tuple(_overall(curves, name, reference, table.tasks) for name in table.curves)
    return Summary(tuple(rows), overall, reference, tuple(_best_shares(table, curves)), judged)


def _row(table: Table, curve: Curve, goal: float | None) -> Row:
    sources = table.of(curve.task, curve.name)
    shares = {config_share(source.config) for source in sources}
    last = _last(curve)
    finals = np.empty(0) if last is None else curve.values[:, last]
    area = None if last is None else statistics.area_under_curve(curve.steps, curve.values, curve.steps[last])
    reached = np.empty(0)
    if curve.seeds and goal is not None:
        reached = statistics.known(statistics.steps_to_reach(curve.steps, curve.values, goal))
    return Row(
        curve.task, curve.name, shares.pop() if len(shares) == 1 else None, len(curve.seeds), curve.planned,
        None if last is None else int(curve.steps[last]), int(max(curve.steps, default=0)),
        max(source.config.steps for source in sources), tuple(finals.tolist()),
        float(finals.mean()) if len(finals) else None,
        statistics.median_interval(finals) if len(finals) else None,
        None if area is None or not last else statistics.median_interval(area),
        goal, len(reached), float(np.median(reached)) if len(reached) else None, _speed(curve),
    )  # fmt: skip


def _goal(curves: list[Curve]) -> float | None:
    """Halfway from untrained policies to the best final median on a task; None if nothing got better."""
    begun = [curve for curve in curves if curve.seeds and curve.steps[0] == 0]
    finals = [float(np.median(curve.values[:, last])) for curve in curves if (last := _last(curve)) is not None]
    if not begun or not finals:
        return None
    untrained = float(np.median(np.concatenate([statistics.known(curve.values[:, 0]) for curve in begun])))
    return (untrained + max(finals)) / 2 if max(finals) > untrained else None


def _last(curve: Curve) -> int | None:
    return statistics.last_common(curve.values) if curve.seeds else None


def _speed(curve: Curve) -> float | None:
    """Steps per second from the first evaluation to the last, the median over runs."""
    speeds = []
    for values, hours in zip(curve.values, curve.hours, strict=True):
        known = np.flatnonzero(np.isfinite(values))
        if len(known) > 1 and hours[known[-1]] > hours[known[0]]:
            steps = curve.steps[known[-1]] - curve.steps[known[0]]
            speeds.append(steps / 3600 / (hours[known[-1]] - hours[known[0]]))
    return float(np.median(speeds)) if speeds else None


def _overall(curves: Curves, name: str, reference: str, tasks: tuple[str, ...]) -> Overall:
    here = [curves[task, name] for task in tasks if (task, name) in curves]
    finals = [curve.values[:, last] for curve in here if (last := _last(curve)) is not None]
    both = [(curves[t, name], curves[t, reference]) for t in tasks if (t, name) in curves and (t, reference) in curves]
    pairs = [pair for first, second in both for pair in _at_common_step(first, second)]
    improvement = comparison.improvement_interval(pairs) if name != reference and pairs else None
    return Overall(name, len(finals), statistics.interquartile_mean(finals), improvement, len(pairs))


def _at_common_step(first: Curve, second: Curve) -> Iterator[tuple[Floats, Floats]]:
    """Returns of two curves at the last step that all runs of both have; nothing if there is none after the start."""
    step = claims.common_step([first, second])
    if step:
        places = [int(np.searchsorted(curve.steps, step)) for curve in (first, second)]
        yield first.values[:, places[0]], second.values[:, places[1]]


def _best_shares(table: Table, curves: Curves) -> Iterator[BestShare]:
    """For each task with several shares of one augmentation: the best by area, at the last step all of them have."""
    for task in table.tasks:
        for family in _families(table, curves, task):
            for step, areas in claims.areas_at_common_step(list(family.values())):
                scores = dict(zip(family, areas, strict=True))
                best, rivals = comparison.best(scores)
                intervals = {share: statistics.median_interval(area) for share, area in scores.items()}
                yield BestShare(task, best, family[best].name, rivals, intervals, step)


def _families(table: Table, curves: Curves, task: str) -> Iterator[dict[float, Curve]]:
    """Curves with at least two shares of an augmentation that differ in nothing else; with share 0, if there is one."""
    families: dict[tuple[str, str], dict[float, Curve]] = {}
    for name in table.curves:
        kinds = {_apart_from_share(source.config) for source in table.of(task, name)}
        if len(kinds) == 1 and (task, name) in curves:
            ((rest, augmentation, share),) = kinds
            if share is not None:
                families.setdefault((rest, augmentation), {})[share] = curves[task, name]
    for (rest, _), family in families.items():
        if len(family) > 1:
            yield dict(sorted((families.get((rest, ""), {}) | family).items()))


def _apart_from_share(config: RunConfig) -> tuple[str, str, float | None]:
    """The same text for runs that differ in nothing but seed, steps and augmentation; the augmentation; its share."""
    share = config_share(config)
    rest = dataclasses.replace(config, seed=0, augmentation=type(config.augmentation)())
    return rest.identity, config.augmentation.name if share != 0 else "", share


def _plain(value: Any) -> Any:
    """JSON without NaN and with text as keys."""
    if isinstance(value, dict):
        return {str(key): _plain(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(entry) for entry in value]
    if isinstance(value, float) and not np.isfinite(value):
        return None
    return value
