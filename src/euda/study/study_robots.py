"""Robots of one's own in a study file: tables [robots.NAME] with what the flags of `euda train` say.

    [robots."hexapod.xml"]         # an MJCF file, beside the study
    reward = "run"
    direction = [1, 0]
    control_timestep = 0.04

    [robots.Ant-v5]                # a Gymnasium environment, with its own reward
    direction = [1, 0]

A study file is data, so no code of anybody's own is called because the file names it: its rewards are the
built-in ones, its environments those that are registered without importing a module.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from euda.body.rewards import BUILT_IN
from euda.body.tasks import EPISODE_STEPS
from euda.errors import EudaError, unknown
from euda.study import own_code, robots
from euda.study.robots import RobotConfig, RobotFlags


@dataclasses.dataclass(frozen=True)
class StudyRobot:
    """A robot that a study file describes; built once for all its runs."""

    name: str
    """Of its file or environment, as in the list of tasks."""
    path: str | None
    """Of its file."""
    flags: RobotFlags
    _built: dict[tuple[str, str | None], tuple[RobotConfig, int]] = dataclasses.field(default_factory=dict, repr=False)

    @property
    def task(self) -> str:
        """The name under which its runs are listed."""
        return self.name.rpartition(":")[2] if self.path is None else Path(self.path).name

    def resolve(self, features: str, cone: str | None) -> tuple[RobotConfig, int]:
        """What is written into its runs, and the usual steps of an episode."""
        key = (features, cone)
        if key not in self._built:
            self._built[key] = (
                robots.of_environment(self.name, self.flags, features, cone)
                if self.path is None
                else (robots.of_file(self.path, self.flags, features, cone), EPISODE_STEPS)
            )
        return self._built[key]


def study_robots(tables: Any, folder: Path) -> dict[str, StudyRobot]:
    """The robots of a study file that is in `folder`, by their names."""
    if not isinstance(tables, dict):
        raise EudaError(f"robots must be tables [robots.NAME], not {tables!r}")
    found: dict[str, StudyRobot] = {}
    for name, table in tables.items():
        is_environment = robots.is_environment(name)
        if not is_environment and not robots.is_model(name):
            raise EudaError(
                f"[robots.{name!r}] must be named after an MJCF file, which ends in .xml, or a Gymnasium environment,"
                " which ends in a version such as -v0"
            )
        if not isinstance(table, dict):
            raise EudaError(f"[robots.{name!r}] must be a table, not {table!r}")
        try:
            flags = _flags(table)
            _check_environment(name, flags) if is_environment else _check_reward(flags.reward)
            found[name] = StudyRobot(name, None if is_environment else str(folder / name), flags)
        except EudaError as error:
            raise EudaError(f"[robots.{name!r}]: {error}") from None
    tasks = [robot.task for robot in found.values()]
    if twice := {task for task in tasks if tasks.count(task) > 1}:
        raise EudaError(f"two robots are named {min(twice)!r}: their runs would have the same names")
    return found


def _flags(table: Mapping[str, Any]) -> RobotFlags:
    """The flags of a table, each of its type."""
    fields = {field.name: field for field in dataclasses.fields(RobotFlags)}
    for key in table:
        if key not in fields:
            raise unknown("entry", key, fields)
    return RobotFlags(**{key: _entry(key, value) for key, value in table.items()})


def _check_reward(reward: str | None) -> None:
    if reward is None:
        raise EudaError(f"reward is missing: one of {', '.join(BUILT_IN)}")
    if reward not in BUILT_IN and not own_code.is_named(reward):
        raise unknown("reward", reward, BUILT_IN)


def _check_environment(name: str, flags: RobotFlags) -> None:
    if wrong := [flag[2:].replace("-", "_") for flag in flags.given if flag in robots.OF_FILES]:
        raise EudaError(f"{', '.join(wrong)} belongs to MJCF files: an environment has that of its own")
    if ":" in name and not own_code.is_named(name):
        raise EudaError("a study imports no module: name an environment that Gymnasium knows by itself")


def _entry(name: str, value: Any) -> Any:
    if name == "direction":
        return tuple(_number(name, entry) for entry in _listed(name, value))
    if name == "target":  # RobotFlags has it as typed
        return (
            (value,) if isinstance(value, str) else tuple(str(_number(name, entry)) for entry in _listed(name, value))
        )
    if name == "sensors":
        return tuple(_typed(name, entry, str, "texts") for entry in _listed(name, value))
    if name in ("control_timestep", "reset_noise", "fall_below"):
        return _number(name, value)
    return _typed(name, value, bool, "true or false") if name == "allow_loops" else _typed(name, value, str, "a text")


def _listed(name: str, value: Any) -> list[Any]:
    if not isinstance(value, list | tuple):
        raise EudaError(f"{name} must be a list, not {value!r}")
    return list(value)


def _number(name: str, value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise EudaError(f"{name} must have numbers, not {value!r}")
    return float(value)


def _typed(name: str, value: Any, kind: type, words: str) -> Any:
    if type(value) is not kind:
        raise EudaError(f"{name} must be {words}, not {value!r}")
    return value
