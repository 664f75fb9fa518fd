"""The commands as a user types them: output, exit codes, one clear sentence for bad input, nothing half-written."""

import importlib.metadata
import json
import os
import re
import subprocess
import sys

import gymnasium
import pytest
from PIL import Image
from robots import ARM, crawler, write
from test_morphology import LOOP, PAPER, TWO

import euda
from euda.tasks import table
from euda.terminal.cli import main


@pytest.fixture
def run(capsys):
    def call(*arguments):
        code = main([str(argument) for argument in arguments])
        out, err = capsys.readouterr()
        return code, out, err

    return call


def test_tasks(run):
    code, out, _ = run("tasks")
    assert code == 0
    rows = {line.split()[0]: line.split()[1:] for line in out.splitlines()[1:]}
    assert {name: tuple(map(int, row[:5])) for name, row in rows.items()} == PAPER
    code, out, _ = run("tasks", "--json")
    assert code == 0
    listed = json.loads(out)
    assert {row["name"]: (row["n"], row["d1"], row["n1"], row["n2"], row["n3"]) for row in listed} == PAPER
    for row in listed:
        assert set(row["features"]) == {"limb", "limb-paper", "joint"}
        assert (row["cone"] == "elliptic") == (table.TASKS[row["name"]].original is None)


def test_version(run):
    assert run("--version") == (0, f"euda {importlib.metadata.version('euda')}\n", "")


def test_layout(run):
    code, out, _ = run("layout", "hopper3d_hop", "--features", "joint")
    assert code == 0
    assert out.splitlines()[-1] == "37 numbers in 6 fields"
    fields = json.loads(run("layout", "hopper3d_hop", "--json")[1])
    assert sum(field["dim"] for field in fields) == 96


def test_certify(run):
    code, out, _ = run("certify", "hopper3d_hop", "--states", 12)
    assert code == 0
    assert re.fullmatch(
        r"verdict: exact, tested in 12 states and \d+ made on purpose with \d+ of 15 contact pairs and 24 of 24 limits",
        out.splitlines()[-1],
    )
    code, out, _ = run("certify", "quadruped_run", "--json", "--states", 18)
    assert code == 1
    found = json.loads(out)
    assert (found["verdict"], found["cone"], found["yaws"]) == ("near", "pyramidal", 4)
    assert run("certify", "hopper_hop", "--features", "joint", "--tolerance", "100", "--states", 6)[0] == 0
    code, out, _ = run("certify", "humanoid_stand", "--cone", "elliptic", "--states", 12)
    assert code == 1
    assert "because: the reward does not turn" in out


def test_certify_a_model(run, tmp_path):
    path = write(tmp_path, crawler())
    code, out, _ = run("certify", path, "--direction", 1, 0, 0, "--sensors", "gyro", "linvel", "--states", 12)
    assert code == 0
    assert out.startswith("robot, limb features")
    code, out, _ = run(
        "certify", write(tmp_path, ARM), "--target", "goal", "--limb", "tip", "--cone", "elliptic", "--json"
    )
    assert code == 0
    assert json.loads(out)["reward"] is None
    assert run("certify", write(tmp_path, crawler(cone="pyramidal")), "--cone", "elliptic", "--states", 12)[0] == 0


def test_certify_the_simulation_in_an_environment(run):
    code, out, _ = run("certify", "--env", "Ant-v5", "--direction", 1, 0, "--states", 30)
    assert code == 1
    assert "Ant-v5, limb features, pyramidal cone" in out
    assert "because: pyramidal friction cone" in out
    assert "not compared: the reward of Ant-v5" in out
    assert "--cone" not in out  # which euda train --env refuses
    assert "an environment keeps its own cone" in out
    code, out, _ = run("certify", "--env", "Ant-v5", "--cone", "elliptic", "--states", 12, "--json")
    found = json.loads(out)
    assert (code, found["verdict"], found["task"], found["reward"]) == (0, "exact", "Ant-v5", None)


def test_layout_of_an_environment(run):
    found = json.loads(run("layout", "--env", "Ant-v5", "--direction", 1, 0, "--json")[1])
    wrapped = euda.LimbObservation(gymnasium.make("Ant-v5"), direction=(1, 0, 0))
    assert found == wrapped.layout.to_json()


def test_picture(run, tmp_path):
    path = tmp_path / "robot.png"
    assert run("picture", "quadruped_run", "--out", path, "--width", 320, "--height", 180)[0] == 0
    with Image.open(path) as image:
        assert image.size == (320, 180)
        colours = image.convert("RGB").getcolors(maxcolors=320 * 180)
    assert len(colours) > 1000
    assert run("picture", write(tmp_path, crawler()), "--out", tmp_path / "model.png", "--copies", 3)[0] == 0
    assert sorted(p.name for p in tmp_path.iterdir()) == ["model.png", "robot.png", "robot.xml"]


BAD = [
    (["layout", "cheeta_run"], "unknown task 'cheeta_run': did you mean 'cheetah_run'"),
    (["layout", "cheetah_run", "--features", "limbs"], "unknown features 'limbs'"),
    (["layout", "cheetah_run", "--feature", "limb"], "--feature"),
    (["layout"], "Name a task (see euda tasks), an MJCF file, or an environment with --env"),
    (["layout", "cheetah_run", "--env", "Ant-v5"], "name 'cheetah_run' or --env Ant-v5, not both"),
    (["certify", "--env", "Ant-v6"], "unknown environment 'Ant-v6'"),
    (["certify", "--env", "Ant-v5", "--reward", "run"], "--reward only works with MJCF files"),
    (["fly"], "fly"),
    ([], "name a command: tasks, layout"),
    (["study"], "name a command: study show, study run"),
    (["certify", "humanoid"], "unknown task 'humanoid': did you mean"),
    (["certify", "cheetah_run", "--cone", "square"], "unknown cone 'square': valid are default, elliptic"),
    (["certify", "cheetah_run", "--states", "0"], "at least one state"),
    (["certify", "cheetah_run", "--tolerance", "nan"], "tolerance must be a finite number of at least 0, not 'nan'"),
    (["certify", "cheetah_run", "--states", "many"], "states must be a whole number, not 'many'"),
    (["certify", "nowhere.xml"], "no model file at 'nowhere.xml'"),
    (["certify", "{tmp}/invalid.xml"], "is not a valid MuJoCo model"),
    (["certify", "{tmp}/still.xml"], "no actuators"),
    (["certify", "{tmp}/two.xml"], "2 robots"),
    (["certify", "{tmp}/loop.xml"], "closes a loop"),
    (["certify", "{tmp}/arm.xml", "--target", "nothing"], "unknown site, geom or body 'nothing'"),
    (["certify", "{tmp}/arm.xml", "--direction", "1"], "a direction is two or three finite numbers"),
    (["certify", "{tmp}/arm.xml", "--direction", "1", "0", "--target", "goal"], "not both"),
    (["certify", "{tmp}/arm.xml", "--target", "1", "2"], "one name or three numbers"),
    (["certify", "cheetah_run", "--reward", "run"], "--reward is only for custom robots"),
    (["layout", "cheetah_run", "--target", "goal"], "--target is only for custom robots"),
    (["layout", "quadruped_run", "--direction", "1", "0"], "has no direction of travel"),
    (["certify", "{tmp}/arm.xml", "--direction", "0", "0", "0"], "must not be zero"),
    (["certify", "{tmp}/arm.xml", "--direction", "nan", "0", "0"], "finite numbers"),
    (["picture", "cheetah_run"], "--out"),
    (["picture", "cheetah_run", "--out", "{tmp}/robot.jpg"], "a picture is a .png file, not 'robot.jpg'"),
    (["picture", "cheetah_run", "--out", "{tmp}/nowhere/robot.png"], "no folder"),
    (["picture", "cheetah_run", "--out", "{tmp}/robot.png", "--copies", "0"], "at least one copy"),
    (["picture", "cheetah_run", "--out", "{tmp}/robot.png", "--width", "0"], "pixels"),
]


@pytest.mark.parametrize(("arguments", "says"), BAD, ids=[" ".join(a) for a, _ in BAD])
def test_bad_input_is_one_sentence_and_exit_code_2(run, tmp_path, arguments, says):
    models = {
        "invalid": "<mujoco><body>",
        "still": crawler().split("<actuator>")[0] + "</mujoco>",
        "two": TWO,
        "loop": LOOP,
        "arm": ARM,
    }
    for name, xml in models.items():
        write(tmp_path, xml, f"{name}.xml")
    before = sorted(tmp_path.iterdir())
    code, out, err = run(*(argument.format(tmp=tmp_path) for argument in arguments))
    assert code == 2
    assert out == ""
    assert says in err
    assert err.startswith("euda: ")
    assert err.count("\n") == 1
    assert "Traceback" not in err
    assert sorted(tmp_path.iterdir()) == before


def test_help_and_the_installed_command():
    for arguments in (["--help"], ["certify", "--help"]):
        done = subprocess.run(
            [sys.executable, "-m", "euda.terminal.cli", *arguments], capture_output=True, text=True, check=True
        )
        assert "usage: euda" in done.stdout
        assert max(map(len, done.stdout.splitlines())) <= 100
    done = subprocess.run(
        [sys.executable, "-m", "euda.terminal.cli", "layout", "x"], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (2, "")


def test_a_reader_that_stops_reading_is_no_error():
    """Whether what is printed goes out line by line or, as into any pipe, at the end."""
    read, write_ = os.pipe()
    os.close(read)
    for unbuffered in ("", "1"):
        done = subprocess.run(
            [sys.executable, "-m", "euda.terminal.cli", "--help"], stdout=write_, stderr=subprocess.PIPE, text=True,
            check=False, env=os.environ | {"PYTHONUNBUFFERED": unbuffered},
        )  # fmt: skip
        assert (done.returncode, done.stderr) == (0, "")
    os.close(write_)
