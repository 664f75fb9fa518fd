"""SEGNN: steerable E(3) equivariant message passing between points as actor and critic of the same agents.

In words, for hidden features f of irreps 0e, 1o, 2e (the paper's parity), with Y the spherical harmonics of an
edge, d its length and a_i the type of a point, a product being a steerable one (see `steerable`):

    f_i ← product(input; a_i)
    m   ← gated product(gated product([f_i, f_j, d]; Y); Y)                  for the edge from j to i
    f_i ← f_i + product(gated product([f_i, m]; a_i); a_i)                   three such layers
    out ← dense(SiLU(dense(mean over points of product(gated product(f_i; a_i); a_i))))

With two points all products share one axis, and the network is exactly one of its components along that axis:
f is a row of 34 numbers instead of 64, products are matrix products, and every point keeps its features in the
frame that looks at the other one. `parity="axial"` adds the axis of the hinges to what a point knows.

The tests hold both against full Clebsch-Gordan networks of e3nn-jax. `docs/segnn.md` says what is a choice of ours.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from euda.agents.gate import gate
from euda.agents.graph import OnePoint, TwoPoints, norm
from euda.agents.networks import Networks, Params
from euda.agents.steerable import SCALAR, Algebra, Irreps, Part, Product, axial_algebra, paper_algebra
from euda.config import SEGNNConfig


@dataclasses.dataclass(frozen=True)
class _Steerable:
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
    def products(self) -> tuple[Product, ...]:
        """All products, in the order of the computation."""
        raise NotImplementedError

    @property
    def pooled(self) -> int:
        """Scalars of a point before the mean: one for every hidden irrep and output."""
        return self.outputs * sum(count for _, count in self.config.irreps)

    # -- parameters ------------------------------------------------------------------------------------

    @functools.cached_property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Matrices (or the weights of paths) of every product, then the dense head."""
        result: dict[str, tuple[int, ...]] = {}
        for product in self.products:
            if self.is_dense:
                result[product.name] = product.shape()
                if product.finger_paths:
                    result[f"{product.name}.finger"] = (product.shape()[0] - 1, product.shape()[1])
            else:
                result |= {**product.weight_shapes(), product.bias_key: product.bias_shape}
        n, m = self.pooled, self.outputs
        return {**result, "head0": (n, n), "head0.bias": (n,), "head1": (n, m), "head1.bias": (m,)}

    def path_weights(self, key: jax.Array) -> dict[str, np.ndarray]:
        """Fresh weights of every path that matters, and of the dense head: uniform within ±1/sqrt(fan-in)."""
        rng = np.random.default_rng(np.asarray(jax.random.key_data(key)).astype(np.uint64))
        weights: dict[str, np.ndarray] = {}
        for product in self.products:
            weights |= product.draw(rng)
        bound = self.pooled**-0.5
        heads = [name for name in self.shapes if name.startswith("head")]
        return weights | {name: rng.uniform(-bound, bound, self.shapes[name]) for name in heads}

    def collapse(self, weights: Mapping[str, Any], xp: Any = np) -> dict[str, Any]:
        """The parameters that weights of paths amount to; linear."""
        if not self.is_dense:
            return dict(weights)
        return {name: weights[name] for name in self.shapes if name.startswith("head")} | self._matrices(weights, xp)

    def _matrices(self, weights: Mapping[str, Any], xp: Any, absolute: bool = False) -> dict[str, Any]:
        result = {}
        for product in self.products:
            result[product.name] = product.matrix(weights, xp, absolute=absolute)
            if product.finger_paths:
                result[f"{product.name}.finger"] = product.matrix(weights, xp, of_finger=True, absolute=absolute)
        return result

    def initialise(self, key: jax.Array) -> dict[str, np.ndarray]:
        """Fresh parameters, distributed as those of the full network."""
        return {name: np.asarray(value, np.float32) for name, value in self.collapse(self.path_weights(key)).items()}

    def rates(self) -> np.ndarray | None:
        """Adam's factors: a matrix entry that sums paths with constants k_i moves as they would, by Σ |k_i|."""
        return self._rates if self.is_dense else None

    @functools.cached_property
    def _rates(self) -> np.ndarray:
        shapes = {key: shape for product in self.products for key, shape in product.weight_shapes().items()}
        ones = {key: np.ones(shape) for key, shape in shapes.items()}
        ones |= {product.bias_key: np.ones(product.bias_shape) for product in self.products}
        factors = self._matrices(ones, np, absolute=True)
        flat = [factors.get(name, np.ones(shape)).reshape(-1) for name, shape in self.shapes.items()]
        return np.concatenate(flat).astype(np.float32)

    # -- forward ---------------------------------------------------------------------------------------

    def matrices(self, params: Params) -> Params:
        """The matrix of every product [rows, columns] and of the finger's own attribute, by name."""
        if self.is_dense:
            return params
        return self._matrices(params, jnp)

    def head(self, params: Params, pooled: Any) -> Any:
        """[B, pooled] after the mean over points → [B, outputs]."""
        hidden = jax.nn.silu(pooled @ params["head0"] + params["head0.bias"])
        return hidden @ params["head1"] + params["head1.bias"]

    def apply_numpy(self, params: Params, observations: np.ndarray) -> None:
        """There is no NumPy form: policies go through a jitted call."""
        return


@dataclasses.dataclass(frozen=True)
class SEGNN(_Steerable):
    """The network of the graph {target, finger}."""

    graph: TwoPoints

    @functools.cached_property
    def algebra(self) -> Algebra:
        """The components that matter and what products do to them."""
        config = self.config
        if config.parity == "axial":
            return axial_algebra(config.orders[1])
        return paper_algebra(*config.orders)

    @property
    def seen(self) -> Irreps:
        """The irreps that a product with a point's attributes can turn into scalars."""
        return tuple(pair for pair in self.config.irreps if pair[0] in (SCALAR, "1e"))

    @functools.cached_property
    def products(self) -> tuple[Product, ...]:
        """Embedding, layers, and what comes before the mean; in the last layer only what is seen afterwards."""
        hidden, seen, result = self.config.irreps, self.seen, [self._embedding()]
        for layer in range(self.config.layers):
            kept = seen if layer == self.config.layers - 1 else hidden
            make = functools.partial(Product, algebra=self.algebra)
            pair = (Part("self", hidden, hidden), Part("other", hidden, hidden, is_other=True), _scalars("distance", 1))
            update = (Part("self", kept, hidden), Part("message", kept, hidden))
            result += [
                make(f"message{layer}a", parts=pair, outputs=hidden, is_gated=True, on_edge=True),
                make(f"message{layer}b", parts=(pair[0],), outputs=kept, is_gated=True, on_edge=True),
                make(f"update{layer}a", parts=update, outputs=kept, is_gated=True),
                make(f"update{layer}b", parts=(update[0],), outputs=kept, is_gated=False),
            ]
        last = (Part("self", seen, hidden),)
        pooled = ((SCALAR, self.pooled),)
        return (
            *result,
            Product("pool_a", self.algebra, last, seen, is_gated=True),
            Product("pool_b", self.algebra, last, pooled, is_gated=False),
        )

    def _embedding(self) -> Product:
        extra = self.actions + 1 if self.actions else 0
        live, full = self.graph.vectors, self.config.vectors - 5 + self.graph.vectors
        part = Part("input", ((SCALAR, live + extra), ("1o", live)), ((SCALAR, full + extra), ("1o", full)))
        return Product("embedding", self.algebra, (part,), self.config.irreps, is_gated=False)

    def apply(self, params: Params, observations: Any, *actions: Any) -> Any:
        """Observations [B, dim], and for a critic actions [B, m], to [B, outputs]."""
        matrices = self.matrices(params)
        edge = self.graph.read(observations)
        inputs = [edge.norms, *actions, *map(norm, actions), edge.along]
        x = jnp.concatenate([*inputs, edge.across] if self.config.parity == "axial" else inputs, 1)
        both, own = matrices["embedding"], matrices["embedding.finger"]
        finger, target = x @ (both[:-1] + own) + both[-1:], both[-1:]
        for layer in range(self.config.layers):
            finger, target = self._layer(matrices, layer, finger, target, edge.distance)
        finger, target = self._on_points(matrices, "pool_a", finger, target, is_gated=True)
        finger, target = self._on_points(matrices, "pool_b", finger, target, is_gated=False)
        return self.head(params, (finger + target) / 2)

    def _layer(self, matrices: Params, layer: int, finger: Any, target: Any, distance: Any) -> tuple[Any, Any]:
        """Both points [B, width] after one layer; each in its own frame."""
        a, b = matrices[f"message{layer}a"], matrices[f"message{layer}b"]
        width, columns = finger.shape[1], a.shape[1]
        pair = jnp.concatenate([a[:width], a[width : 2 * width]], 1)
        of_finger, of_target = finger @ pair, target @ pair
        rest = distance * a[-2] + a[-1]
        messages = (
            of_finger[:, :columns] + of_target[:, columns:] + rest,
            of_target[:, :columns] + of_finger[:, columns:] + rest,
        )
        first, second = self._gate(f"message{layer}a"), self._gate(f"message{layer}b")
        to_finger, to_target = (second(first(message) @ b[:-1] + b[-1]) for message in messages)
        kept = to_finger.shape[1]
        finger, target = finger[:, :kept], target[:, :kept]
        x = self._update(matrices, layer, finger, to_finger, is_finger=True)
        y = self._update(matrices, layer, target, to_target, is_finger=False)
        return finger + x, target + y

    def _update(self, matrices: Params, layer: int, point: Any, message: Any, *, is_finger: bool) -> Any:
        """What a layer adds to a point [B, width] that got `message` [B, width]."""
        width = point.shape[1]
        a, bias = self._of_point(matrices, f"update{layer}a", is_finger)
        inside = self._gate(f"update{layer}a")(point @ a[:width] + message @ a[width:] + bias)
        b, bias = self._of_point(matrices, f"update{layer}b", is_finger)
        return inside @ b + bias

    def _on_points(self, matrices: Params, name: str, finger: Any, target: Any, *, is_gated: bool) -> tuple[Any, Any]:
        """A product with the attributes of both points."""
        points = []
        for point, is_finger in ((finger, True), (target, False)):
            matrix, bias = self._of_point(matrices, name, is_finger)
            x = point @ matrix + bias
            points.append(self._gate(name)(x) if is_gated else x)
        return points[0], points[1]

    def _of_point(self, matrices: Params, name: str, is_finger: bool) -> tuple[Any, Any]:
        """Matrix and bias of a product with a point's attributes."""
        both = matrices[name]
        return (both[:-1] + matrices[f"{name}.finger"] if is_finger else both[:-1]), both[-1]

    def _gate(self, name: str) -> Any:
        """The gate behind a product."""
        scalars, gates = self._gates[name]
        return lambda x: gate(x, scalars, gates)

    @functools.cached_property
    def _gates(self) -> dict[str, tuple[int, int]]:
        """Scalars and gates of every gated product."""
        gated = [product for product in self.products if product.is_gated]
        scalars = {product.name: product.outputs[0][1] for product in gated}
        return {p.name: (scalars[p.name], self.algebra.width(p.outputs) - scalars[p.name]) for p in gated}


@dataclasses.dataclass(frozen=True)
class SinglePoint(_Steerable):
    """The network of one point: without an edge, vectors never reach a scalar, so what is left sees norms only."""

    graph: OnePoint

    @functools.cached_property
    def products(self) -> tuple[Product, ...]:
        """As for two points, without messages and of scalars only; fan-ins are those of the full network."""
        hidden, config = self.config.irreps, self.config
        algebra, seen = paper_algebra(*config.orders, types=1), hidden[:1]
        make = functools.partial(Product, algebra=algebra)
        inputs = self.graph.vectors + self.graph.scalars + (self.actions + 1 if self.actions else 0)
        result = [make("embedding", parts=(_scalars("input", inputs),), outputs=seen, is_gated=False)]
        own = Part("self", seen, hidden)
        for layer in range(config.layers):
            parts = (own, Part("message", (), hidden))
            result.append(make(f"update{layer}a", parts=parts, outputs=seen, is_gated=True))
            result.append(make(f"update{layer}b", parts=(own,), outputs=seen, is_gated=False))
        result.append(make("pool_a", parts=(own,), outputs=seen, is_gated=True))
        return (*result, make("pool_b", parts=(own,), outputs=((SCALAR, self.pooled),), is_gated=False))

    def apply(self, params: Params, observations: Any, *actions: Any) -> Any:
        """Observations [B, dim], and for a critic actions [B, m], to [B, outputs]."""
        x = jnp.concatenate([self.graph.read(observations), *actions, *map(norm, actions)], 1)
        x = _dense(params["embedding"], x)
        for layer in range(self.config.layers):
            inside = gate(_dense(params[f"update{layer}a"], x), x.shape[1], 0)
            x = x + _dense(params[f"update{layer}b"], inside)
        x = gate(_dense(params["pool_a"], x), x.shape[1], 0)
        return self.head(params, _dense(params["pool_b"], x))


def _dense(matrix: Any, x: Any) -> Any:
    """All rows but the last times x [B, rows], plus the last."""
    return x @ matrix[:-1] + matrix[-1]


def _scalars(name: str, count: int) -> Part:
    return Part(name, ((SCALAR, count),), ((SCALAR, count),))


def segnn_networks(graph: TwoPoints | OnePoint, config: SEGNNConfig | None = None) -> Networks:
    """Actor and critic on a graph of a layout."""
    config = config or SEGNNConfig()
    kind: Any = SEGNN if isinstance(graph, TwoPoints) else SinglePoint
    return Networks(
        actor=lambda features, outputs: kind(outputs, 0, config, graph),
        critic=lambda features, actions: kind(1, actions, config, graph),
    )
