"""What a person sees of the demonstration: both learning curves, growing, in a few lines of a terminal."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self

from rich.console import Console
from rich.live import Live
from rich.markup import escape
from rich.table import Table

from euda.studies.status import Progress
from euda.studies.study_folder import Study
from euda.terminal import demo
from euda.terminal.displays import duration

_BLOCKS = " ▁▂▃▄▅▆▇█"


class Curves:
    """A line for each run at the bottom of a terminal; elsewhere a plain line for each evaluation."""

    def __init__(self, study: Study, highest: float, quiet: bool = False, console: Console | None = None) -> None:
        self._study, self._highest, self._quiet = study, highest, quiet
        self._console = console or Console()
        self._live = (
            Live(console=self._console, auto_refresh=False) if self._console.is_terminal and not quiet else None
        )
        self._told = {planned.curve: 0 for planned in study.plan.runs}

    def __enter__(self) -> Self:
        if self._live is not None:
            self._live.__enter__()
        return self

    def __exit__(self, *error: object) -> None:
        if self._live is not None:
            self._live.__exit__(None, None, None)

    def update(self, rows: list[Progress]) -> None:
        """Both curves as they are now."""
        reached = demo.evaluations(self._study)
        if self._live is not None:
            self._live.update(_table(rows, reached, self._highest), refresh=True)
            return
        for curve, evaluated in reached.items():
            for step, value in evaluated[self._told[curve] :]:
                self.say(f"{curve:>16}  step {step:>6}  return {value:6.1f}")
            self._told[curve] = len(evaluated)

    def say(self, sentence: str) -> None:
        """Something that happened."""
        if self._quiet:
            return
        console = self._console if self._live is None else self._live.console
        console.print(escape(sentence), highlight=False, soft_wrap=True)


def _table(rows: Sequence[Progress], reached: dict[str, demo.Evaluations], highest: float) -> Table:
    table = Table(box=None, pad_edge=False, header_style="dim")
    for name in ("", "learning"):
        table.add_column(name, no_wrap=True)
    for name in ("return", "done", "left"):
        table.add_column(name, justify="right", no_wrap=True)
    for row in rows:
        values = [value for _, value in reached[row.planned.curve]]
        last = f"{values[-1]:.0f}" if values else "–"
        left = duration(row.seconds_left) if row.state == "running" and row.seconds_left is not None else row.state
        done = f"{min(row.step / row.steps, 1.0):.0%}"
        table.add_row(row.planned.curve, sparkline(values, highest), last, done, left)
    return table


def sparkline(values: Sequence[float], highest: float) -> str:
    """A curve in one line of text, from 0 to `highest`."""
    levels = (min(max(value / highest, 0.0), 1.0) * (len(_BLOCKS) - 1) for value in values)
    return "".join(_BLOCKS[max(1, round(level))] for level in levels)
