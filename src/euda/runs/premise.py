"""Does the robot have the symmetry that a run learns from? A short certificate says so before the run begins.

It takes a second or two and is kept, see `certificates`.
"""

from __future__ import annotations

from collections.abc import Callable

from euda.errors import EudaError
from euda.runs import certificates
from euda.runs.certificates import Kept
from euda.runs.config import RunConfig

STATES, YAWS = 18, 2
SHOWN = 3
"""Untouched contacts that a run names at its beginning."""
INSIST = "insist with --trust-symmetry"
Say = Callable[[str], None]


def check(config: RunConfig, say: Say, doing: Callable[[], None] = lambda: None, insist: str = INSIST) -> None:
    """Refuse a run whose premise is broken, and say how near it is where it is not exact.

    `doing` is called if a certificate has to be made; `insist` says how to train anyway.
    """
    if config.trust_symmetry or not config.uses_yaw:
        return
    try:
        found = premise_of(config, doing)
    except EudaError as error:  # a robot that falls apart under random actions, say: training will tell
        say(f"the symmetry could not be tested: {error}")
        return
    if found is None:
        return
    because = f": {found.causes[0]}" if found.causes else ""
    if found.verdict == "broken":
        raise EudaError(
            f"{config.task} does not have the symmetry that this run would learn from ({found.number}){because};"
            f" see euda certify, train without symmetry (--method limb), or {insist}"
        )
    if found.verdict == "near":
        say(f"the symmetry of {config.task} is near, not exact ({found.number}){because}")
    if found.untouched:
        say(
            f"contacts that no tested state had: {_some(found.untouched)}; euda certify {_subject(config)} tests longer"
        )


def premise_of(config: RunConfig, doing: Callable[[], None] = lambda: None) -> Kept | None:
    """The short certificate of a run; None if its observations do not turn at all."""
    if not certificates.simulation(config, config.features).layout.turns:
        return None
    return certificates.certificate_of(config, config.features, STATES, YAWS, doing)


def _subject(config: RunConfig) -> str:
    """The robot as a user types it."""
    if config.robot is None:
        return config.task
    return config.robot.path or f"--env {config.robot.env}"


def _some(names: tuple[str, ...]) -> str:
    """The first few names, and how many more there are."""
    more = len(names) - SHOWN
    return ", ".join(names[:SHOWN]) + (f" and {more} more" if more > 0 else "")
