"""Targets in a part of the world: where they are, that they stay so in a run, and what is refused."""

import json

import numpy as np
import pytest

import euda
from euda import make
from euda.errors import EudaError
from euda.runs.config import RunConfig
from euda.runs.environments import make_environment
from euda.runs.resolution import resolve
from euda.symmetry.turned_start import TurnedStart
from euda.tasks.targets import half
from euda.terminal import cli


def places(env, count=40):
    found = []
    for seed in range(count):
        env.reset(seed=seed)
        found.append(env.data.geom("target").xpos.copy())
    return np.array(found)


def test_targets_of_one_half_are_those_of_the_task_and_its_mirror_images():
    everywhere, one_half = places(make("reacher_hard")), places(make("reacher_hard", targets="half"))
    assert 10 <= (everywhere[:, 1] < 0).sum() <= 30
    np.testing.assert_allclose(one_half, np.abs(everywhere * [0, 1, 0]) + everywhere * [1, 0, 1])
    np.testing.assert_array_equal(half(np.array([-1.0, 0.0, 2.0])), [-1.0, 0.0, 2.0])


def test_the_other_half_is_the_same_turned_by_half_a_turn():
    env = make("reacher_hard", targets="half")
    start = TurnedStart(env)
    for seed in range(5):
        start.begin(env, seed, 0.0)
        here = env.data.geom("target").xpos.copy()
        start.begin(env, seed, np.pi)
        np.testing.assert_allclose(env.data.geom("target").xpos[:2], -here[:2], atol=1e-12)
        assert here[1] >= 0


def test_a_run_keeps_them_and_anywhere_is_none(capsys):
    assert cli.main(["train", "reacher_hard", "--targets", "half", "--dry-run"]) == 0
    config = RunConfig.from_json(json.loads(capsys.readouterr().out))
    assert config == resolve("reacher_hard", "canonical", overrides={"targets": "half"})
    assert (places(make_environment(config))[:, 1] >= 0).all()
    plain = resolve("reacher_hard")
    assert "targets" not in plain.to_json()
    assert resolve("reacher_hard", overrides={"targets": "anywhere"}).identity == plain.identity != config.identity


@pytest.mark.parametrize(("task", "value", "sentence"), [
    ("reacher_hard", "thirds", "unknown targets 'thirds'"),
    ("walker3d_run", "half", "needs a task that draws a target, and 'walker3d_run' does not"),
])  # fmt: skip
def test_targets_that_cannot_be_are_refused(task, value, sentence):
    for build in (lambda: resolve(task, overrides={"targets": value}), lambda: euda.make(task, targets=value)):
        with pytest.raises(EudaError, match=sentence):
            build()
