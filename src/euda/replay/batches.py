"""Transition → Transition in other people's loops: which rows of a batch are changed, and by which symmetry.

`augmentation` does this inside our own jitted update. Adapters do it here, on NumPy or PyTorch arrays, with a
generator of their own, so that the random numbers of the host program stay as they were.
"""

from __future__ import annotations

import dataclasses
import functools
import math
import numbers
from collections.abc import Sequence
from typing import Any

import array_api_compat
import numpy as np
import numpy.typing as npt

from euda.body.dict_layout import DictLayout, aligned
from euda.body.entry_map import Acting
from euda.body.layout import Layout
from euda.errors import EudaError, LayoutError

WHERE = "take env.get_wrapper_attr('layout') of an euda environment or of LimbObservation"
ELEMENTS = "take those of euda.task_symmetries(env), which were tried in the simulator"


class Turner:
    """Changes exactly round(share * B) rows of a batch, each by a symmetry of its own.

    That is an element of the finite group of the identity and `elements`, all alike, and then (unless `yaws` is false)
    a yaw, uniform in [-π, π).
    """

    def __init__(
        self, layout: Layout | DictLayout, share: float, generator: np.random.Generator,
        elements: Sequence[Acting] = (), yaws: bool = True,
    ) -> None:  # fmt: skip
        if not isinstance(layout, Layout | DictLayout):
            raise LayoutError(f"rotation needs the layout of the observations, not {layout!r}: {WHERE}")
        if isinstance(share, bool) or not isinstance(share, numbers.Real) or not 0 <= float(share) <= 1:
            raise EudaError(f"share must be between 0 and 1, not {share!r}")
        self.layout, self.share, self.generator = layout, float(share), generator
        self.elements, self.yaws = checked_elements(layout, elements), bool(yaws)

    @property
    def is_idle(self) -> bool:
        """Whether nothing is ever changed."""
        return self.share == 0 or not (self.elements or (self.yaws and self.layout.turns))

    def turn(self, *observations: Any, actions: Sequence[Any] = ()) -> tuple[Any, ...]:
        """Change the same rows of all alike; what was given stays as it is. Returns observations, then actions.

        Each observation is an array [B, ..., dim], or, with a dict of layouts, a dict of such; actions are [B, ..., m].
        """
        layout, first = self.layout, observations[0]
        rows = spread(len(first if isinstance(layout, Layout) else next(iter(first.values()))), self.share)
        yaws = self.generator.uniform(-math.pi, math.pi, len(rows)) if self.yaws else None
        drawn = self.generator.integers(len(self.elements) + 1, size=len(rows)) if self.elements else None
        if self.is_idle or not len(rows):
            return (*observations, *actions)
        change = _Change(rows, yaws, drawn, self.elements)
        mapped = tuple(change.actions(array) for array in actions)
        if isinstance(layout, Layout):
            return (*change.observations(layout, observations), *mapped)
        results: tuple[dict[Any, Any], ...] = tuple({} for _ in observations)
        for name, part, *arrays in zip(*_columns(layout, observations), strict=True):
            changed = arrays if part is None else change.observations(part, arrays)
            for result, array in zip(results, changed, strict=True):
                result[name] = array
        return (*results, *mapped)


@dataclasses.dataclass(frozen=True)
class _Change:
    """What was drawn for a batch."""

    rows: npt.NDArray[np.int64]
    yaws: npt.NDArray[np.float64] | None
    drawn: npt.NDArray[np.int64] | None
    """For each of the rows the number of an element, 0 for the identity."""
    elements: tuple[Acting, ...]

    def observations(self, layout: Layout, arrays: Sequence[Any]) -> tuple[Any, ...]:
        """Copies of arrays [B, ..., dim] with these rows changed."""
        xp = array_api_compat.array_namespace(*arrays)
        # All arrays at once, because on batches of this size the number of calls is what takes time.
        chosen = xp.stack([array[self.rows] for array in arrays], axis=1)
        chosen = self._relabelled(chosen, [functools.partial(layout.act, element) for element in self.elements])
        if self.yaws is not None:
            chosen = layout.rotate(chosen, aligned(self.yaws, chosen, layout))
        return tuple(self._with(array, chosen[:, i]) for i, array in enumerate(arrays))

    def actions(self, array: Any) -> Any:
        """A copy of actions [B, ..., m] with these rows changed."""
        return self._with(array, self._relabelled(array[self.rows], [one.on_actions() for one in self.elements]))

    def _relabelled(self, chosen: Any, maps: Sequence[Any]) -> Any:
        for number, change in enumerate(maps, start=1):
            (mine,) = np.nonzero(self.drawn == number)
            if len(mine):
                chosen[mine] = change(chosen[mine])
        return chosen

    def _with(self, array: Any, changed: Any) -> Any:
        result = array_api_compat.array_namespace(array).asarray(array, copy=True)
        result[self.rows] = changed
        return result


def _columns(layout: DictLayout, observations: Sequence[Any]) -> list[list[Any]]:
    """Names, layouts, and the arrays of each observation, all in the same order."""
    matched = [layout.matched(observation) for observation in observations]
    names, parts = ([one[k] for one in matched[0]] for k in (0, 1))
    return [names, parts, *([array for _, _, array in each] for each in matched)]


def checked_elements(layout: Layout | DictLayout, elements: Sequence[Acting]) -> tuple[Acting, ...]:
    """Refuse what is no element, and elements that cannot act on observations of this layout."""
    if not isinstance(elements, Sequence):
        raise EudaError(f"elements are a list, not {type(elements).__name__}: {ELEMENTS}")
    for element in elements:
        if not (hasattr(element, "on_observations") and hasattr(element, "on_actions")):
            raise EudaError(f"{element!r} is no element of a symmetry group: {ELEMENTS}")
        for part in (layout,) if isinstance(layout, Layout) else layout.values():
            if part is not None:
                element.on_observations(part)
    return tuple(elements)


def check_actions(elements: Sequence[Acting], size: int) -> None:
    """Refuse actions of another size than the elements act on."""
    for element in elements:
        if (actuators := len(element.on_actions().offset)) != size:
            raise EudaError(f"actions have {size} numbers, but the elements act on {actuators} actuators: {ELEMENTS}")


def spread(size: int, share: float) -> npt.NDArray[np.int64]:
    """round(share * size) rows, evenly spread.

    Rows of a batch are drawn independently, so any fixed choice of them is as random as another. SBX draws the
    batches of several gradient steps at once and cuts them apart: spread evenly, each of them gets its share.
    """
    count = round(share * size)
    return np.flatnonzero(np.diff(np.arange(size + 1) * count // max(size, 1)))


def check_fit(layout: Layout, shape: tuple[int, ...], dtype: Any) -> None:
    """Refuse observations of a shape or type that the layout does not describe; [frames, dim] is a history."""
    dim = layout.dim
    if len(shape) not in (1, 2):
        raise LayoutError(
            f"the layout describes observations of {dim} numbers, or frames of them, not arrays of shape {shape}:"
            " observe through an euda environment or LimbObservation"
        )
    if shape[-1] != dim and shape[-1] % dim == 0:
        frames = shape[-1] // dim
        raise LayoutError(
            f"observations of {shape[-1]} numbers look like {frames} stacked frames of {dim}: give the layout of all"
            f" of them, layout.stacked({frames})"
        )
    if shape[-1] != dim:
        raise LayoutError(
            f"the layout describes {dim} numbers, but observations have {shape[-1]}: take the layout of the same"
            " environment, with the same features"
        )
    if "float" not in str(dtype):
        raise LayoutError(f"observations that turn are floating point numbers, not {dtype}")
