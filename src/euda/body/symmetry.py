"""Turning the world: the same physical situation, seen after a yaw about the vertical axis.

What moves freely is turned by its state (position, orientation, world velocity of every free joint); what
hangs on the world by other joints is turned by its model (where the first body is mounted). The floor,
gravity and wind stay: whether they care is what the certificate finds out.
"""

from __future__ import annotations

import dataclasses

import mujoco
import numpy as np

from euda.body.robot import Robot
from euda.errors import EudaError

_FREE = mujoco.mjtJoint.mjJNT_FREE
_TURNED_MODEL = ("body_pos", "body_quat", "geom_pos", "site_pos")


def yaw_matrix(yaw: float) -> np.ndarray:
    """R_α [3, 3]."""
    c, s = np.cos(yaw), np.sin(yaw)
    return np.array([[c, -s, 0.0], [s, c, 0.0], [0.0, 0.0, 1.0]])


def yaw_quaternion(yaw: float) -> np.ndarray:
    """The same rotation as a quaternion (w, x, y, z)."""
    return np.array([np.cos(yaw / 2), 0.0, 0.0, np.sin(yaw / 2)])


def _multiply(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    product = np.empty(4)
    mujoco.mju_mulQuat(product, left, right)
    return product


def free_joints(model: mujoco.MjModel) -> list[int]:
    """Joints that are turned by their state."""
    return [joint for joint in range(model.njnt) if mujoco.mjtJoint(model.jnt_type[joint]) == _FREE]


def heading_joint(robot: Robot) -> int:
    """The vertical hinge at a fixed base whose angle is the robot's heading (the reacher's shoulder)."""
    model, mount = robot.model, robot.morphology.mount
    joint = int(model.body_jntadr[mount])
    axis = np.empty(3)
    if model.body_jntnum[mount]:
        mujoco.mju_rotVecQuat(axis, model.jnt_axis[joint], model.body_quat[mount])
    hinge = model.body_jntnum[mount] == 1 and mujoco.mjtJoint(model.jnt_type[joint]) == mujoco.mjtJoint.mjJNT_HINGE
    if robot.morphology.base != "fixed" or not hinge or abs(axis[2] - 1.0) > 1e-12 or model.jnt_limited[joint]:
        raise EudaError(
            "the layout has a HEADING, but the robot's base has no unlimited hinge about the vertical to turn"
        )
    return joint


@dataclasses.dataclass(frozen=True)
class Turn:
    """A yaw of everything that belongs to the task. Only `robot`'s own model, data and direction are changed."""

    yaw: float
    by_heading: bool = False
    """Turn a fixed base by its first joint (a state) instead of by its mounting (the model)."""
    turn_direction: bool = True
    """Whether the direction of travel turns too: it must, if the agent observes it."""

    def state(self, robot: Robot, qpos: np.ndarray, *rates: np.ndarray) -> None:
        """Turn `qpos` [nq] and arrays like `qvel` [nv] in place."""
        matrix, quaternion = yaw_matrix(self.yaw), yaw_quaternion(self.yaw)
        for joint in free_joints(robot.model):
            q, v = int(robot.model.jnt_qposadr[joint]), int(robot.model.jnt_dofadr[joint])
            qpos[q : q + 3] = matrix @ qpos[q : q + 3]
            qpos[q + 3 : q + 7] = _multiply(quaternion, qpos[q + 3 : q + 7])
            for rate in rates:  # the angular part is in the body's own frame: unchanged
                rate[v : v + 3] = matrix @ rate[v : v + 3]
        if self.by_heading:
            qpos[int(robot.model.jnt_qposadr[heading_joint(robot)])] += self.yaw

    def model(self, robot: Robot) -> None:
        """Turn the mountings of what is not free, and the target, in the robot's model."""
        model, quaternion, matrix = robot.model, yaw_quaternion(self.yaw), yaw_matrix(self.yaw)
        for body in self._mountings(robot):
            model.body_pos[body] = matrix @ model.body_pos[body]
            model.body_quat[body] = _multiply(quaternion, model.body_quat[body])
        for place in target_places(robot):
            place[:] = matrix @ place

    def direction(self, robot: Robot) -> None:
        """Turn the direction of travel in place."""
        if robot.direction is not None and self.turn_direction:
            robot.direction[:] = yaw_matrix(self.yaw) @ robot.direction

    def mocap(self, data: mujoco.MjData) -> None:
        """Turn what is moved by hand (mocap bodies), wherever it is."""
        data.mocap_pos[:] = data.mocap_pos @ yaw_matrix(self.yaw).T
        for index in range(len(data.mocap_quat)):
            data.mocap_quat[index] = _multiply(yaw_quaternion(self.yaw), data.mocap_quat[index])

    def _mountings(self, robot: Robot) -> list[int]:
        """Bodies under the world with joints other than a free one somewhere in their tree."""
        model = robot.model
        free = {int(model.jnt_bodyid[joint]) for joint in free_joints(model)}
        moving = {robot.morphology.mount, *(int(model.body_rootid[b]) for b in robot.morphology.objects)}
        kept = {robot.morphology.mount} if self.by_heading else set()
        return sorted(moving - free - kept)


def turned_model_arrays(model: mujoco.MjModel) -> dict[str, np.ndarray]:
    """Copies of the model arrays that `Turn.model` may change, to put them back."""
    return {name: getattr(model, name).copy() for name in _TURNED_MODEL}


def put_back(model: mujoco.MjModel, arrays: dict[str, np.ndarray]) -> None:
    """Undo `Turn.model`."""
    for name, values in arrays.items():
        getattr(model, name)[:] = values


def target_places(robot: Robot) -> list[np.ndarray]:
    """Views of where a target that belongs to the world is put: nothing else would turn it."""
    model, target = robot.model, robot.target
    if target is None:
        return []
    if not isinstance(target.place, str):
        return [target.place]
    owners = (
        ("site", model.site_pos, model.site_bodyid),
        ("geom", model.geom_pos, model.geom_bodyid),
        ("body", model.body_pos, model.body_parentid),
    )
    for what, places, parents in owners:  # the order in which readings.point looks names up
        index = mujoco.mj_name2id(model, getattr(mujoco.mjtObj, f"mjOBJ_{what.upper()}"), target.place)
        if index >= 0:
            is_static = parents[index] == 0 and (what != "body" or model.body_jntnum[index] == 0)
            return [places[index]] if is_static else []
    return []
