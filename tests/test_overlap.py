"""A run that steps the simulation while its updates compute: it acts by the policy before them, and goes on exactly."""

import jax
import numpy as np
import pytest

import euda
from euda.runs import run_folder
from euda.runs.resolution import resolve
from euda.runs.trainer import Trainer

SMALL = {
    "mlp": {"hidden_size": 8}, "replay": {"batch_size": 4, "seed_steps": 20, "updates_per_step": 0.5}, "overlap": True,
    "episode_steps": 25, "checkpoint_every": 30, "evaluation": {"every": 60, "episodes": 1},
}  # fmt: skip


def test_it_is_a_setting_that_counts_and_whose_absence_changes_no_identity():
    plain, overlapped = (resolve("reacher_hard", overrides={"overlap": value}) for value in (False, True))
    assert plain.identity == resolve("reacher_hard").identity != overlapped.identity


@pytest.mark.slow
def test_who_acts_is_the_agent_before_the_newest_updates(tmp_path):
    """The actor and the statistics of inputs alike; without overlap it is the newest one."""
    config = resolve("reacher_hard", "rotate", "swift", steps=60, overrides=SMALL)
    (tmp_path / "checkpoints").mkdir()
    trainer = Trainer(run_folder.Run(tmp_path, config), None)
    acting = []  # what acts at each step, and what the newest agent is then
    for _ in range(40):
        acting.append(tuple(jax.tree.map(np.array, agent.acting) for agent in (trainer.actor, trainer.agent)))
        trainer.advance()
    for step in range(23, 40):
        is_due = config.replay.updates_per_step * (step - 20) % 1 == 0
        before = acting[step - 1]
        expected = before[1] if is_due else before[0]  # the newest one until an update was begun, then for a while it
        assert same(acting[step][0], expected)
    late = [not same(*both) for both in acting[23:]]
    assert sum(late) >= 8  # an update may leave the actor as it is


def same(first, second):
    return all(np.array_equal(a, b) for a, b in zip(jax.tree.leaves(first), jax.tree.leaves(second), strict=True))


@pytest.mark.slow
def test_an_overlapped_run_that_was_stopped_ends_in_the_same_bytes(tmp_path):
    settings = SMALL | {"sac": {"exploration_steps": 20}}
    whole = euda.train("reacher_hard", "rotate", base="swift", steps=90, out=tmp_path / "whole", **settings)
    for steps in (30, 60, 90):
        cut = euda.train("reacher_hard", "rotate", base="swift", steps=steps, out=tmp_path / "cut", **settings)
    assert (whole.folder / "policy.safetensors").read_bytes() == (cut.folder / "policy.safetensors").read_bytes()
    for name in ("action.bin", "observation.bin", "outcome.bin"):
        first, second = (np.fromfile(run.replay / name, np.float32)[:400] for run in (whole, cut))
        np.testing.assert_array_equal(first, second)
    plain = settings | {"overlap": False}
    without = euda.train("reacher_hard", "rotate", base="swift", steps=90, out=tmp_path / "without", **plain)
    assert (whole.folder / "policy.safetensors").read_bytes() != (without.folder / "policy.safetensors").read_bytes()
