"""mujoco.MjModel → Morphology: the limb tree of a robot, read from the model's own tables.

Nothing here knows the name of a robot: limbs, joints and the root follow from parents, degrees of
freedom and actuators. MuJoCo stores bodies depth first, so limbs in body order are depth first too.
"""

from __future__ import annotations

import dataclasses
from typing import Literal

import mujoco
import numpy as np

from euda.errors import ModelError

Base = Literal["free", "planar", "fixed"]
_BODY = mujoco.mjtObj.mjOBJ_BODY
_TRN = mujoco.mjtTrn


@dataclasses.dataclass(frozen=True)
class Limb:
    """A rigid body of the robot. `parent` is the limb it hangs on, by position in `Morphology.limbs`.

    >>> import euda
    >>> foot = euda.make("hopper3d_hop").morphology.limbs[-1]
    >>> foot.name, foot.dofs, foot.welded
    ('foot', 3, False)
    """

    name: str
    body: int
    """MuJoCo body id; 0, the world, for the fixed base of a robot whose first body is driven."""
    parent: int | None
    joints: tuple[int, ...]
    """MuJoCo joint ids of the joint (in the paper's sense) between this limb and its parent."""
    dofs: int
    welded: bool = False
    """No degree of freedom relative to its parent; observed like any limb, but not counted in `n`."""


@dataclasses.dataclass(frozen=True)
class Morphology:
    """The tree of limbs. `limbs[0]` is the root; its `dofs` are 6 (free), 3 (planar) or 0 (fixed base).

    >>> import euda
    >>> morphology = euda.make("reacher_hard").morphology
    >>> [limb.name for limb in morphology.limbs], morphology.base
    (['root', 'arm', 'hand', 'finger'], 'fixed')
    >>> morphology.n, [limb.name for limb in morphology.welded]
    (3, ['finger'])
    """

    limbs: tuple[Limb, ...]
    base: Base
    mount: int
    """Body id of the robot's first body under the world: what is turned when the base is not free."""
    objects: tuple[int, ...]
    """Body ids of moving things that nobody drives (a ball, a box), outside the robot's tree."""
    actuators: tuple[str, ...]
    tendons: tuple[str, ...]
    activations: int
    """Internal states of actuators (`na`); they belong to the Markov state."""

    @property
    def root(self) -> Limb:
        """The torso, or the fixed base."""
        return self.limbs[0]

    @property
    def counted(self) -> tuple[Limb, ...]:
        """The limbs of the paper's `n`: the root and every limb with a joint."""
        return tuple(limb for limb in self.limbs if not limb.welded)

    @property
    def welded(self) -> tuple[Limb, ...]:
        """Bodies fixed to their parent, such as the reacher's finger or the quadruped's toes."""
        return tuple(limb for limb in self.limbs if limb.welded)

    @property
    def n(self) -> int:
        """The paper's number of limbs."""
        return len(self.counted)

    @property
    def d1(self) -> int:
        """Degrees of freedom of the root."""
        return self.root.dofs

    def count(self, dofs: int) -> int:
        """How many limbs beyond the root hang on a joint with that many degrees of freedom."""
        return sum(limb.dofs == dofs for limb in self.counted[1:])


def from_model(model: mujoco.MjModel, *, allow_loops: bool = False) -> Morphology:
    """Derive the limb tree of the one robot in `model`.

    The robot is the tree under the world that actuators drive. Its first body is a floating root if no
    actuator drives that body's joints (cheetah, humanoid); otherwise the base is fixed, limb 1 is what
    the robot is mounted on, and the first body is an ordinary limb (reacher).
    """
    if model.nu == 0:
        raise ModelError("the model has no actuators, so there is nothing to control: add an <actuator> section")
    driven = driven_joints(model)
    mount = _robot(model)
    if not allow_loops:
        _refuse_loops(model, mount)
    tree = [b for b in range(1, model.nbody) if _top(model, b) == mount]
    return Morphology(
        limbs=_limbs(model, tree, driven),
        base=_base(model, mount, driven),
        mount=mount,
        objects=tuple(b for b in range(1, model.nbody) if _top(model, b) != mount and model.body_dofnum[b] > 0),
        actuators=tuple(_name(model, mujoco.mjtObj.mjOBJ_ACTUATOR, i, "actuator") for i in range(model.nu)),
        tendons=tuple(_name(model, mujoco.mjtObj.mjOBJ_TENDON, i, "tendon") for i in range(model.ntendon)),
        activations=int(model.na),
    )


def driven_joints(model: mujoco.MjModel) -> frozenset[int]:
    """Joints that an actuator drives, directly or through a tendon."""
    joints: set[int] = set()
    for actuator in range(model.nu):
        kind, target = _TRN(model.actuator_trntype[actuator]), int(model.actuator_trnid[actuator, 0])
        if kind in (_TRN.mjTRN_JOINT, _TRN.mjTRN_JOINTINPARENT):
            joints.add(target)
        elif kind == _TRN.mjTRN_TENDON:
            start, count = int(model.tendon_adr[target]), int(model.tendon_num[target])
            for wrap in range(start, start + count):
                if mujoco.mjtWrap(model.wrap_type[wrap]) == mujoco.mjtWrap.mjWRAP_JOINT:
                    joints.add(int(model.wrap_objid[wrap]))
    return frozenset(joints)


def _driven_bodies(model: mujoco.MjModel) -> set[int]:
    """Bodies on which actuators act, whatever their transmission."""
    bodies: set[int] = {int(model.jnt_bodyid[joint]) for joint in driven_joints(model)}
    for actuator in range(model.nu):
        kind, first = _TRN(model.actuator_trntype[actuator]), int(model.actuator_trnid[actuator, 0])
        if kind in (_TRN.mjTRN_SITE, _TRN.mjTRN_SLIDERCRANK):
            bodies.add(int(model.site_bodyid[first]))
        elif kind == _TRN.mjTRN_BODY:
            bodies.add(first)
        elif kind == _TRN.mjTRN_TENDON:
            for wrap in range(int(model.tendon_adr[first]), int(model.tendon_adr[first] + model.tendon_num[first])):
                if mujoco.mjtWrap(model.wrap_type[wrap]) == mujoco.mjtWrap.mjWRAP_SITE:
                    bodies.add(int(model.site_bodyid[model.wrap_objid[wrap]]))
    return bodies


def _top(model: mujoco.MjModel, body: int) -> int:
    """The ancestor of `body` that hangs directly on the world."""
    while model.body_parentid[body] != 0:
        body = int(model.body_parentid[body])
    return body


def _robot(model: mujoco.MjModel) -> int:
    """The top-level body of the one tree that actuators drive."""
    moving = [b for b in range(1, model.nbody) if model.body_dofnum[b] > 0]
    if not moving:
        raise ModelError("the model has no joints, so nothing in it can move")
    tops = sorted({_top(model, b) for b in _driven_bodies(model) if b != 0})
    tops = [top for top in tops if any(_top(model, b) == top for b in moving)]
    if not tops:
        raise ModelError("no actuator of the model drives a moving body of it")
    if len(tops) > 1:
        names = ", ".join(repr(_name(model, _BODY, top, "body")) for top in tops)
        raise ModelError(
            f"the model holds {len(tops)} robots ({names}): limb features describe one tree, so give one robot"
        )
    return tops[0]


def _base(model: mujoco.MjModel, mount: int, driven: frozenset[int]) -> Base:
    if _is_fixed(model, mount, driven):
        return "fixed"
    joints = _joints(model, mount)
    return "free" if mujoco.mjtJoint(model.jnt_type[joints[0]]) == mujoco.mjtJoint.mjJNT_FREE else "planar"


def _is_fixed(model: mujoco.MjModel, mount: int, driven: frozenset[int]) -> bool:
    """Whether the robot stands on the world: no joint at its first body, or a driven one that is not free."""
    joints = _joints(model, mount)
    free = any(mujoco.mjtJoint(model.jnt_type[joint]) == mujoco.mjtJoint.mjJNT_FREE for joint in joints)
    return not free and (not joints or any(joint in driven for joint in joints))


def _limbs(model: mujoco.MjModel, tree: list[int], driven: frozenset[int]) -> tuple[Limb, ...]:
    """The limbs in body order, with the world put in front where the base is fixed by a driven joint."""
    mount = tree[0]
    position: dict[int, int] = {}
    limbs: list[Limb] = []
    if _joints(model, mount) and _is_fixed(model, mount, driven):
        limbs.append(Limb("root", body=0, parent=None, joints=(), dofs=0))
        position[0] = 0
    for body in tree:
        parent = position.get(int(model.body_parentid[body])) if limbs else None
        dofs = int(model.body_dofnum[body])
        position[body] = len(limbs)
        name = _name(model, _BODY, body, "body")
        limbs.append(Limb(name, body, parent, _joints(model, body), dofs, welded=dofs == 0 and parent is not None))
    return tuple(limbs)


def _joints(model: mujoco.MjModel, body: int) -> tuple[int, ...]:
    start, count = int(model.body_jntadr[body]), int(model.body_jntnum[body])
    return tuple(range(start, start + count)) if count else ()


def _refuse_loops(model: mujoco.MjModel, mount: int) -> None:
    """A connect or weld between two limbs closes a loop; joint and tendon couplings do not."""
    closing = (mujoco.mjtEq.mjEQ_CONNECT, mujoco.mjtEq.mjEQ_WELD)
    for constraint in range(model.neq):
        if mujoco.mjtEq(model.eq_type[constraint]) not in closing or not model.eq_active0[constraint]:
            continue
        first, second = (
            _eq_body(model, constraint, int(i)) for i in (model.eq_obj1id[constraint], model.eq_obj2id[constraint])
        )
        ends = [b for b in (first, second) if b != 0]
        if any(_top(model, b) == mount for b in ends):
            label = _name(model, mujoco.mjtObj.mjOBJ_EQUALITY, constraint, "equality")
            names = " and ".join(repr(_name(model, _BODY, b, "world")) for b in (first, second))
            raise ModelError(
                f"equality constraint {label!r} closes a loop between {names}, so the limbs do not form a tree: each"
                " limb's features would still be read correctly, but they are redundant and the rank test does not"
                " apply; allow it with allow_loops (--allow-loops), or deactivate the constraint"
            )


def _eq_body(model: mujoco.MjModel, constraint: int, obj: int) -> int:
    if mujoco.mjtObj(model.eq_objtype[constraint]) == mujoco.mjtObj.mjOBJ_SITE:
        return int(model.site_bodyid[obj])
    return obj


def _name(model: mujoco.MjModel, kind: mujoco.mjtObj, index: int, fallback: str) -> str:
    return mujoco.mj_id2name(model, kind, index) or (f"{fallback}{index}" if index else fallback)


def hinge_axis_through_com(model: mujoco.MjModel, limb: Limb) -> bool:
    """Whether the limb spins about an axis through (or very near) its own centre of mass, as a wheel does.

    Such a spin moves no centre of mass, so positions and velocities cannot show it. Near means within 2 % of
    the limb's radius of gyration.
    """
    if not limb.joints or mujoco.mjtJoint(model.jnt_type[limb.joints[-1]]) != mujoco.mjtJoint.mjJNT_HINGE:
        return False
    joint = limb.joints[-1]
    lever = np.cross(model.jnt_axis[joint], model.body_ipos[limb.body] - model.jnt_pos[joint])
    gyration = np.sqrt(model.body_inertia[limb.body].max() / max(model.body_mass[limb.body], 1e-12))
    return bool(np.linalg.norm(lever) <= 0.02 * gyration)
