"""(MjModel, element of bodies and joints) → images of actuators and tendons.

Transmissions are not parsed but identified by numbers: in random states x and their images, the moment arm of the
image of an actuator is plus or minus that of the actuator, carried along. What an actuator pulls on, a joint, a
tendon around pulleys, a site, then makes no difference.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import mujoco
import numpy as np

from euda.symmetry.element import Element
from euda.symmetry.images import Images
from euda.symmetry.search.assignment import assign
from euda.symmetry.search.pose import Pose

_STATES = 3  # a moment arm is nv numbers: one generic state would do, three leave no room for coincidence
_ALIKE = 0.5  # moment arms that differ more are not worth a closer look
_DYN = mujoco.mjtDyn


def with_transmissions(model: mujoco.MjModel, pose: Pose, element: Element) -> tuple[Element, np.ndarray]:
    """The element with tendons and actuators, and by how much each actuator's length is not ± that of its image."""
    sample = _Sample(model, pose, element)
    actuators, gaps = _actuators(model, sample, element)
    activations = _activations(model, actuators, gaps)
    parts = {"tendons": _tendons(model, sample), "actuators": actuators, "activations": activations}
    return dataclasses.replace(element, **parts), gaps


# -- transmissions ---------------------------------------------------------------------------------------


class _Sample:
    """Lengths and moment arms of tendons and actuators in random states, and in their images."""

    def __init__(self, model: mujoco.MjModel, pose: Pose, element: Element) -> None:
        rng = np.random.default_rng(0)
        states = [_near(model, pose.qpos, rng) for _ in range(_STATES)]
        here = [_transmission(model, qpos) for qpos in states]
        there = [_transmission(model, element.positions(qpos)) for qpos in states]
        carry = [element.velocities(qpos, np.eye(model.nv)).T for qpos in states]
        self.tendon_length, self.actuator_length = (np.stack([s[k] for s in here], axis=1) for k in (0, 2))
        self.tendon_image_length, self.actuator_image_length = (np.stack([s[k] for s in there], axis=1) for k in (0, 2))
        self.tendon_arm, self.actuator_arm = (np.concatenate([s[k] for s in here], axis=1) for k in (1, 3))
        self.tendon_image_arm, self.actuator_image_arm = (
            np.concatenate([s[k] @ G for s, G in zip(there, carry, strict=True)], axis=1) for k in (1, 3)
        )


def _near(model: mujoco.MjModel, qpos: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    result = qpos.copy()
    mujoco.mj_integratePos(model, result, 0.4 * rng.standard_normal(model.nv), 1.0)
    return result


def _transmission(model: mujoco.MjModel, qpos: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Lengths and moment arms [n, nv] of tendons, then of actuators."""
    data = mujoco.MjData(model)
    data.qpos[:] = qpos
    for stage in (mujoco.mj_kinematics, mujoco.mj_comPos, mujoco.mj_tendon, mujoco.mj_transmission):
        stage(model, data)
    tendon, actuator = np.zeros((model.ntendon, model.nv)), np.zeros((model.nu, model.nv))
    if model.ntendon:
        mujoco.mju_sparse2dense(tendon, data.ten_J, model.ten_J_rownnz, model.ten_J_rowadr, model.ten_J_colind)
    if model.nu:
        rows = data.moment_rownnz, data.moment_rowadr, data.moment_colind
        mujoco.mju_sparse2dense(actuator, data.actuator_moment, *rows)
    return data.ten_length.copy(), tendon, data.actuator_length.copy(), actuator


def _assign(
    arm: np.ndarray, image_arm: np.ndarray, extra: Callable[[int, int, int], float]
) -> tuple[np.ndarray, np.ndarray]:
    """Images and signs of items with these moment arms; `extra(i, image, sign)` is added to the mismatch."""
    count = len(arm)
    length = np.linalg.norm(arm, axis=1)[:, None] + np.linalg.norm(image_arm, axis=1)[None]
    gaps = {
        sign: np.linalg.norm(image_arm[None] - sign * arm[:, None], axis=-1) / np.where(length > 0, length, 1.0)
        for sign in (1, -1)
    }
    cost, signs = np.full((count, count), 4.0), np.ones((count, count), int)
    for sign, gap in gaps.items():
        for i, k in np.argwhere(gap < _ALIKE):
            total = gap[i, k] + extra(int(i), int(k), sign)
            if total < cost[i, k]:
                cost[i, k], signs[i, k] = total, sign
    rows, images = assign(cost)
    return images, signs[rows, images]


def _tendons(model: mujoco.MjModel, sample: _Sample) -> Images:
    def unlike(tendon: int, image: int, sign: int) -> float:
        del sign
        return 0.1 * float(model.tendon_stiffness[tendon] != model.tendon_stiffness[image])

    image, sign = _assign(sample.tendon_arm, sample.tendon_image_arm, unlike)
    gap = (sample.tendon_image_length[image] - sign[:, None] * sample.tendon_length).mean(axis=1)
    return Images.signed(image, sign, gap)


def _actuators(model: mujoco.MjModel, sample: _Sample, element: Element) -> tuple[Images, np.ndarray]:
    """Controls, and by how much the length of each actuator's image is not plus or minus its own."""

    def unlike(actuator: int, image: int, sign: int) -> float:
        return actuator_mismatch(model, actuator, image, sign) + float(
            _adheres_elsewhere(model, element, actuator, image)
        )

    image, sign = _assign(sample.actuator_arm, sample.actuator_image_arm, unlike)
    gap = (sample.actuator_image_length[image] - sign[:, None] * sample.actuator_length).mean(axis=1)
    gap[np.abs(gap) < 1e-9 * (1 + np.abs(sample.actuator_length).max(axis=1, initial=0))] = 0.0
    return Images.signed(image, sign, _control_offset(model, image, sign, gap)), gap


def _adheres_elsewhere(model: mujoco.MjModel, element: Element, actuator: int, image: int) -> bool:
    """Adhesion acts through contacts and has no moment arm without them; it goes where its body goes."""
    adhesion = int(mujoco.mjtTrn.mjTRN_BODY)
    if model.actuator_trntype[actuator] != adhesion:
        return False
    body, other = int(model.actuator_trnid[actuator, 0]), int(model.actuator_trnid[image, 0])
    return model.actuator_trntype[image] != adhesion or element.bodies.image[body] != other


def _control_offset(model: mujoco.MjModel, image: np.ndarray, sign: np.ndarray, gap: np.ndarray) -> np.ndarray:
    """What a servo's set point needs beside its sign so that the image pulls equally: gain c + b0' + b1' gap = ±b0."""
    gain, bias = model.actuator_gainprm[image, 0], model.actuator_biasprm[image]
    wanted = sign * model.actuator_biasprm[:, 0] - bias[:, 0] - bias[:, 1] * gap
    affine = (model.actuator_gaintype[image] == int(mujoco.mjtGain.mjGAIN_FIXED)) & (gain != 0)
    integrates = np.isin(model.actuator_dyntype[image], (int(_DYN.mjDYN_INTEGRATOR),))
    return np.where(affine & ~integrates, wanted / np.where(gain == 0, 1.0, gain), 0.0)


def _activations(model: mujoco.MjModel, actuators: Images, gaps: np.ndarray) -> Images:
    """Internal states go with their actuators; those that integrate hold a set point, filters hold a control."""
    image, sign, offset = np.arange(model.na), np.ones(model.na), np.zeros(model.na)
    for actuator in np.flatnonzero(model.actuator_actnum):
        other = int(actuators.image[actuator])
        start, goal = int(model.actuator_actadr[actuator]), int(model.actuator_actadr[other])
        integrates = model.actuator_dyntype[actuator] == int(_DYN.mjDYN_INTEGRATOR)
        set_point = gaps[actuator] if integrates else actuators.offset[actuator, 0]
        for k in range(int(min(model.actuator_actnum[actuator], model.actuator_actnum[other]))):
            image[start + k], sign[start + k], offset[start + k] = goal + k, actuators.signs[actuator], set_point
    return Images.signed(image, sign, offset)


def actuator_mismatch(model: mujoco.MjModel, actuator: int, image: int, sign: int) -> float:
    """How differently two actuators answer to controls ±u: 0 for equal ones, 1 and more for one-sided against sign."""
    if model.actuator_dyntype[actuator] != model.actuator_dyntype[image]:
        return 1.0
    if model.actuator_gaintype[actuator] != model.actuator_gaintype[image]:
        return 1.0
    if model.actuator_biastype[actuator] != model.actuator_biastype[image]:
        return 1.0
    parameters = [
        _relative(model.actuator_gainprm[actuator], model.actuator_gainprm[image]),
        _relative(model.actuator_biasprm[actuator, 1:3], model.actuator_biasprm[image, 1:3]),
        _relative(model.actuator_dynprm[actuator], model.actuator_dynprm[image]),
    ]
    limited = model.actuator_ctrllimited[actuator], model.actuator_ctrllimited[image]
    if limited[0] != limited[1]:
        return 1.0
    if limited[0]:
        own, other = _halves(model.actuator_ctrlrange[actuator]), _halves(model.actuator_ctrlrange[image])
        parameters.append(_relative(own, other))
    one_sided = (
        bool(limited[0]) and not model.actuator_ctrlrange[actuator].min() < 0 < model.actuator_ctrlrange[actuator].max()
    )
    is_set_point = model.actuator_biasprm[actuator, 1] != 0  # of a servo: then the range may lie anywhere
    nonlinear = model.actuator_gaintype[actuator] not in (0, 1)  # a muscle, for one, only pulls
    if sign < 0 and ((one_sided and not is_set_point) or nonlinear):
        return 2.0
    return float(np.mean(parameters))


def _halves(span: np.ndarray) -> np.ndarray:
    return span[1:] - span[:1]


def _relative(own: np.ndarray, other: np.ndarray) -> float:
    """0 for equal numbers, up to 1."""
    scale = np.abs(own).max() + np.abs(other).max()
    return float(np.abs(own - other).max() / scale) if scale else 0.0
