"""A real Minari dataset with turned copies, written and read by Minari itself."""

import minari
import mujoco
import numpy as np
import pytest
from turned_by_hand import turned_by_hand, yaw_between

import euda

pytestmark = pytest.mark.filterwarnings("ignore")  # Minari's, about metadata


def test_a_dataset_comes_back_with_turned_copies(tmp_path, monkeypatch):
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path))
    env = minari.DataCollector(euda.make("hopper3d_hop", seed=0))
    for length in (7, 5):
        env.reset()
        for _ in range(length):
            env.step(env.action_space.sample())
    dataset = env.create_dataset("hopper/random-v0")
    layout = env.get_wrapper_attr("layout")
    episodes = euda.augment_dataset(dataset, layout, copies=2)
    spaces = {"observation_space": env.observation_space, "action_space": env.action_space}
    more = minari.create_dataset_from_buffers("hopper/turned-v0", episodes, **spaces)
    originals, result = list(dataset.iterate_episodes()), list(minari.load_dataset("hopper/turned-v0"))
    assert [len(episode) for episode in result] == [7, 5] * 3
    assert more.total_steps == 36
    for position, episode in enumerate(result):
        original = originals[position % 2]
        yaw = yaw_between(layout, original.observations[0], episode.observations[0])
        assert (abs(yaw) > 1e-6) == (position >= 2)
        expected = [turned_by_hand(layout, x, yaw) for x in original.observations]
        np.testing.assert_allclose(episode.observations, expected, atol=1e-5)
        for name in ("actions", "rewards", "terminations", "truncations"):
            assert np.array_equal(getattr(episode, name), getattr(original, name))


def test_a_mirrored_episode_is_what_the_simulator_does_from_the_mirrored_start(tmp_path, monkeypatch):
    monkeypatch.setenv("MINARI_DATASETS_PATH", str(tmp_path))
    plain = euda.make("walker3d_run", seed=0)
    (mirror,) = euda.symmetries(plain.model).elements[1:]
    env = minari.DataCollector(plain)
    env.reset()
    state = plain.get_state()
    for _ in range(12):
        env.step(env.action_space.sample())
    dataset = env.create_dataset("walker/random-v0")
    original, copy = euda.augment_dataset(dataset, plain.layout, copies=1, elements=[mirror], yaws=False)
    plain.set_state(state)
    mirror.apply(plain.robot)
    mujoco.mj_step1(plain.model, plain.data)
    scale = np.abs(original.observations).max(axis=0).clip(1e-2)
    for action, expected, reward in zip(copy.actions, copy.observations[1:], copy.rewards, strict=True):
        observation, found, *_ = plain.step(action)
        np.testing.assert_allclose(observation / scale, expected / scale, atol=1e-2)
        np.testing.assert_allclose(found, reward, atol=1e-4)
