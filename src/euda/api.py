"""Training and judging from Python: what `euda train` and `euda evaluate` do, as three functions.

A run is the same folder whoever began it: `euda.train`, `euda train` and a study go on with each other's.
"""

from __future__ import annotations

import signal
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from euda.errors import EudaError

if TYPE_CHECKING:
    from euda.study.run import Run

Policy = Callable[[npt.NDArray[np.float32]], npt.NDArray[np.float32]]
"""Observations [dim] or [B, dim] to actions [m] or [B, m] in [-1, 1], without exploration noise."""


def train(
    task: str,
    method: str = "rotate",
    *,
    share: float | None = None,
    steps: int | None = None,
    seed: int = 0,
    out: str | Path | None = None,
    robot: Mapping[str, Any] | None = None,
    **overrides: Any,
) -> Run:
    """Train a policy, or go on with a run that was stopped; returns the run, a folder with everything about it.

    `task`, `method`, `share`, `steps` and `seed` mean what they mean to `euda train`; `out` is the folder, by
    default `runs/TASK/METHOD-SHARE-seedSEED`. `overrides` are those of a study file: `agent="sac"`,
    `cone="elliptic"`, `mlp={"hidden_size": 64}`, `evaluation={"every": 5000}`. A finished run returns at once.
    Ctrl-C saves and raises KeyboardInterrupt; the same call goes on from there.

    For a robot of your own `task` is the path of its MJCF file, and `robot` says what the flags of `euda train` say:
    `robot={"reward": "run", "direction": (1, 0)}`; the reward may be your `"module:function"`. For a Gymnasium
    environment `task` is its `Id` or `"module:Id"`, and `robot={"direction": (1, 0)}` what its reward follows.

    Numbers are those of the command line, bit for bit, if JAX has not been used before in this process: only
    then can it still be told to use one thread.

    >>> import tempfile
    >>> import euda
    >>> short = {"steps": 40, "episode_steps": 20, "evaluation": {"every": 20, "episodes": 2}}
    >>> run = euda.train("reacher_hard", "rotate", share=0.25, out=tempfile.mkdtemp(), **short)
    >>> [event["step"] for event in run.events() if event["event"] == "eval"]
    [0, 20, 40]
    """
    from euda.study import machine, own_code, plan, training
    from euda.study import run as runs

    row = {"method": method, "overrides": overrides} | ({} if share is None else {"share": share})
    table = {"tasks": [task], "seeds": [seed], "methods": {method: row}} | ({} if steps is None else {"steps": steps})
    if robot is not None:
        table["robots"] = {task: dict(robot)}
        for named in (task, str(robot.get("reward"))):
            if ":" in named:
                own_code.name(named)
    try:
        config = plan.parse("train", table).runs[0].config
    except EudaError as error:
        raise EudaError(str(error).removeprefix(f"[methods.{method}]: ")) from None
    folder = Path(out) if out is not None else Path("runs") / config.folder_name
    if "jax" not in sys.modules:
        machine.use_one_thread()
        machine.cache_compilations()
    outcome = training.train(config, folder)
    if outcome.signal == signal.SIGINT:
        raise KeyboardInterrupt
    if outcome.signal is not None:
        raise SystemExit(128 + outcome.signal)
    return runs.load(folder)


def evaluate(run: Run | str | Path, episodes: int = 10, seed: int | None = None) -> list[float]:
    """The returns of a run's newest policy, one for each episode, without exploration noise.

    Without a `seed` the episodes are those of the training's last evaluation, so its numbers come out again.

    >>> import tempfile
    >>> import euda
    >>> short = {"steps": 40, "episode_steps": 20, "evaluation": {"every": 20, "episodes": 2}}
    >>> run = euda.train("reacher_hard", out=tempfile.mkdtemp(), **short)
    >>> euda.evaluate(run, episodes=2) == [event for event in run.events() if event["event"] == "eval"][-1]["returns"]
    True
    """
    from euda.study.evaluation import evaluate as judge

    return judge(_loaded(run), episodes, seed)[1]


def load_policy(run: Run | str | Path) -> Policy:
    """The newest policy of a run, a function from observations [dim] or [B, dim] to actions in [-1, 1].

    >>> import tempfile
    >>> import euda
    >>> short = {"steps": 40, "episode_steps": 20, "evaluation": {"every": 20, "episodes": 2}}
    >>> run = euda.train("reacher_hard", out=tempfile.mkdtemp(), **short)
    >>> policy = euda.load_policy(run.folder)
    >>> observation, _ = euda.make("reacher_hard").reset(seed=1)
    >>> policy(observation).shape
    (2,)
    """
    from euda.study import evaluation

    found = _loaded(run)
    return evaluation.load_policy(found, evaluation.make_environment(found.config))[0]


def _loaded(run: Run | str | Path) -> Run:
    from euda.study import run as runs

    return runs.load(Path(run)) if isinstance(run, str | Path) else run
