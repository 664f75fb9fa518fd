"""Runs on this machine: a process for each, pinned to a core of its own."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from pathlib import Path

from euda import operating_system
from euda.errors import EudaError
from euda.runs import atomic_files, plugins
from euda.runs.cores import Cores
from euda.studies import worker
from euda.studies.launcher import Ending
from euda.studies.plan import Planned


class LocalJob:
    """A worker process."""

    def __init__(self, planned: Planned, folder: Path, log: Path, core: int | None) -> None:
        self._log, self.core = log, core
        with atomic_files.readable_errors(log):
            log.parent.mkdir(parents=True, exist_ok=True)
            with log.open("wb") as errors:
                # a session of its own: Ctrl-C on the terminal is for the launch, which then asks its workers
                self.process = subprocess.Popen(
                    worker.command(folder, plugins.named(), core), stdin=subprocess.PIPE, stdout=errors, stderr=errors,
                    start_new_session=True,
                )  # fmt: skip
        self._send(json.dumps(planned.config.to_json()).encode())

    def _send(self, text: bytes) -> None:
        try:
            with self.process.stdin or open(os.devnull, "wb") as pipe:
                pipe.write(text)
        except BrokenPipeError:  # it is dead already, as its exit code will say
            pass

    def poll(self) -> Ending | None:
        """How it ended, if it did."""
        code = self.process.poll()
        return None if code is None else Ending(code == 0, explain(code, self._log))

    def stop(self) -> None:
        """SIGTERM: it saves and ends."""
        self.process.terminate()

    def kill(self) -> None:
        """SIGKILL."""
        self.process.kill()
        self.process.wait()


class LocalEngine:
    """Workers on the cores that this process may use."""

    def __init__(self, workers: int | None = None) -> None:
        there = len(operating_system.cores())
        if workers is not None and not 1 <= workers <= there:
            raise EudaError(f"workers must be from 1 to {there}, one for each core, not {workers}")
        self.slots = workers or there
        self._cores = Cores(self.slots)
        self._jobs: dict[int, LocalJob | None] = dict.fromkeys(self._cores.numbers)

    def start(self, planned: Planned, folder: Path, log: Path) -> LocalJob:
        """Begin on the first core that is free."""
        core = next(core for core, job in self._jobs.items() if job is None or job.process.poll() is not None)
        self._jobs[core] = job = LocalJob(planned, folder, log, core)
        return job

    def close(self) -> None:
        """Others may have the cores."""
        self._cores.release()


def explain(code: int, log: Path) -> str:
    """Why a worker ended with that code: its last words, or the signal that ended it."""
    if code == 0:
        return ""
    if code < 0:
        return f"killed by {signal.Signals(-code).name}"
    if code > 128 and code - 128 in signal.valid_signals():
        return f"stopped by {signal.Signals(code - 128).name}"
    lines = [line for line in log.read_text(errors="replace").splitlines() if line.strip()] if log.is_file() else []
    return lines[-1].strip() if lines else f"it ended with exit code {code} and no word"
