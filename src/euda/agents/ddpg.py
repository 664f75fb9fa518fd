"""DDPG with n-step returns, target policy smoothing and delayed actor updates: the paper's base agent.

With actor π_θ, critic Q_φ and their slowly following targets π_θ' and Q_φ', for a batch (s, a, R, Γ, s'):

    ã = clip(π_θ'(s') + ε, -1, 1),   ε = clip(σ(t) z, -c, c),   z ~ N(0, I)
    y = R + Γ Q_φ'(s', ã)
    critic: mean (Q_φ(s, a) - y)²            actor: - mean Q_φ(s, π_θ(s))

σ(t) is the deviation of the exploration noise at the environment's step t. Both networks have targets, as in
the code the paper builds on. The actor learns from the critic that has just been updated, and the targets
follow after both.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from euda.agents.agent import Floats, Metrics, State
from euda.agents.networks import Network, Networks, Params, mlp_networks, ravel, unravel
from euda.agents.optimiser import Adam, adam, soft_update
from euda.config import DDPGConfig
from euda.replay.buffer import Transition
from euda.replay.draws import normal


@dataclasses.dataclass(frozen=True)
class DDPG:
    """The learning rule of DDPG; `DDPG.make` builds it from sizes."""

    features: int
    actions: int
    actor: Network
    critic: Network
    config: DDPGConfig

    @staticmethod
    def make(features: int, actions: int, config: DDPGConfig | None = None, networks: Networks | None = None) -> DDPG:
        """DDPG for observations [features] and actions [actions], perceptrons unless `networks` says otherwise."""
        networks = networks or mlp_networks()
        actor, critic = networks.actor(features, actions), networks.critic(features, actions)
        return DDPG(features, actions, actor, critic, config or DDPGConfig())

    def initialise(self, key: jax.Array) -> dict[str, Any]:
        """Parameters, targets equal to them, and moments of zero, as flat vectors."""
        keys = jax.random.split(key)
        state: dict[str, Any] = {}
        for name, network, of in (("actor", self.actor, keys[0]), ("critic", self.critic, keys[1])):
            flat = np.asarray(ravel(network, network.initialise(of)), np.float32)
            state |= {name: flat, f"{name}_target": flat.copy()}
            state |= {f"{name}_mean": np.zeros_like(flat), f"{name}_square": np.zeros_like(flat)}
        return state

    # -- acting ----------------------------------------------------------------------------------------

    def deviation(self, step: Any) -> Any:
        """σ(t): from stddev_start to stddev_end, linear over stddev_steps environment steps."""
        config = self.config
        smaller = min if isinstance(step, int) else jnp.minimum
        done = smaller(step / config.stddev_steps, 1.0)
        return config.stddev_start + (config.stddev_end - config.stddev_start) * done

    def mode(self, outputs: Any) -> Any:
        """π(s) = tanh of the actor's outputs."""
        return np.tanh(outputs) if isinstance(outputs, np.ndarray) else jnp.tanh(outputs)

    def sample(self, outputs: Floats, generator: np.random.Generator, step: int) -> Floats:
        """The action clip(π(s) + σ(t) z, -1, 1)."""
        action = generator.standard_normal(outputs.shape, np.float32)
        action *= np.float32(self.deviation(step))
        action += np.tanh(outputs)
        return np.minimum(np.maximum(action, -1.0, out=action), 1.0, out=action)

    # -- losses ----------------------------------------------------------------------------------------

    def pi(self, theta: Params, s: Any) -> Any:
        """π_θ(s) [B, m]."""
        return self.mode(self.actor.apply(theta, s))

    def q(self, phi: Params, s: Any, a: Any) -> Any:
        """Q_φ(s, a) [B]."""
        return self.critic.apply(phi, s, a)[:, 0]

    def smoothing(self, key: jax.Array, shape: tuple[int, ...], step: Any) -> Any:
        """ε: the clipped noise of the target policy."""
        clip = self.config.smoothing_clip
        return jnp.clip(self.deviation(step) * normal(key, shape), -clip, clip)

    def target(self, theta: Params, phi: Params, batch: Transition, epsilon: Any) -> Any:
        """The target y = R + Γ Q_φ'(s', clip(π_θ'(s') + ε, -1, 1)) [B]."""
        a = jnp.clip(self.pi(theta, batch.next_observation) + epsilon, -1.0, 1.0)
        return batch.reward + batch.discount * self.q(phi, batch.next_observation, a)

    def critic_loss(self, phi: Params, batch: Transition, y: Any) -> tuple[Any, Any]:
        """The loss mean (Q_φ(s, a) - y)², and mean Q."""
        q = self.q(phi, batch.observation, batch.action)
        return jnp.mean(jnp.square(q - y)), jnp.mean(q)

    def actor_loss(self, theta: Params, phi: Params, batch: Transition) -> Any:
        """The loss - mean Q_φ(s, π_θ(s))."""
        return -jnp.mean(self.q(phi, batch.observation, self.pi(theta, batch.observation)))

    # -- one update ------------------------------------------------------------------------------------

    def update(
        self, state: State, batch: Transition, key: jax.Array, step: Any, count: Any, *, actor: bool, targets: bool
    ) -> tuple[dict[str, Any], Metrics]:
        """Critic, then (if due) actor, then (if due) targets."""
        y = self.target(
            unravel(self.actor, state["actor_target"]),
            unravel(self.critic, state["critic_target"]),
            batch,
            self.smoothing(key, batch.action.shape, step),
        )
        phi = unravel(self.critic, state["critic"])
        (loss, q), gradient = jax.value_and_grad(self.critic_loss, has_aux=True)(phi, batch, y)
        changes = descend(self.critic, "critic", state, gradient, count + 1, self.config.learning_rate)
        metrics = {"critic_loss": loss, "q": q}
        if actor:
            theta, phi = unravel(self.actor, state["actor"]), unravel(self.critic, changes["critic"])
            metrics["actor_loss"], gradient = jax.value_and_grad(self.actor_loss)(theta, phi, batch)
            times = count // self.config.actor_every + 1
            changes |= descend(self.actor, "actor", state, gradient, times, self.config.learning_rate)
        if targets:
            changes |= follow(("actor", "critic"), {**state, **changes}, self.config.target_rate)
        return changes, metrics


def descend(network: Network, name: str, state: State, gradient: Params, count: Any, rate: float) -> dict[str, Any]:
    """Parameters and moments of the network `name` after the `count`-th step of Adam."""
    factors = network.rates()
    rates = rate if factors is None else rate * factors
    moments = Adam(state[f"{name}_mean"], state[f"{name}_square"])
    flat, moments = adam(state[name], ravel(network, gradient), moments, count, rates)
    return {name: flat, f"{name}_mean": moments.mean, f"{name}_square": moments.square}


def follow(names: tuple[str, ...], state: State, tau: float) -> dict[str, Any]:
    """The targets of the networks `names`, moved towards them."""
    return {f"{name}_target": soft_update(state[f"{name}_target"], state[name], tau) for name in names}
