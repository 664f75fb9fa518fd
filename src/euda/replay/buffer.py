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

With `marked` every transition carries a mark: whether a symmetry may be applied to it. A window has one only if all its
actions have. Marks are a file of their own, so that a buffer without them is what it always was.
"""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from euda.errors import EudaError, UnfitError
from euda.replay import array_files

Array = Any  # a float32 array of NumPy or JAX
Floats = npt.NDArray[np.float32]
_REWARD, _DISCOUNT, _LAST = 0, 1, 2  # columns of the outcome of a slot
_TYPES = {"observation": np.float32, "action": np.float32, "outcome": np.float32, "start": np.int64, "mark": np.bool_}


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


class Marked(NamedTuple):
    """A batch with a mark for each of its transitions."""

    transition: Transition
    mark: Array  # [B] of bool, whether a symmetry may be applied to it


Batch = Transition | Marked


class ReplayBuffer:
    """The most recent `capacity` observations and what was done there; see the module's text.

    Files live in `folder`, or in RAM when it is None. With the `state` of a buffer before on the same files it goes
    on from that moment, or says which file is gone or too short; without one, files that are there are overwritten.
    Where it is known how many observations there will be in all (`expected`), no more room than that is taken; with
    a larger number files grow.
    """

    def __init__(
        self,
        observation_dim: int,
        action_dim: int,
        capacity: int = 1_000_000,
        *,
        n_step: int = 3,
        discount: float = 0.99,
        recency: float = 1.0,
        marked: bool = False,
        slack: int = 0,
        expected: int | None = None,
        folder: str | os.PathLike[str] | None = None,
        state: Mapping[str, npt.ArrayLike] | None = None,
    ) -> None:
        if min(observation_dim, action_dim, n_step) < 1 or capacity < 2 or slack < 0:
            raise EudaError(
                "a replay buffer needs positive sizes, a capacity of at least 2 and no negative slack, not"
                f" {observation_dim} features, {action_dim} actions, n_step {n_step}, capacity {capacity}"
                f" and slack {slack}"
            )
        if recency < 1:
            raise EudaError(f"recency must be at least 1, which draws all transitions alike, not {recency}")
        self.capacity, self.n_step, self.discount, self.slack = capacity, n_step, discount, slack
        self.recency = recency
        self._slots, self._is_marked = capacity + slack, marked
        self._sizes = np.array([capacity, slack, observation_dim, action_dim], np.int64)
        # Observations ever inserted, the newest in slot (observations - 1) % slots; transitions ever inserted,
        # transition t starting in slot start[t % slots]; the first transition that is still live.
        self._observations, self._transitions, self._oldest = (0, 0, 0) if state is None else self._counters(state)
        rows = self._slots if expected is None else min(self._slots, max(expected, 1))
        shapes = self._shapes(rows, rows)
        if state is not None:
            self._refuse_without_files(rows, None if folder is None else Path(folder))
        self._arrays: dict[str, npt.NDArray[Any]]
        if folder is None:
            self._arrays = {name: np.zeros(shape, _TYPES[name]) for name, shape in shapes.items()}
        else:
            self._arrays = array_files.open_arrays(Path(folder), shapes, _TYPES)
        self._observation, self._action = self._arrays["observation"], self._arrays["action"]
        self._outcome, self._start = self._arrays["outcome"], self._arrays["start"]
        self._gamma = np.float32(discount)

    def _shapes(self, observations: int, transitions: int) -> dict[str, tuple[int, ...]]:
        """The shapes of all arrays with rows for so many observations and transitions."""
        _, _, features, actions = (int(size) for size in self._sizes)
        return {
            "observation": (observations, features),
            "action": (observations, actions),
            "outcome": (observations, len((_REWARD, _DISCOUNT, _LAST))),
            "start": (transitions,),
            **({"mark": (observations,)} if self._is_marked else {}),
        }

    # -- resume ----------------------------------------------------------------------------------------

    def state(self) -> dict[str, npt.NDArray[np.int64]]:
        """What a checkpoint has to store beside the files: three counters and the sizes they belong to."""
        counters = [self._observations, self._transitions, self._oldest]
        return {"counters": np.array(counters, np.int64), "sizes": self._sizes}

    def _counters(self, state: Mapping[str, npt.ArrayLike]) -> tuple[int, int, int]:
        """The three numbers of a stored state, if it is one of a buffer like this."""
        sizes = np.asarray(state["sizes"])
        if not np.array_equal(sizes, self._sizes):
            raise UnfitError(f"this replay buffer has sizes {self._sizes.tolist()}, the stored state {sizes.tolist()}")
        counters = np.asarray(state["counters"]).tolist()
        match counters:
            case [int(observations), int(transitions), int(oldest)] if (
                0 <= oldest <= transitions <= observations and transitions - oldest <= self.capacity
            ):
                return observations, transitions, oldest
        raise EudaError(f"the stored state of the replay buffer cannot be right: its counters are {counters}")

    def _refuse_without_files(self, rows: int, folder: Path | None) -> None:
        """Sizes alone show whether the files that the counters speak of are there."""
        used = min(self._observations, self._slots)
        if folder is None or used > rows:
            place = "in memory" if folder is None else f"for {rows} observations"
            raise EudaError(f"a replay buffer {place} cannot resume from a state with {used} observations in files")
        array_files.refuse_missing(folder, self._shapes(used, min(self._transitions, self._slots)), _TYPES)

    # -- writing ---------------------------------------------------------------------------------------

    def start(self, observation: npt.ArrayLike) -> None:
        """Begin an episode with its first observation [dim]; an episode under way ends where it is."""
        if self._observations:
            self._outcome[self._head, _LAST] = 1.0
        self._append(np.asarray(observation, np.float32))

    def step(
        self, action: npt.ArrayLike, reward: float, discount: float, next_observation: npt.ArrayLike, mark: bool = True
    ) -> None:
        """Add what followed the newest observation: action [m], reward, environment's discount, observation [dim].

        `mark` is stored in a buffer of marked transitions.
        """
        if not self._observations:
            raise EudaError("the replay buffer needs start(observation) before the first step")
        array = np.asarray(next_observation, np.float32)
        if not math.isfinite(reward + discount + float(array.sum())):
            raise EudaError("an observation, reward or discount is not finite: look at the simulation before this step")
        head = self._head
        self._action[head] = action
        self._outcome[head] = (reward, discount, 0.0)
        if self._is_marked:
            self._arrays["mark"][head] = mark
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

    def sample(self, generator: np.random.Generator, batch_size: int = 256) -> Batch:
        """`batch_size` transitions with replacement, uniform or with a preference for new ones, in fresh arrays.

        With n transitions the age of a drawn one is n u^recency, u uniform: whatever n is, the newest share s of them
        makes up s^(1/recency) of a batch. So old ones fade as new ones come, and none is forgotten.

        The arrays are never reused: JAX may read them in place, after this call has long returned.
        """
        if not len(self):
            raise EudaError("the replay buffer is empty: nothing can be sampled")
        if self.recency == 1:
            chosen = generator.integers(self._oldest, self._transitions, size=batch_size)
        else:  # u < 1, so ages are below the number of transitions, but for rounding
            ages = (len(self) * generator.random(batch_size) ** self.recency).astype(np.int64)
            chosen = self._transitions - 1 - np.minimum(ages, len(self) - 1)
        return self._windows(self._start.take(chosen, mode="wrap"))

    def _windows(self, start: npt.NDArray[np.int64]) -> Batch:
        """The n-step transitions that begin in the slots `start` [B]."""
        reach = (self._head - start) % self._slots  # how many actions lie between the start and the newest observation
        outcome = self._outcome.take(start, axis=0, mode="wrap")
        reward, discount = outcome[:, _REWARD].copy(), outcome[:, _DISCOUNT] * self._gamma
        inside, end = np.ones(len(start), bool), start + 1
        mark = self._arrays["mark"].take(start, mode="wrap") if self._is_marked else None
        for j in range(1, self.n_step):
            outcome = self._outcome.take(start + j, axis=0, mode="wrap")
            inside &= (reach > j) & (outcome[:, _LAST] == 0)
            reward += inside * discount * outcome[:, _REWARD]
            discount *= np.where(inside, outcome[:, _DISCOUNT] * self._gamma, np.float32(1))
            end += inside
            if mark is not None:
                mark &= ~inside | self._arrays["mark"].take(start + j, mode="wrap")
        found = Transition(
            self._observation.take(start, axis=0, mode="wrap"),
            self._action.take(start, axis=0, mode="wrap"),
            reward,
            discount,
            self._observation.take(end, axis=0, mode="wrap"),
        )
        return found if mark is None else Marked(found, mark)

    # -- files -----------------------------------------------------------------------------------------

    @property
    def nbytes(self) -> int:
        """Bytes of all stored arrays, the slack included."""
        return sum(array.nbytes for array in self._arrays.values())

    def flush(self) -> None:
        """Write the files through to the disk: needed against loss of power, not against the end of the process."""
        for array in self._arrays.values():
            if isinstance(array.base, np.memmap):
                array.base.flush()
