"""What in the joints and cables by which a robot hangs on the world keeps it from doing the same after a turn."""

from __future__ import annotations

from collections.abc import Callable

import mujoco
import numpy as np

from euda.body.robot import Robot
from euda.body.turn import free_joints, static_frame
from euda.symmetry.judging.suspects import Suspect, disable, listed
from euda.symmetry.judging.transformation import first_bodies, is_vertical, joints_of

_HINGE, _SLIDE = int(mujoco.mjtJoint.mjJNT_HINGE), int(mujoco.mjtJoint.mjJNT_SLIDE)
_TRN, _GAIN, _BIAS = mujoco.mjtTrn, mujoco.mjtGain, mujoco.mjtBias
DOF_ARRAYS = ("dof_armature", "dof_damping", "dof_frictionloss")
TENDON_ARRAYS = ("tendon_stiffness", "tendon_stiffnesspoly", "tendon_damping", "tendon_dampingpoly", "tendon_limited")


def fixed_axes(model: mujoco.MjModel) -> list[int]:
    """First joints whose axis neither is vertical nor turns with the robot: slides over the floor, leaning hinges."""
    return [joint for body in first_bodies(model) for joint in _before_turning(model, body)[0]]


def turning_joints(model: mujoco.MjModel) -> list[int]:
    """Joints that change when the robot turns itself: those with fixed axes, and the vertical hinge or ball."""
    parts = [_before_turning(model, body) for body in first_bodies(model)]
    return [joint for fixed, turning in parts for joint in (*fixed, *turning)]


def _before_turning(model: mujoco.MjModel, body: int) -> tuple[list[int], list[int]]:
    """The joints of a first body that come before the one that turns it about the vertical, and that one."""
    fixed: list[int] = []
    frame = static_frame(model, int(model.body_parentid[body]))[1]
    for joint in joints_of(model, body):
        axis = np.empty(3)
        mujoco.mju_rotVecQuat(axis, model.jnt_axis[joint], model.body_quat[body])
        kind, leans = int(model.jnt_type[joint]), not is_vertical(frame @ axis)
        if kind not in (_HINGE, _SLIDE) or (kind == _HINGE and not leans):
            return fixed, [joint]
        if leans:
            fixed.append(joint)
    return fixed, []


def why_never(model: mujoco.MjModel) -> str:
    """The joint that keeps a robot on a mounting from turning itself, in a few words."""
    for joint in fixed_axes(model):
        kind = "slides along a world axis" if model.jnt_type[joint] == _SLIDE else "is not vertical"
        return f"first joint {_joint_name(model, joint)!r} {kind}"
    return "its features show where it is mounted"


# -- actuators -------------------------------------------------------------------------------------------


def _joints_of(model: mujoco.MjModel, actuator: int) -> list[int]:
    """The joints on which an actuator acts, directly or through a tendon along joints."""
    kind, target = _TRN(model.actuator_trntype[actuator]), int(model.actuator_trnid[actuator, 0])
    if kind in (_TRN.mjTRN_JOINT, _TRN.mjTRN_JOINTINPARENT):
        return [target]
    return _tendon_joints(model, target) if kind == _TRN.mjTRN_TENDON else []


def _tendon_joints(model: mujoco.MjModel, tendon: int) -> list[int]:
    span = range(int(model.tendon_adr[tendon]), int(model.tendon_adr[tendon] + model.tendon_num[tendon]))
    return [int(model.wrap_objid[w]) for w in span if model.wrap_type[w] == int(mujoco.mjtWrap.mjWRAP_JOINT)]


def _acting_on(model: mujoco.MjModel, joints: list[int]) -> list[int]:
    return [a for a in range(model.nu) if set(_joints_of(model, a)) & set(joints)]


def _follows_length(model: mujoco.MjModel, actuator: int) -> bool:
    """Whether the force of an actuator depends on where its joint is, as that of a servo does."""
    gain, bias = _GAIN(model.actuator_gaintype[actuator]), _BIAS(model.actuator_biastype[actuator])
    by_gain = gain == _GAIN.mjGAIN_AFFINE and model.actuator_gainprm[actuator, 1] != 0
    by_bias = bias == _BIAS.mjBIAS_AFFINE and model.actuator_biasprm[actuator, 1] != 0
    return bool(by_gain or by_bias or gain == _GAIN.mjGAIN_MUSCLE or bias == _BIAS.mjBIAS_MUSCLE)


def _servos(model: mujoco.MjModel) -> list[int]:
    return [a for a in _acting_on(model, turning_joints(model)) if _follows_length(model, a)]


def _world_motors(model: mujoco.MjModel) -> list[int]:
    return [a for a in _acting_on(model, fixed_axes(model)) if a not in _servos(model)]


def _release(find: Callable[[mujoco.MjModel], list[int]]) -> Callable[[Robot], None]:
    def mend(robot: Robot) -> None:
        robot.model.actuator_gear[find(robot.model)] = 0.0

    return mend


def _found_servos(robot: Robot) -> str | None:
    names = _driven_names(robot.model, _servos(robot.model))
    return f"{names} is pulled to an angle or place of the world" if names else None


def _found_motors(robot: Robot) -> str | None:
    model = robot.model
    joints = [j for a in _world_motors(model) for j in _joints_of(model, a) if j in fixed_axes(model)]
    if not joints:
        return None
    how = "push along world axes" if model.jnt_type[joints[0]] == _SLIDE else "is not vertical and has a motor"
    return f"{_names(model, joints)} {how}"


def _driven_names(model: mujoco.MjModel, actuators: list[int]) -> str:
    turning = turning_joints(model)
    return _names(model, [j for a in actuators for j in _joints_of(model, a) if j in turning])


# -- limits, springs, cables -----------------------------------------------------------------------------


def _limited(robot: Robot) -> str | None:
    model = robot.model
    names = _names(model, [j for j in turning_joints(model) if model.jnt_limited[j]])
    return f"{names} ends at its range" if names else None


def _unlimit(robot: Robot) -> None:
    robot.model.jnt_limited[turning_joints(robot.model)] = 0


def _is_sprung(model: mujoco.MjModel, joint: int) -> bool:
    return bool(model.jnt_stiffness[joint] or np.any(model.jnt_stiffnesspoly[joint]))


def _sprung(robot: Robot) -> str | None:
    model = robot.model
    names = _names(model, [j for j in turning_joints(model) if _is_sprung(model, j)])
    return f"{names} is pulled back to one angle" if names else None


def _unspring(robot: Robot) -> None:
    joints = turning_joints(robot.model)
    robot.model.jnt_stiffness[joints] = 0.0
    robot.model.jnt_stiffnesspoly[joints] = 0.0


def _cables(model: mujoco.MjModel) -> list[int]:
    turning = set(turning_joints(model))
    tense = [t for t in range(model.ntendon) if any(np.any(getattr(model, name)[t]) for name in TENDON_ARRAYS)]
    return [t for t in tense if turning & set(_tendon_joints(model, t))]


def _cabled(robot: Robot) -> str | None:
    names = [robot.model.tendon(t).name or f"tendon {t}" for t in _cables(robot.model)]
    return f"{listed(names)} ties a first joint to other joints" if names else None


def _cut_cables(robot: Robot) -> None:
    for name in TENDON_ARRAYS:
        getattr(robot.model, name)[_cables(robot.model)] = 0


def _coupled(robot: Robot) -> str | None:
    """Equality constraints may tie anything to anything: the simulation says whether it matters."""
    model = robot.model
    active = [e for e in range(model.neq) if model.eq_active0[e]] if first_bodies(model) else []
    names = [model.equality(e).name or f"equality {e}" for e in active]
    return f"{listed(names)} ties the robot" if names else None


def _slides(model: mujoco.MjModel) -> list[list[int]]:
    """Degrees of freedom of slides over the floor, by body."""
    slides = [j for j in fixed_axes(model) if model.jnt_type[j] == _SLIDE]
    bodies = sorted({int(model.jnt_bodyid[j]) for j in slides})
    return [[int(model.jnt_dofadr[j]) for j in slides if model.jnt_bodyid[j] == body] for body in bodies]


def _uneven_slides(robot: Robot) -> str | None:
    for dofs in _slides(robot.model):
        for name in DOF_ARRAYS:
            if np.ptp(getattr(robot.model, name)[dofs], axis=0).any():
                joints = [int(robot.model.dof_jntid[dof]) for dof in dofs]
                return f"{name.removeprefix('dof_')} differs between {_names(robot.model, joints)}"
    return None


def _even_slides(robot: Robot) -> None:
    for dofs in _slides(robot.model):
        for name in DOF_ARRAYS:
            getattr(robot.model, name)[dofs] = getattr(robot.model, name)[dofs].mean(axis=0)


# -- free roots ----------------------------------------------------------------------------------------


def _root_springs(robot: Robot) -> str | None:
    model = robot.model
    held = [model.joint(j).name or f"joint {j}" for j in free_joints(model) if np.any(model.jnt_stiffness[j])]
    return f"free joint {listed(held)} is held where it was first" if held else None


def _cut_springs(robot: Robot) -> None:
    for joint in free_joints(robot.model):
        robot.model.jnt_stiffness[joint] = 0.0


def _uneven(robot: Robot) -> str | None:
    model = robot.model
    for joint in free_joints(model):
        dofs = slice(int(model.jnt_dofadr[joint]), int(model.jnt_dofadr[joint]) + 2)
        for name in DOF_ARRAYS:
            if np.ptp(getattr(model, name)[dofs], axis=0).any():
                what = name.removeprefix("dof_")
                return f"{what} of {model.joint(joint).name!r} differs between x and y"
    return None


def _even_out(robot: Robot) -> None:
    model = robot.model
    for joint in free_joints(model):
        dofs = slice(int(model.jnt_dofadr[joint]), int(model.jnt_dofadr[joint]) + 2)
        for name in DOF_ARRAYS:
            getattr(model, name)[dofs] = getattr(model, name)[dofs].mean(axis=0)


# -- ties to the world -----------------------------------------------------------------------------------


def _world_ties(model: mujoco.MjModel) -> tuple[list[int], list[int]]:
    """Spatial tendons with a point on the world, and actuators that pull on them or push against a world site."""
    site, geoms = (
        int(mujoco.mjtWrap.mjWRAP_SITE),
        (int(mujoco.mjtWrap.mjWRAP_SPHERE), int(mujoco.mjtWrap.mjWRAP_CYLINDER)),
    )

    def on_world(wrap: int) -> bool:
        kind, index = int(model.wrap_type[wrap]), int(model.wrap_objid[wrap])
        owner = model.site_bodyid if kind == site else model.geom_bodyid if kind in geoms else None
        return owner is not None and int(model.body_weldid[owner[index]]) == 0

    spans = [range(int(adr), int(adr + num)) for adr, num in zip(model.tendon_adr, model.tendon_num, strict=True)]
    tendons = [tendon for tendon, span in enumerate(spans) if any(map(on_world, span))]
    return tendons, [a for a in range(model.nu) if _pushes_world(model, a, tendons)]


def _pushes_world(model: mujoco.MjModel, actuator: int, tendons: list[int]) -> bool:
    kind, (first, second) = mujoco.mjtTrn(model.actuator_trntype[actuator]), model.actuator_trnid[actuator]
    if kind == mujoco.mjtTrn.mjTRN_TENDON:
        return int(first) in tendons
    return kind == mujoco.mjtTrn.mjTRN_SITE and second >= 0 and int(model.body_weldid[model.site_bodyid[second]]) == 0


def _tied(robot: Robot) -> str | None:
    model, (tendons, actuators) = robot.model, _world_ties(robot.model)
    names = [model.tendon(t).name or f"tendon {t}" for t in tendons]
    names += [model.actuator(a).name or f"actuator {a}" for a in actuators]
    return f"{listed(names)} pull between robot and world" if names else None


def _untie(robot: Robot) -> None:
    model, (tendons, actuators) = robot.model, _world_ties(robot.model)
    for name in TENDON_ARRAYS:
        getattr(model, name)[tendons] = 0
    model.actuator_gear[actuators] = 0.0


# -- names --------------------------------------------------------------------------------------------


def _joint_name(model: mujoco.MjModel, joint: int) -> str:
    return model.joint(joint).name or f"joint {joint}"


def _names(model: mujoco.MjModel, joints: list[int]) -> str:
    return listed([repr(_joint_name(model, joint)) for joint in dict.fromkeys(joints)])


JOINT_SUSPECTS: tuple[Suspect, ...] = (
    Suspect("spring on the root", _root_springs, _cut_springs, "set its stiffness to 0", arrays=("jnt_stiffness",)),
    Suspect("uneven root", _uneven, _even_out, "make both equal", arrays=DOF_ARRAYS),
    Suspect("ties to the world", _tied, _untie, "tie the robot to itself only",
            arrays=(*TENDON_ARRAYS, "actuator_gear")),
    Suspect("servo", _found_servos, _release(_servos), "drive it by torque", arrays=("actuator_gear",)),
    Suspect("world-fixed motor", _found_motors, _release(_world_motors), "no yaw symmetry",
            arrays=("actuator_gear",)),
    Suspect("limit", _limited, _unlimit, "symmetric only between the limits", arrays=("jnt_limited",)),
    Suspect("spring", _sprung, _unspring, "set its stiffness to 0", arrays=("jnt_stiffness", "jnt_stiffnesspoly")),
    Suspect("cable", _cabled, _cut_cables, "leave the first joint free", arrays=TENDON_ARRAYS),
    Suspect("constraint", _coupled, disable(mujoco.mjtDisableBit.mjDSBL_EQUALITY), "leave the first joint free",
            options=("disableflags",)),
    Suspect("uneven slides", _uneven_slides, _even_slides, "make both equal", arrays=DOF_ARRAYS),
)  # fmt: skip
