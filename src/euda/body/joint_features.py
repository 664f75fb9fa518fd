"""Joint features of anybody's robot, for the baselines: what dm_control would observe of it.

Heights, orientation and velocity of the root, then angles and rates of the joints; with the direction or the
target of the task, because a reward that follows something unseen cannot be learned.
"""

from __future__ import annotations

from collections.abc import Sequence

import mujoco
import numpy as np

from euda.body import readings
from euda.body.field import Kind
from euda.body.limb_features import object_readings, task_readings
from euda.body.readings import Make, Reading
from euda.body.robot import Robot
from euda.body.turn import heading_joint
from euda.errors import EudaError

_SIZES = {0: (7, 6), 1: (4, 3), 2: (1, 1), 3: (1, 1)}  # positions and rates of free, ball, slide and hinge joints


def joint_readings(robot: Robot, sensory: Sequence[Make] = ()) -> list[Reading]:
    """Positions and rates of all joints of the robot, in the order of its tree."""
    joints = [joint for limb in robot.morphology.limbs for joint in limb.joints]
    root = list(robot.morphology.root.joints)
    parts = _free_root(robot, root[0]) if robot.morphology.base == "free" else _rooted(robot, root)
    rest = joints[len(root) :]
    if robot.morphology.base == "fixed" and rest and _is_heading(robot, rest[0]):
        parts.append(_positions(robot, "heading", rest[:1], Kind.HEADING))
        parts.append(_rates(robot, "heading_velocity", rest[:1]))
        rest = rest[1:]
    if rest:
        parts += [_positions(robot, "joint_angles", rest), _rates(robot, "joint_velocities", rest)]
    parts += [*task_readings(robot), *(make(robot) for make in sensory)]
    if robot.morphology.activations:
        parts.append(readings.activations()(robot))
    return parts + object_readings(robot)


def _free_root(robot: Robot, joint: int) -> list[Reading]:
    q, v = int(robot.model.jnt_qposadr[joint]), int(robot.model.jnt_dofadr[joint])
    makes = (
        readings.joint_positions("root_height", q + 2, q + 3),
        readings.joint_positions("root_orientation", q + 3, q + 7, Kind.QUATERNION),
        readings.joint_velocities("root_velocity", v, v + 3, Kind.VECTOR),
        readings.joint_velocities("root_angular_velocity", v + 3, v + 6),  # in the root's own frame
    )
    return [make(robot) for make in makes]


def _rooted(robot: Robot, joints: list[int]) -> list[Reading]:
    """The joints of a planar root, without how far it has travelled."""
    kept = [joint for joint in joints if not _is_horizontal_slide(robot, joint)]
    parts = [_positions(robot, f"root_position{k}", [joint]) for k, joint in enumerate(kept)]
    return [*parts, _rates(robot, "root_velocity", joints)] if joints else []


def _is_horizontal_slide(robot: Robot, joint: int) -> bool:
    """Whether a joint at the root slides over the floor."""
    model = robot.model
    axis = np.empty(3)
    mujoco.mju_rotVecQuat(axis, model.jnt_axis[joint], model.body_quat[int(model.jnt_bodyid[joint])])
    return mujoco.mjtJoint(model.jnt_type[joint]) == mujoco.mjtJoint.mjJNT_SLIDE and bool(abs(axis[2]) < 1e-9)


def _is_heading(robot: Robot, joint: int) -> bool:
    """Whether the first joint of a fixed base turns the whole robot about the world's own vertical axis."""
    try:
        return heading_joint(robot) == joint and not robot.model.body_pos[robot.morphology.mount, :2].any()
    except EudaError:
        return False


def _positions(robot: Robot, name: str, joints: list[int], kind: Kind = Kind.SCALAR) -> Reading:
    return readings.joint_positions(name, *_span(robot, "jnt_qposadr", joints, 0), kind)(robot)


def _rates(robot: Robot, name: str, joints: list[int]) -> Reading:
    return readings.joint_velocities(name, *_span(robot, "jnt_dofadr", joints, 1))(robot)


def _span(robot: Robot, addresses: str, joints: list[int], which: int) -> tuple[int, int]:
    """First and last entry of joints that follow each other, as the joints of one tree do."""
    address = getattr(robot.model, addresses)
    return int(address[joints[0]]), int(address[joints[-1]]) + _SIZES[int(robot.model.jnt_type[joints[-1]])][which]
