"""Configuration → what the simulator says about its robot's symmetry; made once and kept in the user's cache.

What is kept is believed only for this text of euda, these versions, this very model and these settings, and only if it
has the shape of a certificate. It comes from a file that anybody may have written, so it is data and no more.
"""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import hashlib
import importlib.metadata
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import pydantic

import euda.symmetry
from euda import trusted_code
from euda.body.fingerprint import digest
from euda.errors import EudaError
from euda.runs import atomic_files, robot_config
from euda.runs.config import RunConfig
from euda.symmetry.certificate import Certificate, certify
from euda.tasks import table
from euda.tasks.base_env import LimbEnv
from euda.tasks.task_env import ModelEnv, TaskEnv

T = TypeVar("T")
Make = Callable[[], LimbEnv]
"""Makes the simulation of a run, or has it already: compiling the model takes longer than anything else here."""


@dataclasses.dataclass(frozen=True)
class Kept:
    """What is kept of a certificate: as much as runs and reports say of it."""

    cone: str
    verdict: str
    number: str
    """How far from exact, in words; empty where it is exact."""
    causes: tuple[str, ...]
    worst: float
    """Relative error."""
    states: int
    sought: int
    yaws: int
    contacts: str
    """Pairs that touched, of how many that can."""
    limits: str
    """That acted, of how many."""
    untouched: tuple[str, ...]
    """Contacts that no state of the test had."""

    @staticmethod
    def of(found: Certificate) -> Kept:
        """What matters of a certificate."""
        number = "" if found.verdict.startswith("exact") else found.number
        tested = (found.states, found.sought, found.yaws, str(found.coverage.contacts), str(found.coverage.limits))
        untouched = found.coverage.contacts.missed
        return Kept(found.cone, found.verdict, number, found.causes, found.worst, *tested, untouched)


def certificate_of(
    config: RunConfig, features: str, states: int, yaws: int, doing: Callable[[], None] = lambda: None, fold: int = 0,
    make: Make | None = None,
) -> Kept:  # fmt: skip
    """The certificate of a run's robot with these features, from the cache if it is there.

    `doing` is called if it has to be made, which takes some seconds; `fold` is that of `certify`; `make` is for
    callers that have the simulation already.
    """
    made = make or once(config, features)
    key = key_of(config, features, states, yaws, fold, made)
    path = cache() / f"{key}.json"
    if (kept := read(path, key, _SCHEMA)) is not None:
        return kept
    doing()
    found = Kept.of(certify(made(), states=states, yaws=yaws, fold=fold))
    with contextlib.suppress(EudaError, OSError):  # it can be made again
        path.parent.mkdir(parents=True, exist_ok=True)
        atomic_files.write_json(path, {"key": key, **dataclasses.asdict(found)})
    return found


def simulation(config: RunConfig, features: str) -> LimbEnv:
    """The run's robot; of a Gymnasium environment its simulation, without the reward."""
    if config.robot is None:
        return TaskEnv(config.task, features, config.cone, direction=config.direction, payload=config.payload)
    made = robot_config.build(config.robot, features, config.cone, config.episode_steps)
    if isinstance(made, ModelEnv):
        return made
    aim, timestep = config.robot.aim, made.control_timestep
    return ModelEnv(made.model, config.cone, **aim, features=features, control_timestep=timestep)


def once(config: RunConfig, features: str) -> Make:
    """A function that makes the run's robot when it is first asked for it: a file of the cache may say enough."""
    return functools.cache(lambda: simulation(config, features))


def cache() -> Path:
    """Where certificates are kept."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache", "euda", "certificates")


def key_of(config: RunConfig, features: str, states: int, yaws: int, fold: int, make: Make) -> str:
    """Changes with everything that a certificate depends on."""
    asked = [features, config.cone, config.direction, states, yaws, fold]
    versions = [importlib.metadata.version(name) for name in ("mujoco", "dm_control", "numpy")]
    content = [_subject(config, make), asked, versions, _text()]
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:32]


def _subject(config: RunConfig, make: Make) -> Any:
    """The robot: its model, and what is observed and rewarded."""
    if config.robot is not None:  # its file may be gone by now; the run knows what it was
        return {**dataclasses.asdict(config.robot), "path": None}
    env, row = make(), table.find(config.task)
    own = [trusted_code.text_of(function) for function in (row.load, row.reward) if function is not None]
    return [config.task, digest(env.model), str(env.layout), own]


@functools.cache
def _text() -> str:
    """A few characters of the text of euda's bodies, tasks and symmetries: a changed rule makes certificates anew."""
    package = Path(euda.symmetry.__file__).parents[1]
    total = hashlib.sha256()
    for room in ("body", "tasks", "symmetry"):
        for path in sorted((package / room).rglob("*.py")):
            total.update(path.read_bytes())
    return total.hexdigest()[:16]


def read(path: Path, key: str, schema: pydantic.TypeAdapter[T]) -> T | None:
    """What a file of the cache says, if it has that shape and was kept for this key."""
    with contextlib.suppress(EudaError, OSError, pydantic.ValidationError):
        if path.is_file():
            match atomic_files.read_json(path):
                case {"key": str(found), **entries} if found == key:
                    return schema.validate_python(entries)
    return None


_SCHEMA = pydantic.TypeAdapter(Kept)
