"""Settings of agents, and their table. Nothing here loads JAX."""

from __future__ import annotations

import dataclasses
from typing import Annotated, NamedTuple

from annotated_types import Ge

from euda import lookup
from euda.errors import EudaError
from euda.lookup import Maker
from euda.schema import Count, NotNegative, Positive, RowOf, Settings, Share, Since, Steps

HEADS: dict[str, Maker] = {"scalar": "euda.agents.critics:scalar", "categorical": "euda.agents.critics:categorical"}
"""What a critic puts out, by name: the function that makes the head. A new head is a new row."""
NOISES: dict[str, Maker | None] = {
    "white": None,
    "pink": "euda.agents.noise:Pink",
    "held": "euda.agents.noise:Held",
    "held-at-first": "euda.agents.noise:HeldAtFirst",
    "bursts": "euda.agents.noise:Bursts",
}
"""How exploring actions depend on those before, by name: (number of actions) → `noise.Noise`; None: not at all."""


@dataclasses.dataclass(frozen=True)
class LearningConfig(Settings):
    """What all agents have in common: the optimiser, the critics and the frequencies."""

    learning_rate: Positive = 1e-4
    """Adam's step size for actor and critic."""
    weight_decay: NotNegative = 0.0
    """Weight decay of AdamW, as a factor of the learning rate; 0: plain Adam."""
    gradient_clip: NotNegative = 0.0
    """Gradients of a network are clipped to this norm over all its parameters; 0: no clipping."""
    critics: Count = 1
    """Number of critics."""
    pessimism: Annotated[Share, Since(1.0)] = 1.0
    """With several critics: 1 takes the lowest of their values, 0 their mean, and what is between lies between."""
    head: Annotated[str, RowOf("head")] = "scalar"
    """Output of a critic: the value, or a histogram of it (HL-Gauss)."""
    bins: Annotated[int, Ge(2)] = 101
    """categorical: bins of the histogram."""
    value_low: float = 0.0
    """categorical: lower end of the histogram. The tasks pay 0 to 1 per step, so values lie in 0 to 100."""
    value_high: float = 100.0
    """categorical: upper end of the histogram."""
    actor_every: Count = 2
    """Updates of the critic per update of the actor."""
    target_every: Count = 2
    """Updates of the critic per update of the target networks."""
    target_rate: Share = 0.01
    """tau of the soft update of the target networks."""
    exploration_steps: Steps = 2000
    """Environment steps with uniformly random actions before the actor is used."""
    noise: Annotated[str, RowOf("noise")] = "white"
    """How exploration noise is correlated over time (at first: while actions are random; bursts: a tenth later too)."""

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
    """Number of critics; targets use all of them, the actor the first."""
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
    """Number of critics; targets and actor use all of them."""
    temperature: Positive = 0.1
    """The temperature alpha at the start."""
    temperature_rate: Positive = 1e-4
    """Adam's step size for the logarithm of the temperature."""
    target_entropy: float | None = None
    """Target entropy in nats; by default entropy_per_action times the number of actions."""
    entropy_per_action: float = -1.0
    """Target entropy in nats per action."""
    log_stddev_low: float = -10.0
    """Lowest logarithm of the policy's standard deviation."""
    log_stddev_high: float = 2.0
    """Highest logarithm of the policy's standard deviation."""
    log_stddev_start: float | None = None
    """About where this logarithm starts; by default halfway between low and high."""

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
    """A class; its `make(features, actions, settings, networks)` gives the rule, see `program.Algorithm`."""
    settings: type[LearningConfig]


AGENTS: dict[str, AgentRow] = {
    "ddpg": AgentRow("euda.agents.ddpg:DDPG", DDPGConfig),
    "sac": AgentRow("euda.agents.sac:SAC", SACConfig),
    "td3": AgentRow("euda.agents.td3:TD3", TD3Config),
}
"""By name. A new agent is a new row."""
