"""How a yaw acts on the entries of an observation: the only code of the project that knows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import array_api_compat
import numpy as np

from euda.body.field import Field, Kind
from euda.body.yaws import wrap

# One row per entry of an element: (which angle, offset to the partner entry, sign of the sine). Every kind
# but HEADING is linear in the observation: x'_i = cos(θ) x_i + sign sin(θ) x_{i + offset}, with θ the yaw,
# half of it (quaternions), or zero.
_FIXED, _FULL, _HALF = 0, 1, 2
_FRACTION = (0.0, 1.0, 0.5)  # of the yaw, indexed by _FIXED, _FULL, _HALF
_ACTION: dict[Kind, tuple[tuple[int, int, int], ...]] = {
    Kind.VECTOR: ((_FULL, 1, -1), (_FULL, -1, 1), (_FIXED, 0, 0)),
    Kind.PLANAR: ((_FULL, 1, -1), (_FULL, -1, 1)),
    Kind.HEADING: ((_FIXED, 0, 0),),
    Kind.QUATERNION: ((_HALF, 3, -1), (_HALF, 1, -1), (_HALF, -1, 1), (_HALF, -3, 1)),
    Kind.SCALAR: ((_FIXED, 0, 0),),
}


class YawAction(NamedTuple):
    """How each entry of an observation turns; arrays of length dim."""

    angle: np.ndarray
    """Which angle: none, the yaw, or half of it."""
    partner: np.ndarray
    """Index of the entry that it mixes with."""
    sign: np.ndarray
    """Of the sine."""
    heading: np.ndarray
    """Whether it is an angle to which the yaw is added."""
    quaternion: np.ndarray
    """Whether it is part of a quaternion."""
    first: np.ndarray
    """Index of the first entry of its element: w of a quaternion."""

    @staticmethod
    def of(fields: Sequence[Field]) -> YawAction:
        """The action on observations that consist of these fields, one after the other."""
        rows = [row for field in fields for _ in range(field.count) for row in _ACTION[field.kind]]
        angle, offset, sign = np.array(rows, dtype=np.int64).T
        entry = np.arange(len(rows))
        heading, quaternion, first = np.zeros(len(rows), bool), np.zeros(len(rows), bool), entry.copy()
        start = 0
        for field in fields:
            where = slice(start, start + field.dim)
            heading[where] = field.kind is Kind.HEADING
            quaternion[where] = field.kind is Kind.QUATERNION
            first[where] = entry[where] - (entry[where] - start) % field.kind.width
            start += field.dim
        return YawAction(angle, entry + offset, sign, heading, quaternion, first)

    @property
    def turns(self) -> bool:
        """Whether a yaw changes any entry at all."""
        return bool(self.angle.any() or self.heading.any())

    @property
    def has_choice(self) -> bool:
        """Whether any entry could say the same in another way."""
        return bool(self.heading.any() or self.quaternion.any())

    def rotate(self, xp: Any, array: Any, yaw: Any) -> Any:
        """Observations [..., dim] turned by yaws (rad) that broadcast against the batch shape, and canonical."""
        device = array_api_compat.device(array)
        like: dict[str, Any] = {"dtype": array.dtype, "device": device}
        yaws = xp.asarray(yaw, **like)[..., None]
        cosine, sine = xp.asarray(1.0 * (self.angle == _FIXED), **like), xp.asarray(0.0 * self.sign, **like)
        for which in sorted(set(self.angle.tolist()) - {_FIXED}):  # sine and cosine once per yaw, not once per entry
            theta, entries = _FRACTION[which] * yaws, 1.0 * (self.angle == which)
            cosine = cosine + xp.cos(theta) * xp.asarray(entries, **like)
            sine = sine + xp.sin(theta) * xp.asarray(entries * self.sign, **like)
        partners = xp.take(array, xp.asarray(self.partner, device=device), axis=-1)
        turned = array * cosine + partners * sine
        if self.heading.any():
            turned = turned + yaws * xp.asarray(1.0 * self.heading, **like)
        return self.canonical(xp, turned)

    def canonical(self, xp: Any, array: Any) -> Any:
        """The same observations with every angle in [-π, π) and every quaternion with w ≥ 0."""
        device = array_api_compat.device(array)
        if self.heading.any():
            array = xp.where(xp.asarray(self.heading, device=device), wrap(xp, array), array)
        if self.quaternion.any():
            first = xp.take(array, xp.asarray(self.first, device=device), axis=-1)
            array = xp.where(xp.asarray(self.quaternion, device=device) & (first < 0), -array, array)
        return array
