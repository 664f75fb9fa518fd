"""Configuration → the same with the symmetries that its run may learn from, as short certificates allow."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

from euda.errors import EudaError
from euda.replay.settings import NEAR
from euda.runs import element_premise, premise
from euda.runs.config import RunConfig
from euda.runs.premise import INSIST, Say


def settled(config: RunConfig, say: Say, doing: Callable[[], None] = lambda: None, insist: str = INSIST) -> RunConfig:
    """Refuses a run whose premise is broken, and says what is near or left out.

    `doing` is called if the robot has to be examined; `insist` says how to train anyway.
    """
    if not (NEAR[config.near].only_exact and config.turns_batches):
        premise.check(config, say, doing, insist)
        return dataclasses.replace(config, elements=element_premise.choose(config, say, doing, insist))
    yaws = premise.exact_yaws(config, say, doing)
    try:
        elements = element_premise.choose(config, say, doing, insist)
    except EudaError as error:
        if yaws == 1:
            raise
        elements = ()
        say(f"yaws alone are used: {error}")
    if yaws == 1 and not elements:
        raise EudaError(f"no yaw of {config.task} is exact; see euda certify, use --group mirror, or another --near")
    return dataclasses.replace(config, elements=elements, yaws=yaws)
