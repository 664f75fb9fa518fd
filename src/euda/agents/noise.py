"""Numbers that actions are explored with: each N(0, 1) by itself, but not independent of those before.

`pink` ones are a sum of processes x ← ρ x + √(1 - ρ²) z that forget within 1, 2, 4, …,
512 steps, with equal weights, which has a spectrum close to 1/f over those times (Eberhard et al., 2023, found pink
noise good on most tasks). `held` ones stay the same for some steps, as many as a Zipf law of exponent 2 says, at most
16. `held-at-first` ones are held only while actions are random, before the actor is used: an arm is then moved to where
rewards are, and later not disturbed. `bursts` are `held-at-first` and go on to interrupt the policy: now and then one
random action is held for 1 to 32 steps, whatever the policy would do, a tenth of all steps (Dabney et al., 2021, hold
random actions so, of discrete ones). A robot that runs is thrown down by them and may learn to get up. What a process
remembers is an array, part of a run's state, and begins anew with every episode.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np
import numpy.typing as npt
import scipy.special

Floats = npt.NDArray[np.float32]
_TIMES = 2.0 ** np.arange(10)[:, None]  # steps
_LONGEST = 16  # steps
_BURST = 32  # steps, at most
_INTERRUPTED = 0.1  # share of all steps


class Noise(Protocol):
    """A process for `actions` numbers; its future depends on `memory` and the generator alone."""

    memory: Floats

    def begin(self, generator: np.random.Generator) -> None:
        """An episode begins."""
        ...

    def normal(self, generator: np.random.Generator) -> Floats:
        """The next numbers [actions], each N(0, 1)."""
        ...

    def uniform(self, generator: np.random.Generator) -> Floats:
        """The next numbers [actions], each uniform in [-1, 1]."""
        ...

    def instead(self, generator: np.random.Generator) -> Floats | None:
        """An action [actions] to take whatever the policy says, or None: as the policy says, with `normal` numbers."""
        ...


class _Ranked:
    """Uniform numbers are the ranks of normal ones, and the policy is never interrupted."""

    memory: Floats

    def normal(self, generator: np.random.Generator) -> Floats:
        """[actions]."""
        raise NotImplementedError

    def uniform(self, generator: np.random.Generator) -> Floats:
        """[actions]."""
        return scipy.special.erf(self.normal(generator) / np.float32(np.sqrt(2)))

    def instead(self, generator: np.random.Generator) -> Floats | None:
        """Never."""
        return None


class Pink(_Ranked):
    """Remembers the state of each process, [times, actions]."""

    kept = np.exp(-1 / _TIMES).astype(np.float32)
    new = np.sqrt(1 - kept**2)

    def __init__(self, actions: int) -> None:
        self.memory = np.zeros((len(_TIMES), actions), np.float32)

    def begin(self, generator: np.random.Generator) -> None:
        """From the distribution that the processes keep."""
        self.memory = generator.standard_normal(self.memory.shape, np.float32)

    def normal(self, generator: np.random.Generator) -> Floats:
        """[actions]."""
        self.memory = self.kept * self.memory + self.new * generator.standard_normal(self.memory.shape, np.float32)
        return self.memory.sum(axis=0) / np.float32(np.sqrt(len(self.memory)))


class Held(_Ranked):
    """Remembers the numbers, and for how many steps they stay: [actions + 1]."""

    def __init__(self, actions: int) -> None:
        self.memory = np.zeros(actions + 1, np.float32)

    def begin(self, generator: np.random.Generator) -> None:
        """New numbers at the next step."""
        self.memory = np.zeros_like(self.memory)

    def normal(self, generator: np.random.Generator) -> Floats:
        """[actions]."""
        numbers, left = self.memory[:-1], self.memory[-1]
        if left == 0:
            numbers = generator.standard_normal(len(numbers), np.float32)
            left = min(generator.zipf(2.0), _LONGEST)
        self.memory = np.append(numbers, np.float32(left - 1))
        return numbers


class HeldAtFirst(Held):
    """Held while actions are uniform, before the actor is used; each step by itself from then on."""

    def uniform(self, generator: np.random.Generator) -> Floats:
        """[actions], held."""
        return scipy.special.erf(Held.normal(self, generator) / np.float32(np.sqrt(2)))

    def normal(self, generator: np.random.Generator) -> Floats:
        """[actions], new at every step."""
        return generator.standard_normal(len(self.memory) - 1, np.float32)


class Bursts(HeldAtFirst):
    """Held while actions are uniform; from then on the policy's for some steps and one random action for some steps."""

    start = 1 / (1 + (1 - _INTERRUPTED) / _INTERRUPTED * (1 + _BURST) / 2)
    """Probability that a step of the policy's is the first of a burst instead."""

    def uniform(self, generator: np.random.Generator) -> Floats:
        """[actions], held; remembered as an action, because the policy's turn may come while it is still held."""
        action, left = self.memory[:-1], self.memory[-1]
        if left == 0:
            action = super().uniform(generator)
            left = self.memory[-1] + 1  # as it was drawn
        self.memory = np.append(action, np.float32(left - 1))
        return action

    def instead(self, generator: np.random.Generator) -> Floats | None:
        """[actions], each uniform in [-1, 1], for as many steps as was drawn with them."""
        action, left = self.memory[:-1], self.memory[-1]
        if left == 0:
            if generator.random() >= self.start:
                return None
            action = generator.uniform(-1.0, 1.0, len(action)).astype(np.float32)
            left = generator.integers(1, _BURST + 1)
        self.memory = np.append(action, np.float32(left - 1))
        return action
