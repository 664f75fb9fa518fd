"""The groups of settings of a run, by the name that flags and study files have for them: `--replay.capacity`.

`inputs`, `replay` and `evaluation` are always there; every row of AGENTS, NETWORKS and AUGMENTATIONS adds the group of
its settings class, named after the first row that has this class.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from euda.agents.input_settings import InputsConfig
from euda.agents.network_settings import NETWORKS
from euda.agents.settings import AGENTS
from euda.errors import EudaError
from euda.replay.settings import AUGMENTATIONS, ReplayConfig
from euda.schema import Count, Seed, Settings


@dataclasses.dataclass(frozen=True)
class EvaluationConfig(Settings):
    """How the policy is judged during training."""

    every: Count = 10_000
    """Environment steps between two evaluations; the first is before any step."""
    episodes: Count = 10
    """Episodes of one evaluation, all stepped together, without exploration noise."""
    seed: Seed = 0
    """Their starts depend on this and the step only, so they are the same for every run."""


COMMON: dict[str, type[Settings]] = {"inputs": InputsConfig, "replay": ReplayConfig, "evaluation": EvaluationConfig}
"""What every run has."""
TABLES: dict[str, Mapping[str, Any]] = {"agent": AGENTS, "network": NETWORKS, "augmentation": AUGMENTATIONS}
"""What a run has one of, each with a settings class."""


def groups() -> dict[str, type[Settings]]:
    """The settings class of every group, by name."""
    found = dict(COMMON)
    for rows in TABLES.values():
        for name, row in rows.items():
            if row.settings in found.values() or not dataclasses.fields(row.settings):
                continue
            if name in found:
                raise EudaError(f"two rows named {name!r} have settings, so --{name}.… could be either: rename one")
            found[name] = row.settings
    return found


def name_of(kind: type[Settings]) -> str:
    """The name of the group of a settings class; empty if it has nothing to set."""
    return next((name for name, other in groups().items() if other is kind), "")
