"""A robot of one's own in a run: an MJCF file with a reward, or a Gymnasium environment, as frozen dataclasses.

The configuration keeps everything that numbers depend on, so that a run goes on only with the robot it began
with: a few characters for each part of the compiled model say which part has changed.
"""

from __future__ import annotations

import dataclasses
import functools
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from euda.adapters import saved
from euda.adapters.saved import SavedEnvironment
from euda.body import resets, rewards
from euda.body.content import content
from euda.body.environment import ModelEnv
from euda.errors import EudaError, unknown
from euda.study import own_code

_ENDINGS = (".xml", ".mjcf", ".urdf", ".mjb")
_HEADINGS = ("auto", "model", "random")
CONTROL_TIMESTEP = 0.02


def is_model(subject: str) -> bool:
    """Whether a word on the command line is the path of a model rather than the name of a task."""
    return subject.endswith(_ENDINGS) or "/" in subject


def is_environment(subject: str) -> bool:
    """Whether a name is one of Gymnasium's, which end in a version."""
    return re.search(r"-v\d+$", subject) is not None


@dataclasses.dataclass(frozen=True)
class AimFlags:
    """What the command line says of a robot of one's own wherever it is observed: what it wants and what is seen."""

    direction: tuple[float, ...] = ()
    """Your own robot: direction of travel, two or three numbers."""
    target: tuple[str, ...] = ()
    """Your own robot: what to reach, a site, geom or body by name, or three numbers."""
    limb: str | None = None
    """Your own robot: the site, geom or body that should reach the target; by default the last limb."""
    sensors: tuple[str, ...] = ()
    """Your own robot: sensors to observe beside the limbs."""
    allow_loops: bool = False
    """Your own robot: accept closed kinematic loops."""

    @property
    def given(self) -> list[str]:
        """The flags that are not at their defaults, as a user types them."""
        fields = [field for field in dataclasses.fields(self) if getattr(self, field.name) != field.default]
        return [f"--{field.name.replace('_', '-')}" for field in fields]

    @property
    def aim(self) -> dict[str, Any]:
        """The arguments that say what a robot wants and how it is observed."""
        if self.direction and self.target:
            raise EudaError("a robot has a direction (--direction) or a target (--target), not both")
        return {"direction": direction_of(self.direction), "target": target_of(self.target), "limb": self.limb,
                "sensors": self.sensors, "allow_loops": self.allow_loops}  # fmt: skip


@dataclasses.dataclass(frozen=True)
class RobotFlags(AimFlags):
    """What the command line says of a robot of one's own that is trained."""

    reward: str | None = None
    """Your own robot: run (speed along the direction), reach (the target), stand, or your module:function."""
    control_timestep: float | None = None
    """Your own robot: seconds between two actions, rounded to whole steps of the simulation; by default 0.02."""
    reset_noise: float | None = None
    """Your own robot: how far episodes begin from the first keyframe, a share of each joint's range; default 0.1."""
    heading: str = "auto"
    """Your own robot: model (episodes begin as in the file), random, or auto: random without direction and target."""
    fall_below: float | None = None
    """Your own robot: end an episode when the root is lower than this (m); by default it goes on."""

    def __post_init__(self) -> None:
        if self.heading not in _HEADINGS:
            raise unknown("heading", self.heading, _HEADINGS)


def direction_of(words: tuple[float, ...]) -> tuple[float, ...] | None:
    """A direction as typed, in the plane or in space."""
    return (*words, 0.0) if len(words) == 2 else words or None


def target_of(words: tuple[str, ...]) -> str | tuple[float, ...] | None:
    """A target as typed: a name or three numbers."""
    if len(words) <= 1:
        return words[0] if words else None
    try:
        numbers = tuple(float(word) for word in words)
    except ValueError:
        numbers = ()
    if len(numbers) != 3:
        raise EudaError(f"a target is one name or three numbers (x, y, z), not {' '.join(words)!r}")
    return numbers


@dataclasses.dataclass(frozen=True)
class RobotConfig:
    """A robot of one's own, resolved: what is written into a run."""

    path: str | None
    """Where the MJCF file was when the run was last begun or continued, as typed; it may move."""
    env: str | None
    """Id or module:Id of a Gymnasium environment, where there is no file."""
    model: dict[str, str] = dataclasses.field(hash=False)
    """The compiled model, a few characters for each part."""
    reward: str | None
    """Name of the reward; None for the environment's own."""
    reward_text: str | None = None
    """A few characters of the text of one's own reward function."""
    direction: tuple[float, ...] | None = None
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
        if (self.path is None) == (self.env is None):
            raise EudaError("a robot is a file or an environment")
        for name in ("direction", "target", "sensors"):  # JSON has lists only
            value = getattr(self, name)
            object.__setattr__(self, name, tuple(value) if isinstance(value, list) else value)

    @property
    def task(self) -> str:
        """The name under which a run is listed."""
        return Path(self.path).name if self.path is not None else saved.split_id(str(self.env))[1]

    @property
    def aim(self) -> dict[str, Any]:
        """The arguments that say what a robot wants and how it is observed."""
        return {name: getattr(self, name) for name in ("direction", "target", "limb", "sensors", "allow_loops")}

    @property
    def own_code(self) -> tuple[str, str] | None:
        """Code of the user's own that this robot needs, and the flag that names it."""
        if self.env is not None:
            return (self.env, "--env") if saved.split_id(self.env)[0] else None
        return (self.reward, "--reward") if self.reward is not None and ":" in self.reward else None


Built = ModelEnv | SavedEnvironment


def build(robot: RobotConfig, features: str, cone: str, episode_steps: int, render_mode: str | None = None,
          **options: Any) -> Built:  # fmt: skip
    """The environment of a robot; refuses one that is not what the configuration says."""
    if robot.own_code is not None:
        own_code.require(*robot.own_code)
    if robot.env is not None:
        _import_for(robot.env)
        made: Built = SavedEnvironment(
            robot.env, **robot.aim, features=features, episode_steps=episode_steps, render_mode=render_mode, **options
        )
    else:
        reward = _reward(robot.reward)
        if callable(reward) and own_code.text_of(reward) != robot.reward_text:
            raise EudaError(f"the reward {robot.reward!r} is not that of this run any more: its text changed")
        made = ModelEnv(
            str(robot.path), cone, **robot.aim, features=features, control_timestep=robot.control_timestep,
            episode_steps=episode_steps, noise=robot.reset_noise, random_heading=robot.random_heading,
            fall_below=robot.fall_below, reward=reward, reward_name=robot.reward,
            render_mode=render_mode, **options,
        )  # fmt: skip
    _refuse_changed(robot, content(made.model))
    return made


def _reward(name: str | None) -> Any:
    return own_code.function(name) if name is not None and ":" in name else name


def _import_for(env: str) -> None:
    if saved.split_id(env)[0] is not None:
        own_code.module(env, "environment")


def _refuse_changed(robot: RobotConfig, now: Mapping[str, str]) -> None:
    if wrong := changed_parts(robot.model, now):
        raise EudaError(
            f"{str(robot.path or robot.env)!r} is not the robot of this run any more: its {', '.join(wrong)} changed"
        )


def changed_parts(before: Mapping[str, str], now: Mapping[str, str]) -> list[str]:
    """The parts of a model that differ."""
    return [part for part in {**before, **now} if before.get(part) != now.get(part)]


def preview(path: str, flags: RobotFlags, features: str, cone: str | None) -> ModelEnv:
    """The robot in an MJCF file as it will be trained; without a reward if none is named."""
    if flags.reward is not None and ":" in flags.reward:
        own_code.name(flags.reward)
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
        raise EudaError(f"{path!r} needs a reward: add --reward {', '.join(rewards.BUILT_IN)} or your module:function")
    env = preview(path, flags, features, cone)
    env.reset(seed=0)
    env.reward()
    if env.has_fallen():
        raise EudaError(
            f"episodes begin with the root at {env._root_place[2]:.3g} m, below the {flags.fall_below:g} m at which"
            " they end: lower --fall-below"
        )
    function = _reward(flags.reward)
    return RobotConfig(
        path, None, content(env.model), flags.reward, own_code.text_of(function) if callable(function) else None,
        **flags.aim, control_timestep=env.control_timestep, substeps=env.substeps, reset_noise=env.noise,
        random_heading=env.random_heading, fall_below=flags.fall_below,
    )  # fmt: skip


def _normal(env: str) -> str:
    """The name of an environment, without Gymnasium's own module."""
    module, name = saved.split_id(env)
    return name if module is None else env


OF_FILES = ("--reward", "--control-timestep", "--reset-noise", "--heading", "--fall-below")
"""Flags that an environment has no use for."""


def _maker(text: str, flags: AimFlags, features: str) -> Callable[[], SavedEnvironment]:
    """What makes the environment that the user named, whose code may run because of that."""
    if wrong := [flag for flag in flags.given if flag in OF_FILES]:
        raise EudaError(f"{', '.join(wrong)} belongs to MJCF files: an environment has that of its own")
    env = _normal(text)
    own_code.name(env)
    _import_for(env)
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
        raise EudaError(f"--cone {cone} belongs to tasks and MJCF files: an environment has a cone of its own")
    make = _maker(text, flags, features)
    env, first = _normal(text), make()
    return RobotConfig(
        None, env, content(first.model), None, **flags.aim, control_timestep=first.control_timestep,
        resumes_exactly=saved.is_saved_exactly(make),
    ), first.episode_steps  # fmt: skip


def named_again(robot: RobotConfig | None, task: str, path: str | None, env: str | None,
                reward: str | None) -> RobotConfig | None:  # fmt: skip
    """The robot of a stored run, with what the user says about it again: where it is, and which code it may run."""
    given = {"--robot": path, "--env": None if env is None else _normal(env), "--reward": reward}
    if robot is None:
        if wrong := [flag for flag, value in given.items() if value is not None]:
            raise EudaError(f"{', '.join(wrong)} belongs to runs of your own robot, and this one is of task {task!r}")
        return None
    stored = {"--robot": robot.path, "--env": robot.env, "--reward": robot.reward}
    for flag, value in given.items():
        if value is None:
            continue
        if stored[flag] is None or (flag != "--robot" and value != stored[flag]):
            raise EudaError(f"{flag} {value} does not fit this run, which has {stored[flag] or 'none'}")
        if flag != "--robot":
            own_code.name(value)
    if robot.own_code is not None:
        own_code.require(*robot.own_code)
    if path is not None:
        robot = dataclasses.replace(robot, path=path)
    if robot.path is not None and not Path(robot.path).is_file():
        raise EudaError(f"the robot of this run is not at {robot.path!r} any more: say where with --robot PATH")
    return robot
