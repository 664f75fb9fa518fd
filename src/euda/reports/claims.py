"""Two curves of a task → a claim that one method is better, decided or open; a study's claims are judged together."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from euda.reports import comparison, statistics
from euda.reports.comparison import LEVEL
from euda.reports.results_table import Curve
from euda.reports.statistics import Floats, Interval

ENOUGH = 3
"""Seeds of each method from which on it is worth guessing how many would decide."""
_SEED = 0  # of the simulation, so that a report made twice is the same


@dataclasses.dataclass(frozen=True)
class Claim:
    """That runs of the first method are better than those of the second, by the area under their curves."""

    task: str
    first: str
    second: str
    seeds: tuple[int, int]
    step: int
    """Areas are up to the last step that all runs of both have."""
    areas: tuple[float, float]
    """Medians."""
    improvement: Interval
    """Probability that a run of the first beats one of the second."""
    p: float
    """Of Mann and Whitney's exact test, two-sided."""
    adjusted: float
    """For all claims of the study together (Holm), without those of too few seeds to decide anything, which are NaN."""
    seeds_to_decide: int | None = None
    """Of each method, if the claim is open: with these the test would decide in four of five studies; None: unknown."""

    @property
    def is_decided(self) -> bool:
        """Whether the two are told apart."""
        return self.adjusted < LEVEL

    @property
    def verdict(self) -> str:
        """In a word: confirmed, contradicted or open."""
        if not self.is_decided:
            return "open"
        return "confirmed" if self.improvement.value > 0.5 else "contradicted"


def judge(pairs: Iterable[tuple[Curve, Curve]]) -> tuple[Claim, ...]:
    """The claims that each first curve is better than its second, judged together; pairs without data are left out."""
    scored = [(first, second, *scores) for first, second in pairs for scores in areas_at_common_step([first, second])]
    p_values = [comparison.mann_whitney(a, b) for _, _, _, (a, b) in scored]
    can_decide = [comparison.smallest_p(len(a), len(b)) < LEVEL for _, _, _, (a, b) in scored]
    adjusted = comparison.holm([p if can else np.nan for p, can in zip(p_values, can_decide, strict=True)])
    undecided = sum(not p < LEVEL for p in adjusted)
    claims = []
    for (first, second, step, (a, b)), p, together in zip(scored, p_values, adjusted, strict=True):
        needed = None
        if not together < LEVEL and min(len(a), len(b)) >= ENOUGH:
            generator = np.random.default_rng(_SEED)
            needed = comparison.seeds_to_decide(a, b, generator, LEVEL / undecided)
        improvement, medians = comparison.improvement_interval([(a, b)]), (float(np.median(a)), float(np.median(b)))
        names, seeds = (first.task, first.name, second.name), (len(a), len(b))
        claims.append(Claim(*names, seeds, step, medians, improvement, p, together, needed))
    return tuple(claims)


def areas_at_common_step(curves: Sequence[Curve]) -> Iterator[tuple[int, list[Floats]]]:
    """The last step that all runs of all curves have, and their areas up to there; nothing if there is no curve yet."""
    if (step := common_step(curves)) is not None and step > 0:
        yield step, [statistics.area_under_curve(curve.steps, curve.values, step) for curve in curves]


def common_step(curves: Sequence[Curve]) -> int | None:
    """The last step that all runs of all curves have."""
    steps = [
        set(curve.steps[np.isfinite(curve.values).all(axis=0)].tolist()) if curve.seeds else set() for curve in curves
    ]
    return max(set.intersection(*steps), default=None) if steps else None
