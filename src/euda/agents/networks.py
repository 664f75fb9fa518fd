"""Networks of actors and critics: what an agent needs of them, and the multilayer perceptron.

An agent keeps the parameters of a network as one flat float32 vector: the optimiser, the moving average of
a target network, a checkpoint and the NumPy copy of the actor are then each one operation on one array.
A network says how the vector is cut into named arrays and what they compute. Anything with the methods of
`Network` can be plugged in.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, Protocol

import jax
import jax.numpy as jnp
import numpy as np
import numpy.typing as npt

from euda.config import MLPConfig

Params = Mapping[str, Any]
"""The named arrays of a network, of NumPy or JAX."""


class Network(Protocol):
    """A function of one or two inputs with parameters; immutable and hashable.

    An actor maps observations [B, dim] to [B, outputs] before any squashing, a critic maps observations
    [B, dim] and actions [B, m] to [B, 1].
    """

    @property
    def shapes(self) -> Mapping[str, tuple[int, ...]]:
        """Names and shapes of the parameters, in the order of the flat vector."""
        ...

    def initialise(self, key: jax.Array) -> Params:
        """Fresh parameters."""
        ...

    def apply(self, params: Params, *inputs: Any) -> Any:
        """The outputs, on JAX arrays."""
        ...

    def apply_numpy(self, params: Params, observations: npt.NDArray[np.float32]) -> npt.NDArray[np.float32] | None:
        """The outputs, on NumPy arrays of one observation [dim] or many [B, dim]; None: there is no such form."""
        ...

    def rates(self) -> npt.NDArray[np.float32] | None:
        """A factor of the learning rate for every entry of the flat vector, or None when all are 1."""
        ...


class Networks(NamedTuple):
    """Makers of the two networks of an agent from sizes: features, actions and the actor's outputs."""

    actor: Callable[[int, int], Network]
    """(features, outputs) → network; DDPG asks for m outputs, SAC for 2 m."""
    critic: Callable[[int, int], Network]
    """(features, actions) → network."""


def size(network: Network) -> int:
    """How many parameters a network has."""
    return sum(math.prod(shape) for shape in network.shapes.values())


def unravel(network: Network, flat: Any) -> dict[str, Any]:
    """The named arrays of a flat vector [size]; views where the array library has them."""
    arrays, begin = {}, 0
    for name, shape in network.shapes.items():
        end = begin + math.prod(shape)
        arrays[name] = flat[begin:end].reshape(shape)
        begin = end
    return arrays


def ravel(network: Network, params: Params) -> Any:
    """The flat vector [size] of named JAX arrays."""
    return jnp.concatenate([params[name].reshape(-1) for name in network.shapes])


def orthogonal(key: jax.Array, shape: tuple[int, int], gain: float = 1.0) -> npt.NDArray[np.float32]:
    """A matrix with orthonormal columns or rows (whichever are fewer), uniform among them, times `gain`."""
    tall = (max(shape), min(shape))
    q, r = np.linalg.qr(np.asarray(jax.random.normal(key, tall)))
    q = q * np.where(np.diag(r) < 0, -1, 1)
    return np.ascontiguousarray(gain * (q if shape == tall else q.T), np.float32)


# Products whose gradients XLA computes slowly on CPUs, with gradients of our own: together 6 % of an update.


@jax.custom_vjp
def joint_product(inputs: tuple[Any, ...], w: Any) -> Any:
    """The inputs [B, n_i] side by side, times w [sum n_i, out].

    Each input gets its gradient by a product of its own, so that those which nobody asks for are never computed: an
    actor needs that of the action, a few columns beside all the features.
    """
    return jnp.concatenate(inputs, axis=-1) @ w


def _joint_forward(inputs: tuple[Any, ...], w: Any) -> tuple[Any, Any]:
    return joint_product(inputs, w), (inputs, w)


def _joint_backward(kept: Any, dy: Any) -> tuple[Any, Any]:
    inputs, w = kept
    parts = jnp.split(w, np.cumsum([x.shape[-1] for x in inputs])[:-1])
    return tuple(dy @ part.T for part in parts), jnp.concatenate(inputs, axis=-1).T @ dy


joint_product.defvjp(_joint_forward, _joint_backward)


@jax.custom_vjp
def narrow_product(x: Any, w: Any) -> Any:
    """The product of x [B, in] and w [in, out], for few outputs."""
    return x @ w


def _narrow_backward(kept: Any, dy: Any) -> tuple[Any, Any]:
    x, w = kept
    # xᵀ dy as (dyᵀ x)ᵀ: turning the narrow matrix first makes it fast, and the barrier keeps XLA from undoing it
    return dy @ w.T, (jax.lax.optimization_barrier(dy.T) @ x).T


narrow_product.defvjp(lambda x, w: (x @ w, (x, w)), _narrow_backward)


@dataclasses.dataclass(frozen=True)
class MLP:
    """Dense layers with ReLU between them; its inputs are concatenated.

    Orthogonal initialisation with zero bias. The paper does not name the gain: √2 keeps the size of a signal through
    ReLU layers (results/initialisation has what other beginnings do).
    """

    inputs: tuple[int, ...]
    """Widths of the inputs: (dim,) for an actor, (dim, m) for a critic."""
    outputs: int
    config: MLPConfig = dataclasses.field(default_factory=MLPConfig)

    @property
    def _widths(self) -> tuple[int, ...]:
        return (sum(self.inputs), *[self.config.hidden_size] * self.config.hidden_layers, self.outputs)

    @property
    def _layers(self) -> int:
        return self.config.hidden_layers + 1

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        """`w0`, `b0`, `w1`, …: weights [in, out] and biases [out]."""
        result: dict[str, tuple[int, ...]] = {}
        for i in range(self._layers):
            result |= {f"w{i}": self._widths[i : i + 2], f"b{i}": self._widths[i + 1 : i + 2]}
        return result

    def initialise(self, key: jax.Array) -> dict[str, npt.NDArray[np.float32]]:
        """Orthogonal weights, zero biases."""
        params = {name: np.zeros(shape, np.float32) for name, shape in self.shapes.items()}
        for i, layer_key in enumerate(jax.random.split(key, self._layers)):
            params[f"w{i}"] = orthogonal(layer_key, (self._widths[i], self._widths[i + 1]), self.config.gain)
        return params

    def apply(self, params: Params, *inputs: Any) -> Any:
        """[B, …] inputs to [B, outputs]."""
        x = joint_product(inputs, params["w0"]) + params["b0"]
        for i in range(1, self._layers):
            product = narrow_product if i == self._layers - 1 else jnp.matmul
            x = product(jnp.maximum(x, 0), params[f"w{i}"]) + params[f"b{i}"]
        return x

    def apply_numpy(self, params: Params, observations: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
        """The same for one observation [dim] or many [B, dim], in NumPy."""
        x, last = observations, self._layers - 1
        for i in range(last):
            x = np.dot(x, params[f"w{i}"])
            x += params[f"b{i}"]
            np.maximum(x, 0, out=x)
        x = np.dot(x, params[f"w{last}"])
        x += params[f"b{last}"]
        return x

    def rates(self) -> None:
        """Every parameter learns at the same rate."""
        return


def mlp_networks(config: MLPConfig | None = None) -> Networks:
    """Perceptrons for actor and critic, the paper's sizes by default."""
    config = config or MLPConfig()
    return Networks(
        actor=lambda features, outputs: MLP((features,), outputs, config),
        critic=lambda features, actions: MLP((features, actions), 1, config),
    )
