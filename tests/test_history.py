"""Observations of several frames and of several parts: layouts for them, environments, and what is refused."""

import gymnasium
import jax.numpy as jnp
import numpy as np
import pytest

import euda
from euda import EudaError, Field, Kind, Layout
from euda.agents.frames import own_frame
from euda.agents.normaliser import symmetric
from euda.body.dict_layout import DictLayout
from euda.errors import LayoutError
from euda.replay.batches import Turner, check_fit, spread
from euda.tasks.wrappers import DictObservation, History
from euda.testing import random_observations

LAYOUT = Layout(tuple(Field(kind.value, kind, 2) for kind in Kind))
GOAL = Layout((Field("goal", Kind.VECTOR),))


@pytest.fixture(scope="module")
def quadruped():
    env = euda.make("quadruped_run", seed=0)
    return env, euda.symmetries(env.model).elements


def walk(env, steps, seed=0):
    draw = np.random.default_rng(seed)
    yield env.reset(seed=seed)[0]
    for _ in range(steps):
        yield env.step(draw.uniform(-1, 1, env.action_space.shape).astype(np.float32))[0]


@pytest.mark.parametrize("frames", [1, 2, 5])
def test_a_history_acts_frame_by_frame(frames, quadruped):
    env, elements = quadruped
    layout, stacked = env.layout, env.layout.stacked(frames)
    assert stacked.dim == frames * layout.dim
    rows = np.stack(list(walk(env, frames - 1 + 6)))
    windows = np.stack([rows[i : i + frames] for i in range(6)])  # [6, frames, dim]
    flat = windows.reshape(6, -1)
    yaws = np.linspace(-3, 3, 6)
    by_frame = np.stack([layout.rotate(windows[:, k], yaws) for k in range(frames)], 1).reshape(6, -1)
    np.testing.assert_allclose(stacked.rotate(flat, yaws), by_frame, atol=1e-6)
    np.testing.assert_allclose(stacked.rotate(jnp.asarray(flat), yaws), by_frame, atol=1e-5)
    for element in elements:
        by_frame = np.stack([layout.act(element, windows[:, k]) for k in range(frames)], 1).reshape(6, -1)
        np.testing.assert_allclose(stacked.act(element, flat), by_frame, atol=1e-6)
    assert any(np.abs(stacked.act(element, flat) - flat).max() > 0.1 for element in elements)


def test_names_say_how_long_ago_and_the_newest_keep_theirs():
    stacked = LAYOUT.stacked(3)
    assert [field.name for field in stacked][:: len(LAYOUT)] == ["vector@2", "vector@1", "vector"]
    assert stacked.slice("vector").start == 2 * LAYOUT.dim
    assert Layout.from_json(stacked.to_json()) == stacked
    with pytest.raises(LayoutError, match="a history is a whole number of frames of at least 1, not 0"):
        LAYOUT.stacked(0)


def test_frames_and_normalisers_see_the_whole_history(quadruped):
    env, _ = quadruped
    stacked = env.layout.stacked(2)
    rows = np.stack(list(walk(env, 7)))
    x = np.concatenate([rows[:-1], rows[1:]], axis=1)
    frame = own_frame(stacked)
    turned = frame(np, stacked.rotate(x, 1.1))
    np.testing.assert_allclose(turned, frame(np, x), atol=1e-5)
    np.testing.assert_allclose(turned[:, env.layout.dim :], own_frame(env.layout)(np, rows[1:]), atol=1e-5)
    normaliser = symmetric(stacked, 10.0)
    moments = normaliser.begin()
    for row in x:
        moments = normaliser.observe(moments, row)
    statistics = normaliser.statistics(moments)
    before = stacked.rotate(normaliser(np, statistics, x), 0.7)
    np.testing.assert_allclose(normaliser(np, statistics, stacked.rotate(x, 0.7)), before, atol=1e-4)


def test_a_history_environment_holds_the_last_observations():
    env, plain = History(euda.make("hopper3d_hop"), 3), euda.make("hopper3d_hop")
    seen = list(walk(plain, 5))
    seen = [seen[0], seen[0], *seen]
    for step, row in enumerate(walk(env, 5)):
        assert env.observation_space.contains(row)
        np.testing.assert_array_equal(row, np.concatenate(seen[step : step + 3]))
    assert env.unwrapped.model is env.env.model


def test_a_history_environment_goes_on_bit_by_bit():
    first, second = (History(euda.make("cheetah_run"), 2) for _ in range(2))
    assert len(list(walk(first, 3))) == 4
    second.reset(seed=9)
    second.set_state(first.get_state())
    action = np.full(first.action_space.shape, 0.3, np.float32)
    np.testing.assert_array_equal(first.step(action)[0], second.step(action)[0])
    with pytest.raises(EudaError, match="it has no history of"):
        second.set_state(first.env.get_state())


def test_limb_observations_have_histories_too():
    env = History(euda.LimbObservation(gymnasium.make("Ant-v5"), direction=(1, 0)), 2)
    assert env.reset(seed=0)[0].shape == (env.layout.dim,)
    with pytest.raises(EudaError, match="a history needs an environment with a layout"):
        History(gymnasium.make("Ant-v5"), 2)


# -- dicts ---------------------------------------------------------------------------------------------------


def test_entries_of_a_dict_turn_together(quadruped):
    env, elements = quadruped
    both = DictObservation(env, {"actor": "joint", "critic": "limb"})
    rows = list(walk(both, 4))
    assert both.observation_space.contains(rows[0])
    np.testing.assert_array_equal(rows[-1]["critic"], env.observe())
    x = {name: np.stack([row[name] for row in rows]) for name in rows[0]}
    yaws = np.linspace(-1, 1, 5)
    turned = both.layout.rotate(x, yaws)
    for name, layout in both.layout.items():
        np.testing.assert_array_equal(turned[name], layout.rotate(x[name], yaws))
        np.testing.assert_array_equal(both.layout.act(elements[1], x)[name], layout.act(elements[1], x[name]))
    assert both.layout.turns


def test_a_batch_of_dicts_turns_the_same_rows_by_the_same_yaws():
    layout = DictLayout({"limbs": LAYOUT, "goal": GOAL, "image": None})
    draw = np.random.default_rng(0)
    before, after = (
        {"limbs": random_observations(LAYOUT, 12, draw), "goal": draw.normal(size=(12, 3)), "image": np.ones((12, 4))}
        for _ in range(2)
    )
    turned = Turner(layout, 0.5, np.random.default_rng(7)).turn(before, after)
    rows, yaws = spread(12, 0.5), np.random.default_rng(7).uniform(-np.pi, np.pi, 6)
    for given, result in zip((before, after), turned, strict=True):
        for name, part in (("limbs", LAYOUT), ("goal", GOAL)):
            expected = given[name].copy()
            expected[rows] = part.rotate(given[name][rows], yaws)
            np.testing.assert_allclose(result[name], expected, atol=1e-12)
        assert result["image"] is given["image"]


def test_frames_beside_each_other_turn_by_one_yaw():
    x = random_observations(LAYOUT, 8, np.random.default_rng(0)).reshape(2, 4, LAYOUT.dim)
    layout = DictLayout({"frames": LAYOUT, "goal": GOAL})
    turned = layout.rotate({"frames": x, "goal": np.ones((2, 3))}, np.array([0.3, 2.0]))
    for k, yaw in enumerate((0.3, 2.0)):
        np.testing.assert_allclose(turned["frames"][k], LAYOUT.rotate(x[k], yaw), atol=1e-12)


def test_what_does_not_fit_is_refused():
    layout = DictLayout({"a": LAYOUT, "b": None})
    with pytest.raises(LayoutError, match="describes 'a', 'b', not 'a'"):
        layout.rotate({"a": np.zeros(LAYOUT.dim)}, 0.1)
    with pytest.raises(LayoutError, match="not ndarray"):
        layout.rotate(np.zeros(3), 0.1)
    with pytest.raises(LayoutError, match="entry 'a' of a dict of layouts is a Layout"):
        DictLayout({"a": "limb"})
    with pytest.raises(LayoutError, match="at least one entry"):
        DictLayout({})
    with pytest.raises(EudaError, match="unknown features 'limbs'"):
        DictObservation(euda.make("reacher_hard"), {"x": "limbs"})
    check_fit(LAYOUT, (4, LAYOUT.dim), np.dtype(np.float32))
    check_fit(LAYOUT.stacked(4), (4 * LAYOUT.dim,), np.dtype(np.float32))
