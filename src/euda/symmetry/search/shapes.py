"""What a geom looks like to a collision: its support function, the same for primitives and meshes.

MuJoCo collides convex shapes (of a mesh, the hull). A convex shape is known by how far it reaches in each direction,
h(u) = max u·x, and two shapes are as far apart as their h differ at most: the Hausdorff distance.
"""

from __future__ import annotations

import functools

import mujoco
import numpy as np

from euda.symmetry.judging.coverage import collidable_pairs
from euda.symmetry.rotations import matrix

_G = mujoco.mjtGeom
_CONVEX = {int(g) for g in (_G.mjGEOM_SPHERE, _G.mjGEOM_CAPSULE, _G.mjGEOM_ELLIPSOID, _G.mjGEOM_CYLINDER, _G.mjGEOM_BOX,
                            _G.mjGEOM_MESH)}  # fmt: skip


@functools.cache
def directions() -> np.ndarray:
    """[n, 3] unit vectors spread over the sphere, the axes and their diagonals among them."""
    count = 200
    height = 1 - (2 * np.arange(count) + 1) / count
    angle = np.pi * (1 + 5**0.5) * np.arange(count)
    spiral = np.stack([np.cos(angle), np.sin(angle), height], axis=1)
    spiral[:, :2] *= np.sqrt(1 - height**2)[:, None]
    grid = np.array([(x, y, z) for x in (-1, 0, 1) for y in (-1, 0, 1) for z in (-1, 0, 1) if x or y or z], float)
    return np.concatenate([grid / np.linalg.norm(grid, axis=1, keepdims=True), spiral])


def colliding(model: mujoco.MjModel) -> np.ndarray:
    """[ngeom] whether a geom can touch any other."""
    result = np.zeros(model.ngeom, bool)
    result[np.array(collidable_pairs(model), int).ravel()] = True
    return result


def support(model: mujoco.MjModel, geom: int, towards: np.ndarray) -> np.ndarray:
    """How far a geom reaches in directions [n, 3] of the frame of its body (m)."""
    u = towards @ matrix(model.geom_quat[geom])
    return towards @ model.geom_pos[geom] + _reach(model, geom, u)


def _reach(model: mujoco.MjModel, geom: int, u: np.ndarray) -> np.ndarray:
    """The same in the frame of the geom."""
    size, kind = model.geom_size[geom], _G(model.geom_type[geom])
    match kind:
        case _G.mjGEOM_SPHERE:
            return size[0] * np.linalg.norm(u, axis=1)
        case _G.mjGEOM_CAPSULE:
            return size[0] * np.linalg.norm(u, axis=1) + size[1] * np.abs(u[:, 2])
        case _G.mjGEOM_CYLINDER:
            return size[0] * np.linalg.norm(u[:, :2], axis=1) + size[1] * np.abs(u[:, 2])
        case _G.mjGEOM_ELLIPSOID:
            return np.linalg.norm(u * size, axis=1)
        case _G.mjGEOM_BOX:
            return np.abs(u) @ size
        case _:
            mesh = int(model.geom_dataid[geom])
            start = int(model.mesh_vertadr[mesh])
            vertices = model.mesh_vert[start : start + int(model.mesh_vertnum[mesh])]
            return (u @ vertices.T.astype(np.float64)).max(axis=1)


def distance(model: mujoco.MjModel, geom: int, image: int, turn: np.ndarray, shift: np.ndarray) -> float:
    """How far a geom, moved by x → turn x + shift between the frames of the bodies, is from another (m)."""
    kinds = {int(model.geom_type[geom]), int(model.geom_type[image])}
    if not kinds <= _CONVEX:
        return 0.0 if model.geom_dataid[geom] == model.geom_dataid[image] and len(kinds) == 1 else np.inf
    u = directions()
    moved = u @ shift + support(model, geom, u @ turn)
    return float(np.abs(moved - support(model, image, u)).max())
