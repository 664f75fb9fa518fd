"""Runs a study on an engine: skips what is complete, goes on with what was stopped, tries failures again.

An engine starts one run in a place of its own and says how it ended; it knows nothing of studies. `local` uses
this machine's cores, `ray_engine` a cluster.
"""

from __future__ import annotations

import dataclasses
import time
from pathlib import Path
from typing import Protocol

from euda.runs import run_folder
from euda.runs.signals import Stop
from euda.studies import status
from euda.studies.plan import Planned
from euda.studies.status import Progress, Reader
from euda.studies.study_folder import Study

RETRIES = 2
_POLL, _LOOK = 0.1, 1.0  # seconds


@dataclasses.dataclass(frozen=True)
class Ending:
    """How one attempt at a run ended."""

    is_complete: bool
    reason: str = ""


class Job(Protocol):
    """One attempt at a run, under way."""

    def poll(self) -> Ending | None:
        """How it ended, or None while it goes on."""
        ...

    def stop(self) -> None:
        """Ask it to save and end."""
        ...

    def kill(self) -> None:
        """End it at once; the last checkpoint stays."""
        ...


class Engine(Protocol):
    """Where runs are trained."""

    @property
    def slots(self) -> int:
        """How many runs it takes at once."""
        ...

    def start(self, planned: Planned, folder: Path, log: Path) -> Job:
        """Begin one run."""
        ...

    def close(self) -> None:
        """Nothing more comes."""
        ...


class View(Protocol):
    """Somebody who watches."""

    def update(self, rows: list[Progress]) -> None:
        """All runs as they are now."""
        ...

    def say(self, sentence: str) -> None:
        """Something that happened."""
        ...


@dataclasses.dataclass(frozen=True)
class Result:
    """How a launch ended."""

    finished: int
    failures: dict[str, str]
    """Reason by identity."""
    signal: int | None = None


class Launch:
    """One launch of a study."""

    def __init__(self, study: Study, engine: Engine, view: View) -> None:
        self._study, self._engine, self._view = study, engine, view
        self._reader, self._looked = Reader(), 0.0
        self._waiting: list[Planned] = []
        self._jobs: dict[Planned, Job] = {}
        self._attempts: dict[Planned, int] = {}
        self._failures: dict[str, str] = {}
        self._asked = 0

    def go(self, stop: Stop) -> Result:
        """Run everything that is not complete; the first request to stop lets all runs save, the second ends them."""
        self._study.write_plan()
        self._study.write_failures({})
        self._waiting = _interrupted_first(self._study)
        skipped = len(self._study.plan.runs) - len(self._waiting)
        if skipped:
            self._view.say(f"{skipped} of {len(self._study.plan.runs)} runs are complete already")
        try:
            while self._jobs or (self._waiting and not stop.count):
                self._collect()
                self._interrupt(stop.count) if stop.count else self._fill()
                self._show()
                time.sleep(_POLL)
        finally:
            self._abandon()
        self._show(force=True)
        rows = self._reader.look(self._study, self._failures)
        return Result(sum(row.state == "finished" for row in rows), self._failures, stop.signal)

    def _fill(self) -> None:
        """Start what there is room for; a run that somebody else trains at the moment waits."""
        for planned in list(self._waiting):
            if len(self._jobs) >= self._engine.slots:
                return
            folder = self._study.folder_of(planned)
            if run_folder.is_locked(folder):
                continue
            self._waiting.remove(planned)
            if not status.is_complete(planned, folder):  # another study may have done it meanwhile
                self._jobs[planned] = self._engine.start(planned, folder, self._study.log(planned))

    def _collect(self) -> None:
        """Take the endings of jobs: complete, to be tried again, or given up."""
        endings = {planned: ending for planned, job in self._jobs.items() if (ending := job.poll()) is not None}
        for planned, ending in endings.items():
            del self._jobs[planned]
            if ending.is_complete or status.is_complete(planned, self._study.folder_of(planned)):
                self._view.say(f"finished: {planned.name}")
            elif self._asked:
                self._view.say(f"stopped: {planned.name}")
            else:
                self._failed(planned, ending.reason)

    def _failed(self, planned: Planned, reason: str) -> None:
        self._attempts[planned] = attempt = self._attempts.get(planned, 0) + 1
        if attempt <= RETRIES:
            self._view.say(f"failed, trying again ({attempt} of {RETRIES}): {planned.name}: {reason}")
            self._waiting.insert(0, planned)
        else:
            self._view.say(f"given up: {planned.name}: {reason}")
            self._failures[planned.config.identity] = reason
            self._study.write_failures(self._failures)

    def _interrupt(self, count: int) -> None:
        if count > self._asked:
            for job in self._jobs.values():
                job.stop() if count == 1 else job.kill()
            if self._asked == 0 and self._jobs:
                self._view.say(f"stopping {len(self._jobs)} runs, each saves first (once more: at once)")
            self._asked = count

    def _show(self, force: bool = False) -> None:
        if force or time.monotonic() - self._looked > _LOOK:
            self._looked = time.monotonic()
            self._view.update(self._reader.look(self._study, self._failures))

    def _abandon(self) -> None:
        """An error in this process must leave no run behind unwatched."""
        for job in self._jobs.values():
            job.kill()
        self._engine.close()


def _interrupted_first(study: Study) -> list[Planned]:
    rows = Reader().look(study, {})
    begun = [row.planned for row in rows if row.state not in ("finished", "waiting")]
    return [*begun, *(row.planned for row in rows if row.state == "waiting")]
