"""Methods: an agent, the features it sees, what is done to its batches, and its network, under one name.

A method is only a short way to say these four; a run is identified by what they resolve to. A new method
is a new row.
"""

from __future__ import annotations

import dataclasses

from euda.config import AGENTS
from euda.errors import EudaError, unknown

NETWORKS = ("mlp", "segnn", "segnn-single")
DEFAULT_SHARES = {"none": 0.0, "rotate": 0.5, "gaussian": 1.0, "scale": 1.0, "rotate-auto": 1.0}
"""By augmentation. The best share of rotated transitions differs from task to task; half is the middle."""


@dataclasses.dataclass(frozen=True)
class Method:
    """One row."""

    agent: str
    features: str
    augment: str
    network: str = "mlp"


METHODS: dict[str, Method] = {
    "ddpg": Method("ddpg", "joint", "none"),
    "sac": Method("sac", "joint", "none"),
    "ddpg-gn": Method("ddpg", "joint", "gaussian"),
    "ddpg-ras": Method("ddpg", "joint", "scale"),
    "limb": Method("ddpg", "limb", "none"),
    "rotate": Method("ddpg", "limb", "rotate"),
    "joint-rotate": Method("ddpg", "joint", "rotate"),
    "rotate-auto": Method("ddpg", "limb", "rotate-auto"),
    "segnn": Method("ddpg", "limb", "none", "segnn"),
    "segnn-single": Method("ddpg", "limb", "none", "segnn-single"),
}
"""The methods by name.

>>> from euda import METHODS
>>> METHODS["rotate"]
Method(agent='ddpg', features='limb', augment='rotate', network='mlp')
"""


def find(name: str) -> Method:
    """The row of that name."""
    if name not in METHODS:
        raise unknown("method", name, METHODS)
    return METHODS[name]


def combine(name: str, agent: str | None, features: str | None, augment: str | None) -> Method:
    """A method with some of its parts replaced."""
    changes = {"agent": agent, "features": features, "augment": augment}
    method = dataclasses.replace(find(name), **{key: value for key, value in changes.items() if value is not None})
    if method.agent not in AGENTS:
        raise unknown("agent", method.agent, AGENTS)
    return method


def name_of(method: Method) -> str:
    """The name of a method in the table, or one made of its parts."""
    named = next((name for name, row in METHODS.items() if row == method), None)
    parts = [*([method.network] if method.network != "mlp" else []), method.agent, method.features]
    return named or "-".join([*parts, *([method.augment] if method.augment != "none" else [])])


def share_of(method: Method, share: float | None) -> float:
    """The share of a batch that a method changes: the one asked for, or its default."""
    default = DEFAULT_SHARES.get(method.augment, 1.0)
    if share is None:
        return default
    if not 0 <= share <= 1:
        raise EudaError(f"share must be between 0 and 1, not {share!r}")
    if method.augment == "rotate-auto":
        raise EudaError(f"share {share:g} cannot be given: rotate-auto chooses it; use rotate")
    if share and method.augment == "none":
        raise EudaError(
            f"share {share:g} changes nothing: {name_of(method)!r} has no augmentation; add --augment rotate"
        )
    return share
