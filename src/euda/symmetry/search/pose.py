"""MjModel → reference poses: where the parts of a robot are when it stands as symmetric as it can.

A symmetry is found at a pose that it maps onto itself. Models differ in which pose that is: their own (qpos0), a
keyframe, the middle of all joint ranges, or all joints at zero. All are tried.
"""

from __future__ import annotations

import dataclasses

import mujoco
import numpy as np

from euda.symmetry.rotations import matrix

_JOINT = mujoco.mjtJoint
FREE, BALL, SLIDE, HINGE = (
    int(j) for j in (_JOINT.mjJNT_FREE, _JOINT.mjJNT_BALL, _JOINT.mjJNT_SLIDE, _JOINT.mjJNT_HINGE)
)


@dataclasses.dataclass(frozen=True)
class Pose:
    """Every frame, axis and centre of mass in one pose, in world axes; free bodies stand at the origin, unturned."""

    qpos: np.ndarray
    place: np.ndarray
    """[nbody, 3] origins of the bodies' frames."""
    frame: np.ndarray
    """[nbody, 3, 3] orientations of the bodies' frames."""
    centre: np.ndarray
    """[nbody, 3] centres of mass."""
    inertia: np.ndarray
    """[nbody, 3, 3] about the centres of mass."""
    anchor: np.ndarray
    """[njnt, 3]"""
    axis: np.ndarray
    """[njnt, 3]"""
    before_place: np.ndarray
    """[njnt, 3] origin of the body's frame just before the joint acts."""
    before_frame: np.ndarray
    """[njnt, 3, 3] orientation of the body's frame just before the joint acts."""


def reference_poses(model: mujoco.MjModel) -> list[Pose]:
    """The poses at which symmetries are looked for, without repetition."""
    data = mujoco.MjData(model)
    poses: list[Pose] = []
    for qpos in _configurations(model):
        if not any(np.allclose(qpos, pose.qpos, atol=1e-12) for pose in poses):
            data.qpos[:] = qpos
            poses.append(pose_of(model, data))
    return poses


def pose_of(model: mujoco.MjModel, data: mujoco.MjData) -> Pose:
    """Where everything is at `data.qpos`."""
    mujoco.mj_kinematics(model, data)
    mujoco.mj_comPos(model, data)
    principal = data.ximat.reshape(-1, 3, 3)
    before_place, before_frame = _before_joints(model, data)
    return Pose(
        qpos=data.qpos.copy(),
        place=data.xpos.copy(),
        frame=data.xmat.reshape(-1, 3, 3).copy(),
        centre=data.xipos.copy(),
        inertia=np.einsum("bij,bj,bkj->bik", principal, model.body_inertia, principal),
        anchor=data.xanchor.copy(),
        axis=data.xaxis.copy(),
        before_place=before_place,
        before_frame=before_frame,
    )


def _configurations(model: mujoco.MjModel) -> list[np.ndarray]:
    middle, zero = model.qpos0.copy(), model.qpos0.copy()
    single = np.isin(model.jnt_type, (SLIDE, HINGE))
    limited = single & model.jnt_limited.astype(bool)
    middle[model.jnt_qposadr[limited]] = model.jnt_range[limited].mean(axis=1)
    zero[model.jnt_qposadr[single]] = 0.0
    zero[_quaternions(model)] = [1.0, 0.0, 0.0, 0.0]
    found = [model.qpos0.copy(), *(key.copy() for key in model.key_qpos), middle, zero]
    for qpos in found:
        for address in model.jnt_qposadr[model.jnt_type == FREE]:
            qpos[address : address + 7] = [0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0]
    return found


def _quaternions(model: mujoco.MjModel) -> np.ndarray:
    """[balls, 4] places in `qpos` of the orientations of ball joints."""
    return model.jnt_qposadr[model.jnt_type == BALL][:, None] + np.arange(4)


def _before_joints(model: mujoco.MjModel, data: mujoco.MjData) -> tuple[np.ndarray, np.ndarray]:
    """Origin and orientation of the bodies' frames just before each joint: MuJoCo's own recursion, step by step."""
    places, frames = np.zeros((model.njnt, 3)), np.tile(np.eye(3), (model.njnt, 1, 1))
    for body in range(1, model.nbody):
        parent, first = int(model.body_parentid[body]), int(model.body_jntadr[body])
        if first < 0 or model.jnt_type[first] == FREE:
            continue
        outer = data.xmat[parent].reshape(3, 3)
        place = data.xpos[parent] + outer @ model.body_pos[body]
        frame = outer @ matrix(model.body_quat[body])
        for joint in range(first, first + int(model.body_jntnum[body])):
            places[joint], frames[joint] = place, frame
            q = int(model.jnt_qposadr[joint])
            if model.jnt_type[joint] == SLIDE:
                place = place + data.xaxis[joint] * (data.qpos[q] - model.qpos0[q])
            else:
                anchor = place + frame @ model.jnt_pos[joint]
                frame = frame @ _joint_rotation(model, data, joint)
                place = anchor - frame @ model.jnt_pos[joint]
    return places, frames


def _joint_rotation(model: mujoco.MjModel, data: mujoco.MjData, joint: int) -> np.ndarray:
    q = int(model.jnt_qposadr[joint])
    quaternion = (
        data.qpos[q : q + 4] / np.linalg.norm(data.qpos[q : q + 4]) if model.jnt_type[joint] == BALL else np.empty(4)
    )
    if model.jnt_type[joint] == HINGE:
        mujoco.mju_axisAngle2Quat(quaternion, model.jnt_axis[joint], data.qpos[q] - model.qpos0[q])
    return matrix(quaternion)
