"""A real Minari dataset with turned copies, written and read by Minari itself."""

import minari
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
