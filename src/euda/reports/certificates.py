"""Runs → a line for each of their robots: what the simulator says about its symmetry."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

from euda.errors import EudaError
from euda.reports.labels import Source
from euda.runs.certificates import certificate_of
from euda.runs.config import RunConfig

STATES, YAWS = 40, 2
Say = Callable[[str], None]


@dataclasses.dataclass(frozen=True)
class Shown:
    """One line of a report's table."""

    task: str
    features: str
    cone: str
    verdict: str
    causes: tuple[str, ...]
    worst: float | None = None
    """Relative error; None where nothing was compared."""
    tested: str = ""
    """In which states."""
    contacts: str = ""
    """Pairs that touched, of how many that can."""
    limits: str = ""
    """That acted, of how many."""


def of_runs(sources: tuple[Source, ...], say: Say) -> list[Shown]:
    """A line for each robot, for its limbs and whatever features its runs turn."""
    wanted: dict[tuple[str, str, str], RunConfig] = {}
    for source in sources:
        config = source.config
        wanted.setdefault((source.task, "limb", config.cone), config)
        if config.augmentation.row.uses_symmetry:
            wanted.setdefault((source.task, config.features, config.cone), config)
    return [_shown(*key, config, say) for key, config in wanted.items()]


def _shown(task: str, features: str, cone: str, config: RunConfig, say: Say) -> Shown:
    try:
        doing = f"turning the world of {task} ({features} features)"
        found = certificate_of(config, features, STATES, YAWS, lambda: say(doing))
    except EudaError as error:  # its file has moved, or it needs code that is not ours to run
        return Shown(task, features, cone, "not tested", (str(error),))
    sought = f" + {found.sought}" if found.sought else ""
    tested = f"{found.states}{sought} states × {found.yaws}"
    return Shown(
        task, features, found.cone, found.verdict, found.causes, found.worst, tested, found.contacts, found.limits
    )
