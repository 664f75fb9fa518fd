"""Transition → Transition under a mirror or an exchange of limbs: observations and action become their images.

For every row one element of a finite group is drawn, all alike, the identity among them: with a share of 1 every image
of a transition is as likely as the transition itself. Reward and discount stay, because a tested element changes
neither.

Each element is applied to all rows and kept where it was drawn. For the few elements that robots have this is quicker
inside a jitted update than a different permutation for each row.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import jax
import jax.numpy as jnp

from euda.body.entry_map import Acting, EntryMap
from euda.body.layout import Layout
from euda.replay.buffer import Transition


def relabel(layout: Layout, elements: Sequence[Acting], key: jax.Array, batch: Transition) -> Transition:
    """A random element of the group of the identity and `elements` for every row."""
    size = batch.observation.shape[0]
    drawn = jax.random.randint(key, (size,), 0, len(elements) + 1)[:, None]
    s, a, following = batch.observation, batch.action, batch.next_observation
    for number, element in enumerate(elements, start=1):
        is_drawn, on_s, on_a = drawn == number, element.on_observations(layout), element.on_actions()
        s = jnp.where(is_drawn, _image(on_s, batch.observation), s)
        a = jnp.where(is_drawn, _image(on_a, batch.action), a)
        following = jnp.where(is_drawn, _image(on_s, batch.next_observation), following)
    return batch._replace(observation=layout.canonical(s), action=a, next_observation=layout.canonical(following))


def _image(entries: EntryMap, x: Any) -> Any:
    return entries(jnp.asarray(x))
