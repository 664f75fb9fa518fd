"""Numbers of parts read from the arrays of a model, and written back."""

from __future__ import annotations

import math

import mujoco
import numpy as np

from euda.symmetry.repair import parts
from euda.symmetry.repair.quantity import Read, Write
from euda.symmetry.rotations import axial, matrix


def array(name: str) -> tuple[Read, Write]:
    """An array of the model with a row for each part."""

    def read(model: mujoco.MjModel) -> np.ndarray:
        values = getattr(model, name).astype(np.float64)
        return values.reshape(len(values), math.prod(values.shape[1:]))

    def write(model: mujoco.MjModel, values: np.ndarray) -> None:
        array = getattr(model, name)
        array[:] = values.reshape(array.shape)

    return read, write


def of_dofs(name: str) -> tuple[Read, Write]:
    """An array over degrees of freedom, of the first one of each joint; hinges and slides have no other."""

    def read(model: mujoco.MjModel) -> np.ndarray:
        values = getattr(model, name)[model.jnt_dofadr].astype(np.float64)
        return values.reshape(model.njnt, math.prod(values.shape[1:]))

    def write(model: mujoco.MjModel, values: np.ndarray) -> None:
        single = parts.is_single(model)
        array = getattr(model, name)
        array[model.jnt_dofadr[single]] = values[single].reshape(-1, *array.shape[1:])

    return read, write


def inertia() -> tuple[Read, Write]:
    """Inertias of bodies as tensors in their frames, nine numbers each."""

    def read(model: mujoco.MjModel) -> np.ndarray:
        frames = np.array([matrix(q) for q in model.body_iquat])
        return np.einsum("bij,bj,bkj->bik", frames, model.body_inertia, frames).reshape(-1, 9)

    def write(model: mujoco.MjModel, values: np.ndarray) -> None:
        before = read(model)
        for body in np.flatnonzero(np.abs(values - before).max(axis=1) > 0):
            principal, axes = np.linalg.eigh(values[body].reshape(3, 3))
            model.body_inertia[body] = principal
            mujoco.mju_mat2Quat(model.body_iquat[body], axial(axes).ravel())

    return read, write


def geom_frames() -> tuple[Read, Write]:
    """Orientations of geoms as matrices in the frames of their bodies, nine numbers each."""

    def read(model: mujoco.MjModel) -> np.ndarray:
        return np.array([matrix(q) for q in model.geom_quat]).reshape(-1, 9)

    def write(model: mujoco.MjModel, values: np.ndarray) -> None:
        before = read(model)
        for geom in np.flatnonzero(np.abs(values - before).max(axis=1, initial=0.0) > 0):
            left, _, right = np.linalg.svd(values[geom].reshape(3, 3))  # a mean of rotations is not quite one
            mujoco.mju_mat2Quat(model.geom_quat[geom], (left @ right).ravel())

    return read, write


def springs() -> tuple[Read, Write]:
    """Where the springs of hinges and slides are at rest."""

    def read(model: mujoco.MjModel) -> np.ndarray:
        return model.qpos_spring[model.jnt_qposadr][:, None]

    def write(model: mujoco.MjModel, values: np.ndarray) -> None:
        single = parts.is_single(model)
        model.qpos_spring[model.jnt_qposadr[single]] = values[single, 0]

    return read, write


def anchors() -> tuple[Read, Write]:
    """Where the bodies of joints are, in the frames of what they hang on; writing moves what hangs on them, too."""

    def read(model: mujoco.MjModel) -> np.ndarray:
        return model.body_pos[model.jnt_bodyid]

    def write(model: mujoco.MjModel, values: np.ndarray) -> None:
        joints = parts.first_joints(model)
        model.body_pos[model.jnt_bodyid[joints]] = values[joints]

    return read, write


def write_axes(model: mujoco.MjModel, values: np.ndarray) -> None:
    """Axes of joints, made unit vectors."""
    model.jnt_axis[:] = values / np.maximum(np.linalg.norm(values, axis=1, keepdims=True), 1e-12)


def servo() -> tuple[Read, Write]:
    """How a servo answers to position and velocity; its constant force is a matter of the control's offset."""

    def read(model: mujoco.MjModel) -> np.ndarray:
        return model.actuator_biasprm[:, 1:3].copy()

    def write(model: mujoco.MjModel, values: np.ndarray) -> None:
        model.actuator_biasprm[:, 1:3] = values

    return read, write


def gears() -> tuple[Read, Write]:
    """How strongly an actuator pulls; its sign is the element's matter."""

    def read(model: mujoco.MjModel) -> np.ndarray:
        return np.abs(model.actuator_gear[:, :1])

    def write(model: mujoco.MjModel, values: np.ndarray) -> None:
        pulls = parts.has_gear(model)
        model.actuator_gear[pulls, 0] = np.sign(model.actuator_gear[pulls, 0]) * values[pulls, 0]

    return read, write
