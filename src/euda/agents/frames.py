"""observation → the same observation in the robot's own frame: turned about the vertical by its heading.

Everything that a yaw of the world changes is then relative to the robot, so any network on top is exactly invariant.
The heading is read out of the observation itself:

- with a `root_rotation` (the columns of R) it is atan2(R10 - R01, R00 + R11), the yaw of the swing-twist
  decomposition of R. It is singular only upside down, where no heading is defined;
- without one (an arm on a fixed base), the direction from the base to the target: the position of the limb that is to
  reach it (the last one, unless another is named), plus the way that is left. It is constant in an episode, and zero
  only if the target lies in the base.

In a singular state the observation stays as it is.
"""

from __future__ import annotations

import dataclasses
import functools
from typing import Any, Protocol

import numpy as np

from euda.body.entry_map import EntryMap
from euda.body.field import Kind
from euda.body.layout import Layout
from euda.errors import EudaError

_ROOT = "root_rotation"


class Frame(Protocol):
    """Turns observations [..., dim] of NumPy or JAX; hashable."""

    def __call__(self, xp: Any, observations: Any) -> Any: ...

    def seen(self, entries: EntryMap) -> EntryMap:
        """What a map of observations does to observations in this frame."""
        ...


@dataclasses.dataclass(frozen=True)
class OwnFrame:
    """Turns observations by minus the angle of a horizontal vector in them, (Σ a_i x_i, Σ b_i x_i)."""

    layout: Layout
    along: tuple[tuple[int, float], ...]
    """Entries and factors of the vector's x."""
    across: tuple[tuple[int, float], ...]
    """Entries and factors of the vector's y."""

    def __call__(self, xp: Any, observations: Any) -> Any:
        """The observations as the robot sees them."""
        return self.layout.rotate(observations, -self.heading(xp, observations))

    def seen(self, entries: EntryMap) -> EntryMap:
        """The map, then the yaw by which it turns a robot that faces along x: in its own frame it does not turn."""
        ahead = np.zeros(self.layout.dim)
        for entry, factor in self.along:
            ahead[entry] = factor
        back = -float(self.heading(np, entries(ahead)))
        if abs(back) < 1e-12:
            return entries
        matrix = self.layout.rotate(entries.matrix.T, back).T
        return EntryMap.of_matrix(matrix, entries.offset)

    def heading(self, xp: Any, observations: Any) -> Any:
        """The angle (rad) that the robot faces, [...]."""
        x, y = (
            functools.reduce(lambda total, part: total + part, [factor * observations[..., i] for i, factor in terms])
            for terms in (self.along, self.across)
        )
        return xp.arctan2(y, x)


def own_frame(layout: Layout, target: str | None = None) -> OwnFrame:
    """The frame of the robot that a layout describes; `target` is the limb that is to reach a target, if one is."""
    if _holds(layout, _ROOT, 3):
        first = layout.slice(_ROOT).start
        r00, r10, r01, r11 = first, first + 1, first + 3, first + 4  # columns, one after the other
        return OwnFrame(layout, ((r00, 1.0), (r11, 1.0)), ((r10, 1.0), (r01, -1.0)))
    if _holds(layout, "to_target", 1) and _holds(layout, "position"):
        limbs = layout.field("position").of
        limb = limbs.index(target) if target in limbs else layout.field("position").count - 1
        place, way = layout.slice("position").start + 3 * limb, layout.slice("to_target").start
        return OwnFrame(layout, ((place, 1.0), (way, 1.0)), ((place + 1, 1.0), (way + 1, 1.0)))
    raise EudaError(
        "the robot has no frame of its own in these observations: they hold neither root_rotation nor position and"
        f" to_target as world vectors, but {', '.join(layout.slices)}; use features limb, or another method than"
        " canonical"
    )


@dataclasses.dataclass(frozen=True)
class RootFrame:
    """Expresses every world vector in the frame of the root: x becomes Rᵀ x.

    Of the root's own rotation only the direction of gravity is left, Rᵀ e_z: the first three of its nine entries; the
    rest are zero. Unlike a heading this has no singular state, so it is smooth everywhere, also upside down.
    """

    layout: Layout

    def __call__(self, xp: Any, observations: Any) -> Any:
        """The observations as the root sees them."""
        rows = observations[..., self.layout.slice(_ROOT)].reshape(*observations.shape[:-1], 3, 3)  # Rᵀ: columns of R
        rotation = xp.swapaxes(rows, -1, -2)
        parts = []
        for field in self.layout:
            values = observations[..., self.layout.slice(field.name)]
            if field.name == _ROOT:
                values = xp.concatenate([rotation[..., 2, :], xp.zeros_like(values[..., 3:])], axis=-1)
            elif field.kind is Kind.VECTOR:
                vectors = values.reshape(*values.shape[:-1], field.count, 3)
                values = (vectors @ rotation).reshape(values.shape)  # (Rᵀ x)ᵀ = xᵀ R
            parts.append(values)
        return xp.concatenate(parts, axis=-1)

    def seen(self, entries: EntryMap) -> EntryMap:
        """Vectors of the world go with the root, and what is left of its rotation is a vector in its frame.

        A root that stands straight comes to C = Q Sᵀ; the rotation itself goes through S ⊗ Q, where Q keeps e_z.
        """
        root, matrix = self.layout.slice(_ROOT), entries.matrix
        straight = np.zeros(self.layout.dim)
        straight[root] = np.eye(3).ravel()
        back = entries(straight)[root].reshape(3, 3)  # its rows are the columns of C, so this is Cᵀ
        for field in self.layout:
            if field.kind is Kind.VECTOR:
                first = self.layout.slice(field.name).start
                for place in range(first, first + field.dim, 3):
                    matrix[place : place + 3] = back @ matrix[place : place + 3]
        own = np.eye(9)
        own[:3, :3] = entries.matrix[root, root][2::3, 2::3]
        matrix[root], matrix[root, root] = 0.0, own
        return EntryMap.of_matrix(matrix, entries.offset)


def root_frame(layout: Layout, target: str | None = None) -> Frame:
    """The frame of the root where observations hold its rotation and nothing but vectors turns; else `own_frame`."""
    turning = {field.kind for field in layout if field.kind is not Kind.SCALAR}
    if _holds(layout, _ROOT, 3) and turning == {Kind.VECTOR}:
        return RootFrame(layout)
    return own_frame(layout, target)


def _holds(layout: Layout, name: str, count: int | None = None) -> bool:
    """Whether a field of world vectors is there, with so many of them."""
    if name not in layout or layout.field(name).kind is not Kind.VECTOR:
        return False
    return count is None or layout.field(name).count == count
