"""Brax's replay with turned and mirrored transitions, and its own SAC learning from them in Playground."""

import contextlib
import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from brax.training import replay_buffers, types
from documents import ROOT, python_blocks

import euda
from euda import EudaError
from euda.mjx import brax
from euda.replay.batches import spread
from euda.testing import random_observations

QUADRUPED = euda.make("quadruped_run")
LAYOUT = QUADRUPED.layout


def transitions(size=12, seed=0):
    draw = np.random.default_rng(seed)
    rows = (jnp.asarray(random_observations(LAYOUT, size, draw), jnp.float32) for _ in range(2))
    actions = jnp.asarray(draw.uniform(-1, 1, (size, 12)), jnp.float32)
    numbers = jnp.arange(size, dtype=jnp.float32)
    extras = {"state_extras": {"truncation": numbers}, "policy_extras": {}}
    return types.Transition(next(rows), actions, numbers, 0.9 * numbers, next(rows), extras)


@pytest.mark.parametrize("share", [0.0, 0.25, 0.5, 1.0])
def test_exactly_the_share_is_turned_and_evenly_spread(share):
    batch = transitions()
    turned = jax.jit(brax.transform(LAYOUT, share))(jax.random.key(1), batch)
    changed = np.abs(np.asarray(turned.observation - batch.observation)).max(axis=1) > 1e-3
    assert np.flatnonzero(changed).tolist() == spread(12, share).tolist()
    assert isinstance(turned, types.Transition)
    for name in ("action", "reward", "discount"):
        np.testing.assert_array_equal(getattr(turned, name), getattr(batch, name))
    np.testing.assert_array_equal(turned.extras["state_extras"]["truncation"], np.arange(12))
    heading = LAYOUT.slice("root_rotation").start
    for before, after in ((batch.observation, turned.observation), (batch.next_observation, turned.next_observation)):
        x, y = before[:, heading : heading + 2].T, after[:, heading : heading + 2].T
        yaws = np.arctan2(y[1], y[0]) - np.arctan2(x[1], x[0])
        np.testing.assert_allclose(after, LAYOUT.rotate(before, yaws), atol=1e-4)


def test_elements_of_the_group_act_on_actions_too():
    elements = [element for element in euda.symmetries(QUADRUPED.model) if not element.is_identity]
    batch = transitions(64)
    changed = brax.transform(LAYOUT, 1.0, "mirror", elements)(jax.random.key(0), batch)
    images = [np.asarray(QUADRUPED.actions.act(element, batch.action)) for element in elements]
    for row in range(64):
        options = [np.asarray(batch.action[row]), *(image[row] for image in images)]
        assert min(np.abs(option - changed.action[row]).max() for option in options) < 1e-5
    assert np.abs(changed.action - batch.action).max() > 0.1


def test_the_queue_gives_brax_s_samples_changed():
    turning = functools.partial(brax.RotatingQueue, change=brax.transform(LAYOUT, 1.0))
    filled = {}
    for name, made in (("plain", replay_buffers.UniformSamplingQueue), ("turned", turning)):
        queue = made(100, jax.tree.map(lambda x: x[0], transitions()), 8)
        state = queue.insert(queue.init(jax.random.key(0)), transitions())
        filled[name] = queue.sample(state)
    (state, plain), (other, turned) = filled["plain"], filled["turned"]
    np.testing.assert_array_equal(plain.action, turned.action)  # the same rows, by the same random numbers
    np.testing.assert_array_equal(jax.random.key_data(state.key), jax.random.key_data(other.key))
    height = LAYOUT.slice("height")
    np.testing.assert_allclose(plain.observation[:, height], turned.observation[:, height], atol=1e-6)
    assert np.abs(plain.observation - turned.observation).max() > 0.1


def test_without_a_layout_nothing_turns():
    with pytest.raises(EudaError, match="turning needs the layout of the observations, not None"):
        brax.transform(None)


def test_brax_is_put_back_even_after_an_error():
    before = replay_buffers.UniformSamplingQueue
    with contextlib.suppress(RuntimeError), brax.rotating(LAYOUT):
        assert replay_buffers.UniformSamplingQueue is not before
        raise RuntimeError
    assert replay_buffers.UniformSamplingQueue is before


@pytest.mark.filterwarnings("ignore")  # of Brax and Playground about JAX
def test_brax_sac_learns_from_turned_transitions_as_the_documents_show(monkeypatch):
    asked = []
    monkeypatch.setattr(brax.RotatingQueue, "sample_internal", _counting(brax.RotatingQueue.sample_internal, asked))
    ((code, _),) = python_blocks((ROOT / "docs" / "mjx.md").read_text("utf-8"), "python brax")
    done = {"__name__": "example"}
    exec(compile(code, "example", "exec"), done)  # our own documents
    assert asked == [64]  # traced once, two batches at a time
    assert all(jnp.isfinite(leaf).all() for leaf in jax.tree.leaves(done["params"]))


def _counting(sample, asked):
    def counted(self, state):
        state, batch = sample(self, state)
        asked.append(len(batch.reward))
        return state, batch

    return counted
