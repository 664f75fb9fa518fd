"""Transition → Transition: what is done to a sampled batch before the agent learns from it.

An augmentation is a pure function `(key, batch) -> batch` on JAX arrays, applied inside the jitted update;
agents never know of it. It may change anything in a transition, actions included. Exactly `round(share * B)`
transitions are changed, namely the first ones: the rows of a batch are drawn independently, so the first k are as
random a subset as any, and cost nothing.

- `rotate` turns observation and next observation of a transition by one yaw, uniform in [-π, π).
  Action, reward and discount stay, because a yaw changes none of them. `Layout.rotate` does the turning.
  Before it, or instead of it, an element of the robot's finite group may be drawn for each transition, see
  `relabelling`: mirrors and limbs that change places act on the action too. Of a marked batch only transitions with
  a mark are changed.
- `gaussian` is s + z with z ~ N(0, I), `scale` is s ⊙ z with z ~ U[0.5, 1.0] for each entry. The paper writes
  only this. In its authors' released agents (walker's for `gaussian`, quadruped's for `scale`) an observation
  and its next observation get the same z, so that is the default (`same_noise`); `same_noise=False` draws two.
  Everything else follows the paper's text, not that code (in `gaussian` it perturbs a random half of the batch,
  in `scale` it draws one factor per transition from [0.5, 1.5]); `share` and `high` reach the first and part of
  the second.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp

from euda import lookup
from euda.body.entry_map import Acting
from euda.body.layout import Layout
from euda.errors import EudaError
from euda.lookup import Maker, loaded
from euda.replay.buffer import Marked, Transition
from euda.replay.random_draws import normal, uniform
from euda.replay.relabelling import relabel
from euda.replay.settings import GROUPS, YAW, AugmentationConfig, GaussianConfig, ScaleConfig
from euda.schema import Settings

Augmentation = Callable[[jax.Array, Any], Transition]
"""(key, batch) → batch; the batch is a Transition, or Marked if the augmentation was made for that."""


def make_augmentation(
    config: AugmentationConfig, layout: Layout | None = None, group: str = YAW, elements: Sequence[Acting] = (),
    marked: bool = False,
) -> Augmentation:  # fmt: skip
    """The augmentation that `config` names; `rotate` needs the layout of the observations.

    `group` is a row of GROUPS; with one that relabels, `elements` are those of the finite group to draw from, beside
    the identity. `marked` is for batches of marked transitions, of which only those with a mark are changed.
    """
    row, chosen = config.row, lookup.find("group", GROUPS, group)
    if config.share == 0 or row.make is None:
        return without_marks if marked else unchanged
    kept = tuple(elements) if row.uses_symmetry and chosen.relabels else ()
    make = row.make if chosen.turns or not row.uses_symmetry else None
    return _made(make, config.settings, layout, kept, config.share, marked)


@functools.lru_cache(maxsize=32)
def _made(make: Maker | None, settings: Any, layout: Layout | None, elements: tuple[Acting, ...],
          share: float, marked: bool) -> Augmentation:  # fmt: skip
    """The same function for the same settings, so that a second run in a process finds its update compiled."""
    changes: list[Augmentation] = [functools.partial(relabel, _needed(layout), elements)] if elements else []
    if make is not None and (change := loaded(make)(settings, layout)) is not None:
        changes.append(change)
    augment = _on_share(share, _in_turn(changes)) if changes else unchanged
    return _where_marked(augment) if marked else augment


def _in_turn(changes: Sequence[Augmentation]) -> Augmentation:
    """One change after the other, each with random numbers of its own."""
    if len(changes) == 1:
        return changes[0]

    def change(key: jax.Array, batch: Transition) -> Transition:
        for own, one in zip(jax.random.split(key, len(changes)), changes, strict=True):
            batch = one(own, batch)
        return batch

    return change


def unchanged(key: jax.Array, batch: Transition) -> Transition:
    """No augmentation."""
    del key
    return batch


def without_marks(key: jax.Array, batch: Marked) -> Transition:
    """No augmentation of a marked batch."""
    del key
    return batch.transition


# -- a maker for each row of AUGMENTATIONS: (settings, layout) → what is done to every row, or None ----------


def rotation(config: Settings, layout: Layout | None) -> Augmentation | None:
    """Turning by a layout; None where no entry of it turns, as with the joint features of planar robots."""
    del config
    layout = _needed(layout)
    if not layout.turns:
        return None

    def turn(key: jax.Array, batch: Transition) -> Transition:
        yaw = uniform(key, batch.observation.shape[:1], -math.pi, math.pi)
        s, following = layout.rotate(batch.observation, yaw), layout.rotate(batch.next_observation, yaw)
        return batch._replace(observation=s, next_observation=following)

    return turn


def _needed(layout: Layout | None) -> Layout:
    if layout is None:
        raise EudaError("the augmentation 'rotate' needs the layout of the observations")
    return layout


def gaussian(config: GaussianConfig, layout: Layout | None) -> Augmentation:
    """Adding noise to every entry."""
    del layout
    stddev = config.stddev
    return _noise(config.same_noise, lambda key, s: s + stddev * normal(key, s.shape))


def scaling(config: ScaleConfig, layout: Layout | None) -> Augmentation:
    """Multiplying every entry by a factor of its own."""
    del layout
    low, high = config.low, config.high
    return _noise(config.same_noise, lambda key, s: s * uniform(key, s.shape, low, high))


def _noise(same: bool, perturb: Callable[[jax.Array, Any], Any]) -> Augmentation:
    def change(key: jax.Array, batch: Transition) -> Transition:
        first, second = (key, key) if same else jax.random.split(key)
        s, following = perturb(first, batch.observation), perturb(second, batch.next_observation)
        return batch._replace(observation=s, next_observation=following)

    return change


def _on_share(share: float, change: Augmentation) -> Augmentation:
    """`change` for the first round(share * B) transitions."""

    def augment(key: jax.Array, batch: Transition) -> Transition:
        size = batch.observation.shape[0]
        count = round(share * size)
        if count in (0, size):
            return change(key, batch) if count else batch
        rows = Transition(*(array[:count] for array in batch))
        # What the change leaves alone is not put together again.
        parts = zip(batch, rows, change(key, rows), strict=True)
        return Transition(*(old if new is row else jnp.concatenate([new, old[count:]]) for old, row, new in parts))

    return augment


def _where_marked(change: Augmentation) -> Augmentation:
    """`change` for transitions with a mark; the others stay as they are, whether or not the share includes them."""

    def augment(key: jax.Array, batch: Marked) -> Transition:
        before = batch.transition
        parts = zip(before, change(key, before), strict=True)
        return Transition(*(old if new is old else jnp.where(_along(batch.mark, old), new, old) for old, new in parts))

    return augment


def _along(mark: Any, array: Any) -> Any:
    """Marks [B] with as many axes as an array [B, ...] has."""
    return jnp.reshape(mark, (-1, *(1 for _ in array.shape[1:])))
