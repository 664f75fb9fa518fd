"""One kind of number that a part of a model has and its image should have too."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping

import mujoco
import numpy as np

from euda.symmetry.images import NOWHERE
from euda.symmetry.search.setting import Setting

Read = Callable[[mujoco.MjModel], np.ndarray]
Write = Callable[[mujoco.MjModel, np.ndarray], None]
Move = Callable[[Setting, np.ndarray], np.ndarray]
"""(element in its setting, values [n, k] of the parts) → what their images should have, in the places of the parts."""


@dataclasses.dataclass(frozen=True)
class Quantity:
    """One row: `k` numbers of each part of a kind."""

    what: str
    kind: mujoco.mjtObj
    read: Read
    """[n, k]"""
    write: Write
    move: Move
    scale: Callable[[mujoco.MjModel, np.ndarray, float], np.ndarray]
    """(model, values [n, k], size of the robot) → what a difference of each part is compared with [n]."""
    unit: str = ""
    applies: Callable[[mujoco.MjModel], np.ndarray] | None = None
    """[n] which parts have it at all; all, by default."""
    in_degrees: Callable[[mujoco.MjModel], np.ndarray] | None = None
    """[n] of which parts it is an angle, to be shown in degrees."""
    is_listed: bool = True
    """Whether a difference is a defect by itself; sizes and places of geoms only matter as the shape they make."""


def images_of(setting: Setting, kind: mujoco.mjtObj) -> np.ndarray:
    """[n] the image of each part of a kind."""
    if kind == mujoco.mjtObj.mjOBJ_GEOM:
        return setting.geoms[0]
    element = setting.element
    parts: Mapping[mujoco.mjtObj, np.ndarray] = {
        mujoco.mjtObj.mjOBJ_BODY: element.bodies.image,
        mujoco.mjtObj.mjOBJ_JOINT: element.joints.image,
        mujoco.mjtObj.mjOBJ_ACTUATOR: element.actuators.image,
        mujoco.mjtObj.mjOBJ_TENDON: element.tendons.image,
    }
    return parts[kind]


def placed(image: np.ndarray, moved: np.ndarray, otherwise: np.ndarray) -> np.ndarray:
    """Values [n, k] in the places of the images; parts that are the image of none keep what they have."""
    result, known = otherwise.copy(), image != NOWHERE
    result[image[known]] = moved[known]
    return result
