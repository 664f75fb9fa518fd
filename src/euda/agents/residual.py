"""Networks of residual blocks: small width, normalised before each block (SimBa, Lee et al., 2025)."""

from __future__ import annotations

import dataclasses
import math
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from euda.agents.network_settings import ResidualConfig
from euda.agents.networks import Dense, Networks, layer_norm
from euda.body.layout import Layout


class Block(NamedTuple):
    """The parameters of a block: wide, then back."""

    inner: Dense
    outer: Dense


class Residual(NamedTuple):
    """The parameters of a network."""

    first: Dense
    blocks: tuple[Block, ...]
    last: Dense


@dataclasses.dataclass(frozen=True)
class ResidualNetwork:
    """A dense layer; blocks x ← x + outer(ReLU(inner(norm(x)))); norm; a dense layer. Inputs are concatenated."""

    inputs: tuple[int, ...]
    """Widths of the inputs: (dim,) for an actor, (dim, m) for a critic."""
    outputs: int
    config: ResidualConfig = dataclasses.field(default_factory=ResidualConfig)

    def initialise(self, key: jax.Array) -> Residual:
        """Orthogonal weights, with gain √2 in front of a ReLU; zero biases."""
        config, width = self.config, self.config.hidden_size
        wide = config.expansion * width
        first, last, *keys = jax.random.split(key, 2 + 2 * config.blocks)
        blocks = (
            Block(Dense.orthogonal(inner, (width, wide), math.sqrt(2)), Dense.orthogonal(outer, (wide, width), 1.0))
            for inner, outer in zip(keys[::2], keys[1::2], strict=True)
        )
        return Residual(
            Dense.orthogonal(first, (sum(self.inputs), width), 1.0),
            tuple(blocks),
            Dense.orthogonal(last, (width, self.outputs), config.last_gain),
        )

    def apply(self, params: Residual, *inputs: Any) -> Any:
        """[B, …] inputs to [B, outputs]."""
        return _forward(jnp, params, jnp.concatenate(inputs, axis=-1))

    def apply_numpy(self, params: Residual, observations: np.ndarray) -> np.ndarray:
        """The same for one observation [dim] or many [B, dim], in NumPy."""
        return _forward(np, params, observations)

    def rates(self) -> None:
        """Every parameter learns at the same rate."""
        return


def _forward(xp: Any, params: Residual, x: Any) -> Any:
    x = params.first(x)
    for block in params.blocks:
        x = x + block.outer(xp.maximum(block.inner(layer_norm(xp, x)), 0))
    return params.last(layer_norm(xp, x))


def residual_networks(
    config: ResidualConfig | None = None, layout: Layout | None = None, target: str | None = None
) -> Networks:
    """Residual networks for actor and critic."""
    del layout, target
    config = config or ResidualConfig()
    return Networks(
        actor=lambda features, outputs: ResidualNetwork((features,), outputs, config),
        critic=lambda features, actions, outputs: ResidualNetwork((features, actions), outputs, config),
    )
