"""Transition → Transition in other people's loops: which rows of a batch are turned, and by which yaws.

`augmentation` does this inside our own jitted update. Adapters do it here, on NumPy or PyTorch arrays, with a
generator of their own, so that the random numbers of the host program stay as they were.
"""

from __future__ import annotations

import math
import numbers
from typing import Any

import array_api_compat
import numpy as np
import numpy.typing as npt

from euda.body.layout import Layout
from euda.errors import EudaError, LayoutError

WHERE = "take env.get_wrapper_attr('layout') of an euda environment or of LimbObservation"


class Turner:
    """Turns exactly round(share * B) rows of a batch, each by a yaw of its own, uniform in [0, 2π)."""

    def __init__(self, layout: Layout, share: float, generator: np.random.Generator) -> None:
        if not isinstance(layout, Layout):
            raise LayoutError(f"rotation needs the layout of the observations, not {layout!r}: {WHERE}")
        if isinstance(share, bool) or not isinstance(share, numbers.Real) or not 0 <= float(share) <= 1:
            raise EudaError(f"share must be between 0 and 1, not {share!r}")
        self.layout, self.share, self.generator = layout, float(share), generator

    @property
    def is_idle(self) -> bool:
        """Whether nothing is ever turned."""
        return self.share == 0 or not self.layout.turns

    def turn(self, *arrays: Any) -> tuple[Any, ...]:
        """Turn the same rows of every array [B, ..., dim] by the same yaws; the given arrays stay as they are."""
        rows = spread(len(arrays[0]), self.share)
        yaws = self.generator.uniform(0.0, 2 * math.pi, len(rows))
        if self.is_idle or not len(rows):
            return arrays
        xp = array_api_compat.array_namespace(*arrays)
        # All arrays at once, because on batches of this size the number of calls is what takes time.
        chosen = xp.stack([array[rows] for array in arrays], axis=1)
        turned = self.layout.rotate(chosen, yaws.reshape(-1, *[1] * (chosen.ndim - 2)))
        results = [xp.asarray(array, copy=True) for array in arrays]
        for position, result in enumerate(results):
            result[rows] = turned[:, position]
        return tuple(results)


def spread(size: int, share: float) -> npt.NDArray[np.int64]:
    """round(share * size) rows, evenly spread.

    Rows of a batch are drawn independently, so any fixed choice of them is as random as another. SBX draws the
    batches of several gradient steps at once and cuts them apart: spread evenly, each of them gets its share.
    """
    count = round(share * size)
    return np.flatnonzero(np.diff(np.arange(size + 1) * count // max(size, 1)))


def check_fit(layout: Layout, shape: tuple[int, ...], dtype: Any) -> None:
    """Refuse observations of a shape or type that the layout does not describe."""
    dim = layout.dim
    if len(shape) == 2 and shape[1] == dim and shape[0] > 1:
        raise LayoutError(f"observations of shape {shape} are {shape[0]} stacked frames of {dim} numbers: {_STACKED}")
    if len(shape) != 1:
        raise LayoutError(
            f"the layout describes flat observations of {dim} numbers, not arrays of shape {shape}: observe through"
            " an euda environment or LimbObservation"
        )
    if shape[0] != dim and shape[0] % dim == 0:
        raise LayoutError(
            f"observations of {shape[0]} numbers look like {shape[0] // dim} stacked frames of {dim}: {_STACKED}"
        )
    if shape[0] != dim:
        raise LayoutError(
            f"the layout describes {dim} numbers, but observations have {shape[0]}: take the layout of the same"
            " environment, with the same features"
        )
    if "float" not in str(dtype):
        raise LayoutError(f"observations that turn are floating point numbers, not {dtype}")


_STACKED = "leave the stacking out (limb features hold velocities already), or write a Layout of all frames"
