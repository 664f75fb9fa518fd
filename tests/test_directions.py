"""Directions of travel: given, or drawn at every reset; what is observed and rewarded follows them."""

import json

import gymnasium
import numpy as np
import pytest
from robots import crawler, write

import euda
from euda import LimbObservation, ModelEnv, certify, make
from euda.body.features import FEATURES
from euda.errors import EudaError
from euda.reports import labels
from euda.runs import certificates, robot_config
from euda.runs.config import RunConfig
from euda.runs.environments import make_environment
from euda.runs.resolution import resolve
from euda.runs.robot_flags import RobotFlags
from euda.studies import plan
from euda.tasks import table
from euda.tasks.gymnasium_task import SavedEnvironment
from euda.terminal import cli

TRAVELLING = [name for name, row in table.TASKS.items() if row.travels]
PLANAR = [name for name in TRAVELLING if table.TASKS[name].original]
SLED = """
<mujoco><worldbody><geom type="plane" size="0 0 1"/>
  <body name="sled" pos="0 0 .2" {quat}>{slides}<geom type="box" size=".2 .1 .1"/>
    <body name="leg" pos=".2 0 0"><joint name="hip" axis="0 1 0" range="-60 60"/>
      <geom type="capsule" fromto="0 0 0 .1 0 -.1" size=".02"/></body></body></worldbody>
  <actuator><motor joint="hip" ctrlrange="-1 1"/></actuator></mujoco>"""
X, Y, Z = (f'<joint type="slide" axis="{axis}"/>' for axis in ("1 0 0", "0 1 0", "0 0 1"))


def drawn(env, count=40):
    """The directions of the first episodes [count, 3]."""
    env.reset(seed=0)
    directions = [env.robot.direction.copy()]
    for _ in range(count - 1):
        env.reset()
        directions.append(env.robot.direction.copy())
    return np.array(directions)


@pytest.mark.parametrize("name", TRAVELLING)
def test_a_drawn_direction_goes_wherever_the_robot_can(name):
    directions = drawn(make(name, direction="random"), 40 if name in PLANAR else 60)
    np.testing.assert_allclose(np.linalg.norm(directions, axis=1), 1)
    assert not directions[:, 2].any()
    if name in PLANAR:  # forwards or backwards
        assert set(directions[:, 0]) == {1.0, -1.0}
        assert 10 <= (directions[:, 0] > 0).sum() <= 30
    else:
        quarters = np.floor(np.arctan2(directions[:, 1], directions[:, 0]) / (np.pi / 2)).astype(int)
        assert np.bincount(quarters + 2, minlength=4).min() >= 6


@pytest.mark.parametrize("name", TRAVELLING)
def test_observations_show_it_and_rewards_follow_it(name):
    """Of the same states, along every direction: what is seen is the direction, and only the speed along it counts."""
    env, forward = make(name, direction="random"), make(name)
    observers = {features: table.observer(name, env.robot, features) for features in FEATURES}
    rng, seen = np.random.default_rng(0), set()
    for seed in range(4):
        env.reset(seed=seed)
        forward.reset(seed=seed)
        np.testing.assert_array_equal(env.data.qpos, forward.data.qpos)  # drawn last: the start is the same
        for _ in range(15):
            action = rng.uniform(-1, 1, env.action_space.shape)
            _, reward, *_ = env.step(action)
            forward.step(action)
            along = env.data.sensor("torso_subtreelinvel").data @ env.robot.direction
            forward.data.sensor("torso_subtreelinvel").data[:] = along, 0, 0
            assert reward == pytest.approx(forward.reward(), abs=1e-12)
            seen.add(reward)
        for observer in observers.values():
            shown = observer.observe_exactly()[observer.layout.slice("direction")]
            np.testing.assert_array_equal(shown, env.robot.direction)
    if "hop" not in name:  # a hopper that random actions topple earns nothing
        assert len(seen) > 20


@pytest.mark.parametrize("features", ["limb", "joint"])
@pytest.mark.parametrize("name", TRAVELLING)
def test_a_drawn_direction_is_part_of_the_state_and_of_the_stream(name, features):
    env, fresh = (make(name, features, direction="random") for _ in range(2))
    env.reset(seed=3)
    first = env.robot.direction.copy()
    env.reset()
    env.step(np.ones(env.action_space.shape))
    fresh.reset(seed=8)
    fresh.set_state(env.get_state())
    np.testing.assert_array_equal(fresh.robot.direction, env.robot.direction)
    np.testing.assert_array_equal(fresh.observe(), env.observe())
    for _ in range(3):
        np.testing.assert_array_equal(fresh.reset()[0], env.reset()[0])
        np.testing.assert_array_equal(fresh.robot.direction, env.robot.direction)
    env.reset(seed=3)
    np.testing.assert_array_equal(env.robot.direction, first)


@pytest.mark.parametrize("features", ["limb", "joint"])
def test_a_drawn_direction_turns_with_the_world(features):
    """With joint features too, which do not show a direction that never changes."""
    found = certify(lambda: make("hopper3d_hop", features, direction="random"), states=6, yaws=2)
    assert found.verdict == "exact"
    assert found.fields["direction"].kind == "vector"


def test_a_direction_of_ones_choice():
    env = make("cheetah3d_run", direction=(0, 2))
    env.reset(seed=0)
    np.testing.assert_array_equal(env.robot.direction, [0, 1, 0])
    assert "direction" not in make("cheetah3d_run", "joint", direction=(0, 2)).layout
    assert gymnasium.make("euda/walker3d_run-v0", direction="random").unwrapped.robot.is_direction_drawn


def test_robots_of_ones_own_draw_directions_too(tmp_path):
    path = write(tmp_path, crawler())
    env, fresh = (ModelEnv(path, direction="random", reward="run") for _ in range(2))
    directions = drawn(env)
    assert np.ptp(np.arctan2(directions[:, 1], directions[:, 0])) > 4
    observation, reward, *_ = env.step(np.ones(3))
    assert reward == pytest.approx(env.data.subtree_linvel[env.morphology.mount] @ env.robot.direction)
    np.testing.assert_allclose(observation[env.layout.slice("direction")], env.robot.direction, rtol=1e-6)
    fresh.set_state(env.get_state())
    np.testing.assert_array_equal(fresh.observe(), env.observe())
    np.testing.assert_array_equal(fresh.reset()[0], env.reset()[0])


@pytest.mark.parametrize(
    ("slides", "quat", "expected"),
    [
        (X + Z, "", [1, 0, 0]),
        (Y, "", [0, 1, 0]),
        (X + Z, 'quat="0.8 0 0 0.6"', [0.28, 0.96, 0]),
        (X + Y, "", None),
        ('<joint axis="0 0 1"/>' + Z, "", "can travel"),
    ],
    ids=["along x", "along y", "mounted at an angle", "over the floor", "nowhere"],
)
def test_a_planar_robot_goes_along_its_slides(tmp_path, slides, quat, expected):
    path = write(tmp_path, SLED.format(slides=slides, quat=quat))
    if isinstance(expected, str):
        with pytest.raises(EudaError, match=expected):
            ModelEnv(path, direction="random")
        return
    directions = drawn(ModelEnv(path, direction="random"))
    if expected is None:
        assert len(np.unique(directions, axis=0)) == 40
    else:
        signs = directions @ expected
        np.testing.assert_allclose(directions, np.outer(signs, expected), atol=1e-12)
        assert {round(sign) for sign in signs} == {1, -1}


def test_two_numbers_are_a_direction(tmp_path):
    path = write(tmp_path, crawler())
    np.testing.assert_allclose(ModelEnv(path, direction=(3, 4)).robot.direction, [0.6, 0.8, 0])
    np.testing.assert_allclose(ModelEnv(path, direction=np.array([0, 1])).robot.direction, [0, 1, 0])
    np.testing.assert_allclose(ModelEnv(path, direction=(0, 3, 4)).robot.direction, [0, 0.6, 0.8])


@pytest.mark.parametrize("bad", ["randon", (1,), (1, 2, 3, 4), (np.nan, 0), ("x", 0), 5, [[1, 0]]])
def test_what_is_no_direction(tmp_path, bad):
    for build in (
        lambda: ModelEnv(write(tmp_path, crawler()), direction=bad),
        lambda: make("walker_run", direction=bad),
    ):
        with pytest.raises(EudaError, match=r"a direction is two or three finite numbers .* or 'random', not"):
            build()


def test_directions_where_there_are_none():
    with pytest.raises(EudaError, match="'quadruped_run' has no direction of travel: those that have are cheetah_run"):
        make("quadruped_run", direction="random")
    for build in (lambda: LimbObservation(gymnasium.make("Ant-v5"), direction="random"),
                  lambda: SavedEnvironment("Ant-v5", direction="random")):  # fmt: skip
        with pytest.raises(EudaError, match="rewards as it likes"):
            build()


def test_a_run_keeps_that_directions_are_drawn(tmp_path):
    """From the words of the command line through the configuration of a run, in JSON, to the environment."""
    path = str(write(tmp_path, crawler()))
    robot = robot_config.of_file(path, RobotFlags(direction=("random",), reward="run"), "limb", None)
    config = RunConfig(robot.task, robot=robot)
    stored = RunConfig.from_json(json.loads(json.dumps(config.to_json())))
    assert stored.robot.direction == "random"
    assert robot_config.build(stored.robot, "limb", "default", 10).robot.is_direction_drawn
    with pytest.raises(EudaError, match="a direction is two or three numbers, or random, not 'to the north'"):
        _ = RobotFlags(direction=("to", "the", "north")).aim


def configured(capsys, *words):
    """The configuration that the command line makes of some words."""
    assert cli.main(["train", *words, "--dry-run"]) == 0
    return RunConfig.from_json(json.loads(capsys.readouterr().out))


def test_the_command_line_a_study_and_python_give_a_task_the_same_direction(capsys):
    toml = {"tasks": ["walker3d_run"], "seeds": [0], "methods": {"limb": {}}}
    for words, value, kept in (
        (["random"], "random", "random"),
        (["0", "-2"], [0, -2], (0.0, -1.0, 0.0)),
        (["0", "3", "4"], (0, 3, 4), (0.0, 0.6, 0.8)),
    ):
        typed = configured(capsys, "walker3d_run", "--method", "limb", "--direction", *words)
        (planned,) = plan.parse("study", toml | {"overrides": {"direction": value}}).runs
        assert typed == planned.config == resolve("walker3d_run", "limb", overrides={"direction": value})
        assert typed.direction == pytest.approx(kept) if isinstance(kept, tuple) else typed.direction == kept
        env, simulated = make_environment(typed), certificates.simulation(typed, "limb")
        assert env.robot.is_direction_drawn == simulated.robot.is_direction_drawn == (value == "random")
        if value != "random":
            np.testing.assert_allclose(env.robot.direction, kept)


def test_the_direction_is_part_of_a_run_and_the_tasks_own_is_none():
    own = resolve("walker3d_run")
    assert "direction" not in own.to_json()
    assert resolve("walker3d_run", overrides={"direction": [5, 0]}).identity == own.identity
    others = [resolve("walker3d_run", overrides={"direction": value}) for value in ("random", [0, 1], [0, -1])]
    assert len({config.identity for config in (own, *others)}) == 4
    sources = [labels.source(config, None, str(i)) for i, config in enumerate((own, *others))]
    curves = [one.curve for one in labels.told_apart(sources)]
    assert curves[0] == "swift rotate 100 % (direction none)"
    assert curves[1] == "swift rotate 100 % (direction random)"
    assert len(set(curves)) == 4


@pytest.mark.slow
def test_a_run_with_drawn_directions_is_trained_and_goes_on_exactly(tmp_path):
    small = {"replay": {"seed_steps": 10, "batch_size": 4}, "mlp": {"hidden_size": 8}}
    often = {"episode_steps": 10, "checkpoint_every": 20, "evaluation": {"every": 20, "episodes": 1}}
    settings = {"direction": "random", **small, **often}
    whole = euda.train("hopper3d_hop", "limb", steps=40, out=tmp_path / "whole", **settings)
    euda.train("hopper3d_hop", "limb", steps=20, out=tmp_path / "cut", **settings)
    cut = euda.train("hopper3d_hop", "limb", steps=40, out=tmp_path / "cut", **settings)
    assert (whole.folder / "policy.safetensors").read_bytes() == (cut.folder / "policy.safetensors").read_bytes()
    observations = np.fromfile(cut.replay / "observation.bin", np.float32)
    layout = make("hopper3d_hop", direction="random").layout
    seen = observations.reshape(-1, layout.dim)[:44, layout.slice("direction")]
    assert len(np.unique(seen[np.abs(seen).sum(1) > 0].round(4), axis=0)) == 4  # episodes


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["quadruped_run", "--direction", "random"], "task 'quadruped_run' has no direction of travel"),
        (["walker3d_run", "--direction", "north"], "a direction is two or three numbers, or random, not 'north'"),
        (["walker3d_run", "--direction", "1"], "a direction is two or three finite numbers"),
        (["walker3d_run", "--direction", "0", "0"], "a direction must not be zero"),
        (["walker3d_run", "--direction", "1", "0", "--reward", "run"], "--reward is only for custom robots"),
        (["cheetah_run", "--direction", "0", "1"], "slides along 1 0 0 and cannot travel along 0 1 0"),
    ],
)
def test_directions_that_a_task_cannot_have_are_one_sentence(tmp_path, monkeypatch, capsys, words, sentence):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("euda.terminal.process.prepare_training", lambda *where: "")
    assert cli.main(["train", *words, "--method", "limb", "--steps", "10", "--quiet"]) == 2
    error = capsys.readouterr().err
    assert sentence in error
    assert error.count("\n") == 1
    assert not list(tmp_path.iterdir())


def test_the_direction_of_ones_own_robot_belongs_to_the_robot(tmp_path):
    path = str(write(tmp_path, crawler()))
    with pytest.raises(EudaError, match="its direction is a setting of the robot"):
        euda.train(path, "limb", robot={"reward": "stand"}, direction="random", out=tmp_path / "run")
