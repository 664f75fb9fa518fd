"""Rotations and mirrors of space as matrices, quaternions and words."""

from __future__ import annotations

import mujoco
import numpy as np


def axial(matrix: np.ndarray) -> np.ndarray:
    """How a map of directions [3, 3] acts on what a right-hand rule defines, such as an angular velocity."""
    (a, b, c), (d, e, f), (g, h, i) = matrix.tolist()  # NumPy's determinant takes longer than all else here
    return matrix if a * (e * i - f * h) - b * (d * i - f * g) + c * (d * h - e * g) > 0 else -matrix


def cross(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """The cross product of vectors [..., 3] and [3]; NumPy's own is general, and slow for so few numbers."""
    x, y, z = b.tolist()
    return a @ np.array([[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]])


def proper_quaternion(matrix: np.ndarray) -> np.ndarray:
    """The rotation in an orthogonal matrix [3, 3], a mirror being minus a rotation."""
    result = np.empty(4)
    mujoco.mju_mat2Quat(result, axial(matrix).ravel())
    return result


def between(left: np.ndarray, quaternion: np.ndarray, right: np.ndarray) -> np.ndarray:
    """The quaternion of left R rightᵀ; linear in that of R, so that it never jumps between q and -q."""
    product, inverse = np.empty(4), np.empty(4)
    mujoco.mju_negQuat(inverse, proper_quaternion(right))
    mujoco.mju_mulQuat(product, proper_quaternion(left), quaternion)
    mujoco.mju_mulQuat(product, product.copy(), inverse)
    return product


def matrix(quaternion: np.ndarray) -> np.ndarray:
    """The rotation matrix [3, 3] of a quaternion."""
    result = np.empty(9)
    mujoco.mju_quat2Mat(result, quaternion / np.linalg.norm(quaternion))
    return result.reshape(3, 3)


def quaternion_map(left: np.ndarray, right: np.ndarray) -> np.ndarray:
    """[4, 4] the linear map from the quaternion of R to that of left R rightᵀ."""
    return np.stack([between(left, unit, right) for unit in np.eye(4)], axis=1)


def describe(matrix: np.ndarray) -> str:
    """An isometry in words, axes being those of the robot: x ahead, y left, z up."""
    if np.allclose(matrix, np.eye(3), atol=1e-6):
        return "identity"
    is_proper = np.linalg.det(matrix) > 0
    w, *axis = proper_quaternion(matrix)
    angle = round(float(np.degrees(2 * np.arctan2(np.linalg.norm(axis), abs(w)))), 1)
    direction = np.array(axis) / (np.linalg.norm(axis) or 1.0)
    direction *= np.sign(direction[np.argmax(np.abs(direction))]) if is_proper and angle == 180 else np.sign(w) or 1.0
    if is_proper:
        return f"turn by {angle:g}° about {_direction(direction)}"
    if angle == 180:
        sides = {"x": "front-back", "y": "left-right", "z": "top-bottom"}
        normal = _direction(direction * np.sign(direction[np.argmax(np.abs(direction))]))
        return f"mirror {sides[normal]}" if normal in sides else f"mirror across {normal}"
    return "point reflection" if angle == 0 else f"mirror and turn by {180 - angle:g}° about {_direction(-direction)}"


def _direction(axis: np.ndarray) -> str:
    """A unit vector as x, -y, an angle in the horizontal plane, or three numbers."""
    for name, unit in zip("xyz", np.eye(3), strict=True):
        if np.allclose(np.abs(axis @ unit), 1.0, atol=1e-4):
            return name if axis @ unit > 0 else f"-{name}"
    if abs(axis[2]) < 1e-4:
        return f"{np.degrees(np.arctan2(axis[1], axis[0])):.3g}°"
    return "({:.2f} {:.2f} {:.2f})".format(*axis)
