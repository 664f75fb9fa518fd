"""Observation → points: the Euclidean graphs of the SEGNN, read out of a `limb` observation through its layout.

Two points, as the paper has it for the reacher: the target, and the limb that is to reach it (the finger). The
finger carries the positions of all other limbs and the velocities of all limbs; the edge between the points is
the observation's `to_target`. In the paper's words x_hand, x_arm and v_finger, v_hand, v_arm: `limb` has them as
centres of mass relative to the mount, which for the reacher's limbs are the centres of their geoms. The paper's
x_root and v_root are zero relative to the mount: inputs that never change anything, so they are not computed
(they only count in the fan-in of the first layer, see `SEGNNConfig.vectors`).

One point: every vector of the observation with its norm, and the scalars.
"""

from __future__ import annotations

import dataclasses
import functools
from typing import Any, NamedTuple

import jax.numpy as jnp

from euda.body.layout import Field, Kind, Layout
from euda.errors import EudaError

SMALLEST = 1e-12
"""Added to squares under a root, so that its gradient at zero is zero and not infinite."""


class Edge(NamedTuple):
    """What the finger knows, seen along the edge."""

    norms: Any
    """[B, n]: |f_k| of the finger's vectors."""
    along: Any
    """[B, n]: f_k · r."""
    across: Any
    """[B, n]: f_k · (ẑ × r)."""
    distance: Any
    """[B, 1]: from the finger to the target (m)."""


def norm(x: Any) -> Any:
    """|x| over the last axis, kept, with a gradient everywhere."""
    return jnp.sqrt(jnp.sum(x * x, -1, keepdims=True) + SMALLEST)


@dataclasses.dataclass(frozen=True)
class TwoPoints:
    """The graph {target, finger} of a layout."""

    layout: Layout
    finger: str
    """The limb that is to reach the target."""

    def __post_init__(self) -> None:
        for name in ("position", "velocity", "to_target"):
            if name not in self.layout or self.layout.field(name).kind is not Kind.VECTOR:
                raise EudaError(
                    f"the graph of target and {self.finger} needs vectors named position, velocity and to_target,"
                    f" and this observation has {', '.join(self.layout.slices)}: use features limb of a task with a"
                    " target"
                )
        if self.finger not in self.layout.field("position").of:
            raise EudaError(f"the observation has no position of a limb {self.finger!r}")

    @property
    def vectors(self) -> int:
        """Vectors of the finger that can change."""
        return self.layout.field("position").count - 1 + self.layout.field("velocity").count

    def read(self, observations: Any) -> Edge:
        """What the network needs of observations [B, dim]."""
        limbs = self.layout.field("position").of
        others = [i for i, name in enumerate(limbs) if name != self.finger]
        positions = jnp.stack([self._elements("position", observations)[:, i] for i in others], 1)
        vectors = jnp.concatenate([positions, self._elements("velocity", observations)], 1)
        to_target = self._elements("to_target", observations)[:, 0]
        distance = norm(to_target)
        r = to_target / distance
        t = jnp.stack([-r[:, 1], r[:, 0], jnp.zeros_like(r[:, 0])], -1)
        along, across = (jnp.sum(vectors * axis[:, None, :], -1) for axis in (r, t))
        return Edge(norm(vectors)[..., 0], along, across, distance)

    def _elements(self, name: str, observations: Any) -> Any:
        """The vectors [B, count, 3] of a field."""
        field = self.layout.field(name)
        return observations[:, self.layout.slice(name)].reshape(-1, field.count, 3)


@dataclasses.dataclass(frozen=True)
class OnePoint:
    """The graph with everything in one point, of any layout of vectors and scalars."""

    layout: Layout

    def __post_init__(self) -> None:
        for field in self.layout:
            if field.kind not in (Kind.VECTOR, Kind.SCALAR):
                raise EudaError(
                    f"a single point holds vectors and scalars, but {field.name!r} is a {field.kind.value}:"
                    " use features limb"
                )

    @functools.cached_property
    def _fields(self) -> tuple[tuple[Field, ...], tuple[Field, ...]]:
        """Fields of vectors, fields of scalars."""
        vectors = tuple(field for field in self.layout if field.kind is Kind.VECTOR)
        return vectors, tuple(field for field in self.layout if field.kind is Kind.SCALAR)

    @property
    def vectors(self) -> int:
        """How many vectors."""
        return sum(field.count for field in self._fields[0])

    @property
    def scalars(self) -> int:
        """How many scalars beside the norms."""
        return sum(field.count for field in self._fields[1])

    def read(self, observations: Any) -> Any:
        """Norms of all vectors, then the scalars: [B, vectors + scalars]."""
        columns = []
        for field in self._fields[0]:
            elements = observations[:, self.layout.slice(field.name)].reshape(-1, field.count, 3)
            columns.append(norm(elements)[..., 0])
        columns += [observations[:, self.layout.slice(field.name)] for field in self._fields[1]]
        return jnp.concatenate(columns, 1)
