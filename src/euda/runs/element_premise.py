"""Which elements of a robot's finite group may a run learn from? Those that a short examination does not refuse.

What was found is kept in the user's cache like the certificates of yaws, and the names of the elements in use become
part of the run's configuration, so that a run that goes on uses the same.
"""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Callable

import pydantic

from euda.errors import EudaError
from euda.replay.settings import NEAR
from euda.runs import atomic_files, certificates
from euda.runs.config import RunConfig
from euda.runs.premise import INSIST, Say
from euda.symmetry.examination import examine
from euda.symmetry.selection import STATES, Candidates


def choose(
    config: RunConfig, say: Say, doing: Callable[[], None] = lambda: None, insist: str = INSIST
) -> tuple[str, ...]:
    """The names of the elements that a run learns from; says which are near, and which are left out.

    `doing` is called if the robot has to be examined; `insist` says how to train with broken ones.
    """
    if not config.uses_elements:
        return ()
    found = dataclasses.replace(_examined(config, doing), robot=config.task)
    near = NEAR[config.near]
    insist = "another --near" if near.only_exact else insist
    trust = config.trust_symmetry or near.chance is not None
    instead = "see euda symmetry, use --group yaw"
    selection = found.select(instead, insist=insist, trust=trust, only_exact=near.only_exact)
    for sentence in selection.said:
        say(sentence)
    return tuple(one.name for one in selection.elements)


def _examined(config: RunConfig, doing: Callable[[], None]) -> Candidates:
    """What is known of the group of a run's robot, from the cache if it is there."""
    make = certificates.once(config, config.features)
    key = certificates.key_of(config, config.features, STATES, 1, 0, make)
    path = certificates.cache() / f"group-{key}.json"
    if (kept := certificates.read(path, key, _SCHEMA)) is not None:
        return kept
    doing()
    found = Candidates.of(examine(make(), states=STATES))
    with contextlib.suppress(EudaError, OSError):  # it can be made again
        path.parent.mkdir(parents=True, exist_ok=True)
        atomic_files.write_json(path, {"key": key, **dataclasses.asdict(found)})
    return found


_SCHEMA = pydantic.TypeAdapter(Candidates)
