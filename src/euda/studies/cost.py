"""How fast this machine trains, for an estimate before anything starts.

Runs of the same kind that are there already say it best. Otherwise a step is measured in two parts: the
simulation of each task with its features (a moment), and everything else, once for each agent and network on
the first task that has it (some seconds, mostly compiling). Measured numbers are kept beside the runs.
What is measured is the processor's time, so that other programs on a busy machine do not count.
"""

from __future__ import annotations

import contextlib
import dataclasses
import tempfile
import time
from collections.abc import Callable, Iterable
from pathlib import Path

import numpy as np

from euda.errors import EudaError
from euda.runs import atomic_files, machine, run_folder
from euda.runs.config import RunConfig
from euda.studies.study_folder import STUDIES

_SIMULATED, _LEARNED, _WARM = 300, 200, 60  # steps
Say = Callable[[str], None]


class Speeds:
    """Seconds for a step of a run on this machine, evaluations included."""

    def __init__(self, runs: Path, say: Say) -> None:
        self._path, self._say = runs / STUDIES / "speeds.json", say
        self._processor = machine.describe([])["processor"]
        stored = atomic_files.read_json(self._path) if self._path.is_file() else {}
        self._stored: dict[str, float] = stored if stored.pop("processor", None) == self._processor else {}
        self._seen = _seen(runs, self._processor)

    def seconds_per_step(self, config: RunConfig) -> float:
        """Of a run of this configuration."""
        seen = self._seen.get(_kind(config))
        if seen:
            return float(np.median(seen))
        simulation = self._get(f"simulate {config.task} {config.features}", lambda: simulate(config))
        sizes = f"{config.agent} {config.network} batch {config.replay.batch_size} {config.architecture}"
        rest = self._get(f"learn {sizes}", lambda: learn(config) - simulate(config))
        judged = config.evaluation.episodes * config.episode_steps / config.evaluation.every
        return simulation * (1 + judged) + max(rest, 0.0)

    def _get(self, name: str, measure: Callable[[], float]) -> float:
        if name not in self._stored:
            self._say(f"measuring: {name}")
            self._stored[name] = measure()
            with contextlib.suppress(EudaError, OSError):  # an estimate may be lost
                self._path.parent.mkdir(parents=True, exist_ok=True)
                atomic_files.write_json(self._path, {"processor": self._processor, **self._stored})
        return self._stored[name]


def simulate(config: RunConfig) -> float:
    """Seconds for a step of the environment alone, with random actions."""
    from euda.runs.environments import action_count, make_environment

    environment, draw = make_environment(config), np.random.default_rng(0)
    environment.reset(seed=0)
    actions = draw.uniform(-1, 1, (_SIMULATED, action_count(environment))).astype(np.float32)
    begin = time.process_time()
    for action in actions:
        environment.step(action)
    return (time.process_time() - begin) / _SIMULATED


def learn(config: RunConfig) -> float:
    """Seconds for a whole step of training without evaluation."""
    from euda.runs.trainer import Trainer

    replay = dataclasses.replace(config.replay, capacity=max(2000, config.replay.batch_size), seed_steps=50)
    short = dataclasses.replace(config, replay=replay, checkpoint_every=1000)
    with tempfile.TemporaryDirectory() as folder:
        run_ = run_folder.Run(Path(folder), short)
        run_.clear()
        trainer = Trainer(run_, None)
        for _ in range(50 + _WARM):
            trainer.advance()
        begin = time.process_time()
        for _ in range(_LEARNED):
            trainer.advance()
        trainer.averages.take()  # waits for what is still under way
        return (time.process_time() - begin) / _LEARNED


def _kind(config: RunConfig) -> tuple[object, ...]:
    """What the speed depends on most."""
    sizes = (config.replay.batch_size, config.architecture, config.evaluation)
    return (config.task, config.agent, config.features, config.network, *sizes)


def _seen(runs: Path, processor: str) -> dict[tuple[object, ...], list[float]]:
    """Seconds per step of the runs that were made here on such a processor."""
    found: dict[tuple[object, ...], list[float]] = {}
    for run_ in _readable(run_folder.find(runs) if runs.is_dir() else []):
        sessions, last = run_.provenance(), run_folder.status(run_)
        if last.step >= 5000 and last.step > 2 * run_.config.replay.seed_steps and _are_from(sessions, processor):
            found.setdefault(_kind(run_.config), []).append(last.seconds / last.step)
    return found


def _readable(folders: Iterable[Path]) -> Iterable[run_folder.Run]:
    for folder in folders:
        with contextlib.suppress(EudaError):
            yield run_folder.load(folder)


def _are_from(sessions: list[dict], processor: str) -> bool:
    return all(session.get("processor") == processor for session in sessions)
