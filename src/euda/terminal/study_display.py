"""What a person sees of a study: a live table on a terminal, plain lines elsewhere."""

from __future__ import annotations

import math
import time
from collections import Counter
from collections.abc import Sequence
from typing import Self

from rich.console import Console
from rich.live import Live
from rich.markup import escape
from rich.table import Table

from euda.studies.status import Progress
from euda.terminal.displays import duration

_LINE = 60.0  # seconds between plain lines about the same run
_STYLES = {"finished": "green", "running": "bold", "failed": "red", "stopped": "yellow", "waiting": "dim"}
_ORDER = ("running", "failed", "stopped", "waiting", "finished")


class LiveView:
    """A table at the bottom of a terminal, drawn anew every second; what happens scrolls above it."""

    def __init__(self, console: Console, workers: int) -> None:
        self._console, self._workers = console, workers
        self._live = Live(console=console, auto_refresh=False, transient=False)

    def __enter__(self) -> Self:
        self._live.__enter__()
        return self

    def __exit__(self, *error: object) -> None:
        self._live.__exit__(None, None, None)

    def update(self, rows: list[Progress]) -> None:
        """Redraw."""
        room = max(4, self._console.size.height - 6)
        self._live.update(table(rows, self._workers, room), refresh=True)

    def say(self, sentence: str) -> None:
        """Print it above the table."""
        self._live.console.print(escape(sentence), highlight=False, soft_wrap=True)


class LineView:
    """A line for each thing that happens, and one now and then for each run under way."""

    def __init__(self, console: Console, workers: int) -> None:
        self._console, self._workers = console, workers
        self._told: dict[str, float] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        """Nothing is open."""

    def update(self, rows: list[Progress]) -> None:
        """Tell of each run when it is first seen running, and then once a minute."""
        now = time.monotonic()
        running = [row for row in rows if row.state == "running"]
        due = [row for row in running if now - self._told.get(row.planned.name, -math.inf) > _LINE]
        for row in due:
            self._told[row.planned.name] = now
            self.say("  ".join([row.planned.name, *_cells(row)[1:]]))
        if due:
            self.say(summary(rows, self._workers))

    def say(self, sentence: str) -> None:
        """Print it."""
        self._console.print(sentence, highlight=False, markup=False, soft_wrap=True)


def make(workers: int, console: Console | None = None) -> LiveView | LineView:
    """The view that fits where the output goes."""
    console = console or Console()
    return LiveView(console, workers) if console.is_terminal else LineView(console, workers)


def table(rows: Sequence[Progress], workers: int, room: int | None = None) -> Table:
    """Every run as a line, what is under way first; no more lines than there is room for."""
    ordered = sorted(rows, key=lambda row: _ORDER.index(row.state))
    shown = ordered if room is None else ordered[:room]
    result = Table(caption=summary(rows, workers), caption_justify="left", box=None, pad_edge=False, header_style="")
    for name in ("task", "method", "seed", "state", "progress", "steps/s", "return", "left"):
        is_text = name in ("task", "method", "state")
        result.add_column(name, justify="left" if is_text else "right", no_wrap=True)
    for row in shown:
        config = row.planned.config
        style = _STYLES[row.state]
        result.add_row(escape(config.task), escape(row.planned.curve), str(config.seed), *_cells(row), style=style)
    if len(shown) < len(ordered):
        result.add_row(f"… {len(ordered) - len(shown)} more", style="dim")
    return result


def lines(rows: Sequence[Progress]) -> list[tuple[str, ...]]:
    """Every run as plain cells."""
    return [(p.config.task, p.curve, str(p.config.seed), *_cells(row)) for row in rows for p in [row.planned]]


def summary(rows: Sequence[Progress], workers: int) -> str:
    """How many runs are in which state, and when everything may be done."""
    counts = Counter(row.state for row in rows)
    parts = [f"{counts[state]} {state}" for state in ("finished", "running", "stopped", "waiting", "failed")]
    text = f"{len(rows)} runs: " + ", ".join(part for part in parts if not part.startswith("0 "))
    left = seconds_left(rows, workers)
    return text if left is None else f"{text}; about {duration(left)} left"


def seconds_left(rows: Sequence[Progress], workers: int) -> float | None:
    """Of the whole study, if the runs to come are as fast as those seen (their mean where nothing is known)."""
    speeds = [row.speed for row in rows if row.speed]
    if not speeds:
        return None
    typical = len(speeds) / sum(1 / speed for speed in speeds)
    ahead = [row for row in rows if row.state not in ("finished", "failed")]
    work = sum(max(row.steps - row.step, 0) / (row.speed or typical) for row in ahead)
    longest = max((row.seconds_left or 0 for row in ahead), default=0)
    return max(work / max(1, min(workers, len(ahead))), longest) if ahead else None


def _cells(row: Progress) -> tuple[str, ...]:
    done = min(row.step / row.steps, 1.0)
    progress = f"{done:4.0%} of {row.steps}"
    numbers = [f"{row.speed:.0f}" if row.speed else "", "" if row.last_return is None else f"{row.last_return:.1f}"]
    left = duration(row.seconds_left) if row.state == "running" and row.seconds_left is not None else ""
    return (row.state, progress, *numbers, left)
