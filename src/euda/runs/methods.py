"""Methods: what an agent observes and what is done with symmetry, under one name; any method with any base.

A method is only a short way to say these; a run is identified by what they resolve to. A new method is a new row.
"""

from __future__ import annotations

import dataclasses

from euda import lookup
from euda.agents.input_settings import WORLD
from euda.errors import EudaError
from euda.replay.settings import AUGMENTATIONS, NOTHING


@dataclasses.dataclass(frozen=True)
class Method:
    """One row."""

    features: str
    """What is observed."""
    augment: str = NOTHING
    """What is done to batches."""
    frame: str = WORLD
    """What the networks see observations in."""
    agent: str | None = None
    """None: the base's."""
    network: str | None = None
    """None: the base's."""


METHODS: dict[str, Method] = {
    "ddpg": Method("joint", agent="ddpg"),
    "sac": Method("joint", agent="sac"),
    "ddpg-gn": Method("joint", "gaussian", agent="ddpg"),
    "ddpg-ras": Method("joint", "scale", agent="ddpg"),
    "joint": Method("joint"),
    "limb": Method("limb"),
    "rotate": Method("limb", "rotate"),
    "canonical": Method("limb", frame="own"),
    "joint-rotate": Method("joint", "rotate"),
    "rotate-auto": Method("limb", "rotate-auto"),
    "segnn": Method("limb", network="segnn"),
    "segnn-single": Method("limb", network="segnn-single"),
}
"""The methods by name.

>>> from euda import METHODS
>>> METHODS["rotate"]
Method(features='limb', augment='rotate', frame='world', agent=None, network=None)
"""


def find(name: str) -> Method:
    """The row of that name."""
    return lookup.find("method", METHODS, name)


def share_of(name: str, augment: str, share: float | None, symmetric: float | None = None) -> float:
    """The share of a batch that an augmentation changes: the one asked for, or the row's; `name` is the method's.

    `symmetric` is what a base has for augmentations by a symmetry, instead of the row's.
    """
    row = lookup.find("augmentation", AUGMENTATIONS, augment)
    if share is None:
        usual = symmetric if row.uses_symmetry and symmetric is not None else row.share
        return 1.0 if row.share is None or usual is None else usual
    if row.share is None:
        raise EudaError(f"share {share:g} cannot be given: {augment} chooses it; use rotate")
    if share and row.make is None:
        raise EudaError(f"share {share:g} changes nothing: {name!r} has no augmentation; add --augment rotate")
    return share
