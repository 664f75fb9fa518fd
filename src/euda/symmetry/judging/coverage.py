"""Which contacts and limits a model can have, and which of them acted in the states that were tried."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

import mujoco
import numpy as np

from euda.tasks.base_env import LimbEnv

_FLAG, _GEOM, _CONSTRAINT = mujoco.mjtDisableBit, mujoco.mjtGeom, mujoco.mjtConstraint
_ITERATIVE = {int(_GEOM.mjGEOM_ELLIPSOID), int(_GEOM.mjGEOM_CYLINDER), int(_GEOM.mjGEOM_MESH)}
_CLOSED = {(int(_GEOM.mjGEOM_SPHERE), int(_GEOM.mjGEOM_CYLINDER))}  # has a formula of its own
_PLANE = int(_GEOM.mjGEOM_PLANE)
_BALL = int(mujoco.mjtJoint.mjJNT_BALL)
_OF_JOINT, _OF_TENDON = int(_CONSTRAINT.mjCNSTR_LIMIT_JOINT), int(_CONSTRAINT.mjCNSTR_LIMIT_TENDON)
GeomPair = tuple[int, int]
"""Ids of two geoms, the smaller first."""


@dataclasses.dataclass(frozen=True, order=True)
class Limit:
    """One end of the range of a joint or a tendon."""

    kind: str
    """`joint` or `tendon`."""
    index: int
    is_upper: bool


@dataclasses.dataclass(frozen=True)
class Touched:
    """What acted at any substep of a step."""

    pairs: frozenset[GeomPair] = frozenset()
    frictional: frozenset[GeomPair] = frozenset()
    limits: frozenset[Limit] = frozenset()

    def __or__(self, other: Touched) -> Touched:
        return Touched(self.pairs | other.pairs, self.frictional | other.frictional, self.limits | other.limits)


@dataclasses.dataclass(frozen=True)
class Share:
    """How many of something acted in the states that were tried, and the names of the others."""

    touched: int
    total: int
    missed: tuple[str, ...]

    def __str__(self) -> str:
        return f"{self.touched} of {self.total}"


@dataclasses.dataclass(frozen=True)
class Coverage:
    """What was looked at."""

    contacts: Share
    limits: Share

    @staticmethod
    def of(model: mujoco.MjModel, touched: Iterable[Touched]) -> Coverage:
        """What acted in these steps, of what can act in this model."""
        everything = Touched()
        for one in touched:
            everything |= one
        pairs, limits = collidable_pairs(model), all_limits(model)
        missed = [pair_name(model, pair) for pair in pairs if pair not in everything.pairs]
        slack = [limit_name(model, limit) for limit in limits if limit not in everything.limits]
        return Coverage(
            Share(len(pairs) - len(missed), len(pairs), tuple(missed)),
            Share(len(limits) - len(slack), len(limits), tuple(slack)),
        )

    def to_json(self) -> dict[str, Any]:
        """Plain JSON values."""
        return {
            name: {"touched": share.touched, "total": share.total, "missed": list(share.missed)}
            for name, share in (("contacts", self.contacts), ("limits", self.limits))
        }


# -- what a model can have -------------------------------------------------------------------------------


def collidable_pairs(model: mujoco.MjModel) -> list[GeomPair]:
    """Pairs of geoms that MuJoCo would let collide, by its own rules (flexible bodies are not counted)."""
    disabled = int(model.opt.disableflags)
    if disabled & (int(_FLAG.mjDSBL_CONTACT) | int(_FLAG.mjDSBL_CONSTRAINT)):
        return []
    first, second = np.triu_indices(model.ngeom, 1)
    contype, conaffinity = model.geom_contype, model.geom_conaffinity
    fits = ((contype[first] & conaffinity[second]) | (contype[second] & conaffinity[first])) != 0
    body, weld = model.geom_bodyid, model.body_weldid
    left, right = weld[body[first]], weld[body[second]]
    fits &= left != right  # fixed to each other, or both to the world
    if not disabled & int(_FLAG.mjDSBL_FILTERPARENT):
        parent = weld[model.body_parentid]
        fits &= (left == 0) | (right == 0) | ((left != parent[right]) & (right != parent[left]))
    low, high = np.minimum(body[first], body[second]), np.maximum(body[first], body[second])
    fits &= ~np.isin((low.astype(np.int64) << 16) + high, model.exclude_signature)
    # Planes and height fields have no collision function with each other.
    fits &= (model.geom_type[first] > 1) | (model.geom_type[second] > 1)
    explicit = zip(model.pair_geom1.tolist(), model.pair_geom2.tolist(), strict=True)
    found = {*zip(first[fits].tolist(), second[fits].tolist(), strict=True), *(_ordered(*pair) for pair in explicit)}
    return sorted(found)


def all_limits(model: mujoco.MjModel) -> list[Limit]:
    """Both ends of every limited joint and tendon; a ball joint has one, how far it may turn."""
    if int(model.opt.disableflags) & (int(_FLAG.mjDSBL_LIMIT) | int(_FLAG.mjDSBL_CONSTRAINT)):
        return []
    joints = [j for j in range(model.njnt) if model.jnt_limited[j]]
    ends = [
        Limit("joint", j, end) for j in joints for end in ((True,) if model.jnt_type[j] == _BALL else (False, True))
    ]
    tendons = [t for t in range(model.ntendon) if model.tendon_limited[t]]
    return [*ends, *(Limit("tendon", t, end) for t in tendons for end in (False, True))]


def is_iterative(model: mujoco.MjModel, pair: GeomPair) -> bool:
    """Whether MuJoCo finds this contact by an iteration that stops at a tolerance, instead of by a formula."""
    kinds = tuple(sorted(int(model.geom_type[g]) for g in pair))
    return _PLANE not in kinds and kinds not in _CLOSED and bool(_ITERATIVE & set(kinds))


# -- what acts -------------------------------------------------------------------------------------------


def touched_now(env: LimbEnv) -> Touched:
    """Contacts and limits that act in the present state of a simulation."""
    model, data = env.model, env.data
    geoms, dims = data.contact.geom.tolist(), data.contact.dim.tolist()
    pairs = [(_ordered(a, b), dim) for (a, b), dim in zip(geoms, dims, strict=True) if a >= 0 and b >= 0]
    return Touched(
        frozenset(pair for pair, _ in pairs),
        frozenset(pair for pair, dim in pairs if dim > 1),
        frozenset(_limits_now(model, data)),
    )


def _limits_now(model: mujoco.MjModel, data: mujoco.MjData) -> Iterable[Limit]:
    kinds, which = data.efc_type, data.efc_id
    joints, tendons = which[kinds == _OF_JOINT], which[kinds == _OF_TENDON]
    if joints.size:
        upper = data.qpos[model.jnt_qposadr[joints]] > model.jnt_range[joints].mean(axis=1)
        upper |= model.jnt_type[joints] == _BALL
        yield from (Limit("joint", *end) for end in zip(joints.tolist(), upper.tolist(), strict=True))
    if tendons.size:
        upper = data.ten_length[tendons] > model.tendon_range[tendons].mean(axis=1)
        yield from (Limit("tendon", *end) for end in zip(tendons.tolist(), upper.tolist(), strict=True))


def touched_in_step(env: LimbEnv, action: np.ndarray) -> Touched:
    """Contacts and limits that act at any substep of one control step from here."""
    env.set_control(action)
    touched = touched_now(env)
    for _ in range(env.substeps):
        mujoco.mj_step(env.model, env.data)
        touched |= touched_now(env)
    return touched


# -- names -----------------------------------------------------------------------------------------------


def _ordered(a: int, b: int) -> GeomPair:
    return (a, b) if a < b else (b, a)


def pair_name(model: mujoco.MjModel, pair: GeomPair) -> str:
    """For example `toe-floor`."""
    return "-".join(_geom_name(model, geom) for geom in _outer_first(model, pair))


def pair_kind(model: mujoco.MjModel, pair: GeomPair) -> str:
    """For example `sphere-plane`."""
    return "-".join(_GEOM(model.geom_type[g]).name.removeprefix("mjGEOM_").lower() for g in _outer_first(model, pair))


def limit_name(model: mujoco.MjModel, limit: Limit) -> str:
    """For example `knee upper`."""
    owner = model.joint(limit.index) if limit.kind == "joint" else model.tendon(limit.index)
    return f"{owner.name or f'{limit.kind} {limit.index}'} {'upper' if limit.is_upper else 'lower'}"


def _outer_first(model: mujoco.MjModel, pair: GeomPair) -> list[int]:
    """The geom farther down the tree first, so that the world comes last."""
    return sorted(pair, key=lambda geom: int(model.geom_bodyid[geom]), reverse=True)


def _geom_name(model: mujoco.MjModel, geom: int) -> str:
    return model.geom(geom).name or f"{model.body(int(model.geom_bodyid[geom])).name or 'world'}[{geom}]"


def blamed_contacts(model: mujoco.MjModel, touched: Sequence[Touched], bad: np.ndarray) -> list[str]:
    """Kinds of frictional contact that best separate bad states from good ones, greedily, with an example each."""
    contacts = [{(pair_kind(model, pair), pair_name(model, pair)) for pair in one.frictional} for one in touched]
    left, blamed = {i for i in range(len(contacts)) if bad[i]}, []
    kinds = [{kind for kind, _ in pairs} for pairs in contacts]

    def guilt(kind: str) -> tuple[float, int, str]:
        having = [i for i in range(len(kinds)) if kind in kinds[i]]
        return sum(bool(bad[i]) for i in having) / len(having), sum(kind in kinds[i] for i in left), kind

    while candidates := {kind for i in left for kind in kinds[i]}:
        worst = max(candidates, key=guilt)
        explained = {i for i in left if worst in kinds[i]}
        names = Counter(name for i in explained for kind, name in contacts[i] if kind == worst)
        blamed.append(f"{worst} ({names.most_common(1)[0][0]})")
        left -= explained
    return blamed
