"""Where episodes of one's own robot begin: the model's own pose, a little disturbed."""

from __future__ import annotations

import math

import mujoco
import numpy as np

from euda.body.robot import Robot
from euda.body.turn import yaw_matrix, yaw_quaternion
from euda.tasks.rewards import set_start_pose

NOISE = 0.1
"""Share of a joint's range by which its start is disturbed, to either side."""
_UNLIMITED = 2 * math.pi  # rad: the range that a driven hinge without limits counts as


class Start:
    """Puts a robot at the start of an episode."""

    def __init__(self, robot: Robot, noise: float, random_heading: bool) -> None:
        self._robot, self._noise, self._random_heading = robot, noise, random_heading
        model = robot.model
        self._limited = [j for j in range(model.njnt) if model.jnt_limited[j] and _is_simple(model, j)]
        joints = [joint for limb in robot.morphology.limbs[1:] for joint in limb.joints]
        hinge = int(mujoco.mjtJoint.mjJNT_HINGE)
        self._endless = [j for j in joints if not model.jnt_limited[j] and model.jnt_type[j] == hinge]

    def __call__(self, rng: np.random.Generator) -> None:
        """Set the first keyframe (or the model's own pose), disturb the joints, and turn the root if it is to be."""
        model, data = self._robot.model, self._robot.data
        set_start_pose(model, data)
        low, high = model.jnt_range[self._limited].T
        address = model.jnt_qposadr[self._limited]
        spread = self._noise * (high - low) * rng.uniform(-1, 1, len(self._limited))
        data.qpos[address] = np.clip(data.qpos[address] + spread, low, high)
        if self._endless:
            turns = rng.uniform(-1, 1, len(self._endless))
            data.qpos[model.jnt_qposadr[self._endless]] += self._noise * _UNLIMITED * turns
        if self._random_heading:
            self._turn(rng.uniform(-math.pi, math.pi))
        mujoco.mj_forward(model, data)

    def _turn(self, yaw: float) -> None:
        """Turn the robot where it stands; things lying about stay."""
        model, data, joint = self._robot.model, self._robot.data, self._robot.morphology.root.joints[0]
        q, v = int(model.jnt_qposadr[joint]) + 3, int(model.jnt_dofadr[joint])
        turned = np.empty(4)
        mujoco.mju_mulQuat(turned, yaw_quaternion(yaw), data.qpos[q : q + 4])
        data.qpos[q : q + 4] = turned
        data.qvel[v : v + 3] = yaw_matrix(yaw) @ data.qvel[v : v + 3]


def _is_simple(model: mujoco.MjModel, joint: int) -> bool:
    return bool(model.jnt_type[joint] >= int(mujoco.mjtJoint.mjJNT_SLIDE))
