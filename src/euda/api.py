"""Training, judging and taking along from Python: what `euda train`, `evaluate` and `export` do, as functions.

A run is the same folder whoever began it: `euda.train`, `euda train` and a study go on with each other's.
"""

from __future__ import annotations

import signal
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from euda.errors import EudaError

if TYPE_CHECKING:
    from euda.runs.config import RunConfig
    from euda.runs.run_folder import Run
    from euda.runs.turned_evaluation import TurnedReturns

Policy = Callable[[npt.NDArray[np.float32]], npt.NDArray[np.float32]]
"""Observations [dim] or [B, dim] to actions [m] or [B, m] in [-1, 1], without exploration noise."""


def train(
    task: str,
    method: str | None = None,
    *,
    base: str | None = None,
    share: float | None = None,
    steps: int | None = None,
    seed: int = 0,
    out: str | Path | None = None,
    robot: Mapping[str, Any] | None = None,
    device: str = "cpu",
    one_thread: bool = False,
    **overrides: Any,
) -> Run:
    """Train a policy, or go on with a run that was stopped; returns the run, a folder with everything about it.

    `task`, `method`, `base`, `share`, `steps` and `seed` mean what they mean to `euda train`; without a `method` it is
    `canonical`, or `rotate` where that does not fit. `out` is the folder, by default
    `runs/TASK/METHOD-SHARE-seedSEED`. `overrides` are those of a study file: `agent="sac"`, `cone="elliptic"`,
    `mlp={"hidden_size": 64}`, `evaluation={"every": 5000}`. A finished run returns at once. Ctrl-C saves and raises
    KeyboardInterrupt; the same call goes on from there.

    For a robot of your own `task` is the path of its MJCF file, and `robot` says what the flags of `euda train` say:
    `robot={"reward": "run", "direction": (1, 0)}`; the reward may be your `"module:function"`. For a Gymnasium
    environment `task` is its `Id` or `"module:Id"`, and `robot={"direction": (1, 0)}` what its reward follows.

    The run computes on JAX's `device`; this process, its threads, its default device and its environment variables
    stay as they are. The command line keeps a run to one thread, which makes its numbers independent of the number of
    cores. For the same numbers here, bit for bit, say `one_thread=True` before JAX is imported: JAX keeps the threads
    that it begins with, for everything else in this process too.

    >>> import tempfile
    >>> import euda
    >>> short = {"steps": 40, "episode_steps": 20, "evaluation": {"every": 20, "episodes": 2}}
    >>> run = euda.train("reacher_hard", "rotate", share=0.25, out=tempfile.mkdtemp(), **short)
    >>> [event["step"] for event in run.events() if event["event"] == "eval"]
    [0, 20, 40]
    """
    from euda import trusted_code
    from euda.runs import bases, machine, usual_method
    from euda.runs import run_folder as runs
    from euda.studies import plan

    given = {"base": base, "share": share, "steps": steps}
    row = {"overrides": overrides} | {key: v for key, v in given.items() if v is not None}
    table: dict[str, Any] = {"tasks": [task], "seeds": [seed]}
    if robot is not None:
        table["robots"] = {task: dict(robot)}
        for named in (task, str(robot.get("reward"))):
            if ":" in named:
                trusted_code.name(named)

    def make(name: str) -> RunConfig:
        try:
            return plan.parse("train", table | {"methods": {name: {"method": name, **row}}}).runs[0].config
        except EudaError as error:
            raise EudaError(str(error).removeprefix(f"[methods.{name}]: ")) from None

    if method is None:
        config = usual_method.fitting(usual_method.usual_method(base or bases.DEFAULT, share, overrides), make)
    else:
        config = make(method)
    folder = Path(out) if out is not None else Path("runs") / config.folder_name
    with machine.borrowed(one_thread):
        from euda.runs import session

        with machine.on_device(device):
            outcome = session.train(config, folder)
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
    from euda.runs.evaluation import evaluate as judge

    return judge(_loaded(run), episodes, seed)[1]


def evaluate_turned(
    run: Run | str | Path, yaws: int = 8, episodes: int = 10, seed: int | None = None, *, mirror: bool = False
) -> list[TurnedReturns]:
    """The returns of a run's newest policy in turned worlds: the same starts, targets and directions at every yaw.

    With `mirror` the worlds follow again with left and right exchanged.

    >>> import tempfile
    >>> import euda
    >>> short = {"steps": 40, "episode_steps": 20, "evaluation": {"every": 20, "episodes": 2}}
    >>> run = euda.train("reacher_hard", "canonical", out=tempfile.mkdtemp(), **short)
    >>> [(round(one.degrees), len(one.returns)) for one in euda.evaluate_turned(run, yaws=4, episodes=2)]
    [(0, 2), (90, 2), (180, 2), (270, 2)]
    """
    from euda.runs import turned_evaluation

    return turned_evaluation.evaluate(_loaded(run), yaws, episodes, seed, mirror=mirror)[1]


def load(run: Run | str | Path) -> Policy:
    """The newest policy of a run for a loop of your own: observations [dim] or [B, dim] to actions in [-1, 1].

    `euda export` writes it as a file that needs no euda.

    >>> import tempfile
    >>> import euda
    >>> short = {"steps": 40, "episode_steps": 20, "evaluation": {"every": 20, "episodes": 2}}
    >>> run = euda.train("reacher_hard", out=tempfile.mkdtemp(), **short)
    >>> policy = euda.load(run.folder)
    >>> observation, _ = euda.make("reacher_hard").reset(seed=1)
    >>> policy(observation).shape
    (2,)
    """
    from euda.runs import evaluation

    found = _loaded(run)
    return evaluation.load_policy(found, evaluation.make_environment(found.config))[0]


def export(run: Run | str | Path, to: str, out: str | Path | None = None) -> list[Path]:
    """Write the newest policy of a run as `onnx`, `numpy` or `torch`: a file that needs no euda to run.

    >>> import tempfile
    >>> import euda
    >>> short = {"steps": 40, "episode_steps": 20, "evaluation": {"every": 20, "episodes": 2}}
    >>> run = euda.train("reacher_hard", out=tempfile.mkdtemp(), **short)
    >>> [file.name for file in euda.export(run, "numpy")]
    ['policy.npz', 'policy.py']
    """
    from euda.exports import export as exports

    return exports.export(_loaded(run), to, None if out is None else Path(out))


def _loaded(run: Run | str | Path) -> Run:
    from euda.runs import run_folder as runs

    return runs.load(Path(run)) if isinstance(run, str | Path) else run
