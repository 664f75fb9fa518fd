"""Where to travel: a direction drawn at the beginning of an episode."""

from __future__ import annotations

import math

import mujoco
import numpy as np

from euda.body.robot import Robot
from euda.errors import EudaError


def draw_direction(robot: Robot, stream: np.random.Generator | np.random.RandomState) -> None:
    """Set the robot's direction of travel, if its episodes draw one: any horizontal one in which it can go."""
    if not robot.is_direction_drawn or robot.direction is None:
        return
    line = track(robot)
    if line is None:
        yaw = stream.uniform(-math.pi, math.pi)
        robot.direction[:] = math.cos(yaw), math.sin(yaw), 0.0
    else:  # forwards or backwards
        robot.direction[:] = line if stream.uniform() < 0.5 else -line


def check_travel(robot: Robot) -> None:
    """Refuse a direction that a robot on a track cannot go at all."""
    line = track(robot) if robot.morphology.base == "planar" else None
    if line is None or robot.direction is None or abs(line @ robot.direction) > 1e-9:
        return
    way, asked = (" ".join(f"{number:g}" for number in vector) for vector in (line, robot.direction))
    raise EudaError(f"this robot slides along {way} and cannot travel along {asked}")


def track(robot: Robot) -> np.ndarray | None:
    """The line along which a planar robot slides, a unit vector [3]; None where nothing holds it to one."""
    model, slide = robot.model, int(mujoco.mjtJoint.mjJNT_SLIDE)
    if robot.morphology.base != "planar":
        return None
    axes = []
    for joint in robot.morphology.root.joints:
        axis = np.zeros(3)
        mujoco.mju_rotVecQuat(axis, model.jnt_axis[joint], model.body_quat[robot.morphology.mount])
        if model.jnt_type[joint] == slide and np.linalg.norm(axis[:2]) > 1e-9:
            axes.append(np.array([*axis[:2], 0.0]) / np.linalg.norm(axis[:2]))
    if not axes:
        raise EudaError("a random direction needs a robot that can travel, and no joint at the root of this one slides")
    is_line = all(abs(np.cross(axes[0], axis)[2]) < 1e-9 for axis in axes)
    return axes[0] if is_line else None
