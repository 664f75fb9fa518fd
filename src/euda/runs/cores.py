"""Which core a run is pinned to, when several runs and studies share one machine."""

from __future__ import annotations

import tempfile
from pathlib import Path

from euda import operating_system
from euda.operating_system import Lock


class Cores:
    """Cores of this machine, preferably such as no other launch has claimed; `release` gives them back.

    A claim is a lock on a small file, which the system frees when the process ends, however it ends. Where such
    files cannot be, nothing is claimed, and where all cores are taken, runs share them.
    """

    def __init__(self, count: int, folder: Path | None = None, only: int | None = None) -> None:
        allowed = operating_system.cores() if only is None else [only]
        place = folder or Path(tempfile.gettempdir()) / f"euda-cores-{operating_system.user()}"
        self._claims: dict[int, Lock] = {}
        for core in allowed:
            if len(self._claims) < count and (claim := _claim(place, core)) is not None:
                self._claims[core] = claim
        taken = [core for core in allowed if core not in self._claims]
        self.numbers = sorted([*self._claims, *taken[: count - len(self._claims)]])

    @property
    def claimed(self) -> list[int]:
        """Those that nobody else has."""
        return sorted(self._claims)

    def release(self) -> None:
        """Others may have them."""
        while self._claims:
            self._claims.popitem()[1].release()


def _claim(folder: Path, core: int) -> Lock | None:
    """The lock of a core, or None if somebody else has it."""
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
        return operating_system.lock(folder / str(core), looks=1)
    except OSError:
        return None
