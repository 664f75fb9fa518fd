"""Morphology → Layout: what every entry of an observation is, and how it turns under a yaw.

A `Layout` is an ordered list of named fields. Offsets are derived, never written down, so the meaning
of entry `i` lives in one place. `Layout.rotate` is the only code of the project that knows how a yaw
acts on an observation.
"""

from __future__ import annotations

import dataclasses
import enum
import functools
import math
from collections.abc import Iterator, Mapping
from typing import Any, Literal, TypeVar

import array_api_compat
import numpy as np

from euda.errors import LayoutError

Array = TypeVar("Array")
Frame = Literal["world", "body"]


class Kind(enum.Enum):
    """How an element of a field answers to a yaw α about the vertical (gravity) axis.

    >>> from euda import Kind
    >>> Kind("vector") is Kind.VECTOR
    True
    >>> [(kind.value, kind.width) for kind in Kind]
    [('vector', 3), ('planar', 2), ('heading', 1), ('quaternion', 4), ('scalar', 1)]
    """

    VECTOR = "vector"  #: three world components (x, y, z): turned about z
    PLANAR = "planar"  #: two world components (x, y): turned in the plane
    HEADING = "heading"  #: an absolute yaw angle in rad: α is added, wrapped to [-π, π)
    QUATERNION = "quaternion"  #: a world orientation (w, x, y, z): multiplied on the left
    SCALAR = "scalar"  #: unchanged: heights, joint angles and rates, every reading in a body frame

    @property
    def width(self) -> int:
        """Numbers per element."""
        return _WIDTH[self]


_WIDTH = {Kind.VECTOR: 3, Kind.PLANAR: 2, Kind.HEADING: 1, Kind.QUATERNION: 4, Kind.SCALAR: 1}

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


@dataclasses.dataclass(frozen=True)
class Field:
    """`count` elements of one kind under one name, for example the positions of seven limbs.

    A field that is read in a body frame and does not declare scalars is refused.

    >>> from euda import Field, Kind
    >>> Field("position", Kind.VECTOR, count=2, of=("thigh", "foot"), unit="m").dim
    6
    >>> Field("gyro", Kind.SCALAR, count=3, frame="body", unit="rad/s").dim
    3
    """

    name: str
    kind: Kind
    count: int = 1
    of: tuple[str, ...] = ()
    """What each element belongs to (limb, joint or sensor names); empty, or one name per element."""
    frame: Frame = "world"
    """The frame in which the numbers are expressed."""
    unit: str = ""

    def __post_init__(self) -> None:
        if not self.name or any(c.isspace() for c in self.name):
            raise LayoutError(f"a field needs a name without spaces, not {self.name!r}")
        if not isinstance(self.kind, Kind):
            raise LayoutError(f"field {self.name!r}: unknown kind {self.kind!r}, valid are {_kinds()}")
        if self.count < 1:
            raise LayoutError(f"field {self.name!r} needs a count of at least 1, not {self.count}")
        if self.of and len(self.of) != self.count:
            raise LayoutError(f"field {self.name!r} has {self.count} elements but {len(self.of)} names for them")
        if self.frame not in ("world", "body"):
            raise LayoutError(f"field {self.name!r}: unknown frame {self.frame!r}, valid are 'world' and 'body'")
        if self.frame == "body" and self.kind is not Kind.SCALAR:
            raise LayoutError(
                f"field {self.name!r} is read in a body frame and declared {self.kind.name}: the body turns with the"
                f" world, so its numbers do not change; declare it SCALAR with count {self.count * self.kind.width}"
            )

    @property
    def dim(self) -> int:
        """How many numbers the field occupies."""
        return self.count * self.kind.width


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
        """The same layout with one field changed."""
        self.slice(name)
        return Layout(tuple(dataclasses.replace(f, **changes) if f.name == name else f for f in self.fields))

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
    def _table(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Per entry: which angle, index of the partner entry, sign of the sine, and which are headings."""
        rows = [row for field in self.fields for _ in range(field.count) for row in _ACTION[field.kind]]
        angle, offset, sign = np.array(rows, dtype=np.int64).T
        heading = np.zeros(self.dim, dtype=bool)
        for field in self.fields:
            heading[self.slices[field.name]] = field.kind is Kind.HEADING
        return angle, np.arange(self.dim) + offset, sign, heading

    @property
    def turns(self) -> bool:
        """Whether a yaw changes any entry at all."""
        angle, _, _, heading = self._table
        return bool(angle.any() or heading.any())

    def rotate(self, x: Array, yaw: Any) -> Array:
        """Turn observations `x` [..., dim] by `yaw` (rad) about the vertical axis.

        `x` is a NumPy, JAX or PyTorch array of any batch shape; `yaw` is a number or an array that
        broadcasts against the batch shape. The result has the type, shape and dtype of `x`.
        """
        try:
            xp = array_api_compat.array_namespace(x)
        except TypeError:
            raise LayoutError(f"rotate needs a NumPy, JAX or PyTorch array, not {type(x).__name__}") from None
        array: Any = x
        if array.ndim < 1 or array.shape[-1] != self.dim:
            raise LayoutError(
                f"this layout describes observations of size {self.dim}, not an array of shape {tuple(array.shape)}"
            )
        if not xp.isdtype(array.dtype, "real floating"):
            raise LayoutError(f"rotate needs floating point observations, not {array.dtype}")
        device = array_api_compat.device(array)
        angle, partner, sign, heading = self._table
        like: dict[str, Any] = {"dtype": array.dtype, "device": device}
        yaws = xp.asarray(yaw, **like)[..., None]
        cosine, sine = xp.asarray(1.0 * (angle == _FIXED), **like), xp.asarray(0.0 * sign, **like)
        for which in sorted(set(angle.tolist()) - {_FIXED}):  # sine and cosine once per yaw, not once per entry
            theta, entries = _FRACTION[which] * yaws, 1.0 * (angle == which)
            cosine = cosine + xp.cos(theta) * xp.asarray(entries, **like)
            sine = sine + xp.sin(theta) * xp.asarray(entries * sign, **like)
        partners = xp.take(array, xp.asarray(partner, device=device), axis=-1)
        turned = array * cosine + partners * sine
        if heading.any():
            wrapped = xp.remainder(turned + yaws + math.pi, 2 * math.pi) - math.pi
            turned = xp.where(xp.asarray(heading, device=device), wrapped, turned)
        return turned

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
                    f"field {row.get('name')!r}: unknown kind {row['kind']!r}, valid are {_kinds()}"
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


_FRACTION = (0.0, 1.0, 0.5)  # of the yaw, indexed by _FIXED, _FULL, _HALF
_SUFFIX = {
    Kind.VECTOR: (".x", ".y", ".z"),
    Kind.PLANAR: (".x", ".y"),
    Kind.HEADING: ("",),
    Kind.QUATERNION: (".w", ".x", ".y", ".z"),
    Kind.SCALAR: ("",),
}


def _kinds() -> str:
    return ", ".join(kind.name for kind in Kind)
