"""Exported symmetries: tables that say what the simulator does, files that replace nothing else, tests that notice."""

import json
import subprocess
import sys

import mujoco
import numpy as np
import pytest
from symmetric_robots import star

import euda
from euda.errors import EudaError
from euda.symmetry.examination import examine
from euda.symmetry.exporting.formats import FORMATS, export
from euda.symmetry.exporting.morphosymm import generators
from euda.symmetry.exporting.tables import tables
from euda.terminal import cli


@pytest.fixture(scope="module")
def of_star():
    """The tables of a star with three legs, and its model."""
    model = star(3)
    env = euda.ModelEnv(model)
    examined = examine(env, states=6)
    return tables(examined, range(1, examined.group.order), env.layout), model


def test_tables_are_what_elements_do(of_star):
    found, model = of_star
    group, rng = euda.symmetries(model), np.random.default_rng(0)
    layout = euda.ModelEnv(model).layout
    qpos, action, x = rng.normal(size=model.nq), rng.normal(size=model.nu), rng.normal(size=layout.dim)
    joints = [model.joint(name).qposadr[0] for name in found["joints"]]
    for element, one in zip(group.elements[1:], found["elements"], strict=True):
        assert one["name"] == element.name
        table = one["joints"]
        image = np.array(table["sign"]) * qpos[joints][table["index"]] + table["offset"]
        np.testing.assert_allclose(image, element.positions(qpos)[joints], atol=1e-9)
        table = one["actuators"]
        np.testing.assert_allclose(np.array(table["sign"]) * action[table["index"]], element.action(action))
        table = one["observations"]
        seen = (np.array(table["weight"]) * x[np.array(table["index"])]).sum(axis=0) + table["offset"]
        np.testing.assert_allclose(seen, layout.act(element, x), atol=1e-9)
        np.testing.assert_allclose(one["robot"], element.robot_map, atol=1e-9)
    assert json.loads(json.dumps(found)) == found


@pytest.mark.parametrize("name", ["json", "morphosymm"])
def test_the_written_test_passes_without_euda_and_fails_on_a_wrong_table(of_star, tmp_path, name):
    path, test = export(of_star[0], name, tmp_path)
    assert path.name.startswith("star3_symmetry")

    def passes():
        command = [sys.executable, "-I", "-m", "pytest", "-q", "-p", "no:cacheprovider", str(test)]
        return subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False).returncode == 0

    assert "euda" not in test.read_text().replace("written by euda symmetry", "")
    assert passes()
    text = path.read_text()
    if name == "json":
        wrong = json.loads(text)
        table = wrong["elements"][0]["joints"]
        table["sign"][next(i for i, k in enumerate(table["index"]) if k != i)] *= -1
        path.write_text(json.dumps(wrong))
    else:
        path.write_text(text.replace("[[", "[[1, ", 1))
    assert not passes()


def test_what_is_there_and_not_ours_is_not_replaced(of_star, tmp_path):
    (tmp_path / "star3_symmetry.json").write_text("{}")
    with pytest.raises(EudaError, match="is there and was not written by euda symmetry --export: nothing was written"):
        export(of_star[0], "json", tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["star3_symmetry.json"]
    with pytest.raises(EudaError, match="there is no folder"):
        export(of_star[0], "json", tmp_path / "elsewhere")


@pytest.mark.parametrize(
    ("robot", "label", "count"),
    [(lambda: star(3), "D3", 2), (lambda: star(3, chiral=True), "C3", 1), (lambda: star(4), "D4", 2)],
)
def test_morphosymm_gets_generators_of_the_whole_group(robot, label, count):
    model = robot()
    env = euda.ModelEnv(model)
    examined = examine(env, states=4)
    found = tables(examined, range(1, examined.group.order), env.layout)
    name, places = generators(found)
    assert (name, len(places)) == (label, count)
    made, table = {0, *(place + 1 for place in places)}, examined.group.table
    while (grown := made | {int(table[i, j]) for i in made for j in made}) != made:
        made = grown
    assert len(made) == examined.group.order


def test_the_command_writes_files_and_refuses_what_it_cannot(tmp_path, capsys):
    words = ["symmetry", "walker_run", "--states", "4", "--out", str(tmp_path)]
    for name in FORMATS:
        assert cli.main([*words, "--export", name]) == 0
    names = sorted(path.name for path in tmp_path.iterdir())
    assert names == ["test_walker_run_symmetry_json.py", "test_walker_run_symmetry_py.py",
                     "test_walker_run_symmetry_yaml.py", "walker_run_symmetry.json", "walker_run_symmetry.py",
                     "walker_run_symmetry.yaml"]  # fmt: skip
    head = (tmp_path / "walker_run_symmetry.py").read_text()
    assert "mirror left-right: exact (error of a step" in head
    compile(head, "walker_run_symmetry.py", "exec")
    capsys.readouterr()
    for wrong, sentence in (
        (["--export", "isaac"], "unknown format 'isaac': did you mean 'isaaclab'? valid are rsl_rl, isaaclab"),
        ([], "--out needs --export FORMAT"),
    ):
        assert cli.main([*words, *wrong]) == 2
        assert sentence in capsys.readouterr().err
    assert cli.main(["symmetry", "cheetah_run", "--states", "4", "--export", "json", "--out", str(tmp_path)]) == 2
    assert "cheetah_run has no element to export" in capsys.readouterr().err


def test_mujoco_is_all_that_a_robot_file_needs(tmp_path):
    path = tmp_path / "star.xml"
    mujoco.mj_saveLastXML(str(path), star(5))
    assert cli.main(["symmetry", str(path), "--states", "4", "--export", "json", "--out", str(tmp_path)]) in (0, 1)
    (found,) = tmp_path.glob("*_symmetry.json")
    assert len(json.loads(found.read_text())["elements"]) == 9
