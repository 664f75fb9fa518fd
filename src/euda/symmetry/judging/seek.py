"""States made on purpose: for every contact and limit that no rollout met, a state in which it acts."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence

import mujoco
import numpy as np

from euda.symmetry.judging.coverage import GeomPair, Limit, Touched, all_limits, collidable_pairs, touched_now
from euda.tasks.base_env import LimbEnv, State

_JOINT = mujoco.mjtJoint
_FREE, _BALL, _SLIDE = int(_JOINT.mjJNT_FREE), int(_JOINT.mjJNT_BALL), int(_JOINT.mjJNT_SLIDE)
_PLANE = int(mujoco.mjtGeom.mjGEOM_PLANE)
_ATTEMPTS = 8
_FLOOR_ATTEMPTS = 30  # of contacts with a plane, for which the robot has to lie in the one right way
_PRESSING_ATTEMPTS = 600  # of all contacts together that must pass a force on
_ITERATIONS = 20
_STRIDE = 0.5  # largest change of a joint in one iteration (m, rad)
_DEPTH = 0.01  # of a contact that is sought, in mean sizes of the model's bodies
_DEEPEST = 1.0  # of any contact of a state that is kept, likewise: deeper ones blow up
_BEYOND = 0.01  # by which a limit that is sought is exceeded (m, rad)
_SLACK = 0.1  # by which joints may leave their ranges while a contact is sought: limits are soft (m, rad)
_LIFT = 10.0  # how far what is free is lifted before a contact is sought, in mean sizes
_TOGETHER = 3  # limits sought in one state
_VELOCITIES = 2  # states made of one posture in which things touch: friction depends on how they slide
_MOST = 240  # contacts that are sought at most; with more, a random choice

Measure = Callable[[], tuple[float, np.ndarray]]
"""How far something is from acting, and how that changes with the joints [nv]."""


class Seeker:
    """Makes states of one simulation; `samples` are states that it came to by itself, to begin from."""

    def __init__(self, env: LimbEnv, samples: Sequence[State], rng: np.random.Generator) -> None:
        self._env, self._samples, self._rng = env, samples, rng
        self._model, self._data = env.model, env.data
        self._size = float(env.model.stat.meansize)
        self._reach = 2.0 * float(env.model.stat.extent)
        self._segment, self._jacobians = np.zeros(6), np.empty((2, 3, env.model.nv))
        # Thousands of small steps are made, so what stays the same is looked up once.
        is_simple = (env.model.jnt_type >= _SLIDE) & env.model.jnt_limited.astype(bool)
        self._ranged = env.model.jnt_qposadr[is_simple]
        low, high = env.model.jnt_range[is_simple].T
        self._lowest, self._highest = low - _SLACK, high + _SLACK

    def seek(self, touched: Iterable[Touched], pressing: Collection[int] = ()) -> list[State]:
        """States for the contacts and limits that are in none of `touched`; some may be impossible to find.

        Contacts of the geoms in `pressing` with a floor are sought one by one, so that they pass a force on.
        """
        seen = Touched()
        for one in touched:
            seen |= one
        states: list[State] = []
        pairs = [pair for pair in collidable_pairs(self._model) if pair not in seen.pairs]
        order = self._rng.permutation(len(pairs))[:_MOST]
        met: set[GeomPair] = set()
        single = [pair for pair in pairs if self._is_floor(pair) and not set(pair).isdisjoint(pressing)]
        for pair in (pairs[int(index)] for index in order):
            if pair in single and (found := self._pressing(pair, _PRESSING_ATTEMPTS // len(single))):
                states += found
            elif pair not in met and self._bring_together(pair, self._attempts(pair)):
                met |= touched_now(self._env).pairs
                states += [self._moving(self._apart(pair)) for _ in range(_VELOCITIES)]
        return states + self._at_limits([limit for limit in all_limits(self._model) if limit not in seen.limits])

    # -- contacts --------------------------------------------------------------------------------------

    def _is_floor(self, pair: GeomPair) -> bool:
        return any(self._model.geom_type[geom] == _PLANE for geom in pair)

    def _attempts(self, pair: GeomPair) -> int:
        return _FLOOR_ATTEMPTS if self._is_floor(pair) else _ATTEMPTS

    def _bring_together(self, pair: GeomPair, attempts: int) -> bool:
        """Leave the simulation in a state in which the two geoms just touch and nothing else overlaps deeply."""
        for _ in range(attempts):
            self._scatter()
            if self._approach(lambda: self._gap(pair), -_DEPTH * self._size, 0.9 * _DEPTH * self._size):
                mujoco.mj_fwdPosition(self._model, self._data)
                deepest = self._data.contact.dist.min(initial=0.0)
                if deepest > -_DEEPEST * self._size and pair in touched_now(self._env).pairs:
                    return True
        return False

    def _pressing(self, pair: GeomPair, attempts: int) -> list[State]:
        """A few states in which two geoms press on each other."""
        states: list[State] = []
        for _ in range(max(_FLOOR_ATTEMPTS, attempts)):
            if len(states) < _VELOCITIES and self._bring_together(pair, 1):
                state = self._moving(self._apart(pair))
                states += [state] if self._presses(pair) else []
        return states

    def _presses(self, pair: GeomPair) -> bool:
        """Whether two geoms that touch pass a force on; beside a trunk that lies deeper in the floor they may not."""
        model, data, force = self._model, self._data, np.zeros(6)
        mujoco.mj_forward(model, data)
        for number in np.flatnonzero(np.isin(data.contact.geom, pair).all(axis=1)).tolist():
            mujoco.mj_contactForce(model, data, number, force)
            if force[0] > 0:
                return True
        return False

    def _apart(self, pair: GeomPair) -> np.ndarray:
        """How joints move [nv] when two geoms part."""
        return self._gap(pair)[1]

    def _gap(self, pair: GeomPair) -> tuple[float, np.ndarray]:
        """Signed distance of two geoms and its gradient."""
        model, data, segment = self._model, self._data, self._segment
        distance = mujoco.mj_geomDistance(model, data, *pair, self._reach, segment)
        between = segment[3:] - segment[:3]
        if distance == 0 or not between.any():
            return distance, np.zeros(model.nv)
        first, second = self._jacobians
        mujoco.mj_jac(model, data, first, None, segment[:3], int(model.geom_bodyid[pair[0]]))
        mujoco.mj_jac(model, data, second, None, segment[3:], int(model.geom_bodyid[pair[1]]))
        return distance, (between / distance) @ (second - first)

    def _approach(self, measure: Measure, goal: float, tolerance: float) -> bool:
        """Bring a measure to its goal within the joints' ranges, by Gauss-Newton steps; whether it got there."""
        for _ in range(_ITERATIONS):
            mujoco.mj_kinematics(self._model, self._data)
            mujoco.mj_comPos(self._model, self._data)
            value, gradient = measure()
            if abs(value - goal) <= tolerance:
                return True
            square = float(gradient @ gradient)
            if square == 0.0:
                return False
            step = np.minimum(np.maximum((goal - value) / square * gradient, -_STRIDE), _STRIDE)
            mujoco.mj_integratePos(self._model, self._data.qpos, step, 1.0)
            self._clip()
        return False

    # -- limits ----------------------------------------------------------------------------------------

    def _at_limits(self, limits: Sequence[Limit]) -> list[State]:
        """A few limits in each state, a little exceeded."""
        states = [state for limit in limits if limit.kind == "tendon" for state in self._at_tendon(limit)]
        for is_upper in (False, True):
            ends = [limit.index for limit in limits if limit.kind == "joint" and limit.is_upper is is_upper]
            ends = self._rng.permutation(ends).astype(int)
            for start in range(0, len(ends), _TOGETHER):
                self._begin()
                for joint in ends[start : start + _TOGETHER].tolist():
                    self._exceed(joint, is_upper)
                states.append(self._moving())
        return states

    def _exceed(self, joint: int, is_upper: bool) -> None:
        model, address = self._model, int(self._model.jnt_qposadr[joint])
        low, high = model.jnt_range[joint]
        if model.jnt_type[joint] == _BALL:
            axis = self._rng.standard_normal(3)
            mujoco.mju_axisAngle2Quat(
                self._data.qpos[address : address + 4], axis / np.linalg.norm(axis), high + _BEYOND
            )
        else:
            self._data.qpos[address] = high + _BEYOND if is_upper else low - _BEYOND

    def _at_tendon(self, limit: Limit) -> list[State]:
        low, high = self._model.tendon_range[limit.index]
        goal = high + _BEYOND * (high - low) if limit.is_upper else low - _BEYOND * (high - low)
        self._scatter()
        is_there = self._approach(lambda: self._length(limit.index), goal, 0.5 * _BEYOND * (high - low))
        return [self._moving()] if is_there else []

    def _length(self, tendon: int) -> tuple[float, np.ndarray]:
        """Length of a tendon and its gradient, by finite differences: its Jacobian may be stored sparse."""
        model, data = self._model, self._data
        place, gradient, step = data.qpos.copy(), np.zeros(model.nv), 1e-6
        mujoco.mj_tendon(model, data)
        length = float(data.ten_length[tendon])
        for dof in range(model.nv):
            data.qpos[:] = place
            mujoco.mj_integratePos(model, data.qpos, np.eye(1, model.nv, dof)[0], step)
            mujoco.mj_kinematics(model, data)
            mujoco.mj_tendon(model, data)
            gradient[dof] = (float(data.ten_length[tendon]) - length) / step
        data.qpos[:] = place
        return length, gradient

    # -- states ----------------------------------------------------------------------------------------

    def _begin(self) -> None:
        """A state that the simulation came to by itself."""
        self._env.set_state(self._samples[int(self._rng.integers(len(self._samples)))])

    def _scatter(self) -> None:
        """Joints anywhere in their ranges, what is free in any orientation and off the floor."""
        self._begin()
        model, data, rng = self._model, self._data, self._rng
        for joint in range(model.njnt):
            address, kind = int(model.jnt_qposadr[joint]), int(model.jnt_type[joint])
            low, high = model.jnt_range[joint] if model.jnt_limited[joint] else (-np.pi, np.pi)
            if kind in (_FREE, _BALL):
                start = address + (3 if kind == _FREE else 0)
                quaternion = rng.standard_normal(4)
                data.qpos[start : start + 4] = quaternion / np.linalg.norm(quaternion)
                if kind == _FREE:
                    data.qpos[address + 2] += _LIFT * self._size
            elif kind != _SLIDE or model.jnt_limited[joint]:
                data.qpos[address] = rng.uniform(low, high)

    def _clip(self) -> None:
        """Keep hinges and slides in their ranges."""
        place = self._data.qpos
        place[self._ranged] = np.minimum(np.maximum(place[self._ranged], self._lowest), self._highest)

    def _moving(self, apart: np.ndarray | None = None) -> State:
        """The present posture with random velocities, so that what touches slides; as a state to begin from.

        Velocities along `apart` [nv] are turned round: of two things that move apart, contact passes no force on.
        """
        model, data = self._model, self._data
        data.qvel[:] = self._rng.standard_normal(model.nv)
        if apart is not None and data.qvel @ apart > 0:
            data.qvel *= -1.0
        data.qacc_warmstart[:] = 0.0
        mujoco.mj_step1(model, data)
        return self._env.get_state()
