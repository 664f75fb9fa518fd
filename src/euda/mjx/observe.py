"""mjx.Data → observation: the readings of an environment as a function that JAX can compile and batch."""

# pyright: reportMissingImports=false
# MJX is an extra: it is not in the lock.
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

from euda.body.features import Observer
from euda.body.robot import Robot, Scene
from euda.errors import EudaError
from euda.mjx.versions import require

Observe = Callable[..., jax.Array]
"""(mjx.Model, mjx.Data, direction=None, target=None) → observation [dim], float32."""


def observe(env: Any, is_fresh: bool = False) -> Observe:
    """What an environment observes, as a function of MJX's model and data: the same numbers, entry by entry.

    `env` is one of euda's environments or a LimbObservation; what its layout says of NumPy's observations holds for
    these, and `layout.rotate` and `layout.act` take their batches. The function may be jitted, and vmapped over data
    (and models, where these are randomised). `direction` and `target` replace the environment's own, for batches in
    which they differ.

    After `mjx.step` positions and velocities of bodies are those before the step; they are computed anew here, unless
    `is_fresh` says that they are current (after `mjx.forward`). Sensors of forces and accelerations are read as the
    last step left them, which is how NumPy's environments read them too.
    """
    require("mujoco-mjx")
    observer, robot = getattr(env, "observer", None), getattr(env, "robot", None)
    if not isinstance(observer, Observer) or not isinstance(robot, Robot):
        raise EudaError(f"observe takes an environment of euda's or a LimbObservation, not {type(env).__name__}")
    refresh = _kept if is_fresh else _refreshed
    reads_sensors = any(source.object == "sensor" for field in observer.layout for source in field.sources)

    def read(model: Any, data: Any, direction: Any = None, target: Any = None) -> jax.Array:
        own = robot.scene
        aims = own.direction if direction is None else direction, own.target if target is None else target
        return observer.read(jnp, Scene(model, refresh(model, data, reads_sensors), *aims)).astype(jnp.float32)

    return read


def _kept(model: Any, data: Any, reads_sensors: bool) -> Any:
    return data


def _refreshed(model: Any, data: Any, reads_sensors: bool) -> Any:
    """The data with positions and velocities of bodies that belong to its `qpos` and `qvel`."""
    from mujoco import mjx

    for stage in (mjx.kinematics, mjx.com_pos, mjx.com_vel):
        data = stage(model, data)
    if reads_sensors:
        data = mjx.sensor_vel(model, mjx.sensor_pos(model, data))
    return data
