"""What a study keeps beside its runs: who runs it, which runs it began, why runs failed, what workers said.

RUNS/.studies/NAME/lock           held while a launch is under way
RUNS/.studies/NAME/plan.json      the runs that the last launch began with
RUNS/.studies/NAME/failures.json  the reason of each run that was given up
RUNS/.studies/NAME/logs/          standard error of each run's last worker
"""

from __future__ import annotations

import contextlib
import dataclasses
import fcntl
import json
import os
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

from euda.errors import EudaError
from euda.study import storage
from euda.study.plan import Plan, Planned

STUDIES = ".studies"


@dataclasses.dataclass(frozen=True)
class Study:
    """A plan and the folder that its runs live in."""

    plan: Plan
    runs: Path

    @property
    def folder(self) -> Path:
        """The study's own."""
        return self.runs / STUDIES / self.plan.name

    def folder_of(self, planned: Planned) -> Path:
        """The run's."""
        return self.runs / planned.folder_name

    def log(self, planned: Planned) -> Path:
        """Where the run's worker writes what goes wrong."""
        return self.folder / "logs" / f"{planned.folder_name.replace('/', '-')}.log"

    def failures(self) -> dict[str, str]:
        """The reason of each run that the last launch gave up, by identity."""
        path = self.folder / "failures.json"
        return storage.read_json(path) if path.is_file() else {}

    def write_failures(self, failures: Mapping[str, str]) -> None:
        """Remember them for `euda study status`."""
        storage.write_json(self.folder / "failures.json", dict(failures))

    def strangers(self) -> list[str]:
        """Folders of runs that an earlier launch began and that the study file no longer has."""
        path = self.folder / "plan.json"
        before: dict[str, str] = storage.read_json(path)["runs"] if path.is_file() else {}
        now = {planned.config.identity for planned in self.plan.runs}
        gone = [name for identity, name in before.items() if identity not in now]
        return [name for name in gone if (self.runs / name).is_dir()]

    def write_plan(self) -> None:
        """Remember which runs belong to the study."""
        runs = {planned.config.identity: planned.folder_name for planned in self.plan.runs}
        storage.write_json(self.folder / "plan.json", {"title": self.plan.title, "runs": runs})


def refuse_strangers(study: Study) -> None:
    """Say which runs no longer belong to a study whose file has changed."""
    if gone := study.strangers():
        named = ", ".join([*gone[:5], *([f"and {len(gone) - 5} more"] if len(gone) > 5 else [])])
        raise EudaError(
            f"the study {study.plan.name!r} has changed since its runs began, and these no longer belong to it:"
            f" {named}; undo the change, or keep them as they are and go on with --changed"
        )


@contextlib.contextmanager
def locked(study: Study) -> Iterator[str | None]:
    """Hold the study's lock; gives a sentence if the launch before ended without giving it back.

    The kernel frees the lock when the process ends, however it ends, so a lock file alone means nothing.
    """
    path = study.folder / "lock"
    with storage.readable_errors(path):
        (study.folder / "logs").mkdir(parents=True, exist_ok=True)
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
    try:
        holder = os.pread(descriptor, 4096, 0).decode(errors="replace")
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise EudaError(f"the study {study.plan.name!r} is being run already, {_who(holder)}") from None
        _write(descriptor, json.dumps({"process": os.getpid(), "since": time.strftime("%Y-%m-%d %H:%M:%S")}))
        yield f"the launch before ended abruptly ({_who(holder)}); its runs go on from here" if holder else None
        _write(descriptor, "")
    finally:
        os.close(descriptor)


def is_running(study: Study) -> bool:
    """Whether a launch of this study is under way."""
    return storage.is_held(study.folder / "lock")


def _write(descriptor: int, text: str) -> None:
    os.ftruncate(descriptor, 0)
    os.pwrite(descriptor, text.encode(), 0)


def _who(holder: str) -> str:
    try:
        value = json.loads(holder)
        return f"by process {value['process']} since {value['since']}"
    except (ValueError, KeyError, TypeError):
        return "by another process"
