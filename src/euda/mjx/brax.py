"""Brax's replay with turned and mirrored transitions: a transform of its batches, and its queue with the transform in.

`transform(layout, share)` is (key, batch) → batch for `brax.training.types.Transition`, jitted or not. Brax's agents
have no place for one, so `with rotating(layout, share): sac.train(…)` puts it into the queue that they make themselves.
"""

# pyright: reportMissingImports=false
# Brax is an extra: it is not in the lock.
from __future__ import annotations

import contextlib
import functools
import importlib.metadata
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from euda.body.entry_map import Acting
from euda.body.layout import Layout
from euda.errors import EudaError
from euda.mjx.versions import require
from euda.replay.augmentation import make_augmentation
from euda.replay.batches import WHERE, spread
from euda.replay.buffer import Transition
from euda.replay.settings import AugmentationConfig

require("brax")
from brax.training import replay_buffers  # noqa: E402 - after the version was looked at

_TOO_NEW = (0, 10)
"""The first JAX without functions that Brax's agents call."""
Batch = Any
"""A Transition of Brax's: observation [B, dim], action, reward, discount, next_observation, extras."""


def transform(
    layout: Layout, share: float = 0.5, group: str = "yaw", elements: Sequence[Acting] = ()
) -> Callable[[jax.Array, Batch], Batch]:
    """(key, batch) → batch with exactly round(share * B) transitions turned, evenly spread over it.

    `group` is yaw, mirror or all, as in `euda train --group`; the last two draw `elements` of the robot's finite group
    (`euda.symmetries(model)`), which act on the actions as well.
    """
    if not isinstance(layout, Layout):
        raise EudaError(f"turning needs the layout of the observations, not {layout!r}: {WHERE}")
    augment = make_augmentation(AugmentationConfig("rotate", share), layout, group, elements)

    def change(key: jax.Array, batch: Batch) -> Batch:
        plain = Transition(batch.observation, batch.action, batch.reward, batch.discount, batch.next_observation)
        order = _turned_first(plain.observation.shape[0], share)
        first = augment(key, Transition(*(jnp.take(part, order, axis=0) for part in plain)))
        changed = Transition(*(jnp.take(part, np.argsort(order), axis=0) for part in first))
        return batch._replace(**changed._asdict())

    return change


def _turned_first(size: int, share: float) -> np.ndarray:
    """Rows evenly spread over a batch, then the others: Brax cuts what it samples into the batches of several steps."""
    rows = spread(size, share)
    return np.concatenate([rows, np.setdiff1d(np.arange(size), rows)])


class RotatingQueue(replay_buffers.UniformSamplingQueue):
    """Brax's uniform replay queue whose samples come out changed; what it stores stays as it is."""

    def __init__(self, *args: Any, change: Callable[[jax.Array, Batch], Batch], **options: Any) -> None:
        super().__init__(*args, **options)
        self._change = change

    def sample_internal(self, buffer_state: Any) -> tuple[Any, Batch]:
        """A sample, with random numbers of its own for the change; Brax's are the same as without."""
        key = jax.random.fold_in(buffer_state.key, 1)
        buffer_state, batch = super().sample_internal(buffer_state)
        return buffer_state, self._change(key, batch)


def _version_of_jax() -> tuple[int, ...]:
    return tuple(int(part) for part in jax.__version__.split(".")[:2])


@contextlib.contextmanager
def rotating(layout: Layout, share: float = 0.5, group: str = "yaw", elements: Sequence[Acting] = ()) -> Iterator[None]:
    """Inside, Brax's agents learn from changed transitions: they make their replay queue themselves, so it is replaced.

    Not for several threads that train different agents at the same time.
    """
    if _version_of_jax() >= _TOO_NEW:
        found = importlib.metadata.version("brax")
        raise EudaError(
            f"brax {found} trains with a JAX below 0.10, not with {jax.__version__}: pip install 'jax<0.10'"
            " in an environment of its own; brax.transform works with this one"
        )
    queue = functools.partial(RotatingQueue, change=transform(layout, share, group, elements))
    before = replay_buffers.UniformSamplingQueue
    replay_buffers.UniformSamplingQueue = queue
    try:
        yield
    finally:
        replay_buffers.UniformSamplingQueue = before
