"""What a person sees of a run under way: a progress bar on a terminal, plain lines elsewhere, or nothing."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn

from euda.runs.config import RunConfig
from euda.runs.display import Display, Silent

_REDRAW = 0.25  # seconds
_LINE = 30.0  # seconds
_WINDOW = 10.0  # seconds


class Speed:
    """Steps per second over the last ten seconds or so, evaluations included."""

    def __init__(self, step: int) -> None:
        self._marks = [(time.perf_counter(), step)]

    def at(self, step: int) -> float:
        """The speed at a step."""
        now = time.perf_counter()
        self._marks.append((now, step))
        while len(self._marks) > 2 and now - self._marks[1][0] > _WINDOW:
            self._marks.pop(0)
        (before, first), (after, last) = self._marks[0], self._marks[-1]
        return (last - first) / (after - before) if after > before else 0.0


class Bar:
    """A progress bar at the bottom of a terminal, events scrolling above it."""

    def __init__(self, console: Console) -> None:
        self._last = {}
        self._progress, self._task = _progress(console), TaskID(0)
        self._drawn = 0.0

    @contextlib.contextmanager
    def shown(self, config: RunConfig, step: int) -> Iterator[None]:
        """Draw the bar."""
        self._speed = Speed(step)
        self._task = self._progress.add_task("", total=config.steps, completed=step, info="")
        self._total = config.steps
        with self._progress:
            yield

    def doing(self, what: str) -> None:
        """Print it above the bar."""
        self._progress.console.print(escape(what), highlight=False, soft_wrap=True)

    def step(self, step: int) -> None:
        """Redraw at most four times a second."""
        if (now := time.perf_counter()) - self._drawn > _REDRAW or step >= self._total:
            self._drawn = now
            info = _info(self._speed.at(step), self._total - step, self._last)
            self._progress.update(self._task, completed=step, info=info)
            self._progress.refresh()

    def event(self, event: Mapping[str, Any]) -> None:
        """Remember losses, print evaluations."""
        self._last = {**self._last, **_shown(event)}
        if event["event"] == "eval":
            self._progress.console.print(_line(event), highlight=False)

    def say(self, sentence: str) -> None:
        """Print it above the bar."""
        self._progress.console.print(f"euda: {escape(sentence)}", highlight=False, soft_wrap=True)


class Lines:
    """One plain line for each evaluation, and one now and then between."""

    def __init__(self, console: Console) -> None:
        self._console, self._last = console, {}
        self._printed = time.perf_counter()

    @contextlib.contextmanager
    def shown(self, config: RunConfig, step: int) -> Iterator[None]:
        """Nothing is drawn until something happens."""
        self._speed, self._total = Speed(step), config.steps
        yield

    def doing(self, what: str) -> None:
        """Print it."""
        self._print(what)

    def step(self, step: int) -> None:
        """A line every half minute."""
        if time.perf_counter() - self._printed > _LINE:
            info = _info(self._speed.at(step), self._total - step, self._last)
            self._print(f"step {step}/{self._total}  {info}")

    def event(self, event: Mapping[str, Any]) -> None:
        """Remember losses, print evaluations."""
        self._last = {**self._last, **_shown(event)}
        if event["event"] == "eval":
            self._print(_line(event))

    def say(self, sentence: str) -> None:
        """Print it."""
        self._print(f"euda: {sentence}")

    def _print(self, line: str) -> None:
        self._printed = time.perf_counter()
        self._console.print(line, highlight=False, markup=False, soft_wrap=True)


def make(quiet: bool = False, console: Console | None = None) -> Display:
    """The display that fits where the output goes."""
    console = console or Console()
    if quiet:
        return Silent()
    return Bar(console) if console.is_terminal else Lines(console)


def headline(config: RunConfig, folder: Path, where: str) -> str:
    """What begins, said before anything slow is loaded."""
    return f"{config.task}, {config.label}, seed {config.seed}: to step {config.steps}, {where}, in {folder}"


def duration(seconds: float) -> str:
    """Readable: 42 s, 5 min 40 s, 3 h 20 min."""
    whole = round(seconds)
    if whole < 60:
        return f"{whole} s"
    minutes, rest = divmod(whole, 60)
    return f"{minutes} min {rest} s" if minutes < 60 else f"{minutes // 60} h {minutes % 60} min"


def _progress(console: Console) -> Progress:
    return Progress(
        BarColumn(bar_width=None),
        MofNCompleteColumn(),
        TextColumn("{task.fields[info]}"),
        console=console,
        auto_refresh=False,
        expand=True,
    )


def _info(speed: float, left: int, last: Mapping[str, float]) -> str:
    ahead = f"{duration(left / speed)} left" if speed > 0 else ""
    numbers = [f"{name} {value:.4g}" for name, value in last.items()]
    return "  ".join(part for part in (f"{speed:.0f} steps/s", ahead, *numbers) if part)


def _shown(event: Mapping[str, Any]) -> dict[str, float]:
    """The numbers of an event worth a place beside the bar."""
    names = {"return_mean": "return", "critic_loss": "critic", "actor_loss": "actor"}
    return {short: event[name] for name, short in names.items() if name in event}


def _line(event: Mapping[str, Any]) -> str:
    low, high = min(event["returns"]), max(event["returns"])
    numbers = f"step {event['step']:>9}  return {event['return_mean']:7.1f}"
    return f"{numbers}  ({low:.0f} to {high:.0f}, {duration(event['seconds'])})"
