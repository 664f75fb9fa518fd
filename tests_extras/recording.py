"""A rotating replay buffer of Stable-Baselines3, which SBX uses too, that remembers what it did."""

# ruff: noqa: NPY002 - SB3's buffers draw from NumPy's global generator
import numpy as np
from stable_baselines3.common.buffers import NStepReplayBuffer, ReplayBuffer

from euda.adapters.sb3 import RotatingReplayBuffer


class Recording(RotatingReplayBuffer):
    """Keeps every sample beside the rows of the store it was made from."""

    def __init__(self, *args, **kwargs):
        super().__init__(*args, **kwargs)
        self.seen = []

    def _get_samples(self, batch_inds, env=None):
        state = np.random.get_state()
        plain = (NStepReplayBuffer if self.n_steps > 1 else ReplayBuffer)._get_samples(self, batch_inds, env)
        np.random.set_state(state)
        batch = super()._get_samples(batch_inds, env)
        self.seen.append((plain, batch))
        return batch
