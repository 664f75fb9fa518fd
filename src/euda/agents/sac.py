"""SAC: two critics (or another number), a Gaussian policy squashed by tanh, and a learned temperature.

With policy a = tanh(u), u ~ N(μ_θ(s), σ_θ(s)²), critics Q_1, Q_2 with targets Q_1', Q_2', temperature α:

    y = R + Γ (min_i Q_i'(s', a') - α log π_θ(a' | s')),   a' ~ π_θ(s')
    critics: Σ_i mean (Q_i(s, a) - y)²
    actor:   mean (α log π_θ(ã | s) - min_i Q_i(s, ã)),   ã ~ π_θ(s)
    α:       - mean α (log π_θ(ã | s) + H),   H = minus the number of actions

The lowest of the critics is the paper's choice; `pessimism` below 1 goes from there towards their mean.

Over an n-step window only the last state's entropy enters the target, as in the code the paper builds on.
"""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Sequence
from typing import Any, ClassVar, Self

import jax
import jax.numpy as jnp
import numpy as np
import optax

from euda.agents.critics import Critics
from euda.agents.networks import Network, Networks, Params, mlp_networks
from euda.agents.optimiser import begin, descend, follow, make_optimiser
from euda.agents.program import Floats, Metrics, State
from euda.agents.settings import SACConfig
from euda.replay.buffer import Transition
from euda.replay.random_draws import normal


@dataclasses.dataclass(frozen=True)
class SAC:
    """The learning rule of SAC; `SAC.make` builds it from sizes."""

    features: int
    actions: int
    actor: Network
    critics: Critics
    config: SACConfig
    settings: ClassVar[type[SACConfig]] = SACConfig

    @classmethod
    def make(
        cls, features: int, actions: int, config: SACConfig | None = None, networks: Networks | None = None
    ) -> Self:
        """The rule for observations [features] and actions [actions], perceptrons unless `networks` says otherwise."""
        config, networks = config or cls.settings(), networks or mlp_networks()
        critics = Critics.make(features, actions, config, networks)
        return cls(features, actions, networks.actor(features, 2 * actions), critics, config)

    @property
    def target_entropy(self) -> float:
        """H in nats."""
        given = self.config.target_entropy
        return self.config.entropy_per_action * self.actions if given is None else given

    @functools.cached_property
    def optimisers(self) -> dict[str, optax.GradientTransformation]:
        """By the name of what they change."""
        return {
            "actor": make_optimiser(self.config, self.actor.rates()),
            "critics": make_optimiser(self.config, self.critics.rates()),
            "log_alpha": optax.adam(self.config.temperature_rate),
        }

    def initialise(self, key: jax.Array) -> dict[str, Any]:
        """Parameters, targets of the critics, the logarithm of the temperature, and optimisers that saw nothing."""
        first, *rest = jax.random.split(key, 1 + self.critics.count)
        critics = self.critics.initialise(rest)
        parts = {
            "actor": self.actor.initialise(first),
            "critics": critics,
            "log_alpha": np.float32(math.log(self.config.temperature)),
        }
        state: dict[str, Any] = {"critics_target": critics}
        for name, params in parts.items():
            state |= begin(name, params, self.optimisers[name])
        return state

    # -- acting ----------------------------------------------------------------------------------------

    def split(self, outputs: Any) -> tuple[Any, Any]:
        """The pair μ and log σ [..., m] of the actor's outputs; log σ is squashed between its two limits."""
        xp = np if isinstance(outputs, np.ndarray) else jnp
        low, high = self.config.log_stddev_low, self.config.log_stddev_high
        mu, raw = outputs[..., : self.actions], outputs[..., self.actions :] + self._start
        return mu, low + 0.5 * (high - low) * (xp.tanh(raw) + 1)

    @functools.cached_property
    def _start(self) -> np.float32:
        """What is added to the outputs for log σ, so that zero means the value it should begin with."""
        low, start, high = self.config.log_stddev_low, self.config.log_stddev_start, self.config.log_stddev_high
        return np.float32(0 if start is None else math.atanh(2 * (start - low) / (high - low) - 1))

    def mode(self, outputs: Any) -> Any:
        """The action tanh(μ)."""
        mu = outputs[..., : self.actions]
        return np.tanh(mu) if isinstance(mu, np.ndarray) else jnp.tanh(mu)

    def sample(self, outputs: Floats, z: Floats, step: int) -> Floats:
        """The action tanh(μ + σ z)."""
        del step
        mu, log_sigma = self.split(outputs)
        return np.tanh(mu + np.exp(log_sigma) * z)

    # -- losses ----------------------------------------------------------------------------------------

    def pi(self, theta: Params, s: Any, z: Any) -> tuple[Any, Any]:
        """The action a = tanh(μ_θ(s) + σ_θ(s) z) [B, m] and log π_θ(a | s) [B], for standard normal z [B, m]."""
        mu, log_sigma = self.split(self.actor.apply(theta, s))
        u = mu + jnp.exp(log_sigma) * z
        gaussian = -0.5 * jnp.square(z) - log_sigma - 0.5 * math.log(2 * math.pi)
        slope = 2 * (math.log(2) - u - jax.nn.softplus(-2 * u))  # log(1 - tanh(u)²)
        return jnp.tanh(u), jnp.sum(gaussian - slope, axis=-1)

    def target(self, theta: Params, phis: Sequence[Params], alpha: Any, batch: Transition, z: Any) -> Any:
        """The target y = R + Γ (min_i Q_i'(s', a') - α log π(a' | s')) [B]."""
        a, log_pi = self.pi(theta, batch.next_observation, z)
        q = self.critics.together(phis, batch.next_observation, a)
        return batch.reward + batch.discount * (q - alpha * log_pi)

    def actor_loss(
        self, theta: Params, phis: Sequence[Params], alpha: Any, batch: Transition, z: Any
    ) -> tuple[Any, Any]:
        """The loss mean (α log π(ã | s) - min_i Q_i(s, ã)), and mean log π."""
        a, log_pi = self.pi(theta, batch.observation, z)
        return jnp.mean(alpha * log_pi - self.critics.together(phis, batch.observation, a)), jnp.mean(log_pi)

    def temperature_loss(self, log_alpha: Any, log_pi: Any) -> Any:
        """The loss - α (mean log π + H)."""
        return -jnp.exp(log_alpha) * (log_pi + self.target_entropy)

    # -- one update ------------------------------------------------------------------------------------

    def update(
        self, state: State, batch: Transition, key: jax.Array, step: Any, *, actor: bool, targets: bool
    ) -> tuple[dict[str, Any], Metrics]:
        """Critics, then (if due) actor and temperature, then (if due) targets."""
        del step
        z = normal(key, (2, *batch.action.shape))
        alpha = jnp.exp(state["log_alpha"])
        y = self.target(state["actor"], state["critics_target"], alpha, batch, z[0])
        (loss, q), gradient = jax.value_and_grad(self.critics.loss, has_aux=True)(state["critics"], batch, y)
        changes = descend("critics", state, gradient, self.optimisers["critics"])
        metrics = {"critic_loss": loss, "q": q, "temperature": alpha}
        if actor:
            differentiate = jax.value_and_grad(self.actor_loss, has_aux=True)
            (loss, log_pi), gradient = differentiate(state["actor"], changes["critics"], alpha, batch, z[1])
            slope = jax.grad(self.temperature_loss)(state["log_alpha"], log_pi)
            changes |= descend("actor", state, gradient, self.optimisers["actor"])
            changes |= descend("log_alpha", state, slope, self.optimisers["log_alpha"])
            metrics |= {"actor_loss": loss, "entropy": -log_pi}
        if targets:
            changes |= follow(("critics",), {**state, **changes}, self.config.target_rate)
        return changes, metrics
