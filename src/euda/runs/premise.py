"""Does the robot have the symmetry that a run learns from? A short certificate says so before the run begins.

It takes a second or two and is kept, see `certificates`.
"""

from __future__ import annotations

import textwrap
from collections.abc import Callable

from euda.errors import EudaError
from euda.replay.settings import NEAR
from euda.runs import certificates
from euda.runs.certificates import Kept
from euda.runs.config import RunConfig

STATES, YAWS = 18, 2
SHOWN = 3
"""Untouched contacts that a run names at its beginning."""
FOLDS = (4, 2)
"""Yaws in a turn, of which all may be exact where others are not: quarter turns, half turns."""
_CAUSE = 240  # characters of a cause in the middle of a sentence
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
    because = f": {_brief(found.causes[0])}" if found.causes else ""
    if found.verdict == "broken" and NEAR[config.near].chance is None:
        raise EudaError(
            f"{config.task} does not have the symmetry that this run would learn from ({found.number}){because};"
            f" see euda certify, train without symmetry (--method limb), or {insist}"
        )
    if found.verdict in ("near", "broken"):
        say(f"the symmetry of {config.task} is {found.verdict}, not exact ({found.number}){because}")
    if found.untouched:
        say(
            f"contacts that no tested state had: {_some(found.untouched)}; euda certify {_subject(config)} tests longer"
        )


def exact_yaws(config: RunConfig, say: Say, doing: Callable[[], None] = lambda: None) -> int:
    """How many equally spaced yaws are exact: 0 for all there are, 4, 2, or 1, which is none but the identity."""
    for fold in (0, *FOLDS):
        found = premise_of(config, doing, fold)
        if found is None or found.verdict.startswith("exact"):
            break
        because = f": {_brief(found.causes[0])}" if found.causes else ""
        what = f"yaws by {360 // fold}°" if fold else "yaws"
        say(f"left out: {what} of {config.task} are {found.verdict}, not exact ({found.number}){because}")
    else:
        return 1
    return fold


def premise_of(config: RunConfig, doing: Callable[[], None] = lambda: None, fold: int = 0) -> Kept | None:
    """The short certificate of a run, of all yaws or of a few; None if its observations do not turn at all."""
    make = certificates.once(config, config.features)
    if not make().layout.turns:
        return None
    return certificates.certificate_of(config, config.features, STATES, YAWS, doing, fold, make)


def _subject(config: RunConfig) -> str:
    """The robot as a user types it."""
    if config.robot is None:
        return config.task
    return config.robot.path or f"--env {config.robot.env}"


def _brief(cause: str) -> str:
    """A cause in the middle of a sentence: its beginning, if it names very many parts."""
    return textwrap.shorten(cause, _CAUSE, placeholder=" … (all of it: euda certify)")


def _some(names: tuple[str, ...]) -> str:
    """The first few names, and how many more there are."""
    more = len(names) - SHOWN
    return ", ".join(names[:SHOWN]) + (f" and {more} more" if more > 0 else "")
