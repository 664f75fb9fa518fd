"""Pairs of observations → what an element does to a field that does not say what it reads.

A field of one's own, or one that reads what is no part of the robot, may still follow a symmetry: in states x and their
images g x its numbers are then related by one matrix and one offset. They are fitted by least squares and told in
words. A fit is evidence from the states that it saw, not a derivation.
"""

from __future__ import annotations

import dataclasses

import numpy as np

from euda.body.layout import Layout
from euda.errors import LayoutError
from euda.symmetry.element import Element
from euda.symmetry.observations import underivable

_EXACT = 1e-6  # largest residual, relative to the field's spread, of a field that follows the element


@dataclasses.dataclass(frozen=True, eq=False)
class Fit:
    """What an element seems to do to one field."""

    field: str
    reason: str
    """Why it had to be fitted."""
    matrix: np.ndarray
    """[dim, dim]"""
    offset: np.ndarray
    """[dim]"""
    residual: float
    """Largest misfit, relative to the largest deviation of the field's numbers from their mean."""
    words: str
    """What its numbers follow."""

    @property
    def follows(self) -> bool:
        """Whether the field follows the element at all."""
        return self.residual <= _EXACT


def fit(element: Element, layout: Layout, originals: np.ndarray, images: np.ndarray) -> dict[str, Fit]:
    """Fit the fields that cannot be derived, from observations [n, dim] of states and of their images."""
    reasons = underivable(element, layout)
    widest = max((layout.field(name).dim for name in reasons), default=0)
    if len(originals) < 2 * (widest + 1):
        name = next(name for name in reasons if layout.field(name).dim == widest)
        raise LayoutError(
            f"{reasons[name]}; to fit its {widest} numbers takes at least {2 * (widest + 1)} pairs of states, not"
            f" {len(originals)}: visit more (--states)"
        )
    return {name: _fit(layout, name, reason, originals, images) for name, reason in reasons.items()}


def with_fits(element: Element, fits: dict[str, Fit]) -> Element:
    """The element, knowing what it does to these fields; refuses fields that do not follow it."""
    strange = [fit.field for fit in fits.values() if not fit.follows]
    if strange:
        raise LayoutError(f"field {strange[0]!r} does not follow {element.name!r}: leave it out, or leave the element")
    return dataclasses.replace(element, fitted={name: (fit.matrix, fit.offset) for name, fit in fits.items()})


def _fit(layout: Layout, name: str, reason: str, originals: np.ndarray, images: np.ndarray) -> Fit:
    where = layout.slices[name]
    x, y = originals[:, where], images[:, where]
    known = np.concatenate([x, np.ones((len(x), 1))], axis=1)
    solution = np.linalg.lstsq(known, y, rcond=1e-9)[0]
    matrix, offset = solution[:-1].T, solution[-1]
    matrix = np.where(np.abs(matrix - matrix.round()) < 1e-6, matrix.round() + 0.0, matrix)
    offset = np.where(np.abs(offset) < 1e-6 * max(1.0, np.abs(y).max()), 0.0, offset)
    spread = float(np.abs(y - y.mean(axis=0)).max()) or 1.0
    residual = float(np.abs(x @ matrix.T + offset - y).max()) / spread
    return Fit(name, reason, matrix, offset, residual, _words(matrix, residual))


def _words(matrix: np.ndarray, residual: float) -> str:
    if residual > _EXACT:
        return f"it does not follow the element (residual {residual:.2g} of its spread)"
    if not np.isin(np.abs(matrix), (0.0, 1.0)).all() or (np.abs(matrix).sum(axis=1) != 1).any():
        return "its numbers mix"
    places, signs = np.abs(matrix).argmax(axis=1), matrix.sum(axis=1)
    moved = int((places != np.arange(len(places))).sum())
    flipped = int((signs < 0).sum())
    if not moved and not flipped:
        return "it stays as it is"
    parts = ([f"{moved} of its numbers change place"] if moved else []) + (
        [f"{flipped} change sign"] if flipped else []
    )
    return " and ".join(parts)
