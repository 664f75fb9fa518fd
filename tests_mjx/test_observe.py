"""Observations of MJX's data: NumPy's, entry by entry, over whole episodes, under jit and vmap, and as they turn."""

import jax
import jax.numpy as jnp
import mujoco
import numpy as np
import pytest
from mujoco import mjx
from quick import compiled

import euda
import euda.mjx
from euda import EudaError

TASKS = ("cheetah3d_run", "hopper3d_hop", "walker3d_run", "quadruped_run", "reacher_hard")
WHOLE = "quadruped_run"
"""Where it is compiled that MJX computes positions and velocities of bodies itself; that takes long."""
TOLERANCE = 1e-5
ARM = """
<mujoco>
  <option timestep="0.005" gravity="0 0 -9.81"/>
  <worldbody>
    <body name="post" pos="0.1 0 0.5">
      <joint name="yaw" axis="0 0 1"/>
      <geom type="capsule" fromto="0 0 0 .3 0 0" size=".03" contype="0" conaffinity="0"/>
      <body name="tip" pos=".3 0 0">
        <joint name="pitch" axis="0 1 0"/>
        <geom type="capsule" fromto="0 0 0 .2 0 0" size=".02" contype="0" conaffinity="0"/>
        <site name="end" pos=".2 0 0"/>
      </body>
    </body>
  </worldbody>
  <actuator><motor joint="yaw"/><motor joint="pitch"/></actuator>
  <sensor><gyro name="gyro" site="end"/><accelerometer name="acceleration" site="end"/></sensor>
</mujoco>
"""


READ = ("qpos", "qvel", "act", "sensordata", "mocap_pos", "xpos", "xquat", "xmat", "xipos", "ximat", "xanchor", "xaxis",
        "geom_xpos", "geom_xmat", "site_xpos", "site_xmat", "subtree_com", "cvel")  # fmt: skip
"""What MuJoCo and MJX both know of a state."""
STATE = ("qpos", "qvel", "act", "sensordata", "mocap_pos")
"""What the rest of it follows from."""


def episode(env):
    """Observations of an episode of random actions in NumPy [steps, dim], and each entry of its data [steps, …]."""
    draw = np.random.default_rng(0)
    env.reset(seed=0)
    seen, states = [], []
    for _ in range(env.episode_steps):
        env.step(draw.uniform(-1, 1, env.action_space.shape))
        seen.append(env.observer.observe_exactly())
        states.append([np.array(getattr(env.data, name)) for name in READ])
    return np.array(seen), dict(zip(READ, map(np.array, zip(*states, strict=True)), strict=True))


def in_mjx(env, states, names, is_fresh, run=compiled):
    """Observations of a batch of states of which MJX is told so much."""
    model, empty = mjx.put_model(env.model, impl="jax"), mjx.make_data(env.model, impl="jax")
    observe = euda.mjx.observe(env, is_fresh)

    def of_state(given):
        return observe(model, empty.replace(**given))

    given = {name: jnp.asarray(states[name], jnp.float32) for name in names}
    given = {name: array.reshape(len(array), *getattr(empty, name).shape) for name, array in given.items()}
    return run(jax.vmap(of_state), given)


def at_once(function, *arguments):
    """What the function gives, operation by operation: much sooner than compiling it."""
    return function(*arguments)


def assert_same(layout, found, seen):
    """Entry by entry; relative where an entry is above 1."""
    assert (found.shape, found.dtype) == (seen.shape, jnp.float32)
    error = np.abs(np.asarray(found) - seen) / np.maximum(1.0, np.abs(seen))
    assert error.max() < TOLERANCE, layout.entry_names()[int(error.max(axis=0).argmax())]


@pytest.mark.parametrize("task", TASKS)
def test_whole_episodes_are_observed_as_in_numpy(task):
    env = euda.make(task, seed=0)
    seen, states = episode(env)
    found = in_mjx(env, states, READ, is_fresh=True)
    assert_same(env.layout, found, seen)
    assert_same(env.layout, in_mjx(env, states, STATE, is_fresh=False, run=at_once), seen)
    yaws = np.linspace(-3, 3, len(seen))
    np.testing.assert_allclose(env.layout.rotate(found, yaws), env.layout.rotate(seen, yaws), atol=1e-4, rtol=1e-5)
    for element in euda.symmetries(env.model).elements[:3]:
        images = env.layout.act(element, jnp.asarray(found)), env.layout.act(element, seen)
        assert isinstance(images[0], jax.Array)
        np.testing.assert_allclose(*images, atol=1e-4, rtol=1e-5)
    if task == WHOLE:
        some = {name: array[::100] for name, array in states.items()}
        assert_same(env.layout, in_mjx(env, some, STATE, is_fresh=False), seen[::100])


def test_after_a_step_of_mjx_bodies_and_sensors_are_where_the_state_says(tmp_path):
    """`mjx.step` leaves positions and velocities of bodies, and sensors of them, as they were before the step."""
    (tmp_path / "arm.xml").write_text(ARM)
    env = euda.ModelEnv(tmp_path / "arm.xml", target=(0.2, 0.3, 0.5), limb="end", sensors=("gyro",))
    model, data = mjx.put_model(env.model, impl="jax"), mjx.put_data(env.model, env.data, impl="jax")
    observe, stale = euda.mjx.observe(env), euda.mjx.observe(env, is_fresh=True)
    data = data.replace(ctrl=jnp.array([0.5, -0.3]), qpos=jnp.array([0.3, -0.4]), qvel=jnp.array([1.0, 2.0]))

    def after_three_steps(model, data):
        data = jax.lax.fori_loop(0, 3, lambda _, data: mjx.step(model, data), data)
        return data, mjx.forward(model, data), observe(model, data)

    data, fresh, seen = compiled(after_three_steps, model, data)
    env.data.qpos[:], env.data.qvel[:] = data.qpos, data.qvel
    mujoco.mj_forward(env.model, env.data)
    np.testing.assert_allclose(seen, env.observe(), atol=TOLERANCE)
    assert np.abs(np.asarray(stale(model, data)) - env.observe()).max() > 1e-3
    np.testing.assert_allclose(stale(model, fresh), env.observe(), atol=TOLERANCE)


def test_directions_and_targets_may_differ_in_a_batch():
    env = euda.make("cheetah3d_run")
    env.reset(seed=0)
    model, data = mjx.put_model(env.model, impl="jax"), mjx.put_data(env.model, env.data, impl="jax")
    directions = jnp.array([[1.0, 0, 0], [0, 1.0, 0]])
    observe = euda.mjx.observe(env, is_fresh=True)
    found = jax.vmap(lambda direction: observe(model, data, direction))(directions)
    np.testing.assert_allclose(found[:, env.layout.slice("direction")], directions)
    np.testing.assert_allclose(found[0], env.observe(), atol=TOLERANCE)


def test_what_is_no_environment_is_refused():
    with pytest.raises(EudaError, match="observe takes an environment of euda's or a LimbObservation, not Layout"):
        euda.mjx.observe(euda.make("reacher_hard").layout)
