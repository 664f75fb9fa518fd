"""Rewards of robots of one's own: three by name, or anybody's function of MuJoCo's model and data."""

from __future__ import annotations

import dataclasses
import inspect
import math
import numbers
from collections.abc import Callable
from typing import Any

import mujoco
import numpy as np

from euda.body.robot import Robot, point
from euda.errors import EudaError, failure, unknown

Reward = Callable[[], float]
"""The reward of the current state."""
RewardFunction = Callable[..., Any]
"""function(model: MjModel, data: MjData) -> float; it may ask for `direction` and `target` too, world vectors [3]."""

HALFWAY = 0.1
"""The distance (m) at which `reach` is a half."""


def run(robot: Robot) -> Reward:
    """The speed of the robot's centre of mass along the direction (m/s); return times timestep is the distance."""
    direction, model, data, root = robot.direction, robot.model, robot.data, robot.morphology.mount
    if direction is None:
        raise EudaError("reward 'run' needs a direction of travel (on the command line --direction X Y)")
    if robot.morphology.base == "fixed":
        raise EudaError("reward 'run' needs a robot that can travel, and the base of this one is fixed")
    velocity = data.subtree_linvel[root]

    def reward() -> float:
        mujoco.mj_subtreeVel(model, data)  # MuJoCo computes it by itself only for sensors
        return float(velocity @ direction)

    return reward


def reach(robot: Robot) -> Reward:
    """How near the limb is to the target: 1 / (1 + distance / 0.1 m), so 1 there, 1/2 at 10 cm, 1/11 at 1 m."""
    if robot.target is None:
        raise EudaError("reward 'reach' needs a target (on the command line --target NAME or --target X Y Z)")
    limb, target = point(robot.model, robot.data, robot.target.limb), target_point(robot)

    def reward() -> float:
        return 1.0 / (1.0 + math.dist(limb, target) / HALFWAY)

    return reward


def stand(robot: Robot) -> Reward:
    """Height of the root over its height at the start (at most 1) times uprightness: 1 standing, 0 upside down."""
    if robot.morphology.base == "fixed":
        raise EudaError("reward 'stand' needs a robot that can fall, and the base of this one is fixed")
    root = robot.morphology.root.body
    start = mujoco.MjData(robot.model)
    set_start_pose(robot.model, start)
    mujoco.mj_kinematics(robot.model, start)
    standing, up = float(start.xpos[root, 2]), start.xmat[root, 6:9].copy()  # the vertical in the root's own frame
    if standing <= 0:
        raise EudaError(f"reward 'stand' needs a start above the floor at height 0, but the root is at {standing:g} m")
    place, vertical = robot.data.xpos[root], robot.data.xmat[root, 6:9]

    def reward() -> float:
        height = min(max(float(place[2]) / standing, 0.0), 1.0)
        return height * 0.5 * (1.0 + float(vertical @ up))

    return reward


@dataclasses.dataclass(frozen=True)
class RewardRow:
    """A reward that a robot of one's own can be given by name."""

    make: Callable[[Robot], Reward]
    text: str
    """What it is, in a few words."""


REWARDS: dict[str, RewardRow] = {
    "run": RewardRow(run, "speed along the direction"),
    "reach": RewardRow(reach, "nearness of a limb to the target"),
    "stand": RewardRow(stand, "height and uprightness"),
}
"""Rewards by name.

>>> from euda.tasks.rewards import REWARDS
>>> {name: row.text for name, row in REWARDS.items()}["run"]
'speed along the direction'
"""


def bind(robot: Robot, reward: str | RewardFunction, name: str | None = None) -> Reward:
    """The reward of a robot: one of the built-in ones by name, or a function of model and data."""
    if callable(reward):
        return _from_function(robot, reward, name or getattr(reward, "__qualname__", "reward"))
    if reward not in REWARDS:
        raise unknown("reward", reward, [*REWARDS, "module:function"])
    return REWARDS[reward].make(robot)


def set_start_pose(model: mujoco.MjModel, data: mujoco.MjData) -> None:
    """The first keyframe, or the model's own pose where it has none."""
    mujoco.mj_resetData(model, data)
    if model.nkey:
        mujoco.mj_resetDataKeyframe(model, data, 0)


def target_point(robot: Robot) -> np.ndarray:
    """A view of where the target is in the world [3]."""
    assert robot.target is not None
    place = robot.target.place
    return point(robot.model, robot.data, place) if isinstance(place, str) else place


def _from_function(robot: Robot, function: RewardFunction, name: str) -> Reward:
    model, data, wanted = robot.model, robot.data, _wanted(robot, function, name)

    def reward() -> float:
        try:
            value = function(model, data, **wanted)
        except (Exception, SystemExit) as error:  # whatever a user's function raises becomes one sentence
            raise failure(f"reward {name!r}", error) from error
        if not isinstance(value, numbers.Real) or not math.isfinite(value):
            shown = " ".join(repr(value).split())
            raise EudaError(f"reward {name!r} must return a finite number, not {shown} ({type(value).__name__})")
        return float(value)

    return reward


def _wanted(robot: Robot, function: RewardFunction, name: str) -> dict[str, np.ndarray]:
    """What a function asks for beside model and data: views that follow the simulation."""
    valid = "a reward is a function (model, data), which may also ask for direction and target"
    try:
        parameters = list(inspect.signature(function).parameters.values())
    except (TypeError, ValueError):
        return {}  # compiled functions may not say: they are called with model and data
    named = [p for p in parameters if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY, p.POSITIONAL_ONLY)]
    takes_any = any(p.kind is p.VAR_POSITIONAL for p in parameters)
    if len(named) < 2 and not takes_any:
        raise EudaError(f"reward {name!r} takes {len(named)} arguments: {valid}")
    available: dict[str, np.ndarray] = {}
    if robot.direction is not None:
        available["direction"] = robot.direction
    if robot.target is not None:
        available["target"] = target_point(robot)
    wanted: dict[str, np.ndarray] = {}
    for parameter in named[2:]:
        if parameter.name in available:
            wanted[parameter.name] = available[parameter.name]
        elif parameter.name in ("direction", "target") and parameter.default is parameter.empty:
            raise EudaError(f"reward {name!r} asks for a {parameter.name}: add --{parameter.name}")
        elif parameter.default is parameter.empty:
            raise EudaError(f"reward {name!r} asks for {parameter.name!r}: {valid}")
    return wanted
