"""euda: reinforcement learning that exploits Euclidean symmetry in state-based continuous control.

Public names are loaded when first used. Importing registers the tasks with Gymnasium as `euda/<task>-v0`.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from euda.api import evaluate, evaluate_turned, export, load, train
    from euda.api import load as load_policy  # noqa: F401 - see _FORMER
    from euda.body.field import Field, Kind
    from euda.body.layout import Layout
    from euda.body.morphology import Limb, Morphology
    from euda.errors import EudaError
    from euda.media.picture import picture
    from euda.replay.dataset import augment_dataset
    from euda.reports.matplotlib_figures import draw_runs
    from euda.runs.methods import METHODS
    from euda.runs.run_folder import Run
    from euda.symmetry.certificate import Certificate, certify
    from euda.symmetry.discovery import symmetries
    from euda.symmetry.selection import task_symmetries
    from euda.symmetry.sufficiency import sufficiency
    from euda.tasks.limb_observation import LimbObservation
    from euda.tasks.table import TASKS
    from euda.tasks.task_env import ModelEnv, TaskEnv, make

_HOME = {
    "Certificate": "euda.symmetry.certificate",
    "EudaError": "euda.errors",
    "Field": "euda.body.field",
    "Kind": "euda.body.field",
    "Layout": "euda.body.layout",
    "Limb": "euda.body.morphology",
    "LimbObservation": "euda.tasks.limb_observation",
    "METHODS": "euda.runs.methods",
    "ModelEnv": "euda.tasks.task_env",
    "Morphology": "euda.body.morphology",
    "Run": "euda.runs.run_folder",
    "TASKS": "euda.tasks.table",
    "TaskEnv": "euda.tasks.task_env",
    "augment_dataset": "euda.replay.dataset",
    "certify": "euda.symmetry.certificate",
    "draw_runs": "euda.reports.matplotlib_figures",
    "evaluate": "euda.api",
    "evaluate_turned": "euda.api",
    "export": "euda.api",
    "load": "euda.api",
    "make": "euda.tasks.task_env",
    "picture": "euda.media.picture",
    "sufficiency": "euda.symmetry.sufficiency",
    "symmetries": "euda.symmetry.discovery",
    "task_symmetries": "euda.symmetry.selection",
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
    "draw_runs",
    "evaluate",
    "evaluate_turned",
    "export",
    "load",
    "make",
    "picture",
    "sufficiency",
    "symmetries",
    "task_symmetries",
    "train",
]


_FORMER = {"load_policy": "load"}
"""Names that scripts may still use; the shorter one is what a user types, and a run has one thing to act with."""


def __getattr__(name: str) -> Any:
    name = _FORMER.get(name, name)
    if name not in _HOME:
        raise AttributeError(f"module 'euda' has no attribute {name!r}")
    return getattr(importlib.import_module(_HOME[name]), name)


def __dir__() -> list[str]:
    return __all__


def _register_environments() -> None:
    from euda.tasks.task_env import register

    register()


_register_environments()
