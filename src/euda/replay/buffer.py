"""observation → Transition: every observation stored once, n-step transitions built when sampling.

A slot holds one observation together with the action taken there, the reward and the discount that
followed. Slots are written in episode order around a ring. The last observation of an episode has a slot
but no action. The window of a start slot runs over at most n actions and stops where its episode (or, in
the running episode, the data) stops, so near an end it is shorter and bootstraps with gamma^k for the k
rewards it really has: every stored action is sampled with the same probability and no target is biased.
(DrQ-v2 and the code the paper builds on instead never start in the last n - 1 steps of an episode.)

Resume: `state` is a handful of integers; the arrays themselves live in memory-mapped files and are never
copied. What is written after a checkpoint goes to the `slack` slots beyond the live window first, so the
files still hold everything an older `state` considers live, as long as at most `slack` observations
(steps plus episode starts) have been inserted since. Two generations of checkpoints need twice the
interval between two of them.
"""

from __future__ import annotations

import errno
import math
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from euda.errors import EudaError

Array = Any  # a float32 array of NumPy or JAX
Floats = npt.NDArray[np.float32]
_REWARD, _DISCOUNT, _LAST = 0, 1, 2  # columns of the outcome of a slot


class Transition(NamedTuple):
    """A batch of n-step transitions, float32, of NumPy or JAX arrays.

    `reward` is r_t + γ r_{t+1} + … + γ^{k-1} r_{t+k-1}; `discount` is γ^k times the environment's discounts
    on the way: zero after a terminal state, γ^k at a time limit, so that the critic bootstraps there.
    """

    observation: Array  # [B, dim]
    action: Array  # [B, m], within [-1, 1]
    reward: Array  # [B]
    discount: Array  # [B]
    next_observation: Array  # [B, dim]


class ReplayBuffer:
    """The most recent `capacity` observations and what was done there; see the module's text.

    Files live in `folder`, or in RAM when it is None. Files that are already there are opened as they are: call
    `restore` with a `state` to go on, otherwise they are overwritten. Where it is known how many observations
    there will be in all (`expected`), no more room than that is taken; with a larger number files grow.
    """

    def __init__(
        self,
        observation_dim: int,
        action_dim: int,
        capacity: int = 1_000_000,
        *,
        n_step: int = 3,
        discount: float = 0.99,
        slack: int = 0,
        expected: int | None = None,
        folder: str | os.PathLike[str] | None = None,
    ) -> None:
        if min(observation_dim, action_dim, n_step) < 1 or capacity < 2 or slack < 0:
            raise EudaError(
                "a replay buffer needs positive sizes, a capacity of at least 2 and no negative slack, not"
                f" {observation_dim} features, {action_dim} actions, n_step {n_step}, capacity {capacity}"
                f" and slack {slack}"
            )
        self.capacity, self.n_step, self.discount, self.slack = capacity, n_step, discount, slack
        self._slots = capacity + slack
        rows = self._slots if expected is None else min(self._slots, max(expected, 1))
        shapes = {
            "observation": (rows, observation_dim),
            "action": (rows, action_dim),
            "outcome": (rows, 3),
            "start": (rows,),
        }
        self._arrays = _arrays(shapes, None if folder is None else Path(folder))
        self._observation, self._action = self._arrays["observation"], self._arrays["action"]
        self._outcome, self._start = self._arrays["outcome"], self._arrays["start"]
        self._gamma = np.float32(discount)
        self._observations = 0  # ever inserted; the newest lies in slot (observations - 1) % slots
        self._transitions = 0  # ever inserted; transition t starts in slot start[t % slots]
        self._oldest = 0  # the first transition that is still live

    # -- writing ---------------------------------------------------------------------------------------

    def start(self, observation: npt.ArrayLike) -> None:
        """Begin an episode with its first observation [dim]; an episode under way ends where it is."""
        if self._observations:
            self._outcome[self._head, _LAST] = 1.0
        self._append(np.asarray(observation, np.float32))

    def step(self, action: npt.ArrayLike, reward: float, discount: float, next_observation: npt.ArrayLike) -> None:
        """Add what followed the newest observation: action [m], reward, environment's discount, observation [dim]."""
        if not self._observations:
            raise EudaError("the replay buffer needs start(observation) before the first step")
        array = np.asarray(next_observation, np.float32)
        if not math.isfinite(reward + discount + float(array.sum())):
            raise EudaError("an observation, reward or discount is not finite: look at the simulation before this step")
        head = self._head
        self._action[head] = action
        self._outcome[head] = (reward, discount, 0.0)
        self._start[self._transitions % self._slots] = head
        self._transitions += 1
        self._append(array)

    def _append(self, observation: Floats) -> None:
        if self._observations % self._slots >= len(self._observation):
            raise EudaError(f"the replay buffer was made for {len(self._observation)} observations, and there are more")
        leaving = self._observations - self.capacity  # number of the observation that this one pushes out
        if (
            leaving >= 0
            and self._oldest < self._transitions
            and self._start[self._oldest % self._slots] == leaving % self._slots
        ):
            self._oldest += 1
        self._observation[self._observations % self._slots] = observation
        self._observations += 1

    @property
    def _head(self) -> int:
        """Slot of the newest observation."""
        return (self._observations - 1) % self._slots

    # -- reading ---------------------------------------------------------------------------------------

    def __len__(self) -> int:
        """How many transitions can be sampled."""
        return self._transitions - self._oldest

    def sample(self, generator: np.random.Generator, batch_size: int = 256) -> Transition:
        """`batch_size` transitions, uniform with replacement, in fresh arrays.

        The arrays are never reused: JAX may read them in place, after this call has long returned.
        """
        if not len(self):
            raise EudaError("the replay buffer is empty: nothing can be sampled")
        chosen = generator.integers(self._oldest, self._transitions, size=batch_size)
        return self._windows(self._start.take(chosen, mode="wrap"))

    def _windows(self, start: npt.NDArray[np.int64]) -> Transition:
        """The n-step transitions that begin in the slots `start` [B]."""
        reach = (self._head - start) % self._slots  # how many actions lie between the start and the newest observation
        outcome = self._outcome.take(start, axis=0, mode="wrap")
        reward, discount = outcome[:, _REWARD].copy(), outcome[:, _DISCOUNT] * self._gamma
        inside, end = np.ones(len(start), bool), start + 1
        for j in range(1, self.n_step):
            outcome = self._outcome.take(start + j, axis=0, mode="wrap")
            inside &= (reach > j) & (outcome[:, _LAST] == 0)
            reward += inside * discount * outcome[:, _REWARD]
            discount *= np.where(inside, outcome[:, _DISCOUNT] * self._gamma, np.float32(1))
            end += inside
        return Transition(
            self._observation.take(start, axis=0, mode="wrap"),
            self._action.take(start, axis=0, mode="wrap"),
            reward,
            discount,
            self._observation.take(end, axis=0, mode="wrap"),
        )

    # -- resume ----------------------------------------------------------------------------------------

    def state(self) -> dict[str, npt.NDArray[np.int64]]:
        """What a checkpoint has to store beside the files: three counters and the sizes they belong to."""
        counters = [self._observations, self._transitions, self._oldest]
        return {"counters": np.array(counters, np.int64), "sizes": self._sizes()}

    def restore(self, state: Mapping[str, npt.ArrayLike]) -> None:
        """Go back to the moment of `state`, of this buffer or of one before on the same files."""
        sizes = np.asarray(state["sizes"])
        if not np.array_equal(sizes, self._sizes()):
            raise EudaError(f"this replay buffer has sizes {self._sizes().tolist()}, the stored state {sizes.tolist()}")
        self._observations, self._transitions, self._oldest = (int(value) for value in np.asarray(state["counters"]))

    def _sizes(self) -> npt.NDArray[np.int64]:
        return np.array([self.capacity, self.slack, self._observation.shape[1], self._action.shape[1]], np.int64)

    @property
    def nbytes(self) -> int:
        """Bytes of all stored arrays, the slack included."""
        return sum(array.nbytes for array in self._arrays.values())

    def flush(self) -> None:
        """Write the files through to the disk: needed against loss of power, not against the end of the process."""
        for array in self._arrays.values():
            if isinstance(array.base, np.memmap):
                array.base.flush()


def _arrays(shapes: Mapping[str, tuple[int, ...]], folder: Path | None) -> dict[str, npt.NDArray]:
    """One array per name, float32 (slot numbers int64), in RAM or in files of `folder`."""
    dtypes = {name: np.dtype(np.int64 if name == "start" else np.float32) for name in shapes}
    if folder is None:
        return {name: np.zeros(shape, dtypes[name]) for name, shape in shapes.items()}
    sizes = {folder / f"{name}.bin": math.prod(shape) * dtypes[name].itemsize for name, shape in shapes.items()}
    _allocate(folder, sizes)
    maps = (
        np.memmap(path, dtypes[name], "r+", shape=shape)
        for path, (name, shape) in zip(sizes, shapes.items(), strict=True)
    )
    return {name: array.view(np.ndarray) for name, array in zip(shapes, maps, strict=True)}


def _allocate(folder: Path, sizes: Mapping[Path, int]) -> None:
    """Make the files with all their blocks on the disk, so that a full disk is an error now and not a SIGBUS later."""
    existing = [path for path in sizes if path.exists()]
    made: list[Path] = []
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for path, size in sizes.items():
            made += [] if path in existing else [path]
            with open(path, "ab") as file:
                os.posix_fallocate(file.fileno(), 0, size)
    except OSError as error:
        for path in made:
            path.unlink(missing_ok=True)
        need = sum(sizes.values()) / 1e9
        reason = (
            "too little space is left"
            if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
            else f"{error.strerror or error}"
        )
        raise EudaError(f"the replay buffer needs {need:.3g} GB in {folder}: {reason}") from None
