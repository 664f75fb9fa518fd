"""Which core a run is pinned to, when several studies run on one machine."""

from __future__ import annotations

import fcntl
import os
import tempfile
from pathlib import Path


class Cores:
    """Cores of this machine, preferably such as no other launch has claimed; `release` gives them back.

    A claim is a lock on a small file, which the kernel frees when the process ends, however it ends. Where such
    files cannot be, nothing is claimed, and where all cores are taken, runs share them.
    """

    def __init__(self, count: int, folder: Path | None = None) -> None:
        allowed = sorted(os.sched_getaffinity(0))
        place = folder or Path(tempfile.gettempdir()) / f"euda-cores-{os.getuid()}"
        self._claims: dict[int, int] = {}
        for core in allowed:
            if len(self._claims) < count and (descriptor := _claim(place, core)) is not None:
                self._claims[core] = descriptor
        taken = [core for core in allowed if core not in self._claims]
        self.numbers = sorted([*self._claims, *taken[: count - len(self._claims)]])

    def release(self) -> None:
        """Others may have them."""
        while self._claims:
            os.close(self._claims.popitem()[1])


def _claim(folder: Path, core: int) -> int | None:
    """The descriptor that holds the lock of a core, or None if somebody else has it."""
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
        descriptor = os.open(folder / str(core), os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
    except OSError:
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(descriptor)
        return None
    return descriptor
