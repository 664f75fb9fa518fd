"""Where MuJoCo's numbers lie: many small copies out of one `MjData` made as a single one.

Every array of an `MjData` is part of one block of memory. Numbers that an observation only copies can
therefore be taken by their places in that block with one NumPy call, instead of one call per array: the calls
are what such a copy costs.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import mujoco
import numpy as np
import numpy.typing as npt

Places = npt.NDArray[np.int64]
"""Places of numbers, counted in numbers from the beginning of the block."""
_WIDTH = 8  # bytes of a float64


def block(data: mujoco.MjData) -> npt.NDArray[np.float64]:
    """The block of an `MjData` as one flat view, which keeps the data alive as any other view of it does."""
    first = data.qpos  # the first array of the block
    return np.lib.stride_tricks.as_strided(first, (int(data.nbuffer) // _WIDTH,), (_WIDTH,), writeable=False)


class Copied(NamedTuple):
    """Numbers that are only copied: `block.take(places)`."""

    block: npt.NDArray[np.float64]
    places: Places

    @staticmethod
    def of(data: mujoco.MjData, array: np.ndarray, rows: Sequence[int] | None = None) -> Copied | None:
        """All of a view of MuJoCo's data, or these rows of it; None if it is of something else."""
        found = places(data, array)
        if found is None:
            return None
        return Copied(block(data), found if rows is None else found.reshape(array.shape)[list(rows)].ravel())


def places(data: mujoco.MjData, view: np.ndarray) -> Places | None:
    """The place of every number of a view, in the order of `view.ravel()`; None if it lies elsewhere."""
    if view.dtype != np.float64 or view.size == 0:
        return None
    offsets = np.zeros(view.shape, np.int64)
    for axis, (size, stride) in enumerate(zip(view.shape, view.strides, strict=True)):
        shape = [1] * view.ndim
        shape[axis] = size
        offsets += (np.arange(size) * stride).reshape(shape)
    begin = view.__array_interface__["data"][0] - data.qpos.__array_interface__["data"][0]
    first, last = begin + int(offsets.min()), begin + int(offsets.max())
    is_inside = first >= 0 and last < int(data.nbuffer) // _WIDTH * _WIDTH and begin % _WIDTH == 0
    return (begin + offsets.ravel()) // _WIDTH if is_inside else None
