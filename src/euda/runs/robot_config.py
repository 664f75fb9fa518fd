"""A robot of one's own in a run: an MJCF file with a reward, or a Gymnasium environment, as frozen dataclasses.

The configuration keeps everything that numbers depend on, so that a run goes on only with the robot it began
with: a few characters for each part of the compiled model say which part has changed.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from euda import trusted_code
from euda.body.fingerprint import content
from euda.body.naming import model_name
from euda.errors import EudaError
from euda.runs.robot_flags import AimFlags, RobotFlags
from euda.schema import Settings
from euda.tasks import gymnasium_task, resets, rewards
from euda.tasks.gymnasium_task import SavedEnvironment
from euda.tasks.task_env import ModelEnv

CONTROL_TIMESTEP = 0.02


@dataclasses.dataclass(frozen=True)
class RobotConfig(Settings):
    """A robot of one's own, resolved: what is written into a run."""

    path: str | None
    """Where the MJCF file is, from where this process works; a run stores it as seen from its own folder."""
    env: str | None
    """Id or module:Id of a Gymnasium environment, where there is no file."""
    model: dict[str, str] = dataclasses.field(hash=False)
    """The compiled model, a few characters for each part."""
    reward: str | None
    """Name of the reward; None for the environment's own."""
    reward_text: str | None = None
    """A few characters of the text of one's own reward function."""
    direction: tuple[float, ...] | str | None = None
    target: str | tuple[float, ...] | None = None
    limb: str | None = None
    sensors: tuple[str, ...] = ()
    allow_loops: bool = False
    control_timestep: float = CONTROL_TIMESTEP
    """Seconds."""
    substeps: int | None = None
    """Steps of the simulation in a control step; None where the environment decides."""
    reset_noise: float = resets.NOISE
    random_heading: bool = False
    fall_below: float | None = None
    resumes_exactly: bool = True
    """Whether a stopped run ends in the same bytes: tried before the run began."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if (self.path is None) == (self.env is None):
            raise EudaError("a robot is a file or an environment")

    @property
    def task(self) -> str:
        """The name under which a new run is listed; a stored one keeps what it had."""
        return model_name(self.path) if self.path is not None else gymnasium_task.split_id(str(self.env))[1]

    @property
    def aim(self) -> dict[str, Any]:
        """The arguments that say what a robot wants and how it is observed."""
        return {name: getattr(self, name) for name in ("direction", "target", "limb", "sensors", "allow_loops")}

    @property
    def own_code(self) -> tuple[str, str] | None:
        """Code of the user's own that this robot needs, and the flag that names it."""
        if self.env is not None:
            return (self.env, "--env") if gymnasium_task.split_id(self.env)[0] else None
        return (self.reward, "--reward") if self.reward is not None and ":" in self.reward else None


Built = ModelEnv | SavedEnvironment


def build(robot: RobotConfig, features: str, cone: str, episode_steps: int, render_mode: str | None = None,
          **options: Any) -> Built:  # fmt: skip
    """The environment of a robot; refuses one that is not what the configuration says."""
    if robot.own_code is not None:
        trusted_code.require(*robot.own_code)
    if robot.env is not None:
        made: Built = SavedEnvironment(
            robot.env, **robot.aim, features=features, episode_steps=episode_steps, render_mode=render_mode, **options
        )
    else:
        _refuse_missing(robot)
        reward = _reward(robot.reward)
        if callable(reward) and trusted_code.text_of(reward) != robot.reward_text:
            raise EudaError(f"the reward {robot.reward!r} is no longer that of this run: its text changed")
        made = ModelEnv(
            str(robot.path), cone, **robot.aim, features=features, control_timestep=robot.control_timestep,
            episode_steps=episode_steps, noise=robot.reset_noise, random_heading=robot.random_heading,
            fall_below=robot.fall_below, reward=reward, reward_name=robot.reward,
            render_mode=render_mode, **options,
        )  # fmt: skip
    _refuse_changed(robot, content(made.model))
    return made


def _reward(name: str | None) -> Any:
    return trusted_code.function(name) if name is not None and ":" in name else name


def _refuse_missing(robot: RobotConfig) -> None:
    if robot.path is not None and not Path(robot.path).is_file():
        raise EudaError(
            f"the robot of this run is no longer at {robot.path!r}, seen from the run's folder or from here:"
            " say where with --robot PATH"
        )


def _refuse_changed(robot: RobotConfig, now: Mapping[str, str]) -> None:
    if wrong := changed_parts(robot.model, now):
        raise EudaError(
            f"{str(robot.path or robot.env)!r} is no longer the robot of this run: its {', '.join(wrong)} changed"
        )


def changed_parts(before: Mapping[str, str], now: Mapping[str, str]) -> list[str]:
    """The parts of a model that differ."""
    return [part for part in {**before, **now} if before.get(part) != now.get(part)]


def preview(path: str, flags: RobotFlags, features: str, cone: str | None) -> ModelEnv:
    """The robot in an MJCF file as it will be trained; without a reward if none is named."""
    if flags.reward is not None and ":" in flags.reward:
        trusted_code.name(flags.reward)
    timestep = CONTROL_TIMESTEP if flags.control_timestep is None else flags.control_timestep
    noise = resets.NOISE if flags.reset_noise is None else flags.reset_noise
    heading = None if flags.heading == "auto" else flags.heading == "random"
    return ModelEnv(
        path, cone, **flags.aim, features=features, control_timestep=timestep, noise=noise, random_heading=heading,
        fall_below=flags.fall_below, reward=_reward(flags.reward), reward_name=flags.reward,
    )  # fmt: skip


def of_file(path: str, flags: RobotFlags, features: str, cone: str | None) -> RobotConfig:
    """The robot in an MJCF file, read, built and asked for its first reward, so that what is wrong is said now."""
    if flags.reward is None:
        raise EudaError(f"{path!r} needs a reward: add --reward {', '.join(rewards.REWARDS)} or your module:function")
    env = preview(path, flags, features, cone)
    env.reset(seed=0)
    env.reward()
    if env.has_fallen():
        raise EudaError(
            f"episodes start with the root at {env.root_height:.3g} m, below the {flags.fall_below:g} m at which"
            " they end: lower --fall-below"
        )
    function = _reward(flags.reward)
    return RobotConfig(
        path, None, content(env.model), flags.reward, trusted_code.text_of(function) if callable(function) else None,
        **flags.aim, control_timestep=env.control_timestep, substeps=env.substeps, reset_noise=env.noise,
        random_heading=env.random_heading, fall_below=flags.fall_below,
    )  # fmt: skip


def _normal(env: str) -> str:
    """The name of an environment, without Gymnasium's own module."""
    module, name = gymnasium_task.split_id(env)
    return name if module is None else env


OF_FILES = ("--reward", "--control-timestep", "--reset-noise", "--heading", "--fall-below")
"""Flags that an environment has no use for."""


def _maker(text: str, flags: AimFlags, features: str) -> Callable[[], SavedEnvironment]:
    """What makes the environment that the user named, whose code may run because of that."""
    if wrong := [flag for flag in flags.given if flag in OF_FILES]:
        raise EudaError(f"{', '.join(wrong)} only works with MJCF files: an environment has its own")
    env = _normal(text)
    trusted_code.name(env)
    return functools.partial(SavedEnvironment, env, **flags.aim, features=features)


def simulation_of(text: str, flags: AimFlags, features: str, cone: str | None) -> ModelEnv:
    """The simulation inside a registered Gymnasium environment, without its reward and resets, to look at."""
    made = _maker(text, flags, features)()
    found = ModelEnv(made.model, cone, **flags.aim, features=features, control_timestep=made.control_timestep)
    found.task = made.task
    return found


def of_environment(text: str, flags: RobotFlags, features: str, cone: str | None) -> tuple[RobotConfig, int]:
    """A registered Gymnasium environment, and the steps of its episodes."""
    if cone not in (None, "default"):
        raise EudaError(f"--cone {cone} only works with tasks and MJCF files: an environment has its own cone")
    make = _maker(text, flags, features)
    env, first = _normal(text), make()
    return RobotConfig(
        None, env, content(first.model), None, **flags.aim, control_timestep=first.control_timestep,
        resumes_exactly=gymnasium_task.is_saved_exactly(make),
    ), first.episode_steps  # fmt: skip


def named_again(robot: RobotConfig | None, task: str, path: str | None, env: str | None,
                reward: str | None) -> RobotConfig | None:  # fmt: skip
    """The robot of a stored run, with what the user says about it again: where it is, and which code it may run."""
    given = {"--robot": path, "--env": None if env is None else _normal(env), "--reward": reward}
    if robot is None:
        if wrong := [flag for flag, value in given.items() if value is not None]:
            raise EudaError(f"{', '.join(wrong)} is for runs of custom robots, and this is a run of task {task!r}")
        return None
    stored = {"--robot": robot.path, "--env": robot.env, "--reward": robot.reward}
    for flag, value in given.items():
        if value is None:
            continue
        if stored[flag] is None or (flag != "--robot" and value != stored[flag]):
            raise EudaError(f"{flag} {value} does not fit this run, which has {stored[flag] or 'none'}")
        if flag != "--robot":
            trusted_code.name(value)
    if robot.own_code is not None:
        trusted_code.require(*robot.own_code)
    if path is not None:
        robot = dataclasses.replace(robot, path=path)
    _refuse_missing(robot)
    return robot
