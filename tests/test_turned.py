"""Policies in turned worlds: the starts are the images of the starts, and a policy with the symmetry gets the same."""

import dataclasses
import json
import math

import numpy as np
import pytest
from robots import crawler, write

import euda
from euda import ModelEnv, make
from euda.errors import EudaError
from euda.reports import polar
from euda.runs.turned_evaluation import TurnedReturns
from euda.symmetry.turned_start import TurnedStart, mirror_of
from euda.tasks.table import TASKS
from euda.terminal import cli

YAW = 1.1
SHORT = {"steps": 20, "episode_steps": 40, "evaluation": {"every": 20, "episodes": 1}, "mlp": {"hidden_size": 32}}
LOPSIDED = """
<mujoco><worldbody><geom type="plane" size="0 0 1"/>
  <body name="box" pos="0 0 .4"><freejoint/><geom type="box" size=".2 .12 .06" mass="1"/>
    <body name="leg" pos=".2 .1 0"><joint name="hip" axis="1 2 3"/><geom type="capsule" fromto="0 0 0 .1 .2 -.3"
      size=".03" mass="1"/></body></body></worldbody>
  <actuator><motor joint="hip"/></actuator></mujoco>"""
MIRRORED = ("reacher_hard", "walker3d_run", "quadruped_run", "humanoid_run", "cheetah_run")


@pytest.mark.parametrize("task", TASKS)
def test_a_turned_start_is_the_start_turned_and_leaves_nothing_behind(task):
    env = make(task)
    start = TurnedStart(env)
    for seed in (0, 1):
        plain = make(task).reset(seed=seed)[0]
        np.testing.assert_array_equal(start.begin(env, seed, 0.0), plain)
        turned = start.begin(env, seed, YAW)
        np.testing.assert_allclose(turned, env.layout.rotate(plain, YAW), atol=2e-5)
        assert np.abs(turned - plain).max() > 0.1  # a turn that changes nothing would pass as well
        np.testing.assert_array_equal(start.begin(env, seed, 0.0), plain)


@pytest.mark.parametrize("task", MIRRORED)
def test_a_mirrored_start_is_the_mirror_image_and_may_be_turned_then(task):
    env = make(task)
    start, mirror = TurnedStart(env), mirror_of(env)
    assert mirror.name == "mirror left-right"
    plain = start.begin(env, 5, 0.0)
    image = env.layout.act(mirror, plain)
    np.testing.assert_allclose(start.begin(env, 5, 0.0, mirror), image, atol=2e-5)
    np.testing.assert_allclose(start.begin(env, 5, YAW, mirror), env.layout.rotate(image, YAW), atol=2e-5)
    np.testing.assert_array_equal(start.begin(env, 5, 0.0), plain)


def test_directions_and_targets_of_ones_own_robot_turn_and_come_back(tmp_path):
    path = write(tmp_path, crawler())
    env = ModelEnv(path, direction=(1, 0), reward="run")
    start = TurnedStart(env)
    start.begin(env, 0, YAW)
    np.testing.assert_allclose(env.robot.direction, [math.cos(YAW), math.sin(YAW), 0])
    start.begin(env, 0, 0.0)
    np.testing.assert_array_equal(env.robot.direction, [1, 0, 0])
    env = ModelEnv(path, target=(0.5, 0, 0.2), reward="reach")
    start = TurnedStart(env)
    start.begin(env, 0, math.pi / 2)
    np.testing.assert_allclose(env.robot.target.place, [0, 0.5, 0.2], atol=1e-12)
    start.begin(env, 0, 0.0)
    np.testing.assert_array_equal(env.robot.target.place, [0.5, 0, 0.2])


def test_a_robot_without_a_mirror_is_told_so(tmp_path):
    path = write(tmp_path, LOPSIDED)
    with pytest.raises(EudaError, match="has no mirror: its symmetries are identity"):
        mirror_of(ModelEnv(path))


@pytest.fixture
def smooth(monkeypatch):
    """The reacher is paid for nearness, so that a policy that has learnt nothing has returns to compare."""

    def reward(model):
        finger, target = model.geom("finger").id, model.geom("target").id
        return lambda xp, scene: 1 - xp.linalg.norm(scene.data.geom_xpos[finger] - scene.data.geom_xpos[target])

    monkeypatch.setitem(TASKS, "reacher_hard", dataclasses.replace(TASKS["reacher_hard"], reward=reward))


@pytest.mark.slow
@pytest.mark.usefixtures("smooth")
@pytest.mark.parametrize(("task", "steps"), [("reacher_hard", 200), ("hopper3d_hop", 40), ("walker3d_run", 12)])
def test_a_canonical_policy_gets_the_same_at_every_yaw_and_another_does_not(task, steps, tmp_path):
    short = SHORT | {"episode_steps": steps}
    same, other = (euda.train(task, method, out=tmp_path / method, **short) for method in ("canonical", "limb"))
    rows = euda.evaluate_turned(same, yaws=5, episodes=3)
    assert [round(one.degrees) for one in rows] == [0, 72, 144, 216, 288]
    returns = np.array([one.returns for one in rows])
    assert list(rows[0].returns) == euda.evaluate(same, episodes=3)
    np.testing.assert_allclose(returns, returns[:1].repeat(5, axis=0), rtol=1e-4, atol=1e-6)
    spread = np.ptp([one.returns for one in euda.evaluate_turned(other, yaws=5, episodes=3)], axis=0)
    assert spread.max() > 100 * max(1e-6, np.ptp(returns, axis=0).max())


@pytest.mark.slow
@pytest.mark.usefixtures("smooth")
def test_the_command_says_it_in_words_numbers_and_a_figure(tmp_path, capsys):
    run = euda.train("reacher_hard", "limb", out=tmp_path / "run", **SHORT)
    words = ["evaluate", str(run.folder), "--yaws", "3", "--episodes", "2", "--mirror"]
    assert cli.main([*words, "--json", "--figure", str(tmp_path / "polar.png")]) == 0
    said = json.loads(capsys.readouterr().out)
    assert [(round(one["degrees"]), one["mirror"]) for one in said["yaws"]] == [
        (yaw, mirror) for mirror in (None, "mirror left-right") for yaw in (0, 120, 240)
    ]
    for one in said["yaws"]:
        assert one["return_mean"] == pytest.approx(sum(one["returns"]) / 2)
    assert (tmp_path / "polar.png").read_bytes().startswith(b"\x89PNG")
    assert cli.main(words) == 0
    *lines, summary = capsys.readouterr().out.splitlines()
    assert len(lines) == 7
    assert summary.startswith(f"return {said['yaws'][0]['return_mean']:.1f} as it is, at worst ")
    for wrong, sentence in (
        (["--figure", "x.png"], "add --yaws 8"),
        (["--yaws", "0"], "yaws must be a whole number of at least 1"),
        (["--yaws", "2", "--figure", "polar.gif"], "a figure is a .png, .svg, .pdf file, not 'polar.gif'"),
        (["--yaws", "2", "--figure", str(tmp_path / "no" / "x.png")], "no folder"),
        (["--yaws", "2", "--episodes", "0"], "episodes must be at least 1, not 0"),
    ):
        assert cli.main(["evaluate", str(run.folder), *wrong]) == 2
        assert sentence in capsys.readouterr().err


@pytest.mark.slow
def test_an_environment_that_rewards_as_it_likes_is_refused(tmp_path):
    run = euda.train("Reacher-v5", "limb", robot={}, out=tmp_path / "run", **SHORT)
    with pytest.raises(EudaError, match="Reacher-v5 has its own reward"):
        euda.evaluate_turned(run)


def test_the_figure_shows_seeds_or_episodes():
    judged = [TurnedReturns(yaw, (1.0, 3.0)) for yaw in np.linspace(0, 2 * np.pi, 4, endpoint=False)]
    better = [dataclasses.replace(one, returns=(5.0,)) for one in judged]
    lines = polar.draw({"limb": [judged, better, better], "rotate": [better]}).axes[0].lines
    by_name = {line.get_label(): line for line in lines}
    np.testing.assert_array_equal(by_name["limb"].get_ydata(), [5.0] * 5)  # the median, closed
    assert len(lines) == 1 + 3 + 1 + 4
