"""What an element makes of the numbers of parts: how masses, points, ranges and shapes move to the images."""

from __future__ import annotations

import mujoco
import numpy as np

from euda.symmetry.images import NOWHERE, Images
from euda.symmetry.repair.quantity import Move
from euda.symmetry.rotations import matrix
from euda.symmetry.search.setting import Setting


def same(setting: Setting, values: np.ndarray) -> np.ndarray:
    """Numbers that stay as they are."""
    del setting
    return values


def points(setting: Setting, values: np.ndarray) -> np.ndarray:
    """Points in the frames of bodies. Where a body as a whole is misplaced, its points are not blamed for it."""
    maps = [setting.local_map(body) for body in range(len(values))]
    return np.array([turn @ value + shift for (turn, shift), value in zip(maps, values, strict=True)])


def tensors(setting: Setting, values: np.ndarray) -> np.ndarray:
    """Tensors in the frames of bodies."""
    s = setting.element.bodies.matrix
    return (s @ values.reshape(-1, 3, 3) @ s.transpose(0, 2, 1)).reshape(-1, 9)


def signed(part: str) -> Move:
    """Numbers that carry the sign and the offset of a joint, actuator or tendon; a range is turned around by a sign."""

    def move(setting: Setting, values: np.ndarray) -> np.ndarray:
        images: Images = getattr(setting.element, part)
        return np.sort(images.signs[:, None] * values + images.offset, axis=1)

    return move


def signed_force(part: str) -> Move:
    """Ranges of forces: a sign, no offset."""

    def move(setting: Setting, values: np.ndarray) -> np.ndarray:
        return np.sort(getattr(setting.element, part).signs[:, None] * values, axis=1)

    return move


def geom_points(setting: Setting, values: np.ndarray) -> np.ndarray:
    """Places of geoms in the frames of their bodies."""
    maps = [setting.local_map(int(body)) for body in setting.model.geom_bodyid]
    return np.array([turn @ value + shift for (turn, shift), value in zip(maps, values, strict=True)])


def geom_sizes(setting: Setting, values: np.ndarray) -> np.ndarray:
    """Half lengths along the axes of geoms, where axes go to axes; elsewhere what the image has."""
    model, image = setting.model, setting.geoms[0]
    result = values.copy()
    for geom in np.flatnonzero(image != NOWHERE).tolist():
        frame, other = matrix(model.geom_quat[geom]), matrix(model.geom_quat[image[geom]])
        turn = np.abs(other.T @ setting.element.bodies.matrix[model.geom_bodyid[geom]] @ frame)
        aligned = np.allclose(turn, turn.round(), atol=1e-3)
        if int(model.geom_type[geom]) in _BOXED:
            result[geom] = turn.round() @ values[geom] if aligned else values[image[geom]]
    return result


_BOXED = {int(mujoco.mjtGeom.mjGEOM_BOX), int(mujoco.mjtGeom.mjGEOM_ELLIPSOID)}
_ROUND = {int(mujoco.mjtGeom.mjGEOM_CAPSULE), int(mujoco.mjtGeom.mjGEOM_CYLINDER)}
_ASKEW = 0.05  # rad by which an orientation may differ from that of the image and still be averaged with it


def geom_frames(setting: Setting, values: np.ndarray) -> np.ndarray:
    """Orientations of geoms in the frames of their bodies, as matrices of nine numbers.

    A box looks the same in several frames, and a capsule in each that shares its axis: the one that is nearest to that
    of the image is taken. What is far from it is another shape, and stays.
    """
    model, image = setting.model, setting.geoms[0]
    result = values.copy()
    for geom in np.flatnonzero(image != NOWHERE).tolist():
        own = values[image[geom]].reshape(3, 3)
        moved = setting.element.bodies.matrix[model.geom_bodyid[geom]] @ values[geom].reshape(3, 3)
        kind = int(model.geom_type[geom])
        turn = _about_axis(own, moved) if kind in _ROUND else _signed_axes(own, moved) if kind in _BOXED else own
        result[geom] = (turn if np.abs(turn - own).max() < _ASKEW else own).ravel()
    return result


def _signed_axes(own: np.ndarray, moved: np.ndarray) -> np.ndarray:
    """The axes of a moved frame, exchanged and reversed so that they are nearest to those of another."""
    return moved @ (moved.T @ own).round()


def _about_axis(own: np.ndarray, moved: np.ndarray) -> np.ndarray:
    """A frame turned as little as possible, so that its last axis lies along that of another."""
    axis = moved[:, 2] * np.sign(moved[:, 2] @ own[:, 2])
    first = own[:, 0] - (own[:, 0] @ axis) * axis
    first /= max(float(np.linalg.norm(first)), np.finfo(float).tiny)
    return np.stack([first, np.cross(axis, first), axis], axis=1)


def anchors(setting: Setting, values: np.ndarray) -> np.ndarray:
    """Where the image of each body is, and as far as it is misplaced more than what it hangs on, where it should be."""
    model, image = setting.model, setting.element.joints.image
    own, parent = model.jnt_bodyid, model.body_parentid[model.jnt_bodyid]
    frames = setting.pose.frame[model.body_parentid[model.jnt_bodyid[image]]]
    return values[image] + np.einsum("nji,nj->ni", frames, setting.misplaced[own] - setting.misplaced[parent])


def axes(setting: Setting, values: np.ndarray) -> np.ndarray:
    """Axes in the frames just before their joints act: those of hinges are axial."""
    turn = setting.element.before.matrix.copy()
    hinge = setting.model.jnt_type == int(mujoco.mjtJoint.mjJNT_HINGE)
    turn[hinge] *= np.sign(np.linalg.det(turn[hinge]))[:, None, None]
    return setting.element.joints.signs[:, None] * np.einsum("nij,nj->ni", turn, values)
