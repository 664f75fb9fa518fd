"""A first success: train the reacher with turned experience until it hits its target, then show it."""

from __future__ import annotations

import contextlib
import io
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from matplotlib.figure import Figure

from euda.config import AugmentationConfig
from euda.study import display, run, storage, video
from euda.study.display import Display
from euda.study.run import Run
from euda.study.settings import EvaluationConfig, RunConfig
from euda.study.stopping import Stop
from euda.study.training import Outcome, SinkMaker, train

SOLVED = 900.0
"""Of a return that is at most 1000: on the target for nine tenths of the time, the way there included."""
CONFIG = RunConfig(
    "reacher_hard",
    augmentation=AugmentationConfig("rotate", 0.25),
    evaluation=EvaluationConfig(every=5000),
    checkpoint_every=5000,
    steps=200_000,
)


class UntilSolved:
    """Shows a run on another display and asks it to stop as soon as an evaluation is good enough."""

    def __init__(self, shown: Display, stop: Stop, solved: float) -> None:
        self._shown, self._stop, self._solved = shown, stop, solved

    def shown(self, config: RunConfig, step: int) -> contextlib.AbstractContextManager[None]:
        """As the other."""
        return self._shown.shown(config, step)

    def step(self, step: int) -> None:
        """As the other."""
        self._shown.step(step)

    def event(self, event: Mapping[str, Any]) -> None:
        """As the other, and look at evaluations."""
        self._shown.event(event)
        if event["event"] == "eval" and event["return_mean"] >= self._solved:
            self._stop.request()

    def say(self, sentence: str) -> None:
        """As the other."""
        self._shown.say(sentence)


def train_until_solved(
    folder: Path,
    config: RunConfig = CONFIG,
    solved: float = SOLVED,
    shown: Display | None = None,
    sinks: tuple[SinkMaker, ...] = (),
) -> Outcome:
    """Begin or go on with the demonstration's run; nothing to do if it is solved already."""
    returns = _returns(Run(folder, config)) if (folder / run.CONFIG).is_file() else []
    if returns and max(value for _, value in returns) >= solved:
        run.check(folder, config)
        return Outcome(folder, returns[-1][0], True)
    stop = Stop()
    return train(config, folder, display=UntilSolved(shown or display.make(), stop, solved), sinks=sinks, stop=stop)


def show(folder: Path) -> str:
    """Draw the learning curve and film the policy; what was reached and what to do next."""
    found = run.load(folder)
    returns = _returns(found)
    figure, film = folder / "learning.png", folder / "policy.mp4"
    storage.write_atomically(figure, draw(found))
    video.film(found, film)
    (_, before), (step, after) = returns[0], returns[-1]
    commands = {
        f"euda evaluate {shlex.quote(str(folder))} --episodes 50": "a closer look at this policy",
        "euda train reacher_hard --method limb --steps 50000": "the same without turning, to compare",
        "euda train hopper3d_hop --steps 500000": "a robot that falls",
        "euda tasks": "all robots",
    }
    width = max(map(len, commands)) + 4
    return "\n".join(
        [
            f"return {before:.1f} before training, {after:.1f} after {step} steps (of {found.config.episode_steps})",
            f"learning curve: {figure}",
            f"video:          {film}",
            "next:",
            *(f"  {command.ljust(width)}{what}" for command, what in commands.items()),
        ]
    )


def draw(found: Run) -> bytes:
    """The learning curve of a run as a PNG file."""
    figure = Figure(figsize=(7, 4), layout="constrained", dpi=150)
    axes = figure.subplots()
    episodes = [(event["step"], event["return"]) for event in found.events() if event["event"] == "train"]
    if episodes:
        axes.plot(*zip(*episodes, strict=True), ".", color="0.75", label="training episodes, with exploration noise")
    axes.plot(*zip(*_returns(found), strict=True), "o-", color="tab:blue", label="evaluation, mean of ten episodes")
    axes.set(xlabel="environment steps", ylabel="return", title=f"{found.config.task}, {found.config.label}")
    axes.set_ylim(0, found.config.episode_steps)
    axes.legend(loc="upper left")
    content = io.BytesIO()
    figure.savefig(content, format="png")
    return content.getvalue()


def _returns(found: Run) -> list[tuple[int, float]]:
    """Step and mean return of every evaluation."""
    return [(event["step"], event["return_mean"]) for event in found.events() if event["event"] == "eval"]
