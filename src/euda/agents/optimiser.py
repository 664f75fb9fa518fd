"""Adam and the soft target update, each one fused pass over flat parameter vectors."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import jax.numpy as jnp

BETA_1, BETA_2, EPSILON = 0.9, 0.999, 1e-8


class Adam(NamedTuple):
    """Running means of the gradient and of its square, each of the shape of the parameters."""

    mean: Any
    square: Any


def adam(theta: Any, gradient: Any, state: Adam, count: Any, rate: Any) -> tuple[Any, Adam]:
    """One step of Adam; `count` is 1 at the first step, `rate` a number or one factor per entry."""
    mean = BETA_1 * state.mean + (1 - BETA_1) * gradient
    square = BETA_2 * state.square + (1 - BETA_2) * gradient * gradient
    mean_bias = -jnp.expm1(count * math.log(BETA_1))  # 1 - beta_1^count
    square_bias = -jnp.expm1(count * math.log(BETA_2))
    scale = rate / mean_bias
    return theta - scale * mean / (jnp.sqrt(square / square_bias) + EPSILON), Adam(mean, square)


def soft_update(target: Any, theta: Any, tau: float) -> Any:
    """θ' ← θ' + τ (θ - θ')."""
    return target + tau * (theta - target)
