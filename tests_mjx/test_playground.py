"""Playground's environments with limb features: same dynamics and rewards, observations as in NumPy, certificates."""

import gymnasium
import jax
import jax.numpy as jnp
import mujoco
import numpy as np
import pytest
from mujoco_playground import registry
from quick import compiled

import euda
from euda import EudaError
from euda.body.features import observer
from euda.body.robot import describe
from euda.mjx.playground import LimbPlayground

JAX = {"impl": "jax"}
AIM = {"target": "target", "limb": "head"}
"""Of the swimmer."""


@pytest.fixture(scope="module")
def acrobot():
    return registry.load("AcrobotSwingup", config_overrides=JAX)


def in_numpy(model, data, **aim):
    """Limb features of a state of MJX, read by MuJoCo itself."""
    own = mujoco.MjData(model)
    own.qpos[:], own.qvel[:], own.mocap_pos[:] = data.qpos, data.qvel, data.mocap_pos
    mujoco.mj_forward(model, own)
    robot = describe(model, own, **aim)
    return observer(robot, "limb").observe()


def test_only_the_observation_is_another(acrobot):
    aim = {"target": "target", "limb": "tip"}
    env = LimbPlayground(acrobot, **aim)
    assert (env.observation_size, env.action_size) == (env.layout.dim, 1)

    def episode(which, key):
        return jax.lax.fori_loop(0, 2, lambda _, state: which.step(state, jnp.array([0.7])), which.reset(key))

    key = jax.random.key(0)
    ours, theirs = (compiled(lambda key, which=which: episode(which, key), key) for which in (env, acrobot))
    np.testing.assert_allclose(ours.data.qpos, theirs.data.qpos, atol=1e-6)
    assert ours.reward == theirs.reward
    np.testing.assert_allclose(ours.info["own_obs"], theirs.obs, atol=1e-6)
    np.testing.assert_allclose(ours.obs, in_numpy(env.mj_model, ours.data, **aim), atol=1e-5)
    assert np.abs(ours.obs[env.layout.slice("to_target")]).max() > 0.01


@pytest.mark.parametrize(
    ("name", "verdict", "cause"),
    [("HopperHop", "near", "pyramidal"), ("SwimmerSwimmer6", "exact", ""), ("CheetahRun", "near", "pyramidal")],
)
def test_certificates_say_what_their_settings_do_to_symmetry(name, verdict, cause):
    model = registry.load(name, config_overrides=JAX).mj_model
    aim = AIM if name == "SwimmerSwimmer6" else {"direction": (1, 0, 0)}
    certificate = euda.certify(lambda: euda.ModelEnv(model, **aim), states=20)
    assert (certificate.verdict, cause in str(certificate)) == (verdict, True), str(certificate)


def test_what_is_none_of_theirs_is_refused():
    with pytest.raises(EudaError, match="is no environment of MuJoCo Playground: it has no mj_model"):
        LimbPlayground(gymnasium.make("Ant-v5"))
