"""Rotation for Stable-Baselines3 and SBX: a replay buffer that turns what it has sampled.

    TD3("MlpPolicy", env, replay_buffer_class=RotatingReplayBuffer,
        replay_buffer_kwargs={"layout": env.get_wrapper_attr("layout"), "share": 0.5})

Works with every algorithm that takes `replay_buffer_class`: DDPG, TD3, SAC of both libraries. An extra:
`pip install 'euda[sb3]'`, or `'euda[sbx]'` for both.
"""

# pyright: reportMissingImports=false
# Stable-Baselines3 and PyTorch are an extra: they are not in the lock.
from __future__ import annotations

from typing import Any

import numpy as np
from gymnasium.spaces import Box, Space
from stable_baselines3.common.buffers import NStepReplayBuffer, ReplayBuffer
from stable_baselines3.common.type_aliases import ReplayBufferSamples
from stable_baselines3.common.vec_env import VecNormalize

from euda.body.layout import Layout
from euda.errors import EudaError, LayoutError
from euda.replay.turning import Turner, check_fit


class RotatingReplayBuffer(NStepReplayBuffer):
    """SB3's replay buffer; of each batch, exactly round(share * B) transitions come out turned.

    A transition has one yaw, uniform in [0, 2π), for its observation and its next observation; action, reward and
    done stay. What is stored stays as well. With share 0 it is SB3's own buffer, sample for sample.

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
        n_steps: int = 1,
        gamma: float | None = None,
        seed: int | None = None,
    ) -> None:
        self._turner = Turner(layout, share, np.random.default_rng(_follow_sb3() if seed is None else seed))
        _check_space(layout, observation_space)
        _check_steps(n_steps, gamma, optimize_memory_usage)
        # Not NStepReplayBuffer's own: it refuses optimize_memory_usage, which is fine with single steps.
        ReplayBuffer.__init__(
            self, buffer_size, observation_space, action_space, device, n_envs,
            optimize_memory_usage, handle_timeout_termination,
        )  # fmt: skip
        self.n_steps, self.gamma = n_steps, gamma

    @property
    def layout(self) -> Layout:
        """What each entry of an observation is and how it turns."""
        return self._turner.layout

    @property
    def share(self) -> float:
        """Share of each batch that is turned."""
        return self._turner.share

    def _get_samples(self, batch_inds: np.ndarray, env: VecNormalize | None = None) -> ReplayBufferSamples:
        """SB3's own batch of these rows, then turned."""
        plain = NStepReplayBuffer if self.n_steps > 1 else ReplayBuffer
        if self._turner.is_idle:
            return plain._get_samples(self, batch_inds, env)
        if env is not None and env.norm_obs:
            raise EudaError(
                "observations normalised by VecNormalize do not turn, because its statistics know one direction only:"
                " give it norm_obs=False (rewards may stay normalised)"
            )
        batch = plain._get_samples(self, batch_inds, env)
        observations, next_observations = self._turner.turn(batch.observations, batch.next_observations)
        return batch._replace(observations=observations, next_observations=next_observations)


def _follow_sb3() -> list[int]:
    """A seed made from the state of NumPy's global generator, which SB3 has seeded by now; nothing is drawn from it."""
    _, keys, position, *_ = np.random.get_state(legacy=True)  # noqa: NPY002 - SB3's own stream, only looked at
    return [*np.asarray(keys).tolist(), int(position)]


def _check_space(layout: Layout, space: Space) -> None:
    if not isinstance(space, Box):
        raise LayoutError(
            f"rotation needs a Box of {layout.dim} numbers as observation space, not {space}: observe through an euda"
            " environment or LimbObservation"
        )
    check_fit(layout, space.shape, space.dtype)


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
