"""Studies and `euda.train` with robots of one's own."""

import json
import subprocess
import sys

import pytest
import robots

import euda
from euda.errors import EudaError
from euda.runs import run_folder
from euda.studies import plan
from euda.terminal import cli

STUDY = """
tasks = ["robot.xml", "reacher_hard"]
seeds = [0, 1]
steps = 40
[robots."robot.xml"]
reward = "run"
direction = [1, 0]
control_timestep = 0.05
[methods.limb]
[methods.rotate]
shares = {"robot.xml" = 1.0, reacher_hard = 0.25}
[overrides]
episode_steps = 10
mlp.hidden_size = 8
replay.seed_steps = 10
replay.batch_size = 8
evaluation = {every = 20, episodes = 2}
sac = {actor_every = 1, target_every = 1}  # one update to trace instead of two
"""


def write(folder, text=STUDY):
    robots.write(folder, robots.crawler())
    path = folder / "own.toml"
    path.write_text(text)
    return path


def test_a_robot_is_a_task_of_a_study(tmp_path):
    found = plan.load(write(tmp_path))
    assert found.tasks == ("robot", "reacher_hard")
    assert len(found.runs) == 8
    first = found.runs[0].config
    assert first.robot.path == str(tmp_path / "robot.xml")
    assert (first.robot.reward, first.robot.direction, first.robot.substeps) == ("run", (1.0, 0.0, 0.0), 10)
    assert first.folder_name == "robot/swift-limb-seed0"
    assert all((p.config.robot is None) == (p.config.task == "reacher_hard") for p in found.runs)
    assert {(p.config.task, p.config.augmentation.share) for p in found.runs if p.curve == "rotate"} == {
        ("robot", 1.0),
        ("reacher_hard", 0.25),
    }


def test_a_study_trains_it_and_goes_on_as_euda_train_would(tmp_path, capsys):
    text = STUDY.replace(', "reacher_hard"', "").replace(", reacher_hard = 0.25", "").replace("[0, 1]", "[0]")
    study, runs = write(tmp_path, text), tmp_path / "runs"
    assert cli.main(["study", "run", str(study), "--runs", str(runs)]) == 0
    assert "2 of 2 runs are complete" in capsys.readouterr().out
    folders = run_folder.find(runs)
    assert len(folders) == 2
    out = tmp_path / "report"
    assert cli.main(["report", str(study), "--runs", str(runs), "--out", str(out)]) == 0
    page = (out / "report.html").read_text()
    assert "robot.xml" in page
    assert str(tmp_path) not in page  # pages are passed on
    assert json.loads((out / "summary.json").read_text())["rows"][0]["task"] == "robot"

    # The command line has the same run, bit for bit; in a process of its own, because JAX keeps the number of threads
    # that it was first used with, and sums are rounded otherwise with another.
    same = ["train", "robot.xml", "--method", "limb", "--steps", "40", "--reward", "run", "--direction", "1", "0",
            "--control-timestep", "0.05", "--episode-steps", "10", "--mlp.hidden-size", "8", "--quiet",
            "--replay.seed-steps", "10", "--replay.batch-size", "8", "--evaluation.every", "20",
            "--evaluation.episodes", "2", "--sac.actor-every", "1", "--sac.target-every", "1",
            "--out", "single"]  # fmt: skip
    command = [sys.executable, "-m", "euda.terminal.cli", *same]
    subprocess.run(command, cwd=tmp_path, check=True, timeout=300)
    in_study = next(folder for folder in folders if folder.name.startswith("swift-limb-seed0"))
    policies = [(folder / "policy.safetensors").read_bytes() for folder in (in_study, tmp_path / "single")]
    assert policies[0] == policies[1]


BAD = [
    ('reward = "run"', "", "reward is missing: one of run"),
    ('reward = "run"', 'reward = "os:abort"', "unknown reward 'os:abort'"),
    ('reward = "run"', "reward = [3]", "reward must be a text, not [3]"),
    ("direction = [1, 0]", "direction = 1", "direction must be a list"),
    ("direction = [1, 0]", 'direction = ["x", 0]', "a direction is two or three numbers, or random, not 'x 0.0'"),
    ("direction = [1, 0]", 'direction = "north"', "a direction is two or three numbers, or random, not 'north'"),
    ("direction = [1, 0]", "", "direction"),
    ("direction = [1, 0]", "directoin = [1, 0]", "did you mean 'direction'"),
    ("direction = [1, 0]", "direction = [1, 0]\nallow_loops = 1", "allow_loops must be true or false"),
    ("direction = [1, 0]", "direction = [1, 0]\nsensors = [1]", "sensors must be a list of texts, not 1"),
    ("control_timestep = 0.05", 'control_timestep = "fast"', "control_timestep must be a finite number, not 'fast'"),
    ('tasks = ["robot.xml", ', "tasks = [", "is in no list of tasks"),
    ('[robots."robot.xml"]', '[robots."other.xml"]', "'robot.xml' needs a table [robots.'robot.xml']"),
    ('[robots."robot.xml"]', "[robots.crawler]", "must be named after an MJCF file"),
    ('tasks = ["robot.xml"', 'tasks = ["robot.xml", "robot.xml"', "is listed twice"),
]


@pytest.mark.parametrize(("old", "new", "words"), BAD, ids=[words for *_, words in BAD])
def test_bad_robots_are_refused_in_one_sentence(old, new, words, tmp_path, capsys):
    assert old in STUDY
    assert cli.main(["study", "show", str(write(tmp_path, STUDY.replace(old, new))), "--no-measure"]) == 2
    error = capsys.readouterr().err.strip()
    assert words in error
    assert "\n" not in error


TWO = """
tasks = ["one/scene.xml", "two/scene.xml"]
seeds = [0]
steps = 40
[robots."one/scene.xml"]
reward = "stand"
[robots."two/scene.xml"]
reward = "stand"
[methods.limb]
"""


@pytest.mark.parametrize("model", ["", "model='go'"])
def test_scenes_of_the_same_name_are_told_apart_by_their_folders(tmp_path, model):
    """Files that are all called scene.xml, of models that have no name or all the same."""
    for name, cone in (("one", "elliptic"), ("two", "pyramidal"), ("deep/one", "pyramidal")):
        (tmp_path / name).mkdir(parents=True)
        robots.write(tmp_path / name, robots.crawler(cone).replace("<mujoco", f"<mujoco {model}", 1), "scene.xml")
    study = tmp_path / "own.toml"
    study.write_text(TWO)
    found = plan.load(study)
    assert found.tasks == (("go one", "go two") if model else ("one", "two"))
    assert len({planned.config.folder_name for planned in found.runs}) == 2
    study.write_text(TWO.replace("two/scene.xml", "deep/one/scene.xml"))
    with pytest.raises(EudaError, match=r"two robots are named '(go|one) one'"):
        plan.load(study)


ENVIRONMENT = """
tasks = ["HalfCheetah-v5"]
seeds = [0]
steps = 40
[robots.HalfCheetah-v5]
direction = [1, 0]
[methods.ddpg]
[methods.rotate]
[overrides]
mlp.hidden_size = 8
replay.seed_steps = 10
replay.batch_size = 8
evaluation = {every = 20, episodes = 2}
ddpg = {actor_every = 1, target_every = 1}
sac = {actor_every = 1, target_every = 1}
"""


def test_a_gymnasium_environment_is_a_task_of_a_study(tmp_path, capsys):
    study = tmp_path / "theirs.toml"
    study.write_text(ENVIRONMENT)
    found = plan.load(study)
    assert [(p.config.task, p.config.features, p.config.episode_steps) for p in found.runs] == [
        ("HalfCheetah-v5", "joint", 1000),
        ("HalfCheetah-v5", "limb", 1000),
    ]
    assert {p.config.robot.env for p in found.runs} == {"HalfCheetah-v5"}
    study.write_text(ENVIRONMENT + "episode_steps = 10\n")
    assert cli.main(["study", "run", str(study), "--runs", str(tmp_path / "runs")]) == 0
    out, error = capsys.readouterr()
    assert "2 of 2 runs are complete" in out
    assert "direction" not in error
    for folder in run_folder.find(tmp_path / "runs"):
        assert cli.main(["evaluate", str(folder), "--episodes", "1"]) == 0
    text = ENVIRONMENT.replace("direction = [1, 0]", "").replace("[methods.ddpg]\n", "")
    study.write_text(text + "episode_steps = 10\n")
    assert cli.main(["study", "run", str(study), "--runs", str(tmp_path / "others")]) == 0
    assert "otherwise name the direction" in capsys.readouterr().err


BAD_ENVIRONMENTS = [
    ("[robots.HalfCheetah-v5]", "[robots.HalfCheeta-v5]", "'HalfCheetah-v5' needs a table [robots.'HalfCheetah-v5']"),
    ("HalfCheetah-v5", "HalfCheeta-v5", "unknown environment 'HalfCheeta-v5'"),
    ("direction = [1, 0]", 'reward = "run"', ": reward only works with MJCF files"),
    ("direction = [1, 0]", "fall_below = 0.2", ": fall_below only works with MJCF files"),
    ("[robots.HalfCheetah-v5]", '[robots."os:HalfCheetah-v5"]', "a study imports no module"),
]


@pytest.mark.parametrize(("old", "new", "words"), BAD_ENVIRONMENTS, ids=[words for *_, words in BAD_ENVIRONMENTS])
def test_bad_environments_are_refused_in_one_sentence(old, new, words, tmp_path, capsys):
    study = tmp_path / "theirs.toml"
    study.write_text(ENVIRONMENT.replace(old, new))
    assert cli.main(["study", "show", str(study), "--no-measure"]) == 2
    error = capsys.readouterr().err.strip()
    assert words in error
    assert "\n" not in error


SHORT = {"episode_steps": 10, "mlp": {"hidden_size": 8}, "evaluation": {"every": 20, "episodes": 2}}


def test_python_trains_it_too(tmp_path):
    path = robots.write(tmp_path, robots.crawler())
    robot = {"reward": "run", "direction": (1, 0)}
    found = euda.train(str(path), "rotate", robot=robot, steps=40, out=tmp_path / "run", **SHORT)
    assert found.config.robot.direction == (1.0, 0.0, 0.0)
    assert len(euda.evaluate(found, episodes=2)) == 2
    with pytest.raises(EudaError, match="unknown entry 'speed'"):
        euda.train(str(path), robot={**robot, "speed": 3}, out=tmp_path / "other")
    with pytest.raises(EudaError, match="needs a table"):
        euda.train(str(path), out=tmp_path / "other")
    assert not (tmp_path / "other").exists()


def test_python_names_a_reward_of_its_own(tmp_path, monkeypatch):
    path = robots.write(tmp_path, robots.crawler())
    (tmp_path / "height_of_mine.py").write_text("def height(model, data):\n    return float(data.qpos[2])\n")
    monkeypatch.chdir(tmp_path)
    found = euda.train(str(path), "limb", robot={"reward": "height_of_mine:height"}, steps=20, out="run", **SHORT)
    assert found.config.robot.reward == "height_of_mine:height"


def test_python_trains_an_environment_of_its_own(tmp_path, monkeypatch):
    (tmp_path / "envs_of_mine.py").write_text(
        "import gymnasium\n"
        "entry = 'gymnasium.envs.mujoco.ant_v5:AntEnv'\n"
        "gymnasium.register('Mine-v0', entry_point=entry, max_episode_steps=30)\n"
    )
    monkeypatch.chdir(tmp_path)
    short = {key: value for key, value in SHORT.items() if key != "episode_steps"}
    found = euda.train("envs_of_mine:Mine-v0", robot={"direction": (1, 0)}, steps=40, out="run", **short)
    assert (found.config.robot.env, found.config.episode_steps) == ("envs_of_mine:Mine-v0", 30)
