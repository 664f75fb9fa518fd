"""Any method on any base: a few hundred steps of each, with updates that change the policy and stay finite."""

import jax
import numpy as np
import pytest

from euda.runs import run_folder, settings
from euda.runs.bases import BASES, PAPER
from euda.runs.methods import METHODS
from euda.runs.resolution import resolve, resolve_parts
from euda.runs.trainer import Trainer

SMALL = {
    "mlp": {"hidden_size": 8},
    "residual": {"hidden_size": 8, "blocks": 1},
    "segnn": {"layers": 1, "hidden_size": 16},
    "segnn-single": {"layers": 1, "hidden_size": 16},
}
"""By network."""
STEPS, SEED_STEPS = 200, 60


def config_of(base, method):
    parts = resolve_parts(method, base)
    # one compiled program for each run: actor and targets learn at every update
    learning = {"actor_every": 1, "target_every": 1, "exploration_steps": 80}
    small = {parts["network"]: SMALL[parts["network"]], parts["agent"]: learning}
    rest = {"episode_steps": 100, "evaluation": {"every": STEPS, "episodes": 1}, "checkpoint_every": STEPS}
    replay = {"seed_steps": SEED_STEPS, "batch_size": 8, "updates_per_step": 0.25}
    return resolve("reacher_hard", method, base, steps=STEPS, overrides={**small, **rest, "replay": replay})


@pytest.mark.slow
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("base", [base for base in BASES if base != PAPER])  # on the paper's, test_training has them
def test_every_method_learns_on_every_base(base, method, tmp_path):
    config = config_of(base, method)
    run = run_folder.Run(tmp_path, config)
    run.clear()
    trainer = Trainer(run, None)
    before = jax.tree.map(np.array, trainer.agent.acting)
    while trainer.step < STEPS:
        trainer.advance()
    assert trainer.is_finite()
    assert trainer.agent.updates == (STEPS - SEED_STEPS) // 4
    after = jax.tree.map(np.array, trainer.agent.acting)
    pairs = list(zip(jax.tree.leaves(before), jax.tree.leaves(after), strict=True))
    assert all(np.isfinite(new).all() for _, new in pairs)
    assert sum(not np.array_equal(old, new) for old, new in pairs) >= len(pairs) - 1
    means = trainer.averages.take()
    assert np.isfinite(list(means.values())).all()
    assert "critic_loss" in means


def test_every_network_is_here():
    assert {resolve_parts(method, base)["network"] for method in METHODS for base in BASES} <= SMALL.keys()
    assert {"mlp", "segnn"} <= settings.groups().keys()
