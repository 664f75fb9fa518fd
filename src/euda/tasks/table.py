"""The ten tasks of the paper, a row each: which body, which direction or target, which readings.

A new task is a new row. What differs between tasks lives here and nowhere else.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import mujoco
import numpy as np

from euda.body import readings, sensors
from euda.body.features import Observer, Senses, find_features
from euda.body.layout import Kind
from euda.body.morphology import from_model
from euda.body.readings import Make
from euda.body.robot import Robot, Target, direction_of
from euda.errors import EudaError, unknown
from euda.tasks import dm_control_rewards as rewards
from euda.tasks.dm_control_rewards import MakeReward, Reward

if TYPE_CHECKING:
    from dm_control.rl.control import Environment

CONES: dict[str, mujoco.mjtCone | None] = {"default": None, "elliptic": mujoco.mjtCone.mjCONE_ELLIPTIC}
"""Friction cones by name; None leaves the model's own."""
EPISODE_STEPS = 1000
FORWARD = (1.0, 0.0, 0.0)
"""dm_control's locomotion tasks run along +x."""
Load = Callable[[np.random.RandomState], "Environment"]
"""From a stream of random numbers to a dm_control environment, whose model, reset and timing are the task's."""


def dm_control(domain: str, task: str) -> Load:
    """A task of dm_control's own."""

    def load(random: np.random.RandomState) -> Environment:
        from euda.tasks import dm_control_tasks  # dm_control takes a second to import: not for the table alone

        return dm_control_tasks.load(domain, task, random)

    return load


def in_space(domain: str) -> Load:
    """The 3D variant of one of dm_control's planar bodies."""

    def load(random: np.random.RandomState) -> Environment:
        from euda.tasks import bodies3d

        return bodies3d.load(domain, random)

    return load


@dataclasses.dataclass(frozen=True)
class Task:
    """One row: a body and how its episodes begin, what an agent observes of it, and what is rewarded."""

    load: Load
    joint: tuple[Make, ...]
    """`joint` features: dm_control's own observation, entry for entry."""
    sensory: tuple[Make, ...] = ()
    """The paper's sensory readings, beside the limbs."""
    extra: tuple[Make, ...] = ()
    """Readings of dm_control's observation that the paper's table forgot; in `limb` only."""
    paper_only: tuple[Make, ...] = ()
    """Readings that `limb` has anyway."""
    reward: MakeReward | None = None
    """The reward; None for the dm_control task's own, which knows no other direction than +x."""
    travels: bool = False
    """Rewarded for speed along a direction, which then belongs to the state."""
    target: Target | None = None
    """Rewarded for bringing a limb to a target, the vector to which then belongs to the state."""
    cone: str = "default"
    """The friction cone unless another is asked for: dm_control's for its own tasks, elliptic (symmetric) for ours."""
    steps: int = 2_000_000
    """Environment steps of the published protocol."""
    original: tuple[str, str] | None = None
    """Domain and task of dm_control with which states, rewards and `joint` agree value for value."""

    def __post_init__(self) -> None:
        if self.travels and self.reward is None:
            raise EudaError("a task that travels needs a reward that follows the direction")

    @property
    def senses(self) -> Senses:
        """What is observed of it beside limbs and joints."""
        return Senses(self.sensory, self.joint, self.extra, self.paper_only)


def _original(domain: str, task: str, **row: Any) -> Task:
    """A task of dm_control's own."""
    return Task(dm_control(domain, task), original=(domain, task), **row)


def _variant(domain: str, **row: Any) -> Task:
    """A 3D variant, which travels as its planar original does."""
    return Task(in_space(domain), travels=True, cone="elliptic", **row)


_POSITION = readings.joint_positions("position", 1)  # without the horizontal position
_VELOCITY = readings.joint_velocities("velocity")
_TOUCH = sensors.read("touch", "touch_toe", "touch_heel", transform=lambda xp, x: xp.log1p(x))
_FREE_ROOT = (  # height, orientation and velocity of a free root, then the hinges
    readings.joint_positions("root_height", 2, 3),
    readings.joint_positions("root_orientation", 3, 7, Kind.QUATERNION),
    readings.joint_positions("joint_angles", 7),
    readings.joint_velocities("root_velocity", 0, 3, Kind.VECTOR),
    readings.joint_velocities("joint_velocities", 3),  # the root's angular velocity is in its own frame
)
_LEGS = ("front_left", "front_right", "back_right", "back_left")


def _arcsinh(xp: Any, x: Any) -> Any:
    return xp.arcsinh(x)


_FORCE = sensors.read("force", *(f"force_toe_{leg}" for leg in _LEGS), transform=_arcsinh)
_TORQUE = sensors.read("torque", *(f"torque_toe_{leg}" for leg in _LEGS), transform=_arcsinh)
_QUADRUPED_STATE = (
    readings.joint_positions("joint_angles", 7),
    readings.joint_velocities("joint_velocities", 6),
    readings.activations("activation"),
)
_UPRIGHT = readings.upright("upright", "torso")
_HUMANOID_SENSES = (
    sensors.read("com_velocity", "torso_subtreelinvel"),
    readings.extremities("extremities", "torso", ("left_hand", "left_foot", "right_hand", "right_foot")),
    readings.vertical("torso_vertical", "torso"),
)
_HEAD = readings.height("head_height", "head")
_CHEETAH, _HOPPER, _WALKER = rewards.cheetah(speed=10.0), rewards.hopper(speed=2.0), rewards.walker(speed=8.0)


_HEIGHT = readings.height("height")


def _humanoid(task: str, speed: float) -> Task:
    com, limbs, vertical = _HUMANOID_SENSES
    return _original(
        "humanoid",
        task,
        joint=(
            readings.joint_positions("joint_angles", 7),
            _HEAD,
            limbs,
            vertical,
            com,
            readings.joint_velocities("root_velocity", 0, 3, Kind.VECTOR),
            readings.joint_velocities("joint_velocities", 3),
        ),
        sensory=_HUMANOID_SENSES,
        extra=(_HEAD,),
        reward=rewards.humanoid(speed),
        steps=5_000_000,
    )


TASKS: dict[str, Task] = {
    "cheetah_run": _original("cheetah", "run", joint=(_POSITION, _VELOCITY), reward=_CHEETAH, travels=True),
    "cheetah3d_run": _variant("cheetah", joint=_FREE_ROOT, reward=_CHEETAH),
    "hopper_hop": _original(
        "hopper", "hop", joint=(_POSITION, _VELOCITY, _TOUCH), sensory=(_TOUCH,), reward=_HOPPER, travels=True
    ),
    "hopper3d_hop": _variant("hopper", joint=(*_FREE_ROOT, _TOUCH), sensory=(_TOUCH,), reward=_HOPPER),
    "walker_run": _original(
        "walker",
        "run",
        joint=(readings.planar_orientations("orientations"), readings.height("height", "torso"), _VELOCITY),
        paper_only=(_HEIGHT,),
        reward=_WALKER,
        travels=True,
    ),
    "walker3d_run": _variant("walker", joint=_FREE_ROOT, paper_only=(_HEIGHT,), reward=_WALKER),
    "quadruped_run": _original(
        "quadruped",
        "run",
        joint=(
            *_QUADRUPED_STATE,
            sensors.read("torso_velocity", "velocimeter"),
            _UPRIGHT,
            sensors.read("imu", "imu_accel", "imu_gyro"),
            sensors.read(
                "force_torque",
                *(f"{what}_toe_{leg}" for what in ("force", "torque") for leg in _LEGS),
                transform=_arcsinh,
            ),
        ),
        sensory=(
            _FORCE,
            _TORQUE,
            _UPRIGHT,
            sensors.read("gyro", "imu_gyro"),
            sensors.read("acceleration", "imu_accel"),
            *_QUADRUPED_STATE,
        ),
        reward=rewards.quadruped(speed=5.0),
    ),
    "reacher_hard": _original(
        "reacher",
        "hard",
        joint=(
            readings.joint_positions("shoulder", 0, 1, Kind.HEADING),
            readings.joint_positions("wrist", 1),
            lambda robot: readings.to_target(robot, Kind.PLANAR),
            _VELOCITY,
        ),
        reward=rewards.reacher(),
        target=Target("target", "finger"),
    ),
    "humanoid_run": _humanoid("run", speed=10.0),
    "humanoid_stand": _humanoid("stand", speed=0.0),
}
"""The tasks by name.

>>> from euda import TASKS
>>> sorted(name for name, task in TASKS.items() if task.original is None)
['cheetah3d_run', 'hopper3d_hop', 'walker3d_run']
>>> TASKS["reacher_hard"].target
Target(place='target', limb='finger')
"""


def find(name: str) -> Task:
    """The row of that name."""
    if name not in TASKS:
        raise unknown("task", name, TASKS)
    return TASKS[name]


def set_cone(model: mujoco.MjModel, cone: str) -> None:
    """Give the model the friction cone of that name."""
    if cone not in CONES:
        raise unknown("cone", cone, CONES)
    kind = CONES[cone]
    if kind is not None:
        model.opt.cone = kind


def cone_name(model: mujoco.MjModel) -> str:
    """The friction cone that a model really has."""
    return "elliptic" if int(model.opt.cone) == int(mujoco.mjtCone.mjCONE_ELLIPTIC) else "pyramidal"


def load(name: str, cone: str | None = None, random: np.random.RandomState | None = None) -> Environment:
    """The dm_control environment (physics, task, timing) behind a task, with the cone asked for."""
    row = find(name)
    environment = row.load(np.random.RandomState() if random is None else random)
    set_cone(environment.physics.model.ptr, row.cone if cone is None else cone)
    return environment


def robot(name: str, environment: Environment, direction: Any = None) -> Robot:
    """The robot of a loaded task, with a direction of travel, `random`, or the task's own."""
    physics = environment.physics
    model, (t, is_drawn) = physics.model.ptr, travel(name, direction)
    return Robot(model, physics.data.ptr, from_model(model), t, find(name).target, is_drawn)


def travel(name: str, direction: Any = None) -> tuple[np.ndarray | None, bool]:
    """The direction of travel of a task, its own unless one is given, and whether every episode draws another."""
    if find(name).travels:
        return direction_of(FORWARD if direction is None else direction)
    if direction is not None:
        travelling = [other for other, task in TASKS.items() if task.travels]
        raise EudaError(f"task {name!r} has no direction of travel: those that have are {', '.join(travelling)}")
    return None, False


def reward(name: str, environment: Environment) -> Reward:
    """The reward of a loaded task: that of its row, or dm_control's own."""
    make = find(name).reward
    if make is not None:
        return make(environment.physics.model.ptr)
    return lambda xp, scene: environment.task.get_reward(environment.physics)


def observer(name: str, robot: Robot, features: str) -> Observer:
    """What an agent observes of that robot."""
    return Observer(robot, find_features(features).make(robot, find(name).senses))
