"""Robots of one's own: rewards, resets, features, what is recorded and what is refused. Physics is the judge."""

import dataclasses
import json
import math
import os
import shutil
import sys
from pathlib import Path

import gymnasium
import mujoco
import numpy as np
import pytest
from robots import ARM, CART, crawler, write
from test_training import content, stopped_at

import euda
from euda import ModelEnv, trusted_code
from euda.body.fingerprint import content as model_content
from euda.body.naming import model_name
from euda.errors import EudaError
from euda.runs import robot_config, robot_flags, run_folder, session
from euda.runs.config import RunConfig
from euda.runs.evaluation import Evaluator, make_algorithm, make_environment
from euda.symmetry.certificate import certify
from euda.symmetry.sufficiency import sufficiency
from euda.tasks import rewards
from euda.terminal import cli

TRIPOD = Path(euda.__file__).parent / "examples" / "tripod.xml"
TINY = [
    *("--steps", "120", "--episode-steps", "40", "--checkpoint-every", "50", "--mlp.hidden-size", "8", "--quiet"),
    *("--replay.capacity", "100", "--replay.batch-size", "4", "--replay.seed-steps", "30"),
    *("--base", "paper", "--ddpg.exploration-steps", "20", "--evaluation.every", "60", "--evaluation.episodes", "2"),
    *("--ddpg.actor-every", "1", "--ddpg.target-every", "1"),  # one update to compile instead of two
]
ALONG = ("--reward", "run", "--direction", "1", "0")


@pytest.fixture(autouse=True)
def leave_this_process_alone(monkeypatch):
    monkeypatch.setattr("euda.runs.machine.use_one_thread", lambda: None)
    monkeypatch.setattr("euda.trusted_code._named", set())
    monkeypatch.setattr(sys, "path", list(sys.path))


def train(*words) -> int:
    return cli.main(["train", *map(str, words)])


def refused(capsys, *words) -> str:
    assert cli.main([str(word) for word in words]) == 2
    out, error = capsys.readouterr()
    assert out == ""
    assert error.startswith("euda: ")
    assert error.count("\n") == 1
    assert "Traceback" not in error
    return error


def module(monkeypatch, folder: Path, name: str, text: str) -> None:
    """A module of the user's own in the working directory."""
    (folder / f"{name}.py").write_text(text)
    monkeypatch.chdir(folder)
    monkeypatch.delitem(sys.modules, name, raising=False)


# -- rewards -----------------------------------------------------------------------------------------------


def test_a_reward_from_outside_is_one_row(monkeypatch, tmp_path):
    row = rewards.RewardRow(lambda robot: lambda: float(robot.data.qvel[2]), "upward speed")
    monkeypatch.setitem(rewards.REWARDS, "rise", row)
    env = ModelEnv(write(tmp_path, crawler()), reward="rise")
    env.reset(seed=0)
    assert env.step(np.ones(3))[1] == env.data.qvel[2] != 0


def test_run_is_the_speed_along_the_direction(tmp_path):
    env = ModelEnv(write(tmp_path, crawler()), direction=(0, 2, 0), reward="run", noise=0)
    env.reset(seed=0)
    env.data.qvel[:3] = (0.3, -0.4, 0.1)  # everything moves alike
    mujoco.mj_forward(env.model, env.data)
    assert env.reward() == pytest.approx(-0.4, abs=1e-12)
    env.robot.direction[:] = (0.6, 0.8, 0)
    assert env.reward() == pytest.approx(0.3 * 0.6 - 0.4 * 0.8, abs=1e-12)


def test_run_adds_up_to_the_distance_of_the_centre_of_mass():
    env = ModelEnv(TRIPOD, direction=(1, 0, 0), reward="run")
    env.reset(seed=0)
    root, draw = env.morphology.mount, np.random.default_rng(0)
    before, total = env.data.subtree_com[root, 0], 0.0
    for _ in range(100):
        total += env.step(draw.uniform(-1, 1, 6))[1]
    distance = env.data.subtree_com[root, 0] - before
    assert distance == pytest.approx(total * env.control_timestep, abs=0.02)


@pytest.mark.parametrize(("offset", "reward"), [((0, 0, 0), 1.0), ((0.1, 0, 0), 0.5), ((0.0, 0.18, 0.24), 0.25)])
def test_reach_is_one_at_the_target_and_a_half_at_ten_centimetres(tmp_path, offset, reward):
    env = ModelEnv(write(tmp_path, ARM), target=(0, 0, 0), limb="tip", reward="reach")
    env.reset(seed=3)
    tip = env.data.site("tip").xpos
    np.copyto(env.robot.target.place, tip + offset)
    assert env.reward() == pytest.approx(reward, abs=1e-12)
    named = ModelEnv(tmp_path / "robot.xml", target="goal", limb="tip", reward="reach")
    named.reset(seed=3)
    far = np.linalg.norm(named.data.site("tip").xpos - named.data.site("goal").xpos)
    assert named.reward() == pytest.approx(1 / (1 + 10 * far), abs=1e-12)


def test_stand_is_height_times_uprightness(tmp_path):
    env = ModelEnv(write(tmp_path, crawler()), reward="stand", noise=0)
    env.reset(seed=0)  # with a random heading
    assert env.reward() == pytest.approx(1.0, abs=1e-12)
    for height, roll, reward in ((0.7, 0, 1), (0.175, 0, 0.5), (0.175, 90, 0.25), (0.35, 180, 0), (-1.0, 0, 0)):
        half = math.radians(roll) / 2
        env.data.qpos[2], env.data.qpos[3:7] = height, (math.cos(half), math.sin(half), 0, 0)
        mujoco.mj_forward(env.model, env.data)
        assert env.reward() == pytest.approx(reward, abs=1e-12)


@pytest.mark.parametrize("features", ["limb", "limb-paper", "joint"])
@pytest.mark.parametrize(
    "options",
    [{"reward": "run", "direction": (1, 0, 0)}, {"reward": "stand"}, {"reward": "reach", "target": (0.5, 0.2, 0.3)}],
    ids=lambda options: options["reward"],
)
def test_built_in_rewards_turn_with_the_world(options, features):
    found = certify(lambda: ModelEnv(TRIPOD, **options, features=features), states=18, yaws=2)
    assert found.verdict == "exact"
    assert found.reward is not None
    assert found.states_with_contacts > 5


def along_x(model, data):
    return data.qvel[0]


def along_the_direction(model, data, direction):
    return data.qvel[:3] @ direction


def near(model, data, target=None):
    return -np.linalg.norm(data.xpos[1] - target)


def test_a_reward_along_a_world_axis_is_found_out_and_one_along_the_direction_is_exact():
    wrong = certify(lambda: ModelEnv(TRIPOD, direction=(1, 0, 0), reward=along_x), states=12)
    assert (wrong.dynamics.verdict, wrong.verdict) == ("exact", "broken")
    assert wrong.causes == (
        "the reward does not turn with the world although the dynamics do: it depends on world axes",
    )
    for options in ({"direction": (1, 0, 0), "reward": along_the_direction}, {"target": (1, 0, 0), "reward": near}):
        assert certify(lambda options=options: ModelEnv(TRIPOD, **options), states=12).verdict == "exact"


def fails(model, data):
    return {}["missing"]


def leaves(model, data):
    sys.exit()


@pytest.mark.parametrize(
    ("reward", "options", "says"),
    [
        ("run", {}, "reward 'run' needs a direction"),
        ("reach", {}, "reward 'reach' needs a target"),
        ("rnu", {}, "unknown reward 'rnu': did you mean 'run'"),
        (along_the_direction, {}, "asks for a direction: add --direction"),
        (lambda model: 0, {}, "takes 1 arguments"),
        (lambda model, data, colour: 0, {}, "asks for 'colour'"),
        (lambda model, data: "much", {}, r"must return a finite number, not 'much' \(str\)"),
        (lambda model, data: float("nan"), {}, r"must return a finite number, not nan \(float\)"),
        (lambda model, data: np.zeros(2), {}, "must return a finite number, not array"),
        (lambda model, data: None, {}, "must return a finite number, not None"),
        (fails, {}, r"failed in line \d+ of 'test_robots.py': KeyError: 'missing'"),
        (leaves, {}, r"failed in line \d+ of 'test_robots.py': SystemExit$"),
    ],
)
def test_rewards_that_cannot_be_used(reward, options, says):
    def use():
        env = ModelEnv(TRIPOD, reward=reward, **options)
        env.reset(seed=0)
        env.step(np.zeros(6))

    with pytest.raises(EudaError, match=says):
        use()


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"reward": "run", "direction": (1, 0, 0)}, "the base of this one is fixed"),
        ({"reward": "stand"}, "the base of this one is fixed"),
        ({"fall_below": 0.1}, "the base of this one is fixed"),
        ({"random_heading": True}, "needs a robot with a free root"),
        ({"noise": 2}, "noise must be between 0 and 1"),
        ({"control_timestep": 0}, "control_timestep must be a positive"),
        ({"features": "limbs"}, "unknown features"),
    ],
)
def test_what_a_fixed_arm_cannot_have(tmp_path, options, says):
    with pytest.raises(EudaError, match=says):
        ModelEnv(write(tmp_path, ARM), **options)


# -- resets, ends and state --------------------------------------------------------------------------------


def headings(env, count=40):
    starts = [env.reset(seed=seed) and env.data.xmat[env.morphology.mount][[0, 3]].copy() for seed in range(count)]
    return np.array([math.atan2(y, x) for x, y in starts])


def test_episodes_begin_at_the_keyframe_within_the_noise(tmp_path):
    key = '<keyframe><key qpos="0 0 .5 1 0 0 0 .2 -.3 .1" qvel=".5 0 0 0 0 0 0 0 0"/></keyframe></mujoco>'
    path = write(tmp_path, crawler().replace("</mujoco>", key))
    env = ModelEnv(path, direction=(1, 0, 0))
    starts = np.array([env.reset(seed=seed) and env.data.qpos.copy() for seed in range(50)])
    span = np.deg2rad(120)
    assert (starts[:, :3] == (0, 0, 0.5)).all()
    away = starts[:, 7:] - (0.2, -0.3, 0.1)
    assert (np.abs(away) <= 0.1 * span + 1e-12).all()
    assert (away.std(axis=0) > 0.03 * span).all()
    still = ModelEnv(path, direction=(1, 0, 0), noise=0)
    still.reset(seed=1)
    np.testing.assert_array_equal(still.data.qpos, (0, 0, 0.5, 1, 0, 0, 0, 0.2, -0.3, 0.1))
    np.testing.assert_array_equal(still.data.qvel, (0.5, 0, 0, 0, 0, 0, 0, 0, 0))
    np.testing.assert_array_equal(ModelEnv(path, direction=(1, 0, 0)).reset(seed=7)[0], env.reset(seed=7)[0])


def test_a_compiled_model_is_as_good_as_its_file_and_stays_as_it_is():
    model = mujoco.MjModel.from_xml_string(TRIPOD.read_text().replace("elliptic", "pyramidal"))
    assert (ModelEnv(model, "elliptic").cone, ModelEnv(model).cone) == ("elliptic", "pyramidal")
    model = mujoco.MjModel.from_xml_path(str(TRIPOD))
    before = model_content(model)
    built, read = (
        ModelEnv(model, direction=(1, 0, 0), reward="run"),
        ModelEnv(TRIPOD, direction=(1, 0, 0), reward="run"),
    )
    assert (built.task, read.task) == ("tripod", "tripod")
    np.testing.assert_array_equal(built.reset(seed=3)[0], read.reset(seed=3)[0])
    for action in np.random.default_rng(0).uniform(-1, 1, (20, model.nu)):
        ours, theirs = built.step(action), read.step(action)
        np.testing.assert_array_equal(ours[0], theirs[0])
        assert ours[1] == theirs[1]
    certify(lambda: ModelEnv(model), states=3, yaws=1)
    assert model_content(model) == before


@pytest.mark.parametrize("name", ["Ant-v5", "HalfCheetah-v5", "Humanoid-v5"])
def test_the_simulation_of_an_environment_steps_as_the_environment_does(name):
    ours = robot_config.simulation_of(name, robot_flags.AimFlags(), "limb", None)
    theirs = gymnasium.make(name).unwrapped
    theirs.reset(seed=0)
    for action in np.random.default_rng(0).uniform(-1, 1, (10, ours.model.nu)):
        ours.reset()
        ours.data.qpos[:], ours.data.qvel[:] = theirs.data.qpos, theirs.data.qvel
        ours.data.qacc_warmstart[:] = theirs.data.qacc_warmstart
        mujoco.mj_step1(ours.model, ours.data)
        low, high = theirs.action_space.low, theirs.action_space.high
        theirs.step(low + (action + 1) / 2 * (high - low))
        ours.step(action)
        np.testing.assert_allclose(ours.data.qpos, theirs.data.qpos, rtol=0, atol=1e-6)
        np.testing.assert_allclose(ours.data.qvel, theirs.data.qvel, rtol=0, atol=1e-4)


def test_headings_are_random_without_an_aim_and_as_built_with_one():
    spread = np.sort(headings(ModelEnv(TRIPOD)))
    assert spread[0] < -2.5
    assert spread[-1] > 2.5
    assert np.abs(headings(ModelEnv(TRIPOD, direction=(1, 0, 0)))).max() < 1e-12
    assert np.abs(headings(ModelEnv(TRIPOD, target=(1, 0, 0)))).max() < 1e-12
    assert np.abs(headings(ModelEnv(TRIPOD, random_heading=False))).max() < 1e-12
    assert np.ptp(headings(ModelEnv(TRIPOD, direction=(1, 0, 0), random_heading=True))) > 5


def test_hinges_without_limits_begin_differently_too(tmp_path):
    env = ModelEnv(write(tmp_path, ARM))
    starts = np.array([env.reset(seed=seed) and env.data.qpos[:3].copy() for seed in range(20)])
    assert (starts.std(axis=0) > 0.1).all()
    assert np.abs(starts).max() <= 0.2 * math.pi


def test_an_episode_ends_when_the_robot_is_too_low():
    env = ModelEnv(TRIPOD, reward="stand", fall_below=0.1, episode_steps=500)
    env.reset(seed=0)
    curl = np.tile([0.0, -1.0], 3)  # lift all legs
    ends = [env.step(curl)[2:4] for _ in range(60)]
    first = ends.index((True, False))
    assert 2 < first < 40
    assert all(end == (False, False) for end in ends[:first])


@pytest.mark.parametrize("options", [{}, {"direction": (1, 0, 0)}, {"target": (1, 0, 0.1), "features": "joint"}])
def test_state_goes_on_bit_by_bit_in_a_fresh_environment(options):
    env, fresh = ModelEnv(TRIPOD, **options), ModelEnv(TRIPOD, **options)
    draw = np.random.default_rng(0)
    env.reset(seed=5)
    for _ in range(20):
        env.step(draw.uniform(-1, 1, 6))
    fresh.set_state(env.get_state())
    for _ in range(20):
        action = draw.uniform(-1, 1, 6)
        one, two = env.step(action), fresh.step(action)
        np.testing.assert_array_equal(one[0], two[0])
        assert one[1:4] == two[1:4]
    for _ in range(3):  # the stream of resets goes on too
        np.testing.assert_array_equal(env.reset()[0], fresh.reset()[0])


@pytest.mark.parametrize("xml", [crawler(), CART, ARM, TRIPOD.read_text()], ids=["crawler", "cart", "arm", "tripod"])
def test_joint_features_of_any_robot_are_sufficient_and_turn(tmp_path, xml):
    path = write(tmp_path, xml)
    found = sufficiency(ModelEnv(path, features="joint"))
    assert found.is_sufficient
    certificate = certify(lambda: ModelEnv(path, "elliptic", features="joint"), states=12, yaws=2)
    # The arm's loose ball is an ellipsoid, whose contacts are found by iteration.
    assert all(field.verdict.startswith("exact") for field in certificate.fields.values())


# -- what a model is ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("before", "after", "changed"),
    [
        ('gear="8"', 'gear="9"', {"actuators"}),
        ('timestep="0.005"', 'timestep="0.004"', {"options"}),
        ('name="left_leg"', 'name="the_left_leg"', {"geoms"}),
        ('range="-60 60"', 'range="-61 60"', {"joints"}),
        ('<gyro name="gyro" site="sole"/>', "", {"sensors"}),
        ("<geom", '<geom rgba="1 0 0 1"', set()),
        ("<worldbody>", '<worldbody><light pos="0 0 3"/><camera name="eye"/>', set()),
    ],
)
def test_what_changes_a_model_is_named_and_its_looks_are_no_part_of_it(before, after, changed):
    one, two = (
        model_content(mujoco.MjModel.from_xml_string(xml)) for xml in (crawler(), crawler().replace(before, after))
    )
    assert set(robot_config.changed_parts(one, two)) == changed


def test_included_files_and_meshes_count(tmp_path):
    part = '<mujocoinclude><body name="tail" pos="-.2 0 0"><geom size="{}"/></body></mujocoinclude>'
    (tmp_path / "tail.xml").write_text(part.format(0.02))
    path = write(tmp_path, crawler().replace('<body name="left"', '<include file="tail.xml"/><body name="left"', 1))
    one = model_content(ModelEnv(path).model)
    (tmp_path / "tail.xml").write_text(part.format(0.03))
    assert set(robot_config.changed_parts(one, model_content(ModelEnv(path).model))) >= {"geoms", "bodies"}


# -- runs --------------------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """A run of the example robot."""
    folder = tmp_path_factory.mktemp("robot")
    (folder / "tripod.xml").write_text(TRIPOD.read_text())
    assert train(folder / "tripod.xml", *ALONG, "--out", folder / "run", *TINY) == 0
    return folder


def test_a_run_records_the_robot_and_everything_about_it(finished):
    config = run_folder.load(finished / "run").config
    assert (config.task, config.label) == ("tripod", "rotate 0.5")
    assert config.folder_name == "tripod/rotate-0.5-seed0"
    robot = config.robot
    assert robot is not None
    assert (robot.reward, robot.direction, robot.target) == ("run", (1.0, 0.0, 0.0), None)
    assert (robot.control_timestep, robot.substeps, robot.reset_noise) == (0.02, 4, 0.1)
    assert robot.model == model_content(ModelEnv(TRIPOD).model)
    assert RunConfig.from_json(json.loads(json.dumps(config.to_json()))) == config
    elsewhere = dataclasses.replace(config, robot=dataclasses.replace(robot, path="elsewhere/scene.xml"), task="scene")
    assert elsewhere.identity == config.identity
    assert dataclasses.replace(config, robot=dataclasses.replace(robot, reward="stand")).identity != config.identity


def test_tasks_have_no_robot_in_their_configuration():
    """So that runs which were begun before there were robots go on."""
    config = RunConfig("reacher_hard")
    assert "robot" not in config.to_json()
    assert "robot" not in json.dumps(config.to_json())


@pytest.mark.parametrize("ends", [(), ("--fall-below", "0.11")])
def test_a_stopped_run_ends_in_the_same_bytes(tmp_path, ends):
    words = ["train", str(TRIPOD), *ALONG, *ends, *TINY]
    assert cli.main([*words, "--out", str(tmp_path / "whole")]) == 0
    config = run_folder.load(tmp_path / "whole").config
    for step in (33, 77):
        assert not stopped_at(config, tmp_path / "stopped", step).is_finished
    assert cli.main([*words, "--out", str(tmp_path / "stopped")]) == 0
    assert content(tmp_path / "stopped") == content(tmp_path / "whole")
    if ends:
        episodes = [event for event in run_folder.load(tmp_path / "whole").events() if event["event"] == "train"]
        assert len(episodes) > 3  # some ended early


@pytest.mark.parametrize(
    "words",
    [
        ("--method", "ddpg"),
        ("--method", "joint-rotate", "--share", "1"),
        ("--agent", "sac", "--sensors", "gyro", "front_touch"),
        ("--features", "limb-paper", "--cone", "elliptic"),
        ("--method", "segnn-single"),
    ],
)
def test_every_method_has_its_environment(capsys, words):
    assert train(TRIPOD, *ALONG, *words, "--dry-run") == 0
    config = RunConfig.from_json(json.loads(capsys.readouterr().out))
    env = make_environment(config)
    observation, _ = env.reset(seed=0)
    assert observation.shape == (env.layout.dim,)
    assert env.layout.dim == make_algorithm(config, env.layout, 6).features


def test_returns_count_until_the_end_of_an_episode(finished):
    config = run_folder.load(finished / "run").config
    robot = dataclasses.replace(config.robot, reward="stand", direction=None, fall_below=0.1)
    evaluator = Evaluator(dataclasses.replace(config, robot=robot, episode_steps=60), 2)
    curl = np.tile([0.0, -1.0], 3)
    short = evaluator(lambda observations: np.tile(curl, (len(observations), 1)), [0, 1])
    standing = evaluator(lambda observations: np.zeros((len(observations), 6)), [0, 1])
    assert max(short) < 30 < min(standing)


def test_evaluate_video_and_list(finished, capsys, tmp_path):
    last = [event for event in run_folder.load(finished / "run").events() if event["event"] == "eval"][-1]
    assert cli.main(["evaluate", str(finished / "run"), "--episodes", "2", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["returns"] == last["returns"]
    assert cli.main(["runs", str(finished)]) == 0
    assert " tripod " in capsys.readouterr().out
    film = tmp_path / "film.mp4"
    assert cli.main(["video", str(finished / "run"), "--out", str(film), "--width", "64", "--height", "48"]) == 0
    assert film.read_bytes()[4:8] == b"ftyp"


def test_a_robot_that_moved_is_found_again_and_one_that_changed_is_refused(finished, tmp_path, capsys):
    folder = tmp_path / "robot"
    folder.mkdir()
    path, here = folder / "tripod.xml", folder / "run"
    path.write_text(TRIPOD.read_text())
    assert train(path, *ALONG, "--out", here, *TINY) == 0
    capsys.readouterr()
    moved = path.rename(folder / "moved.xml")
    error = refused(capsys, "evaluate", here)
    assert "is no longer at" in error
    assert "--robot PATH" in error
    assert cli.main(["evaluate", str(here), "--robot", str(moved), "--episodes", "1"]) == 0
    assert train(moved, *ALONG, "--out", here, *TINY) == 0  # complete, whatever its file is called
    capsys.readouterr()
    path.write_text(TRIPOD.read_text().replace('kp="15"', 'kp="16"').replace('friction="1"', 'friction=".9"'))
    before = (here / "config.json").read_bytes()
    for words in (("evaluate", here), ("video", here, "--out", tmp_path / "film.mp4")):
        assert "is no longer the robot of this run: its geoms, actuators changed" in refused(capsys, *words)
    error = refused(capsys, "train", path, *ALONG, "--out", here, *TINY)
    assert "the robot itself has changed since the run began: its geoms, actuators" in error
    assert (here / "config.json").read_bytes() == before
    path.write_text(TRIPOD.read_text().replace('rgba=".95 .8 .3 1"', 'rgba="1 0 0 1"'))  # painted
    assert train(path, *ALONG, "--out", here, *TINY) == 0


def test_a_run_finds_its_robot_from_any_working_directory(tmp_path, monkeypatch, capsys):
    """Stored is the way from the run to the file: nothing of this machine, and both can move together."""
    project, elsewhere = tmp_path / "project", tmp_path / "elsewhere"
    for folder in (project / "robots", elsewhere):
        folder.mkdir(parents=True)
    (project / "robots" / "tripod.xml").write_text(TRIPOD.read_text())
    monkeypatch.chdir(project)
    assert train("robots/tripod.xml", *ALONG, "--out", "runs/one", *TINY) == 0
    assert json.loads(Path("runs/one/config.json").read_text())["robot"]["path"] == "../../robots/tripod.xml"
    assert run_folder.load(Path("runs/one")).config.robot.path == "robots/tripod.xml"
    last = [event for event in run_folder.load(Path("runs/one")).events() if event["event"] == "eval"][-1]["returns"]

    monkeypatch.chdir(elsewhere)
    assert euda.evaluate("../project/runs/one", 2) == last
    assert train("../project/robots/tripod.xml", *ALONG, "--out", "../project/runs/one", *TINY, "--steps", "130") == 0
    project.rename(tmp_path / "renamed")
    (elsewhere / "link").symlink_to(tmp_path / "renamed" / "runs" / "one")
    assert cli.main(["evaluate", "link", "--episodes", "1"]) == 0
    (tmp_path / "renamed" / "runs" / "one").rename(elsewhere / "alone")
    capsys.readouterr()
    assert "is no longer at '../../robots/tripod.xml'" in refused(capsys, "evaluate", "alone")
    with pytest.raises(EudaError, match=r"is no longer at .*tripod.xml'"):
        euda.evaluate("alone")


def test_a_run_of_an_earlier_version_has_the_path_as_it_was_typed(finished, tmp_path, monkeypatch):
    shutil.copytree(finished / "run", tmp_path / "run")
    stored = json.loads((tmp_path / "run" / "config.json").read_text())
    stored["robot"]["path"], stored["task"] = "tripod.xml", "tripod.xml"
    (tmp_path / "run" / "config.json").write_text(json.dumps(stored))
    monkeypatch.chdir(finished)
    assert cli.main(["evaluate", str(tmp_path / "run"), "--episodes", "1"]) == 0
    assert train("tripod.xml", *ALONG, "--out", tmp_path / "run", *TINY) == 0


NAMES = [
    ("go1/scene.xml", "<mujoco model='go1 scene'/>", "go1 scene", "go1-scene"),
    ("go1/scene.xml", "<!-- <mujoco model='no'> --><mujoco/>", "go1", "go1"),
    ("go1/leg.xml", "<mujoco/>", "leg", "leg"),
    ("go1/scene.urdf", "<robot name='go1'/>", "go1", "go1"),
    ("go1/scene.xml", "<mujoco model=' ../a&#9;b '/>", "../a b", "a-b"),
    ("go1/scene.xml", "<mujoco model='..'/>", "..", "robot"),
    ("go1/scene.mjb", "\0", "go1", "go1"),
]


@pytest.mark.parametrize(("path", "text", "name", "folder"), NAMES)
def test_robots_are_named_after_their_model_then_their_folder(tmp_path, path, text, name, folder):
    """Every published robot's file is called scene.xml."""
    (tmp_path / "go1").mkdir()
    (tmp_path / path).write_text(text)
    robot = robot_config.RobotConfig(str(tmp_path / path), None, {}, "run")
    assert robot.task == model_name(tmp_path / path) == name
    assert RunConfig(robot.task, robot=robot).folder_name == f"{folder}/limb-seed0"


def test_a_scene_is_a_heading_and_a_folder_under_its_models_name(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    Path("go9").mkdir()
    Path("go9/scene.xml").write_text(TRIPOD.read_text().replace('model="tripod"', 'model="go9 scene"'))
    assert train("go9/scene.xml", *ALONG, *[word for word in TINY if word != "--quiet"]) == 0
    assert capsys.readouterr().out.startswith("go9 scene, rotate 0.5, seed 0: to step 120")
    assert run_folder.is_run(Path("runs/go9-scene/rotate-0.5-seed0"))
    assert ModelEnv("go9/scene.xml").task == "go9 scene"  # the heading of certificates


# -- code of one's own -------------------------------------------------------------------------------------

REWARDS = """
from pathlib import Path
Path("imported").touch()
SPEED = 3

def forward(model, data, direction):
    return data.qvel[:3] @ direction

def nothing(model, data):
    return None
"""


def test_code_is_imported_only_if_the_user_names_it(tmp_path, monkeypatch, capsys):
    module(monkeypatch, tmp_path, "my_rewards", REWARDS)
    words = (TRIPOD, "--reward", "my_rewards:forward", "--direction", "1", "0", "--out", "run", *TINY)
    assert train(*words) == 0
    assert "--reward my_rewards:forward" in capsys.readouterr().out
    (tmp_path / "imported").unlink()
    for names in (trusted_code._named, sys.modules):  # as in another process
        names.discard("my_rewards:forward") if isinstance(names, set) else names.pop("my_rewards")
    for command in (["evaluate", "run"], ["video", "run", "--out", "film.mp4"]):
        error = refused(capsys, *command)
        assert "imported only if you name it: add --reward my_rewards:forward" in error
    with pytest.raises(EudaError, match="imported only if you name it"):
        session.train(dataclasses.replace(run_folder.load(Path("run")).config, steps=130), Path("run"))
    assert not (tmp_path / "imported").exists()
    assert "does not fit this run" in refused(capsys, "evaluate", "run", "--reward", "my_rewards:nothing")
    assert cli.main(["evaluate", "run", "--reward", "my_rewards:forward", "--episodes", "1"]) == 0
    assert (tmp_path / "imported").exists()


def test_a_reward_that_changed_is_refused(tmp_path, monkeypatch, capsys):
    module(monkeypatch, tmp_path, "my_rewards", REWARDS)
    words = (TRIPOD, "--reward", "my_rewards:forward", "--direction", "1", "0", "--out", "run", *TINY)
    assert train(*words) == 0
    capsys.readouterr()
    module(monkeypatch, tmp_path, "my_rewards", REWARDS.replace("@ direction", "@ direction * 20"))
    import linecache

    linecache.checkcache()
    assert "its text changed" in refused(capsys, "evaluate", "run", "--reward", "my_rewards:forward")
    assert "robot.reward_text" in refused(capsys, "train", *words)


QUITTING = """
import sys
calls = 0

def forward(model, data):
    global calls
    calls += 1
    if calls > 300:
        sys.exit()
    return 1.0
"""


def test_a_reward_that_leaves_the_program_fails_the_run_and_loses_nothing(tmp_path, monkeypatch, capsys):
    module(monkeypatch, tmp_path, "my_quitter", QUITTING)
    words = ("--reward", "my_quitter:forward", "--trust-symmetry")  # its calls are counted
    error = refused(capsys, "train", TRIPOD, *words, "--out", "run", *TINY)
    assert "reward 'my_quitter:forward' failed in line 9 of 'my_quitter.py': SystemExit; the checkpoint" in error
    newest, _ = run_folder.load(Path("run")).newest_checkpoint()
    assert f"the checkpoint of step {newest.step} is intact" in error


def test_a_module_that_leaves_the_program_when_imported_is_refused(tmp_path, monkeypatch, capsys):
    module(monkeypatch, tmp_path, "my_script", "import sys\nsys.exit(0)\n")
    for words in ((TRIPOD, "--reward", "my_script:forward"), ("--env", "my_script:Ant-v5")):
        assert "cannot import 'my_script': SystemExit: 0" in refused(capsys, "train", *words)


BAD = [
    (["nowhere.xml", *ALONG], "no model file at 'nowhere.xml'"),
    (["{tmp}/robot.xml"], "needs a reward: add --reward run, reach, stand or your module:function"),
    (["{tmp}/robot.xml", "--reward", "rnu"], "unknown reward 'rnu': did you mean 'run'"),
    (["{tmp}/robot.xml", "--reward", "run"], "needs a direction of travel"),
    (["{tmp}/robot.xml", "--reward", "reach"], "needs a target"),
    (["{tmp}/robot.xml", "--reward", "my_rewards:"], "is named module:function, not 'my_rewards:'"),
    (["{tmp}/robot.xml", "--reward", ":forward"], "is named module:function, not ':forward'"),
    (["{tmp}/robot.xml", "--reward", "no_such_module:forward"], "cannot import 'no_such_module'"),
    (["{tmp}/robot.xml", "--reward", "my_rewards:forwards"], "did you mean 'forward'"),
    (["{tmp}/robot.xml", "--reward", "my_rewards:SPEED"], "is not a function but int"),
    (["{tmp}/robot.xml", "--reward", "my_rewards:nothing"], "must return a finite number, not None"),
    (["{tmp}/robot.xml", "--reward", "my_rewards:forward"], "asks for a direction"),
    (["{tmp}/robot.xml", *ALONG, "--target", "sole"], "not both"),
    (["{tmp}/robot.xml", "--reward", "run", "--direction", "1"], "a direction is two or three"),
    (
        ["{tmp}/robot.xml", "--reward", "run", "--direction", "1", "0", "0", "0"],
        "a direction is two or three",
    ),
    (["{tmp}/robot.xml", "--reward", "run", "--direction", "0", "0"], "must not be zero"),
    (["{tmp}/robot.xml", "--reward", "run", "--direction", "east", "0"], "east"),
    (["{tmp}/robot.xml", "--reward", "reach", "--target", "1", "2"], "one name or three numbers"),
    (["{tmp}/robot.xml", "--reward", "reach", "--target", "soul"], "did you mean 'sole'"),
    (["{tmp}/robot.xml", "--reward", "reach", "--target", "1", "0", "0", "--limb", "hand"], "'hand'"),
    (["{tmp}/robot.xml", *ALONG, "--env", "Ant-v5"], "not both"),
    (["{tmp}/robot.xml", *ALONG, "--heading", "north"], "unknown heading 'north'"),
    (["{tmp}/robot.xml", *ALONG, "--fall-below", "1"], "lower --fall-below"),
    (["{tmp}/robot.xml", *ALONG, "--control-timestep", "0"], "control_timestep must be"),
    (["{tmp}/robot.xml", *ALONG, "--reset-noise", "3"], "noise must be between 0 and 1"),
    (["{tmp}/robot.xml", *ALONG, "--sensors", "compass"], "has no known behaviour under a yaw"),
    (["{tmp}/robot.xml", *ALONG, "--method", "segnn"], "segnn"),
    (["reacher_hard", *ALONG], "--reward is only for custom robots"),
    (["--env", "Ant-v6"], "did you mean 'Ant-v5'"),
    (["--env", "no_such_module:Ant-v5"], "cannot import 'no_such_module'"),
    (["--env", "CartPole-v1"], "is not a MuJoCo environment"),
    (["--env", "module:"], "is named Id or module:Id"),
    (["--env", "Ant-v5", "--reward", "run"], "--reward only works with MJCF files"),
    (["--env", "Ant-v5", "--features", "joints"], "unknown features 'joints'"),
    (["--env", "Ant-v5", "--cone", "elliptic"], "--cone elliptic only works with"),
    ([], "train what?"),
]


@pytest.mark.parametrize(("words", "says"), BAD, ids=[" ".join(words) for words, _ in BAD])
def test_bad_input_is_one_sentence_and_writes_nothing(tmp_path, monkeypatch, capsys, words, says):
    write(tmp_path, crawler())
    module(monkeypatch, tmp_path, "my_rewards", REWARDS.replace('Path("imported").touch()', ""))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    monkeypatch.setattr(session, "train", lambda *_, **__: pytest.fail("it was not refused"))
    before = sorted(os.listdir(tmp_path))
    assert says in refused(capsys, "train", *(word.format(tmp=tmp_path) for word in words))
    assert sorted(os.listdir(tmp_path)) == before


def test_flags_of_robots_do_not_fit_runs_of_tasks(tmp_path, capsys):
    with run_folder.opened(tmp_path / "run", RunConfig("reacher_hard")):
        pass
    error = refused(capsys, "evaluate", tmp_path / "run", "--reward", "run")
    assert "--reward is for runs of custom robots" in error
