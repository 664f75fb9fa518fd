"""A run is a folder: its configuration, where it was made, its metrics, its checkpoints and its replay.

config.json         everything the numbers depend on, with the format's version
provenance.json     versions, processor and command line of every session
metrics.jsonl       one event per line, see `metrics`
checkpoints/        the last two, see `checkpoint`
policy.safetensors  the actor of a finished run, which with config.json is all that evaluation needs
replay/             memory-mapped observations, actions and rewards
tensorboard/        the same numbers for TensorBoard
lock                held while a process trains
"""

from __future__ import annotations

import contextlib
import dataclasses
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from euda import operating_system
from euda.errors import EudaError
from euda.runs import atomic_files, checkpoint, machine, metrics, robot_path
from euda.runs.checkpoint import Checkpoint
from euda.runs.config import RunConfig
from euda.runs.config_entries import differences

CONFIG, LOCK = "config.json", "lock"
_EARLY = {LOCK, CONFIG + atomic_files.TEMPORARY}
"""What a run that was killed in its first moment may have left: not yet a run, but nothing of anybody else's."""


@dataclasses.dataclass(frozen=True)
class Run:
    """A run on disk: what `euda.train` returns.

    >>> import tempfile
    >>> import euda
    >>> short = {"steps": 40, "episode_steps": 20, "evaluation": {"every": 20, "episodes": 2}}
    >>> run = euda.train("reacher_hard", "limb", out=tempfile.mkdtemp(), **short)
    >>> run.config.method, run.config.task
    ('limb', 'reacher_hard')
    >>> [event["event"] for event in run.events()]
    ['eval', 'train', 'eval', 'train', 'eval', 'end']
    """

    folder: Path
    config: RunConfig

    @property
    def metrics_path(self) -> Path:
        """The events."""
        return self.folder / "metrics.jsonl"

    @property
    def checkpoints(self) -> Path:
        """The checkpoints' folder."""
        return self.folder / "checkpoints"

    @property
    def policy(self) -> Path:
        """The actor of a finished run."""
        return self.folder / "policy.safetensors"

    @property
    def replay(self) -> Path:
        """The replay's folder."""
        return self.folder / "replay"

    def events(self) -> Iterator[dict[str, Any]]:
        """What has been recorded."""
        return metrics.read(self.metrics_path)

    def newest_checkpoint(self) -> tuple[Checkpoint | None, list[str]]:
        """The newest whole checkpoint, and a sentence for each damaged newer one."""
        found, reasons = checkpoint.newest(self.checkpoints)
        if reasons and found is None:
            why = "; ".join(reasons)
            raise EudaError(
                f"the run {str(self.folder)!r} cannot be resumed: {why}; its metrics are untouched, start elsewhere"
            )
        return found, [f"{reason}; the one of step {found.step} is used instead" for reason in reasons if found]

    def provenance(self) -> list[dict[str, Any]]:
        """What is recorded about each session."""
        path = self.folder / "provenance.json"
        if not path.is_file():
            return []
        match atomic_files.read_json(path):
            case {"sessions": [*sessions]} if all(isinstance(session, dict) for session in sessions):
                return sessions
        raise atomic_files.StorageError(f"{str(path)!r} is damaged: it has no list of sessions")

    def record_session(self, step: int) -> list[str]:
        """Add this process to the provenance; says what differs from the last one, if the run goes on from there."""
        sessions, session = self.provenance(), {"from_step": step, **machine.describe()}
        atomic_files.write_json(self.folder / "provenance.json", {"sessions": [*sessions, session]})
        return machine.changes(sessions[-1], session) if sessions and step else []

    def write_config(self) -> None:
        """Make the folder a run of this configuration; one that is there may get more steps."""
        path = self.folder / CONFIG
        if not path.is_file() or load(self.folder).config != self.config:
            atomic_files.write_json(path, robot_path.seen_from(self.folder, self.config).to_json())

    def clear(self) -> None:
        """Remove what a start without a checkpoint must not find."""
        with atomic_files.readable_errors(self.folder):
            for folder in (self.replay, self.checkpoints, self.folder / "tensorboard"):
                if folder.is_dir():
                    shutil.rmtree(folder)
            self.checkpoints.mkdir()


def is_run(folder: Path) -> bool:
    """Whether a run has begun in a folder."""
    return (folder / CONFIG).is_file()


def load(folder: Path) -> Run:
    """The run in a folder."""
    path = folder / CONFIG
    if not path.is_file():
        raise EudaError(f"{str(folder)!r} is not a run: it has no {CONFIG}")
    value = atomic_files.read_json(path)
    try:
        config = RunConfig.from_json(value if isinstance(value, dict) else {})
        return Run(folder, robot_path.found_from(folder, config))
    except EudaError as error:
        raise EudaError(f"cannot use the run {str(folder)!r}: {error}") from None


@contextlib.contextmanager
def opened(folder: Path, config: RunConfig) -> Iterator[Run]:
    """The run of that configuration in that folder, made or gone on with, and locked against other processes.

    Everything that can be refused is refused before anything is written.
    """
    check(folder, config)
    with atomic_files.readable_errors(folder):
        folder.mkdir(parents=True, exist_ok=True)
    with _locked(folder):
        check(folder, config)  # again: another process may have been faster
        run = Run(folder, config)
        if not is_run(folder):
            run.write_config()
        yield run


def check(folder: Path, config: RunConfig) -> None:
    """Refuse a folder that is neither free nor a run of this configuration (more steps are welcome)."""
    if not is_run(folder):
        if folder.exists() and not folder.is_dir():
            raise EudaError(f"{str(folder)!r} is a file, not a folder: choose another with --out")
        with atomic_files.readable_errors(folder, "read"):
            if folder.is_dir() and set(os.listdir(folder)) - _EARLY:
                raise EudaError(
                    f"{str(folder)!r} is neither empty nor a run: nothing was touched; choose another folder with --out"
                )
        return
    found = load(folder).config
    wrong = list(differences(found.to_json(), config.as_in(found).to_json()))
    if not wrong and (reached := _reached(folder)) > config.steps:
        raise EudaError(f"the run {str(folder)!r} is already at step {reached}, beyond the {config.steps} asked for")
    if wrong:
        if found.base != config.base:  # the name is no part of a run, but the shortest reason for all the rest
            wrong = [f"base: {found.base!r} there, {config.base!r} asked for", *wrong]
        named = "; ".join([*wrong[:3], *([f"and {len(wrong) - 3} more"] if len(wrong) > 3 else [])])
        raise EudaError(
            f"the run {str(folder)!r} has another configuration ({named}): choose another folder with --out"
        )


def find(folder: Path) -> list[Path]:
    """The folders of all runs in and below a folder, in order of their names."""
    if not folder.is_dir():
        raise EudaError(f"there is no folder {str(folder)!r}")
    if is_run(folder):
        return [folder]
    return sorted(path.parent for path in folder.rglob(CONFIG))


@dataclasses.dataclass(frozen=True)
class Status:
    """One line of `euda runs`."""

    step: int
    last_return: float | None
    best_return: float | None
    seconds: float
    is_finished: bool
    is_running: bool

    @property
    def state(self) -> str:
        """finished, running or stopped."""
        return "finished" if self.is_finished else "running" if self.is_running else "stopped"


def status(run: Run) -> Status:
    """How far a run is, from its metrics alone."""
    step, seconds, returns, is_finished = 0, 0.0, [], False
    for event in run.events():
        step, seconds = event["step"], event["seconds"]
        if event["event"] == "eval":
            returns.append(event["return_mean"])
        is_finished = event["event"] == "end" and step >= run.config.steps
    return Status(
        step, returns[-1] if returns else None, max(returns, default=None), seconds, is_finished, is_locked(run.folder)
    )


def is_locked(folder: Path) -> bool:
    """Whether a process trains this run now."""
    return operating_system.is_locked(folder / LOCK)


@contextlib.contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Hold the lock of a folder; the system frees it when the process ends, however it ends."""
    path = folder / LOCK
    with atomic_files.readable_errors(path):
        lock = operating_system.lock(path)
    if lock is None:
        raise EudaError(f"another process is training the run {str(folder)!r}: wait for it or stop it")
    try:
        yield
    finally:
        lock.release()


def _reached(folder: Path) -> int:
    """The step of the newest checkpoint by its name."""
    return max(map(checkpoint.step_of, checkpoint.manifests(folder / "checkpoints")), default=0)
