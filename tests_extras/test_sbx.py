"""SBX (SB3 in JAX) learning from turned batches: it uses SB3's buffers, and cuts one sample into several batches."""

import warnings

import gymnasium
import jax
import numpy as np
import pytest
from recording import Recording
from turned_by_hand import assert_turned, assert_uniform

import euda
from euda.adapters.sb3 import RotatingReplayBuffer

with warnings.catch_warnings():  # of TensorFlow Probability, about JAX
    warnings.simplefilter("ignore")
    from sbx import DDPG, SAC, TD3

ENVIRONMENTS = {
    "hopper3d_hop": lambda: euda.make("hopper3d_hop", seed=0),
    "Ant-v5": lambda: euda.LimbObservation(gymnasium.make("Ant-v5"), direction=(1, 0, 0)),
}
BATCH, UPDATES = 32, 4


def small():
    """Options of a model that learns little and soon; made afresh, because SB3 writes into them."""
    return {
        "policy_kwargs": {"net_arch": [32, 32]}, "buffer_size": 5000, "batch_size": BATCH, "learning_starts": 200,
        "train_freq": 16, "gradient_steps": UPDATES, "seed": 3,
    }  # fmt: skip


def rotating(env, buffer=RotatingReplayBuffer, **kwargs):
    options = {"layout": env.get_wrapper_attr("layout"), "share": 0.5} | kwargs
    return {"replay_buffer_class": buffer, "replay_buffer_kwargs": options}


def weights(model):
    return jax.tree.leaves((model.policy.actor_state.params, model.policy.qf_state.params))


@pytest.mark.parametrize("name", ENVIRONMENTS)
def test_td3_learns_from_the_stored_batches_turned(name):
    env = ENVIRONMENTS[name]()
    model = TD3("MlpPolicy", env, **rotating(env, Recording, n_steps=3, gamma=0.99), **small()).learn(2000)
    seen, layout, yaws = model.replay_buffer.seen, model.replay_buffer.layout, []
    assert {len(batch.observations) for _, batch in seen} == {BATCH * UPDATES}
    for plain, batch in seen[::25]:
        for update in np.split(np.arange(BATCH * UPDATES), UPDATES):  # as SBX does
            stored = [getattr(plain, name).numpy()[update] for name in ("observations", "next_observations")]
            sampled = [getattr(batch, name).numpy()[update] for name in ("observations", "next_observations")]
            yaws.append(assert_turned(layout, stored, sampled, 0.5))
        for field in ("actions", "rewards", "dones", "discounts"):
            assert np.array_equal(getattr(batch, field), getattr(plain, field))
    assert_uniform(np.concatenate(yaws))
    assert all(np.isfinite(leaf).all() for leaf in weights(model))


def test_share_0_reproduces_sbx_to_the_last_weight():
    env, other = ENVIRONMENTS["hopper3d_hop"](), ENVIRONMENTS["hopper3d_hop"]()
    ours = DDPG("MlpPolicy", env, **rotating(env, share=0.0), **small()).learn(400)
    theirs = DDPG("MlpPolicy", other, **small()).learn(400)
    assert all(np.array_equal(a, b) for a, b in zip(weights(ours), weights(theirs), strict=True))


@pytest.mark.parametrize("algorithm", [DDPG, SAC])
def test_the_other_algorithms_learn(algorithm):
    env = ENVIRONMENTS["hopper3d_hop"]()
    model = algorithm("MlpPolicy", env, **rotating(env), **small()).learn(400)
    assert all(np.isfinite(leaf).all() for leaf in weights(model))


def test_sbx_learns_from_mirrored_batches():
    env = euda.make("walker_run", seed=0)
    elements = euda.symmetries(env.model).elements[1:]
    model = SAC("MlpPolicy", env, **rotating(env, Recording, elements=elements, yaws=False), **small()).learn(300)
    assert model.replay_buffer.seen
    for plain, batch in model.replay_buffer.seen:
        actions, images = (np.asarray(x.actions) for x in (plain, batch))
        changed = (actions != images).any(axis=1)
        assert 0 < changed.sum() <= len(changed) // 2
        assert np.array_equal(images[changed], env.actions.act(elements[0], actions[changed]))
    assert all(np.isfinite(leaf).all() for leaf in weights(model))
