"""How far the runs of a study are, read from their folders alone, so that anybody can look from anywhere."""

from __future__ import annotations

import dataclasses
from collections import deque
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from euda.runs import metrics, run_folder
from euda.studies.plan import Planned
from euda.studies.study_folder import Study, stranger

_RECENT = 20  # events that the speed is taken from


@dataclasses.dataclass(frozen=True)
class Progress:
    """One line of `euda study status`."""

    planned: Planned
    state: str
    """finished, running, stopped, waiting or failed."""
    step: int = 0
    last_return: float | None = None
    speed: float | None = None
    """Environment steps per second, recently."""
    reason: str = ""
    """Of a failure."""

    @property
    def steps(self) -> int:
        """What the study asks for."""
        return self.planned.config.steps

    @property
    def seconds_left(self) -> float | None:
        """At the present speed."""
        return max(self.steps - self.step, 0) / self.speed if self.speed else None


class Reader:
    """Follows the metrics of runs, reading only what was added since it last looked."""

    def __init__(self) -> None:
        self._followed: dict[Path, _Followed] = {}
        self._compared: dict[tuple[Path, int], str] = {}

    def look(self, study: Study, failures: Mapping[str, str] | None = None) -> list[Progress]:
        """Every run of a study as it is now."""
        failures = study.failures() if failures is None else failures
        return [self.progress(planned, study.folder_of(planned), failures) for planned in study.plan.runs]

    def progress(self, planned: Planned, folder: Path, failures: Mapping[str, str]) -> Progress:
        """One run as it is now."""
        if not (folder / run_folder.CONFIG).is_file():
            reason = failures.get(planned.config.identity, "")
            return Progress(planned, "failed" if reason else "waiting", reason=reason)
        if wrong := self._stranger(planned, folder):
            return Progress(planned, "failed", reason=f"its folder holds another run ({wrong}): move it away")
        seen = self._followed.setdefault(folder, _Followed(folder / "metrics.jsonl"))
        seen.read(planned.config.steps)
        reason, state = "", "stopped"
        if seen.is_complete(planned.config.steps):
            state = "finished"
        elif run_folder.is_locked(folder):
            state = "running"
        elif reason := failures.get(planned.config.identity, ""):
            state = "failed"
        return Progress(planned, state, seen.step, seen.last_return, seen.speed, reason)

    def _stranger(self, planned: Planned, folder: Path) -> str:
        """What a folder's configuration says against a run, compared once for each time that it was written."""
        key = (folder, (folder / run_folder.CONFIG).stat().st_mtime_ns)
        if key not in self._compared:
            self._compared[key] = stranger(planned.config, folder)
        return self._compared[key]


def is_complete(planned: Planned, folder: Path) -> bool:
    """Whether a folder holds all that a study asks of a run; it may hold more."""
    return Reader().progress(planned, folder, {}).state == "finished"


class _Followed:
    """The metrics of one run up to where they were last read."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._begin()

    def _begin(self) -> None:
        self._offset, self.step, self._end, self.last_return = 0, 0, 0, None
        self._marks: deque[tuple[int, float]] = deque(maxlen=_RECENT)

    def read(self, steps: int) -> None:
        """Take what is new; from the beginning if the file was cut back, as it is when a run goes on."""
        try:
            size = self._path.stat().st_size
        except OSError:
            return self._begin()
        if size < self._offset:
            self._begin()
        events, self._offset = metrics.read_from(self._path, self._offset)
        return self._take(events, steps)

    def _take(self, events: Iterable[Mapping[str, Any]], steps: int) -> None:
        for event in events:
            if event["step"] < self.step:  # cut back and already longer than before
                self._marks.clear()
            self.step = event["step"]
            self._marks.append((event["step"], event["seconds"]))
            self._end = event["step"] if event["event"] == "end" else 0
            if event["event"] == "eval" and event["step"] <= steps:
                self.last_return = event.get("return_mean")

    def is_complete(self, steps: int) -> bool:
        """Ended at or beyond these steps, or gone beyond them."""
        return self._end >= steps or self.step > steps

    @property
    def speed(self) -> float | None:
        """Between the first and the last of the recent events."""
        if len(self._marks) < 2:
            return None
        (first, before), (last, after) = self._marks[0], self._marks[-1]
        return (last - first) / (after - before) if after > before and last > first else None
