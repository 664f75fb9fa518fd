"""Table of evaluations → the numbers of a report: a row for each curve, comparisons over tasks, the best share."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import Any

import numpy as np

from euda.config import AugmentationConfig
from euda.study import statistics
from euda.study.settings import RunConfig
from euda.study.statistics import Interval
from euda.study.table import Curve, Table, config_share

SEED = 0  # of every bootstrap, so that a report made twice is the same


@dataclasses.dataclass(frozen=True)
class Row:
    """One method on one task."""

    task: str
    curve: str
    share: float | None
    """Of the batch that is changed; None where runs differ in it or choose it as they learn."""
    runs: int
    planned: int
    step: int | None
    """The last evaluation that all its runs have; final return and area are up to there."""
    longest: int
    """The last evaluation of any run."""
    steps: int
    """That were planned."""
    final: Interval | None
    bootstrap: Interval | None
    area: Interval | None
    goal: float
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
    middle: Interval
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
    """Others that cannot be told from it."""
    scores: dict[float, Interval]
    step: int


@dataclasses.dataclass(frozen=True)
class Summary:
    """Everything a report says in tables."""

    rows: tuple[Row, ...]
    overall: tuple[Overall, ...]
    reference: str
    shares: tuple[BestShare, ...]

    def to_json(self) -> dict[str, Any]:
        """Plain JSON values; what is not known is null."""
        return _plain(dataclasses.asdict(self))


def summarise(table: Table, reach: float | None = None) -> Summary:
    """The numbers of a report."""
    curves = {(task, name): table.curve(task, name) for task in table.tasks for name in table.curves}
    curves = {key: curve for key, curve in curves.items() if curve.planned}
    rows: list[Row] = []
    for task in table.tasks:
        here = [curve for curve in curves.values() if curve.task == task]
        goal = _goal(here) if reach is None else reach
        rows += [_row(table, curve, goal) for curve in here]
    reference = table.curves[0] if table.curves else ""
    overall = tuple(_overall(curves, name, reference, table.tasks) for name in table.curves)
    return Summary(tuple(rows), overall, reference, tuple(_best_shares(table, curves)))


def _row(table: Table, curve: Curve, goal: float) -> Row:
    sources = table.of(curve.task, curve.name)
    shares = {config_share(source.planned.config) for source in sources}
    last = statistics.last_common(curve.values) if curve.seeds else None
    final = None if last is None else curve.values[:, last]
    area = None if last is None else statistics.area_under_curve(curve.steps, curve.values, curve.steps[last])
    reached = statistics.steps_to_reach(curve.steps, curve.values, goal) if curve.seeds else np.empty(0)
    reached = reached[np.isfinite(reached)]
    return Row(
        curve.task, curve.name, shares.pop() if len(shares) == 1 else None, len(curve.seeds), curve.planned,
        None if last is None else int(curve.steps[last]), int(max(curve.steps, default=0)),
        max(source.planned.config.steps for source in sources),
        None if final is None else statistics.student_interval(final),
        None if final is None else statistics.bootstrap_interval(final, np.random.default_rng(SEED)),
        None if area is None or not last else statistics.student_interval(area),
        goal, len(reached), float(np.median(reached)) if len(reached) else None, _speed(curve),
    )  # fmt: skip


def _goal(curves: list[Curve]) -> float:
    """Half of the best final mean on a task."""
    finals = [curve.values[:, last].mean() for curve in curves if (last := _last(curve)) is not None]
    return float(max(finals, default=0.0)) / 2


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


def _overall(curves: dict[tuple[str, str], Curve], name: str, reference: str, tasks: tuple[str, ...]) -> Overall:
    here = [curves[task, name] for task in tasks if (task, name) in curves]
    finals = [curve.values[:, last] for curve in here if (last := _last(curve)) is not None]
    middle = statistics.interquartile_interval(finals, np.random.default_rng(SEED))
    pairs = [
        pair
        for task in tasks
        if (task, name) in curves and (task, reference) in curves
        for pair in _at_common_step(curves[task, name], curves[task, reference])
    ]
    improvement = None
    if name != reference and pairs:
        improvement = statistics.improvement_interval(pairs, np.random.default_rng(SEED))
    return Overall(name, len(finals), middle, improvement, len(pairs))


def _at_common_step(first: Curve, second: Curve) -> Iterator[tuple[Any, Any]]:
    """Returns of two curves at the last step that all runs of both have; nothing if there is none after the start."""
    steps = sorted(set(_whole_steps(first)) & set(_whole_steps(second)))
    if steps and steps[-1] > 0:
        places = [int(np.searchsorted(curve.steps, steps[-1])) for curve in (first, second)]
        yield first.values[:, places[0]], second.values[:, places[1]]


def _whole_steps(curve: Curve) -> list[int]:
    return curve.steps[np.isfinite(curve.values).all(axis=0)].tolist() if curve.seeds else []


def _best_shares(table: Table, curves: dict[tuple[str, str], Curve]) -> Iterator[BestShare]:
    """For each task with several shares of rotated limbs: the best by area, at the last step all of them have."""
    for task in table.tasks:
        for family in _families(table, curves, task):
            steps = [set(_whole_steps(curve)) for curve in family.values()]
            common = sorted(set.intersection(*steps))
            if len(family) < 2 or len(common) < 2:
                continue
            areas = {s: statistics.area_under_curve(c.steps, c.values, common[-1]) for s, c in family.items()}
            best, rivals = statistics.best_share(areas)
            scores = {share: statistics.student_interval(area) for share, area in areas.items()}
            yield BestShare(task, best, family[best].name, rivals, scores, int(common[-1]))


def _families(table: Table, curves: dict[tuple[str, str], Curve], task: str) -> list[dict[float, Curve]]:
    """The curves of DDPG on limbs by their share, in groups that differ in nothing else."""
    families: dict[str, dict[float, Curve]] = {}
    for name in table.curves:
        configs = [source.planned.config for source in table.of(task, name)]
        kinds = {(config_share(config), _apart_from_share(config)) for config in configs}
        if len(kinds) == 1 and {config.method for config in configs} <= {"limb", "rotate"} and (task, name) in curves:
            ((share, rest),) = kinds
            families.setdefault(rest, {})[share or 0.0] = curves[task, name]
    return list(families.values())


def _apart_from_share(config: RunConfig) -> str:
    """The same text for runs that differ in nothing but seed, steps and share."""
    return dataclasses.replace(config, seed=0, augmentation=AugmentationConfig()).identity


def _plain(value: Any) -> Any:
    """JSON without NaN and with text as keys."""
    if isinstance(value, dict):
        return {str(key): _plain(entry) for key, entry in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(entry) for entry in value]
    if isinstance(value, float) and not np.isfinite(value):
        return None
    return value
