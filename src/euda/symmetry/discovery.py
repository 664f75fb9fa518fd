"""MjModel → Group: every symmetry of the robot in a model, found from the model alone.

At each reference pose, isometries that might map the robot onto itself are tried on its tree of bodies and joints.
Those that fit are completed to a group, made exact as such (an isometry read off rounded numbers is not quite of
finite order), and extended to actuators, tendons and sensors. Nothing is rejected for a wrong mass,
range or gain: such things are listed as defects, and the simulator says what they cost.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from typing import Any

import mujoco
import numpy as np

from euda.body.fingerprint import exact
from euda.body.morphology import Morphology, from_model
from euda.errors import ModelError
from euda.symmetry.element import Element
from euda.symmetry.group import Group
from euda.symmetry.images import NOWHERE, Images
from euda.symmetry.rotations import describe
from euda.symmetry.search.candidates import candidates
from euda.symmetry.search.closure import closed
from euda.symmetry.search.matching import Match, Tree, part_name
from euda.symmetry.search.objects import own_mirrors
from euda.symmetry.search.pose import HINGE, SLIDE, Pose, reference_poses
from euda.symmetry.search.sensor_images import sensor_images
from euda.symmetry.search.setting import Setting
from euda.symmetry.search.shapes import colliding
from euda.symmetry.search.skeleton import skeleton
from euda.symmetry.search.transmissions import actuator_mismatch, with_transmissions

KINEMATICS = 0.05
"""Joints further than this share of the robot's size, or than this angle (rad), from where they should be: no image."""
_MATTER = 0.5  # share of the robot's mass that may be in the wrong place
_ASTRAY = 0.3  # share of the robot's size by which a centre of mass may be in the wrong place
_MISFITS = 0.25  # shares of joints, actuators and geoms that may not fit their images, added up
_KEPT = 64  # groups
_FOUND: dict[bytes, Group] = {}
"""By exact model: the search takes up to a second, and a run asks several times. The same elements also mean the same
augmentation, so that the next run of a process finds its update compiled."""


@dataclasses.dataclass(frozen=True)
class _Found:
    """What one reference pose gave."""

    pose: Pose
    tree: Tree
    matches: list[Match]
    nearest: tuple[Match, str] | None
    """The best isometry that was rejected, and why."""

    @property
    def rank(self) -> tuple[int, float]:
        """More symmetries first, then those that fit better."""
        return -len(self.matches), sum(match.score for match in self.matches)


def symmetries(model: mujoco.MjModel) -> Group:
    """The finite group of the robot in `model`: every pair (Q, S) that maps it onto itself, yaws apart.

    Only the model is read. What is found is a conjecture about the dynamics until the simulator has tested it
    (`euda symmetry`, `euda.certify`). A robot without any symmetry has the group of order 1.

    >>> import euda
    >>> group = euda.symmetries(euda.make("walker3d_run").model)
    >>> group.order, [element.name for element in group.elements]
    (2, ['identity', 'mirror left-right'])
    """
    key = exact(model)
    if key not in _FOUND:
        while len(_FOUND) >= _KEPT:
            del _FOUND[next(iter(_FOUND))]
        _FOUND[key] = _search(model)
        _forbid_writing(_FOUND[key].elements)
    return _FOUND[key]


def _forbid_writing(part: Any) -> None:
    """Arrays of what is kept, wherever they are in it: whoever asks next must find them as they were."""
    if isinstance(part, np.ndarray):
        part.flags.writeable = False
    elif dataclasses.is_dataclass(part):
        _forbid_writing([getattr(part, field.name) for field in dataclasses.fields(part)])
    elif isinstance(part, Mapping):
        _forbid_writing(list(part.values()))
    elif isinstance(part, list | tuple):
        for one in part:
            _forbid_writing(one)


def _search(model: mujoco.MjModel) -> Group:
    """`symmetries`, from the beginning."""
    if (model.actuator_ctrlnum != 1).any():
        raise ModelError("actuators with several controls each are not supported by the search for symmetries")
    morphology = from_model(model, allow_loops=True)
    found = min((_at_pose(model, morphology, pose) for pose in reference_poses(model)), key=lambda found: found.rank)
    matches = closed(found.tree, found.matches)
    mirrored = any(match.isometry.det < 0 for match in matches)
    others = own_mirrors(model, morphology, found.pose) if mirrored else {}
    elements = [skeleton(model, found.pose, found.tree, match, others) for match in matches]
    group = _generated(model, found, elements)
    nearest = f"{describe(found.nearest[0].isometry.matrix)}: {found.nearest[1]}" if found.nearest else ""
    return Group(tuple(group), found.pose, found.tree.size, nearest)


# -- at one pose -----------------------------------------------------------------------------------------


def _at_pose(model: mujoco.MjModel, morphology: Morphology, pose: Pose) -> _Found:
    tree = Tree(model, pose, morphology.mount)
    found: list[Match] = []
    for isometry in candidates(tree):
        match = tree.match(isometry)
        if match is None:
            continue
        match = tree.recentred(tree.refined(match))
        same = next((i for i, known in enumerate(found) if match.is_same(known)), None)
        if same is None:
            found.append(match)
        elif match.score < 0.5 * found[same].score - 1e-9:  # clean digits win over a slightly better fit
            found[same] = match
    reasons = [_rejected(model, pose, tree, match) for match in found]
    rejected = [(match.score, i) for i, match in enumerate(found) if reasons[i]]
    nearest = (found[min(rejected)[1]], reasons[min(rejected)[1]]) if rejected else None
    return _Found(pose, tree, [match for match, reason in zip(found, reasons, strict=True) if not reason], nearest)


def _rejected(model: mujoco.MjModel, pose: Pose, tree: Tree, match: Match) -> str:
    """Why an isometry is no symmetry, not even nearly; empty if it may be one."""
    if match.kinematics > KINEMATICS:
        return f"{match.worst_joint} is {match.kinematics:.2g} robot sizes or rad from where it should be"
    if match.matter > _MATTER or match.astray > _ASTRAY:
        return f"{match.worst_body} has its mass elsewhere"
    element, _ = with_transmissions(model, pose, skeleton(model, pose, tree, match, {}))
    misfits = _misfits(model, pose, tree, match, element)
    if sum(share for share, _ in misfits) > _MISFITS:
        return max(misfits)[1]
    return ""


def _misfits(model: mujoco.MjModel, pose: Pose, tree: Tree, match: Match, element: Element) -> list[tuple[float, str]]:
    """Shares of joints, actuators and colliding geoms whose images differ from them, with the worst in words."""
    ranges = {joint: _range_misfit(model, pose, joint, match) for joint in match.joints}
    pulls = {i: actuator_mismatch(model, i, int(k), int(s)) for i, (k, s) in _signed(element.actuators)}
    touching = np.flatnonzero(colliding(model) & np.isin(model.geom_bodyid, tree.bodies))
    images, _ = Setting(model, pose, element, tree.size).geoms
    lost = {int(geom): float(images[geom] == NOWHERE) for geom in touching}
    joint, actuator, geom = (max(parts, key=lambda p: parts[p], default=0) for parts in (ranges, pulls, lost))
    joints = [part_name(model, mujoco.mjtObj.mjOBJ_JOINT, j) for j in (joint, match.joints.get(joint, joint))]
    pair = actuator, int(element.actuators.image[actuator])
    actuators = [part_name(model, mujoco.mjtObj.mjOBJ_ACTUATOR, i) for i in pair]
    return [
        (_mean(ranges), f"{joints[0]} and its image {joints[1]} differ in range"),
        (
            _mean(pulls) + float(max(pulls.values()) > 1),  # one that only pushes cannot pull
            f"{actuators[0]} and its image {actuators[1]} act differently",
        ),
        (_mean(lost), f"{part_name(model, mujoco.mjtObj.mjOBJ_GEOM, geom)} has no image"),
    ]


def _signed(images: Images) -> Iterator[tuple[int, tuple[int, float]]]:
    return enumerate(zip(images.image, images.signs, strict=True))


def _mean(shares: dict[int, float]) -> float:
    return float(np.mean(list(shares.values()))) if shares else 0.0


def _range_misfit(model: mujoco.MjModel, pose: Pose, joint: int, match: Match) -> float:
    """Share of a joint's range that lies outside that of its image."""
    if model.jnt_type[joint] not in (HINGE, SLIDE) or not model.jnt_limited[joint]:
        return 0.0
    image, sign = match.joints[joint], match.signs[joint]
    if not model.jnt_limited[image]:
        return 0.0
    here, there = pose.qpos[model.jnt_qposadr[joint]], pose.qpos[model.jnt_qposadr[image]]
    low, high = sorted(there + sign * (model.jnt_range[joint] - here))
    overlap = min(high, model.jnt_range[image, 1]) - max(low, model.jnt_range[image, 0])
    return float(np.clip(1.0 - overlap / max(high - low, 1e-12), 0.0, 1.0))


# -- elements --------------------------------------------------------------------------------------------


def _generated(model: mujoco.MjModel, found: _Found, elements: list[Element]) -> list[Element]:
    """The elements with their parts, found for as few of them as generate the others, identity first."""
    first, *others = sorted(elements, key=lambda element: not element.is_identity)
    done: list[Element] = [_completed(model, found, first)]
    for element in others:
        if any(element.is_alike(known) for known in done):
            continue
        done.append(_completed(model, found, element))
        grown = True
        while grown:
            products = (second @ first for second in list(done) for first in list(done))
            new = [p for p in products if not any(p.is_alike(known) for known in done)]
            grown = bool(new)
            for product in new:
                if not any(product.is_alike(known) for known in done):
                    done.append(product)
    return done


def _completed(model: mujoco.MjModel, found: _Found, element: Element) -> Element:
    """The element with its actuators, tendons and sensors."""
    element, gaps = with_transmissions(model, found.pose, element)
    return dataclasses.replace(element, sensors=sensor_images(model, element, gaps, found.tree.size))
