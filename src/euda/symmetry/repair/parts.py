"""Which parts of a model have a quantity at all: [n] for each kind of part."""

from __future__ import annotations

from collections.abc import Callable

import mujoco
import numpy as np


def is_single(model: mujoco.MjModel) -> np.ndarray:
    """Joints with one degree of freedom."""
    return np.isin(model.jnt_type, (int(mujoco.mjtJoint.mjJNT_HINGE), int(mujoco.mjtJoint.mjJNT_SLIDE)))


def has_gear(model: mujoco.MjModel) -> np.ndarray:
    """Actuators that pull at a joint or a tendon."""
    joint, tendon = int(mujoco.mjtTrn.mjTRN_JOINT), int(mujoco.mjtTrn.mjTRN_TENDON)
    return np.isin(model.actuator_trntype, (joint, tendon))


def when(name: str) -> Callable[[mujoco.MjModel], np.ndarray]:
    """Parts for which an array of the model is not zero."""
    return lambda model: np.asarray(getattr(model, name)) != 0


def single_and(name: str) -> Callable[[mujoco.MjModel], np.ndarray]:
    """Hinges and slides for which an array of the model is not zero."""
    return lambda model: is_single(model) & (np.asarray(getattr(model, name)) != 0)


def sprung(model: mujoco.MjModel) -> np.ndarray:
    """Hinges and slides with a spring."""
    return is_single(model) & (model.jnt_stiffness != 0)


def not_free(model: mujoco.MjModel) -> np.ndarray:
    """All joints but free ones."""
    return model.jnt_type != int(mujoco.mjtJoint.mjJNT_FREE)


def primitive(model: mujoco.MjModel) -> np.ndarray:
    """Geoms with a size of their own."""
    return (model.geom_type != int(mujoco.mjtGeom.mjGEOM_MESH)) & (model.geom_bodyid != 0)


def first_joints(model: mujoco.MjModel) -> np.ndarray:
    """The first joint of each body, free ones left out."""
    first = np.zeros(model.njnt, bool)
    first[model.body_jntadr[model.body_jntnum > 0]] = True
    return first & not_free(model)


def hinges(model: mujoco.MjModel) -> np.ndarray:
    """Joints whose position is an angle."""
    return model.jnt_type == int(mujoco.mjtJoint.mjJNT_HINGE)


def massive(model: mujoco.MjModel) -> np.ndarray:
    """Bodies that have a mass and can move."""
    return (model.body_mass > 0) & (model.body_weldid != 0)
