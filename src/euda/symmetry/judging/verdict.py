"""From errors to a word: exact, exact but for iterative collisions, near, or broken.

Exact is decided by every row, states made on purpose included. Shares of wrong rows are of the states that the
robot comes to by itself, because how many others were made is our choice. `docs/certificate.md` gives the reasons.
"""

from __future__ import annotations

import dataclasses
from typing import Literal

import numpy as np

Verdict = Literal["exact", "exact but for iterative collisions", "near", "broken"]
ORDER: tuple[Verdict, ...] = ("exact", "exact but for iterative collisions", "near", "broken")
EXACT = 1e-9
"""Relative error up to which a row agrees."""
ITERATIVE = 1e-3
"""Relative error up to which the tolerance of an iterative collision excuses a row."""
TOLERANCE = 0.1
"""Relative error above which a row is wrong; of the dynamics, as a share of the step's change of velocity."""
SHARE = 1 / 3
"""Share of wrong rows above which something is broken."""
WORST = 0.6
"""Relative error of a field or the reward above which it is broken, in however few rows."""
DIRECTED = 1e-3
"""Median error, as a share of a step's change, above which a world that prefers a direction is broken."""


@dataclasses.dataclass(frozen=True)
class Errors:
    """Relative errors over all states and transformations of one part: the dynamics, a field, or the reward."""

    median: float
    max: float
    """Of all rows, those of states made on purpose included."""
    share: float = 0.0
    """Share of rows, of states that the robot came to by itself, with an error above `TOLERANCE`."""
    verdict: Verdict = "exact"


@dataclasses.dataclass(frozen=True)
class Energy:
    """The error of a step in the kinetic-energy norm, divided by that of the step's own change of velocity.

    About the share of mass that is in the wrong place, and comparable between robots.
    """

    median: float
    p90: float

    @staticmethod
    def of(values: np.ndarray) -> Energy:
        """Over rows."""
        return Energy(float(np.median(values)), float(np.quantile(values, 0.9)))


def worst(verdicts: list[Verdict]) -> Verdict:
    """The worst of several verdicts."""
    return max(verdicts, key=ORDER.index)


@dataclasses.dataclass(frozen=True)
class Rows:
    """What the rules need to know of each row beside its error: arrays [rows] of truth values."""

    is_visited: np.ndarray
    """The state is one that the robot came to by itself."""
    is_iterative: np.ndarray
    """A collision that is found by iteration acts in it."""
    is_own: np.ndarray
    """An error of a field or the reward is its own: the dynamics of the row are exact (or those of no row are)."""


def judge_dynamics(errors: np.ndarray, energy: np.ndarray, rows: Rows, is_directed: bool) -> Errors:
    """Next states. `is_directed` says that a direction of the world itself was found guilty."""
    wrong = energy[rows.is_visited] > TOLERANCE
    is_broken = wrong.mean() > SHARE or (is_directed and np.median(energy[rows.is_visited]) > DIRECTED)
    return _errors(errors, float(wrong.mean()), _verdict(errors, rows, bool(is_broken)))


def judge_part(errors: np.ndarray, rows: Rows, is_contradictory: bool = False) -> Errors:
    """A field or the reward. `is_contradictory` says that it follows something that the agent does not see."""
    used = rows.is_visited & rows.is_own
    used = used if used.any() else rows.is_visited
    share = float((errors[used] > TOLERANCE).mean()) if used.any() else 0.0
    largest = float(errors[rows.is_own].max(initial=0.0))
    is_broken = share > SHARE or largest > WORST or is_contradictory
    return _errors(errors, share, _verdict(errors, rows, is_broken))


def _verdict(errors: np.ndarray, rows: Rows, is_broken: bool) -> Verdict:
    if errors.max(initial=0.0) <= EXACT:
        return "exact"
    excused = rows.is_iterative & (errors <= ITERATIVE)
    if (errors[~excused] <= EXACT).all():
        return "exact but for iterative collisions"
    return "broken" if is_broken else "near"


def _errors(errors: np.ndarray, share: float, verdict: Verdict) -> Errors:
    if not errors.size:
        return Errors(0.0, 0.0)
    return Errors(float(np.median(errors)), float(errors.max()), share, verdict)
