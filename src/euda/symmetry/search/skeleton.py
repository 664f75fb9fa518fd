"""Match → Element: what an isometry of the robot's tree does to bodies and joints."""

from __future__ import annotations

import mujoco
import numpy as np

from euda.symmetry.addresses import Addresses
from euda.symmetry.element import Element
from euda.symmetry.images import Images
from euda.symmetry.search.matching import Isometry, Match, Tree
from euda.symmetry.search.pose import HINGE, SLIDE, Pose

_MIRROR = np.diag([1.0, -1.0, 1.0])


def skeleton(model: mujoco.MjModel, pose: Pose, tree: Tree, match: Match, others: dict[int, Match]) -> Element:
    """The element of bodies and joints that a match of the robot's tree describes; its parts are filled in later."""
    mirrored = match.isometry.det < 0
    world = match.isometry if not tree.is_free else Isometry(_MIRROR if mirrored else np.eye(3), np.zeros(3))
    maps = {int(top): world for top in np.unique(model.body_rootid)}  # of what stands still
    maps[tree.top] = match.isometry
    matches = [match]
    if mirrored:
        maps.update({top: other.isometry for top, other in others.items()})
        matches += others.values()
    else:
        maps.update({top: Isometry(np.eye(3), np.zeros(3)) for top in others})
    bodies, joints, signs = np.arange(model.nbody), np.arange(model.njnt), np.ones(model.njnt)
    for part in matches:
        bodies[list(part.bodies)] = list(part.bodies.values())
        joints[list(part.joints)] = list(part.joints.values())
        signs[list(part.joints)] = [part.signs[joint] for joint in part.joints]
    references = pose.qpos[model.jnt_qposadr]
    offsets = np.where(np.isin(model.jnt_type, (HINGE, SLIDE)), references[joints] - signs * references, 0.0)
    of_body = [maps[int(top)] for top in model.body_rootid]
    of_joint = [of_body[body] for body in model.jnt_bodyid]
    return Element(
        world=world.matrix,
        shift=world.shift,
        root=tree.top,
        bodies=_framed(bodies, of_body, pose.place, pose.frame),
        before=_framed(joints, of_joint, pose.before_place, pose.before_frame),
        joints=Images.signed(joints, signs, offsets),
        actuators=Images.identity(model.nu, 1),
        activations=Images.identity(model.na, 1),
        tendons=Images.identity(model.ntendon, 1),
        sensors=Images.identity(model.nsensor, 4),
        table=Addresses.of(model),
    )


def _framed(image: np.ndarray, maps: list[Isometry], place: np.ndarray, frame: np.ndarray) -> Images:
    """Isometries of the pose, written in the frames of the items that they take to each other."""
    matrix, offset = np.zeros_like(frame), np.zeros_like(place)
    for item, (to, isometry) in enumerate(zip(image, maps, strict=True)):
        matrix[item] = frame[to].T @ isometry.matrix @ frame[item]
        offset[item] = frame[to].T @ (isometry(place[item]) - place[to])
    return Images(image, matrix, offset)
