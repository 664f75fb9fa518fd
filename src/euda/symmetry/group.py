"""The finite group of a robot: its elements, their products, and what yaws add."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Iterator

import numpy as np

from euda.errors import EudaError
from euda.symmetry.element import Element
from euda.symmetry.search.pose import Pose


@dataclasses.dataclass(frozen=True, eq=False)
class Group:
    """Finitely many elements, identity first, closed under composition.

    The whole symmetry group of a robot on level ground is this times the yaws: each of its elements is one of
    `elements`, followed by a turn of the world about the vertical (`Element.turned`).

    >>> import euda
    >>> group = euda.symmetries(euda.make("quadruped_run").model)
    >>> group.order, sum(element.is_mirror for element in group)
    (8, 4)
    >>> group.elements[group.product(1, 1)].name
    'identity'
    """

    elements: tuple[Element, ...]
    pose: Pose = dataclasses.field(repr=False)
    """The pose at which they were found: all of them keep it."""
    size: float
    """Of the robot (m): from its centre of mass to its furthest part, in that pose."""
    nearest: str = ""
    """The best candidate that was rejected, and why: what to say where there is no symmetry at all."""

    @property
    def order(self) -> int:
        """How many elements, the identity included."""
        return len(self.elements)

    def __iter__(self) -> Iterator[Element]:
        return iter(self.elements)

    def __len__(self) -> int:
        return len(self.elements)

    @functools.cached_property
    def table(self) -> np.ndarray:
        """[order, order] places of the products: `table[i, j]` is that of element j, then element i."""
        return np.array([[self.index(second @ first) for first in self.elements] for second in self.elements])

    def product(self, second: int, first: int) -> int:
        """The place of `first`, then `second`."""
        return int(self.table[second, first])

    def inverse(self, element: int) -> int:
        """The place of what undoes an element."""
        return self.index(self.elements[element].inverse())

    def index(self, element: Element) -> int:
        """The place of an element."""
        place = next((i for i, known in enumerate(self.elements) if element.is_alike(known)), None)
        if place is None:
            raise EudaError(f"{element.name!r} is not an element of this group")
        return place
