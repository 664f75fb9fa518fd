"""What follows a run under way: anything with these five verbs; `terminal` has those that a person sees."""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from typing import Any, Protocol

from euda.runs.config import RunConfig


class Display(Protocol):
    """Follows a run."""

    def shown(self, config: RunConfig, step: int) -> contextlib.AbstractContextManager[None]:
        """While this is open, the run is under way; it begins at `step`."""
        ...

    def doing(self, what: str) -> None:
        """Something begins that takes a while and is no step: loading, compiling."""
        ...

    def step(self, step: int) -> None:
        """The run has done a step."""
        ...

    def event(self, event: Mapping[str, Any]) -> None:
        """The run has recorded something."""
        ...

    def say(self, sentence: str) -> None:
        """Something the user should know."""
        ...


class Silent:
    """Shows nothing but warnings, which it keeps."""

    def __init__(self) -> None:
        self.said: list[str] = []

    def shown(self, config: RunConfig, step: int) -> contextlib.AbstractContextManager[None]:
        """Nothing to open."""
        return contextlib.nullcontext()

    def doing(self, what: str) -> None:
        """Nothing to show."""

    def step(self, step: int) -> None:
        """Nothing to show."""

    def event(self, event: Mapping[str, Any]) -> None:
        """Nothing to show."""

    def say(self, sentence: str) -> None:
        """Keep it."""
        self.said.append(sentence)
