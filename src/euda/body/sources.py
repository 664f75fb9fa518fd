"""Which joint or actuator each number of MuJoCo's state belongs to, and how it answers to a mirror."""

from __future__ import annotations

import mujoco

from euda.body.field import Rule, Source

_FREE, _BALL, _SLIDE = (
    mujoco.mjtJoint.mjJNT_FREE,
    mujoco.mjtJoint.mjJNT_BALL,
    mujoco.mjtJoint.mjJNT_SLIDE,
)


def of_axis(model: mujoco.MjModel, joint: int) -> Source:
    """A hinge turns about its axis, which a mirror treats as a spin; a slide moves along it."""
    rule = Rule.POLAR if mujoco.mjtJoint(model.jnt_type[joint]) == _SLIDE else Rule.AXIAL
    return Source("joint", joint, rule, is_signed=True)


def of_qpos(model: mujoco.MjModel) -> list[Source]:
    """For every entry of `qpos`; for a vector or quaternion the first of its entries speaks for all."""
    return [source for joint in range(model.njnt) for source in _positions(model, joint)]


def of_qvel(model: mujoco.MjModel) -> list[Source]:
    """For every entry of `qvel`."""
    return [source for joint in range(model.njnt) for source in _rates(model, joint)]


def of_act(model: mujoco.MjModel) -> list[Source]:
    """For every entry of `act`."""
    found: dict[int, Source] = {}
    for actuator, (first, count) in enumerate(zip(model.actuator_actadr, model.actuator_actnum, strict=True)):
        for k in range(int(count)):
            found[int(first) + k] = Source("actuator", actuator, Rule.SCALAR, k, is_signed=True)
    return [found[entry] for entry in range(model.na)]


def _positions(model: mujoco.MjModel, joint: int) -> list[Source]:
    kind, body = mujoco.mjtJoint(model.jnt_type[joint]), int(model.jnt_bodyid[joint])
    if kind == _FREE:
        place = [Source("xbody", body, Rule.POLAR, k) for k in range(2)]  # the third is a height
        pose = [Source("xbody", body, Rule.ORIENTATION, k) for k in range(4)]
        return [*place, Source("xbody", body, Rule.SCALAR), *pose]
    if kind == _BALL:
        return [Source("joint", joint, Rule.ORIENTATION, k) for k in range(4)]
    return [Source("joint", joint, Rule.SCALAR, is_signed=True, is_length=True)]


def _rates(model: mujoco.MjModel, joint: int) -> list[Source]:
    kind, body = mujoco.mjtJoint(model.jnt_type[joint]), int(model.jnt_bodyid[joint])
    if kind == _FREE:  # linear in the world, angular in the body's own frame
        return [Source("xbody", body, rule, k) for rule in (Rule.POLAR, Rule.OWN_AXIAL) for k in range(3)]
    if kind == _BALL:
        return [Source("joint", joint, Rule.OWN_AXIAL, k) for k in range(3)]
    return [Source("joint", joint, Rule.SCALAR, is_signed=True)]
