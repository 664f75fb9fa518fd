"""SEGNN: steerable E(3) equivariant message passing between points as actor and critic of the same agents.

In words, for hidden features f of irreps 0e, 1o, 2e (the paper's parity), with Y the spherical harmonics of an
edge, d its length and a_i the type of a point, a product being a steerable one (see `algebra`):

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
from typing import Any

import jax.numpy as jnp

from euda.agents.network_settings import SEGNNConfig, SinglePointConfig
from euda.agents.networks import Networks
from euda.agents.segnn.algebra import (
    SCALAR,
    Algebra,
    Irreps,
    Matrices,
    Part,
    Product,
    axial_algebra,
    paper_algebra,
)
from euda.agents.segnn.gate import gate
from euda.agents.segnn.graph import OnePoint, TwoPoints, norm
from euda.agents.segnn.steerable import Layer, Products, Steerable, SteerableNetwork
from euda.body.layout import Layout
from euda.errors import EudaError


@dataclasses.dataclass(frozen=True)
class SEGNN(SteerableNetwork):
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
    def products(self) -> Products:
        """Embedding, layers, and what comes before the mean; in the last layer only what is seen afterwards."""
        hidden, seen, layers = self.config.irreps, self.seen, []
        make = functools.partial(Product, self.algebra)
        for layer in range(self.config.layers):
            kept = seen if layer == self.config.layers - 1 else hidden
            pair = (Part("self", hidden, hidden), Part("other", hidden, hidden, is_other=True), _scalars("distance", 1))
            update = (Part("self", kept, hidden), Part("message", kept, hidden))
            message = make(pair, hidden, is_gated=True, on_edge=True), make(pair[:1], kept, is_gated=True, on_edge=True)
            layers.append(Layer(message, (make(update, kept, is_gated=True), make(update[:1], kept, is_gated=False))))
        last, pooled = (Part("self", seen, hidden),), ((SCALAR, self.pooled),)
        pool = make(last, seen, is_gated=True), make(last, pooled, is_gated=False)
        return Products(self._embedding(), tuple(layers), pool)

    def _embedding(self) -> Product:
        extra = self.actions + 1 if self.actions else 0
        live, full = self.graph.vectors, self.config.vectors - 5 + self.graph.vectors
        part = Part("input", ((SCALAR, live + extra), ("1o", live)), ((SCALAR, full + extra), ("1o", full)))
        return Product(self.algebra, (part,), self.config.irreps, is_gated=False)

    def apply(self, params: Steerable, observations: Any, *actions: Any) -> Any:
        """Observations [B, dim], and for a critic actions [B, m], to [B, outputs]."""
        matrices, edge = self.matrices(params), self.graph.read(observations)
        inputs = [edge.norms, *actions, *map(norm, actions), edge.along]
        x = jnp.concatenate([*inputs, edge.across] if self.config.parity == "axial" else inputs, 1)
        both, own = matrices.embedding
        finger, target = x @ (both[:-1] + own) + both[-1:], both[-1:]
        for products, layer in zip(self.products.layers, matrices.layers, strict=True):
            finger, target = _layer(products, layer, finger, target, edge.distance)
        for product, matrix in zip(self.products.pool, matrices.pool, strict=True):
            finger = _of_point(product, matrix, finger, is_finger=True)
            target = _of_point(product, matrix, target, is_finger=False)
        return self.head(params, (finger + target) / 2)


def _layer(products: Layer, layer: Layer, finger: Any, target: Any, distance: Any) -> tuple[Any, Any]:
    """Both points [B, width] after one layer; each in its own frame."""
    (a, _), (b, _) = layer.message
    width, columns = finger.shape[1], a.shape[1]
    pair = jnp.concatenate([a[:width], a[width : 2 * width]], 1)
    of_finger, of_target = finger @ pair, target @ pair
    rest = distance * a[-2] + a[-1]
    messages = (
        of_finger[:, :columns] + of_target[:, columns:] + rest,
        of_target[:, :columns] + of_finger[:, columns:] + rest,
    )
    first, second = (_gate(product) for product in products.message)
    to_finger, to_target = (second(first(message) @ b[:-1] + b[-1]) for message in messages)
    kept = to_finger.shape[1]
    finger, target = finger[:, :kept], target[:, :kept]
    x = _update(products, layer, finger, to_finger, is_finger=True)
    y = _update(products, layer, target, to_target, is_finger=False)
    return finger + x, target + y


def _update(products: Layer, layer: Layer, point: Any, message: Any, *, is_finger: bool) -> Any:
    """What a layer adds to a point [B, width] that got `message` [B, width]."""
    width = point.shape[1]
    a, bias = _attributed(layer.update[0], is_finger)
    inside = _gate(products.update[0])(point @ a[:width] + message @ a[width:] + bias)
    return _of_point(products.update[1], layer.update[1], inside, is_finger=is_finger)


def _of_point(product: Product, matrices: Matrices, point: Any, *, is_finger: bool) -> Any:
    """A product of a point [B, rows] with its attributes."""
    matrix, bias = _attributed(matrices, is_finger)
    x = point @ matrix + bias
    return _gate(product)(x) if product.is_gated else x


def _attributed(matrices: Matrices, is_finger: bool) -> tuple[Any, Any]:
    """Matrix and bias of a product with the attributes of one of the points."""
    both, own = matrices
    return (both[:-1] + own if is_finger else both[:-1]), both[-1]


def _gate(product: Product) -> Any:
    """The gate behind a product."""
    scalars, gates = product.gates
    return lambda x: gate(x, scalars, gates)


@dataclasses.dataclass(frozen=True)
class SinglePoint(SteerableNetwork):
    """The network of one point: without an edge, vectors never reach a scalar, so what is left sees norms only."""

    graph: OnePoint

    @functools.cached_property
    def products(self) -> Products:
        """As for two points, without messages and of scalars only; fan-ins are those of the full network."""
        hidden, config = self.config.irreps, self.config
        seen, own = hidden[:1], Part("self", hidden[:1], hidden)
        make = functools.partial(Product, paper_algebra(*config.orders, types=1))
        inputs = self.graph.vectors + self.graph.scalars + (self.actions + 1 if self.actions else 0)
        update = (
            make((own, Part("message", (), hidden)), seen, is_gated=True),
            make((own,), seen, is_gated=False),
        )
        pool = make((own,), seen, is_gated=True), make((own,), ((SCALAR, self.pooled),), is_gated=False)
        embedding = make((_scalars("input", inputs),), seen, is_gated=False)
        return Products(embedding, (Layer((), update),) * config.layers, pool)

    def apply(self, params: Steerable, observations: Any, *actions: Any) -> Any:
        """Observations [B, dim], and for a critic actions [B, m], to [B, outputs]."""
        matrices = self.matrices(params)
        x = jnp.concatenate([self.graph.read(observations), *actions, *map(norm, actions)], 1)
        x = _dense(matrices.embedding, x)
        for layer in matrices.layers:
            first, second = layer.update
            x = x + _dense(second, gate(_dense(first, x), x.shape[1], 0))
        first, second = matrices.pool
        return self.head(params, _dense(second, gate(_dense(first, x), x.shape[1], 0)))


def _dense(matrices: Matrices, x: Any) -> Any:
    """All rows but the last times x [B, rows], plus the last."""
    return x @ matrices.both[:-1] + matrices.both[-1]


def _scalars(name: str, count: int) -> Part:
    return Part(name, ((SCALAR, count),), ((SCALAR, count),))


def segnn_networks(graph: TwoPoints | OnePoint, config: SEGNNConfig | None = None) -> Networks:
    """Actor and critic on a graph of a layout."""
    config = config or SEGNNConfig()
    kind: Any = SEGNN if isinstance(graph, TwoPoints) else SinglePoint
    return Networks(
        actor=lambda features, outputs: kind(outputs, 0, config, graph),
        critic=lambda features, actions, outputs: kind(outputs, actions, config, graph),
    )


def two_points(config: SEGNNConfig, layout: Layout, target: str | None) -> Networks:
    """Networks on the graph of a finger and its target."""
    if target is None:
        raise EudaError("the graph of segnn has a finger and a target, and this task has no target")
    return segnn_networks(TwoPoints(layout, target), config)


def one_point(config: SinglePointConfig, layout: Layout, target: str | None) -> Networks:
    """Networks of one point that has all features."""
    del target
    return segnn_networks(OnePoint(layout), config)
