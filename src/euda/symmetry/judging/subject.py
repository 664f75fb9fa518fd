"""Whatever a user wants certified → the simulation in it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import gymnasium
import mujoco

from euda.errors import EudaError
from euda.tasks.base_env import LimbEnv
from euda.tasks.limb_observation import LimbObservation
from euda.tasks.task_env import ModelEnv, TaskEnv

Subject = str | Path | mujoco.MjModel | gymnasium.Env | Callable[[], LimbEnv]
"""A task by name, the path of an MJCF file, a compiled model, an environment, or a function that makes one."""


def environment_of(subject: Any) -> LimbEnv:
    """The simulation to certify; the very environment that was given, if it is one of ours."""
    if isinstance(subject, str) and not subject.endswith((".xml", ".mjcf", ".urdf", ".mjb")) and "/" not in subject:
        return TaskEnv(subject)
    if isinstance(subject, str | Path | mujoco.MjModel):
        return ModelEnv(subject)
    if isinstance(subject, gymnasium.Env):
        base = subject.unwrapped
        return base if isinstance(base, LimbEnv) else _inside(subject)
    if callable(subject):
        return environment_of(subject())
    raise EudaError(f"certify a task by name, an MJCF file, a model or an environment, not {type(subject).__name__}")


def _inside(env: gymnasium.Env[Any, Any]) -> ModelEnv:
    """The simulation inside anybody's environment, without its reward and resets, observed as the agent does."""
    base: Any = env.unwrapped
    if not isinstance(getattr(base, "model", None), mujoco.MjModel):
        raise EudaError(f"{type(base).__name__} is not a MuJoCo environment: it needs an MjModel `model`")
    timestep = float(getattr(base, "dt", base.model.opt.timestep))
    found = ModelEnv(base.model, control_timestep=timestep, **_observed(env))
    found.task = env.spec.id if env.spec is not None else type(base).__name__
    return found


def _observed(env: Any) -> dict[str, Any]:
    """What a LimbObservation among the wrappers was made with; nothing without one."""
    while isinstance(env, gymnasium.Wrapper):
        if isinstance(env, LimbObservation):
            return env.arguments
        env = env.env
    return {}
