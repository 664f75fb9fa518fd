"""Symmetry for TorchRL: a transform of replay buffers that turns and mirrors what they have sampled.

    buffer.append_transform(RotateTransform(layout, share=0.5))

It acts on `buffer.sample()` only: what is stored stays as it is, and so does what a policy sees. An extra:
`pip install 'euda[torchrl]'`.
"""

# pyright: reportMissingImports=false
# TorchRL and PyTorch are an extra: they are not in the lock.
from __future__ import annotations

import weakref
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from tensordict import TensorDictBase
from torchrl.envs.transforms import Compose, ObservationNorm, Transform, VecNorm, VecNormV2

from euda.body.dict_layout import DictLayout
from euda.body.entry_map import Acting
from euda.body.layout import Layout
from euda.errors import EudaError, LayoutError
from euda.replay.batches import Turner, check_actions, check_fit

Key = str | tuple[str, ...]
_NORMALISERS = (ObservationNorm, VecNorm, VecNormV2)


class RotateTransform(Transform):
    """Turn exactly round(share * B) rows of a sampled batch, each by one yaw, uniform in [-π, π).

    `keys` are the entries of the batch that the layout describes; a row has one yaw for all of them. Entries of
    different kinds have a layout each: a `DictLayout` by key, such as {"observation": …, ("next", "observation"): …,
    "goal": …}, which then names the keys. A batch of
    sequences [B, T] has one yaw per sequence: reshape what a SliceSampler returns before this transform. `seed`
    seeds the yaws; without one they follow from `torch.manual_seed`. PyTorch's random numbers are never touched.
    The stream of yaws is part of `state_dict()`.

    With `elements` (mirrors and exchanges of limbs, see `euda.task_symmetries`) one of them or the identity is drawn
    for each of these rows first, all alike, and the actions under `action_keys` are mapped too. `yaws=False` leaves the
    yaws out.
    """

    def __init__(
        self,
        layout: Layout | DictLayout,
        share: float = 0.5,
        keys: Sequence[Key] = ("observation", ("next", "observation")),
        seed: int | None = None,
        elements: Sequence[Acting] = (),
        yaws: bool = True,
        action_keys: Sequence[Key] = ("action",),
    ) -> None:
        keys = list(layout) if isinstance(layout, DictLayout) else list(keys)
        super().__init__(in_keys=keys, out_keys=keys)
        generator = np.random.default_rng(torch.initial_seed() if seed is None else seed)
        self._turner = Turner(layout, share, generator, elements, yaws)
        self._action_keys = list(action_keys) if self._turner.elements else []
        self._chain: weakref.ref[Any] | None = None

    @property
    def layout(self) -> Layout | DictLayout:
        """What each entry of an observation is and how it turns."""
        return self._turner.layout

    @property
    def share(self) -> float:
        """Share of each batch that is turned."""
        return self._turner.share

    def forward(self, tensordict: TensorDictBase) -> TensorDictBase:
        """Turn a share of a sampled batch."""
        observations = {key: self._observations(tensordict, key) for key in self.in_keys}
        actions = [self._actions(tensordict, key) for key in self._action_keys]
        if not self._turner.is_idle:
            self._refuse_normalisers()
            for key, turned in self._turned(observations, actions).items():
                tensordict.set(key, turned)
        return tensordict

    def _turned(self, observations: dict[Key, Any], actions: list[Any]) -> dict[Key, Any]:
        if isinstance(self.layout, DictLayout):
            changed, *mapped = self._turner.turn(observations, actions=actions)
            return changed | dict(zip(self._action_keys, mapped, strict=True))
        changed = self._turner.turn(*observations.values(), actions=actions)
        return dict(zip([*observations, *self._action_keys], changed, strict=True))

    def _observations(self, batch: TensorDictBase, key: Key) -> Any:
        value = _tensor(batch, key, "keys")
        if not batch.batch_dims:
            raise LayoutError("rotation needs a batch of transitions, not a single one: sample with a batch_size")
        layout = self.layout[key] if isinstance(self.layout, DictLayout) else self.layout
        if layout is not None:
            check_fit(layout, tuple(value.shape[batch.batch_dims :]), value.dtype)
        return value

    def _actions(self, batch: TensorDictBase, key: Key) -> Any:
        value = _tensor(batch, key, "action_keys")
        check_actions(self._turner.elements, value.shape[-1])
        return value

    # -- its place ---------------------------------------------------------------------------------------

    def set_container(self, container: Any) -> None:
        """Remember the chain of transforms that this one is part of."""
        super().set_container(container)
        self._chain = weakref.ref(container) if isinstance(container, Compose) else None

    def _refuse_normalisers(self) -> None:
        chain = self._chain and self._chain()
        for transform in chain.transforms if chain is not None else ():
            if isinstance(transform, _NORMALISERS) and set(transform.in_keys) & set(self.in_keys):
                raise EudaError(
                    f"observations normalised by {type(transform).__name__} do not turn, because its statistics know"
                    " one direction only: leave it out of this replay buffer and of the environment"
                )

    def _call(self, next_tensordict: TensorDictBase) -> TensorDictBase:
        raise _misplaced()

    def _reset(self, tensordict: TensorDictBase, tensordict_reset: TensorDictBase) -> TensorDictBase:
        raise _misplaced()

    # -- resume ------------------------------------------------------------------------------------------

    def get_extra_state(self) -> dict[str, Any]:
        """Where the stream of yaws is."""
        return {"generator": self._turner.generator.bit_generator.state}

    def set_extra_state(self, state: dict[str, Any]) -> None:
        """Go on from there."""
        self._turner.generator.bit_generator.state = state["generator"]


def _tensor(batch: TensorDictBase, key: Key, argument: str) -> Any:
    value = batch.get(key, None)
    if not isinstance(value, torch.Tensor):
        entries = ", ".join(sorted(map(str, batch.keys(include_nested=True, leaves_only=True))))
        raise LayoutError(f"the batch has no tensor {key!r} to turn: give {argument}=..., out of {entries}")
    return value


def _misplaced() -> EudaError:
    return EudaError(
        "RotateTransform belongs to a replay buffer, not to an environment, whose policy must see the world as it is:"
        " use buffer.append_transform(...)"
    )
