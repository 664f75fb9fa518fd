"""A load beside the trunk of a task's robot: a mirror symmetry that is near, by a known amount.

The load is a point whose mass is a share of the robot's own. It is fixed to the root 0.25 m to the left and 0.1 m above
its frame, so that left and right differ, and the error of a mirrored step is about that share.
"""

from __future__ import annotations

import mujoco
import numpy as np

from euda.body.robot import Robot
from euda.errors import EudaError

PLACE = (0.0, 0.25, 0.1)
"""In the frame of the root (m)."""


def load(robot: Robot, share: float, task: str) -> None:
    """Fix the load to the root of a robot, in its model; nothing else knows of it."""
    if not 0 <= share <= 1:
        raise EudaError(f"payload must be between 0 and 1, as a share of the robot's mass, not {share!r}")
    if not share:
        return
    if robot.morphology.base != "free":
        raise EudaError(f"payload {share:g} needs a robot that moves freely, and that of {task!r} does not")
    model, body = robot.model, robot.morphology.root.body
    masses = np.array([model.body_mass[body], share * model.body_subtreemass[robot.morphology.mount]])
    places = np.array([model.body_ipos[body], PLACE])
    centre = masses @ places / masses.sum()
    inertia = _inertia(model, body)
    for mass, place in zip(masses, places, strict=True):
        arm = place - centre
        inertia += mass * (arm @ arm * np.eye(3) - np.outer(arm, arm))
    moments, axes = np.linalg.eigh(inertia)
    axes[:, 2] *= np.sign(np.linalg.det(axes))
    model.body_mass[body], model.body_ipos[body], model.body_inertia[body] = masses.sum(), centre, moments
    mujoco.mju_mat2Quat(model.body_iquat[body], axes.ravel())
    mujoco.mj_setConst(model, robot.data)


def _inertia(model: mujoco.MjModel, body: int) -> np.ndarray:
    """About the body's centre of mass, along the axes of its frame [3, 3]."""
    axes = np.empty(9)
    mujoco.mju_quat2Mat(axes, model.body_iquat[body])
    matrix = axes.reshape(3, 3)
    return matrix @ np.diag(model.body_inertia[body]) @ matrix.T
