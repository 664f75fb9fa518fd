"""Transition → may a symmetry be applied to it? The simulator says so, for each transition of a run.

From the image of the state the image of the action is taken, in a simulation of its own, and what follows is compared
with the image of what followed. So nothing has to be known of what breaks a symmetry: a contact with a pyramidal cone,
a limit on one side only, a load. The rule of `NEAR` makes a chance of the error.

Nothing here is stored but the marks. The yaw that is tried, and whether a chance below one is taken, follow from the
step alone, by sequences that fill a circle and an interval evenly; so a run that goes on has the same marks.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from euda.errors import EudaError
from euda.replay.settings import NEAR
from euda.runs import certificates
from euda.runs.config import RunConfig
from euda.symmetry.element import Element
from euda.symmetry.judging.reach import Yaws
from euda.symmetry.judging.states import visited_states
from euda.symmetry.judging.transformation import ElementImage, Posture, Transformation, first_bodies
from euda.symmetry.judging.twin import Trial, Twin
from euda.tasks.base_env import State

_STATES = 12  # from which it is told whether a mounted robot can turn itself
_GOLDEN, _SILVER = (math.sqrt(5) - 1) / 2, math.sqrt(2) - 1


class Marker:
    """Tries every transition of a run under all elements and a yaw, as far as they are in use."""

    def __init__(self, config: RunConfig, elements: Sequence[Element]) -> None:
        chance = NEAR[config.near].chance
        if chance is None:
            raise EudaError(f"near {config.near!r} tries no transitions")
        self._chance, self._repeat = chance, config.action_repeat
        env = certificates.simulation(config, config.features)
        self._twin, rng = Twin(env), np.random.default_rng(0)
        env.reset(seed=0)
        samples = visited_states(env, _STATES, rng) if first_bodies(env.model) else []
        self._yaws = Yaws(self._twin, samples, rng) if config.turns_batches else None
        sees_direction = "direction" in env.layout or env.morphology.base != "free"
        self._images = [ElementImage(element, sees_direction) for element in elements]

    def __call__(self, environment: Any, before: State, action: np.ndarray, reward: float, step: int) -> bool:
        """Whether the transition that has just been made, at a step of the environment, may be augmented."""
        decision = step // self._repeat
        steps = int(environment.steps) - int(before["steps"])
        trial = Trial(before, np.asarray(action, np.float64), self._transformations(before, decision))
        error = self._twin.follow(trial, Posture.of(environment.data), reward, steps)
        return _spread(decision, _SILVER) < self._chance(error)

    def _transformations(self, state: State, decision: int) -> list[Transformation]:
        yaw = None if self._yaws is None else self._yaws.at(state, 2 * math.pi * _spread(decision, _GOLDEN))
        return [*self._images, *([] if yaw is None else [yaw])]


def _spread(number: int, ratio: float) -> float:
    """The multiples of an irrational number, modulo 1: evenly spread in [0, 1)."""
    return number * ratio % 1.0
