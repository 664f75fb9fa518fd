"""observation → what the networks see: first the frame, then the normaliser.

Learning (inside the jitted update, after the augmentation), exploring, evaluation and stored policies all pass through
`Inputs`, so that none of them can see anything else. By default observations are seen as they are.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import jax.numpy as jnp
import numpy as np

from euda.agents.averaging import Image, averaged
from euda.agents.frames import Frame
from euda.agents.normaliser import Moments, Normaliser, Statistics


@dataclasses.dataclass(frozen=True)
class Inputs:
    """Hashable, without numbers of its own: statistics belong to the agent."""

    frame: Frame | None = None
    normaliser: Normaliser | None = None
    images: tuple[Image, ...] = ()
    """What acting asks the actor about beside the observation itself; the answers are averaged."""

    def ask(self, statistics: Statistics | None, actor: Callable[[Any], Any], observations: Any) -> Any:
        """The outputs of an actor for observations [..., dim], as acting takes them."""
        return averaged(self.images, lambda x: actor(self(statistics, x)), observations)

    def __call__(self, statistics: Statistics | None, observations: Any) -> Any:
        """Observations [..., dim] of NumPy or JAX as the networks see them."""
        xp = np if isinstance(observations, np.ndarray) else jnp
        if self.frame is not None:
            observations = self.frame(xp, observations)
        if self.normaliser is None or statistics is None:
            return observations
        return self.normaliser(xp, statistics, observations)

    def begin(self) -> Moments | None:
        """What is known of observations before the first one."""
        return None if self.normaliser is None else self.normaliser.begin()

    def observe(self, moments: Moments | None, observation: np.ndarray) -> Moments | None:
        """The moments with one more observation [dim] of the environment."""
        if self.normaliser is None or moments is None:
            return None
        seen = observation if self.frame is None else self.frame(np, observation)
        return self.normaliser.observe(moments, seen)

    def statistics(self, moments: Moments | None) -> Statistics | None:
        """What the moments amount to."""
        return None if self.normaliser is None or moments is None else self.normaliser.statistics(moments)


AS_THEY_ARE = Inputs()
