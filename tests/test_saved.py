"""Anybody's Gymnasium environment in our training loop: same dynamics, saved exactly, or said that it is not."""

import functools
import json
import sys
from pathlib import Path

import gymnasium
import mujoco
import numpy as np
import pytest
from test_robots import leave_this_process_alone, module, refused  # noqa: F401 - the first is a fixture
from test_training import content, stopped_at

from euda import trusted_code
from euda.errors import EudaError, SimulationError
from euda.runs import robot_config, robot_flags, run_folder, session
from euda.runs.config import RunConfig
from euda.runs.display import Silent
from euda.runs.environments import cautions
from euda.tasks import gymnasium_task
from euda.tasks.gymnasium_task import SavedEnvironment, is_saved_exactly
from euda.terminal import cli

TINY = [
    *("--steps", "150", "--episode-steps", "60", "--checkpoint-every", "50", "--mlp.hidden-size", "8", "--quiet"),
    *("--replay.capacity", "100", "--replay.batch-size", "4", "--replay.seed-steps", "30", "--share", "0.5"),
    *("--base", "paper", "--ddpg.exploration-steps", "20", "--evaluation.every", "75", "--evaluation.episodes", "2"),
    *("--ddpg.actor-every", "1", "--ddpg.target-every", "1"),  # one update to compile instead of two
]
ENVIRONMENTS = """
import gymnasium
from pathlib import Path
from gymnasium.envs.mujoco.inverted_pendulum_v5 import InvertedPendulumEnv
Path("imported").touch()

class Counting(InvertedPendulumEnv):
    "Pays by the step of the episode: kept in an attribute, and begun anew at every reset."
    def reset_model(self):
        self.count = 0
        return super().reset_model()

    def step(self, action):
        observation, reward, terminated, truncated, info = super().step(action)
        self.count += 1
        return observation, reward + self.count, terminated, truncated, info

class Growing(InvertedPendulumEnv):
    "Pays more in every episode: nobody can know."
    episodes = 0
    def reset_model(self):
        self.episodes += 1
        return super().reset_model()

    def step(self, action):
        observation, reward, *rest = super().step(action)
        return observation, reward * self.episodes, *rest

class Leaving(InvertedPendulumEnv):
    "Ends the program in its third step."
    count = 0
    def step(self, action):
        self.count += 1
        if self.count == 3:
            raise SystemExit(0)
        return super().step(action)

for name in ("Counting", "Growing", "Leaving"):
    if name + "-v0" not in gymnasium.registry:
        gymnasium.register(name + "-v0", entry_point=f"my_envs:{name}", max_episode_steps=40)
"""


@pytest.fixture
def my_envs(monkeypatch, tmp_path):
    module(monkeypatch, tmp_path, "my_envs", ENVIRONMENTS)
    yield tmp_path
    for name in ("Counting-v0", "Growing-v0", "Leaving-v0"):
        gymnasium.registry.pop(name, None)


@pytest.mark.parametrize("name", ["Ant-v5", "HalfCheetah-v5", "Humanoid-v5", "Reacher-v5", "gymnasium:Hopper-v5"])
def test_gymnasiums_own_environments_are_saved_exactly(name):
    assert is_saved_exactly(functools.partial(SavedEnvironment, name))


@pytest.mark.parametrize("name", ["Ant-v5", "Humanoid-v5"])  # the humanoid's own bounds are ±0.4
def test_rewards_and_ends_are_the_environments_own(name):
    env, own = SavedEnvironment(name), gymnasium.make(name)
    draw = np.random.default_rng(0)
    env.reset(seed=3)
    own.reset(seed=3)
    for _ in range(60):
        action = draw.uniform(-1, 1, env.action_space.shape).astype(np.float32)
        observation, reward, terminated, _, _ = env.step(action)
        _, expected, end, _, _ = own.step(action * own.action_space.high)
        assert (reward, terminated) == (expected, end)
        assert observation.shape == (env.layout.dim,)
        if end:
            break


def test_episodes_have_the_registered_length_or_another():
    assert SavedEnvironment("Reacher-v5").episode_steps == 50
    env = SavedEnvironment("HalfCheetah-v5", episode_steps=3)
    env.reset(seed=0)
    assert [env.step(np.zeros(6))[3] for _ in range(3)] == [False, False, True]
    with pytest.raises(SimulationError, match="finite numbers"):
        env.step(np.full(6, np.nan))
    with pytest.raises(EudaError, match="only after its first reset"):
        SavedEnvironment("HalfCheetah-v5").get_state()
    state = env.get_state()
    with pytest.raises(EudaError, match="does not belong to Hopper-v5"):
        SavedEnvironment("Hopper-v5").set_state(state)


def test_what_is_kept_within_an_episode_is_saved_and_what_is_kept_beyond_is_found_out(my_envs, monkeypatch):
    monkeypatch.syspath_prepend(str(my_envs))
    for name in ("Counting", "Growing"):
        trusted_code.name(f"my_envs:{name}-v0")
    assert is_saved_exactly(functools.partial(SavedEnvironment, "my_envs:Counting-v0"))
    assert not is_saved_exactly(functools.partial(SavedEnvironment, "my_envs:Growing-v0"))
    # Our own tasks draw their resets from a stream of dm_control's: train them by their names, which saves it.
    assert not is_saved_exactly(functools.partial(SavedEnvironment, "euda/cheetah_run-v0"))


class Crash(Silent):
    """Ends a session as kill -9 does: nothing is saved."""

    def __init__(self, at: int):
        super().__init__()
        self.at = at

    def step(self, step):
        if step == self.at:
            raise KeyboardInterrupt


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """A run of an environment that was left alone."""
    folder = tmp_path_factory.mktemp("environment") / "whole"
    assert cli.main(["train", "--env", "HalfCheetah-v5", "--out", str(folder), *TINY]) == 0
    return folder


def test_a_run_that_is_killed_ends_in_the_same_bytes(tmp_path, whole):
    """Even where the last checkpoint is in the middle of an episode."""
    config = run_folder.load(whole).config
    assert config.robot is not None
    assert config.robot.resumes_exactly
    with pytest.raises(KeyboardInterrupt):
        session.train(config, tmp_path / "killed", display=Crash(70))
    assert not stopped_at(config, tmp_path / "killed", 110).is_finished
    assert cli.main(["train", "--env", "HalfCheetah-v5", "--out", str(tmp_path / "killed"), *TINY]) == 0
    assert content(tmp_path / "killed") == content(whole)


def test_an_environment_by_itself_imports_nothing_that_the_user_did_not_name(my_envs, capsys):
    """The second door: whoever builds the environment, its module is imported only if this process was told to."""
    for make in (lambda: SavedEnvironment("my_envs:Counting-v0"), lambda: gymnasium_task.find("my_envs:Counting-v0")):
        with pytest.raises(EudaError, match="imported only if you name it: add --env my_envs:Counting-v0"):
            make()
    assert not (my_envs / "imported").exists()
    trusted_code.name("my_envs:Counting-v0")
    assert SavedEnvironment("my_envs:Counting-v0").task == "Counting-v0"
    assert (my_envs / "imported").exists()


def test_an_environment_of_ones_own_must_be_named_again(my_envs, capsys):
    assert cli.main(["train", "--env", "my_envs:Growing-v0", "--out", "run", *TINY]) == 0
    said = capsys.readouterr()
    assert "can be resumed, but not bit for bit" in said.err
    assert "--env my_envs:Growing-v0" in said.out
    stored = json.loads(Path("run/config.json").read_text())
    assert stored["task"] == "Growing-v0"
    assert (stored["robot"]["env"], stored["robot"]["resumes_exactly"]) == ("my_envs:Growing-v0", False)
    (my_envs / "imported").unlink()
    trusted_code._named.clear()
    sys.modules.pop("my_envs")
    assert "add --env my_envs:Growing-v0" in refused(capsys, "evaluate", "run")
    assert not (my_envs / "imported").exists()
    assert "does not fit this run" in refused(capsys, "evaluate", "run", "--env", "Ant-v5")
    assert cli.main(["evaluate", "run", "--env", "my_envs:Growing-v0", "--episodes", "1"]) == 0
    assert (my_envs / "imported").exists()


def test_an_environment_that_leaves_the_program_is_one_sentence(my_envs, capsys):
    error = refused(capsys, "train", "--env", "my_envs:Leaving-v0", "--out", "run", *TINY)
    assert "step of environment 'Leaving-v0' failed in line" in error
    assert "of 'my_envs.py': SystemExit: 0" in error


def test_frames_are_drawn_by_us():
    env = SavedEnvironment("Ant-v5", render_mode="rgb_array", width=64, height=48)
    env.reset(seed=0)
    frame = env.render()
    assert frame.shape == (48, 64, 3)
    assert frame.std() > 5
    env.close()


@pytest.mark.parametrize(
    ("words", "warns"), [((), True), (("--direction", "1", "0"), False), (("--share", "0"), False)]
)
def test_turning_without_a_direction_is_warned_of(capsys, words, warns):
    """The ant's reward follows world x."""
    assert cli.main(["train", "--env", "gymnasium:Ant-v5", "--dry-run", *words]) == 0
    config = RunConfig.from_json(json.loads(capsys.readouterr().out))
    assert any("otherwise name the direction" in sentence for sentence in cautions(config)) == warns


@pytest.mark.parametrize("features", ["joint", "limb-paper"])
def test_an_environment_has_the_other_features_too(features):
    """Those of the simulation inside, at every step."""
    ours = robot_config.simulation_of("Ant-v5", robot_flags.AimFlags(direction=(1.0, 0.0)), features, None)
    env = SavedEnvironment("Ant-v5", direction=(1, 0, 0), features=features)
    assert env.layout == ours.layout
    env.reset(seed=0)
    for action in np.random.default_rng(0).uniform(-1, 1, (8, 8)):
        observation = env.step(action)[0]
        ours.data.qpos[:], ours.data.qvel[:] = env._data.qpos, env._data.qvel
        mujoco.mj_forward(ours.model, ours.data)
        np.testing.assert_allclose(observation, ours.observer.observe(), rtol=0, atol=1e-6)
