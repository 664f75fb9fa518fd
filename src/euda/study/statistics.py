"""(runs × evaluations) → numbers with intervals: pure functions, each with its own source of randomness as an argument.

Values are returns in an array [runs, evaluations]; NaN where a run has no evaluation (it is shorter, or missing).
Nothing is filled in: a statistic at an evaluation uses the runs that have it, and says how many.
"""

from __future__ import annotations

import dataclasses
import warnings
from collections.abc import Callable, Mapping, Sequence

import numpy as np
import numpy.typing as npt
from scipy import stats

from euda.errors import EudaError

Floats = npt.NDArray[np.float64]
CONFIDENCE, RESAMPLES = 0.95, 2000


@dataclasses.dataclass(frozen=True)
class Interval:
    """An estimate with its 95 % confidence interval; NaN bounds where one run alone cannot tell."""

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
    """Mean and interval at each evaluation."""

    mean: Floats
    low: Floats
    high: Floats
    count: npt.NDArray[np.int64]
    """Runs that have this evaluation."""


# -- the mean over seeds -------------------------------------------------------------------------------------


def student_band(values: Floats, confidence: float = CONFIDENCE) -> Band:
    """Mean over runs and Student's t interval at each evaluation; no interval where fewer than two runs are left."""
    values = _matrix(values)
    count = np.isfinite(values).sum(axis=0)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # evaluations that no run has: NaN is what we want to say
        mean = np.nanmean(values, axis=0)
        error = np.nanstd(values, axis=0, ddof=1) / np.sqrt(count)
        half = stats.t.ppf((1 + confidence) / 2, np.maximum(count - 1, 1)) * error
    half = np.where(count > 1, half, np.nan)
    return Band(mean, mean - half, mean + half, count)


def student_interval(scores: npt.ArrayLike, confidence: float = CONFIDENCE) -> Interval:
    """Mean of one score per run, and Student's t interval."""
    band = student_band(np.asarray(scores, np.float64)[:, None], confidence)
    return Interval(float(band.mean[0]), float(band.low[0]), float(band.high[0]), int(band.count[0]))


def bootstrap_interval(
    scores: npt.ArrayLike, generator: np.random.Generator, confidence: float = CONFIDENCE, resamples: int = RESAMPLES
) -> Interval:
    """Mean of one score per run, and the percentile bootstrap interval over runs."""
    known = _known(scores)
    if len(known) < 2:
        value = float(known.mean()) if len(known) else np.nan
        return Interval(value, np.nan, np.nan, len(known))
    drawn = known[generator.integers(len(known), size=(resamples, len(known)))].mean(axis=1)
    return Interval(float(known.mean()), *_percentiles(drawn, confidence), len(known))


# -- over tasks ----------------------------------------------------------------------------------------------


def interquartile_mean(scores: Sequence[npt.ArrayLike]) -> float:
    """Mean of the middle half of all scores; one array of scores (one per run) for each task."""
    known = [_known(task) for task in scores]
    return float(_middle(known)) if sum(map(len, known)) else np.nan


def interquartile_interval(
    scores: Sequence[npt.ArrayLike], generator: np.random.Generator, resamples: int = RESAMPLES
) -> Interval:
    """Interquartile mean with a stratified bootstrap: runs are drawn anew within each task."""
    return _stratified(_middle, scores, generator, resamples)


def _middle(scores: Sequence[Floats]) -> Floats:
    """The interquartile mean over the last axes of all arrays together."""
    return np.asarray(stats.trim_mean(np.concatenate(scores, axis=-1), 0.25, axis=-1))


def probability_of_improvement(first: npt.ArrayLike, second: npt.ArrayLike) -> float:
    """How often a run of the first beats a run of the second, ties counting half: Mann and Whitney's U / (m n)."""
    a, b = _known(first), _known(second)
    return float(_improvement([a, b])) if len(a) and len(b) else np.nan


def improvement_interval(
    pairs: Sequence[tuple[npt.ArrayLike, npt.ArrayLike]], generator: np.random.Generator, resamples: int = RESAMPLES
) -> Interval:
    """Mean over tasks of the probability of improvement, with a stratified bootstrap; (first, second) for each task."""
    return _stratified(_improvement, [side for pair in pairs for side in pair], generator, resamples)


def _improvement(sides: Sequence[Floats]) -> Floats:
    """The mean over pairs of neighbouring arrays, over their last axes."""
    pairs = zip(sides[::2], sides[1::2], strict=True)
    wins = [np.sign(a[..., :, None] - b[..., None, :]).mean(axis=(-1, -2)) for a, b in pairs]
    return 0.5 + 0.5 * np.mean(wins, axis=0)


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


def common_evaluations(values: Floats) -> int:
    """How many evaluations, from the first on, every run has."""
    missing = np.flatnonzero(~np.isfinite(_matrix(values)).all(axis=0))
    return int(missing[0]) if len(missing) else values.shape[1]


def last_common(values: Floats) -> int | None:
    """Index of the last evaluation that every run has, or None."""
    whole = np.flatnonzero(np.isfinite(_matrix(values)).all(axis=0))
    return int(whole[-1]) if len(whole) else None


def best_share(scores: Mapping[float, npt.ArrayLike]) -> tuple[float, list[float]]:
    """The share with the highest mean score, and the others whose intervals overlap its own.

    Of equal means the smaller share is best: it changes less.
    """
    intervals = {share: student_interval(values) for share, values in sorted(scores.items()) if len(_known(values))}
    if not intervals:
        raise EudaError("there are no scores to choose the best share from")
    best = max(intervals, key=lambda share: (intervals[share].value, -share))
    top = intervals[best]
    rivals = [share for share, other in intervals.items() if share != best and _overlap(top, other)]
    return best, rivals


def smooth(values: npt.ArrayLike, window: int) -> Floats:
    """Centred moving mean over `window` evaluations, shorter at the ends, ignoring NaN."""
    values = np.asarray(values, np.float64)
    reach = window // 2
    parts = [values[max(0, i - reach) : i + reach + 1] for i in range(len(values))]
    kept = [part[np.isfinite(part)] for part in parts]
    return np.array([part.mean() if len(part) else np.nan for part in kept])


def _overlap(a: Interval, b: Interval) -> bool:
    """Whether two intervals overlap; without intervals nothing can be told apart."""
    return not (a.is_known and b.is_known) or (a.low <= b.high and b.low <= a.high)


def _stratified(
    statistic: Callable[[Sequence[Floats]], Floats],
    strata: Sequence[npt.ArrayLike],
    generator: np.random.Generator,
    resamples: int,
) -> Interval:
    """A statistic of several samples, with runs drawn anew within each of them."""
    known = [_known(stratum) for stratum in strata]
    if not known or min(map(len, known)) < 1:
        return Interval(np.nan, np.nan, np.nan, sum(map(len, known)))
    value, count = float(statistic(known)), sum(map(len, known))
    if min(map(len, known)) < 2:
        return Interval(value, np.nan, np.nan, count)
    drawn = statistic([s[generator.integers(len(s), size=(resamples, len(s)))] for s in known])
    return Interval(value, *_percentiles(drawn, CONFIDENCE), count)


def _percentiles(values: Floats, confidence: float) -> tuple[float, float]:
    low, high = np.percentile(values, [50 * (1 - confidence), 50 * (1 + confidence)])
    return float(low), float(high)


def _known(values: npt.ArrayLike) -> Floats:
    array = np.asarray(values, np.float64)
    return array[np.isfinite(array)]


def _matrix(values: Floats) -> Floats:
    array = np.asarray(values, np.float64)
    if array.ndim != 2:
        raise EudaError(f"values must be [runs, evaluations], not of shape {array.shape}")
    return array
