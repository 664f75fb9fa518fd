"""Offline data: the dataset, then turned copies with one yaw per episode."""

import types

import numpy as np
import pytest
from simulated import assert_simulated, rollout
from turned_by_hand import turned_by_hand, yaw_between

import euda
from euda.errors import EudaError, LayoutError

TASK = "reacher_hard"


@pytest.fixture(scope="module")
def episodes():
    """Three short episodes as Minari has them, the last one cut off without a mark."""
    env, rng, result = euda.make(TASK, seed=0), np.random.default_rng(0), []
    for number, length in enumerate([5, 3, 4]):
        observation, _ = env.reset()
        observations, actions, rewards = [observation], rng.uniform(-1, 1, (length, 2)).astype(np.float32), []
        for action in actions:
            observation, reward, *_ = env.step(action)
            observations.append(observation)
            rewards.append(reward)
        ends = np.arange(length) == length - 1
        result.append(
            types.SimpleNamespace(
                observations=np.stack(observations), actions=actions, rewards=np.array(rewards),
                terminations=ends & (number == 0), truncations=ends & (number == 1),
                infos={"qpos": np.zeros((length + 1, 2)), "energy": np.arange(length + 1.0)},
            )
        )  # fmt: skip
    return result


@pytest.fixture(scope="module")
def layout():
    return euda.make(TASK).layout


@pytest.fixture
def arrays(episodes):
    """The same as flat arrays, as D4RL has them."""
    return {
        "observations": np.concatenate([e.observations[:-1] for e in episodes]),
        "next_observations": np.concatenate([e.observations[1:] for e in episodes]),
        "actions": np.concatenate([e.actions for e in episodes]),
        "rewards": np.concatenate([e.rewards for e in episodes]),
        "terminals": np.concatenate([e.terminations for e in episodes]),
        "timeouts": np.concatenate([e.truncations for e in episodes]),
        "infos/qpos": np.zeros((12, 2)),
    }


def without(arrays, *names):
    return {name: array for name, array in arrays.items() if name not in names}


def yaws_of(result, arrays, layout, copy):
    """The yaw of each row of a copy, after checking that the row is the original turned by it."""
    size, yaws = len(arrays["observations"]), []
    for row in range(size):
        yaw = yaw_between(layout, arrays["observations"][row], result["observations"][copy * size + row])
        for name in ("observations", "next_observations"):
            if name in result:
                expected = turned_by_hand(layout, arrays[name][row], yaw)
                np.testing.assert_allclose(result[name][copy * size + row], expected, atol=2e-6)
        yaws.append(yaw)
    return np.array(yaws)


def groups(yaws):
    """Lengths of runs of equal yaws."""
    starts = [0, *(np.flatnonzero(np.abs(np.diff(np.exp(1j * yaws))) > 1e-4) + 1), len(yaws)]
    return np.diff(starts).tolist()


def test_flat_arrays_come_back_with_turned_copies(arrays, layout):
    result = euda.augment_dataset(arrays, layout, copies=2, seed=1)
    assert set(result) == set(arrays) - {"infos/qpos"}
    first, second = (yaws_of(result, arrays, layout, copy) for copy in (1, 2))
    assert groups(first) == groups(second) == [5, 3, 4]
    assert np.abs(first - second).min() > 1e-3
    for name in ("actions", "rewards", "terminals"):
        assert np.array_equal(result[name], np.concatenate([arrays[name]] * 3))
    for name in ("observations", "next_observations"):
        assert result[name].dtype == np.float32
        assert np.array_equal(result[name][:12], arrays[name])


def test_where_only_marks_tell_episodes_apart_the_last_row_is_marked_too(arrays, layout):
    given = without(arrays, "next_observations")
    result = euda.augment_dataset(given, layout, copies=1)
    assert groups(yaws_of(result, arrays, layout, 1)) == [5, 3, 4]
    assert np.flatnonzero(result["terminals"] | result["timeouts"]).tolist() == [4, 7, 11, 16, 19, 23]
    assert not arrays["timeouts"][-1], "what was given stays"
    result = euda.augment_dataset(without(given, "timeouts"), layout, copies=1)
    assert np.flatnonzero(result["timeouts"]).tolist() == [11, 23]
    assert groups(yaws_of(result, arrays, layout, 1)) == [5, 7]  # coarser, and as right


def test_unmarked_ends_are_found_by_the_next_observation(arrays, layout):
    result = euda.augment_dataset(without(arrays, "terminals", "timeouts"), layout, copies=1)
    assert groups(yaws_of(result, arrays, layout, 1)) == [5, 3, 4]
    assert "timeouts" not in result


def test_shuffled_transitions_have_a_yaw_each(arrays, layout):
    order = [10, 3, 7, 0, 5, 2, 9, 11, 1, 6, 8, 4]
    shuffled = {name: array[order] for name, array in without(arrays, "timeouts").items()}
    result = euda.augment_dataset(shuffled, layout, copies=1)
    assert groups(yaws_of(result, shuffled, layout, 1)) == [1] * 12


def test_named_arrays_are_kept(arrays, layout):
    result = euda.augment_dataset(arrays, layout, copies=1, unchanged=("infos/qpos",))
    assert result["infos/qpos"].shape == (24, 2)


def test_seeds_and_no_copies(arrays, layout):
    def observations(**options):
        return euda.augment_dataset(arrays, layout, **options)["observations"]

    assert np.array_equal(observations(copies=2, seed=3), observations(copies=2, seed=3))
    assert not np.array_equal(observations(copies=2, seed=3), observations(copies=2, seed=4))
    assert np.array_equal(observations(copies=0), arrays["observations"])
    empty = {name: array[:0] for name, array in arrays.items()}
    assert euda.augment_dataset(empty, layout, copies=2)["observations"].shape == (0, layout.dim)


@pytest.mark.parametrize("form", ["list", "dataset"])
def test_episodes_come_back_with_turned_copies(episodes, layout, form):
    dataset = types.SimpleNamespace(iterate_episodes=lambda: iter(episodes)) if form == "dataset" else episodes
    result = euda.augment_dataset(dataset, layout, copies=2)
    assert [len(episode) for episode in result] == [5, 3, 4] * 3
    for original, unturned in zip(episodes, result[:3], strict=True):
        assert np.array_equal(unturned.observations, original.observations)
    for original, copy in zip(episodes * 2, result[3:], strict=True):
        yaw = yaw_between(layout, original.observations[0], copy.observations[0])
        assert abs(yaw) > 1e-3
        expected = [turned_by_hand(layout, x, yaw) for x in original.observations]
        np.testing.assert_allclose(copy.observations, expected, atol=2e-6)
        for name in ("actions", "rewards", "terminations", "truncations"):
            assert np.array_equal(getattr(copy, name), getattr(original, name))
    assert {episode.infos for episode in result} == {None}
    kept = euda.augment_dataset(dataset, layout, copies=1, unchanged=("energy",))
    assert [list(episode.infos) for episode in kept] == [["energy"]] * 6


def test_only_originals_keep_the_seed_of_their_reset(episodes, layout):
    seeded = [types.SimpleNamespace(**vars(e), seed=5, options={"x": 1}) for e in episodes]
    result = euda.augment_dataset(seeded, layout, copies=1)
    assert [episode.seed for episode in result] == [5] * 3 + [None] * 3
    assert [episode.options for episode in result] == [{"x": 1}] * 3 + [None] * 3


def test_bad_flat_arrays_are_refused(arrays, layout):
    def refused(sentence, dataset, **options):
        with pytest.raises(EudaError, match=sentence):
            euda.augment_dataset(dataset, layout, **{"copies": 1} | options)

    broken = arrays["observations"].copy()
    broken[7, 3] = np.nan
    refused("row 7 .of 1 such rows. is not", arrays | {"observations": broken})
    refused("'next_observations', or the ends", without(arrays, "next_observations", "terminals", "timeouts"))
    refused("needs 'observations', and has 'actions'", {"actions": arrays["actions"]})
    refused("'rewards' has shape .11,.", arrays | {"rewards": arrays["rewards"][:11]})
    refused(f"{layout.dim} numbers, but", arrays | {"observations": arrays["observations"][:, :-1]})
    refused("stacked frames", arrays | {"observations": np.tile(arrays["observations"], 2)})
    refused("are a dict", arrays | {"observations": {"image": broken}})
    refused("floating point", arrays | {"observations": arrays["observations"].astype(np.int64)})
    refused("copies must be", arrays, copies=-1)
    refused("copies must be", arrays, copies=1.5)


def test_bad_episodes_are_refused(episodes, layout):
    def refused(sentence, dataset):
        with pytest.raises(EudaError, match=sentence):
            euda.augment_dataset(dataset, layout, copies=1)

    def changed(**changes):
        return [episodes[0], types.SimpleNamespace(**vars(episodes[1]) | changes)]

    refused("episode 1 are a dict", changed(observations={"observation": episodes[1].observations}))
    refused("3 observations for 3 rewards", changed(observations=episodes[1].observations[:-1]))
    refused("episode 0 has no observations", [types.SimpleNamespace(rewards=[])])
    refused("not int", 5)
    refused("not ndarray", episodes[0].observations)


@pytest.mark.parametrize("layout", [None, "limb"])
def test_data_without_a_layout_are_refused(arrays, layout):
    with pytest.raises(LayoutError, match="needs the layout of the observations"):
        euda.augment_dataset(arrays, layout, copies=1)


# -- elements of the finite group ------------------------------------------------------------------------


@pytest.mark.parametrize("yaws", [True, False])
def test_mirrored_copies_with_their_actions_are_what_the_simulator_does(yaws):
    env = euda.make("walker3d_run", seed=0)
    identity, mirror = euda.symmetries(env.model)
    states, (s, a, r, following) = rollout(env, 8)
    data = {"observations": s, "actions": a, "rewards": r, "next_observations": following, "next_actions": a}
    copies = 2 if yaws else 1
    more = euda.augment_dataset(data, env.layout, copies=copies, elements=[mirror], yaws=yaws)
    assert np.array_equal(more["next_actions"], more["actions"])
    names = ("observations", "actions", "rewards", "next_observations")
    stored, first, *others = ([more[name][8 * copy : 8 * copy + 8] for name in names] for copy in range(copies + 1))
    assert all(np.array_equal(x, data[name]) for x, name in zip(stored, names, strict=True))
    group = [identity, mirror]
    assert assert_simulated(env, group, states, stored, first, yaws=yaws) == [True] * 8
    for other in others:  # after the last element, the identity
        assert assert_simulated(env, group, states, stored, other, yaws=yaws) == [False] * 8
        assert np.array_equal(other[1], a)


def test_episodes_have_mirrored_actions_too(episodes, layout):
    (mirror,) = euda.symmetries(euda.make(TASK).model).elements[1:]
    more = euda.augment_dataset(episodes, layout, copies=1, elements=[mirror], yaws=False)
    for original, copy in zip(episodes, more[3:], strict=True):
        assert np.array_equal(copy.actions, -original.actions)
        np.testing.assert_allclose(copy.observations, layout.act(mirror, original.observations))
        assert np.array_equal(copy.rewards, original.rewards)


def test_copies_that_would_repeat_and_actions_that_do_not_fit_are_refused(arrays, layout):
    (mirror,) = euda.symmetries(euda.make(TASK).model).elements[1:]
    with pytest.raises(EudaError, match="2 copies would repeat each other: without yaws there are 1"):
        euda.augment_dataset(arrays, layout, copies=2, elements=[mirror], yaws=False)
    wrong = {**arrays, "actions": np.zeros((12, 3))}
    with pytest.raises(EudaError, match="actions have 3 numbers, but the elements act on 2 actuators"):
        euda.augment_dataset(wrong, layout, copies=1, elements=[mirror])
    with pytest.raises(EudaError, match="it needs actions of shape"):
        euda.augment_dataset({**arrays, "actions": np.zeros(12, int)}, layout, copies=1, elements=[mirror])
