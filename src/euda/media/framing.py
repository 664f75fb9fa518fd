"""Points of a scene → a camera that sees all of them, and the points of a robot."""

from __future__ import annotations

import itertools

import mujoco
import numpy as np

_MARGIN = 0.92  # of the frame's half width and height that points may use
_CORNERS = np.array(list(itertools.product((-1.0, 1.0), repeat=3)))


def geoms_of(model: mujoco.MjModel, mount: int) -> list[int]:
    """The geoms of all bodies of a robot, also of those that nothing moves; planes have no size."""
    plane = int(mujoco.mjtGeom.mjGEOM_PLANE)
    ours = {body for body in range(model.nbody) if top(model, body) == mount}
    return [g for g in range(model.ngeom) if int(model.geom_bodyid[g]) in ours and int(model.geom_type[g]) != plane]


def top(model: mujoco.MjModel, body: int) -> int:
    """The ancestor of a body that hangs directly on the world."""
    while model.body_parentid[body]:
        body = int(model.body_parentid[body])
    return body


def corners(model: mujoco.MjModel, data: mujoco.MjData, geoms: list[int]) -> np.ndarray:
    """The corners of the geoms' bounding boxes in the world [8 * geoms, 3]."""
    boxes = [
        data.geom_xpos[geom]
        + (model.geom_aabb[geom, :3] + _CORNERS * model.geom_aabb[geom, 3:]) @ data.geom_xmat[geom].reshape(3, 3).T
        for geom in geoms
    ]
    return np.concatenate(boxes) if boxes else np.empty((0, 3))


def fit(points: np.ndarray, azimuth: float, elevation: float, fovy: float, aspect: float) -> mujoco.MjvCamera:
    """The nearest free camera in that direction (degrees) that has all points [n, 3] in its frame.

    `fovy` is the vertical field of view in degrees, `aspect` the frame's width over its height.
    """
    forward, right, up = axes(azimuth, elevation)
    slopes = _MARGIN * np.tan(np.radians(fovy) / 2) * np.array([aspect, 1.0])
    centre = (points.min(axis=0) + points.max(axis=0)) / 2
    for _ in range(20):  # move sideways until what is farthest out is so on both sides
        seen = points - centre
        across, depth = seen @ np.stack([right, up], axis=1), seen @ forward
        distance = float((np.abs(across) / slopes - depth[:, None]).max())
        shown = across / (distance + depth)[:, None]
        centre = centre + 0.5 * distance * (shown.max(axis=0) + shown.min(axis=0)) @ np.stack([right, up])
    seen = points - centre
    across, depth = seen @ np.stack([right, up], axis=1), seen @ forward
    camera = mujoco.MjvCamera()
    camera.lookat[:], camera.azimuth, camera.elevation = centre, azimuth, elevation
    camera.distance = float((np.abs(across) / slopes - depth[:, None]).max())
    return camera


def axes(azimuth: float, elevation: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Where a free camera looks, and its right and up, in the world."""
    a, e = np.radians([azimuth, elevation])
    forward = np.array([np.cos(e) * np.cos(a), np.cos(e) * np.sin(a), np.sin(e)])
    right = np.array([np.sin(a), -np.cos(a), 0.0])
    return forward, right, np.cross(right, forward)
