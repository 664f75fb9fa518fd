"""euda: reinforcement learning that exploits Euclidean symmetry in state-based continuous control.

Public names are loaded when first used. Importing registers the tasks with Gymnasium as `euda/<task>-v0`.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from euda.adapters.gymnasium import LimbObservation
    from euda.api import evaluate, load_policy, train
    from euda.body.certificate import Certificate, certify
    from euda.body.environment import ModelEnv, TaskEnv, make
    from euda.body.layout import Field, Kind, Layout
    from euda.body.morphology import Limb, Morphology
    from euda.body.picture import picture
    from euda.body.sufficiency import sufficiency
    from euda.body.tasks import TASKS
    from euda.errors import EudaError
    from euda.replay.dataset import augment_dataset
    from euda.study.methods import METHODS
    from euda.study.run import Run

_HOME = {
    "Certificate": "euda.body.certificate",
    "EudaError": "euda.errors",
    "Field": "euda.body.layout",
    "Kind": "euda.body.layout",
    "Layout": "euda.body.layout",
    "Limb": "euda.body.morphology",
    "LimbObservation": "euda.adapters.gymnasium",
    "METHODS": "euda.study.methods",
    "ModelEnv": "euda.body.environment",
    "Morphology": "euda.body.morphology",
    "Run": "euda.study.run",
    "TASKS": "euda.body.tasks",
    "TaskEnv": "euda.body.environment",
    "augment_dataset": "euda.replay.dataset",
    "certify": "euda.body.certificate",
    "evaluate": "euda.api",
    "load_policy": "euda.api",
    "make": "euda.body.environment",
    "picture": "euda.body.picture",
    "sufficiency": "euda.body.sufficiency",
    "train": "euda.api",
}

__all__ = [
    "METHODS",
    "TASKS",
    "Certificate",
    "EudaError",
    "Field",
    "Kind",
    "Layout",
    "Limb",
    "LimbObservation",
    "ModelEnv",
    "Morphology",
    "Run",
    "TaskEnv",
    "augment_dataset",
    "certify",
    "evaluate",
    "load_policy",
    "make",
    "picture",
    "sufficiency",
    "train",
]


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module 'euda' has no attribute {name!r}")
    return getattr(importlib.import_module(_HOME[name]), name)


def __dir__() -> list[str]:
    return __all__


def _register_environments() -> None:
    from euda.body.environment import register

    register()


_register_environments()
