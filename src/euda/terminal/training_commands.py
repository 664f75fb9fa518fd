"""The command `euda train`. What is heavy is imported when a command runs."""

from __future__ import annotations

import dataclasses
import functools
import json
import os
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from euda.errors import EudaError
from euda.runs import bases, robot_config, robot_flags
from euda.runs.config import RunConfig
from euda.runs.environments import cautions
from euda.runs.resolution import resolve, resolve_parts
from euda.runs.robot_config import RobotConfig
from euda.runs.robot_flags import RobotFlags
from euda.runs.usual_method import fitting, usual_method
from euda.schema import Count, RowOf, Seed, Settings, Share
from euda.tasks import table
from euda.terminal import printing, process
from euda.terminal.flags import Argument, Group, Overrides

if TYPE_CHECKING:
    from euda.runs.session import Outcome, SinkMaker

_ROBOT, _OVERRIDES = RobotFlags(), Overrides()


@dataclasses.dataclass(frozen=True)
class SessionFlags(Settings):
    """What changes no number of a run: where it computes, what is shown, where its numbers go too."""

    core: str | None = None
    """Number of the core to run on, or any; by default one that none of your other runs uses."""
    device: str | None = None
    """JAX platform, for example cuda or tpu; by default cpu, the only one that was tested."""
    quiet: bool = False
    """Print only the result."""
    dry_run: bool = False
    """Print the resolved configuration and stop."""
    tensorboard: bool = True
    """Write TensorBoard files into the run."""
    wandb: str | None = None
    """Send the numbers to this project of Weights & Biases (extra `wandb`)."""
    mlflow: str | None = None
    """Send the numbers to this experiment of MLflow (extra `mlflow`)."""


_SESSION = SessionFlags()


def train(
    task: Annotated[str | None, Argument("TASK|ROBOT.xml")] = None,
    method: Annotated[str | None, RowOf("method")] = None,
    base: Annotated[str, RowOf("base")] = bases.DEFAULT,
    share: Share | None = None,
    steps: Count | None = None,
    seed: Seed = 0,
    out: Path | None = None,
    env: Annotated[str | None, Group("robot")] = None,
    robot: Annotated[RobotFlags, Group("robot")] = _ROBOT,
    overrides: Overrides = _OVERRIDES,
    session: Annotated[SessionFlags, Group("session")] = _SESSION,
) -> int:
    """Train a policy, or resume a run that was stopped.

    Args:
        task: A task (see `euda tasks`), or the MJCF file of a custom robot (docs/robot.md).
        method: What is observed and what is done with symmetry; by default canonical, rotate where that does not fit.
        base: How the agent learns (agent, network and settings).
        share: Share of each batch that is changed, from 0 to 1; by default 1, on the base paper 0.5 for rotations.
        steps: Environment steps in all, by default 200 000 (base paper: 2 or 5 million). More resume a finished run.
        seed: Of everything random but the evaluation.
        out: Folder of the run; by default runs/TASK/METHOD-SHARE-seedSEED.
        env: Instead of a task: a registered Gymnasium environment that runs on MuJoCo, Id or module:Id.
        robot: A custom robot.
        overrides: Settings instead of the method's and the base's.
        session: What changes no number.
    """
    first = method or usual_method(base, share, overrides)
    features, cone = resolve_parts(first, base, overrides)["features"], overrides.get("cone")
    # before anybody's own code, which may use the libraries that this prepares
    cores = 2 if overrides.get("overlap") else 1
    where = "" if session.dry_run else process.prepare_training(session.core, session.device, cores)
    name, own, usual_steps = _subject(task, env, robot, features, cone)
    if own is None and (direction := robot.direction_of_task(name)) is not None:
        overrides = Overrides(overrides | {"direction": direction})
    make = functools.partial(resolve, name, base=base, share=share, steps=steps, seed=seed, overrides=overrides,
                             robot=own, episode_steps=usual_steps)  # fmt: skip
    config = make(method=first) if method is not None else fitting(first, lambda name: make(method=name))
    folder = out or Path("runs") / config.folder_name
    if session.dry_run:
        printing.line(json.dumps(config.to_json(), indent=2))
        return 0
    for sentence in cautions(config):
        printing.complain(sentence)
    sinks = _sinks(session.tensorboard, session.wandb, session.mlflow)
    return train_and_tell(config, folder, session.quiet, sinks, where)


def _subject(
    task: str | None, env: str | None, flags: RobotFlags, features: str, cone: str | None
) -> tuple[str, RobotConfig | None, int]:
    """What is trained: the name of a task, or a robot of one's own; and the usual steps of an episode."""
    if task is not None and env is not None:
        raise EudaError(f"train {task!r} or --env {env}, not both")
    if task is not None and robot_flags.is_model(task):
        found = robot_config.of_file(task, flags, features, cone)
        return found.task, found, table.EPISODE_STEPS
    if env is not None:
        found, steps = robot_config.of_environment(env, flags, features, cone)
        return found.task, found, steps
    if task is None:
        raise flags.without_subject("train what?")
    table.find(task)
    return task, None, table.EPISODE_STEPS


def train_and_tell(config: RunConfig, folder: Path, quiet: bool, sinks: tuple[SinkMaker, ...], where: str) -> int:
    """Train, show the progress, and say how it ended."""
    from euda.terminal import displays

    shown = displays.make(quiet)
    shown.doing(displays.headline(config, folder, where))
    shown.doing("loading JAX")
    from euda.runs.session import train as train_run

    outcome = train_run(config, folder, display=shown, sinks=sinks)
    for sentence in getattr(shown, "said", []):
        printing.complain(sentence)
    return tell(outcome)


def tell(outcome: Outcome) -> int:
    """Say how a session ended, if anybody still reads; the exit code."""
    code = 0 if outcome.signal is None else 128 + outcome.signal
    try:
        printing.line(ending(outcome))
    except OSError:  # a closed terminal or pipe, which was why it stopped: no second error at exit
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return code


def ending(outcome: Outcome) -> str:
    """How a session ended and what to do next."""
    folder = shlex.quote(str(outcome.folder))
    if not outcome.is_finished:
        again = shlex.join(["euda", *sys.argv[1:]])
        return f"stopped at step {outcome.step}, everything is saved; resume with: {again}"
    from euda.runs import run_folder

    returns = [event["return_mean"] for event in run_folder.load(outcome.folder).events() if event["event"] == "eval"]
    result = f"return {returns[0]:.1f} before, {returns[-1]:.1f} now; " if returns else ""
    code = own.own_code if (own := run_folder.load(outcome.folder).config.robot) is not None else None
    again = f" {code[1]} {code[0]}" if code else ""
    return f"finished {outcome.step} steps: {result}watch it with: euda video {folder} --out video.mp4{again}"


def _sinks(tensorboard: bool, wandb: str | None, mlflow: str | None) -> tuple[SinkMaker, ...]:
    from euda.runs import metrics

    def tracker(kind: Any, project: str) -> SinkMaker:
        return lambda run, step: kind(project, run.config.folder_name, run.config.to_json())

    makers: list[SinkMaker] = []
    if tensorboard:
        makers.append(metrics.TensorBoard.of)
    named = ((metrics.WeightsAndBiases, wandb), (metrics.MLflow, mlflow))
    return (*makers, *(tracker(kind, project) for kind, project in named if project))
