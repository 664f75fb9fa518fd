"""Gradient → parameters: Adam and what can be added to it, by Optax; and the soft update of target networks."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import jax
import optax

from euda.agents.settings import LearningConfig


def make_optimiser(config: LearningConfig, rates: Any = None) -> optax.GradientTransformation:
    """Adam with the paper's settings; `rates` is a tree of factors of the learning rate, one for each parameter."""
    parts = [optax.scale_by_adam()]
    if config.gradient_clip:
        parts.insert(0, optax.clip_by_global_norm(config.gradient_clip))
    if config.weight_decay:
        parts.append(optax.add_decayed_weights(config.weight_decay))
    if rates is not None:
        parts.append(optax.stateless(lambda updates, _: jax.tree.map(lambda u, rate: u * rate, updates, rates)))
    return optax.chain(*parts, optax.scale_by_learning_rate(config.learning_rate))


def begin(name: str, params: Any, optimiser: optax.GradientTransformation) -> dict[str, Any]:
    """Parameters `name` and the state of their optimiser before the first step."""
    return {name: params, f"{name}_optimiser": optimiser.init(params)}


def descend(
    name: str, state: Mapping[str, Any], gradient: Any, optimiser: optax.GradientTransformation
) -> dict[str, Any]:
    """The same after one step."""
    updates, memory = optimiser.update(gradient, state[f"{name}_optimiser"], state[name])
    return {name: optax.apply_updates(state[name], updates), f"{name}_optimiser": memory}


def follow(names: Iterable[str], state: Mapping[str, Any], tau: float) -> dict[str, Any]:
    """The targets θ' ← θ' + τ (θ - θ') of the parameters `names`."""
    targets = ((f"{name}_target", name) for name in names)
    return {
        target: jax.tree.map(lambda slow, theta: slow + tau * (theta - slow), state[target], state[name])
        for target, name in targets
    }
