"""Q(s, a): a number of critics of one shape, and the head that says what their outputs mean.

A head turns the outputs of a critic [B, n] into values [B] and compares them with targets [B]. With `scalar` the
one output is the value and the loss is the square of the error. With `categorical` the outputs are the logits of
a histogram over a range of values; the value is its mean, and the loss is the cross entropy with a Gaussian around
the target, spread over the bins (HL-Gauss, Farebrother et al., 2024).
"""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Sequence
from typing import Any, Protocol

import jax
import jax.numpy as jnp
import numpy as np

from euda.agents.networks import Network, Networks, Params
from euda.agents.settings import HEADS, LearningConfig
from euda.lookup import loaded
from euda.replay.buffer import Transition


class Head(Protocol):
    """What the outputs of a critic mean."""

    @property
    def outputs(self) -> int:
        """How many there are."""
        ...

    def value(self, outputs: Any) -> Any:
        """Outputs [B, n] to values [B]."""
        ...

    def loss(self, outputs: Any, y: Any) -> Any:
        """The mean loss of outputs [B, n] for targets y [B]."""
        ...


@dataclasses.dataclass(frozen=True)
class Scalar:
    """The output is the value."""

    outputs: int = 1

    def value(self, outputs: Any) -> Any:
        """Q [B]."""
        return outputs[:, 0]

    def loss(self, outputs: Any, y: Any) -> Any:
        """The loss mean (Q - y)²."""
        return jnp.mean(jnp.square(self.value(outputs) - y))


@dataclasses.dataclass(frozen=True)
class Categorical:
    """The outputs are logits of equal bins between `low` and `high`; values beyond count as the nearest."""

    outputs: int
    low: float
    high: float
    spread: float = 0.75
    """Deviation of the Gaussian around a target, in bins."""

    @functools.cached_property
    def edges(self) -> np.ndarray:
        """Of the bins [n + 1]."""
        return np.linspace(self.low, self.high, self.outputs + 1, dtype=np.float32)

    def value(self, outputs: Any) -> Any:
        """The mean of the histogram [B]."""
        return jax.nn.softmax(outputs) @ ((self.edges[:-1] + self.edges[1:]) / 2)

    def loss(self, outputs: Any, y: Any) -> Any:
        """The mean cross entropy with the histograms of the targets."""
        return -jnp.mean(jnp.sum(self.histogram(y) * jax.nn.log_softmax(outputs), axis=-1))

    def histogram(self, y: Any) -> Any:
        """How a Gaussian around each target y [B] falls into the bins [B, n]; what falls outside is shared out."""
        deviation = self.spread * (self.high - self.low) / self.outputs
        y = jnp.clip(y, self.low, self.high)[:, None]
        below = jax.scipy.special.erf((self.edges - y) / (math.sqrt(2) * deviation))
        mass = below[:, 1:] - below[:, :-1]
        return mass / jnp.sum(mass, axis=-1, keepdims=True)


# -- a maker for each row of HEADS --------------------------------------------------------------------------


def scalar(config: LearningConfig) -> Head:
    """One output."""
    del config
    return Scalar()


def categorical(config: LearningConfig) -> Head:
    """One output for each bin."""
    return Categorical(config.bins, config.value_low, config.value_high)


@dataclasses.dataclass(frozen=True)
class Critics:
    """Critics with parameters of their own."""

    network: Network
    head: Head
    count: int
    pessimism: float = 1.0
    """How much a value shared by all lies towards the lowest (1) from the mean (0)."""

    @staticmethod
    def make(features: int, actions: int, config: LearningConfig, networks: Networks) -> Critics:
        """As many critics and the head that `config` asks for."""
        head: Head = loaded(HEADS[config.head])(config)
        return Critics(networks.critic(features, actions, head.outputs), head, config.critics, config.pessimism)

    def initialise(self, keys: Sequence[jax.Array]) -> tuple[Params, ...]:
        """Fresh parameters of each."""
        return tuple(self.network.initialise(key) for key in keys)

    def rates(self) -> tuple[Params, ...] | None:
        """The factors of the learning rate of each."""
        rates = self.network.rates()
        return None if rates is None else (rates,) * self.count

    def q(self, phi: Params, s: Any, a: Any) -> Any:
        """Q_φ(s, a) [B]."""
        return self.head.value(self.network.apply(phi, s, a))

    def together(self, phis: Sequence[Params], s: Any, a: Any) -> Any:
        """One value of all critics [B]: ρ min_i Q_i(s, a) + (1 - ρ) mean_i Q_i(s, a), with ρ the pessimism."""
        values = [self.q(phi, s, a) for phi in phis]
        lowest = functools.reduce(jnp.minimum, values)
        if self.pessimism == 1 or self.count == 1:
            return lowest
        mean = functools.reduce(jnp.add, values) / self.count
        return mean if self.pessimism == 0 else self.pessimism * lowest + (1 - self.pessimism) * mean

    def loss(self, phis: Sequence[Params], batch: Transition, y: Any) -> tuple[Any, Any]:
        """The sum of all critics' losses for targets y [B], and the mean of the first one's values."""
        outputs = [self.network.apply(phi, batch.observation, batch.action) for phi in phis]
        loss = functools.reduce(jnp.add, [self.head.loss(output, y) for output in outputs])
        return loss, jnp.mean(self.head.value(outputs[0]))
