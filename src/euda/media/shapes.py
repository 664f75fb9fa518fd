"""Geoms of a model → meshes that a browser draws many times: each shape once, then places, sizes and colours of it."""

# pyright: reportMissingImports=false
# trimesh comes with viser, which is an extra.
from __future__ import annotations

import dataclasses
from collections.abc import Hashable, Iterable

import mujoco
import numpy as np

_GEOM = mujoco.mjtGeom
_DRAWN_GROUPS = 3
"""MuJoCo's own viewer draws the groups below this one."""


@dataclasses.dataclass(frozen=True)
class Shape:
    """One mesh and the geoms that have it."""

    vertices: np.ndarray
    """[v, 3], of unit size where geoms scale it."""
    faces: np.ndarray
    """[f, 3]"""
    has_edges: bool
    """Whether its faces are flat."""
    geoms: np.ndarray
    """[n] ids"""
    scales: np.ndarray
    """[n, 3]"""


def is_drawn(model: mujoco.MjModel, geom: int) -> bool:
    """Whether a geom is seen in MuJoCo's own viewer."""
    return bool(model.geom_group[geom] < _DRAWN_GROUPS and colour(model, geom)[3] > 0)


def colour(model: mujoco.MjModel, geom: int) -> np.ndarray:
    """Red, green, blue, opacity [4] from 0 to 1: those of its material, where it has one and no colour of its own."""
    own, material = model.geom_rgba[geom], int(model.geom_matid[geom])
    is_default = np.allclose(own, (0.5, 0.5, 0.5, 1.0))
    return model.mat_rgba[material] if material >= 0 and is_default else own


def shapes(model: mujoco.MjModel, geoms: Iterable[int]) -> list[Shape]:
    """Every shape among geoms; planes and height fields have none."""
    found: dict[Hashable, list[int]] = {}
    for geom in geoms:
        if (key := _key(model, geom)) is not None:
            found.setdefault(key, []).append(geom)
    return [_shape(model, members) for members in found.values()]


def _key(model: mujoco.MjModel, geom: int) -> Hashable | None:
    """Equal for geoms that are the same mesh but for its size."""
    kind, size = _GEOM(model.geom_type[geom]), model.geom_size[geom]
    if kind in (_GEOM.mjGEOM_SPHERE, _GEOM.mjGEOM_ELLIPSOID):
        return "ball"
    if kind in (_GEOM.mjGEOM_BOX, _GEOM.mjGEOM_CYLINDER):
        return kind
    if kind == _GEOM.mjGEOM_CAPSULE:
        return "capsule", round(float(size[1] / size[0]), 4)
    return ("mesh", int(model.geom_dataid[geom])) if kind == _GEOM.mjGEOM_MESH else None


def _shape(model: mujoco.MjModel, geoms: list[int]) -> Shape:
    import trimesh

    first, ids = geoms[0], np.array(geoms)
    kind, size = _GEOM(model.geom_type[first]), model.geom_size[ids]
    if kind in (_GEOM.mjGEOM_SPHERE, _GEOM.mjGEOM_ELLIPSOID):
        is_ball = model.geom_type[ids] == int(_GEOM.mjGEOM_SPHERE)
        scales = np.where(is_ball[:, None], size[:, :1], size)
        return _of(trimesh.creation.icosphere(subdivisions=2), ids, scales)
    if kind == _GEOM.mjGEOM_BOX:
        return _of(trimesh.creation.box(extents=(2, 2, 2)), ids, size, has_edges=True)
    if kind == _GEOM.mjGEOM_CYLINDER:
        return _of(trimesh.creation.cylinder(1.0, 2.0, sections=20), ids, size[:, (0, 0, 1)], has_edges=True)
    if kind == _GEOM.mjGEOM_CAPSULE:
        length = 2 * float(size[0, 1] / size[0, 0])
        mesh = trimesh.creation.capsule(height=length, radius=1.0, count=[12, 12])
        mesh.apply_translation(-mesh.bounds.mean(axis=0))  # MuJoCo's lies around its middle
        return _of(mesh, ids, np.repeat(size[:, :1], 3, axis=1))
    mesh = int(model.geom_dataid[first])
    vertices = slice(int(model.mesh_vertadr[mesh]), int(model.mesh_vertadr[mesh] + model.mesh_vertnum[mesh]))
    faces = slice(int(model.mesh_faceadr[mesh]), int(model.mesh_faceadr[mesh] + model.mesh_facenum[mesh]))
    return Shape(model.mesh_vert[vertices].copy(), model.mesh_face[faces].copy(), True, ids, np.ones((len(ids), 3)))


def _of(mesh: object, ids: np.ndarray, scales: np.ndarray, has_edges: bool = False) -> Shape:
    vertices, faces = np.asarray(getattr(mesh, "vertices")), np.asarray(getattr(mesh, "faces"))  # noqa: B009
    return Shape(vertices, faces, has_edges, ids, scales)
