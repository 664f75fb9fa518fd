"""States in which a symmetry is tried: those that a robot comes to by itself."""

from __future__ import annotations

import mujoco
import numpy as np

from euda.body.robot import point
from euda.body.turn import world_target
from euda.tasks.base_env import LimbEnv, State

_FREE, _SLIDE = int(mujoco.mjtJoint.mjJNT_FREE), int(mujoco.mjtJoint.mjJNT_SLIDE)


def visited_states(env: LimbEnv, count: int, rng: np.random.Generator) -> list[State]:
    """Two thirds from rollouts with held random actions, where contacts happen; one third upright and moving."""
    posed = count // 3
    return _rollout_states(env, count - posed, rng) + [_posed_state(env, rng) for _ in range(posed)]


def _rollout_states(env: LimbEnv, count: int, rng: np.random.Generator) -> list[State]:
    states: list[State] = []
    while len(states) < count:
        if len(states) % 5 == 0:
            env.reset(seed=int(rng.integers(2**31)))
        for _ in range(int(rng.integers(4, 13))):
            action = rng.uniform(-1, 1, env.model.nu)
            for _ in range(4):
                env.step(action)
        states.append(env.get_state())
    return states


def _posed_state(env: LimbEnv, rng: np.random.Generator) -> State:
    """The model's own pose, bent a little and moving: where a standing or running reward is not zero."""
    model, data = env.model, env.data
    env.reset(seed=int(rng.integers(2**31)))
    data.qpos[:] = model.qpos0
    spread = np.full(model.nv, 0.05)
    # The root turns a little, so that nothing stands exactly level, where collision points jump; it does not shift.
    for joint in env.morphology.root.joints:
        dof, kind = int(model.jnt_dofadr[joint]), int(model.jnt_type[joint])
        spread[dof : dof + {_FREE: 3, _SLIDE: 1}.get(kind, 0)] = 0.0
    mujoco.mj_integratePos(model, data.qpos, spread * rng.standard_normal(model.nv), 1.0)
    data.qvel[:] = rng.standard_normal(model.nv)
    mujoco.mj_forward(model, data)
    _bring_target(env, rng)
    return env.get_state()


def _bring_target(env: LimbEnv, rng: np.random.Generator) -> None:
    """Put a target that is part of the world where the limb is, or close by: elsewhere its reward is often zero."""
    target = world_target(env.robot)
    if env.robot.target is None or target is None:
        return
    place, limb = target.position(), point(env.model, env.data, env.robot.target.limb)
    target.move_to(np.array([*(limb[:2] + rng.uniform(-0.01, 0.01, 2)), place[2]]))
    mujoco.mj_forward(env.model, env.data)
