"""Twins of a robot in turned and mirrored worlds: they move as one if policy and simulation have the symmetry."""

import math
import sys

import numpy as np
import pytest
import untrained

import euda
from euda import EudaError
from euda.media import view
from euda.media.twins import Twins, World, worlds_of
from euda.runs import evaluation
from euda.symmetry.turned_start import mirror_of
from euda.terminal.cli import main


def twins_of(run, yaws=2, mirrored=False):
    made = lambda: evaluation.make_environment(run.config)  # noqa: E731
    first = made()
    return Twins(made, evaluation.load_policy(run, first)[0], worlds_of(first, yaws, mirrored))


def moved(twins, steps=40):
    for _ in range(steps):
        twins.step()
    return twins.apart()


def test_an_equivariant_policy_moves_all_twins_as_one(tmp_path):
    twins = twins_of(untrained.run(tmp_path / "run", "hopper3d_hop", "canonical", mlp={"hidden_size": 32}))
    assert [twin.world.name for twin in twins.all] == ["the robot", "turned by 120°", "turned by 240°"]
    assert moved(twins) < 1e-5
    assert len({round(twin.total, 6) for twin in twins.all}) == 1
    assert np.linalg.norm(twins.robot.env.data.qvel) > 1  # it does move


def test_another_policy_is_seen_to_come_apart(tmp_path):
    twins = twins_of(untrained.run(tmp_path / "run", "hopper3d_hop", "limb", mlp={"hidden_size": 32}))
    assert twins.apart() < 1e-12
    assert moved(twins) > 0.01


@pytest.mark.parametrize("task", ["quadruped_run", "walker3d_run", "cheetah_run", "reacher_hard"])
def test_a_push_is_the_same_for_all(task):
    make = lambda: euda.make(task, cone="elliptic")  # noqa: E731
    worlds = worlds_of(make(), 3, mirrored=True)
    assert worlds[-1].mirror is not None
    twins = Twins(make, None, worlds)
    before = np.array([twin.root for twin in twins.all])
    np.testing.assert_allclose(before, np.tile(before[0], (5, 1)), atol=1e-12)
    twins.push(35.0, 2.0)
    for _ in range(30):
        twins.step()
    tips = [twin.place(twin.env.data.xpos[twin.env.morphology.limbs[-1].body]) for twin in twins.all[:-1]]
    assert twins.apart() < 1e-6
    np.testing.assert_allclose(tips, np.tile(tips[0], (4, 1)), atol=1e-6)
    still = Twins(make, None)
    for _ in range(30):
        still.step()
    tip = still.robot.env.data.xpos[still.robot.env.morphology.limbs[-1].body]
    assert np.linalg.norm(tip - tips[0]) > 0.005  # the push was felt


def test_episodes_begin_anew():
    twins = Twins(lambda: euda.make("reacher_hard"), None, [World(math.pi / 2)])
    first = twins.robot.target.copy()
    twins.begin(5)
    assert np.linalg.norm(twins.robot.target - first) > 1e-3
    np.testing.assert_allclose(twins.all[1].target, twins.robot.target, atol=1e-9)
    twins.begin(0)
    np.testing.assert_allclose(twins.robot.target, first, atol=1e-12)


def test_mirrored_worlds_are_named_after_the_mirror():
    mirror = mirror_of(euda.make("walker_run"))
    assert World(math.pi, mirror).name == f"{mirror.name}, turned by 180°"
    assert np.linalg.det(World(1.0, mirror).map) == pytest.approx(-1)


# -- bad input -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["nothing"], "view what? 'nothing' is no folder of a run, no MJCF file and no task: tasks are cheetah_run,"),
        (["reacher_hard", "--out", "x.mp4"], "a view is written as an .html file, not 'x.mp4'"),
        (["reacher_hard", "--yaws", "-1"], "yaws must be at least 0, not -1"),
        (["missing.xml"], "no model file at 'missing.xml'"),
    ],
)
def test_bad_words_end_in_one_sentence(words, says, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(["view", *words]) == 2
    error = capsys.readouterr().err
    assert error.startswith(f"euda: {says}")
    assert error.count("\n") == 1


def test_the_policy_of_another_robot_is_refused(tmp_path, capsys):
    mine, other = (untrained.run(tmp_path / task, task) for task in ("reacher_hard", "hopper3d_hop"))
    mine.policy.write_bytes(other.policy.read_bytes())
    assert main(["view", str(mine.folder), "--out", str(tmp_path / "x.html")]) == 2
    assert "does not fit its configuration" in capsys.readouterr().err
    assert not (tmp_path / "x.html").exists()


def test_without_viser_the_extra_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "viser", None)
    with pytest.raises(EudaError, match=r"needs the package viser: pip install 'euda\[view\]'"):
        view.serve(0)


def test_another_viser_is_refused(monkeypatch):
    monkeypatch.setattr(view.importlib.metadata, "version", lambda name: "0.2.7")
    with pytest.raises(EudaError, match=r"needs viser 1, not 0.2.7: pip install 'euda\[view\]'"):
        view.serve(0)
