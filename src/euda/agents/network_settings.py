"""Settings of actor and critic networks, and their table. Nothing here loads JAX."""

from __future__ import annotations

import dataclasses
import math
from typing import Annotated, Literal, NamedTuple

from annotated_types import Interval

from euda.errors import EudaError
from euda.lookup import Maker
from euda.schema import Count, Positive, Settings, TopLevel

_GAIN = math.sqrt(2)  # keeps the size of a signal through layers with ReLU


@dataclasses.dataclass(frozen=True)
class NetworkConfig(Settings):
    """What all networks have in common."""

    @property
    def rate(self) -> float | None:
        """Adam's step size with these networks, where it is not the agent's."""
        return None

    @property
    def label(self) -> str:
        """What tells them apart from networks of the same name at a glance; empty by default."""
        return ""


@dataclasses.dataclass(frozen=True)
class MLPConfig(NetworkConfig):
    """The multilayer perceptrons of actor and critic."""

    hidden_size: Count = 256
    """Units of a hidden layer."""
    hidden_layers: Count = 2
    """How many hidden layers (ReLU)."""
    gain: Positive = _GAIN
    """Gain of the orthogonal initialisation of every layer; biases start at zero. The paper's released code used 1."""
    last_gain: Positive | None = None
    """Gain of the last layer; by default that of the others."""
    layer_norm: bool = False
    """Layer normalisation before each ReLU."""


@dataclasses.dataclass(frozen=True)
class ResidualConfig(NetworkConfig):
    """Residual blocks: narrow layers with wider ones inside, normalised (SimBa at small width)."""

    hidden_size: Count = 128
    """Units between two blocks."""
    blocks: Count = 2
    """How many blocks."""
    expansion: Count = 4
    """Units inside a block, as a multiple of hidden_size."""
    last_gain: Positive = 1.0
    """Gain of the orthogonal initialisation of the last layer."""


@dataclasses.dataclass(frozen=True)
class SEGNNConfig(NetworkConfig):
    """The steerable equivariant networks; see docs/segnn.md for every choice."""

    parity: Annotated[Literal["paper", "axial"], TopLevel()] = "paper"
    """paper (torques as true scalars, as published) or axial (points know the axis of the hinges)."""
    lmax: Annotated[int, Interval(ge=1, le=3)] | None = None
    """Highest order of hidden features, 1 to 3; by default 2, with axial parity always 1."""
    attribute_lmax: Annotated[int, Interval(ge=1, le=6)] | None = None
    """Highest order of the edges' spherical harmonics, 1 to 6; by default 3, with axial parity 1."""
    layers: Count = 3
    """Layers of message passing."""
    hidden_size: Count = 64
    """Numbers in the hidden features of a point."""
    split: str = "balanced"
    """How they are split over orders: balanced, or multiplicities such as 32,32, which replace hidden_size."""
    vectors: Literal[6, 7] = 7
    """Vectors of the finger: 7 as in the paper's text, or 6 without the velocity of the root, which is zero."""
    learning_rate: Positive = 5e-5
    """Adam's step size with these networks, instead of the agent's."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.parity == "axial" and self.orders[0] != 1:
            raise EudaError(f"lmax must be 1 with axial parity, not {self.orders[0]!r}")
        _ = self.irreps

    @property
    def rate(self) -> float:
        """Adam's step size."""
        return self.learning_rate

    @property
    def label(self) -> str:
        """The parity, if it is not the paper's."""
        return "" if self.parity == "paper" else self.parity

    @property
    def orders(self) -> tuple[int, int]:
        """The pair lmax and attribute_lmax, resolved."""
        lmax, attribute_lmax = (1, 1) if self.parity == "axial" else (2, 3)
        lmax = lmax if self.lmax is None else self.lmax
        return lmax, attribute_lmax if self.attribute_lmax is None else self.attribute_lmax

    @property
    def irreps(self) -> tuple[tuple[str, int], ...]:
        """Hidden irreps and how many of each: 23x0e + 7x1o + 4x2e by default, 22x0e + 7x1e + 7x1o with axial parity."""
        orders = [0, 1, 1] if self.parity == "axial" else list(range(self.orders[0] + 1))
        names = ["0e", "1e", "1o"] if self.parity == "axial" else [f"{order}{'eo'[order % 2]}" for order in orders]
        return tuple(zip(names, self._counts(orders, names), strict=True))

    def _counts(self, orders: list[int], names: list[str]) -> list[int]:
        if self.split == "balanced":
            share = self.hidden_size / len(orders)
            rest = [int(share / (2 * order + 1)) for order in orders[1:]]
            counts = [self.hidden_size - sum(n * (2 * k + 1) for n, k in zip(rest, orders[1:], strict=True)), *rest]
            if min(counts) <= 0:
                raise EudaError(f"hidden_size must be large enough for {', '.join(names)}, not {self.hidden_size!r}")
            return counts
        parts = self.split.split(",")
        if len(parts) != len(names) or not all(part.strip().isdecimal() and int(part) > 0 for part in parts):
            rule = f"balanced, or {len(names)} positive whole numbers for {', '.join(names)}, such as 23,7,4"
            raise EudaError(f"split must be {rule}, not {self.split!r}")
        return [int(part) for part in parts]


@dataclasses.dataclass(frozen=True)
class SinglePointConfig(SEGNNConfig):
    """SEGNN with one point, which has no plane of hinges, so its parity is the paper's."""

    parity: Literal["paper"] = "paper"
    """paper: there is no other for one point."""


class NetworkRow(NamedTuple):
    """A network: its maker, its settings, and what it asks of the observations."""

    make: Maker
    """(settings, layout, target) → `networks.Networks`; `target` is the limb that should reach a target, or None."""
    settings: type[NetworkConfig]
    features: tuple[str, ...] = ()
    """The feature sets it can read; empty: all."""
    needs_target: bool = False
    """Whether it is defined only for tasks with a target."""
    uses_symmetry: bool = False
    """Whether it is right only if the robot has the symmetry."""


NETWORKS: dict[str, NetworkRow] = {
    "mlp": NetworkRow("euda.agents.networks:mlp_networks", MLPConfig),
    "residual": NetworkRow("euda.agents.residual:residual_networks", ResidualConfig),
    "segnn": NetworkRow(
        "euda.agents.segnn.network:two_points", SEGNNConfig, ("limb",), needs_target=True, uses_symmetry=True
    ),
    "segnn-single": NetworkRow("euda.agents.segnn.network:one_point", SinglePointConfig, ("limb",), uses_symmetry=True),
}
"""By name. A new network is a new row."""
