"""(runs × evaluations) → numbers of one method: medians with intervals, areas, steps to a return. Pure functions.

Values are returns in an array [runs, evaluations]; NaN where a run has no evaluation (it is shorter, or missing).
Nothing is filled in: a statistic at an evaluation uses the runs that have it, and says how many.

The interval is that of the median, from order statistics: it holds the median with at least 95 % whatever the
distribution of returns, and needs six runs. Student t and bootstrap intervals of the mean do not hold what they say for
few seeds of which some fail (`benchmarks/coverage.py`), so there are none.
"""

from __future__ import annotations

import dataclasses
import functools
import warnings
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt
from scipy import stats

from euda.errors import EudaError

Floats = npt.NDArray[np.float64]
CONFIDENCE = 0.95


@dataclasses.dataclass(frozen=True)
class Interval:
    """An estimate with its interval of at least 95 %; NaN bounds where there are too few runs for one."""

    value: float
    low: float
    high: float
    count: int
    """Runs it rests on."""

    @property
    def is_known(self) -> bool:
        """Whether there is an interval at all."""
        return bool(np.isfinite(self.low) and np.isfinite(self.high))


@dataclasses.dataclass(frozen=True)
class Band:
    """Median and its interval at each evaluation."""

    median: Floats
    low: Floats
    high: Floats
    count: npt.NDArray[np.int64]
    """Runs that have this evaluation."""


# -- over seeds ----------------------------------------------------------------------------------------------


@functools.cache
def cut(runs: int, confidence: float = CONFIDENCE) -> int | None:
    """How many of the lowest and of the highest runs an interval of the median leaves out; None: there is none.

    The median is below the k + 1 lowest runs only if at most k runs are below it, which for any distribution is no
    more likely than at most k heads in as many throws of a coin.
    """
    unlikely = stats.binom.cdf(np.arange(runs), runs, 0.5) <= (1 - confidence) / 2
    return int(unlikely.sum()) - 1 if unlikely.any() else None


ENOUGH = next(runs for runs in range(1, 100) if cut(runs) is not None)
"""Runs from which on the median has an interval: six."""


def median_band(values: Floats, confidence: float = CONFIDENCE) -> Band:
    """Median over runs at each evaluation, and its interval where there are enough runs."""
    values = _matrix(values)
    count = np.isfinite(values).sum(axis=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # evaluations that no run has: NaN is what we want to say
        median = np.nanmedian(values, axis=0)
    ordered = np.sort(values, axis=0)  # NaN last
    low, high = np.full((2, values.shape[1]), np.nan)
    for runs in np.unique(count):
        if (left_out := cut(int(runs), confidence)) is not None:
            here = count == runs
            low[here], high[here] = ordered[left_out, here], ordered[runs - 1 - left_out, here]
    return Band(median, low, high, count)


def median_interval(scores: npt.ArrayLike, confidence: float = CONFIDENCE) -> Interval:
    """Median of one score per run, and its interval."""
    band = median_band(np.asarray(scores, np.float64)[:, None], confidence)
    return Interval(float(band.median[0]), float(band.low[0]), float(band.high[0]), int(band.count[0]))


def interquartile_mean(scores: Sequence[npt.ArrayLike]) -> float:
    """Mean of the middle half of all scores; one array of scores (one per run) for each task."""
    every = np.concatenate([known(task) for task in scores]) if scores else np.empty(0)
    return float(stats.trim_mean(every, 0.25)) if len(every) else np.nan


# -- one number for a curve ----------------------------------------------------------------------------------


def area_under_curve(steps: npt.ArrayLike, values: Floats, until: float | None = None) -> Floats:
    """Mean height of each run's curve up to `until` (trapezoids): [runs]; NaN for runs that do not reach it."""
    steps, values = np.asarray(steps, np.float64), _matrix(values)
    inside = steps <= (steps[-1] if until is None else until)
    if inside.sum() < 2:
        return np.full(len(values), np.nan)
    within = steps[inside]
    return np.trapezoid(values[:, inside], within, axis=1) / (within[-1] - within[0])


def steps_to_reach(steps: npt.ArrayLike, values: Floats, goal: float) -> Floats:
    """The step of each run's first evaluation that is at least `goal`: [runs]; NaN if it never was."""
    steps, values = np.asarray(steps, np.float64), _matrix(values)
    reached = np.nan_to_num(values, nan=-np.inf) >= goal
    return np.where(reached.any(axis=1), steps[reached.argmax(axis=1)], np.nan)


def last_common(values: Floats) -> int | None:
    """Index of the last evaluation that every run has, or None."""
    whole = np.flatnonzero(np.isfinite(_matrix(values)).all(axis=0))
    return int(whole[-1]) if len(whole) else None


def smooth(values: npt.ArrayLike, window: int) -> Floats:
    """Centred moving mean over `window` evaluations, shorter at the ends, ignoring NaN."""
    values = np.asarray(values, np.float64)
    reach = window // 2
    parts = [values[max(0, i - reach) : i + reach + 1] for i in range(len(values))]
    kept = [part[np.isfinite(part)] for part in parts]
    return np.array([part.mean() if len(part) else np.nan for part in kept])


def known(values: npt.ArrayLike) -> Floats:
    """The values that there are."""
    array = np.asarray(values, np.float64)
    return array[np.isfinite(array)]


def _matrix(values: Floats) -> Floats:
    array = np.asarray(values, np.float64)
    if array.ndim != 2:
        raise EudaError(f"values must be [runs, evaluations], not of shape {array.shape}")
    return array
