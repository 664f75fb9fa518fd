"""Transitions against the simulator: what became of a stored one must be what happens from the image of its state."""

import mujoco
import numpy as np

from euda.body.field import Kind


def rollout(env, count, seed=3):
    """States, and what happened in one step from each: observations, actions, rewards, next observations."""
    rng, states, rows = np.random.default_rng(seed), [], []
    observation, _ = env.reset(seed=seed)
    for _ in range(count):
        for _ in range(4):
            observation, *_ = env.step(rng.uniform(-1, 1, env.model.nu))
        states.append(env.get_state())
        action = rng.uniform(-1, 1, env.model.nu).astype(np.float32)
        following, reward, *_ = env.step(action)
        rows.append((observation, action, np.float32(reward), following))
        observation = following
    return states, tuple(np.array(column, np.float32) for column in zip(*rows, strict=True))


def yaw_between(layout, before, after):
    """The yaw that turns the world vectors of one observation into those of another, as well as any does."""
    slices = [layout.slice(field.name) for field in layout if field.kind is Kind.VECTOR]
    along = np.concatenate([np.arange(one.start, one.stop, 3) for one in slices])
    x, y = (seen[along] + 1j * seen[along + 1] for seen in (before, after))
    return float(np.angle(np.vdot(x, y)))


def drawn(env, elements, yaws, before, after):
    """The element and yaw that made an observation of another one, and how well they do."""
    found = []
    for element in elements:
        image = env.layout.act(element, before)
        yaw = yaw_between(env.layout, image, after) if yaws else 0.0
        found.append((np.abs(env.layout.rotate(image, yaw) - after).max(), element.turned(yaw)))
    return min(found, key=lambda one: one[0])


def assert_simulated(env, elements, states, stored, changed, *, yaws):
    """Each row of `changed` is what the simulator does from the image of the state of that row of `stored`.

    Both are (observations, actions, rewards, next observations). Returns which elements were drawn.
    """
    kinds, places = [], (env.model.body_pos.copy(), env.model.body_quat.copy())
    scale = np.abs(stored[3]).max(axis=0).clip(1e-3)
    for row, state in enumerate(states):
        s, a, r, following = (array[row] for array in changed)
        gap, element = drawn(env, elements, yaws, stored[0][row], s)
        assert gap < 1e-4 * max(1.0, np.abs(s).max())
        kinds.append(element.is_mirror)
        env.set_state(state)
        element.apply(env.robot)
        mujoco.mj_step1(env.model, env.data)
        env.set_control(a)
        env.advance()
        np.testing.assert_allclose(env.observe() / scale, following / scale, atol=2e-3)
        np.testing.assert_allclose(env.reward(), r, atol=1e-4)
        env.model.body_pos[:], env.model.body_quat[:] = places
    env.set_state(states[0])
    return kinds
