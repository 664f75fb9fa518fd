"""Whether the simulator packages are there and fit each other; they are extras and not in the lock."""

from __future__ import annotations

import importlib.metadata

from euda.errors import EudaError

WANTED = {"mujoco-mjx": (3, 17), "playground": (0, 2), "brax": (0, 14)}
"""The first versions that were tested; of playground and brax only these, because theirs are versions before 1."""
_INSTALL = "pip install 'euda[mjx]'"


def require(package: str) -> None:
    """Refuse a package that is missing or does not fit."""
    found, wanted = _installed(package), WANTED[package]
    needed = ".".join(map(str, wanted))
    if found[:2] < wanted or (wanted[0] == 0 and found[:2] != wanted):
        raise EudaError(f"euda.mjx was tested with {package} {needed}, not {_text(found)}: {_INSTALL}")
    if package == "mujoco-mjx" and found != (simulator := _installed("mujoco")):
        right = _text(simulator)
        raise EudaError(f"mujoco-mjx {_text(found)} does not fit mujoco {right}: pip install mujoco-mjx=={right}")


def _installed(package: str) -> tuple[int, ...]:
    try:
        text = importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        raise EudaError(f"this needs the package {package}: {_INSTALL}") from None
    return tuple(int(part) for part in text.split(".")[:3] if part.isdigit())


def _text(version: tuple[int, ...]) -> str:
    return ".".join(map(str, version))
