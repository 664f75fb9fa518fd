"""What an agent, its replay and its augmentation can be told: frozen dataclasses, defaults from the paper's tables.

The string under a field is its help text on the command line.
"""

from __future__ import annotations

import dataclasses
import importlib
import math
from typing import Annotated, Any, NamedTuple

import tyro

from euda.errors import EudaError, unknown

AUGMENTATIONS = {
    "none": "euda.replay.augmentation:nothing",
    "rotate": "euda.replay.augmentation:rotation",
    "gaussian": "euda.replay.augmentation:gaussian",
    "scale": "euda.replay.augmentation:scaling",
    "rotate-auto": "euda.replay.augmentation:rotation",  # with the share of the moment
}
"""By name, the function that makes the change, as `module:function`. A new augmentation is a new row."""
PARITIES = ("paper", "axial")


def named(place: str) -> Any:
    """What a row of a table names as `module:function`; loaded only now, because tables are read by every command."""
    module, _, name = place.partition(":")
    return getattr(importlib.import_module(module), name)


def _require(holds: bool, name: str, value: object, rule: str) -> None:
    if not holds:
        raise EudaError(f"{name} must be {rule}, not {value!r}")


def _positive(config: object, *names: str) -> None:
    for name in names:
        value = getattr(config, name)
        _require(math.isfinite(value) and value > 0, name, value, "a positive number")


def _share(config: object, *names: str) -> None:
    for name in names:
        value = getattr(config, name)
        _require(0 <= value <= 1, name, value, "between 0 and 1")


@dataclasses.dataclass(frozen=True)
class ReplayConfig:
    """Which transitions are kept and how a batch is made of them."""

    capacity: int = 1_000_000
    """Observations kept; the oldest are forgotten first."""
    batch_size: int = 256
    """Transitions in one batch."""
    n_step: int = 3
    """Rewards summed before bootstrapping; fewer where the episode ends earlier."""
    discount: float = 0.99
    """The factor gamma per environment step."""
    seed_steps: int = 4000
    """Environment steps stored before the first update."""

    def __post_init__(self) -> None:
        _positive(self, "capacity", "batch_size", "n_step")
        _share(self, "discount")
        _require(self.seed_steps >= 0, "seed_steps", self.seed_steps, "zero or more")


@dataclasses.dataclass(frozen=True)
class AugmentationConfig:
    """How a sampled batch is changed before the agent learns from it."""

    name: str = "none"
    """none, rotate (turn by random yaws), gaussian (s + z), scale (s * z), rotate-auto (rotate, choosing the share)."""
    share: float = 1.0
    """Share of the batch that is changed (the paper's rho_aug); exactly round(share * batch size) transitions."""
    same_noise: bool = True
    """gaussian and scale: whether an observation and its next one get the same z (as the authors did)."""
    stddev: float = 1.0
    """gaussian: standard deviation of every entry of z."""
    low: float = 0.5
    """scale: lowest factor."""
    high: float = 1.0
    """scale: highest factor."""
    bonus: float = 0.25
    """rotate-auto: weight of the upper-confidence bonus, in units of the spread of recent returns."""
    window: int = 25
    """rotate-auto: recent episodes that the choice rests on."""

    def __post_init__(self) -> None:
        if self.name not in AUGMENTATIONS:
            raise unknown("augmentation", self.name, AUGMENTATIONS)
        _share(self, "share")
        _require(math.isfinite(self.bonus) and self.bonus >= 0, "bonus", self.bonus, "zero or more")
        _require(self.window >= 5, "window", self.window, "at least 5, one for each share")
        _require(math.isfinite(self.stddev) and self.stddev >= 0, "stddev", self.stddev, "zero or more")
        _require(
            math.isfinite(self.low) and self.low <= self.high < math.inf,
            "low",
            self.low,
            f"at most high ({self.high!r})",
        )


@dataclasses.dataclass(frozen=True)
class MLPConfig:
    """The multilayer perceptrons of actor and critic."""

    hidden_size: int = 256
    """Units of a hidden layer."""
    hidden_layers: int = 2
    """How many hidden layers (ReLU)."""
    gain: float = math.sqrt(2)
    """Gain of the orthogonal initialisation of every layer; biases start at zero. The released code used 1."""

    def __post_init__(self) -> None:
        _positive(self, "hidden_size", "hidden_layers", "gain")


@dataclasses.dataclass(frozen=True)
class LearningConfig:
    """What DDPG and SAC have in common: the optimiser and the frequencies."""

    learning_rate: float = 1e-4
    """Adam's step size for actor and critic."""
    actor_every: int = 2
    """The actor learns at every so many updates of the critic."""
    target_every: int = 2
    """The target networks move at every so many updates of the critic."""
    target_rate: float = 0.01
    """The soft update tau: how far a target network moves towards its network."""
    exploration_steps: int = 2000
    """Environment steps with uniformly random actions before the actor is used."""

    def __post_init__(self) -> None:
        _positive(self, "learning_rate", "actor_every", "target_every")
        _share(self, "target_rate")
        _require(self.exploration_steps >= 0, "exploration_steps", self.exploration_steps, "zero or more")


@dataclasses.dataclass(frozen=True)
class DDPGConfig(LearningConfig):
    """DDPG with target policy smoothing: the paper's table of hyperparameters."""

    stddev_start: float = 1.0
    """Standard deviation of the exploration noise at the first step."""
    stddev_end: float = 0.1
    """Standard deviation of the exploration noise after stddev_steps."""
    stddev_steps: int = 1_000_000
    """Environment steps of the linear schedule between the two; the paper's released code used 100000."""
    smoothing_clip: float = 0.3
    """The noise of the target policy has the same deviation, clipped to plus or minus this."""

    def __post_init__(self) -> None:
        super().__post_init__()
        _positive(self, "stddev_steps")
        for name in ("stddev_start", "stddev_end", "smoothing_clip"):
            _require(getattr(self, name) >= 0, name, getattr(self, name), "zero or more")


@dataclasses.dataclass(frozen=True)
class SACConfig(LearningConfig):
    """Soft Actor-Critic with two critics and a learned temperature, sizes and frequencies as DDPG's."""

    temperature: float = 0.1
    """The temperature alpha at the start."""
    temperature_rate: float = 1e-4
    """Adam's step size for the logarithm of the temperature."""
    target_entropy: float | None = None
    """The entropy the temperature aims at, in nats; by default minus the number of actions."""
    log_stddev_low: float = -10.0
    """Lowest logarithm of the policy's standard deviation."""
    log_stddev_high: float = 2.0
    """Highest logarithm of the policy's standard deviation."""

    def __post_init__(self) -> None:
        super().__post_init__()
        _positive(self, "temperature", "temperature_rate")
        _require(
            self.log_stddev_low < self.log_stddev_high,
            "log_stddev_low",
            self.log_stddev_low,
            f"below log_stddev_high ({self.log_stddev_high!r})",
        )


class AgentRow(NamedTuple):
    """An agent: where its learning rule is, as `module:class`, and the settings it takes."""

    rule: str
    settings: type[LearningConfig]


AGENTS = {
    "ddpg": AgentRow("euda.agents.ddpg:DDPG", DDPGConfig),
    "sac": AgentRow("euda.agents.sac:SAC", SACConfig),
}
"""By name. A new agent is a new row; its rule is made by `make(features, actions, settings, networks)`."""


@dataclasses.dataclass(frozen=True)
class SEGNNConfig:
    """The steerable equivariant networks (methods segnn and segnn-single); see docs/segnn.md for every choice."""

    parity: Annotated[str, tyro.conf.arg(prefix_name=False)] = "paper"
    """segnn: paper (torques as true scalars, as published) or axial (points know the axis of the hinges)."""
    lmax: int | None = None
    """Highest order of hidden features, 1 to 3; by default 2, with axial parity always 1."""
    attribute_lmax: int | None = None
    """Highest order of the edges' spherical harmonics, 1 to 6; by default 3, with axial parity 1."""
    layers: int = 3
    """Layers of message passing."""
    hidden_size: int = 64
    """Numbers in the hidden features of a point."""
    split: str = "balanced"
    """How they are split over orders: balanced, or multiplicities such as 32,32, which replace hidden_size."""
    vectors: int = 7
    """Vectors of the finger: 7 as in the paper's text, or 6 without the velocity of the root, which is zero."""
    learning_rate: float = 5e-5
    """Adam's step size with these networks, instead of the agent's."""

    def __post_init__(self) -> None:
        if self.parity not in PARITIES:
            raise unknown("parity", self.parity, PARITIES)
        _positive(self, "layers", "hidden_size", "learning_rate")
        _require(self.vectors in (6, 7), "vectors", self.vectors, "6 or 7")
        lmax, attribute_lmax = self.orders
        for name, value in zip(("layers", "hidden_size", "lmax", "attribute_lmax"),
                               (self.layers, self.hidden_size, lmax, attribute_lmax), strict=True):  # fmt: skip
            _require(isinstance(value, int), name, value, "a whole number")
        highest = 1 if self.parity == "axial" else 3
        _require(1 <= lmax <= highest, "lmax", lmax, "1 with axial parity" if highest == 1 else "1, 2 or 3")
        _require(1 <= attribute_lmax <= 6, "attribute_lmax", attribute_lmax, "from 1 to 6")
        _ = self.irreps

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
            _require(min(counts) > 0, "hidden_size", self.hidden_size, f"large enough for {', '.join(names)}")
            return counts
        parts = self.split.split(",")
        is_valid = len(parts) == len(names) and all(part.strip().isdecimal() and int(part) > 0 for part in parts)
        rule = f"balanced, or {len(names)} positive whole numbers for {', '.join(names)}, such as 23,7,4"
        _require(is_valid, "split", self.split, rule)
        return [int(part) for part in parts]
