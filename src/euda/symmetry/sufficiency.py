"""Does an observation determine the state? The rank of its Jacobian says so.

Rows are observation entries, columns the state: a tangent of the configuration, the velocities, and the
activations of actuators. Directions in which the robot merely shifts over the floor are not observed on
purpose (egocentric features), so they are not expected.
"""

from __future__ import annotations

import dataclasses

import mujoco
import numpy as np

from euda.tasks.base_env import LimbEnv

_STEP = 1e-6  # of the central differences; with float64 readings their error is near 1e-9
_ZERO = 1e-6  # singular values below this are numerical zeros


@dataclasses.dataclass(frozen=True)
class Sufficiency:
    """How much of the state an observation shows, at the worst of the states tried."""

    rank: int
    expected: int
    smallest: float
    """The smallest singular value that counts: how well conditioned the least visible direction is."""

    @property
    def is_sufficient(self) -> bool:
        """Whether nothing of the state is invisible."""
        return self.rank >= self.expected


def sufficiency(env: LimbEnv, states: int = 5, seed: int = 0) -> Sufficiency:
    """The lowest rank of the observation's Jacobian over random states: whether the observation shows the state.

    >>> import euda
    >>> found = euda.sufficiency(euda.make("hopper_hop"))
    >>> found.rank, found.expected, found.is_sufficient
    (13, 13, True)
    >>> euda.sufficiency(euda.make("hopper_hop", features="limb-paper")).is_sufficient
    False
    """
    rng = np.random.default_rng(seed)
    results = [_at_random_state(env, rng) for _ in range(states)]
    env.reset(seed=seed)
    return min(results, key=lambda result: (result.rank, result.smallest))


def _at_random_state(env: LimbEnv, rng: np.random.Generator) -> Sufficiency:
    model, data = env.model, env.data
    env.reset(seed=int(rng.integers(2**31)))
    tangent = 0.3 * rng.standard_normal(model.nv)
    mujoco.mj_integratePos(model, data.qpos, tangent, 1.0)
    data.qvel[:] = rng.standard_normal(model.nv)
    data.act[:] = 0.1 * rng.standard_normal(model.na)
    singular = np.linalg.svd(jacobian(env), compute_uv=False)
    rank = int((singular > _ZERO).sum())
    expected = int(2 * model.nv + model.na - _shifts(env))
    return Sufficiency(rank, expected, float(singular[min(rank, expected) - 1]))


def jacobian(env: LimbEnv) -> np.ndarray:
    """D observation / d (configuration, velocity, activation) [dim, 2 nv + na] by central differences."""
    model, data = env.model, env.data
    qpos, qvel, act = data.qpos.copy(), data.qvel.copy(), data.act.copy()
    columns = []
    for column in range(2 * model.nv + model.na):
        ends = []
        for sign in (1.0, -1.0):
            move = np.zeros(2 * model.nv + model.na)
            move[column] = sign * _STEP
            data.qpos[:], data.qvel[:], data.act[:] = (
                qpos,
                qvel + move[model.nv : 2 * model.nv],
                act + move[2 * model.nv :],
            )
            mujoco.mj_integratePos(model, data.qpos, move[: model.nv], 1.0)
            # Readings of the acceleration stage (touch, forces) are left as they are: they are no part of the proof.
            mujoco.mj_fwdPosition(model, data)
            mujoco.mj_sensorPos(model, data)
            mujoco.mj_fwdVelocity(model, data)
            mujoco.mj_sensorVel(model, data)
            ends.append(env.observer.observe_exactly())
        columns.append((ends[0] - ends[1]) / (2 * _STEP))
    data.qpos[:], data.qvel[:], data.act[:] = qpos, qvel, act
    return np.stack(columns, axis=1)


def _shifts(env: LimbEnv) -> int:
    """Horizontal translations of a floating root: 2 for a free joint, one per horizontal slide otherwise."""
    model, morphology = env.model, env.morphology
    if morphology.base == "free":
        return 2
    if morphology.base == "fixed":
        return 0
    slides = [j for j in morphology.root.joints if model.jnt_type[j] == int(mujoco.mjtJoint.mjJNT_SLIDE)]
    return sum(bool(abs(env.data.xaxis[joint][2]) < 1e-9) for joint in slides)
