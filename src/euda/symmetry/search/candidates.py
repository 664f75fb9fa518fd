"""(Tree at a pose) → isometries that might map the robot onto itself.

Robots are drawn along axes, so the 48 signed permutations of the root's axes are tried first, then the mirrors and half
turns of the principal axes of inertia. What is left, such as three legs or a root that was drawn askew, comes from
landmarks: two points of the robot determine an isometry about its centre once it is said which points they go to.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import numpy as np

from euda.symmetry.search.matching import Isometry, Tree

_LENGTH = 0.05  # lengths and sines within this share of the robot's size count as equal
_LIKE = 0.3  # masses within this share may be images of each other


def candidates(tree: Tree) -> Iterator[Isometry]:
    """Isometries worth trying; those of a mounted robot keep the vertical."""
    matrices = itertools.chain(_signed_permutations(np.eye(3)), _principal(tree), _from_landmarks(tree))
    for matrix in matrices:
        if tree.is_free or np.allclose(matrix[:, 2], [0, 0, 1], atol=1e-9):
            yield Isometry.about(matrix, tree.centre)


def _signed_permutations(axes: np.ndarray) -> Iterator[np.ndarray]:
    """The 48 ways to exchange and flip three axes (the columns of `axes`)."""
    for order in itertools.permutations(range(3)):
        for signs in itertools.product((1.0, -1.0), repeat=3):
            yield axes @ (np.eye(3)[list(order)] * signs) @ axes.T


def _principal(tree: Tree) -> Iterator[np.ndarray]:
    """The 8 ways to flip the principal axes of inertia of the first body, and of the whole tree."""
    pose, bodies = tree.pose, tree.bodies
    lever = pose.centre[bodies] - tree.centre
    steiner = np.einsum("b,bi,bj->ij", tree.mass, lever, lever)
    whole = pose.inertia[bodies].sum(axis=0) + np.trace(steiner) * np.eye(3) - steiner
    for inertia in (pose.inertia[tree.top], whole):
        axes = np.linalg.eigh(inertia)[1]
        for signs in itertools.product((1.0, -1.0), repeat=3):
            yield axes @ np.diag(signs) @ axes.T


def _landmarks(tree: Tree) -> tuple[np.ndarray, list[tuple], np.ndarray]:
    """Points about the centre [n, 3], what they are, and a mass to tell them apart by [n]."""
    model, pose = tree.model, tree.pose
    depth = {tree.top: 0}
    for body in tree.bodies.tolist():
        depth.setdefault(body, depth.get(int(model.body_parentid[body]), 0) + 1)
    points, kinds, masses = [], [], []
    for body, row in zip(tree.bodies.tolist(), tree.types.tolist(), strict=True):
        label = (depth[body], *row)
        if model.body_mass[body] > 1e-3 * tree.total:
            points.append(pose.centre[body])
            kinds.append(("centre", *label))
            masses.append(model.body_mass[body])
        for k in range(int(model.body_jntnum[body])):
            points.append(pose.anchor[int(model.body_jntadr[body]) + k])
            kinds.append(("joint", k, *label))
            masses.append(1.0)
    for site in _actuated_sites(tree):
        body = int(model.site_bodyid[site])
        points.append(pose.place[body] + pose.frame[body] @ model.site_pos[site])
        kinds.append(("site",))
        masses.append(1.0)
    return np.array(points).reshape(-1, 3) - tree.centre, kinds, np.array(masses)


def _actuated_sites(tree: Tree) -> list[int]:
    """Sites of the tree at which actuators push, such as a drone's rotors."""
    model = tree.model
    sites = model.actuator_trnid[model.actuator_trntype == 4, 0]  # mjTRN_SITE
    return [int(site) for site in sites if int(model.site_bodyid[site]) in tree.children]


def _from_landmarks(tree: Tree) -> Iterator[np.ndarray]:
    """Isometries that take two landmarks to two others of their kind, equally long and at the same angle."""
    points, kinds, masses = _landmarks(tree)
    flat = np.array([1.0, 1.0, 0.0 if not tree.is_free else 1.0])  # a mounted robot only turns about the vertical
    points = points * flat
    lengths = np.linalg.norm(points, axis=1)
    near = _LENGTH * tree.size
    classes = [
        [
            j
            for j in range(len(points))
            if kinds[j] == kinds[i]
            and abs(lengths[j] - lengths[i]) <= near
            and abs(masses[j] - masses[i]) <= _LIKE * max(masses[i], masses[j])
        ]
        for i in range(len(points))
    ]
    # Lengths are rounded: which of equal legs comes first must not depend on the last bit, which machines differ in.
    rank = -np.round(lengths / tree.size, 6)
    far = sorted((i for i in range(len(points)) if lengths[i] > near), key=lambda i: (len(classes[i]), rank[i]))
    if not far:
        return
    u = far[0]
    if not tree.is_free:
        yield from (m for j in classes[u] for m in _in_plane(points[u], points[j]))
        return
    v = next((i for i in far if np.linalg.norm(np.cross(points[u], points[i])) > 4 * near * lengths[u]), None)
    if v is None:
        return
    source = _frame(points[u], points[v])
    for j, k in itertools.product(classes[u], classes[v]):
        if j != k and abs(points[u] @ points[v] - points[j] @ points[k]) <= 2 * near * tree.size:
            goal = _frame(points[j], points[k])
            if goal is not None and source is not None:
                yield goal @ source.T
                yield goal @ np.diag([1.0, 1.0, -1.0]) @ source.T


def _in_plane(point: np.ndarray, image: np.ndarray) -> Iterator[np.ndarray]:
    """The turn about the vertical, and the mirror in a vertical plane, that take one point to another."""
    start, end = np.arctan2(point[1], point[0]), np.arctan2(image[1], image[0])
    for angle, sign in ((end - start, 1.0), (end + start, -1.0)):
        c, s = np.cos(angle), np.sin(angle)
        yield np.array([[c, -sign * s, 0.0], [s, sign * c, 0.0], [0.0, 0.0, 1.0]])


def _frame(u: np.ndarray, v: np.ndarray) -> np.ndarray | None:
    """An orthonormal frame whose first axis lies along u, and whose first two span u and v."""
    normal = np.cross(u, v)
    if np.linalg.norm(normal) < 1e-9 * np.linalg.norm(u) * np.linalg.norm(v):
        return None
    x, z = u / np.linalg.norm(u), normal / np.linalg.norm(normal)
    return np.stack([x, np.cross(z, x), z], axis=1)
