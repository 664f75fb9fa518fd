"""The states in which a symmetry is tried: visited ones, then others made on purpose; with actions and what acts."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence

import numpy as np

from euda.errors import SimulationError
from euda.symmetry.judging.coverage import Coverage, Touched, is_iterative, touched_in_step
from euda.symmetry.judging.seek import Seeker
from euda.symmetry.judging.states import visited_states
from euda.symmetry.judging.transformation import Transformation
from euda.symmetry.judging.twin import Comparison, Trial, Twin
from euda.tasks.base_env import LimbEnv, State

Seek = Callable[[LimbEnv, Sequence[State], Sequence[Touched], np.random.Generator], list[State]]
"""(environment, visited states, what acted in them, random numbers) → states in which something else acts."""


def seek_missed(
    env: LimbEnv, samples: Sequence[State], touched: Sequence[Touched], rng: np.random.Generator
) -> list[State]:
    """States in which the contacts and limits act that no visited state met."""
    return Seeker(env, samples, rng).seek(touched)


class Trials:
    """States of a simulation with a random action for each, the same for everything that is tried in them."""

    def __init__(self, twin: Twin, states: int, rng: np.random.Generator, seek: Seek = seek_missed) -> None:
        self.twin, self.visited, self._rng = twin, states, rng
        self.samples = visited_states(twin.env, states, rng)
        self.trials: list[Trial] = []
        """Without transformations."""
        self.touched: list[Touched] = []
        """What acts in each."""
        self._add(self.samples, is_sought=False)
        self._add(seek(twin.env, self.samples, self.touched, rng), is_sought=True)

    def _add(self, samples: Sequence[State], is_sought: bool) -> None:
        """An action for every state, and what touches; a made state that blows up at once is left out."""
        for state in samples:
            action = self._rng.uniform(-1, 1, self.twin.env.model.nu)
            self.twin.place(state)
            try:
                self.touched.append(touched_in_step(self.twin.env, action))
            except SimulationError:
                if not is_sought:
                    raise
                continue
            self.trials.append(Trial(state, action, (), is_sought))

    def of(self, draw: Callable[[State], Sequence[Transformation]]) -> list[Trial]:
        """The trials with transformations that are drawn for each state."""
        return [dataclasses.replace(one, transformations=draw(one.state)) for one in self.trials]

    @property
    def sought(self) -> int:
        """How many states were made on purpose."""
        return len(self.trials) - self.visited

    @property
    def states_with_contacts(self) -> int:
        """Of the states that the simulation came to by itself: those with frictional contacts."""
        return sum(bool(touched.frictional) for touched in self.touched[: self.visited])

    @property
    def coverage(self) -> Coverage:
        """Which contacts and limits acted."""
        return Coverage.of(self.twin.env.model, self.touched)

    def iterative(self, result: Comparison) -> np.ndarray:
        """[rows] whether a collision acts that MuJoCo finds by iteration."""
        model = self.twin.env.model
        acts = np.array([any(is_iterative(model, pair) for pair in one.pairs) for one in self.touched])
        return acts[result.trial]
