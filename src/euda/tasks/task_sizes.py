"""Sizes of a task, all derived from its model."""

from __future__ import annotations

import dataclasses

from euda.body.features import FEATURES
from euda.body.morphology import Morphology
from euda.tasks import table


@dataclasses.dataclass(frozen=True)
class Summary:
    """One line of `euda tasks`."""

    name: str
    n: int
    d1: int
    n1: int
    n2: int
    n3: int
    actions: int
    features: dict[str, int]
    episode_steps: int
    control_timestep: float
    """Seconds."""
    cone: str
    """The friction cone used unless another is asked for: `pyramidal` or `elliptic`."""


def summary(name: str) -> Summary:
    """Sizes of a task, all derived from its model."""
    environment = table.load(name)
    body = table.robot(name, environment)
    limbs: Morphology = body.morphology
    sizes = {features: table.observer(name, body, features).layout.dim for features in FEATURES}
    return Summary(
        name, limbs.n, limbs.d1, limbs.count(1), limbs.count(2), limbs.count(3), int(body.model.nu), sizes,
        table.EPISODE_STEPS, environment.control_timestep(), table.cone_name(body.model),
    )  # fmt: skip
