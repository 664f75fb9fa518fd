"""The ten tasks of the paper, a row each: which body, which direction or target, which readings.

A new task is a new row. What differs between tasks lives here and nowhere else.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Literal

import mujoco
import numpy as np

from euda.body import readings, sensors
from euda.body.layout import Kind
from euda.body.morphology import Morphology, from_model
from euda.body.observation import Observer, check_features, limb_paper_readings, limb_readings
from euda.body.readings import Make
from euda.body.robot import Robot, Target
from euda.config import named
from euda.errors import unknown

if TYPE_CHECKING:
    from dm_control.rl.control import Environment

Cone = Literal["default", "elliptic"]
CONES = ("default", "elliptic")
EPISODE_STEPS = 1000


@dataclasses.dataclass(frozen=True)
class Task:
    """One row: a body and its dm_control task, and what an agent observes of it."""

    domain: str
    task: str
    joint: tuple[Make, ...]
    """dm_control's own observation, entry for entry."""
    sensory: tuple[Make, ...] = ()
    """The paper's sensory readings, beside the limbs."""
    extra: tuple[Make, ...] = ()
    """Readings of dm_control's observation that the paper's table forgot; in `limb` only."""
    paper_only: tuple[Make, ...] = ()
    """Readings that `limb` has anyway."""
    travels: bool = False
    """Rewarded for speed along a direction, which then belongs to the state."""
    target: Target | None = None
    """Rewarded for bringing a limb to a target, the vector to which then belongs to the state."""
    is_3d_variant: bool = False
    steps: int = 2_000_000
    """Environment steps of the published protocol."""
    loader: str = ""
    """`module:function` from a RandomState to a dm_control environment; by default dm_control's own of these names."""

    @property
    def default_cone(self) -> Cone:
        """dm_control's pyramidal cone for its own tasks; elliptic, which is exactly symmetric, for ours."""
        return "elliptic" if self.is_3d_variant else "default"


_POSITION = readings.joint_positions("position", 1)  # without the horizontal position
_VELOCITY = readings.joint_velocities("velocity")
_TOUCH = sensors.read("touch", "touch_toe", "touch_heel", transform=np.log1p)
_FREE_ROOT = (  # height, orientation and velocity of a free root, then the hinges
    readings.joint_positions("root_height", 2, 3),
    readings.joint_positions("root_orientation", 3, 7, Kind.QUATERNION),
    readings.joint_positions("joint_angles", 7),
    readings.joint_velocities("root_velocity", 0, 3, Kind.VECTOR),
    readings.joint_velocities("joint_velocities", 3),  # the root's angular velocity is in its own frame
)
_LEGS = ("front_left", "front_right", "back_right", "back_left")
_FORCE = sensors.read("force", *(f"force_toe_{leg}" for leg in _LEGS), transform=np.arcsinh)
_TORQUE = sensors.read("torque", *(f"torque_toe_{leg}" for leg in _LEGS), transform=np.arcsinh)
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


def _humanoid(task: str) -> Task:
    com, limbs, vertical = _HUMANOID_SENSES
    return Task(
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
        steps=5_000_000,
    )


TASKS: dict[str, Task] = {
    "cheetah_run": Task("cheetah", "run", joint=(_POSITION, _VELOCITY), travels=True),
    "cheetah3d_run": Task("cheetah", "run", joint=_FREE_ROOT, travels=True, is_3d_variant=True),
    "hopper_hop": Task("hopper", "hop", joint=(_POSITION, _VELOCITY, _TOUCH), sensory=(_TOUCH,), travels=True),
    "hopper3d_hop": Task(
        "hopper", "hop", joint=(*_FREE_ROOT, _TOUCH), sensory=(_TOUCH,), travels=True, is_3d_variant=True
    ),
    "walker_run": Task(
        "walker",
        "run",
        joint=(readings.planar_orientations("orientations"), readings.height("height", "torso"), _VELOCITY),
        paper_only=(readings.height("height"),),
        travels=True,
    ),
    "walker3d_run": Task(
        "walker", "run", joint=_FREE_ROOT, paper_only=(readings.height("height"),), travels=True, is_3d_variant=True
    ),
    "quadruped_run": Task(
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
                transform=np.arcsinh,
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
    ),
    "reacher_hard": Task(
        "reacher",
        "hard",
        joint=(
            readings.joint_positions("shoulder", 0, 1, Kind.HEADING),
            readings.joint_positions("wrist", 1),
            lambda robot: readings.to_target(robot, Kind.PLANAR),
            _VELOCITY,
        ),
        target=Target("target", "finger"),
    ),
    "humanoid_run": _humanoid("run"),
    "humanoid_stand": _humanoid("stand"),
}
"""The tasks by name.

>>> from euda import TASKS
>>> sorted(name for name, task in TASKS.items() if task.is_3d_variant)
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
    """Leave the model's friction cone as it is (`default`) or make it elliptic."""
    if cone not in CONES:
        raise unknown("cone", cone, CONES)
    if cone == "elliptic":
        model.opt.cone = mujoco.mjtCone.mjCONE_ELLIPTIC


def cone_name(model: mujoco.MjModel) -> str:
    """The friction cone that a model really has."""
    return "elliptic" if int(model.opt.cone) == int(mujoco.mjtCone.mjCONE_ELLIPTIC) else "pyramidal"


def load(name: str, cone: str | None = None, random: np.random.RandomState | None = None) -> Environment:
    """The dm_control environment (physics, task, timing) behind a task, with the cone asked for."""
    from euda.body import models, suite  # dm_control takes a second to import: not for the table alone

    row = find(name)
    random = np.random.RandomState() if random is None else random
    if row.loader:
        environment = named(row.loader)(random)
    else:
        environment = models.load(row.domain, random) if row.is_3d_variant else suite.load(row.domain, row.task, random)
    set_cone(environment.physics.model.ptr, row.default_cone if cone is None else cone)
    return environment


def robot(name: str, environment: Environment) -> Robot:
    """The robot of a loaded task; its direction is the array that the reward reads."""
    row, physics = find(name), environment.physics
    model = physics.model.ptr
    direction = physics.direction if row.travels else None
    return Robot(model, physics.data.ptr, from_model(model), direction, row.target)


def observer(name: str, robot: Robot, features: str) -> Observer:
    """What an agent observes of that robot."""
    check_features(features)
    row = find(name)
    if features == "joint":
        return Observer([make(robot) for make in row.joint])
    if features == "limb-paper":
        return Observer(limb_paper_readings(robot, (*row.paper_only, *row.sensory)))
    return Observer(limb_readings(robot, (*row.sensory, *row.extra)))


@dataclasses.dataclass(frozen=True)
class Summary:
    """One line of `euda tasks`."""

    name: str
    n: int
    d1: int
    n1: int
    n2: int
    n3: int
    actions: int
    features: dict[str, int]
    episode_steps: int
    control_timestep: float
    """Seconds."""
    cone: str
    """The friction cone used unless another is asked for: `pyramidal` or `elliptic`."""


def summary(name: str) -> Summary:
    """Sizes of a task, all derived from its model."""
    environment = load(name)
    body = robot(name, environment)
    limbs: Morphology = body.morphology
    sizes = {features: observer(name, body, features).layout.dim for features in ("limb", "limb-paper", "joint")}
    return Summary(
        name, limbs.n, limbs.d1, limbs.count(1), limbs.count(2), limbs.count(3), int(body.model.nu), sizes,
        EPISODE_STEPS, environment.control_timestep(), cone_name(body.model),
    )  # fmt: skip
