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
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from euda import schema, trusted_code
from euda.body.naming import model_name
from euda.errors import EudaError, unknown
from euda.runs import robot_config, robot_flags
from euda.runs.robot_config import RobotConfig
from euda.runs.robot_flags import RobotFlags
from euda.tasks.rewards import REWARDS
from euda.tasks.table import EPISODE_STEPS


@dataclasses.dataclass(frozen=True)
class StudyRobot:
    """A robot that a study file describes; built once for all its runs."""

    name: str
    """Of its file or environment, as in the list of tasks."""
    path: str | None
    """Of its file."""
    flags: RobotFlags
    task: str
    """The name under which its runs are listed."""
    _built: dict[tuple[str, str | None], tuple[RobotConfig, int]] = dataclasses.field(default_factory=dict, repr=False)

    def resolve(self, features: str, cone: str | None) -> tuple[RobotConfig, int]:
        """What is written into its runs, and the usual steps of an episode."""
        key = (features, cone)
        if key not in self._built:
            self._built[key] = (
                robot_config.of_environment(self.name, self.flags, features, cone)
                if self.path is None
                else (robot_config.of_file(self.path, self.flags, features, cone), EPISODE_STEPS)
            )
        return self._built[key]


def study_robots(tables: Mapping[str, Mapping[str, Any]], folder: Path) -> dict[str, StudyRobot]:
    """The robots of a study file that is in `folder`, by their names."""
    found: dict[str, StudyRobot] = {}
    for name, table in tables.items():
        is_environment = robot_flags.is_environment(name)
        if not is_environment and not robot_flags.is_model(name):
            raise EudaError(
                f"[robots.{name!r}] must be named after an MJCF file, which ends in .xml, or a Gymnasium environment,"
                " which ends in a version such as -v0"
            )
        try:
            flags = schema.make(RobotFlags, table, "")
            _check_environment(name, flags) if is_environment else _check_reward(flags.reward)
            path = None if is_environment else str(folder / name)
            task = name.rpartition(":")[2] if path is None else model_name(path)
            found[name] = StudyRobot(name, path, flags, task)
        except EudaError as error:
            raise EudaError(f"[robots.{name!r}]: {error}") from None
    return _told_apart(found)


def _told_apart(robots: dict[str, StudyRobot]) -> dict[str, StudyRobot]:
    """The same robots; those whose models have one name get the folder of their file in theirs."""

    def shared(found: Mapping[str, StudyRobot]) -> set[str]:
        return {task for task, number in Counter(robot.task for robot in found.values()).items() if number > 1}

    twice = shared(robots)
    named = {
        name: dataclasses.replace(robot, task=f"{robot.task} {Path(robot.path).resolve().parent.name}")
        if robot.path is not None and robot.task in twice
        else robot
        for name, robot in robots.items()
    }
    if still := shared(named):
        raise EudaError(f"two robots are named {min(still)!r}: their runs would have the same names")
    return named


def _check_reward(reward: str | None) -> None:
    if reward is None:
        raise EudaError(f"reward is missing: one of {', '.join(REWARDS)}")
    if reward not in REWARDS and not trusted_code.is_named(reward):
        raise unknown("reward", reward, REWARDS)


def _check_environment(name: str, flags: RobotFlags) -> None:
    if wrong := [flag[2:].replace("-", "_") for flag in flags.given if flag in robot_config.OF_FILES]:
        raise EudaError(f"{', '.join(wrong)} only works with MJCF files: an environment has its own")
    if ":" in name and not trusted_code.is_named(name):
        raise EudaError("a study imports no module: name an environment that Gymnasium knows by itself")
