"""Scores of two methods, one per run → is one better, how sure is that, and how many seeds would decide it.

The test is Mann and Whitney's, exact, with ties; several claims of one study are judged together (Holm). The effect
size is the probability that a run of the one beats a run of the other, with an interval that holds for any two
distributions of returns and any number of seeds.
"""

from __future__ import annotations

import bisect
import functools
import math
from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt
from scipy import optimize, special, stats

from euda.errors import EudaError
from euda.reports.statistics import CONFIDENCE, Floats, Interval, known

LEVEL = 0.05
"""Two-sided, of the claims of a study together."""
POWER, MOST_SEEDS, _STUDIES = 0.8, 50, 1000


# -- the exact test ------------------------------------------------------------------------------------------


def mann_whitney(first: npt.ArrayLike, second: npt.ArrayLike) -> float:
    """The two-sided p of Mann and Whitney's test, exact also with ties; NaN where a side has no run.

    If a method made no difference, every assignment of these scores to the two methods would be as likely as any other;
    p is the share of assignments whose sum of ranks is at least as far out, on the nearer side, twice.
    """
    a, b = known(first), known(second)
    if not len(a) or not len(b):
        return np.nan
    doubled = np.rint(2 * stats.rankdata(np.concatenate([a, b]))).astype(np.int64)  # ranks of ties are halves
    ways = _ways(tuple(doubled.tolist()), len(a))
    here = int(doubled[: len(a)].sum())
    below, above = ways[: here + 1].sum(), ways[here:].sum()
    return float(min(1.0, 2 * min(below, above) / ways.sum()))


def smallest_p(first: int, second: int) -> float:
    """The smallest p that so many runs against so many can have: all of one are above all of the other."""
    return min(1.0, 2 / math.comb(first + second, first))


@functools.lru_cache(maxsize=64)
def _ways(numbers: tuple[int, ...], count: int) -> Floats:
    """In how many ways `count` of the numbers have each sum: [largest sum + 1]."""
    ways = np.zeros((count + 1, sum(sorted(numbers)[-count:]) + 1))
    ways[0, 0] = 1
    for number in numbers:
        ways[1:, number:] += ways[:-1, : ways.shape[1] - number].copy()
    return ways[count]


def holm(p_values: Sequence[float]) -> list[float]:
    """Each p as Holm's method adjusts it: claims whose adjusted p is below a level hold together at that level.

    A claim that cannot be tested (NaN) stays so and does not count.
    """
    tested = [i for i, p in enumerate(p_values) if np.isfinite(p)]
    adjusted, so_far = [float("nan")] * len(p_values), 0.0
    for place, i in enumerate(sorted(tested, key=lambda i: p_values[i])):
        so_far = max(so_far, min(1.0, (len(tested) - place) * p_values[i]))
        adjusted[i] = so_far
    return adjusted


# -- the effect size -----------------------------------------------------------------------------------------


def probability_of_improvement(first: npt.ArrayLike, second: npt.ArrayLike) -> float:
    """How often a run of the first beats a run of the second, ties counting half: Mann and Whitney's U / (m n)."""
    a, b = known(first), known(second)
    if not len(a) or not len(b):
        return np.nan
    return float(0.5 + 0.5 * np.sign(a[:, None] - b[None, :]).mean())


def improvement_interval(pairs: Sequence[tuple[npt.ArrayLike, npt.ArrayLike]]) -> Interval:
    """Mean over tasks of the probability of improvement, with its interval; (first, second) for each task.

    It holds for any distributions. m against n runs are compared in m n pairs, of which only min(m, n) are independent:
    the share of wins is a mean over all ways to choose those, so it scatters less (in convex order) than a share of
    min(m, n) coins (Hoeffding 1956, 1963), and the interval is that of so many coins, a little wider than Clopper and
    Pearson's. Where the test finds a difference and this interval still holds one half, both are right: the test asks
    whether the methods are the same, the interval allows them to scatter differently.
    """
    sides = [(known(first), known(second)) for first, second in pairs]
    runs = sum(len(a) + len(b) for a, b in sides)
    independent = len(sides) * min((min(len(a), len(b)) for a, b in sides), default=0)
    if not independent:
        return Interval(np.nan, np.nan, np.nan, runs)
    share = float(np.mean([probability_of_improvement(a, b) for a, b in sides]))
    low, high = _lower_bound(share, independent), 1 - _lower_bound(1 - share, independent)
    return Interval(share, low, high, runs)


def _lower_bound(share: float, coins: int) -> float:
    """The smallest probability of heads for which so large a share is not too unlikely."""
    risk = (1 - CONFIDENCE) / 2
    if share <= 0:
        return 0.0
    return float(optimize.brentq(lambda p: _tail(share, coins, p) - risk, 0.0, 1.0))  # pyright: ignore[reportArgumentType]


def _tail(share: float, coins: int, probability: float) -> float:
    """A bound of P(X >= share) for every X that scatters no more than the share of heads H / coins.

    For any h below it, P(X >= x) <= E max(X - h, 0) / (x - h), and the numerator is at most that of the coins.
    """
    heads = np.arange(coins + 1)
    below = heads[heads < coins * share]
    excess = np.maximum(heads - below[:, None], 0) @ np.exp(_log_binomial(heads, coins, probability))
    return min(1.0, float((excess / (coins * share - below)).min()))


def _log_binomial(heads: npt.NDArray[np.int64], coins: int, probability: float) -> Floats:
    """The logarithm of the chance of so many heads; `scipy.stats.binom` takes ten times as long."""
    ways = special.gammaln(coins + 1) - special.gammaln(heads + 1) - special.gammaln(coins - heads + 1)
    return ways + special.xlogy(heads, probability) + special.xlog1py(coins - heads, -probability)


# -- how many seeds ------------------------------------------------------------------------------------------


def seeds_to_decide(
    first: npt.ArrayLike, second: npt.ArrayLike, generator: np.random.Generator, level: float = LEVEL,
    power: float = POWER, most: int = MOST_SEEDS,
) -> int | None:  # fmt: skip
    """Seeds of each method that decide with probability `power`, if more runs scatter as these; None: above `most`.

    Simulated: studies are drawn from the scores at hand and tested. A rough guide, because it believes the scores.
    """
    a, b = known(first), known(second)
    if not len(a) or not len(b):
        return None
    draws = [side[generator.integers(len(side), size=(_STUDIES, most))] for side in (a, b)]
    # Of equal scores one is ahead by chance, as in new runs that differ a little.
    first_wins = draws[0][:, :, None] > draws[1][:, None, :]
    is_tied = draws[0][:, :, None] == draws[1][:, None, :]
    first_wins |= is_tied & (generator.random(is_tied.shape, np.float32) < 0.5)

    def is_enough(seeds: int) -> bool:
        wins = first_wins[:, :seeds, :seeds].sum(axis=(1, 2))
        critical = _critical(seeds, level)
        return bool(((wins <= critical) | (wins >= seeds * seeds - critical)).mean() >= power)

    if not is_enough(most):
        return None
    return bisect.bisect_left(range(most), True, lo=1, key=is_enough)


@functools.cache
def _critical(seeds: int, level: float) -> int:
    """The most wins of the losing side with which the exact test of equal numbers without ties is decided; -1: none."""
    ways = _ways(tuple(range(1, 2 * seeds + 1)), seeds)
    ranks_at_least = seeds * (seeds + 1) // 2
    share = np.cumsum(ways[ranks_at_least:]) / ways.sum()
    return int(np.searchsorted(share, level / 2, side="right")) - 1


# -- one of several ------------------------------------------------------------------------------------------


def best(scores: Mapping[float, npt.ArrayLike], level: float = LEVEL) -> tuple[float, list[float]]:
    """The key with the highest median score, and those that are statistically indistinguishable from it.

    Of equal medians the smaller key is best. The others are tested against it, together (Holm).
    """
    kept = {key: found for key, values in sorted(scores.items()) if len(found := known(values))}
    if not kept:
        raise EudaError("there are no scores to choose the best of")
    top = max(kept, key=lambda key: (float(np.median(kept[key])), -key))
    others = [key for key in kept if key != top]
    adjusted = holm([mann_whitney(kept[top], kept[key]) for key in others])
    return top, [key for key, p in zip(others, adjusted, strict=True) if p >= level]
