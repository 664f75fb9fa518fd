"""What a study keeps beside its runs: who runs it, which runs it began, why runs failed, what workers said.

RUNS/.studies/NAME/lock           held while a launch is under way
RUNS/.studies/NAME/launch.json    by whom; removed when a launch ends, so what is left tells of one that was killed
RUNS/.studies/NAME/plan.json      the runs that the last launch began with
RUNS/.studies/NAME/failures.json  the reason of each run that was given up
RUNS/.studies/NAME/logs/          standard error of each run's last worker
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import glob
import os
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

from euda import operating_system
from euda.errors import EudaError
from euda.runs import atomic_files, run_folder
from euda.runs.config import RunConfig
from euda.runs.config_entries import differences
from euda.studies.plan import Plan, Planned

STUDIES, LOCK, HOLDER = ".studies", "lock", "launch.json"


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
        """The run's: where an earlier euda, which had other identities, left it, or where this one begins it."""
        return self.runs / self._begun.get(planned.folder_name, planned.folder_name)

    def name_of(self, planned: Planned) -> str:
        """The run's folder below the runs' folder."""
        return self.folder_of(planned).relative_to(self.runs).as_posix()

    @functools.cached_property
    def _begun(self) -> dict[str, str]:
        """By the name that a run has now, the folder under another name that holds it."""
        found: dict[str, str] = {}
        for planned in self.plan.runs:
            if (self.runs / planned.folder_name).is_dir():
                continue
            task, run = planned.config.folder_name.split("/")
            anywhere = "*" if planned.config.robot is not None else glob.escape(task)  # robots had other names
            for folder in sorted(self.runs.glob(f"{anywhere}/{glob.escape(run)}-????????")):
                if (folder / run_folder.CONFIG).is_file() and not stranger(planned.config, folder):
                    found[planned.folder_name] = str(folder.relative_to(self.runs))
        return found

    def log(self, planned: Planned) -> Path:
        """Where the run's worker writes what goes wrong."""
        return self.folder / "logs" / f"{planned.folder_name.replace('/', '-')}.log"

    def failures(self) -> dict[str, str]:
        """The reason of each run that the last launch gave up, by identity."""
        path = self.folder / "failures.json"
        return atomic_files.read_json(path) if path.is_file() else {}

    def write_failures(self, failures: Mapping[str, str]) -> None:
        """Remember them for `euda study status`."""
        atomic_files.write_json(self.folder / "failures.json", dict(failures))

    def strangers(self) -> list[str]:
        """Folders of runs that an earlier launch began and that the study file no longer has."""
        path = self.folder / "plan.json"
        before: dict[str, str] = atomic_files.read_json(path)["runs"] if path.is_file() else {}
        now = {self.folder_of(planned) for planned in self.plan.runs}
        return [name for name in before.values() if self.runs / name not in now and (self.runs / name).is_dir()]

    def write_plan(self) -> None:
        """Remember which runs belong to the study."""
        runs = {planned.config.identity: self.name_of(planned) for planned in self.plan.runs}
        atomic_files.write_json(self.folder / "plan.json", {"title": self.plan.title, "runs": runs})


def stranger(planned: RunConfig, folder: Path) -> str:
    """Why what is in a folder is not the planned run, whatever the folder's name says; empty if it is."""
    try:
        found = run_folder.load(folder).config
    except EudaError as error:
        return str(error)
    return "; ".join(list(differences(found.to_json(), planned.as_in(found).to_json()))[:3])


def refuse_strangers(study: Study) -> None:
    """Say which runs no longer belong to a study whose file has changed."""
    if gone := study.strangers():
        named = ", ".join([*gone[:5], *([f"and {len(gone) - 5} more"] if len(gone) > 5 else [])])
        raise EudaError(
            f"the study {study.plan.name!r} has changed since its runs began, and these no longer belong to it:"
            f" {named}; undo the change, or keep them and continue with --changed"
        )


@contextlib.contextmanager
def locked(study: Study) -> Iterator[str | None]:
    """Hold the study's lock; gives a sentence if the launch before ended without saying that it had.

    The system frees the lock when the process ends, however it ends, so a lock file alone means nothing.
    """
    path = study.folder / LOCK
    with atomic_files.readable_errors(path):
        (study.folder / "logs").mkdir(parents=True, exist_ok=True)
        lock = operating_system.lock(path)
    holder = study.folder / HOLDER
    who = _who(holder)
    if lock is None:
        raise EudaError(f"the study {study.plan.name!r} is being run already, {who or 'by another process'}")
    try:
        atomic_files.write_json(holder, {"process": os.getpid(), "since": time.strftime("%Y-%m-%d %H:%M:%S")})
        yield f"the previous launch ended abruptly ({who}); its runs are resumed" if who else None
        with atomic_files.readable_errors(holder):
            holder.unlink(missing_ok=True)
    finally:
        lock.release()


def is_running(study: Study) -> bool:
    """Whether a launch of this study is under way."""
    return operating_system.is_locked(study.folder / LOCK)


def _who(holder: Path) -> str | None:
    """Who holds the lock, or held it last; None if the file says nothing of the kind."""
    try:
        value = atomic_files.read_json(holder)
        return f"by process {value['process']} since {value['since']}"
    except (EudaError, KeyError, TypeError):
        return None
