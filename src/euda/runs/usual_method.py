"""The method of a run that names none: the base's, or turned batches where that does not fit."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from euda.agents.input_settings import FRAMES
from euda.errors import EudaError
from euda.lookup import loaded
from euda.runs import bases
from euda.runs.config import RunConfig
from euda.runs.environments import make_environment

TURNED = "rotate"
"""Works with every robot and with every setting below."""
_FOR_TURNED = ("augment", "features", "frame", "group", "near")
"""Whoever says one of these has turned batches in mind, and the method of the base may have none."""


def usual_method(base: str, share: float | None, overrides: Mapping[str, Any]) -> str:
    """The method of a run of a task that names none; the limb features of every task show the robot's own frame."""
    is_about_turning = share is not None or any(name in overrides for name in _FOR_TURNED)
    return TURNED if is_about_turning else bases.find(base).method


def fitting(method: str, make: Callable[[str], RunConfig]) -> RunConfig:
    """What `make` gives for a method; for turned batches where a custom robot's observations show no frame it needs."""
    config = make(method)
    frame = FRAMES[config.frame].make
    if config.robot is not None and frame is not None:
        try:
            loaded(frame)(make_environment(config).layout, config.target)
        except EudaError:
            return make(TURNED)
    return config
