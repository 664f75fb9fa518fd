"""Training in one process: determinism, events, evaluation, divergence, full disks, displays."""

import contextlib
import dataclasses
import errno
import io
import json
import os
import shutil
import signal
from typing import Any

import jax
import numpy as np
import pytest
from rich.console import Console

import euda
from euda.agents.input_settings import InputsConfig
from euda.agents.network_settings import MLPConfig
from euda.agents.settings import DDPGConfig, SACConfig
from euda.errors import EudaError
from euda.replay.settings import AugmentationConfig, ReplayConfig, ScaleConfig
from euda.runs import checkpoint, evaluation, run_folder, session
from euda.runs.atomic_files import StorageError
from euda.runs.config import RunConfig
from euda.runs.display import Silent
from euda.runs.evaluation import Evaluator, evaluate, seeds
from euda.runs.session import DivergenceError, train
from euda.runs.settings import EvaluationConfig
from euda.runs.signals import Stop
from euda.terminal import displays

TINY = RunConfig(
    "reacher_hard",
    augmentation=AugmentationConfig("rotate", 0.25),
    architecture=MLPConfig(hidden_size=8),
    replay=ReplayConfig(capacity=100, batch_size=4, seed_steps=30),
    learning=DDPGConfig(exploration_steps=20),
    evaluation=EvaluationConfig(every=50, episodes=2),
    steps=100,
    episode_steps=30,
    checkpoint_every=40,
)


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
    found = run_folder.load(folder)
    newest, _ = found.newest_checkpoint()
    assert newest is not None
    events = [{key: value for key, value in event.items() if key != "seconds"} for event in found.events()]
    return events, {name: array.tobytes() for name, array in newest.arrays.items()}


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs") / "finished"
    outcome = train(TINY, folder)
    assert outcome == session.Outcome(folder, 100, True)
    return folder


def test_events_are_as_promised(finished):
    events = list(run_folder.load(finished).events())
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
    name = "agent/actor/0/weight"
    assert content(tmp_path / "other")[1][name] != content(finished)[1][name]


def test_a_finished_run_is_left_alone(finished):
    before = {path: path.stat().st_mtime_ns for path in finished.rglob("*") if path.is_file()}
    assert train(TINY, finished).is_finished
    assert {path: path.stat().st_mtime_ns for path in finished.rglob("*") if path.is_file()} == before


@pytest.mark.parametrize("steps", [65, 50])
def test_more_steps_give_what_more_steps_from_the_start_give(finished, tmp_path, steps):
    train(dataclasses.replace(TINY, steps=steps), tmp_path)
    last = list(run_folder.load(tmp_path).events())[-2:]
    assert [event["event"] for event in last] == ["eval", "end"]
    train(TINY, tmp_path)
    assert content(tmp_path) == content(finished)
    with pytest.raises(EudaError, match="already at step 100"):
        train(dataclasses.replace(TINY, steps=20), tmp_path)


def test_seconds_go_on_where_they_were(tmp_path):
    stopped_at(TINY, tmp_path, 45)
    newest, _ = run_folder.load(tmp_path).newest_checkpoint()
    assert newest is not None
    train(TINY, tmp_path)
    later = [event["seconds"] for event in run_folder.load(tmp_path).events() if event["step"] > 45]
    assert min(later) >= newest.values["seconds"]
    assert [session["from_step"] for session in run_folder.load(tmp_path).provenance()] == [0, 45]


def test_a_run_whose_every_checkpoint_is_damaged_is_left_as_it_is(tmp_path):
    stopped_at(TINY, tmp_path, 90)
    for path in (tmp_path / "checkpoints").glob("*.safetensors"):
        path.write_bytes(b"")
    before = (tmp_path / "metrics.jsonl").read_bytes()
    with pytest.raises(EudaError, match=r"cannot be resumed.*checksum"):
        train(TINY, tmp_path)
    assert (tmp_path / "metrics.jsonl").read_bytes() == before
    assert os.listdir(tmp_path / "replay")


@pytest.mark.parametrize("damage", ["folder", "file", "half"])
def test_a_run_without_its_replay_is_refused_and_left_as_it_is(tmp_path, damage):
    """It would go on with rows of zeros."""
    stopped_at(TINY, tmp_path, 45)
    path = tmp_path / "replay" / "observation.bin"
    if damage == "folder":
        shutil.rmtree(tmp_path / "replay")
    elif damage == "file":
        path.unlink()
    else:
        os.truncate(path, 46 * 21 * 4 - 1)
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    for _ in range(2):
        with pytest.raises(EudaError, match=r"observation.bin' (is gone|has \d+ of \d+ bytes), .* cannot be resumed"):
            train(TINY, tmp_path)
        assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == before


def test_a_finished_run_needs_no_replay_until_it_gets_more_steps(finished, tmp_path):
    folder = tmp_path / "run"
    shutil.copytree(finished, folder, ignore=lambda *_: ["replay"])
    assert train(TINY, folder).is_finished
    assert evaluation.evaluate(run_folder.load(folder), 2) == evaluation.evaluate(run_folder.load(finished), 2)
    with pytest.raises(EudaError, match="is gone"):
        train(dataclasses.replace(TINY, steps=120), folder)
    assert run_folder.status(run_folder.load(folder)).is_finished  # what was refused changed nothing


VALUES = {
    "episode": "many",
    "episode_return": None,
    "seconds": [],
    "metrics_size": "much",
    "averages": {"q": [1.0, 0]},
    "exploring": {"bit_generator": "MT19937"},
    "sampling": 7,
}


def test_a_checkpoint_of_another_program_is_one_sentence(tmp_path):
    """Every checksum of it is right: each entry missing, of another type or of another size in turn."""
    stopped_at(TINY, tmp_path, 45)
    folder = tmp_path / "checkpoints"
    good, _ = checkpoint.newest(folder)
    before = (tmp_path / "metrics.jsonl").read_bytes()
    bad = [good.values | {name: value} for name, value in VALUES.items()]
    bad += [{name: value for name, value in good.values.items() if name != gone} for gone in VALUES]
    forged = [dataclasses.replace(good, values=values) for values in bad]
    of_agent = [name for name in good.arrays if name.startswith("agent/")]
    for name in (good.arrays.keys() - set(of_agent)) | {of_agent[0], "agent/key", "agent/updates"}:
        array = good.arrays[name]
        arrays = {key: value for key, value in good.arrays.items() if key != name}
        forged += [dataclasses.replace(good, arrays=arrays)]
        forged += [dataclasses.replace(good, arrays=arrays | {name: np.zeros((*array.shape, 3), array.dtype)})]
    for one in forged:
        checkpoint.save(folder, one)
        with pytest.raises(EudaError, match=r"does not fit|does not belong|sizes|replay|damaged"):
            train(TINY, tmp_path)
        assert (tmp_path / "metrics.jsonl").read_bytes() == before
    checkpoint.save(folder, good)
    assert train(TINY, tmp_path).is_finished


@pytest.mark.parametrize(
    "changes",
    [
        {"features": "joint", "augmentation": AugmentationConfig("gaussian"), "task": "hopper_hop"},
        {"features": "limb-paper", "augmentation": AugmentationConfig("scale", settings=ScaleConfig(same_noise=False))},
        {"augmentation": AugmentationConfig(), "cone": "elliptic", "replay": ReplayConfig(100, 4, 1, 0.9, 0)},
    ],
    ids=["gaussian", "scale", "none"],
)
def test_any_agent_features_and_augmentation_train_and_resume(tmp_path, changes):
    config = dataclasses.replace(TINY, steps=60, checkpoint_every=20, **changes)
    stopped_at(config, tmp_path, 45)
    assert train(config, tmp_path).is_finished
    assert {event["step"] for event in run_folder.load(tmp_path).events()} == {0, 30, 50, 60}


def test_sac_resumes_exactly_too(tmp_path):
    config = dataclasses.replace(TINY, steps=60, agent="sac", learning=SACConfig(exploration_steps=20))
    stopped_at(config, tmp_path / "a", 45)
    train(config, tmp_path / "a")
    train(config, tmp_path / "b")
    assert content(tmp_path / "a") == content(tmp_path / "b")


@pytest.mark.parametrize("group", ["mirror", "all"])
def test_a_run_with_mirrors_records_them_and_resumes_exactly(tmp_path, group):
    inputs = InputsConfig(normaliser="symmetric")
    config = dataclasses.replace(TINY, task="walker_run", steps=60, checkpoint_every=20, group=group, inputs=inputs)
    stopped_at(config, tmp_path / "a", 45)
    assert run_folder.load(tmp_path / "a").config.elements == ("mirror left-right",)
    train(config, tmp_path / "a")
    train(config, tmp_path / "b")
    assert content(tmp_path / "a") == content(tmp_path / "b")
    train(dataclasses.replace(config, group="yaw"), tmp_path / "c")
    assert content(tmp_path / "a") != content(tmp_path / "c")
    assert run_folder.load(tmp_path / "c").config.elements == ()
    assert evaluate(run_folder.load(tmp_path / "a"), 1)[0] == 60


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
    last = [event for event in run_folder.load(finished).events() if event["event"] == "eval"][-1]
    assert evaluation.evaluate(run_folder.load(finished), 2) == (100, last["returns"])
    assert len(evaluation.evaluate(run_folder.load(finished), 11, seed=3)[1]) == 11
    with pytest.raises(EudaError, match="at least 1"):
        evaluation.evaluate(run_folder.load(finished), 0)


def test_a_published_policy_needs_only_two_files(finished, tmp_path):
    for name in ("config.json", "policy.safetensors"):
        (tmp_path / name).write_bytes((finished / name).read_bytes())
    assert evaluation.evaluate(run_folder.load(tmp_path), 2) == evaluation.evaluate(run_folder.load(finished), 2)
    (tmp_path / "policy.safetensors").write_bytes(b"junk")
    with pytest.raises(EudaError, match="damaged"):
        evaluation.evaluate(run_folder.load(tmp_path), 2)
    (tmp_path / "policy.safetensors").unlink()
    with pytest.raises(EudaError, match="no checkpoint yet"):
        evaluation.evaluate(run_folder.load(tmp_path), 2)


def test_a_damaged_policy_is_said_where_a_checkpoint_stands_in(finished, tmp_path, caplog):
    shutil.copytree(finished, tmp_path / "run")
    found = run_folder.load(tmp_path / "run")
    expected = evaluation.evaluate(found, 2)
    assert caplog.text == ""
    found.policy.write_bytes(b"junk")
    assert evaluation.evaluate(found, 2) == expected
    assert "policy.safetensors' is damaged" in caplog.text
    assert "the checkpoint of step 100 is used instead" in caplog.text
    caplog.clear()
    (newest,) = found.checkpoints.glob("*100-*.safetensors")
    newest.write_bytes(b"junk")
    assert evaluation.evaluate(found, 2)[0] == 80
    assert "its checksum does not fit; the one of step 80 is used instead" in caplog.text


@pytest.mark.parametrize(
    ("observation", "says"),
    [
        (np.full(21, np.nan, np.float32), r"not finite are the entries 0, 1, 2, 3, 4, … of 21"),
        (np.array([[0.0] * 21, [0.0] * 20 + [np.inf]]), r"not finite are the entries 20 of 21"),
        (np.zeros(20), r"\[21\] or \[B, 21\], not an array of shape \[20\]"),
        (np.zeros((2, 3, 21)), r"shape \[2, 3, 21\]"),
        (np.float32(0), r"shape \[\]"),
        (["a"] * 21, r"of shape \[21\] and type <U1"),
        (None, "type object"),
    ],
)
def test_a_policy_says_what_is_wrong_with_an_observation(finished, observation, says):
    policy = euda.load(finished)
    assert policy([0.0] * 21).shape == policy(np.zeros((3, 21)))[0].shape == (2,)
    with pytest.raises(EudaError, match=says):
        policy(observation)


def test_a_run_of_an_older_format_is_not_gone_on_with_but_its_policy_is_kept(finished, tmp_path):
    shutil.copytree(finished, tmp_path, dirs_exist_ok=True)
    for path in (tmp_path / "checkpoints").glob("*.json"):
        path.write_text(json.dumps(json.loads(path.read_text()) | {"format": 1}))
    with pytest.raises(EudaError, match=r"cannot be resumed.*has format 1, this euda reads 2") as caught:
        train(dataclasses.replace(TINY, steps=150), tmp_path)
    assert "\n" not in str(caught.value)
    old = {path: path.read_bytes() for path in tmp_path.rglob("*.safetensors")}
    (tmp_path / "config.json").write_bytes((finished / "config.json").read_bytes())
    assert evaluation.evaluate(run_folder.load(tmp_path), 2) == evaluation.evaluate(run_folder.load(finished), 2)
    assert {path: path.read_bytes() for path in tmp_path.rglob("*.safetensors")} == old


# -- what goes wrong ---------------------------------------------------------------------------------------


def test_losses_that_are_not_numbers_stop_the_run_and_keep_the_checkpoint(tmp_path, monkeypatch):
    stopped_at(TINY, tmp_path, 40)
    original = session.Trainer.advance

    def poisoned(self):
        if self.step == 55:
            spoilt = jax.tree.map(lambda array: array * float("nan"), self.agent.state["critics"])
            self.agent = dataclasses.replace(self.agent, state={**self.agent.state, "critics": spoilt})
        return original(self)

    with monkeypatch.context() as patch:
        patch.setattr(session.Trainer, "advance", poisoned)
        with pytest.raises(DivergenceError, match=r"not a number.*learning rate.*step 40 is intact"):
            train(TINY, tmp_path)
    newest, damaged = run_folder.load(tmp_path).newest_checkpoint()
    assert newest is not None
    assert (newest.step, damaged) == (40, [])
    assert train(TINY, tmp_path).is_finished


def test_observations_that_are_not_numbers_stop_the_run(tmp_path, monkeypatch):
    original = session.Trainer.advance

    def poisoned(self):
        if self.step == 55:
            monkeypatch.setattr(
                self.environment, "observe", lambda: np.full(self.observation.shape, np.nan, np.float32)
            )
        return original(self)

    monkeypatch.setattr(session.Trainer, "advance", poisoned)
    with pytest.raises(DivergenceError, match=r"not finite.*checkpoint of step 40 is intact"):
        train(TINY, tmp_path)


def blow_up(monkeypatch, when):
    """Have MuJoCo fail in the training's next step wherever `when` says so of the steps so far."""
    original = session.Trainer.advance

    def advance(self):
        if when(self.step):
            self.environment.data.qvel[:] = 1e12
        return original(self)

    monkeypatch.setattr(session.Trainer, "advance", advance)


def test_an_episode_that_blows_up_is_cut_and_the_run_goes_on(tmp_path, monkeypatch):
    blow_up(monkeypatch, lambda step: step == 45)
    display = Silent()
    assert train(TINY, tmp_path / "whole", display=display).is_finished
    assert any("the simulation blew up at step 46" in sentence for sentence in display.said)
    events, arrays = content(tmp_path / "whole")
    episodes = [(e["step"], e.get("unstable")) for e in events if e["event"] == "train"]
    assert episodes == [(30, None), (46, 1), (76, None)]
    newest, _ = run_folder.load(tmp_path / "whole").newest_checkpoint()
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
    policy, _ = evaluation.load_policy(run_folder.load(finished), evaluator.environments[0])
    whole = evaluator(policy, [1, 2])
    assert evaluator.unstable == 0
    asked = []

    def failing(observations):
        if not asked:
            evaluator.environments[0].data.qvel[:] = 1e12
        asked.append(observations)
        return policy(observations)

    assert evaluator(failing, [1, 2]) == [0.0, whole[1]]
    assert evaluator.unstable == 1
    assert evaluator(policy, [1, 2]) == whole
    monkeypatch.setattr(
        evaluation.Evaluator, "__call__", lambda self, _, seeds, *__: setattr(self, "unstable", 1) or [0.0] * len(seeds)
    )
    evaluation.evaluate(run_folder.load(finished), 2)
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
    monkeypatch.setattr(displays, "_LINE", 0.0)
    monkeypatch.setattr(displays, "_REDRAW", 0.0)
    out = io.StringIO()
    shown = displays.make(console=Console(file=out, force_terminal=is_terminal, width=140))
    assert type(shown).__name__ == ("Bar" if is_terminal else "Lines")
    stopped_at(TINY, tmp_path, 60)
    train(TINY, tmp_path, display=shown)
    shown.say("something is [wrong]")
    text = out.getvalue()
    said = ("making the environments", "resuming from step 60", "compiling the update", "steps/s", "left", "critic")
    for words in (*said, "return", "euda: something is [wrong]"):
        assert words in text
    assert "at most" not in text


def test_what_begins_is_said_at_once_and_in_order(tmp_path):
    out = io.StringIO()
    train(TINY, tmp_path, display=displays.make(console=Console(file=out, width=140)))
    lines = [line for line in out.getvalue().splitlines() if not line.startswith("step")]
    begun = ["testing the symmetry in the simulator", "making the environments"]
    assert lines == [*begun, "evaluating the untrained policy", "compiling the update"]
    said = displays.headline(TINY, tmp_path, "on core 3 of 4")
    assert said == f"reacher_hard, rotate 0.25, seed 0: to step 100, on core 3 of 4, in {tmp_path}"


def test_the_time_left_follows_from_the_speed():
    assert displays._info(50.0, 6000, {}) == "50 steps/s  2 min 0 s left"


class Gone(Silent):
    """A terminal that is closed when something is to be shown."""

    def __init__(self, what, at):
        super().__init__()
        self.what, self.at = what, at

    def fail(self, what):
        if what == self.what:
            raise OSError(errno.EIO, os.strerror(errno.EIO))

    def step(self, step):
        self.fail("step" if step >= self.at else None)

    def event(self, event):
        self.fail("event" if event["step"] >= self.at else None)

    def shown(self, config, step) -> Any:
        stack = contextlib.ExitStack()
        stack.callback(self.fail, self.what)
        return stack


@pytest.mark.parametrize(("what", "at"), [("step", 60), ("event", 50), ("step", 100)])
def test_a_display_that_nobody_reads_stops_the_run_saved_and_whole(finished, tmp_path, what, at):
    """At the end of an episode too, whose return must be recorded all the same."""
    outcome = train(TINY, tmp_path, display=Gone(what, at))
    assert (outcome.step, outcome.is_finished) == (at, at == TINY.steps)
    assert outcome.signal == (None if at == TINY.steps else signal.SIGPIPE)
    train(TINY, tmp_path)
    assert content(tmp_path) == content(finished)


def test_quiet_shows_nothing():
    assert isinstance(displays.make(quiet=True), Silent)


@pytest.mark.parametrize(("seconds", "text"), [(42, "42 s"), (340, "5 min 40 s"), (12_000, "3 h 20 min")])
def test_durations_are_readable(seconds, text):
    assert displays.duration(seconds) == text
