"""Settings of agents, their networks and what these see, and the tables of all. Nothing here loads JAX."""

from __future__ import annotations

import dataclasses
import math
from typing import Annotated, Literal, NamedTuple

from annotated_types import Ge, Interval

from euda import lookup
from euda.errors import EudaError
from euda.lookup import Maker
from euda.schema import Count, NotNegative, Positive, Settings, Share, Steps, TopLevel

HEADS: dict[str, Maker] = {"scalar": "euda.agents.critics:scalar", "categorical": "euda.agents.critics:categorical"}
"""What a critic puts out, by name: the function that makes the head. A new head is a new row."""
NOISES: dict[str, Maker | None] = {
    "white": None,
    "pink": "euda.agents.noise:Pink",
    "held": "euda.agents.noise:Held",
    "held-at-first": "euda.agents.noise:HeldAtFirst",
}
"""How exploring actions depend on those before, by name: (number of actions) → `noise.Noise`; None: not at all."""
_GAIN = math.sqrt(2)  # keeps the size of a signal through layers with ReLU


@dataclasses.dataclass(frozen=True)
class LearningConfig(Settings):
    """What all agents have in common: the optimiser, the critics and the frequencies."""

    learning_rate: Positive = 1e-4
    """Adam's step size for actor and critic."""
    weight_decay: NotNegative = 0.0
    """AdamW: how much of each parameter is taken away per step, as a factor of the learning rate."""
    gradient_clip: NotNegative = 0.0
    """Longest gradient of a network (the norm over all its parameters); 0: any."""
    critics: Count = 1
    """Critics that learn the same values; targets take the lowest of them."""
    head: str = "scalar"
    """What a critic puts out: scalar (the value) or categorical (a histogram of it, HL-Gauss)."""
    bins: Annotated[int, Ge(2)] = 101
    """categorical: bins of the histogram."""
    value_low: float = 0.0
    """categorical: lower end of the histogram. The tasks pay 0 to 1 per step, so values lie in 0 to 100."""
    value_high: float = 100.0
    """categorical: upper end of the histogram."""
    actor_every: Count = 2
    """The actor learns at every so many updates of the critic."""
    target_every: Count = 2
    """The target networks move at every so many updates of the critic."""
    target_rate: Share = 0.01
    """The soft update tau: how far a target network moves towards its network."""
    exploration_steps: Steps = 2000
    """Environment steps with uniformly random actions before the actor is used."""
    noise: str = "white"
    """How exploring actions depend on those before: white (not at all), pink, held, held-at-first (while random)."""

    def __post_init__(self) -> None:
        super().__post_init__()
        lookup.find("head", HEADS, self.head)
        lookup.find("noise", NOISES, self.noise)
        if self.value_low >= self.value_high:
            raise EudaError(f"value_low must be below value_high ({self.value_high!r}), not {self.value_low!r}")


@dataclasses.dataclass(frozen=True)
class DDPGConfig(LearningConfig):
    """DDPG with target policy smoothing: the paper's table of hyperparameters."""

    stddev_start: NotNegative = 1.0
    """Standard deviation of the exploration noise at the first step."""
    stddev_end: NotNegative = 0.1
    """Standard deviation of the exploration noise after stddev_steps."""
    stddev_steps: Count = 1_000_000
    """Environment steps of the linear schedule between the two; the paper's released code used 100000."""
    smoothing_clip: NotNegative = 0.3
    """The noise of the target policy has the same deviation, clipped to plus or minus this."""


@dataclasses.dataclass(frozen=True)
class TD3Config(DDPGConfig):
    """TD3: two critics and noise that does not change, with the values of its paper; the rest is DDPG's."""

    critics: Count = 2
    """Critics that learn the same values; targets take the lowest of them, the actor follows the first."""
    stddev_start: NotNegative = 0.1
    """Standard deviation of the exploration noise at the first step."""
    smoothing_stddev: NotNegative = 0.2
    """Standard deviation of the noise of the target policy."""
    smoothing_clip: NotNegative = 0.5
    """The noise of the target policy is clipped to plus or minus this."""


@dataclasses.dataclass(frozen=True)
class SACConfig(LearningConfig):
    """Soft Actor-Critic with two critics and a learned temperature, sizes and frequencies as DDPG's."""

    critics: Count = 2
    """Critics that learn the same values; targets and actor take the lowest of them."""
    temperature: Positive = 0.1
    """The temperature alpha at the start."""
    temperature_rate: Positive = 1e-4
    """Adam's step size for the logarithm of the temperature."""
    target_entropy: float | None = None
    """The entropy the temperature aims at, in nats; by default entropy_per_action times the number of actions."""
    entropy_per_action: float = -1.0
    """The entropy the temperature aims at, in nats for each action."""
    log_stddev_low: float = -10.0
    """Lowest logarithm of the policy's standard deviation."""
    log_stddev_high: float = 2.0
    """Highest logarithm of the policy's standard deviation."""
    log_stddev_start: float | None = None
    """Where it begins, about; by default in the middle of the two."""

    def __post_init__(self) -> None:
        super().__post_init__()
        low, start, high = self.log_stddev_low, self.log_stddev_start, self.log_stddev_high
        if low >= high:
            raise EudaError(f"log_stddev_low must be below log_stddev_high ({high!r}), not {low!r}")
        if start is not None and not low < start < high:
            raise EudaError(f"log_stddev_start must be between log_stddev_low and _high, not {start!r}")


class AgentRow(NamedTuple):
    """An agent: its learning rule, and the settings it takes."""

    rule: Maker
    """A class; its `make(features, actions, settings, networks)` gives the rule, see `agent.Algorithm`."""
    settings: type[LearningConfig]


AGENTS: dict[str, AgentRow] = {
    "ddpg": AgentRow("euda.agents.ddpg:DDPG", DDPGConfig),
    "sac": AgentRow("euda.agents.sac:SAC", SACConfig),
    "td3": AgentRow("euda.agents.td3:TD3", TD3Config),
}
"""By name. A new agent is a new row."""


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
    """Gain of the orthogonal initialisation of every layer; biases start at zero. The released code used 1."""
    last_gain: Positive | None = None
    """Gain of the last layer; by default that of the others."""
    layer_norm: bool = False
    """Whether the units of a hidden layer are brought to mean 0 and deviation 1 before each ReLU."""


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


class FrameRow(NamedTuple):
    """A frame in which the networks see observations."""

    make: Maker | None
    """(layout, target) → `frames.Frame`; `target` as in `NetworkRow.make`. None: observations stay as they are."""
    uses_symmetry: bool = False
    """Whether it is right only if the robot has the symmetry."""


WORLD = "world"
FRAMES: dict[str, FrameRow] = {
    WORLD: FrameRow(None),
    "own": FrameRow("euda.agents.frames:own_frame", uses_symmetry=True),
    "root": FrameRow("euda.agents.frames:root_frame", uses_symmetry=True),
}
"""By name. A new frame is a new row."""
NORMALISERS: dict[str, Maker | None] = {
    "none": None,
    "symmetric": "euda.agents.normaliser:symmetric",
    "full": "euda.agents.normaliser:full",
}
"""By name: (layout, clip, is_turned, maps) → `normaliser.Normaliser`. A new normaliser is a new row."""


@dataclasses.dataclass(frozen=True)
class InputsConfig(Settings):
    """What the networks see of an observation, after it was turned into their frame."""

    normaliser: str = "none"
    """none, symmetric (running statistics that commute with the symmetries), full (each entry its own)."""
    clip: Positive = 10.0
    """Normalised entries are clipped to plus or minus this, except x and y of world vectors."""

    def __post_init__(self) -> None:
        super().__post_init__()
        lookup.find("normaliser", NORMALISERS, self.normaliser)
