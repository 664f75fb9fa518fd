"""observation → entries of about unit size, by running statistics that commute with every symmetry.

A map that exchanges entries, flips their signs or mixes them (a quarter turn of the world, a mirror of the robot) must
give the same whether it comes before or after. So entries that a symmetry maps onto each other are one class with one
deviation; their means differ at most by the sign of the map, and where a symmetry maps an entry onto minus itself, or
mixes it with others, there is no mean at all. For yaws this says: x and y of a vector have one common scale and no
mean; z and scalars have a mean and a deviation of their own. Angles and quaternions stay as they are: no scale of
them commutes with a turn.

Statistics are sums over every observation that the agent was shown, in float64, on the host. The networks see the
statistics of the last update, clipped to ±`clip`, except for what is mixed: clipping x and y would turn vectors.
"""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from euda.body.entry_map import EntryMap
from euda.body.field import Kind
from euda.body.layout import Layout
from euda.errors import EudaError

_SMALLEST = 1e-8
"""Added to variances: an entry that never changes becomes zero and not a division by zero."""
_UNTOUCHED = -1
_NONE = 1e-9  # factors below this are rounding


class Moments(NamedTuple):
    """Sums over observations, float64."""

    number: np.ndarray  # [] observations
    total: np.ndarray  # [dim]
    square: np.ndarray  # [dim]


class Statistics(NamedTuple):
    """What is subtracted from each entry, and what it is then multiplied by, float32."""

    shift: np.ndarray  # [dim]
    scale: np.ndarray  # [dim]


@dataclasses.dataclass(frozen=True)
class Normaliser:
    """Which entries share statistics; see the module's text."""

    classes: tuple[int, ...]
    """The class of every entry, from 0 on; -1: it stays as it is."""
    signs: tuple[int, ...]
    """The mean of an entry is its sign times the mean of its class; 0: it has none."""
    limits: tuple[float, ...]
    """Every entry is clipped to plus or minus this."""

    def begin(self) -> Moments:
        """Before the first observation."""
        return Moments(np.zeros(()), np.zeros(len(self.classes)), np.zeros(len(self.classes)))

    def observe(self, moments: Moments, observation: np.ndarray) -> Moments:
        """The moments with one more observation [dim]."""
        x = observation.astype(np.float64)
        return Moments(moments.number + 1, moments.total + x, moments.square + x * x)

    def statistics(self, moments: Moments) -> Statistics:
        """What the moments amount to; before the first observation nothing is changed."""
        if not moments.number:
            return Statistics(np.zeros(len(self.classes), np.float32), np.ones(len(self.classes), np.float32))
        mean = self._shared(self._signs * moments.total / moments.number) * self._signs
        variance = self._shared(moments.square / moments.number) - mean * mean
        scale = np.where(self._is_scaled, 1 / np.sqrt(np.maximum(variance, 0) + _SMALLEST), 1.0)
        return Statistics(mean.astype(np.float32), scale.astype(np.float32))

    def __call__(self, xp: Any, statistics: Statistics, observations: Any) -> Any:
        """Observations [..., dim] of NumPy or JAX, normalised."""
        return xp.clip((observations - statistics.shift) * statistics.scale, -self._limits, self._limits)

    def _shared(self, values: np.ndarray) -> np.ndarray:
        """For every entry the mean of the values of its class."""
        return np.bincount(self._places, values)[self._places] / self._sizes

    @functools.cached_property
    def _places(self) -> np.ndarray:
        """Classes as indices: those entries that stay as they are have one of their own."""
        classes = np.array(self.classes)
        return np.where(classes == _UNTOUCHED, classes.max() + 1, classes)

    @functools.cached_property
    def _sizes(self) -> np.ndarray:
        return np.bincount(self._places)[self._places]

    @functools.cached_property
    def _signs(self) -> np.ndarray:
        return np.array(self.signs, np.float64)

    @functools.cached_property
    def _is_scaled(self) -> np.ndarray:
        return np.array(self.classes) != _UNTOUCHED

    @functools.cached_property
    def _limits(self) -> np.ndarray:
        return np.array(self.limits, np.float32)


# -- a maker for each row of NORMALISERS ---------------------------------------------------------------------


def symmetric(layout: Layout, clip: float, *, is_turned: bool = False, maps: Sequence[EntryMap] = ()) -> Normaliser:
    """The normaliser that commutes with yaws (unless the frame has taken them out) and with other maps of entries.

    `is_turned`: whether observations are in the robot's own frame. `maps` are the symmetries of a finite group, as
    `Element.on_observations(layout)` gives them.
    """
    free, is_mixed = np.zeros(layout.dim, bool), np.zeros(layout.dim, bool)
    quarter = layout.rotate(np.eye(layout.dim), math.pi / 2).T
    if not is_turned:
        for field in layout:
            free[layout.slice(field.name)] = field.kind in (Kind.QUATERNION, Kind.HEADING)
        is_mixed = ~np.isclose(np.diag(quarter), 1.0)
    turns = [] if is_turned else [EntryMap.of_matrix(quarter, np.zeros(layout.dim))]
    for one in maps:
        if len(one.offset) != layout.dim:
            raise EudaError(f"these observations have {layout.dim} entries, but a symmetry maps {len(one.offset)}")
        is_mixed |= (np.abs(one.matrix) > _NONE).sum(axis=1) > 1
    classes, signs = _classes(layout.dim, [*turns, *maps], free)
    limits = np.where(is_mixed | free, np.inf, clip)
    return Normaliser(classes, signs, tuple(limits.tolist()))


def full(layout: Layout, clip: float, *, is_turned: bool = False, maps: Sequence[EntryMap] = ()) -> Normaliser:
    """Every entry with its own mean and deviation, whatever it is: for runs that use no symmetry."""
    del is_turned, maps
    dim = layout.dim
    return Normaliser(tuple(range(dim)), (1,) * dim, (clip,) * dim)


def _classes(dim: int, maps: Sequence[EntryMap], free: np.ndarray) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """The classes of entries that the maps connect, and the signs of their means.

    Entries that are mixed, or moved by an offset, have no mean: nothing could be subtracted on both sides alike.
    """
    edges: list[list[tuple[int, int]]] = [[] for _ in range(dim)]
    for one in maps:
        matrix = one.matrix
        for i in np.flatnonzero(~free):
            (partners,) = np.nonzero(np.abs(matrix[i]) > _NONE)
            has_no_mean = len(partners) > 1 or one.offset[i] != 0
            for j in partners:
                signs = (1, -1) if has_no_mean else (int(np.sign(matrix[i, j])),)
                for sign in signs:
                    edges[i].append((int(j), sign))
                    edges[j].append((int(i), sign))
    classes, signs = [_UNTOUCHED] * dim, [0] * dim
    for start in range(dim):
        if free[start] or classes[start] != _UNTOUCHED:
            continue
        members, has_mean = {start: 1}, True
        waiting = [start]
        while waiting:
            i = waiting.pop()
            for j, sign in edges[i]:
                if j not in members:
                    members[j] = sign * members[i]
                    waiting.append(j)
                has_mean &= members[j] == sign * members[i]
        for j, sign in members.items():
            classes[j], signs[j] = start, sign if has_mean else 0
    names = {found: k for k, found in enumerate(dict.fromkeys(c for c in classes if c != _UNTOUCHED))}
    return tuple(names.get(found, _UNTOUCHED) for found in classes), tuple(signs)
