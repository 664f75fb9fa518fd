"""Transition → Transition: what is done to a sampled batch before the agent learns from it.

An augmentation is a pure function `(key, batch) -> batch` on JAX arrays, applied inside the jitted update;
agents never know of it. Exactly `round(share * B)` transitions are changed, namely the first ones: the rows
of a batch are drawn independently, so the first k are as random a subset as any, and cost nothing.

- `rotate` turns observation and next observation of a transition by one yaw, uniform in [0, 2π).
  Action, reward and discount stay, because a yaw changes none of them. `Layout.rotate` does the turning.
- `gaussian` is s + z with z ~ N(0, I), `scale` is s ⊙ z with z ~ U[0.5, 1.0] for each entry. The paper writes
  only this. In its authors' released agents (walker's for `gaussian`, quadruped's for `scale`) an observation
  and its next observation get the same z, so that is the default (`same_noise`); `same_noise=False` draws two.
  Everything else follows the paper's text, not that code (in `gaussian` it perturbs a random half of the batch,
  in `scale` it draws one factor per transition from [0.5, 1.5]); `share` and `high` reach the first and part of
  the second.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp

from euda.body.layout import Layout
from euda.config import AUGMENTATIONS, AugmentationConfig, named
from euda.errors import EudaError
from euda.replay.buffer import Transition
from euda.replay.draws import normal, uniform

Augmentation = Callable[[jax.Array, Transition], Transition]
Change = Callable[[jax.Array, Any, Any], tuple[Any, Any]]
"""(key, observations [k, dim], next observations [k, dim]) → the two, changed."""


def make_augmentation(config: AugmentationConfig, layout: Layout | None = None) -> Augmentation:
    """The augmentation that `config` names; `rotate` needs the layout of the observations."""
    if config.share == 0:
        return unchanged
    change: Change | None = named(AUGMENTATIONS[config.name])(config, layout)
    return unchanged if change is None else _on_share(config.share, change)


def unchanged(key: jax.Array, batch: Transition) -> Transition:
    """No augmentation."""
    del key
    return batch


# -- a maker for each row of AUGMENTATIONS: (config, layout) → the change, or None where there is none -------


def nothing(config: AugmentationConfig, layout: Layout | None) -> None:
    """No change."""
    del config, layout


def rotation(config: AugmentationConfig, layout: Layout | None) -> Change | None:
    """Turning by a layout; None where no entry of it turns, as with the joint features of planar robots."""
    del config
    if layout is None:
        raise EudaError("the augmentation 'rotate' needs the layout of the observations")
    if not layout.turns:
        return None

    def turn(key: jax.Array, observation: Any, next_observation: Any) -> tuple[Any, Any]:
        yaw = uniform(key, observation.shape[:1], 0.0, 2 * math.pi)
        return layout.rotate(observation, yaw), layout.rotate(next_observation, yaw)

    return turn


def gaussian(config: AugmentationConfig, layout: Layout | None) -> Change:
    """Adding noise to every entry."""
    del layout
    stddev = config.stddev
    return _noise(config.same_noise, lambda key, s: s + stddev * normal(key, s.shape))


def scaling(config: AugmentationConfig, layout: Layout | None) -> Change:
    """Multiplying every entry by a factor of its own."""
    del layout
    low, high = config.low, config.high
    return _noise(config.same_noise, lambda key, s: s * uniform(key, s.shape, low, high))


def _noise(same: bool, perturb: Callable[[jax.Array, Any], Any]) -> Change:
    def change(key: jax.Array, observation: Any, next_observation: Any) -> tuple[Any, Any]:
        keys = (key, key) if same else jax.random.split(key)
        return perturb(keys[0], observation), perturb(keys[1], next_observation)

    return change


def _on_share(share: float, change: Change) -> Augmentation:
    """`change` for the first round(share * B) transitions."""

    def augment(key: jax.Array, batch: Transition) -> Transition:
        size = batch.observation.shape[0]
        count = round(share * size)
        if count == 0:
            return batch
        pair = change(key, batch.observation[:count], batch.next_observation[:count])
        if count < size:
            rest = batch.observation[count:], batch.next_observation[count:]
            pair = tuple(jnp.concatenate(parts) for parts in zip(pair, rest, strict=True))
        return batch._replace(observation=pair[0], next_observation=pair[1])

    return augment
