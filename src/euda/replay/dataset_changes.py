"""What the copies of a dataset are changed by: an element of the robot's finite group each, and a yaw per episode."""

from __future__ import annotations

import dataclasses
import math
from typing import Any

import numpy as np
import numpy.typing as npt

from euda.body.dict_layout import aligned
from euda.body.entry_map import Acting
from euda.body.layout import Layout
from euda.errors import EudaError
from euda.replay.batches import check_actions


@dataclasses.dataclass(frozen=True)
class Changes:
    """What the copies of a dataset are changed by."""

    layout: Layout
    elements: tuple[Acting, ...]
    yaws: bool
    generator: np.random.Generator

    def refuse_repeats(self, copies: int) -> None:
        """Without yaws there are only as many different copies as elements."""
        if not self.yaws and copies > len(self.elements):
            raise EudaError(
                f"{copies} copies would repeat each other: without yaws there are {len(self.elements)}, one for each"
                " element"
            )

    def draw(self, episodes: int) -> npt.NDArray[np.float64] | None:
        """A yaw for each episode of a copy."""
        return self.generator.uniform(-math.pi, math.pi, episodes) if self.yaws else None

    def observations(self, copy: int, x: npt.NDArray[Any], yaw: Any) -> npt.NDArray[Any]:
        """Observations [N, dim] of a copy, numbered from 1."""
        element = self._element(copy)
        image = x if element is None else self.layout.act(element, x)
        return image if yaw is None else self.layout.rotate(image, aligned(yaw, image, self.layout))

    def actions(self, copy: int, a: Any) -> Any:
        """Actions [N, m] of a copy."""
        element = self._element(copy)
        if element is None:
            return a
        array = np.asarray(a)
        if array.ndim != 2 or array.dtype.kind != "f":
            raise EudaError(
                f"a mirror exchanges motors: it needs actions of shape [N, m] in floating point numbers, not"
                f" {list(array.shape)} of {array.dtype}"
            )
        check_actions(self.elements, array.shape[1])
        return element.on_actions()(array)

    def _element(self, copy: int) -> Acting | None:
        cycle = [*self.elements, None] if self.yaws else self.elements
        return cycle[(copy - 1) % len(cycle)]
