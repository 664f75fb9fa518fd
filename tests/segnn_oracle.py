"""The full SEGNN in three dimensions, on e3nn-jax: every irrep, every component, every path that e3nn allows.

Slow and plain. It knows nothing of frames or of which components matter, takes the same weights of paths as
the fast network, and is itself a network for the agents, so that benchmarks can train with it.
"""

import dataclasses
import functools

import e3nn_jax as e3nn
import jax
import jax.numpy as jnp
import numpy as np

from euda.agents.network_settings import SEGNNConfig
from euda.agents.segnn.algebra import PathWeights
from euda.agents.segnn.graph import TwoPoints

Z, DENSITY = np.polynomial.hermite_e.hermegauss(200)
SIGMOID = 1 / (1 + np.exp(-Z))
SILU_GAIN, SIGMOID_GAIN = (np.average(f**2, weights=DENSITY) ** -0.5 for f in (Z * SIGMOID, SIGMOID))


@functools.partial(jax.jit, static_argnums=(0, 1))
def steerable_product(paths, widths, weights, bias, inputs, attributes):
    """{irrep: [B, count, 2 l + 1]} of every path (part, source, attribute, target); layers share what is compiled."""
    batch = len(next(iter(attributes.values())))
    result = {target: jnp.zeros((batch, width, 2 * int(target[0]) + 1)) for target, width in widths}
    for part, source, attribute, target in paths:
        chunk = inputs[part][source]
        x = e3nn.IrrepsArray(f"{chunk.shape[1]}x{source}", chunk.reshape(batch, -1))
        a = e3nn.IrrepsArray(attribute.rstrip("'"), attributes[attribute][:, 0])
        y = e3nn.tensor_product(x, a, filter_ir_out=[target], irrep_normalization="component")
        weight = weights[part, source, attribute, target]
        result[target] = result[target] + jnp.einsum("buk,uw->bwk", y.chunks[0], weight)
    result["0e"] = result["0e"] + bias.reshape(1, -1, 1)
    return result


BIAS = "bias"


def names_of(layers):
    """The names of the products of a network with so many layers, in the order of its computation."""
    inside = [f"{what}{k}{which}" for k in range(layers) for what in ("message", "update") for which in "ab"]
    return ["embedding", *inside, "pool_a", "pool_b"]


def products_of(network):
    """The products of a fast network by the names that they have here."""
    return dict(zip(names_of(network.config.layers), jax.tree.leaves(network.products), strict=True))


def by_path(network, weights):
    """The weights of a fast network by the full one's names: product, part, source, attribute, target."""
    is_leaf = lambda leaf: isinstance(leaf, PathWeights)  # noqa: E731
    found = {}
    for (name, product), values in zip(
        products_of(network).items(), jax.tree.leaves(weights.products, is_leaf=is_leaf), strict=True
    ):
        for (part, path, _), value in zip(product.links, values.links, strict=True):
            found[name, part.name, path.source, path.attribute, path.target] = value
        found[name, BIAS] = values.bias
    for k, layer in enumerate(weights.head):
        found |= {(f"head{k}",): layer.weight, (f"head{k}", BIAS): layer.bias}
    return found


@dataclasses.dataclass(frozen=True)
class Oracle:
    """Actor (no actions among the inputs) or critic on the graph {target, finger}."""

    outputs: int
    actions: int
    config: SEGNNConfig
    graph: TwoPoints

    # -- what is multiplied with what ------------------------------------------------------------------

    @functools.cached_property
    def hidden(self):
        return self.config.irreps

    @functools.cached_property
    def edge_attributes(self):
        return [(f"{order}{'eo'[order % 2]}", 1) for order in range(self.config.orders[1] + 1)]

    @functools.cached_property
    def node_attributes(self):
        return [("0e", 1), ("0e'", 1), *([("1e", 1)] if self.config.parity == "axial" else [])]

    @functools.cached_property
    def table(self):
        """Products: name → (parts, attributes, outputs, gated)."""
        n = self.config.vectors
        scalars = n + (self.actions + 1 if self.actions else 0)
        hidden, edge, node = self.hidden, self.edge_attributes, self.node_attributes
        table = {"embedding": ({"input": [("0e", scalars), ("1o", n)]}, node, hidden, False)}
        for k in range(self.config.layers):
            pair = {"self": hidden, "other": hidden, "distance": [("0e", 1)]}
            table[f"message{k}a"] = (pair, edge, hidden, True)
            table[f"message{k}b"] = ({"self": hidden}, edge, hidden, True)
            table[f"update{k}a"] = ({"self": hidden, "message": hidden}, node, hidden, True)
            table[f"update{k}b"] = ({"self": hidden}, node, hidden, False)
        table["pool_a"] = ({"self": hidden}, node, hidden, True)
        table["pool_b"] = ({"self": hidden}, node, [("0e", self.pooled)], False)
        return table

    @property
    def pooled(self):
        return self.outputs * sum(count for _, count in self.hidden)

    def widths(self, name):
        _, _, outputs, gated = self.table[name]
        widths = dict(outputs)
        if gated:
            widths["0e"] = sum(widths.values())
        return widths

    def paths(self, name):
        """Keys and shapes of all paths of a product, by the selection rules of e3nn."""
        parts, attributes, _, _ = self.table[name]
        widths = self.widths(name)
        for part, irreps in parts.items():
            for source, count in irreps:
                for attribute, _ in attributes:
                    for target in e3nn.Irrep(source) * e3nn.Irrep(attribute.rstrip("'")):
                        if str(target) in widths:
                            yield (name, part, source, attribute, str(target)), (count, widths[str(target)])

    def fan_in(self, name, target):
        return sum(shape[0] for key, shape in self.paths(name) if key[-1] == target)

    def all_shapes(self):
        shapes = {}
        for name in self.table:
            shapes |= dict(self.paths(name))
            shapes[name, BIAS] = (1, self.widths(name)["0e"])
        n, m = self.pooled, self.outputs
        return shapes | {("head0",): (n, n), ("head0", BIAS): (n,), ("head1",): (n, m), ("head1", BIAS): (m,)}

    def fill(self, weights, seed=0):
        """All weights: those given (the first rows and columns), random numbers where the fast network has none."""
        rng = np.random.default_rng(seed)
        result = {}
        for key, shape in self.all_shapes().items():
            full = rng.uniform(-0.3, 0.3, shape)
            if key in weights:
                given = weights[key]
                full[tuple(slice(0, k) for k in given.shape)] = given
            result[key] = full.astype(np.float32)
        return result

    # -- the network protocol --------------------------------------------------------------------------

    @functools.cached_property
    def shapes(self):
        return self.all_shapes()

    def initialise(self, key):
        rng = np.random.default_rng(int(jax.random.key_data(key)[-1]))
        params = {}
        for name, shape in self.shapes.items():
            product, *_, last = name
            fan = self.pooled if product.startswith("head") else self.fan_in(product, "0e" if last == BIAS else last)
            params[name] = rng.uniform(-(fan**-0.5), fan**-0.5, shape).astype(np.float32)
        return params

    def apply_numpy(self, params, observations):
        return None

    def rates(self):
        return None

    def apply(self, params, observations, *actions):
        return self(params, *self.points(observations), *actions)

    # -- forward ---------------------------------------------------------------------------------------

    def points(self, observations):
        """The finger's vectors [B, n, 3] (the root's last, zero) and the vector to the target [B, 3]."""
        layout = self.graph.layout
        position, velocity = (
            observations[:, layout.slice(name)].reshape(len(observations), -1, 3) for name in ("position", "velocity")
        )
        others = [i for i, limb in enumerate(layout.field("position").of) if limb != self.graph.finger]
        vectors = jnp.concatenate([position[:, np.array(others)], velocity], 1)
        return vectors, observations[:, layout.slice("to_target")]

    def __call__(self, weights, vectors, to_target, *actions):
        """[B, outputs]; `vectors` [B, n, 3] without the root's."""
        batch, n = vectors.shape[:2]
        norms = jnp.sqrt(jnp.sum(vectors**2, -1) + 1e-12)
        zeros = self.config.vectors - n
        extra = [actions[0], jnp.sqrt(jnp.sum(actions[0] ** 2, -1, keepdims=True) + 1e-12)] if actions else []
        scalars = jnp.concatenate([norms, *extra, jnp.zeros((batch, zeros))], 1)
        finger = {"0e": scalars[:, :, None], "1o": jnp.concatenate([vectors, jnp.zeros((batch, zeros, 3))], 1)}
        points = [finger, jax.tree.map(jnp.zeros_like, finger)]
        kinds = [self._node(batch, True), self._node(batch, False)]
        edges = [self._edge(to_target), self._edge(-to_target)]
        distance = {"0e": jnp.linalg.norm(to_target, axis=-1)[:, None, None]}
        f = [self._product(weights, "embedding", {"input": x}, a) for x, a in zip(points, kinds, strict=True)]
        for k in range(self.config.layers):
            f = [
                self._layer(weights, k, f[i], f[1 - i], edges[i], kinds[i], distance)
                for i in range(2)
            ]  # fmt: skip
        f = [self._gated(weights, "pool_a", {"self": x}, a) for x, a in zip(f, kinds, strict=True)]
        f = [self._product(weights, "pool_b", {"self": x}, a)["0e"][..., 0] for x, a in zip(f, kinds, strict=True)]
        hidden = jax.nn.silu((f[0] + f[1]) / 2 @ weights["head0",] + weights["head0", BIAS])
        return hidden @ weights["head1",] + weights["head1", BIAS]

    def _layer(self, weights, k, own, other, edge, kind, distance):
        inputs = {"self": own, "other": other, "distance": distance}
        message = self._gated(weights, f"message{k}a", inputs, edge)
        message = self._gated(weights, f"message{k}b", {"self": message}, edge)
        inside = self._gated(weights, f"update{k}a", {"self": own, "message": message}, kind)
        change = self._product(weights, f"update{k}b", {"self": inside}, kind)
        return {name: own[name] + change[name] for name in own}

    def _node(self, batch, is_finger):
        one = jnp.ones((batch, 1, 1))
        axis = jnp.broadcast_to(jnp.array([0.0, 0.0, 1.0]), (batch, 1, 3))
        attributes = {"0e": one, "0e'": one * is_finger, "1e": axis}
        return {name: attributes[name] for name, _ in self.node_attributes}

    def _edge(self, vector):
        """Spherical harmonics of the direction; e3nn orders l = 1 as x, y, z."""
        irreps = e3nn.Irreps("+".join(name for name, _ in self.edge_attributes))
        y = e3nn.spherical_harmonics(irreps, e3nn.IrrepsArray("1o", vector), True, normalization="integral")
        return {name: chunk for (name, _), chunk in zip(self.edge_attributes, y.chunks, strict=True)}

    def _product(self, weights, name, inputs, attributes):
        """Sum over paths of W (x ⊗ a), and the bias on scalars."""
        keys = tuple(key[1:] for key, _ in self.paths(name))
        local = {key: weights[name, *key] for key in keys}
        return steerable_product(keys, tuple(self.widths(name).items()), local, weights[name, BIAS], inputs, attributes)

    def _gated(self, weights, name, inputs, attributes):
        x, outputs = self._product(weights, name, inputs, attributes), self.table[name][2]
        (_, begin), *rest = outputs
        result = {"0e": jax.nn.silu(x["0e"][:, :begin]) * SILU_GAIN}
        for irrep, count in rest:
            opening = jax.nn.sigmoid(x["0e"][:, begin : begin + count]) * SIGMOID_GAIN
            result[irrep] = x[irrep] * opening
            begin += count
        return result
