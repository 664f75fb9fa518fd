"""TD3 (Fujimoto et al., 2018): DDPG with two critics and noise of a deviation of its own in the target.

What else TD3 has, delayed actor updates and a smoothed target policy, the paper's DDPG has too. The target takes the
lower of the two critics, and the actor follows the first.
"""

from __future__ import annotations

from typing import Any, ClassVar

import jax
import jax.numpy as jnp

from euda.agents.ddpg import DDPG
from euda.agents.settings import TD3Config
from euda.replay.random_draws import normal


class TD3(DDPG):
    """The learning rule of TD3; `TD3.make` builds it from sizes."""

    config: TD3Config
    settings: ClassVar[type[TD3Config]] = TD3Config

    def smoothing(self, key: jax.Array, shape: tuple[int, ...], step: Any) -> Any:
        """ε: the clipped noise of the target policy, the same at every step."""
        del step
        clip = self.config.smoothing_clip
        return jnp.clip(self.config.smoothing_stddev * normal(key, shape), -clip, clip)
