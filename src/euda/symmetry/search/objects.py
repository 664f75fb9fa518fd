"""What is loose in a scene: a ball, a box, a thing moved by hand. Each needs a mirror of its own."""

from __future__ import annotations

import mujoco
import numpy as np

from euda.body.morphology import Morphology
from euda.symmetry.search.candidates import candidates
from euda.symmetry.search.matching import Isometry, Match, Tree
from euda.symmetry.search.pose import Pose
from euda.symmetry.search.shapes import colliding, distance

_MIRROR = np.diag([1.0, -1.0, 1.0])


def own_mirrors(model: mujoco.MjModel, morphology: Morphology, pose: Pose) -> dict[int, Match]:
    """A mirror of its own for each loose object and mocap body, by its first body; the identity where none fits.

    Such things are mirrored with the world, so each needs a way to look like its own mirror image. Under a turn of
    the world or of the robot they just go along.
    """
    tops = {int(model.body_rootid[body]) for body in morphology.objects}
    tops |= set(np.flatnonzero(model.body_mocapid >= 0).tolist())
    return {top: _own_mirror(model, Tree(model, pose, top)) for top in sorted(tops - {morphology.mount})}


def _own_mirror(model: mujoco.MjModel, tree: Tree) -> Match:
    """The mirror of an object onto itself that fits best, as an involution."""
    options = []
    for isometry in candidates(tree):
        if isometry.det > 0 or not np.allclose(isometry.matrix @ isometry.matrix, np.eye(3), atol=1e-6):
            continue
        match = tree.match(isometry)
        if match is not None:
            options.append((round(match.score + _shape_gap(model, tree, isometry), 9), len(options), match))
    return (
        min(options)[2]
        if options
        else tree.judge(Isometry.about(_MIRROR, tree.centre), {int(b): int(b) for b in tree.bodies})
    )


def _shape_gap(model: mujoco.MjModel, tree: Tree, isometry: Isometry) -> float:
    """How far the geoms of a tree, and the points by which constraints hold it, are from their images, in its sizes."""
    pose, gaps = tree.pose, [0.0]
    touching = np.flatnonzero(colliding(model) & np.isin(model.geom_bodyid, tree.bodies))
    for geom in touching:
        body = int(model.geom_bodyid[geom])
        frame, place = pose.frame[body], pose.place[body]
        turn, shift = frame.T @ isometry.matrix @ frame, frame.T @ (isometry(place) - place)
        rivals = touching[model.geom_bodyid[touching] == body]
        gaps.append(min(distance(model, int(geom), int(rival), turn, shift) for rival in rivals))
    for body, point in _held_points(model):
        if body in tree.children:
            at = pose.place[body] + pose.frame[body] @ point
            gaps.append(float(np.linalg.norm(isometry(at) - at)))
    return max(gaps) / tree.size


def _held_points(model: mujoco.MjModel) -> list[tuple[int, np.ndarray]]:
    """Bodies and points of them (in their frames) that connect constraints hold."""
    points = []
    for constraint in np.flatnonzero(model.eq_type == int(mujoco.mjtEq.mjEQ_CONNECT)):
        ends = int(model.eq_obj1id[constraint]), int(model.eq_obj2id[constraint])
        for k, end in enumerate(ends):
            if mujoco.mjtObj(model.eq_objtype[constraint]) == mujoco.mjtObj.mjOBJ_SITE:
                points.append((int(model.site_bodyid[end]), model.site_pos[end]))
            else:
                points.append((end, model.eq_data[constraint, 3 * k : 3 * k + 3]))
    return points
