"""What a base can be made of, in whole runs: frames, statistics, noise, networks, updates per step, held actions."""

import dataclasses

import numpy as np
import pytest
from test_training import content, stopped_at

from euda.agents.agent import Agent
from euda.agents.input_settings import InputsConfig
from euda.agents.network_settings import MLPConfig, ResidualConfig
from euda.agents.settings import DDPGConfig, SACConfig, TD3Config
from euda.errors import EudaError
from euda.replay.settings import ReplayConfig
from euda.runs import evaluation, run_folder, schedule
from euda.runs.config import RunConfig
from euda.runs.environments import hold
from euda.runs.resolution import resolve
from euda.runs.session import train
from euda.runs.settings import EvaluationConfig
from euda.runs.trainer import Trainer

QUICK = RunConfig(
    "hopper3d_hop",
    agent="sac",
    learning=SACConfig(critics=1, temperature=0.01, log_stddev_start=-2.0, exploration_steps=20, noise="pink"),
    architecture=MLPConfig(hidden_size=8, layer_norm=True, last_gain=0.1),
    frame="own",
    inputs=InputsConfig("symmetric"),
    replay=ReplayConfig(capacity=100, batch_size=4, seed_steps=20, updates_per_step=0.5),
    evaluation=EvaluationConfig(every=50, episodes=2),
    steps=100,
    episode_steps=30,
    action_repeat=2,
    checkpoint_every=40,
)
OTHERS = {
    "networks that begin anew": {"replay": dataclasses.replace(QUICK.replay, anew_from=20)},
    "held": {"learning": dataclasses.replace(QUICK.learning, noise="held"), "frame": "world"},
    "td3, residual": {
        "agent": "td3",
        "learning": TD3Config(exploration_steps=20),
        "network": "residual",
        "architecture": ResidualConfig(hidden_size=8, blocks=1),
        "inputs": InputsConfig("full"),
        "action_repeat": 1,
    },
}


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    folder = tmp_path_factory.mktemp("base") / "whole"
    assert train(QUICK, folder).is_finished
    return folder


def test_a_run_with_everything_goes_on_in_the_same_bytes(whole, tmp_path):
    for step in (34, 62):  # in the middle of an episode, before and after a checkpoint
        assert not stopped_at(QUICK, tmp_path, step).is_finished
    assert train(QUICK, tmp_path).is_finished
    assert content(tmp_path) == content(whole)


@pytest.mark.parametrize("name", OTHERS)
def test_other_parts_go_on_in_the_same_bytes(name, tmp_path):
    config = dataclasses.replace(QUICK, steps=60, **OTHERS[name])
    train(config, tmp_path / "whole")
    stopped_at(config, tmp_path / "parts", 44)
    train(config, tmp_path / "parts")
    assert content(tmp_path / "parts") == content(tmp_path / "whole")


def test_a_stored_policy_has_its_statistics_with_it(whole, tmp_path):
    events = list(run_folder.load(whole).events())
    last = [event for event in events if event["event"] == "eval"][-1]
    assert evaluation.evaluate(run_folder.load(whole), 2) == (100, last["returns"])
    for name in ("config.json", "policy.safetensors"):
        (tmp_path / name).write_bytes((whole / name).read_bytes())
    assert evaluation.evaluate(run_folder.load(tmp_path), 2) == (100, last["returns"])


def trainer_of(config, folder):
    run = run_folder.Run(folder, config)
    run.clear()
    return Trainer(run, None)


@pytest.mark.parametrize("rate", [0.125, 0.25, 0.3, 0.5, 1.0, 2.0])
def test_updates_are_spread_evenly_over_the_steps(rate, tmp_path, monkeypatch):
    replay = dataclasses.replace(QUICK.replay, updates_per_step=rate)
    trainer = trainer_of(dataclasses.replace(QUICK, replay=replay, action_repeat=1), tmp_path)
    learnt = []
    monkeypatch.setattr(type(trainer.agent), "update", lambda agent, batch, step: learnt.append(step) or (agent, {}))
    for _ in range(60):
        trainer.advance()
    counts = [learnt.count(step) for step in range(1, 61)]
    assert sum(counts[:20]) == 0
    assert [sum(counts[20 : 20 + n]) for n in range(41)] == [int(rate * n + 1e-9) for n in range(41)]


def test_networks_begin_anew_and_keep_what_is_known_of_observations(tmp_path, monkeypatch):
    replay = dataclasses.replace(QUICK.replay, anew_from=24)
    trainer = trainer_of(dataclasses.replace(QUICK, replay=replay), tmp_path)
    anew, begun = Agent.anew, []
    monkeypatch.setattr(Agent, "anew", lambda agent, seed: begun.append((trainer.step, seed)) or anew(agent, seed))
    for _ in range(40):
        trainer.advance()
    assert [step for step, _ in begun] == [24, 60]
    assert len({seed for _, seed in begun}) == 2
    assert [schedule.beginnings_until(replay, step) for step in (23, 24, 59, 60, 149, 150)] == [0, 1, 1, 2, 2, 3]
    assert schedule.beginnings_until(QUICK.replay, 10**9) == 0
    old, new = trainer.agent.state_dict(), anew(trainer.agent, 7).state_dict()
    assert {name: value.shape for name, value in new.items()} == {name: value.shape for name, value in old.items()}
    kept = {name for name, value in new.items() if np.array_equal(value, old[name])}
    assert {name for name in new if name.startswith(("moments", "statistics"))} <= kept
    assert {"updates", "finite"} <= kept
    assert not {name for name in kept if name.startswith("actor") and "weight" in name}


def test_actions_are_held_and_every_step_of_the_environment_counts(tmp_path, monkeypatch):
    trainer = trainer_of(QUICK, tmp_path)
    taken, step = [], trainer.environment.step
    monkeypatch.setattr(trainer.environment, "step", lambda action: taken.append(action) or step(action))
    finished = [trainer.advance() for _ in range(15)]
    assert (trainer.step, len(taken), len(trainer.buffer)) == (30, 30, 15)
    assert all(np.array_equal(taken[i], taken[i + 1]) for i in range(0, 30, 2))
    assert not any(np.array_equal(taken[i], taken[i + 2]) for i in range(0, 28, 2))
    assert [value is None for value in finished] == [True] * 14 + [False]  # an episode of 30 steps is 15 decisions


def test_a_held_action_stops_where_the_episode_does():
    environment = evaluation.make_environment(dataclasses.replace(QUICK, episode_steps=4))
    environment.reset(seed=0)
    action = np.zeros(environment.action_space.shape, np.float32)
    assert hold(environment, action, 3)[2:] == (False, False)
    assert hold(environment, action, 3)[2:] == (False, True)


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"action_repeat": 4}, "action_repeat 4 must divide episode_steps, which is 30"),
        ({"action_repeat": 0}, "action_repeat must be a whole number of at least 1, not 0"),
        ({"evaluation": EvaluationConfig(every=25)}, "must divide evaluation.every, which is 25"),
        ({"frame": "robot"}, "unknown frame 'robot'"),
        ({"inputs": None}, "inputs must be InputsConfig"),
    ],
)
def test_what_does_not_fit_is_refused_in_one_sentence(changes, says):
    with pytest.raises(EudaError, match=says) as caught:
        dataclasses.replace(QUICK, **changes)
    assert "\n" not in str(caught.value)


def test_unknown_names_are_refused_with_the_nearest():
    with pytest.raises(EudaError, match=r"unknown normaliser 'symetric'.*did you mean 'symmetric'"):
        InputsConfig("symetric")
    with pytest.raises(EudaError, match=r"unknown noise 'pinc'.*did you mean 'pink'"):
        DDPGConfig(noise="pinc")


def test_a_run_without_a_frame_is_refused_before_it_begins(tmp_path):
    with pytest.raises(EudaError, match="no frame of its own"):
        train(dataclasses.replace(QUICK, features="joint"), tmp_path / "run")
    assert not (tmp_path / "run" / "config.json").exists()


def test_the_method_canonical_is_the_own_frame_and_keeps_the_rest():
    config = resolve("quadruped_run", "canonical")
    assert (config.frame, config.method, config.uses_symmetry) == ("own", "canonical", True)
    plain = resolve("quadruped_run", "limb")
    assert (plain.frame, plain.method, plain.uses_symmetry) == ("world", "limb", False)
    assert config.identity != plain.identity
    assert dataclasses.replace(config, frame="world") == plain
    assert RunConfig.from_json(QUICK.to_json()) == QUICK
