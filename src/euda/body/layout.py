"""Morphology → Layout: what every entry of an observation is, and how it turns under a yaw.

A `Layout` is an ordered list of named fields. Offsets are derived, never written down, so the meaning
of entry `i` lives in one place. `Layout.rotate` is the only code of the project that knows how a yaw
acts on an observation.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple, TypeVar

import array_api_compat
import numpy as np

from euda.body.entry_map import Acting
from euda.body.field import Field, Kind, kinds
from euda.body.yaws import checked_yaw, wrap
from euda.errors import LayoutError

Array = TypeVar("Array")

# One row per entry of an element: (which angle, offset to the partner entry, sign of the sine). Every kind
# but HEADING is linear in the observation: x'_i = cos(θ) x_i + sign sin(θ) x_{i + offset}, with θ the yaw,
# half of it (quaternions), or zero.
_FIXED, _FULL, _HALF = 0, 1, 2
_ACTION: dict[Kind, tuple[tuple[int, int, int], ...]] = {
    Kind.VECTOR: ((_FULL, 1, -1), (_FULL, -1, 1), (_FIXED, 0, 0)),
    Kind.PLANAR: ((_FULL, 1, -1), (_FULL, -1, 1)),
    Kind.HEADING: ((_FIXED, 0, 0),),
    Kind.QUATERNION: ((_HALF, 3, -1), (_HALF, 1, -1), (_HALF, -1, 1), (_HALF, -3, 1)),
    Kind.SCALAR: ((_FIXED, 0, 0),),
}


class _Table(NamedTuple):
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


@dataclasses.dataclass(frozen=True)
class Layout:
    """The ordered fields of an observation; hashable, printable, and the owner of the yaw action.

    >>> import numpy as np
    >>> from euda import Field, Kind, Layout
    >>> layout = Layout((Field("velocity", Kind.VECTOR), Field("height", Kind.SCALAR)))
    >>> layout.dim, layout.slice("height")
    (4, slice(3, 4, None))
    >>> layout.rotate(np.array([1.0, 0.0, 0.5, 1.2]), np.pi / 2).round(12).tolist()
    [0.0, 1.0, 0.5, 1.2]
    """

    fields: tuple[Field, ...]

    def __post_init__(self) -> None:
        object.__setattr__(self, "fields", tuple(self.fields))
        names = [field.name for field in self.fields]
        if not names:
            raise LayoutError("a layout needs at least one field")
        repeated = sorted({name for name in names if names.count(name) > 1})
        if repeated:
            raise LayoutError(
                f"a layout names each field once, but {repeated[0]!r} appears {names.count(repeated[0])} times"
            )

    # -- shape -----------------------------------------------------------------------------------------

    @functools.cached_property
    def dim(self) -> int:
        """Size of the observation."""
        return sum(field.dim for field in self.fields)

    @functools.cached_property
    def slices(self) -> Mapping[str, slice]:
        """Where each field lies in the last axis of an observation."""
        result, start = {}, 0
        for field in self.fields:
            result[field.name] = slice(start, start + field.dim)
            start += field.dim
        return result

    def slice(self, name: str) -> slice:
        """Where the field of that name lies."""
        try:
            return self.slices[name]
        except KeyError:
            raise LayoutError(f"no field {name!r} in this layout: fields are {', '.join(self.slices)}") from None

    def field(self, name: str) -> Field:
        """The field of that name."""
        self.slice(name)
        return next(field for field in self.fields if field.name == name)

    def __contains__(self, name: object) -> bool:
        return name in self.slices

    def __iter__(self) -> Iterator[Field]:
        return iter(self.fields)

    def __len__(self) -> int:
        return len(self.fields)

    def replace(self, name: str, **changes: Any) -> Layout:
        """The same layout with one field changed; what its elements read is known no longer, unless it is given."""
        self.slice(name)
        changes = {"sources": ()} | changes
        return Layout(tuple(dataclasses.replace(f, **changes) if f.name == name else f for f in self.fields))

    def stacked(self, frames: int) -> Layout:
        """The layout of the last `frames` observations in one row, oldest first, each of which turns as one does.

        Fields of the newest keep their names, so whatever looks for one finds it; `height@2` is that of two steps ago.

        >>> from euda import Field, Kind, Layout
        >>> Layout((Field("velocity", Kind.VECTOR), Field("height", Kind.SCALAR))).stacked(2).slices
        {'velocity@1': slice(0, 3, None), 'height@1': slice(3, 4, None), \
'velocity': slice(4, 7, None), 'height': slice(7, 8, None)}
        """
        if isinstance(frames, bool) or not isinstance(frames, int) or frames < 1:
            raise LayoutError(f"a history is a whole number of frames of at least 1, not {frames!r}")
        past = [dataclasses.replace(field, name=f"{field.name}{AGE}{age}")
                for age in range(frames - 1, 0, -1) for field in self.fields]  # fmt: skip
        return Layout((*past, *self.fields))

    def entry_names(self) -> tuple[str, ...]:
        """A readable name for each number, for example `position[bfoot].x`."""
        names = []
        for field in self.fields:
            for element in range(field.count):
                tag = f"[{field.of[element]}]" if field.of else (f"[{element}]" if field.count > 1 else "")
                names += [f"{field.name}{tag}{suffix}" for suffix in _SUFFIX[field.kind]]
        return tuple(names)

    # -- the yaw action --------------------------------------------------------------------------------

    @functools.cached_property
    def _table(self) -> _Table:
        rows = [row for field in self.fields for _ in range(field.count) for row in _ACTION[field.kind]]
        angle, offset, sign = np.array(rows, dtype=np.int64).T
        entry = np.arange(self.dim)
        heading, quaternion, first = np.zeros(self.dim, bool), np.zeros(self.dim, bool), entry.copy()
        for field in self.fields:
            where = self.slices[field.name]
            heading[where] = field.kind is Kind.HEADING
            quaternion[where] = field.kind is Kind.QUATERNION
            first[where] = entry[where] - (entry[where] - where.start) % field.kind.width
        return _Table(angle, entry + offset, sign, heading, quaternion, first)

    @property
    def turns(self) -> bool:
        """Whether a yaw changes any entry at all."""
        return bool(self._table.angle.any() or self._table.heading.any())

    @functools.cached_property
    def has_choice(self) -> bool:
        """Whether any entry could say the same in another way, so that `canonical` has to choose."""
        return bool(self._table.heading.any() or self._table.quaternion.any())

    def rotate(self, x: Array, yaw: Any) -> Array:
        """Turn observations `x` [..., dim] by `yaw` (rad) about the vertical axis.

        `x` is a NumPy, JAX or PyTorch array of any batch shape; `yaw` is a number or an array that
        broadcasts against the batch shape. The result has the type, shape and dtype of `x`, and is `canonical`.
        """
        xp, array = self._checked(x)
        self._refuse_not_finite(array)
        table, device = self._table, array_api_compat.device(array)
        like: dict[str, Any] = {"dtype": array.dtype, "device": device}
        yaws = xp.asarray(checked_yaw(yaw, tuple(array.shape[:-1])), **like)[..., None]
        cosine, sine = xp.asarray(1.0 * (table.angle == _FIXED), **like), xp.asarray(0.0 * table.sign, **like)
        for which in sorted(set(table.angle.tolist()) - {_FIXED}):  # sine and cosine once per yaw, not once per entry
            theta, entries = _FRACTION[which] * yaws, 1.0 * (table.angle == which)
            cosine = cosine + xp.cos(theta) * xp.asarray(entries, **like)
            sine = sine + xp.sin(theta) * xp.asarray(entries * table.sign, **like)
        partners = xp.take(array, xp.asarray(table.partner, device=device), axis=-1)
        turned = array * cosine + partners * sine
        if table.heading.any():
            turned = turned + yaws * xp.asarray(1.0 * table.heading, **like)
        return self._canonical(xp, turned)

    def canonical(self, x: Array) -> Array:
        """The same observations with every angle in [-π, π) and every quaternion with w ≥ 0.

        An angle and the same angle one turn on, a quaternion and its negative, say the same. Observations and turned
        observations are the same numbers only if both choose alike: `rotate` returns, and environments observe, this
        choice. Numbers that are canonical already keep their bits.

        >>> import numpy as np
        >>> from euda import Field, Kind, Layout
        >>> layout = Layout((Field("shoulder", Kind.HEADING), Field("orientation", Kind.QUATERNION)))
        >>> layout.canonical(np.array([2 * np.pi + 0.5, -0.8, 0.0, 0.0, 0.6])).round(12).tolist()
        [0.5, 0.8, -0.0, -0.0, -0.6]
        """
        return self._canonical(*self._checked(x))

    def _canonical(self, xp: Any, array: Any) -> Any:
        table, device = self._table, array_api_compat.device(array)
        if table.heading.any():
            array = xp.where(xp.asarray(table.heading, device=device), wrap(xp, array), array)
        if table.quaternion.any():
            first = xp.take(array, xp.asarray(table.first, device=device), axis=-1)
            array = xp.where(xp.asarray(table.quaternion, device=device) & (first < 0), -array, array)
        return array

    def act(self, element: Acting, x: Array) -> Array:
        """The image of observations `x` [..., dim] under an element of the robot's symmetry group (see `symmetries`).

        >>> import euda
        >>> env = euda.make("walker_run", seed=0)
        >>> mirror = euda.symmetries(env.model).elements[1]
        >>> observation = env.reset()[0]
        >>> image = env.layout.act(mirror, observation)
        >>> feet = [env.layout.entry_names().index(f"position[{side}_foot].x") for side in ("left", "right")]
        >>> bool((image[feet] == observation[feet[::-1]]).all())
        True
        """
        xp, array = self._checked(x)
        self._refuse_not_finite(array)
        return self._canonical(xp, element.on_observations(self)(array))

    def _checked(self, x: Any) -> tuple[Any, Any]:
        """The array namespace of `x`, and `x`, which is one observation or a batch of them."""
        try:
            xp = array_api_compat.array_namespace(x)
        except TypeError:
            raise LayoutError(f"observations are a NumPy, JAX or PyTorch array, not {type(x).__name__}") from None
        if x.ndim < 1 or x.shape[-1] != self.dim:
            raise LayoutError(
                f"this layout describes observations of size {self.dim}, not an array of shape {tuple(x.shape)}"
            )
        if not xp.isdtype(x.dtype, "real floating"):
            raise LayoutError(f"observations are floating point numbers, not {x.dtype}")
        return xp, x

    def _refuse_not_finite(self, array: Any) -> None:
        """Of NumPy's numbers only: JAX's may be tracers, and what is on a device would have to be waited for."""
        if isinstance(array, np.ndarray) and not np.isfinite(array).all():
            bad = np.flatnonzero(~np.isfinite(array).reshape(-1, self.dim).all(axis=0))
            names = [self.entry_names()[i] for i in bad[:3]] + (["…"] if len(bad) > 3 else [])
            raise LayoutError(f"observations must be finite, and these entries are not: {', '.join(names)}")

    # -- print and store -------------------------------------------------------------------------------

    def __str__(self) -> str:
        rows = [("field", "kind", "count", "entries", "frame", "unit", "of")]
        for field in self.fields:
            where = self.slices[field.name]
            entries = f"{where.start}:{where.stop}"
            rows.append(
                (field.name, field.kind.value, str(field.count), entries, field.frame, field.unit, " ".join(field.of))
            )
        widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]) - 1)]
        lines = [
            "  ".join([*(cell.ljust(w) for cell, w in zip(row, widths, strict=False)), row[-1]]).rstrip()
            for row in rows
        ]
        return "\n".join([*lines, f"{self.dim} numbers in {len(self.fields)} fields"])

    def to_json(self) -> list[dict[str, Any]]:
        """The fields as plain JSON values, with their derived offsets."""
        return [
            {"name": f.name, "kind": f.kind.value, "count": f.count, "start": self.slices[f.name].start, "dim": f.dim,
             "frame": f.frame, "unit": f.unit, "of": list(f.of)}
            for f in self.fields
        ]  # fmt: skip

    @staticmethod
    def from_json(rows: list[dict[str, Any]]) -> Layout:
        """The layout that `to_json` wrote."""
        fields = []
        for row in rows:
            try:
                kind = Kind(row["kind"])
            except ValueError:
                raise LayoutError(
                    f"field {row.get('name')!r}: unknown kind {row['kind']!r}, valid are {kinds()}"
                ) from None
            except (KeyError, TypeError):
                raise LayoutError(f"a stored field needs at least name and kind, not {row!r}") from None
            fields.append(
                Field(
                    row["name"],
                    kind,
                    row.get("count", 1),
                    tuple(row.get("of", ())),
                    row.get("frame", "world"),
                    row.get("unit", ""),
                )
            )
        return Layout(tuple(fields))


AGE = "@"
"""Between the name of a field and how many steps ago it was, in a history."""
_FRACTION = (0.0, 1.0, 0.5)  # of the yaw, indexed by _FIXED, _FULL, _HALF
_SUFFIX = {
    Kind.VECTOR: (".x", ".y", ".z"),
    Kind.PLANAR: (".x", ".y"),
    Kind.HEADING: ("",),
    Kind.QUATERNION: (".w", ".x", ".y", ".z"),
    Kind.SCALAR: ("",),
}
