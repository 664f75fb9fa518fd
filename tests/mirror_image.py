"""The mirror image of a robot: another model, built as the first one is, seen in the plane y = 0.

No symmetry of the robot is needed: every body, joint, site and sensor is its own image, with sign +1 and S_b = M. So
what a mirror does to a reading can be checked for any robot, by physics alone.
"""

import copy
import dataclasses

import mujoco
import numpy as np

from euda.body.field import Field, Kind, Rule

M = np.diag([1.0, -1.0, 1.0])
QUATERNION = np.array([1.0, -1.0, 1.0, -1.0])  # of M R M, where R has (w, x, y, z)
_PLACES = ("body_pos", "body_ipos", "geom_pos", "site_pos", "jnt_pos")
_FRAMES = ("body_quat", "body_iquat", "geom_quat", "site_quat")


def mirror_image(robot):
    """The mirrored robot in the mirrored state, with everything computed that MuJoCo computes of a state."""
    model = copy.copy(robot.model)
    for name in _PLACES:
        getattr(model, name)[:] *= M.diagonal()
    for name in _FRAMES:
        getattr(model, name)[:] *= QUATERNION
    slides = model.jnt_type == int(mujoco.mjtJoint.mjJNT_SLIDE)
    model.jnt_axis[:] *= np.where(slides[:, None], 1, -1) * M.diagonal()  # a hinge's axis is a spin
    data = mujoco.MjData(model)
    data.qpos[:], data.qvel[:], data.act[:], data.ctrl[:] = *_state(robot), robot.data.act, robot.data.ctrl
    direction = None if robot.direction is None else M @ robot.direction
    target = robot.target
    if target is not None and not isinstance(target.place, str):
        target = dataclasses.replace(target, place=M @ target.place)
    for each_model, each_data in ((robot.model, robot.data), (model, data)):
        each_model.opt.disableflags |= int(mujoco.mjtDisableBit.mjDSBL_MIDPHASE)  # its boxes are not mirrored
        mujoco.mj_forward(each_model, each_data)
    return dataclasses.replace(robot, model=model, data=data, direction=direction, target=target)


def _state(robot):
    qpos, qvel = robot.data.qpos.copy(), robot.data.qvel.copy()
    for joint in range(robot.model.njnt):
        q, v = robot.model.jnt_qposadr[joint], robot.model.jnt_dofadr[joint]
        match mujoco.mjtJoint(robot.model.jnt_type[joint]):
            case mujoco.mjtJoint.mjJNT_FREE:
                qpos[q : q + 7] *= [*M.diagonal(), *QUATERNION]
                qvel[v : v + 6] *= [*M.diagonal(), *-M.diagonal()]
            case mujoco.mjtJoint.mjJNT_BALL:
                qpos[q : q + 4] *= QUATERNION
                qvel[v : v + 3] *= -M.diagonal()
    return qpos, qvel


def mirrored_by_its_sources(field: Field, numbers: np.ndarray) -> np.ndarray:
    """What the sources of a field say that its numbers [dim] become in the mirror image."""
    elements = numbers.reshape(field.count, field.kind.width).copy()
    for element, source in zip(elements, field.sources, strict=True):
        element *= _factors(source.rule, source.component, field.kind)
    return elements.ravel()


def _factors(rule: Rule, component: int, kind: Kind) -> np.ndarray:
    diagonal = M.diagonal()
    world = diagonal[: kind.width] if kind.width > 1 else diagonal[component : component + 1]
    match rule:
        case Rule.POLAR:
            return world
        case Rule.AXIAL:
            return -world
        case Rule.COLUMN:
            return world * diagonal[component]
        case Rule.ORIENTATION:
            return QUATERNION if kind is Kind.QUATERNION else QUATERNION[component]
        case Rule.SCALAR:
            return np.ones(1)
        case Rule.OWN_POLAR:
            return diagonal[component]
        case Rule.OWN_AXIAL:
            return -diagonal[component]
        case Rule.RELATIVE:
            return diagonal[component // 3] * diagonal[component % 3]
