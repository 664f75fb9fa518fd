"""dm_control's rewards as plain functions of a scene, along any direction of travel.

Each function here takes the numbers of a task and returns its `Reward`, which is made for a model (where ids are
looked up) and is then a pure function of (array namespace, scene). Tests compare them with dm_control's own, value by
value, in states where each term acts.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import mujoco
import numpy as np

from euda.body.robot import Scene

Reward = Callable[[Any, Scene], Any]
"""(array namespace, scene) → reward in [0, 1]."""
MakeReward = Callable[[mujoco.MjModel], Reward]

_UP = 8  # the last entry of a rotation matrix: how far a body's own z axis points up


def cheetah(speed: float) -> MakeReward:
    """Run: the centre of mass at `speed` (m/s) along the direction."""

    def make(model: mujoco.MjModel) -> Reward:
        travel = _travel(model)

        def reward(xp: Any, scene: Scene) -> Any:
            return tolerance(xp, travel(scene), (speed, np.inf), speed, "linear", 0.0)

        return reward

    return make


def hopper(speed: float) -> MakeReward:
    """Hop: the torso over the foot, and the centre of mass at `speed` (m/s) along the direction."""

    def make(model: mujoco.MjModel) -> Reward:
        travel, torso, foot = _travel(model), model.body("torso").id, model.body("foot").id

        def reward(xp: Any, scene: Scene) -> Any:
            height = scene.data.xipos[torso, 2] - scene.data.xipos[foot, 2]
            standing = tolerance(xp, height, (0.6, 2.0))
            hopping = tolerance(xp, travel(scene), (speed, np.inf), speed / 2, "linear", 0.5)
            return standing * hopping

        return reward

    return make


def walker(speed: float) -> MakeReward:
    """Run or walk: the torso high and upright, and the centre of mass at `speed` (m/s) along the direction."""

    def make(model: mujoco.MjModel) -> Reward:
        travel, torso = _travel(model), model.body("torso").id

        def reward(xp: Any, scene: Scene) -> Any:
            standing = tolerance(xp, scene.data.xpos[torso, 2], (1.2, np.inf), 0.6)
            upright = (1 + _upright(scene, torso)) / 2
            stand = (3 * standing + upright) / 4
            move = tolerance(xp, travel(scene), (speed, np.inf), speed / 2, "linear", 0.5)
            return stand * (5 * move + 1) / 6

        return reward

    return make


def quadruped(speed: float) -> MakeReward:
    """Run or walk: upright, and at `speed` (m/s) along the torso's own x axis."""

    def make(model: mujoco.MjModel) -> Reward:
        torso, forward = model.body("torso").id, _sensor(model, "velocimeter")

        def reward(xp: Any, scene: Scene) -> Any:
            upright = tolerance(xp, _upright(scene, torso), (1.0, np.inf), 2.0, "linear", 0.0)
            move = tolerance(xp, scene.data.sensordata[forward], (speed, np.inf), speed, "linear", 0.5)
            return upright * move

        return reward

    return make


def reacher() -> MakeReward:
    """Reach: the finger touches the target, whose size the reset sets in the model."""

    def make(model: mujoco.MjModel) -> Reward:
        target, finger = model.geom("target").id, model.geom("finger").id

        def reward(xp: Any, scene: Scene) -> Any:
            places, sizes = scene.data.geom_xpos, scene.model.geom_size
            distance = _length(xp, places[target, :2] - places[finger, :2])
            return tolerance(xp, distance, (0.0, sizes[target, 0] + sizes[finger, 0]))

        return reward

    return make


def humanoid(speed: float) -> MakeReward:
    """Run or walk at `speed` (m/s) in any direction, or stand still if it is 0: head high, upright, little control."""

    def make(model: mujoco.MjModel) -> Reward:
        torso, head, x = model.body("torso").id, model.body("head").id, _sensor(model, "torso_subtreelinvel")

        def reward(xp: Any, scene: Scene) -> Any:
            standing = tolerance(xp, scene.data.xpos[head, 2], (1.4, np.inf), 0.35)
            upright = tolerance(xp, _upright(scene, torso), (0.9, np.inf), 1.9, "linear", 0.0)
            small_control = xp.maximum(1 - scene.data.ctrl**2, 0.0).sum() / model.nu
            common = (4 + small_control) / 5 * (standing * upright)
            velocity = scene.data.sensordata[x : x + 2]
            if speed == 0:  # one number at a time, which is quicker than NumPy is with two
                return common * ((_still(xp, velocity[0]) + _still(xp, velocity[1])) / 2)
            move = tolerance(xp, _length(xp, velocity), (speed, np.inf), speed, "linear", 0.0)
            return common * ((5 * move + 1) / 6)

        return reward

    return make


# -- what rewards read -----------------------------------------------------------------------------------


def _sensor(model: mujoco.MjModel, name: str) -> int:
    """Where the first of a sensor's numbers lies in `sensordata`."""
    return int(model.sensor(name).adr[0])


def _travel(model: mujoco.MjModel) -> Callable[[Scene], Any]:
    """The speed of the robot's centre of mass along the direction of travel (m/s)."""
    x = _sensor(model, "torso_subtreelinvel")
    return lambda scene: scene.data.sensordata[x : x + 3] @ scene.direction


def _upright(scene: Scene, body: int) -> Any:
    """1 where the body's own z axis points up, -1 upside down."""
    return scene.data.xmat[body].reshape(9)[_UP]


# -- shaping ---------------------------------------------------------------------------------------------


def tolerance(
    xp: Any,
    x: Any,
    bounds: tuple[float, Any],
    margin: float = 0.0,
    sigmoid: str = "gaussian",
    value_at_margin: float = 0.1,
) -> Any:
    """dm_control's `tolerance`: 1 within the bounds, falling to `value_at_margin` at a distance of `margin`."""
    distance = _larger(xp, _larger(xp, bounds[0] - x, x - bounds[1]), 0.0)
    if margin == 0:
        return 1.0 - (distance > 0)
    return _SIGMOIDS[sigmoid](xp, distance / margin, value_at_margin)


def _gaussian(xp: Any, distance: Any, value_at_1: float) -> Any:
    return xp.exp(-0.5 * (distance * math.sqrt(-2 * math.log(value_at_1))) ** 2)


def _still(xp: Any, speed: Any) -> Any:
    """`tolerance` of a velocity (m/s) around 0 with a margin of 2.

    dm_control takes it of an array, and NumPy squares those by multiplying, but single numbers by `pow`, which may
    differ in the last digit.
    """
    scaled = speed / 2 * math.sqrt(-2 * math.log(0.1))
    return xp.exp(-0.5 * (scaled * scaled))


def _linear(xp: Any, distance: Any, value_at_1: float) -> Any:
    return _larger(xp, 1 - distance * (1 - value_at_1), 0.0)


def _larger(xp: Any, a: Any, b: Any) -> Any:
    """The larger of two, by entry. For single numbers Python's `max` takes a tenth of the time that NumPy takes."""
    return max(a, b) if isinstance(a, float) else xp.maximum(a, b)


def _length(xp: Any, vector: Any) -> Any:
    """The norm of one vector, as NumPy's computes it, without the search for its kind."""
    return xp.sqrt(vector @ vector)


# Each is 1 at distance 0 and `value_at_1` at distance 1.
_SIGMOIDS: dict[str, Callable[[Any, Any, float], Any]] = {"gaussian": _gaussian, "linear": _linear}
