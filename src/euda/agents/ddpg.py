"""DDPG with n-step returns, target policy smoothing and delayed actor updates: the paper's base agent.

With actor π_θ, critic Q_φ and their slowly following targets π_θ' and Q_φ', for a batch (s, a, R, Γ, s'):

    ã = clip(π_θ'(s') + ε, -1, 1),   ε = clip(σ(t) z, -c, c),   z ~ N(0, I)
    y = R + Γ Q_φ'(s', ã)
    critic: mean (Q_φ(s, a) - y)²            actor: - mean Q_φ(s, π_θ(s))

σ(t) is the deviation of the exploration noise at the environment's step t. Both networks have targets, as in
the code the paper builds on. The actor learns from the critic that has just been updated, and the targets
follow after both. With several critics y takes the lowest of their targets (or what `pessimism` says) and the actor
follows the first, as TD3 does.
"""

from __future__ import annotations

import dataclasses
import functools
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
from euda.agents.settings import DDPGConfig
from euda.replay.buffer import Transition
from euda.replay.random_draws import normal


@dataclasses.dataclass(frozen=True)
class DDPG:
    """The learning rule of DDPG; `DDPG.make` builds it from sizes."""

    features: int
    actions: int
    actor: Network
    critics: Critics
    config: DDPGConfig
    settings: ClassVar[type[DDPGConfig]] = DDPGConfig

    @classmethod
    def make(
        cls, features: int, actions: int, config: DDPGConfig | None = None, networks: Networks | None = None
    ) -> Self:
        """The rule for observations [features] and actions [actions], perceptrons unless `networks` says otherwise."""
        config, networks = config or cls.settings(), networks or mlp_networks()
        critics = Critics.make(features, actions, config, networks)
        return cls(features, actions, networks.actor(features, actions), critics, config)

    @functools.cached_property
    def optimisers(self) -> dict[str, optax.GradientTransformation]:
        """By the name of what they change."""
        rates = {"actor": self.actor.rates(), "critics": self.critics.rates()}
        return {name: make_optimiser(self.config, factors) for name, factors in rates.items()}

    def initialise(self, key: jax.Array) -> dict[str, Any]:
        """Parameters, targets equal to them, and optimisers that have seen nothing."""
        first, *rest = jax.random.split(key, 1 + self.critics.count)
        state: dict[str, Any] = {}
        for name, params in (("actor", self.actor.initialise(first)), ("critics", self.critics.initialise(rest))):
            state |= {**begin(name, params, self.optimisers[name]), f"{name}_target": params}
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

    def sample(self, outputs: Floats, z: Floats, step: int) -> Floats:
        """The action clip(π(s) + σ(t) z, -1, 1)."""
        action = np.float32(self.deviation(step)) * z + np.tanh(outputs)
        return np.minimum(np.maximum(action, -1.0, out=action), 1.0, out=action)

    # -- losses ----------------------------------------------------------------------------------------

    def pi(self, theta: Params, s: Any) -> Any:
        """π_θ(s) [B, m]."""
        return self.mode(self.actor.apply(theta, s))

    def smoothing(self, key: jax.Array, shape: tuple[int, ...], step: Any) -> Any:
        """ε: the clipped noise of the target policy."""
        clip = self.config.smoothing_clip
        return jnp.clip(self.deviation(step) * normal(key, shape), -clip, clip)

    def target(self, theta: Params, phis: Sequence[Params], batch: Transition, epsilon: Any) -> Any:
        """The target y = R + Γ min_i Q_i'(s', clip(π_θ'(s') + ε, -1, 1)) [B]."""
        a = jnp.clip(self.pi(theta, batch.next_observation) + epsilon, -1.0, 1.0)
        return batch.reward + batch.discount * self.critics.together(phis, batch.next_observation, a)

    def actor_loss(self, theta: Params, phis: Sequence[Params], batch: Transition) -> Any:
        """The loss - mean Q_1(s, π_θ(s))."""
        return -jnp.mean(self.critics.q(phis[0], batch.observation, self.pi(theta, batch.observation)))

    # -- one update ------------------------------------------------------------------------------------

    def update(
        self, state: State, batch: Transition, key: jax.Array, step: Any, *, actor: bool, targets: bool
    ) -> tuple[dict[str, Any], Metrics]:
        """Critics, then (if due) actor, then (if due) targets."""
        epsilon = self.smoothing(key, batch.action.shape, step)
        y = self.target(state["actor_target"], state["critics_target"], batch, epsilon)
        (loss, q), gradient = jax.value_and_grad(self.critics.loss, has_aux=True)(state["critics"], batch, y)
        changes = descend("critics", state, gradient, self.optimisers["critics"])
        metrics = {"critic_loss": loss, "q": q}
        if actor:
            differentiate = jax.value_and_grad(self.actor_loss)
            metrics["actor_loss"], gradient = differentiate(state["actor"], changes["critics"], batch)
            changes |= descend("actor", state, gradient, self.optimisers["actor"])
        if targets:
            changes |= follow(("actor", "critics"), {**state, **changes}, self.config.target_rate)
        return changes, metrics
