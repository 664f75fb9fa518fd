"""Settings, step → what of learning is due by that step: functions of the step alone, so nothing of it is stored."""

from __future__ import annotations

import math

from euda.replay.settings import ReplayConfig

LATER = 2.5
"""Networks begin anew at so many times the step before: ever more seldom, as there is ever more to learn again."""


def updates_until(replay: ReplayConfig, step: int) -> int:
    """How many updates are due in all by a step."""
    return math.floor(replay.updates_per_step * max(step - replay.seed_steps, 0))


def beginnings_until(replay: ReplayConfig, step: int) -> int:
    """How often the networks have begun anew by a step."""
    edge, count = float(replay.anew_from), 0
    while 0 < edge <= step:
        edge, count = LATER * edge, count + 1
    return count
