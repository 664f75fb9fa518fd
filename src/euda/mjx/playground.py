"""MuJoCo Playground's environments with limb features and a layout, everything else as it is.

`LimbPlayground(registry.load("HopperHop"), direction=(1, 0))` is trained like any other, and its `layout` is what
`euda.mjx.brax`, `layout.rotate` and `layout.act` take.
"""

# pyright: reportMissingImports=false
# Playground is an extra: it is not in the lock.
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import mujoco

from euda.body.actions import Actions
from euda.body.features import Observer, Senses, observer
from euda.body.layout import Layout
from euda.body.robot import describe
from euda.body.sensors import read as read_sensors
from euda.errors import EudaError
from euda.mjx.observe import observe
from euda.mjx.versions import require

require("mujoco-mjx")
require("playground")
from mujoco_playground import wrapper  # noqa: E402 - after the versions were looked at


class LimbPlayground(wrapper.Wrapper):
    """Replaces the observation of a Playground environment by limb features; dynamics, reward and resets stay.

    `direction`, `target`, `limb`, `sensors` and `features` mean what they mean to `euda.LimbObservation`. Wrap it for
    training as Playground wraps its own: `wrapper.wrap_for_brax_training(env, …)`.
    """

    def __init__(self, env: Any, direction: Any = None, target: Any = None, limb: str | None = None,
                 sensors: Sequence[str] = (), features: str = "limb", allow_loops: bool = False) -> None:  # fmt: skip
        model = getattr(env, "mj_model", None)
        if not isinstance(model, mujoco.MjModel) or not hasattr(env, "mjx_model"):
            raise EudaError(f"{type(env).__name__} is no environment of MuJoCo Playground: it has no mj_model")
        super().__init__(env)
        self.robot = describe(model, mujoco.MjData(model), direction, target, limb, allow_loops)
        if self.robot.is_direction_drawn:
            raise EudaError("a Playground environment rewards as it likes: give its direction in numbers")
        senses = Senses(tuple(read_sensors(name, name) for name in sensors))
        self.observer: Observer = observer(self.robot, features, senses)
        self._observe = observe(self)

    @property
    def layout(self) -> Layout:
        """What each entry of the observation is and how it turns."""
        return self.observer.layout

    @property
    def actions(self) -> Actions:
        """What each entry of an action is, and what a mirror does to it."""
        return Actions.of(self.robot.model)

    @property
    def observation_size(self) -> int:
        """Numbers of an observation."""
        return self.layout.dim

    def reset(self, rng: jax.Array) -> Any:
        """Start an episode."""
        return self._seen(self.env.reset(rng))

    def step(self, state: Any, action: jax.Array) -> Any:
        """One step of the environment, which is given the kind of observation that it makes itself."""
        own = state.replace(obs=state.info["own_obs"], info={k: v for k, v in state.info.items() if k != "own_obs"})
        return self._seen(self.env.step(own, action))

    def _seen(self, state: Any) -> Any:
        features = self._observe(self.env.mjx_model, state.data).astype(jnp.float32)
        return state.replace(obs=features, info={**state.info, "own_obs": state.obs})
