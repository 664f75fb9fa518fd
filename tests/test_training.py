"""Training in one process: determinism, events, evaluation, divergence, full disks, displays."""

import dataclasses
import errno
import io
import os
import signal

import jax
import numpy as np
import pytest
from rich.console import Console

from euda.config import AugmentationConfig, DDPGConfig, MLPConfig, ReplayConfig, SACConfig
from euda.errors import EudaError
from euda.study import display, evaluation, run, training
from euda.study.display import Silent
from euda.study.evaluation import Evaluator, seeds
from euda.study.settings import EvaluationConfig, RunConfig
from euda.study.stopping import Stop
from euda.study.storage import StorageError
from euda.study.training import DivergenceError, train

TINY = RunConfig(
    "reacher_hard",
    augmentation=AugmentationConfig("rotate", 0.25),
    mlp=MLPConfig(hidden_size=8),
    replay=ReplayConfig(capacity=100, batch_size=4, seed_steps=30),
    learning=DDPGConfig(exploration_steps=20),
    evaluation=EvaluationConfig(every=50, episodes=2),
    steps=100,
    episode_steps=30,
    checkpoint_every=40,
)


@pytest.fixture(autouse=True, scope="module")
def compilation_cache(tmp_path_factory):
    """Compile each program once for all tests here."""
    names = ("jax_compilation_cache_dir", "jax_persistent_cache_min_compile_time_secs")
    before = {name: getattr(jax.config, name) for name in names}
    for name, value in zip(names, (str(tmp_path_factory.mktemp("cache")), 0), strict=True):
        jax.config.update(name, value)
    yield
    for name, value in before.items():
        jax.config.update(name, value)


class StopAt(Silent):
    """Asks to stop at a step."""

    def __init__(self, stop: Stop, at: int):
        super().__init__()
        self.stop, self.at = stop, at

    def step(self, step):
        if step == self.at:
            self.stop.request(signal.SIGTERM)


def stopped_at(config, folder, step):
    stop = Stop()
    return train(config, folder, display=StopAt(stop, step), stop=stop)


def content(folder):
    found = run.load(folder)
    newest, _ = found.newest_checkpoint()
    assert newest is not None
    events = [{key: value for key, value in event.items() if key != "seconds"} for event in found.events()]
    return events, {name: array.tobytes() for name, array in newest.arrays.items()}


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs") / "finished"
    outcome = train(TINY, folder)
    assert outcome == training.Outcome(folder, 100, True)
    return folder


def test_events_are_as_promised(finished):
    events = list(run.load(finished).events())
    assert [event["step"] for event in events if event["event"] == "eval"] == [0, 50, 100]
    assert all({"event", "step", "seconds"} <= event.keys() for event in events)
    assert all(len(event["returns"]) == 2 for event in events if event["event"] == "eval")
    episodes = [event for event in events if event["event"] == "train"]
    assert [(event["step"], event["episode"]) for event in episodes] == [(30, 1), (60, 2), (90, 3)]
    assert "critic_loss" not in episodes[0]
    assert {"return", "critic_loss", "actor_loss", "q"} <= episodes[1].keys()
    assert events[-1]["event"] == "end"
    assert [event["seconds"] for event in events] == sorted(event["seconds"] for event in events)


def test_same_seed_same_bytes_and_two_seeds_differ(finished, tmp_path):
    train(TINY, tmp_path / "again")
    train(dataclasses.replace(TINY, seed=1), tmp_path / "other")
    assert content(tmp_path / "again") == content(finished)
    assert content(tmp_path / "other")[1]["agent/actor"] != content(finished)[1]["agent/actor"]


def test_a_finished_run_is_left_alone(finished):
    before = {path: path.stat().st_mtime_ns for path in finished.rglob("*") if path.is_file()}
    assert train(TINY, finished).is_finished
    assert {path: path.stat().st_mtime_ns for path in finished.rglob("*") if path.is_file()} == before


@pytest.mark.parametrize("steps", [65, 50])
def test_more_steps_give_what_more_steps_from_the_start_give(finished, tmp_path, steps):
    train(dataclasses.replace(TINY, steps=steps), tmp_path)
    last = list(run.load(tmp_path).events())[-2:]
    assert [event["event"] for event in last] == ["eval", "end"]
    train(TINY, tmp_path)
    assert content(tmp_path) == content(finished)
    with pytest.raises(EudaError, match="already at step 100"):
        train(dataclasses.replace(TINY, steps=20), tmp_path)


def test_seconds_go_on_where_they_were(tmp_path):
    stopped_at(TINY, tmp_path, 45)
    newest, _ = run.load(tmp_path).newest_checkpoint()
    assert newest is not None
    train(TINY, tmp_path)
    later = [event["seconds"] for event in run.load(tmp_path).events() if event["step"] > 45]
    assert min(later) >= newest.values["seconds"]
    assert [session["from_step"] for session in run.load(tmp_path).provenance()] == [0, 45]


def test_a_run_whose_every_checkpoint_is_damaged_is_left_as_it_is(tmp_path):
    stopped_at(TINY, tmp_path, 90)
    for path in (tmp_path / "checkpoints").glob("*.safetensors"):
        path.write_bytes(b"")
    before = (tmp_path / "metrics.jsonl").read_bytes()
    with pytest.raises(EudaError, match=r"cannot go on.*checksum"):
        train(TINY, tmp_path)
    assert (tmp_path / "metrics.jsonl").read_bytes() == before
    assert os.listdir(tmp_path / "replay")


@pytest.mark.parametrize(
    "changes",
    [
        {"features": "joint", "augmentation": AugmentationConfig("gaussian"), "task": "hopper_hop"},
        {"features": "limb-paper", "augmentation": AugmentationConfig("scale", same_noise=False)},
        {"augmentation": AugmentationConfig(), "cone": "elliptic", "replay": ReplayConfig(100, 4, 1, 0.9, 0)},
    ],
    ids=["gaussian", "scale", "none"],
)
def test_any_agent_features_and_augmentation_train_and_resume(tmp_path, changes):
    config = dataclasses.replace(TINY, steps=60, checkpoint_every=20, **changes)
    stopped_at(config, tmp_path, 45)
    assert train(config, tmp_path).is_finished
    assert {event["step"] for event in run.load(tmp_path).events()} == {0, 30, 50, 60}


def test_sac_resumes_exactly_too(tmp_path):
    config = dataclasses.replace(TINY, steps=60, agent="sac", learning=SACConfig(exploration_steps=20))
    stopped_at(config, tmp_path / "a", 45)
    train(config, tmp_path / "a")
    train(config, tmp_path / "b")
    assert content(tmp_path / "a") == content(tmp_path / "b")


# -- evaluation --------------------------------------------------------------------------------------------


def test_evaluation_episodes_are_the_same_for_every_run_and_differ_between_steps():
    assert seeds(0, 10_000, 10) == seeds(0, 10_000, 10)
    assert len({*seeds(0, 0, 10), *seeds(0, 10_000, 10), *seeds(1, 0, 10)}) == 30
    assert seeds(0, 5, 3) == seeds(0, 5, 10)[:3]


def test_evaluation_equals_episodes_one_by_one():
    """Stepping together must not mix the episodes up."""
    config = dataclasses.replace(TINY, task="cheetah_run")

    def policy(observations):
        return np.sin(3 * observations[:, :6])

    together = Evaluator(config, 3)(policy, [5, 6, 7])
    alone = Evaluator(config, 1)
    assert together == [alone(policy, [seed])[0] for seed in (5, 6, 7)]
    assert len(set(together)) == 3


def test_evaluate_repeats_the_last_evaluation(finished):
    last = [event for event in run.load(finished).events() if event["event"] == "eval"][-1]
    assert evaluation.evaluate(run.load(finished), 2) == (100, last["returns"])
    assert len(evaluation.evaluate(run.load(finished), 11, seed=3)[1]) == 11
    with pytest.raises(EudaError, match="at least 1"):
        evaluation.evaluate(run.load(finished), 0)


def test_a_published_policy_needs_only_two_files(finished, tmp_path):
    for name in ("config.json", "policy.safetensors"):
        (tmp_path / name).write_bytes((finished / name).read_bytes())
    assert evaluation.evaluate(run.load(tmp_path), 2) == evaluation.evaluate(run.load(finished), 2)
    (tmp_path / "policy.safetensors").write_bytes(b"junk")
    with pytest.raises(EudaError, match="damaged"):
        evaluation.evaluate(run.load(tmp_path), 2)
    (tmp_path / "policy.safetensors").unlink()
    with pytest.raises(EudaError, match="no checkpoint yet"):
        evaluation.evaluate(run.load(tmp_path), 2)


# -- what goes wrong ---------------------------------------------------------------------------------------


def test_losses_that_are_not_numbers_stop_the_run_and_keep_the_checkpoint(tmp_path, monkeypatch):
    stopped_at(TINY, tmp_path, 40)
    original = training.Trainer.advance

    def poisoned(self):
        if self.step == 55:
            self.agent = dataclasses.replace(
                self.agent, state={**self.agent.state, "critic": self.agent.state["critic"] * float("nan")}
            )
        return original(self)

    with monkeypatch.context() as patch:
        patch.setattr(training.Trainer, "advance", poisoned)
        with pytest.raises(DivergenceError, match=r"not a number.*learning rate.*step 40 is intact"):
            train(TINY, tmp_path)
    newest, damaged = run.load(tmp_path).newest_checkpoint()
    assert newest is not None
    assert (newest.step, damaged) == (40, [])
    assert train(TINY, tmp_path).is_finished


def test_observations_that_are_not_numbers_stop_the_run(tmp_path, monkeypatch):
    original = training.Trainer.advance

    def poisoned(self):
        if self.step == 55:
            monkeypatch.setattr(
                self.environment, "observe", lambda: np.full(self.observation.shape, np.nan, np.float32)
            )
        return original(self)

    monkeypatch.setattr(training.Trainer, "advance", poisoned)
    with pytest.raises(DivergenceError, match=r"not finite.*checkpoint of step 40 is intact"):
        train(TINY, tmp_path)


def blow_up(monkeypatch, when):
    """Have MuJoCo fail in the training's next step wherever `when` says so of the steps so far."""
    original = training.Trainer.advance

    def advance(self):
        if when(self.step):
            self.environment.data.qvel[:] = 1e12
        return original(self)

    monkeypatch.setattr(training.Trainer, "advance", advance)


def test_an_episode_that_blows_up_is_cut_and_the_run_goes_on(tmp_path, monkeypatch):
    blow_up(monkeypatch, lambda step: step == 45)
    display = Silent()
    assert train(TINY, tmp_path / "whole", display=display).is_finished
    assert any("the simulation blew up at step 46" in sentence for sentence in display.said)
    events, arrays = content(tmp_path / "whole")
    episodes = [(e["step"], e.get("unstable")) for e in events if e["event"] == "train"]
    assert episodes == [(30, None), (46, 1), (76, None)]
    newest, _ = run.load(tmp_path / "whole").newest_checkpoint()
    assert newest.values["unstable"] == 1
    assert int(newest.arrays["replay/counters"][1]) == TINY.steps - 1  # the step that failed is in no batch
    for at in (42, 60):
        stopped_at(TINY, tmp_path / str(at), at)
        assert train(TINY, tmp_path / str(at)).is_finished
        assert content(tmp_path / str(at)) == (events, arrays)


def test_a_simulation_that_blows_up_again_and_again_stops_the_run(tmp_path, monkeypatch):
    blow_up(monkeypatch, lambda step: step % 4 == 1)
    with pytest.raises(DivergenceError, match=r"became invalid at step.*checkpoint of step 40 is intact"):
        train(TINY, tmp_path)


def test_an_evaluation_counts_what_an_episode_had_before_it_blew_up(finished, caplog, monkeypatch):
    evaluator = evaluation.Evaluator(TINY, 2)
    policy, _ = evaluation.load_policy(run.load(finished), evaluator._environments[0])
    whole = evaluator(policy, [1, 2])
    assert evaluator.unstable == 0
    asked = []

    def failing(observations):
        if not asked:
            evaluator._environments[0].data.qvel[:] = 1e12
        asked.append(observations)
        return policy(observations)

    assert evaluator(failing, [1, 2]) == [0.0, whole[1]]
    assert evaluator.unstable == 1
    assert evaluator(policy, [1, 2]) == whole
    monkeypatch.setattr(
        evaluation.Evaluator, "__call__", lambda self, _, seeds: setattr(self, "unstable", 1) or [0.0] * len(seeds)
    )
    evaluation.evaluate(run.load(finished), 2)
    assert "in 1 of 2 episodes the simulation blew up" in caplog.text


@pytest.mark.parametrize("calls", [1, 4, 9, 14])
def test_a_full_disk_is_one_sentence_and_loses_nothing(finished, tmp_path, monkeypatch, calls):
    original, left = os.write, calls

    def full(descriptor, data):
        nonlocal left
        left -= 1
        if left < 0:
            os.ftruncate(descriptor, os.fstat(descriptor).st_size)
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return original(descriptor, data)

    with monkeypatch.context() as patch:
        patch.setattr(os, "write", full)
        with pytest.raises(StorageError, match="the disk is full"):
            train(TINY, tmp_path / "run")
    train(TINY, tmp_path / "run")
    assert content(tmp_path / "run") == content(finished)


def test_no_room_for_the_replay_is_one_sentence(tmp_path, monkeypatch):
    def full(*args):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    with monkeypatch.context() as patch:
        patch.setattr(os, "posix_fallocate", full)
        with pytest.raises(EudaError, match="too little space"):
            train(TINY, tmp_path / "run")
    assert train(dataclasses.replace(TINY, steps=10), tmp_path / "run").is_finished


# -- displays ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("is_terminal", [True, False])
def test_displays_show_progress_returns_and_warnings(tmp_path, monkeypatch, is_terminal):
    monkeypatch.setattr(display, "_LINE", 0.0)
    monkeypatch.setattr(display, "_REDRAW", 0.0)
    out = io.StringIO()
    shown = display.make(console=Console(file=out, force_terminal=is_terminal, width=140))
    assert type(shown).__name__ == ("Bar" if is_terminal else "Lines")
    stopped_at(TINY, tmp_path, 60)
    train(TINY, tmp_path, display=shown)
    shown.say("something is [wrong]")
    text = out.getvalue()
    for words in ("reacher_hard, rotate 0.25, seed 0: from step 60", "steps/s", "left", "critic", "return", "[wrong]"):
        assert words in text


def test_quiet_shows_nothing():
    assert isinstance(display.make(quiet=True), Silent)


@pytest.mark.parametrize(("seconds", "text"), [(42, "42 s"), (340, "5 min 40 s"), (12_000, "3 h 20 min")])
def test_durations_are_readable(seconds, text):
    assert display.duration(seconds) == text
