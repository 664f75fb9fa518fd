"""The choice of a share: on hand-made returns, in training, and after an interruption."""

import dataclasses

import pytest
from test_training import TINY, content, stopped_at

from euda.agents.settings import DDPGConfig
from euda.errors import EudaError
from euda.replay.settings import AugmentationConfig, ShareBanditConfig
from euda.runs import methods, run_folder
from euda.runs.session import train
from euda.runs.share_bandit import SHARES, ShareBandit

AUTO = dataclasses.replace(
    TINY,
    learning=DDPGConfig(exploration_steps=20, actor_every=1, target_every=1),  # one compilation for each of five shares
    augmentation=AugmentationConfig("rotate-auto", settings=ShareBanditConfig(window=6)),
    episode_steps=10,
    steps=160,
    checkpoint_every=25,
)


def play(bandit, reward, episodes):
    """Shares chosen while the share of an episode decides the return of the next."""
    chosen = []
    for _ in range(episodes):
        before = bandit.share
        chosen.append(before)
        bandit.end_episode(reward(chosen[-2]) if len(chosen) > 1 else 0.0, True)
    return chosen


def test_every_share_is_tried_before_any_twice():
    assert play(ShareBandit(0.25, 25), lambda share: 1.0, 5) == list(SHARES)


def test_the_best_share_is_chosen_most_and_others_are_tried_again():
    chosen = play(ShareBandit(0.25, 25), lambda share: 100 * (share == 0.25), 200)[20:]
    counts = {share: chosen.count(share) for share in SHARES}
    assert max(counts, key=counts.__getitem__) == 0.25
    assert counts[0.25] > len(chosen) / 2
    assert min(counts.values()) > 3


@pytest.mark.parametrize("scale", [0.01, 1000.0])
def test_it_follows_a_change_and_does_not_care_about_the_scale(scale):
    bandit = ShareBandit(0.25, 25)
    play(bandit, lambda share: scale * (share == 0.25), 60)
    later = play(bandit, lambda share: scale * (share == 1.0), 80)[40:]
    assert later.count(1.0) > len(later) / 2


def test_episodes_without_updates_say_nothing():
    bandit = ShareBandit(0.25, 25)
    for _ in range(4):
        bandit.end_episode(5.0, False)
    assert bandit.state() == {"arm": 0, "credited": None, "rewards": []}


def test_its_state_is_all_there_is():
    first = ShareBandit(0.3, 7)
    play(first, lambda share: share, 11)
    second = ShareBandit(0.3, 7, first.state())
    assert play(first, lambda share: share, 20) == play(second, lambda share: share, 20)


def test_training_logs_its_choices_and_resumes_exactly(tmp_path):
    train(AUTO, tmp_path / "a")
    events = [event for event in run_folder.load(tmp_path / "a").events() if event["event"] == "train"]
    assert set(SHARES) == {event["share"] for event in events}
    stopped_at(AUTO, tmp_path / "b", 107)
    train(AUTO, tmp_path / "b")
    assert content(tmp_path / "a") == content(tmp_path / "b")
    assert run_folder.load(tmp_path / "b").config.method == "rotate-auto"


def test_a_share_for_rotate_auto_is_refused():
    with pytest.raises(EudaError, match="rotate-auto chooses it"):
        methods.share_of("rotate-auto", "rotate-auto", 0.5)
    with pytest.raises(EudaError, match="at least 5"):
        ShareBanditConfig(window=2)
