"""Layouts by name: what the entries of a dict observation are, and how all of them turn together."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping
from typing import Any

from euda.body.entry_map import Acting
from euda.body.layout import Layout
from euda.errors import LayoutError


class DictLayout(Mapping[Any, Layout | None]):
    """A layout for each entry of an observation that is a dict; None for one that no symmetry changes.

    Arrays are [..., dim], or [..., frames, dim] for a history that is not in one row. A yaw is the same for all.

    >>> import numpy as np
    >>> from euda import Field, Kind, Layout
    >>> from euda.body.dict_layout import DictLayout
    >>> limb, goal = Layout((Field("height", Kind.SCALAR),)), Layout((Field("goal", Kind.VECTOR),))
    >>> layout = DictLayout({"observation": limb, "desired_goal": goal})
    >>> x = {"observation": np.array([0.3]), "desired_goal": np.array([1.0, 0.0, 0.0])}
    >>> {name: part.round(6).tolist() for name, part in layout.rotate(x, np.pi / 2).items()}
    {'observation': [0.3], 'desired_goal': [0.0, 1.0, 0.0]}
    """

    def __init__(self, parts: Mapping[Any, Layout | None]) -> None:
        if not parts:
            raise LayoutError("a dict of layouts has at least one entry")
        for name, part in parts.items():
            if part is not None and not isinstance(part, Layout):
                raise LayoutError(
                    f"entry {name!r} of a dict of layouts is a Layout, or None if it never turns: {part!r}"
                )
        self._parts = dict(parts)

    def __getitem__(self, name: Hashable) -> Layout | None:
        return self._parts[name]

    def __iter__(self) -> Iterator[Any]:
        return iter(self._parts)

    def __len__(self) -> int:
        return len(self._parts)

    def __hash__(self) -> int:
        return hash(tuple(self._parts.items()))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, DictLayout) and self._parts == other._parts

    @property
    def turns(self) -> bool:
        """Whether a yaw changes any entry at all."""
        return any(part is not None and part.turns for part in self._parts.values())

    def rotate(self, x: Mapping[Any, Any], yaw: Any) -> dict[Any, Any]:
        """Turn observations by `yaw` (rad), a number or one for each row."""
        return {name: array if part is None else part.rotate(array, aligned(yaw, array, part))
                for name, part, array in self.matched(x)}  # fmt: skip

    def act(self, element: Acting, x: Mapping[Any, Any]) -> dict[Any, Any]:
        """The image of observations under an element of the robot's symmetry group."""
        return {name: array if part is None else part.act(element, array) for name, part, array in self.matched(x)}

    def stacked(self, frames: int) -> DictLayout:
        """The same for histories in one row."""
        return DictLayout({name: None if part is None else part.stacked(frames) for name, part in self.items()})

    def matched(self, x: Mapping[Any, Any]) -> list[tuple[Any, Layout | None, Any]]:
        """Name, layout and array of each entry; refuses observations that have others."""
        if not isinstance(x, Mapping) or x.keys() != self._parts.keys():
            found = ", ".join(map(repr, x)) if isinstance(x, Mapping) else type(x).__name__
            raise LayoutError(f"this dict of layouts describes {', '.join(map(repr, self))}, not {found}")
        return [(name, part, x[name]) for name, part in self._parts.items()]


def aligned(yaw: Any, array: Any, layout: Layout) -> Any:
    """Yaws with an axis of one for each axis of the array between its rows and its entries: for frames and points."""
    shape = getattr(yaw, "shape", ())
    extra = len(array.shape) - 1 - len(shape)
    return yaw.reshape(*shape, *[1] * extra) if shape and extra > 0 else yaw
