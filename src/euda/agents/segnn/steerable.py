"""The parameters of a steerable network: weights of paths, the matrices that they amount to, and a dense head."""

from __future__ import annotations

import dataclasses
import functools
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

from euda.agents.network_settings import SEGNNConfig
from euda.agents.networks import Dense


class Layer(NamedTuple):
    """One thing for each product of a layer."""

    message: tuple[Any, ...]
    """Two; none without an edge."""
    update: tuple[Any, ...]
    """Two."""


class Products(NamedTuple):
    """One thing for each product of a network: the product itself, its matrices, or the weights of its paths."""

    embedding: Any
    layers: tuple[Layer, ...]
    pool: tuple[Any, ...]
    """Two, before the mean over points."""


class Steerable(NamedTuple):
    """The parameters of a network."""

    products: Products
    """`Matrices` or `PathWeights`."""
    head: tuple[Dense, Dense]
    """After the mean."""


@dataclasses.dataclass(frozen=True)
class SteerableNetwork:
    """What both graphs have in common: products, how their parameters are kept, the head."""

    outputs: int
    actions: int
    """Actions among the inputs: 0 for an actor."""
    config: SEGNNConfig

    @property
    def is_dense(self) -> bool:
        """Whether the matrices themselves are the parameters: no weight appears in two places of them."""
        return self.config.parity == "paper"

    @functools.cached_property
    def products(self) -> Products:
        """All products."""
        raise NotImplementedError

    @property
    def pooled(self) -> int:
        """Scalars of a point before the mean: one for every hidden irrep and output."""
        return self.outputs * sum(count for _, count in self.config.irreps)

    # -- parameters ------------------------------------------------------------------------------------

    def path_weights(self, key: jax.Array) -> Steerable:
        """Fresh weights of every path that matters, and of the dense head: uniform within ±1/sqrt(fan-in)."""
        rng = np.random.default_rng(np.asarray(jax.random.key_data(key)).astype(np.uint64))
        products = jax.tree.map(lambda product: product.draw(rng), self.products)
        n, bound = self.pooled, self.pooled**-0.5
        head = (Dense(*(rng.uniform(-bound, bound, shape) for shape in ((n, m), (m,)))) for m in (n, self.outputs))
        return Steerable(products, tuple(head))  # pyright: ignore[reportArgumentType] - two

    def collapse(self, weights: Steerable, xp: Any = np) -> Steerable:
        """The parameters that weights of paths amount to; linear."""
        return weights._replace(products=self._matrices(weights.products, xp)) if self.is_dense else weights

    def _matrices(self, weights: Products, xp: Any, absolute: bool = False) -> Products:
        return jax.tree.map(lambda product, of_paths: product.matrices(of_paths, xp, absolute), self.products, weights)

    def initialise(self, key: jax.Array) -> Steerable:
        """Fresh parameters, distributed as those of the full network."""
        return jax.tree.map(lambda value: np.asarray(value, np.float32), self.collapse(self.path_weights(key)))

    def rates(self) -> Steerable | None:
        """Adam's factors: a matrix entry that sums paths with constants k_i moves as they would, by Σ |k_i|."""
        return self._rates if self.is_dense else None

    @functools.cached_property
    def _rates(self) -> Steerable:
        ones = jax.tree.map(np.ones_like, self.path_weights(jax.random.key(0)))
        factors = ones._replace(products=self._matrices(ones.products, np, absolute=True))
        return jax.tree.map(lambda value: np.asarray(value, np.float32), factors)

    # -- forward ---------------------------------------------------------------------------------------

    def matrices(self, params: Steerable) -> Products:
        """The matrices of every product."""
        return params.products if self.is_dense else self._matrices(params.products, jnp)

    def head(self, params: Steerable, pooled: Any) -> Any:
        """[B, pooled] after the mean over points → [B, outputs]."""
        first, last = params.head
        return last(jax.nn.silu(first(pooled)))

    def apply_numpy(self, params: Steerable, observations: np.ndarray) -> None:
        """There is no NumPy form: policies go through a jitted call."""
        return
