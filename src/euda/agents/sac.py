"""SAC: two critics, a Gaussian policy squashed by tanh, and a learned temperature.

With policy a = tanh(u), u ~ N(μ_θ(s), σ_θ(s)²), critics Q_1, Q_2 with targets Q_1', Q_2', temperature α:

    y = R + Γ (min_i Q_i'(s', a') - α log π_θ(a' | s')),   a' ~ π_θ(s')
    critics: Σ_i mean (Q_i(s, a) - y)²
    actor:   mean (α log π_θ(ã | s) - min_i Q_i(s, ã)),   ã ~ π_θ(s)
    α:       - mean α (log π_θ(ã | s) + H),   H = minus the number of actions

Over an n-step window only the last state's entropy enters the target, as in the code the paper builds on.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from euda.agents.agent import Floats, Metrics, State
from euda.agents.ddpg import descend, follow
from euda.agents.networks import Network, Networks, Params, mlp_networks, ravel, unravel
from euda.agents.optimiser import Adam, adam
from euda.config import SACConfig
from euda.replay.buffer import Transition
from euda.replay.draws import normal

_CRITICS = ("critic_1", "critic_2")


@dataclasses.dataclass(frozen=True)
class SAC:
    """The learning rule of SAC; `SAC.make` builds it from sizes."""

    features: int
    actions: int
    actor: Network
    critic: Network
    config: SACConfig

    @staticmethod
    def make(features: int, actions: int, config: SACConfig | None = None, networks: Networks | None = None) -> SAC:
        """SAC for observations [features] and actions [actions], perceptrons unless `networks` says otherwise."""
        networks = networks or mlp_networks()
        actor, critic = networks.actor(features, 2 * actions), networks.critic(features, actions)
        return SAC(features, actions, actor, critic, config or SACConfig())

    @property
    def target_entropy(self) -> float:
        """H in nats."""
        return -float(self.actions) if self.config.target_entropy is None else self.config.target_entropy

    def initialise(self, key: jax.Array) -> dict[str, Any]:
        """Parameters, targets of the critics, moments, and the logarithm of the temperature."""
        state: dict[str, Any] = {}
        for name, of in zip(("actor", *_CRITICS), jax.random.split(key, 3), strict=True):
            network = self.actor if name == "actor" else self.critic
            flat = np.asarray(ravel(network, network.initialise(of)), np.float32)
            state |= {name: flat, f"{name}_mean": np.zeros_like(flat), f"{name}_square": np.zeros_like(flat)}
        state |= {f"{name}_target": state[name].copy() for name in _CRITICS}
        state |= {name: np.zeros((), np.float32) for name in ("log_alpha_mean", "log_alpha_square")}
        return {**state, "log_alpha": np.float32(math.log(self.config.temperature))}

    # -- acting ----------------------------------------------------------------------------------------

    def split(self, outputs: Any) -> tuple[Any, Any]:
        """The pair μ and log σ [..., m] of the actor's outputs; log σ is squashed between its two limits."""
        xp = np if isinstance(outputs, np.ndarray) else jnp
        low, high = self.config.log_stddev_low, self.config.log_stddev_high
        mu, raw = outputs[..., : self.actions], outputs[..., self.actions :]
        return mu, low + 0.5 * (high - low) * (xp.tanh(raw) + 1)

    def mode(self, outputs: Any) -> Any:
        """The action tanh(μ)."""
        mu = outputs[..., : self.actions]
        return np.tanh(mu) if isinstance(mu, np.ndarray) else jnp.tanh(mu)

    def sample(self, outputs: Floats, generator: np.random.Generator, step: int) -> Floats:
        """The action tanh(μ + σ z)."""
        del step
        mu, log_sigma = self.split(outputs)
        noise = generator.standard_normal(mu.shape, np.float32)
        return np.tanh(mu + np.exp(log_sigma) * noise)

    # -- losses ----------------------------------------------------------------------------------------

    def pi(self, theta: Params, s: Any, z: Any) -> tuple[Any, Any]:
        """The action a = tanh(μ_θ(s) + σ_θ(s) z) [B, m] and log π_θ(a | s) [B], for standard normal z [B, m]."""
        mu, log_sigma = self.split(self.actor.apply(theta, s))
        u = mu + jnp.exp(log_sigma) * z
        gaussian = -0.5 * jnp.square(z) - log_sigma - 0.5 * math.log(2 * math.pi)
        slope = 2 * (math.log(2) - u - jax.nn.softplus(-2 * u))  # log(1 - tanh(u)²)
        return jnp.tanh(u), jnp.sum(gaussian - slope, axis=-1)

    def q(self, phi: Params, s: Any, a: Any) -> Any:
        """Q_φ(s, a) [B]."""
        return self.critic.apply(phi, s, a)[:, 0]

    def target(self, theta: Params, phis: Sequence[Params], alpha: Any, batch: Transition, z: Any) -> Any:
        """The target y = R + Γ (min_i Q_i'(s', a') - α log π(a' | s')) [B]."""
        a, log_pi = self.pi(theta, batch.next_observation, z)
        q = jnp.minimum(*(self.q(phi, batch.next_observation, a) for phi in phis))
        return batch.reward + batch.discount * (q - alpha * log_pi)

    def critic_loss(self, phis: Sequence[Params], batch: Transition, y: Any) -> tuple[Any, Any]:
        """The loss Σ_i mean (Q_i(s, a) - y)², and mean Q_1."""
        qs = [self.q(phi, batch.observation, batch.action) for phi in phis]
        return sum(jnp.mean(jnp.square(q - y)) for q in qs), jnp.mean(qs[0])

    def actor_loss(
        self, theta: Params, phis: Sequence[Params], alpha: Any, batch: Transition, z: Any
    ) -> tuple[Any, Any]:
        """The loss mean (α log π(ã | s) - min_i Q_i(s, ã)), and mean log π."""
        a, log_pi = self.pi(theta, batch.observation, z)
        q = jnp.minimum(*(self.q(phi, batch.observation, a) for phi in phis))
        return jnp.mean(alpha * log_pi - q), jnp.mean(log_pi)

    def temperature_loss(self, log_alpha: Any, log_pi: Any) -> Any:
        """The loss - α (mean log π + H)."""
        return -jnp.exp(log_alpha) * (log_pi + self.target_entropy)

    # -- one update ------------------------------------------------------------------------------------

    def update(
        self, state: State, batch: Transition, key: jax.Array, step: Any, count: Any, *, actor: bool, targets: bool
    ) -> tuple[dict[str, Any], Metrics]:
        """Critics, then (if due) actor and temperature, then (if due) targets."""
        del step
        z = normal(key, (2, *batch.action.shape))
        theta, alpha = unravel(self.actor, state["actor"]), jnp.exp(state["log_alpha"])
        y = self.target(theta, self._phis(state, "_target"), alpha, batch, z[0])
        (loss, q), gradients = jax.value_and_grad(self.critic_loss, has_aux=True)(self._phis(state), batch, y)
        changes: dict[str, Any] = {}
        for name, gradient in zip(_CRITICS, gradients, strict=True):
            changes |= descend(self.critic, name, state, gradient, count + 1, self.config.learning_rate)
        metrics = {"critic_loss": loss, "q": q, "temperature": alpha}
        if actor:
            more, scalars = self._update_actor(
                state, self._phis(changes), batch, z[1], count // self.config.actor_every + 1
            )
            changes, metrics = changes | more, metrics | scalars
        if targets:
            changes |= follow(_CRITICS, {**state, **changes}, self.config.target_rate)
        return changes, metrics

    def _update_actor(
        self, state: State, phis: Sequence[Params], batch: Transition, z: Any, times: Any
    ) -> tuple[dict[str, Any], Metrics]:
        """Actor and temperature after their step number `times`."""
        log_alpha = state["log_alpha"]
        differentiate = jax.value_and_grad(self.actor_loss, has_aux=True)
        (loss, log_pi), gradient = differentiate(
            unravel(self.actor, state["actor"]), phis, jnp.exp(log_alpha), batch, z
        )
        changes = descend(self.actor, "actor", state, gradient, times, self.config.learning_rate)
        moments = Adam(state["log_alpha_mean"], state["log_alpha_square"])
        slope = jax.grad(self.temperature_loss)(log_alpha, log_pi)
        changes["log_alpha"], moments = adam(log_alpha, slope, moments, times, self.config.temperature_rate)
        changes |= {"log_alpha_mean": moments.mean, "log_alpha_square": moments.square}
        return changes, {"actor_loss": loss, "entropy": -log_pi}

    def _phis(self, state: State, suffix: str = "") -> Sequence[Params]:
        """The named arrays of both critics, or of their targets."""
        return [unravel(self.critic, state[f"{name}{suffix}"]) for name in _CRITICS]
