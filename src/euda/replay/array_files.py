"""Named arrays in memory-mapped files of a folder: made with all their room, grown, and never opened half."""

from __future__ import annotations

import errno
import math
import os
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import numpy.typing as npt

from euda import operating_system
from euda.errors import EudaError

Shapes = Mapping[str, tuple[int, ...]]
"""By name; the first size is the number of rows."""
Types = Mapping[str, npt.DTypeLike]


def open_arrays(folder: Path, shapes: Shapes, types: Types) -> dict[str, npt.NDArray]:
    """One array per name; files that are there keep what they hold, and new rows are zeros."""
    sizes = {folder / f"{name}.bin": _bytes(shape, types[name]) for name, shape in shapes.items()}
    _allocate(folder, sizes)
    maps = (
        np.memmap(path, types[name], "r+", shape=shape)
        for path, (name, shape) in zip(sizes, shapes.items(), strict=True)
    )
    return {name: array.view(np.ndarray) for name, array in zip(shapes, maps, strict=True)}


def refuse_missing(folder: Path, shapes: Shapes, types: Types) -> None:
    """Say which file is gone or too short to hold these rows: opened anyway, it would give rows of zeros."""
    for name, shape in shapes.items():
        path, wanted = folder / f"{name}.bin", _bytes(shape, types[name])
        found = path.stat().st_size if path.is_file() else None
        if found is None or found < wanted:
            state = "is gone" if found is None else f"has {found} of {wanted} bytes"
            raise EudaError(
                f"{str(path)!r} {state}, so its replay is lost and it cannot be resumed: restore the file, or"
                " start elsewhere with --out (its policy can still be evaluated)"
            )


def _bytes(shape: tuple[int, ...], type_: npt.DTypeLike) -> int:
    return math.prod(shape) * np.dtype(type_).itemsize


def _allocate(folder: Path, sizes: Mapping[Path, int]) -> None:
    """Make the files with all their blocks on the disk, so that a full disk is an error now and not a SIGBUS later."""
    existing = [path for path in sizes if path.exists()]
    made: list[Path] = []
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for path, size in sizes.items():
            made += [] if path in existing else [path]
            with open(path, "ab") as file:
                operating_system.reserve(file, size)
    except OSError as error:
        for path in made:
            path.unlink(missing_ok=True)
        need = sum(sizes.values()) / 1e9
        is_full = error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
        reason = "too little space is left" if is_full else os.strerror(error.errno) if error.errno else str(error)
        raise EudaError(f"the replay buffer needs {need:.3g} GB in {folder}: {reason}") from None
