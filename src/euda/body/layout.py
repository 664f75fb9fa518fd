"""Morphology → Layout: what every entry of an observation is.

A `Layout` is an ordered list of named fields. Offsets are derived, never written down, so the meaning
of entry `i` lives in one place. How a yaw acts on the entries is in `euda.body.yaw_action`, and nowhere else.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Iterator, Mapping
from typing import Any, TypeVar

import array_api_compat
import numpy as np

from euda.body.entry_map import Acting
from euda.body.field import Field, Kind, kinds
from euda.body.yaw_action import YawAction
from euda.body.yaws import checked_yaw
from euda.errors import LayoutError

Array = TypeVar("Array")


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
    def _yaws(self) -> YawAction:
        return YawAction.of(self.fields)

    @property
    def turns(self) -> bool:
        """Whether a yaw changes any entry at all."""
        return self._yaws.turns

    @functools.cached_property
    def has_choice(self) -> bool:
        """Whether any entry could say the same in another way, so that `canonical` has to choose."""
        return self._yaws.has_choice

    def rotate(self, x: Array, yaw: Any) -> Array:
        """Turn observations `x` [..., dim] by `yaw` (rad) about the vertical axis.

        `x` is a NumPy, JAX or PyTorch array of any batch shape; `yaw` is a number or an array that
        broadcasts against the batch shape. The result has the type, shape and dtype of `x`, and is `canonical`.
        """
        xp, array = self._checked(x)
        self._refuse_not_finite(array)
        return self._yaws.rotate(xp, array, checked_yaw(yaw, tuple(array.shape[:-1])))

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
        return self._yaws.canonical(*self._checked(x))

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
        return self._yaws.canonical(xp, element.on_observations(self)(array))

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
_SUFFIX = {
    Kind.VECTOR: (".x", ".y", ".z"),
    Kind.PLANAR: (".x", ".y"),
    Kind.HEADING: ("",),
    Kind.QUATERNION: (".w", ".x", ".y", ".z"),
    Kind.SCALAR: ("",),
}
