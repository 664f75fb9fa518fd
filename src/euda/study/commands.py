"""The commands about runs: train, evaluate, video, runs. What is heavy is imported when a command runs."""

from __future__ import annotations

import dataclasses
import json
import shlex
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import tyro

from euda.body import tasks
from euda.config import AugmentationConfig, DDPGConfig, MLPConfig, ReplayConfig, SACConfig, SEGNNConfig
from euda.errors import EudaError
from euda.study import machine, methods, robots
from euda.study.environments import cautions
from euda.study.robots import RobotConfig, RobotFlags
from euda.study.settings import EvaluationConfig, RunConfig, resolve

if TYPE_CHECKING:
    from euda.study.run import Run
    from euda.study.training import Outcome, SinkMaker

Positional = tyro.conf.Positional
_EVALUATION, _REPLAY, _MLP, _DDPG, _SAC = EvaluationConfig(), ReplayConfig(), MLPConfig(), DDPGConfig(), SACConfig()
_SEGNN, _ROBOT = SEGNNConfig(), RobotFlags()


def train(
    task: Annotated[Positional[str | None], tyro.conf.arg(metavar="TASK|ROBOT.xml")] = None,
    method: str = "rotate",
    share: float | None = None,
    steps: int | None = None,
    seed: int = 0,
    out: Path | None = None,
    agent: str | None = None,
    features: str | None = None,
    augment: str | None = None,
    cone: str | None = None,
    env: str | None = None,
    robot: Annotated[RobotFlags, tyro.conf.arg(name="")] = _ROBOT,
    evaluation: EvaluationConfig = _EVALUATION,
    replay: ReplayConfig = _REPLAY,
    mlp: MLPConfig = _MLP,
    ddpg: DDPGConfig = _DDPG,
    sac: SACConfig = _SAC,
    segnn: SEGNNConfig = _SEGNN,
    same_noise: bool = True,
    noise_stddev: float = 1.0,
    scale_low: float = 0.5,
    scale_high: float = 1.0,
    auto_bonus: float = 0.25,
    auto_window: int = 25,
    episode_steps: int | None = None,
    checkpoint_every: int = 10_000,
    core: int | None = None,
    quiet: bool = False,
    dry_run: bool = False,
    tensorboard: bool = True,
    wandb: str | None = None,
    mlflow: str | None = None,
) -> int:
    """Train a policy, or go on with a run that was stopped. The defaults are the paper's.

    Args:
        task: Name of a task (see `euda tasks`), or path of an MJCF file with a robot of your own (docs/robot.md).
        method: ddpg, sac, ddpg-gn, ddpg-ras, limb, rotate, joint-rotate, rotate-auto, segnn or segnn-single.
        share: Share of each batch that is changed, from 0 to 1; by default 0.5 for rotations, 1 for noise and scaling.
        steps: Environment steps in all; by default 2 million, 5 million for the humanoid. More continue a finished run.
        seed: Of everything random but the evaluation.
        out: Folder of the run; by default runs/TASK/METHOD-SHARE-seedSEED.
        agent: ddpg or sac, instead of the method's.
        features: limb, limb-paper or joint, instead of the method's.
        augment: none, rotate, rotate-auto, gaussian or scale, instead of the method's.
        cone: default (as dm_control, or as your file) or elliptic (exactly symmetric); by default the task's own.
        env: Instead of a task: a registered Gymnasium environment that runs on MuJoCo, Id or module:Id.
        robot: A robot of your own.
        evaluation: How the policy is judged.
        replay: What is remembered and how batches are made.
        mlp: The networks, unless the method is segnn or segnn-single.
        ddpg: Used when the agent is ddpg.
        sac: Used when the agent is sac.
        segnn: The networks of the methods segnn and segnn-single.
        same_noise: gaussian and scale: whether an observation and the next one get the same noise.
        noise_stddev: gaussian: standard deviation of the noise.
        scale_low: scale: lowest factor.
        scale_high: scale: highest factor.
        auto_bonus: rotate-auto: weight of the upper-confidence bonus.
        auto_window: rotate-auto: recent episodes that its choice of a share rests on.
        episode_steps: Steps of an episode; by default 1000, or what an environment is registered with.
        checkpoint_every: Environment steps between two checkpoints.
        core: Run on this core only.
        quiet: Show nothing but the end.
        dry_run: Print the resolved configuration and stop.
        tensorboard: Write TensorBoard files into the run.
        wandb: Send the numbers to this project of Weights & Biases (extra `wandb`).
        mlflow: Send the numbers to this experiment of MLflow (extra `mlflow`).
    """
    noise = AugmentationConfig(same_noise=same_noise, stddev=noise_stddev, low=scale_low, high=scale_high,
                               bonus=auto_bonus, window=auto_window)  # fmt: skip
    chosen = methods.combine(method, agent, features, augment)
    if not dry_run:
        prepare(core)  # before anybody's own code, which may use the libraries that this prepares
    name, own, usual_steps = _subject(task, env, robot, chosen.features, cone)
    config = resolve(
        name, chosen, share, steps=steps, seed=seed, cone=cone, augmentation=noise, ddpg=ddpg, sac=sac, segnn=segnn,
        evaluation=evaluation, replay=replay, mlp=mlp, checkpoint_every=checkpoint_every, robot=own,
        episode_steps=usual_steps if episode_steps is None else episode_steps,
    )  # fmt: skip
    folder = out or Path("runs") / config.folder_name
    if dry_run:
        _print(json.dumps(config.to_json(), indent=2))
        return 0
    for sentence in cautions(config):
        sys.stderr.write(f"euda: {sentence}\n")
    return train_and_tell(config, folder, quiet, _sinks(tensorboard, wandb, mlflow))


def _subject(
    task: str | None, env: str | None, flags: RobotFlags, features: str, cone: str | None
) -> tuple[str, RobotConfig | None, int]:
    """What is trained: the name of a task, or a robot of one's own; and the usual steps of an episode."""
    if task is not None and env is not None:
        raise EudaError(f"train {task!r} or --env {env}, not both")
    if task is not None and robots.is_model(task):
        found = robots.of_file(task, flags, features, cone)
        return found.task, found, tasks.EPISODE_STEPS
    if env is not None:
        found, steps = robots.of_environment(env, flags, features, cone)
        return found.task, found, steps
    if task is None:
        raise EudaError("train what? Name a task (see euda tasks), an MJCF file, or an environment with --env")
    tasks.find(task)
    if flags.given:
        raise EudaError(f"{', '.join(flags.given)} belongs to robots of your own (MJCF files), not to task {task!r}")
    return task, None, tasks.EPISODE_STEPS


def prepare(core: int | None = None) -> None:
    """Make this process fit for training: one thread, one core if it is named, compilations shared between runs."""
    machine.pin(core)
    machine.use_one_thread()
    machine.cache_compilations()


def train_and_tell(config: RunConfig, folder: Path, quiet: bool, sinks: tuple[SinkMaker, ...]) -> int:
    """Train, show the progress, and say how it ended."""
    from euda.study import display, training

    shown = display.make(quiet)
    outcome = training.train(config, folder, display=shown, sinks=sinks)
    for sentence in getattr(shown, "said", []):
        sys.stderr.write(f"euda: {sentence}\n")
    _print(ending(outcome))
    return 0 if outcome.signal is None else 128 + outcome.signal


def ending(outcome: Outcome) -> str:
    """How a session ended and what to do next."""
    folder = shlex.quote(str(outcome.folder))
    if not outcome.is_finished:
        again = shlex.join(["euda", *sys.argv[1:]])
        return f"stopped at step {outcome.step}, everything is saved; go on with: {again}"
    from euda.study import run

    returns = [event["return_mean"] for event in run.load(outcome.folder).events() if event["event"] == "eval"]
    result = f"return {returns[0]:.1f} before, {returns[-1]:.1f} now; " if returns else ""
    code = own.own_code if (own := run.load(outcome.folder).config.robot) is not None else None
    again = f" {code[1]} {code[0]}" if code else ""
    return f"finished {outcome.step} steps: {result}watch it with: euda video {folder} --out video.mp4{again}"


def evaluate(
    folder: Annotated[Positional[Path], tyro.conf.arg(name="run")],
    episodes: int = 10,
    seed: int | None = None,
    robot: str | None = None,
    env: str | None = None,
    reward: str | None = None,
    json_: Annotated[bool, tyro.conf.arg(name="json")] = False,
) -> int:
    """Judge the newest policy of a run without exploration noise.

    Args:
        folder: Folder of a run.
        episodes: How many episodes.
        seed: Other episodes than those of the training's evaluation.
        robot: Where the run's MJCF file is now, if it was moved.
        env: The module:Id of a run with one: code is imported only if you name it again.
        reward: The module:function of a run with one: likewise.
        json_: Print JSON.
    """
    prepare()
    from euda.study.evaluation import evaluate as judge

    step, returns = judge(_load(folder, robot, env, reward), episodes, seed)
    mean = sum(returns) / len(returns)
    if json_:
        _print(json.dumps({"step": step, "return_mean": mean, "returns": returns}))
    else:
        _print(
            f"return {mean:.1f} at step {step}, mean of {episodes} episodes ({min(returns):.1f} to {max(returns):.1f})"
        )
    return 0


def video(
    folder: Annotated[Positional[Path], tyro.conf.arg(name="run")],
    out: Path,
    episodes: int = 1,
    seed: int | None = None,
    width: int = 640,
    height: int = 480,
    robot: str | None = None,
    env: str | None = None,
    reward: str | None = None,
) -> int:
    """Film the newest policy of a run; needs no screen.

    Args:
        folder: Folder of a run.
        out: The MP4 file to write.
        episodes: How many episodes, one after the other.
        seed: Other episodes than those of the training's evaluation.
        width: Pixels.
        height: Pixels.
        robot: Where the run's MJCF file is now, if it was moved.
        env: The module:Id of a run with one: code is imported only if you name it again.
        reward: The module:function of a run with one: likewise.
    """
    prepare()
    from euda.study.video import film

    returns = film(_load(folder, robot, env, reward), out, episodes, seed, width, height)
    _print(f"wrote {out}, return {', '.join(f'{value:.1f}' for value in returns)}")
    return 0


def _load(folder: Path, robot: str | None, env: str | None, reward: str | None) -> Run:
    """A run, with what the user says again about a robot of their own."""
    from euda.study import run

    found = run.load(folder)
    named = robots.named_again(found.config.robot, found.config.task, robot, env, reward)
    return dataclasses.replace(found, config=dataclasses.replace(found.config, robot=named))


def demo(out: Path = Path("runs/demo"), core: int | None = None, quiet: bool = False) -> int:
    """Train the reacher until it hits its target (some minutes), then draw its learning curve and film it.

    Args:
        out: Folder of the run; one that was interrupted goes on.
        core: Run on this core only.
        quiet: Show nothing but the end.
    """
    prepare(core)
    from euda.study import demo as demonstration
    from euda.study import display

    outcome = demonstration.train_until_solved(out, shown=display.make(quiet))
    if outcome.signal is not None:
        _print(ending(outcome))
        return 128 + outcome.signal
    _print(demonstration.show(out))
    return 0


def run_rows(folder: Path) -> list[dict[str, Any]]:
    """What `euda runs` shows: one row for each run below a folder."""
    from euda.study import run

    rows: list[dict[str, Any]] = []
    for path in run.find(folder):
        try:
            found = run.load(path)
        except EudaError as error:
            rows.append({"run": str(path), "state": f"unreadable: {error}"})
            continue
        status, config = run.status(found), found.config
        speed = status.step / status.seconds if status.seconds else None
        rows.append(
            {"run": str(path), "task": config.task, "method": config.label, "seed": config.seed, "step": status.step,
             "steps": config.steps, "return": status.last_return, "best": status.best_return, "speed": speed,
             "state": status.state, "identity": config.identity}
        )  # fmt: skip
    return rows


def _sinks(tensorboard: bool, wandb: str | None, mlflow: str | None) -> tuple[SinkMaker, ...]:
    from euda.study import metrics

    def tracker(kind: Any, project: str) -> SinkMaker:
        return lambda run, step: kind(project, run.config.folder_name, run.config.to_json())

    makers: list[SinkMaker] = []
    if tensorboard:
        makers.append(metrics.TensorBoard.of)
    named = ((metrics.WeightsAndBiases, wandb), (metrics.MLflow, mlflow))
    return (*makers, *(tracker(kind, project) for kind, project in named if project))


def _print(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()
