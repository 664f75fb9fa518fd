"""Small studies for tests."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np

from euda.runs import run_folder
from euda.studies.study_folder import Study

TINY = """
title = "Tiny"
base = "paper"
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
ddpg = {exploration_steps = 20, actor_every = 1, target_every = 1}  # a worker traces one update, not two
evaluation = {every = 30, episodes = 2}
"""


def write(folder: Path, text: str = TINY, name: str = "tiny") -> Path:
    """A study file."""
    path = folder / f"{name}.toml"
    path.write_text(text, "utf-8")
    return path


def content(folder: Path) -> dict[str, Any]:
    """Everything of a run that must not depend on interruptions."""
    found = run_folder.load(folder)
    newest, damaged = found.newest_checkpoint()
    assert newest is not None
    assert damaged == []
    return {
        "metrics": [{key: value for key, value in event.items() if key != "seconds"} for event in found.events()],
        "arrays": {name: array.tobytes() for name, array in newest.arrays.items()},
        "replay": {path.name: path.read_bytes() for path in sorted(found.replay.iterdir())},
        "policy": found.policy.read_bytes(),
    }


COMPARED = """
title = "Compared <b>&</b> drawn"
base = "paper"
tasks = ["reacher_hard", "cheetah_run"]
seeds = [0, 1, 2]
steps = 400000
axes = ["steps", "hours"]

[methods.ddpg]
[methods."<img src=x onerror=alert(1)>"]
method = "limb"
[methods.rotate]
shares = [0.25, 0.5]
[methods.rotate-auto]
seeds = [0]
"""


def invent(
    study: Study,
    every: int = 20_000,
    without: tuple[int, ...] = (),
    short: tuple[int, ...] = (),
    offset: float = 0.0,
) -> None:
    """Run folders with made-up returns: curves that rise from `offset`, some runs missing, some shorter."""
    draw = np.random.default_rng(0)
    for i, planned in enumerate(study.plan.runs):
        height = 200 * (1 + study.plan.curves.index(planned.curve))
        if i in without:
            continue
        steps = planned.config.steps // 2 if i in short else planned.config.steps
        events = []
        for step in range(0, steps + 1, every):
            mean = offset + height * step / planned.config.steps + draw.uniform(0, 30)
            events.append(_event("eval", step, return_mean=mean, returns=[mean - 1, mean + 1]))
            if planned.config.method == "rotate-auto" and step:
                events.append(_event("train", step, **{"return": mean, "share": float(draw.choice([0, 0.25, 1]))}))
        events += [_event("end", steps)] if i not in short else []
        folder = study.folder_of(planned)
        folder.mkdir(parents=True)
        (folder / "config.json").write_text(json.dumps(planned.config.to_json()))
        session = {"time": f"2026-03-01T09:00:{i:02}Z", "python": "3.11", "from_step": 0}
        (folder / "provenance.json").write_text(json.dumps({"sessions": [session]}))
        (folder / "metrics.jsonl").write_text("".join(json.dumps(event) + "\n" for event in events))


def _event(kind: str, step: int, **entries: Any) -> dict[str, Any]:
    return {"event": kind, "step": step, "seconds": step / 150, **entries}
