"""Symmetry for Stable-Baselines3 and SBX: a replay buffer that turns and mirrors what it has sampled.

    TD3("MlpPolicy", env, replay_buffer_class=RotatingReplayBuffer,
        replay_buffer_kwargs={"layout": env.get_wrapper_attr("layout"), "share": 0.5})

Works with every algorithm that takes `replay_buffer_class`: DDPG, TD3, SAC of both libraries. An extra:
`pip install 'euda[sb3]'`, or `'euda[sbx]'` for both.
"""

# pyright: reportMissingImports=false
# Stable-Baselines3 and PyTorch are an extra: they are not in the lock.
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from gymnasium.spaces import Box, Dict, Space
from stable_baselines3.common.buffers import DictReplayBuffer, NStepReplayBuffer, ReplayBuffer
from stable_baselines3.common.type_aliases import DictReplayBufferSamples, ReplayBufferSamples
from stable_baselines3.common.vec_env import VecNormalize

from euda.body.dict_layout import DictLayout
from euda.body.entry_map import Acting
from euda.body.layout import Layout
from euda.errors import EudaError, LayoutError
from euda.replay.batches import Turner, check_actions, check_fit


class RotatingReplayBuffer(NStepReplayBuffer):
    """SB3's replay buffer; of each batch, exactly round(share * B) transitions come out turned.

    A transition has one yaw, uniform in [-π, π), for its observation and its next observation; action, reward and
    done stay. What is stored stays as well. With share 0 it is SB3's own buffer, sample for sample.

    With `elements` (mirrors and exchanges of limbs, see `euda.task_symmetries`) one of them or the identity is drawn
    for each of these transitions first, all alike, and its action is mapped too. `yaws=False` leaves the yaws out.

    For n-step returns give `n_steps` and `gamma` here, in `replay_buffer_kwargs`: SB3 hands the algorithm's own
    `n_steps` to no other buffer than its own. `seed` seeds the yaws; without one they follow from the algorithm's
    seed. SB3's random numbers are never touched.
    """

    def __init__(
        self,
        buffer_size: int,
        observation_space: Space,
        action_space: Space,
        device: Any = "auto",
        n_envs: int = 1,
        optimize_memory_usage: bool = False,
        handle_timeout_termination: bool = True,
        *,
        layout: Layout,
        share: float = 0.5,
        elements: Sequence[Acting] = (),
        yaws: bool = True,
        n_steps: int = 1,
        gamma: float | None = None,
        seed: int | None = None,
    ) -> None:
        self.layout = layout
        """What each entry of an observation is and how it turns."""
        generator = np.random.default_rng(_follow_sb3() if seed is None else seed)
        self._turner = Turner(layout, share, generator, elements, yaws)
        _check_space(layout, observation_space)
        _check_action_space(self._turner.elements, action_space)
        _check_steps(n_steps, gamma, optimize_memory_usage)
        # Not NStepReplayBuffer's own: it refuses optimize_memory_usage, which is fine with single steps.
        ReplayBuffer.__init__(
            self, buffer_size, observation_space, action_space, device, n_envs,
            optimize_memory_usage, handle_timeout_termination,
        )  # fmt: skip
        self.n_steps, self.gamma = n_steps, gamma

    @property
    def share(self) -> float:
        """Share of each batch that is turned."""
        return self._turner.share

    def _get_samples(self, batch_inds: np.ndarray, env: VecNormalize | None = None) -> ReplayBufferSamples:
        """SB3's own batch of these rows, then turned."""
        plain = NStepReplayBuffer if self.n_steps > 1 else ReplayBuffer
        if self._turner.is_idle:
            return plain._get_samples(self, batch_inds, env)
        _refuse_normalised(env)
        batch = plain._get_samples(self, batch_inds, env)
        observations, next_observations, actions = self._turner.turn(
            batch.observations, batch.next_observations, actions=[batch.actions]
        )
        return batch._replace(observations=observations, next_observations=next_observations, actions=actions)


class RotatingDictReplayBuffer(DictReplayBuffer):
    """The same for dict observations (`MultiInputPolicy`): one yaw for all entries of a transition.

    `layout` is a `DictLayout`: a layout for each entry, None for one that no yaw changes.
    """

    def __init__(
        self,
        buffer_size: int,
        observation_space: Space,
        action_space: Space,
        device: Any = "auto",
        n_envs: int = 1,
        optimize_memory_usage: bool = False,
        handle_timeout_termination: bool = True,
        *,
        layout: DictLayout,
        share: float = 0.5,
        elements: Sequence[Acting] = (),
        yaws: bool = True,
        seed: int | None = None,
    ) -> None:
        self.layout = layout
        """What each entry of an observation is and how it turns."""
        generator = np.random.default_rng(_follow_sb3() if seed is None else seed)
        self._turner = Turner(layout, share, generator, elements, yaws)
        _check_dict(layout, observation_space)
        _check_action_space(self._turner.elements, action_space)
        super().__init__(
            buffer_size, observation_space, action_space, device, n_envs,
            optimize_memory_usage, handle_timeout_termination,
        )  # fmt: skip

    @property
    def share(self) -> float:
        """Share of each batch that is turned."""
        return self._turner.share

    def _get_samples(self, batch_inds: np.ndarray, env: VecNormalize | None = None) -> DictReplayBufferSamples:
        """SB3's own batch of these rows, then turned."""
        batch = super()._get_samples(batch_inds, env)
        if self._turner.is_idle:
            return batch
        _refuse_normalised(env)
        observations, next_observations, actions = self._turner.turn(
            batch.observations, batch.next_observations, actions=[batch.actions]
        )
        return batch._replace(observations=observations, next_observations=next_observations, actions=actions)


def _refuse_normalised(env: VecNormalize | None) -> None:
    if env is not None and env.norm_obs:
        raise EudaError(
            "observations normalised by VecNormalize do not turn, because its statistics know one direction only:"
            " give it norm_obs=False (rewards may stay normalised)"
        )


def _follow_sb3() -> list[int]:
    """A seed made from the state of NumPy's global generator, which SB3 has seeded by now; nothing is drawn from it."""
    _, keys, position, *_ = np.random.get_state(legacy=True)  # noqa: NPY002 - SB3's own stream, only looked at
    return [*np.asarray(keys).tolist(), int(position)]


def _check_space(layout: Layout, space: Space) -> None:
    if isinstance(space, Dict):
        raise LayoutError("dict observations have a buffer of their own: RotatingDictReplayBuffer, with a DictLayout")
    if not isinstance(space, Box):
        raise LayoutError(
            f"rotation needs a Box of {layout.dim} numbers as observation space, not {space}: observe through an euda"
            " environment or LimbObservation"
        )
    check_fit(layout, space.shape, space.dtype)


def _check_dict(layout: DictLayout, space: Space) -> None:
    if not isinstance(layout, DictLayout) or not isinstance(space, Dict):
        raise LayoutError(
            "rotation of dict observations needs a DictLayout and a Dict as observation space, not"
            f" {type(layout).__name__} and {space}"
        )
    for _, part, box in layout.matched(space.spaces):
        if part is not None:
            _check_space(part, box)


def _check_action_space(elements: Sequence[Acting], space: Space) -> None:
    if elements and not isinstance(space, Box):
        raise EudaError(f"a mirror exchanges motors: it needs a Box as action space, not {space}")
    if elements and space.shape is not None:
        check_actions(elements, space.shape[0])


def _check_steps(n_steps: int, gamma: float | None, optimize_memory_usage: bool) -> None:
    if isinstance(n_steps, bool) or not isinstance(n_steps, int) or n_steps < 1:
        raise EudaError(f"n_steps must be a whole number of at least 1, not {n_steps!r}")
    if n_steps > 1 and gamma is None:
        raise EudaError(
            f"n_steps={n_steps} needs the algorithm's discount as well: replay_buffer_kwargs={{'n_steps': {n_steps},"
            " 'gamma': 0.99, ...}}"
        )
    if n_steps > 1 and optimize_memory_usage:
        raise EudaError(
            f"n_steps={n_steps} and optimize_memory_usage=True do not go together in Stable-Baselines3: leave one out"
        )
