"""Networks of actors and critics: what an agent needs of them, and the multilayer perceptron.

The parameters of a network are a pytree of float32 arrays, of whatever shape the network likes: the optimiser,
the moving average of a target network and a checkpoint map over its leaves. Anything with the methods of
`Network` can be plugged in.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

import jax
import jax.numpy as jnp
import numpy as np
import numpy.typing as npt

from euda.agents.network_settings import MLPConfig
from euda.body.layout import Layout

Params = Any
"""The parameters of a network: a pytree of NumPy or JAX arrays."""


class Network(Protocol):
    """A function of one or two inputs with parameters; immutable and hashable.

    An actor maps observations [B, dim] to [B, outputs] before any squashing, a critic maps observations
    [B, dim] and actions [B, m] to [B, outputs].
    """

    def initialise(self, key: jax.Array) -> Params:
        """Fresh parameters, as NumPy or JAX arrays."""
        ...

    def apply(self, params: Params, *inputs: Any) -> Any:
        """The outputs, on JAX arrays."""
        ...

    def apply_numpy(self, params: Params, observations: npt.NDArray[np.float32]) -> npt.NDArray[np.float32] | None:
        """The outputs, on NumPy arrays of one observation [dim] or many [B, dim]; None: there is no such form."""
        ...

    def rates(self) -> Params | None:
        """A factor of the learning rate for every entry of the parameters, or None when all are 1."""
        ...


class Networks(NamedTuple):
    """Makers of the two networks of an agent from sizes."""

    actor: Callable[[int, int], Network]
    """(features, outputs) → network; DDPG asks for m outputs, SAC for 2 m."""
    critic: Callable[[int, int, int], Network]
    """(features, actions, outputs) → network; how many outputs a value takes is the head's affair."""


def size(params: Params) -> int:
    """How many numbers there are in a tree of parameters."""
    return sum(np.size(leaf) for leaf in jax.tree.leaves(params))


def orthogonal(key: jax.Array, shape: tuple[int, int], gain: float = 1.0) -> npt.NDArray[np.float32]:
    """A matrix with orthonormal columns or rows (whichever are fewer), uniform among them, times `gain`."""
    tall = (max(shape), min(shape))
    q, r = np.linalg.qr(_normal(key, tall))
    q = q * np.where(np.diag(r) < 0, -1, 1)
    return np.ascontiguousarray(gain * (q if shape == tall else q.T), np.float32)


def _normal(key: jax.Array, shape: tuple[int, int]) -> npt.NDArray[np.float32]:
    """`jax.random.normal`, whose numbers do not depend on how many are drawn, so that few sizes have to be compiled."""
    count, drawn = math.prod(shape), 256
    while drawn < count:
        drawn *= 4
    return np.asarray(jax.random.normal(key, (drawn,)))[:count].reshape(shape)


def layer_norm(xp: Any, x: Any) -> Any:
    """Each row of x [..., n] brought to mean 0 and deviation 1, without a learnt scale."""
    size = x.shape[-1]  # sums are divided by hand: NumPy's `mean` takes twice as long for one row
    centred = x - x.sum(axis=-1, keepdims=True) / size
    return centred / xp.sqrt((centred * centred).sum(axis=-1, keepdims=True) / size + 1e-5)


class Dense(NamedTuple):
    """The parameters of one layer."""

    weight: Any  # [in, out]
    bias: Any  # [out]

    @staticmethod
    def orthogonal(key: jax.Array, shape: tuple[int, int], gain: float) -> Dense:
        """Orthogonal weights, zero bias."""
        return Dense(orthogonal(key, shape, gain), np.zeros(shape[1], np.float32))

    def __call__(self, x: Any) -> Any:
        """[..., in] → [..., out], of NumPy or JAX."""
        return x @ self.weight + self.bias


@dataclasses.dataclass(frozen=True)
class MLP:
    """Dense layers with ReLU between them; its inputs are concatenated, its parameters a tuple of `Dense`.

    Orthogonal initialisation with zero bias. The paper does not name the gain: √2 keeps the size of a signal through
    ReLU layers (results/initialisation has what other beginnings do).
    """

    inputs: tuple[int, ...]
    """Widths of the inputs: (dim,) for an actor, (dim, m) for a critic."""
    outputs: int
    config: MLPConfig = dataclasses.field(default_factory=MLPConfig)

    def initialise(self, key: jax.Array) -> tuple[Dense, ...]:
        """Orthogonal weights, zero biases."""
        config = self.config
        widths = (sum(self.inputs), *[config.hidden_size] * config.hidden_layers, self.outputs)
        keys = jax.random.split(key, len(widths) - 1)
        gains = [config.gain] * config.hidden_layers + [config.gain if config.last_gain is None else config.last_gain]
        return tuple(map(Dense.orthogonal, keys, itertools.pairwise(widths), gains))

    def apply(self, params: tuple[Dense, ...], *inputs: Any) -> Any:
        """[B, …] inputs to [B, outputs]."""
        return self._forward(jnp, params, jnp.concatenate(inputs, axis=-1))

    def apply_numpy(self, params: tuple[Dense, ...], observations: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
        """The same for one observation [dim] or many [B, dim], in NumPy."""
        return self._forward(np, params, observations)

    def _forward(self, xp: Any, params: tuple[Dense, ...], x: Any) -> Any:
        *hidden, last = params
        for layer in hidden:
            x = layer(x)
            x = xp.maximum(layer_norm(xp, x) if self.config.layer_norm else x, 0)
        return last(x)

    def rates(self) -> None:
        """Every parameter learns at the same rate."""
        return


def mlp_networks(config: MLPConfig | None = None, layout: Layout | None = None, target: str | None = None) -> Networks:
    """Perceptrons for actor and critic, the paper's sizes by default; they take observations of any layout."""
    del layout, target
    config = config or MLPConfig()
    return Networks(
        actor=lambda features, outputs: MLP((features,), outputs, config),
        critic=lambda features, actions, outputs: MLP((features, actions), outputs, config),
    )
