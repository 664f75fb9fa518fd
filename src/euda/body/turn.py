"""Turning the world: the same physical situation, seen after a yaw about a vertical axis.

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


def multiply(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """The product of two quaternions [4]."""
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
    centre: tuple[float, float] = (0.0, 0.0)
    """Where the vertical axis of the turn meets the floor (m)."""
    turn_direction: bool = True
    """Whether the direction of travel turns too: it must, if the agent observes it."""

    def place(self, point: np.ndarray) -> np.ndarray:
        """Where a point [3] of the world comes to lie."""
        centre = np.array([*self.centre, 0.0])
        return centre + yaw_matrix(self.yaw) @ (point - centre)

    def state(self, robot: Robot, qpos: np.ndarray, *rates: np.ndarray) -> None:
        """Turn free joints in `qpos` [nq] and in arrays like `qvel` [nv], in place."""
        matrix, quaternion = yaw_matrix(self.yaw), yaw_quaternion(self.yaw)
        for joint in free_joints(robot.model):
            q, v = int(robot.model.jnt_qposadr[joint]), int(robot.model.jnt_dofadr[joint])
            qpos[q : q + 3] = self.place(qpos[q : q + 3])
            qpos[q + 3 : q + 7] = multiply(quaternion, qpos[q + 3 : q + 7])
            for rate in rates:  # the angular part is in the body's own frame: unchanged
                rate[v : v + 3] = matrix @ rate[v : v + 3]

    def model(self, robot: Robot) -> None:
        """Turn the mountings of what is not free, and the target, in the robot's model."""
        model, quaternion, target = robot.model, yaw_quaternion(self.yaw), world_target(robot)
        place = None if target is None else self.place(target.position())
        for body in mountings(robot):
            model.body_pos[body] = self.place(model.body_pos[body])
            model.body_quat[body] = multiply(quaternion, model.body_quat[body])
        if target is not None and place is not None:
            target.move_to(place)

    def target(self, robot: Robot) -> None:
        """Turn the target alone."""
        if (target := world_target(robot)) is not None:
            target.move_to(self.place(target.position()))

    def direction(self, robot: Robot) -> None:
        """Turn the direction of travel in place."""
        if robot.direction is not None and self.turn_direction:
            robot.direction[:] = yaw_matrix(self.yaw) @ robot.direction

    def mocap(self, data: mujoco.MjData) -> None:
        """Turn what is moved by hand (mocap bodies), wherever it is."""
        for index in range(len(data.mocap_pos)):
            data.mocap_pos[index] = self.place(data.mocap_pos[index])
            data.mocap_quat[index] = multiply(yaw_quaternion(self.yaw), data.mocap_quat[index])


def mountings(robot: Robot) -> list[int]:
    """Bodies under the world with joints other than a free one somewhere in their tree."""
    model = robot.model
    free = {int(model.jnt_bodyid[joint]) for joint in free_joints(model)}
    moving = {robot.morphology.mount, *(int(model.body_rootid[b]) for b in robot.morphology.objects)}
    return sorted(moving - free)


@dataclasses.dataclass(frozen=True)
class WorldTarget:
    """A target that belongs to the world, on it or on a body that is fixed to it: nothing else would move it."""

    model: mujoco.MjModel
    local: np.ndarray
    """A view [3] of where it is put, in the frame of its owner."""
    owner: int
    """The body in whose frame that is; 0 is the world."""
    sameframe: np.ndarray | None = None
    """A view [1] of MuJoCo's mark that it lies in its owner's frame, which makes MuJoCo skip `local`."""

    def position(self) -> np.ndarray:
        """Where it is in the world [3]."""
        place, rotation = static_frame(self.model, self.owner)
        return place + rotation @ self.local

    def move_to(self, point: np.ndarray) -> None:
        """Put it there, in the model; the simulation knows after its next kinematics."""
        place, rotation = static_frame(self.model, self.owner)
        self.local[:] = rotation.T @ (point - place)
        if self.sameframe is not None:
            self.sameframe[:] = 0


def static_frame(model: mujoco.MjModel, body: int) -> tuple[np.ndarray, np.ndarray]:
    """Place and rotation matrix of a body that is fixed to the world, from the model alone."""
    place, rotation = np.zeros(3), np.eye(3)
    while body:
        matrix = np.empty(9)
        mujoco.mju_quat2Mat(matrix, model.body_quat[body])
        own = matrix.reshape(3, 3)
        place, rotation = model.body_pos[body] + own @ place, own @ rotation
        body = int(model.body_parentid[body])
    return place, rotation


def world_target(robot: Robot) -> WorldTarget | None:
    """The target, if it belongs to the world; None if something that moves carries it, or there is none."""
    model, target = robot.model, robot.target
    if target is None:
        return None
    if not isinstance(target.place, str):
        return WorldTarget(model, target.place, 0)
    found = _owned_place(model, target.place)
    return found if found is not None and _is_static(model, found.owner) else None


def _owned_place(model: mujoco.MjModel, name: str) -> WorldTarget | None:
    """Where the site, geom or body of that name (in the order in which readings look names up) is put."""
    owners = (
        ("site", model.site_pos, model.site_bodyid, model.site_sameframe),
        ("geom", model.geom_pos, model.geom_bodyid, model.geom_sameframe),
        ("body", model.body_pos, model.body_parentid, None),
    )
    for what, places, owner, same in owners:
        index = mujoco.mj_name2id(model, getattr(mujoco.mjtObj, f"mjOBJ_{what.upper()}"), name)
        if index >= 0:
            is_moved = what == "body" and not _is_static(model, index)
            mark = None if same is None else same[index : index + 1]
            return None if is_moved else WorldTarget(model, places[index], int(owner[index]), mark)
    return None


def _is_static(model: mujoco.MjModel, body: int) -> bool:
    """Whether a body is fixed to the world: no joint and no hand (mocap) between the two."""
    if model.body_weldid[body] != 0:
        return False
    while body:
        if model.body_mocapid[body] >= 0:
            return False
        body = int(model.body_parentid[body])
    return True


def turned_model_arrays(model: mujoco.MjModel) -> dict[str, np.ndarray]:
    """Copies of the model arrays that `Turn.model` may change, to put them back."""
    return {name: getattr(model, name).copy() for name in _TURNED_MODEL}


def put_back(model: mujoco.MjModel, arrays: dict[str, np.ndarray]) -> None:
    """Undo `Turn.model`."""
    for name, values in arrays.items():
        getattr(model, name)[:] = values
