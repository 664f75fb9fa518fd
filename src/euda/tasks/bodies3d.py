"""The 3D variants: dm_control's planar models given a free root and three hinges per joint.

The models are dm_control's own, edited with `mujoco.MjSpec` and compiled without a detour through XML
text (which would round every number to six digits). `docs/tasks.md` explains each number.
"""

from __future__ import annotations

import copy
import dataclasses
import functools
import math
from typing import Any

import mujoco
import numpy as np

from euda.tasks import dm_control_tasks
from euda.tasks.dm_control_tasks import Environment, cheetah, common, hopper, walker, wrapper

ADDED = ("_z", "_x")
"""Suffixes of the added yaw and roll hinges. They act before the pitch hinge, which stays last: with pitch
between them, the pitch ranges of all three robots pass through gimbal lock."""
_YAW, _ROLL = (0.0, 0.0, 1.0), (1.0, 0.0, 0.0)
_SPREAD = 0.1  # of the range of an added hinge, at reset: enough to leave the plane, not enough to fall at once


@dataclasses.dataclass(frozen=True)
class Variant:
    """How the added yaw and roll hinges of a 3D variant differ from the pitch hinge beside them."""

    file: str
    control_timestep: float
    """Seconds per control step, as in the plane."""
    half_range: float
    """Range of the added hinges: ± this many degrees."""
    yaw_gear: float = 1.0
    """Gear of the yaw motor, as a share of the pitch motor's."""
    roll_gear: float = 1.0
    armature: float | None = None
    """kg·m²; None: as the pitch hinge."""
    damping: float | None = None
    """N·m·s/rad; None: as the pitch hinge."""


VARIANTS = {
    "cheetah": Variant("cheetah.xml", 0.01, half_range=20.0),
    "hopper": Variant("hopper.xml", 0.02, half_range=15.0),
    # The walker's hinges have so little inertia that full torque on added axes blows the simulation up.
    "walker": Variant("walker.xml", 0.025, half_range=20.0, yaw_gear=0.25, roll_gear=0.5, armature=0.05, damping=1.0),
}


def build(domain: str) -> mujoco.MjModel:
    """The 3D variant of dm_control's cheetah, hopper or walker; every caller gets a model of its own."""
    return copy.copy(_compiled(domain))


@functools.cache
def _compiled(domain: str) -> mujoco.MjModel:
    """Compiled once in a process: drawing the sky takes ten times as long as a copy, and a run makes six of them."""
    variant = VARIANTS[domain]
    spec = mujoco.MjSpec.from_string(common.read_model(variant.file), include=dict(common.ASSETS))
    torso = spec.body("torso")
    for joint in list(torso.joints):
        spec.delete(joint)
    # add_freejoint, because add_joint would inherit stiffness, armature and damping from the class.
    torso.add_freejoint().name = "root"
    gears = {actuator.target: float(actuator.gear[0]) for actuator in spec.actuators}
    for actuator in list(spec.actuators):
        spec.delete(actuator)
    for body in spec.bodies:
        for hinge in [joint for joint in body.joints if joint.name in gears]:
            _three_hinges(spec, body, hinge, gears[hinge.name], variant)
    _endless_floor(spec)
    with dm_control_tasks.quiet_compile():
        return spec.compile()


_KEPT = (
    "stiffness",
    "damping",
    "armature",
    "solimp_limit",
    "solref_limit",
    "limited",
    "range",
    "pos",
    "axis",
    "frictionloss",
    "margin",
)


def _three_hinges(spec: Any, body: Any, hinge: Any, gear: float, variant: Variant) -> None:
    """Replace a pitch hinge by yaw, roll and pitch hinges with a motor each, in that order."""
    name = hinge.name
    kept = {attribute: np.copy(getattr(hinge, attribute)) for attribute in _KEPT}
    added: dict[str, Any] = {"range": (-variant.half_range, variant.half_range)}
    if variant.armature is not None:
        added["armature"] = variant.armature
    if variant.damping is not None:
        added["damping"] = (variant.damping, 0.0, 0.0)  # MjSpec: coefficients of a polynomial in the rate
    spec.delete(hinge)
    rows = (
        (name + ADDED[0], _YAW, variant.yaw_gear, added),
        (name + ADDED[1], _ROLL, variant.roll_gear, added),
        (name, None, 1.0, {}),
    )
    for joint_name, axis, share, changes in rows:
        values = kept | changes | ({} if axis is None else {"axis": axis})
        joint = body.add_joint(name=joint_name, type=mujoco.mjtJoint.mjJNT_HINGE)
        for attribute, value in values.items():
            setattr(joint, attribute, value if np.ndim(value) else np.asarray(value).item())
        motor = spec.add_actuator(name=joint_name, target=joint_name, trntype=mujoco.mjtTrn.mjTRN_JOINT)
        motor.set_to_motor()
        motor.gear[0] = gear * share
        motor.ctrllimited, motor.ctrlrange = True, (-1.0, 1.0)


def _endless_floor(spec: Any) -> None:
    """Planes collide everywhere, but are drawn only within their size: 0 draws them to the horizon."""
    for geom in spec.worldbody.geoms:
        if geom.type == mujoco.mjtGeom.mjGEOM_PLANE:
            geom.pos = (0.0, 0.0, 0.0)
            geom.size = (0.0, 0.0, geom.size[2])


class _Reset3D:
    """Mixin for dm_control's tasks: resets that keep the planar task's spread and leave the plane a little.

    dm_control's own randomiser would draw a free root lying on its side and facing +y, while the task is
    to run along +x.
    """

    def _draw_pitch(self: Any, physics: Any) -> None:
        """Pitch hinges uniform in their range, as in the plane; added hinges at zero."""
        pitch, _ = _hinges(physics.model.ptr)
        lower, upper = physics.model.ptr.jnt_range[pitch].T
        physics.data.qpos[physics.model.ptr.jnt_qposadr[pitch]] = self.random.uniform(lower, upper)

    def _leave_the_plane(self: Any, physics: Any) -> None:
        _, added = _hinges(physics.model.ptr)
        lower, upper = physics.model.ptr.jnt_range[added].T
        physics.data.qpos[physics.model.ptr.jnt_qposadr[added]] = _SPREAD * self.random.uniform(lower, upper)

    def _draw_root_pitch(self: Any, physics: Any) -> None:
        half = 0.5 * self.random.uniform(-math.pi, math.pi)
        physics.data.qpos[3:7] = math.cos(half), 0.0, math.sin(half), 0.0


class Cheetah3D(_Reset3D, cheetah.Cheetah):
    """dm_control's cheetah task on the 3D body: settles in the plane, where it stays upright, then leaves it."""

    def initialize_episode(self, physics: Any) -> None:
        self._draw_pitch(physics)
        physics.step(nstep=200)
        self._leave_the_plane(physics)
        physics.data.time = 0
        self._timeout_progress = 0
        super(cheetah.Cheetah, self).initialize_episode(physics)


class Hopper3D(_Reset3D, hopper.Hopper):
    """dm_control's hopper task on the 3D body."""

    def initialize_episode(self, physics: Any) -> None:
        self._draw_root_pitch(physics)
        self._draw_pitch(physics)
        self._leave_the_plane(physics)
        self._timeout_progress = 0
        super(hopper.Hopper, self).initialize_episode(physics)


class Walker3D(_Reset3D, walker.PlanarWalker):
    """dm_control's walker task on the 3D body."""

    def initialize_episode(self, physics: Any) -> None:
        self._draw_root_pitch(physics)
        self._draw_pitch(physics)
        self._leave_the_plane(physics)
        super(walker.PlanarWalker, self).initialize_episode(physics)


def _hinges(model: mujoco.MjModel) -> tuple[list[int], list[int]]:
    """Joint ids of the pitch hinges and of the added ones."""
    hinges = [j for j in range(model.njnt) if model.jnt_limited[j]]
    added = [j for j in hinges if model.joint(j).name.endswith(ADDED)]
    return [j for j in hinges if j not in added], added


PHYSICS: dict[str, Any] = {"cheetah": cheetah.Physics, "hopper": hopper.Physics, "walker": walker.Physics}
TASKS = {
    "cheetah": lambda random: Cheetah3D(random=random),
    "hopper": lambda random: Hopper3D(hopping=True, random=random),
    "walker": lambda random: Walker3D(move_speed=8.0, random=random),
}


def load(domain: str, random: np.random.RandomState) -> Environment:
    """The 3D variant as a dm_control environment with the planar task's timing."""
    physics = PHYSICS[domain].from_model(wrapper.MjModel(build(domain)))
    return Environment(physics, TASKS[domain](random), control_timestep=VARIANTS[domain].control_timestep)
