"""Clebsch-Gordan products in the frame of an edge: which components feed which, as small dense matrices.

A steerable product x ⊗ a → y sums paths: an irrep of x times an irrep of the attribute a gives an irrep of y,
each path with a weight matrix of its own. Everything the SEGNN multiplies shares one axis (the edge between its
two points), so in that axis' frame most components never reach an output. What is left is written down here:

    paper   irreps 0e, 1o, 2e, … have one component each, the one along the edge (m = 0)
    axial   0e has s; the hinge axis ẑ makes 1e useful, with z along ẑ; 1o has r along the edge, t = ẑ × r

A `Product` lists the paths of one product and assembles them into a matrix, draws their weights, and says by
which factor Adam's step on an entry of the matrix differs from its step on the weights of the paths.
"""

from __future__ import annotations

import dataclasses
import functools
import math
from typing import Any, NamedTuple

import numpy as np

Irreps = tuple[tuple[str, int], ...]
"""Irreps with their multiplicities, for example (("0e", 23), ("1o", 7), ("2e", 4))."""
SCALAR = "0e"


@dataclasses.dataclass(frozen=True)
class Path:
    """One path source ⊗ attribute → target, and what it does to components: (from, to, factor)."""

    source: str
    attribute: str
    target: str
    entries: tuple[tuple[str, str, float], ...]
    copies: int = 1
    """Attributes of this kind in the full network; they count in the fan-in."""


@dataclasses.dataclass(frozen=True)
class Algebra:
    """Components of every irrep, and the paths of products with the edge and with the attributes of a node."""

    components: tuple[tuple[str, tuple[str, ...]], ...]
    reversed_: tuple[str, ...]
    """Components that change sign in the frame of the opposite point."""
    edge: tuple[Path, ...]
    node: tuple[Path, ...]
    """Products with what both points have: the first type column, and in axial mode ẑ."""
    finger: tuple[Path, ...]
    """Products with what only the finger has: the second type column."""

    def of(self, irrep: str) -> tuple[str, ...]:
        """Components of an irrep."""
        return dict(self.components)[irrep]

    def width(self, irreps: Irreps) -> int:
        """Numbers in a row of features."""
        return sum(count * len(self.of(irrep)) for irrep, count in irreps)


def harmonic(order: int) -> float:
    """|Y_l| of a unit vector, normalised to integrate to one over the sphere."""
    return math.sqrt((2 * order + 1) / (4 * math.pi))


def wigner(l1: int, l2: int, l3: int) -> float:
    """|3j symbol| with all m = 0, for an even sum of orders within the triangle rule."""
    g, f = (l1 + l2 + l3) // 2, math.factorial
    root = math.sqrt(f(2 * (g - l1)) * f(2 * (g - l2)) * f(2 * (g - l3)) / f(2 * g + 1))
    return root * f(g) / (f(g - l1) * f(g - l2) * f(g - l3))


def irrep(order: int) -> str:
    """The irrep of a polar tensor: 0e, 1o, 2e and so on."""
    return f"{order}{'eo'[order % 2]}"


@functools.lru_cache
def paper_algebra(lmax: int, attribute_lmax: int, types: int = 2) -> Algebra:
    """Polar tensors up to order `lmax`; points have a type and nothing else."""
    orders = range(lmax + 1)
    names = {order: irrep(order) for order in orders}
    edge = [
        Path(names[l1], irrep(la), names[l3], ((names[l1], names[l3], _along(l1, la, l3)),))
        for l1 in orders
        for l3 in orders
        for la in range(abs(l1 - l3), min(l1 + l3, attribute_lmax) + 1)
        if (l1 + la + l3) % 2 == 0
    ]
    typed = tuple(Path(name, SCALAR, name, ((name, name, 1.0),), types) for name in names.values())
    finger = tuple(dataclasses.replace(path, attribute="0e'", copies=0) for path in typed) if types == 2 else ()
    components = tuple((name, (name,)) for name in names.values())
    return Algebra(components, tuple(names[order] for order in orders if order % 2), tuple(edge), typed, finger)


def _along(l1: int, la: int, l3: int) -> float:
    """What the product with Y_la of the axis does to the component along it."""
    return math.sqrt(2 * l3 + 1) * wigner(l1, la, l3) * harmonic(la)


@functools.lru_cache
def axial_algebra(attribute_lmax: int) -> Algebra:
    """Scalars, vectors in the plane and axial vectors across it; points have a type and the hinge axis ẑ (1e)."""
    y0, y1, root2, root3 = harmonic(0), harmonic(1), math.sqrt(2), math.sqrt(3)
    edge = [
        Path("0e", "0e", "0e", (("s", "s", y0),)),
        Path("0e", "1o", "1o", (("s", "r", y1),)),
        Path("1o", "1o", "0e", (("r", "s", y1 / root3),)),
        Path("1o", "0e", "1o", (("r", "r", y0), ("t", "t", y0))),
        Path("1o", "1o", "1e", (("t", "z", -y1 / root2),)),  # t × r = -z
        Path("1e", "1o", "1o", (("z", "t", y1 / root2),)),  # z × r = t
        Path("1e", "0e", "1e", (("z", "z", y0),)),
    ]
    if attribute_lmax >= 2:
        k = _along(1, 2, 1)  # traceless: +1 along the edge, -1/2 across
        edge.append(Path("1o", "2e", "1o", (("r", "r", k), ("t", "t", -k / 2))))
        edge.append(Path("1e", "2e", "1e", (("z", "z", -k / 2),)))
    components = (("0e", ("s",)), ("1e", ("z",)), ("1o", ("r", "t")))
    typed = tuple(Path(name, SCALAR, name, tuple((c, c, 1.0) for c in parts), 2) for name, parts in components)
    axis = (
        Path("0e", "1e", "1e", (("s", "z", 1.0),)),
        Path("1e", "1e", "0e", (("z", "s", 1 / root3),)),
        Path("1e", "1e", "1e", ()),  # z × z = 0, but counted in the fan-in
        Path("1o", "1e", "1o", (("t", "r", 1 / root2), ("r", "t", -1 / root2))),  # t × z = r, r × z = -t
    )
    finger = tuple(dataclasses.replace(path, attribute="0e'", copies=0) for path in typed)
    return Algebra(components, ("r", "t"), tuple(edge), typed + axis, finger)


@dataclasses.dataclass(frozen=True)
class Part:
    """One input of a product."""

    name: str
    live: Irreps
    """What really arrives; its components are the rows of the matrix."""
    full: Irreps
    """What the full network sums over: counts in the fan-in."""
    is_other: bool = False
    """Whether it comes from the opposite point, whose frame is turned by half a turn."""


class Link(NamedTuple):
    """A path from one part of the input: the weights of it mix the part's channels into those of the target."""

    part: Part
    path: Path
    shape: tuple[int, int]
    """Of the weights, [inputs, outputs]."""


class PathWeights(NamedTuple):
    """The parameters of a product as the full network has them."""

    links: tuple[Any, ...]
    """Weights [inputs, outputs] in the order of `Product.links`."""
    bias: Any
    """[1, scalars and gates]"""


class Matrices(NamedTuple):
    """The parameters of a product put together."""

    both: Any
    """[rows + 1, columns], the last row being the bias: of an edge, or of the attributes that both points have."""
    finger: Any
    """[rows, columns]: of the attribute that only the finger has; None for an edge and a single point."""


@dataclasses.dataclass(frozen=True)
class Product:
    """One steerable product: rows are components of its parts and a bias, columns those of its output.

    Gated, the columns are [scalars | gates | gated components], one gate for every gated component.
    """

    algebra: Algebra
    parts: tuple[Part, ...]
    outputs: Irreps
    is_gated: bool
    on_edge: bool = False

    @functools.cached_property
    def columns(self) -> tuple[tuple[str, str, int, int], ...]:
        """Groups of columns: irrep, component, and which of the weights' columns they use."""
        (_, scalars), *rest = self.outputs
        component = self.algebra.of(SCALAR)[0]
        columns, gates, values, begin = [(SCALAR, component, 0, scalars)], [], [], scalars
        for name, count in rest:
            for part in self.algebra.of(name):
                gates.append((SCALAR, component, begin, begin + count))
                values.append((name, part, 0, count))
            begin += count
        return (*columns, *(gates if self.is_gated else ()), *values)

    @property
    def gates(self) -> tuple[int, int]:
        """How many scalars come out, and how many gated components."""
        scalars = self.outputs[0][1]
        return scalars, self.algebra.width(self.outputs) - scalars

    @property
    def paths(self) -> tuple[Path, ...]:
        """Paths of the attributes that every point or edge has."""
        return self.algebra.edge if self.on_edge else self.algebra.node

    @property
    def finger_paths(self) -> tuple[Path, ...]:
        """Paths of the attribute that only the finger has."""
        return () if self.on_edge else self.algebra.finger

    def fan_in(self, target: str) -> int:
        """Terms that the full network sums for one output of that irrep."""
        counts = ((path, count) for part in self.parts for irrep_, count in part.full for path in self.paths
                  if path.source == irrep_ and path.target == target)  # fmt: skip
        return sum(path.copies * count for path, count in counts)

    # -- weights of paths ------------------------------------------------------------------------------

    @functools.cached_property
    def links(self) -> tuple[Link, ...]:
        """Every path that can reach an output."""
        widths = dict(self.outputs)
        if self.is_gated:
            widths[SCALAR] = sum(widths.values())
        return tuple(
            Link(part, path, (count, widths[path.target]))
            for part in self.parts
            for name, count in part.live
            for path in (*self.paths, *self.finger_paths)
            if path.source == name and path.target in widths
        )

    @property
    def bias_shape(self) -> tuple[int, int]:
        """One bias for every scalar and every gate."""
        return (1, sum(count for _, count in self.outputs) if self.is_gated else self.outputs[0][1])

    def draw(self, rng: np.random.Generator) -> PathWeights:
        """Weights and bias, uniform within ±1/sqrt(fan-in)."""

        def uniform(target: str, shape: tuple[int, int]) -> np.ndarray:
            bound = 1 / math.sqrt(self.fan_in(target))
            return rng.uniform(-bound, bound, shape)

        links = tuple(uniform(link.path.target, link.shape) for link in self.links)
        return PathWeights(links, uniform(SCALAR, self.bias_shape))

    # -- matrices --------------------------------------------------------------------------------------

    def matrices(self, weights: PathWeights, xp: Any, absolute: bool = False) -> Matrices:
        """The matrices that weights of paths amount to; linear.

        `absolute` takes the factors without sign: with weights of one this is Adam's factor.
        """
        table = {(link.part, link.path): weight for link, weight in zip(self.links, weights.links, strict=True)}
        both = [*self._rows(self.paths, table, xp, absolute), self._bias(weights.bias, xp)]
        finger = self._rows(self.finger_paths, table, xp, absolute) if self.finger_paths else None
        return Matrices(xp.concatenate(both, 0), None if finger is None else xp.concatenate(finger, 0))

    def _rows(self, paths: tuple[Path, ...], table: dict[tuple[Part, Path], Any], xp: Any, absolute: bool) -> list[Any]:
        """Rows of every component of every part: each [channels, columns]."""
        return [
            self._row(part, name, component, count, paths, table, xp, absolute)
            for part in self.parts
            for name, count in part.live
            for component in self.algebra.of(name)
        ]

    def _row(self, part: Part, name: str, component: str, count: int, paths: tuple[Path, ...],
             table: dict[tuple[Part, Path], Any], xp: Any, absolute: bool) -> Any:  # fmt: skip
        """Rows of one component: [count, columns]."""
        sign = -1.0 if part.is_other and component in self.algebra.reversed_ else 1.0
        cells = []
        for target, to, start, stop in self.columns:
            terms = [
                (abs(factor) if absolute else sign * factor) * table[part, path][:, start:stop]
                for path in paths
                if (path.source, path.target) == (name, target)
                for source, aim, factor in path.entries
                if (source, aim) == (component, to)
            ]
            cells.append(sum(terms[1:], terms[0]) if terms else xp.zeros((count, stop - start), np.float32))
        return xp.concatenate(cells, 1)

    def _bias(self, bias: Any, xp: Any) -> Any:
        cells = [
            bias[:, start:stop] if target == SCALAR else xp.zeros((1, stop - start), np.float32)
            for target, _, start, stop in self.columns
        ]
        return xp.concatenate(cells, 1)
