"""The simulator as the judge of an element: step a world and its image, and compare."""

import copy
import types

import mujoco
import numpy as np

from euda.symmetry.element import Element


def error(model: mujoco.MjModel, element: Element, *, states: int = 6, settle: int = 150, seed: int = 0) -> float:
    """Largest relative difference of the next states of a world and its image, over a few states from rollouts."""
    rng = np.random.default_rng(seed)
    world, twin, moved = mujoco.MjData(model), mujoco.MjData(model), copy.copy(model)
    worst = 0.0
    for _ in range(states):
        _start(model, world, rng, settle)
        mujoco.mj_copyData(twin, model, world)
        moved.body_pos[:], moved.body_quat[:] = model.body_pos, model.body_quat
        element.apply(types.SimpleNamespace(model=moved, data=twin, target=None, direction=None))
        action = rng.uniform(-1, 1, model.nu)
        world.ctrl[:], twin.ctrl[:] = scaled(model, action), scaled(model, element.action(action))
        for _ in range(4):
            mujoco.mj_step(model, world)
            mujoco.mj_step(moved, twin)
        worst = max(worst, difference(model, element, world, twin))
    return worst


def difference(model: mujoco.MjModel, element: Element, world: mujoco.MjData, twin: mujoco.MjData) -> float:
    """How far a twin is from the image of a world: velocities over the fastest, positions (rad, m), activations."""
    velocity = element.velocities(world.qpos, world.qvel)
    apart = np.empty(model.nv)
    mujoco.mj_differentiatePos(model, apart, 1.0, element.positions(world.qpos), twin.qpos)
    gaps = [np.abs(twin.qvel - velocity).max() / np.abs(velocity).max(), np.abs(apart).max()]
    if model.na:
        gaps.append(np.abs(twin.act - element.activations.numbers(world.act)).max())
    return float(max(gaps))


def scaled(model: mujoco.MjModel, action: np.ndarray) -> np.ndarray:
    """An action in [-1, 1] in the model's own units."""
    low, high = model.actuator_ctrlrange.T
    return np.where(model.actuator_ctrllimited, (low + high) / 2 + (high - low) / 2 * action, action)


def _start(model: mujoco.MjModel, data: mujoco.MjData, rng: np.random.Generator, settle: int) -> None:
    """A state from a rollout, long enough for a robot to reach the floor."""
    mujoco.mj_resetData(model, data)
    mujoco.mj_integratePos(model, data.qpos, 0.2 * rng.standard_normal(model.nv), 1.0)
    data.qvel[:] = rng.standard_normal(model.nv)
    for step in range(settle + int(rng.integers(50))):
        if step % 8 == 0:
            data.ctrl[:] = scaled(model, rng.uniform(-1, 1, model.nu))
        mujoco.mj_step(model, data)
