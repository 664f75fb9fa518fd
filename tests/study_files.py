"""Small studies for tests."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from euda.study import run

TINY = """
title = "Tiny"
tasks = ["reacher_hard"]
seeds = [0, 1]
steps = 120

[methods.limb]
[methods.rotate]
share = 0.25

[overrides]
episode_steps = 30
checkpoint_every = 20
mlp.hidden_size = 8
replay = {capacity = 100, batch_size = 4, seed_steps = 30}
ddpg.exploration_steps = 20
evaluation = {every = 30, episodes = 2}
"""


def write(folder: Path, text: str = TINY, name: str = "tiny") -> Path:
    """A study file."""
    path = folder / f"{name}.toml"
    path.write_text(text, "utf-8")
    return path


def content(folder: Path) -> dict[str, Any]:
    """Everything of a run that must not depend on interruptions."""
    found = run.load(folder)
    newest, damaged = found.newest_checkpoint()
    assert newest is not None
    assert damaged == []
    return {
        "metrics": [{key: value for key, value in event.items() if key != "seconds"} for event in found.events()],
        "arrays": {name: array.tobytes() for name, array in newest.arrays.items()},
        "replay": {path.name: path.read_bytes() for path in sorted(found.replay.iterdir())},
        "policy": found.policy.read_bytes(),
    }
