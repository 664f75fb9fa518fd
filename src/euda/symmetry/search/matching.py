"""(Pose, isometry of the robot) → which body and joint takes the place of which, and how well.

An isometry x → S x + d of a pose is tried on a tree of bodies: the root goes to itself, and the children of a body go
to those children of its image that lie where they would go (an optimal assignment over whole subtrees, so that
bodies without mass, or in one place, are told apart by what hangs on them). Joints of one body keep their order. The
sign of a joint follows from its axis: a hinge's is axial, S a · det S = ±a', a slide's is polar, S a = ±a'.
"""

from __future__ import annotations

import dataclasses

import mujoco
import numpy as np

from euda.symmetry.search.assignment import assign
from euda.symmetry.search.pose import BALL, FREE, HINGE, SLIDE, Pose

_IMPOSSIBLE = 1e6  # the cost of pairing bodies with different joints
_HEAVY = 0.01  # share of the mass below which a body may lie anywhere
_HINT = 1e-3  # weight of the place of a body without mass: it says little, but may be all there is


@dataclasses.dataclass(frozen=True)
class Isometry:
    """x → matrix @ x + shift."""

    matrix: np.ndarray
    shift: np.ndarray

    def __call__(self, points: np.ndarray) -> np.ndarray:
        return points @ self.matrix.T + self.shift

    def __matmul__(self, first: Isometry) -> Isometry:
        return Isometry(self.matrix @ first.matrix, self.matrix @ first.shift + self.shift)

    @property
    def det(self) -> float:
        """1, or -1 for a mirror."""
        return float(np.sign(np.linalg.det(self.matrix)))

    @staticmethod
    def about(matrix: np.ndarray, centre: np.ndarray) -> Isometry:
        """The isometry that keeps `centre`."""
        return Isometry(matrix, centre - matrix @ centre)


@dataclasses.dataclass(frozen=True)
class Match:
    """What an isometry does to a tree, and how far from exact."""

    isometry: Isometry
    bodies: dict[int, int]
    joints: dict[int, int]
    signs: dict[int, int]
    kinematics: float
    """Largest mismatch of joint axes, and of anchors relative to the size of the tree."""
    matter: float
    """Largest mismatch of centres of mass, masses and inertias, weighted by mass."""
    astray: float
    """Largest distance of a centre of mass from where it should be, in sizes, of bodies that weigh something."""
    worst_joint: str
    worst_body: str

    @property
    def score(self) -> float:
        """Smaller is better."""
        return self.kinematics + self.matter

    def is_same(self, other: Match) -> bool:
        """Whether both relabel alike and are nearly the same isometry."""
        same_labels = self.bodies == other.bodies and self.signs == other.signs
        return same_labels and bool(np.linalg.norm(self.isometry.matrix - other.isometry.matrix) < 0.2)


def part_name(model: mujoco.MjModel, kind: mujoco.mjtObj, index: int) -> str:
    """A part by its name, or by its number and its body's name where it has none: joint 'knee', geom 3 of 'trunk'."""
    what = kind.name.removeprefix("mjOBJ_").lower()
    name = mujoco.mj_id2name(model, kind, index)
    if name:
        return f"{what} {name!r}"
    owners = {"geom": model.geom_bodyid, "joint": model.jnt_bodyid, "site": model.site_bodyid}
    owner = f" of {model.body(int(owners[what][index])).name!r}" if what in owners and len(owners[what]) else ""
    return f"{what} {index}{owner}"


class Tree:
    """One tree of bodies under the world at a reference pose."""

    def __init__(self, model: mujoco.MjModel, pose: Pose, top: int) -> None:
        self.model, self.pose, self.top = model, pose, top
        self.bodies = np.flatnonzero(model.body_rootid == top)
        self.children: dict[int, list[int]] = {int(b): [] for b in self.bodies}
        for body in self.bodies.tolist():
            if body != top:
                self.children[int(model.body_parentid[body])].append(body)
        first, count = (
            int(model.body_jntadr[self.bodies[model.body_jntnum[self.bodies] > 0]].min(initial=model.njnt)),
            0,
        )
        count = int(model.body_jntnum[self.bodies].sum())
        self.joints = np.arange(first, first + count)
        self.mass = model.body_mass[self.bodies]
        self.total = float(self.mass.sum()) or 1.0
        self.centre = (
            self.mass @ pose.centre[self.bodies] / self.total
            if self.mass.any()
            else pose.centre[self.bodies].mean(axis=0)
        )
        self.size = self._size()
        self._place_of = {int(body): i for i, body in enumerate(self.bodies)}
        self._joint_rows()

    @property
    def is_free(self) -> bool:
        """Whether the tree hangs on the world by a free joint."""
        return bool(len(self.joints)) and int(self.model.jnt_type[self.joints[0]]) == FREE

    def _size(self) -> float:
        """The largest distance of a joint, centre of mass or colliding geom from the centre (m)."""
        geoms = np.isin(self.model.geom_bodyid, self.bodies) & (self.model.geom_rbound > 0)
        reach = [np.linalg.norm(self.pose.centre[self.bodies] - self.centre, axis=1)]
        if len(self.joints):
            reach.append(np.linalg.norm(self.pose.anchor[self.joints] - self.centre, axis=1))
        body = self.model.geom_bodyid[geoms]
        place = self.pose.place[body] + np.einsum("bij,bj->bi", self.pose.frame[body], self.model.geom_pos[geoms])
        reach.append(np.linalg.norm(place - self.centre, axis=1) + self.model.geom_rbound[geoms])
        return float(np.concatenate(reach).max()) or 1.0

    def _joint_rows(self) -> None:
        """Types, anchors and axes of the joints of each body, one row per body, filled up with -1 and zeros."""
        width = max(1, int(self.model.body_jntnum[self.bodies].max()))
        count = len(self.bodies)
        self.types = np.full((count, width), -1)
        self.anchors, self.axes = np.zeros((count, width, 3)), np.zeros((count, width, 3))
        for row, body in enumerate(self.bodies):
            for k in range(int(self.model.body_jntnum[body])):
                joint = int(self.model.body_jntadr[body]) + k
                self.types[row, k] = self.model.jnt_type[joint]
                self.anchors[row, k], self.axes[row, k] = self.pose.anchor[joint], self.pose.axis[joint]

    # -- matching --------------------------------------------------------------------------------------

    def match(self, isometry: Isometry) -> Match | None:
        """What the isometry does to the tree; None where the trees of bodies and joints differ."""
        costs = self._costs(isometry)
        memory: dict[tuple[int, int], tuple[float, tuple[tuple[int, int], ...]]] = {}
        cost, pairs = self._pair(self.top, self.top, costs, memory)
        if cost >= _IMPOSSIBLE:
            return None
        bodies = dict(pairs)
        return self.judge(isometry, bodies)

    def _costs(self, isometry: Isometry) -> np.ndarray:
        """[bodies, bodies] how badly each body would take the place of each, on its own."""
        pose, bodies = self.pose, self.bodies
        same_joints = (self.types[:, None] == self.types[None]).all(axis=-1)
        gap = np.linalg.norm(isometry(pose.centre[bodies])[:, None] - pose.centre[bodies][None], axis=-1) / self.size
        weight = np.where((self.mass[:, None] > 0) & (self.mass[None] > 0), 1.0, _HINT)
        mass = np.abs(self.mass[:, None] - self.mass[None]) / np.maximum(self.mass[:, None] + self.mass[None], 1e-12)
        axis, anchor = _joint_gaps(isometry, self.types, self.anchors, self.axes)
        total = weight * gap + mass + (axis + anchor / self.size).sum(axis=-1)
        return np.where(same_joints, total, _IMPOSSIBLE)

    def _pair(self, body: int, image: int, costs: np.ndarray, memory: dict) -> tuple[float, tuple]:
        """The cheapest way to put the subtree of `body` in the place of that of `image`."""
        if (body, image) in memory:
            return memory[body, image]
        own = float(costs[self._place_of[body], self._place_of[image]])
        children, places = self.children[body], self.children[image]
        if own >= _IMPOSSIBLE or len(children) != len(places):
            result = (_IMPOSSIBLE, ())
        else:
            below = [[self._pair(c, p, costs, memory) for p in places] for c in children]
            table = np.array([[cost for cost, _ in row] for row in below]).reshape(len(children), len(places))
            rows, columns = assign(table)
            pairs = [pair for r, c in zip(rows, columns, strict=True) for pair in below[r][c][1]]
            result = (own + float(table[rows, columns].sum()), ((body, image), *pairs))
        memory[body, image] = result
        return result

    # -- judging ---------------------------------------------------------------------------------------

    def judge(self, isometry: Isometry, bodies: dict[int, int]) -> Match:
        """The joints that go with a relabelling of bodies, and how well all of it fits."""
        model, pose, det = self.model, self.pose, isometry.det
        joints, signs = {}, {}
        for body, image in bodies.items():
            for k in range(int(model.body_jntnum[body])):
                joint, other = int(model.body_jntadr[body]) + k, int(model.body_jntadr[image]) + k
                axial = det if model.jnt_type[joint] == HINGE else 1.0
                along = axial * (isometry.matrix @ pose.axis[joint]) @ pose.axis[other]
                single = model.jnt_type[joint] in (HINGE, SLIDE)
                joints[joint], signs[joint] = other, (1 if along >= 0 or not single else -1)
        of_joints, of_bodies = self._joint_mismatch(isometry, joints), self._matter_mismatch(isometry, bodies)
        joint, body = (max(gaps, key=lambda part: gaps[part], default=0) for gaps in (of_joints, of_bodies))
        return Match(
            isometry, bodies, joints, signs, of_joints.get(joint, 0.0), of_bodies[body], self._astray(isometry, bodies),
            part_name(model, mujoco.mjtObj.mjOBJ_JOINT, joint), part_name(model, mujoco.mjtObj.mjOBJ_BODY, body),
        )  # fmt: skip

    def _joint_mismatch(self, isometry: Isometry, joints: dict[int, int]) -> dict[int, float]:
        if not joints:
            return {}
        ids, images = np.array(list(joints)), np.array(list(joints.values()))
        types = self.model.jnt_type[ids][:, None]
        axis, anchor = _paired_gaps(
            isometry,
            types,
            (self.pose.anchor[ids][:, None], self.pose.anchor[images][:, None]),
            (self.pose.axis[ids][:, None], self.pose.axis[images][:, None]),
        )
        return {int(j): float(g) for j, g in zip(ids, (axis + anchor / self.size)[:, 0], strict=True)}

    def _matter_mismatch(self, isometry: Isometry, bodies: dict[int, int]) -> dict[int, float]:
        """Of each body: misplaced mass over the tree's mass, times how far off, in units of the tree's size."""
        ids, images = np.array(list(bodies)), np.array(list(bodies.values()))
        model, pose, s = self.model, self.pose, isometry.matrix
        mass, other = model.body_mass[ids], model.body_mass[images]
        moved = isometry(pose.centre[ids]) - pose.centre[images]
        inertia = s @ pose.inertia[ids] @ s.T - pose.inertia[images]
        gap = (
            np.abs(mass - other)
            + np.minimum(mass, other) * np.linalg.norm(moved, axis=1) / self.size
            + np.linalg.norm(inertia, axis=(1, 2)) / self.size**2
        ) / self.total
        return {int(b): float(g) for b, g in zip(ids, gap, strict=True)}

    def _astray(self, isometry: Isometry, bodies: dict[int, int]) -> float:
        ids, images = np.array(list(bodies)), np.array(list(bodies.values()))
        gaps = np.linalg.norm(isometry(self.pose.centre[ids]) - self.pose.centre[images], axis=1) / self.size
        return float(gaps[self.model.body_mass[ids] > _HEAVY * self.total].max(initial=0.0))

    def refined(self, match: Match) -> Match:
        """The same relabelling by the isometry that suits the joint axes best, where they span space.

        An isometry read off landmarks is as rough as their digits; axes are usually typed cleanly. Signed permutations
        of the root's axes are as clean as can be.
        """
        s, det = match.isometry.matrix, match.isometry.det
        ids = np.array([j for j in match.joints if self.model.jnt_type[j] in (HINGE, SLIDE)], int)
        if np.array_equal(np.abs(s), np.abs(s).round()) or not len(ids):
            return match
        images = np.array([match.joints[j] for j in ids.tolist()])
        factor = np.where(self.model.jnt_type[ids] == HINGE, det, 1.0) * [match.signs[j] for j in ids.tolist()]
        left, spread, right = np.linalg.svd((factor[:, None] * self.pose.axis[images]).T @ self.pose.axis[ids])
        if spread[1] < 0.1:
            return match
        best = left @ np.diag([1.0, 1.0, det * np.sign(np.linalg.det(left @ right))]) @ right
        if not self.is_free and not np.allclose(best[:, 2], [0, 0, 1], atol=1e-9):
            return match
        return self.judge(Isometry.about(best, self.centre), match.bodies)

    def recentred(self, match: Match) -> Match:
        """The same relabelling about the centre that suits most joints.

        An exact symmetry keeps the centre of mass. Where masses come from CAD, or a limb is misplaced, that centre is
        off, while the other joints are typed with clean digits: tried are the centre of mass, the root's origin and the
        centres that suit single joints, and kept is the one with the smallest sum of distances of anchors, one of the
        first two unless another is much better.
        """
        ids = np.array([j for j in match.joints if self.model.jnt_type[j] in (HINGE, BALL)], int)
        if not len(ids):
            return match
        images = np.array([match.joints[j] for j in ids.tolist()])
        axes, hinge = self.pose.axis[images], self.model.jnt_type[ids] == HINGE
        across = np.eye(3) - hinge[:, None, None] * axes[:, :, None] * axes[:, None, :]
        gaps = np.einsum("jik,jk->ji", across, self.pose.anchor[images] - match.isometry(self.pose.anchor[ids]))
        shifts = np.concatenate([np.zeros((1, 3)), -match.isometry.shift[None], gaps])
        if not self.is_free:
            shifts[:, 2] = 0.0  # a mounted robot cannot move up or down
        left = gaps[None] - np.einsum("jik,sk->sji", across, shifts)
        cost = np.linalg.norm(left, axis=-1).sum(axis=1)
        clean = int(cost[1] < cost[0] - 1e-9 * self.size)
        best = int(np.argmin(cost)) if cost.min() < 0.5 * cost[clean] - 1e-9 * self.size else clean
        isometry = Isometry(match.isometry.matrix, match.isometry.shift + shifts[best])
        return match if best == 0 else self.judge(isometry, match.bodies)


def _joint_gaps(
    isometry: Isometry, types: np.ndarray, anchors: np.ndarray, axes: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """[bodies, bodies, joints] mismatch of axes, and of anchors (m), of every body against every body."""
    return _paired_gaps(isometry, types[:, None], (anchors[:, None], anchors[None]), (axes[:, None], axes[None]))


def _paired_gaps(
    isometry: Isometry,
    types: np.ndarray,
    anchors: tuple[np.ndarray, np.ndarray],
    axes: tuple[np.ndarray, np.ndarray],
) -> tuple[np.ndarray, np.ndarray]:
    """Mismatch of axes (0 to 1, the sine) and of anchors (m) of joints that take the place of others."""
    single = (types == HINGE) | (types == SLIDE)
    axis = np.where(single, np.linalg.norm(np.cross(axes[0] @ isometry.matrix.T, axes[1]), axis=-1), 0.0)
    gap = isometry(anchors[0]) - anchors[1]
    across = gap - (gap * axes[1]).sum(axis=-1, keepdims=True) * axes[1]
    anchor = np.where(types == HINGE, np.linalg.norm(across, axis=-1), 0.0)
    return axis, np.where(types == BALL, np.linalg.norm(gap, axis=-1), anchor)
