"""Robot and readings → observation: the feature sets by name, and the observer that reads one of them.

`limb` is the paper's equation made sufficient, `limb-paper` the equation to the letter, `joint` dm_control's own state.
A feature set of one's own is one more row of `FEATURES`.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from euda.body.joint_features import joint_readings
from euda.body.layout import Layout
from euda.body.limb_features import limb_paper_readings, limb_readings
from euda.body.readings import Make, Reading, direction
from euda.body.robot import Robot, Scene
from euda.errors import unknown


@dataclasses.dataclass(frozen=True)
class Senses:
    """What a task or a user observes beside the limbs and joints that every robot has."""

    sensory: tuple[Make, ...] = ()
    """In every feature set that adds sensors."""
    joint: tuple[Make, ...] | None = None
    """The whole of `joint`, where a task says what dm_control observes; None: joints as they come."""
    limb_only: tuple[Make, ...] = ()
    """In `limb` only."""
    paper_only: tuple[Make, ...] = ()
    """In `limb-paper` only."""


@dataclasses.dataclass(frozen=True)
class FeatureRow:
    """A feature set: what is read of a robot."""

    make: Callable[[Robot, Senses], Sequence[Reading]]
    text: str
    """What it is, in a few words."""


def _limb(robot: Robot, senses: Senses) -> list[Reading]:
    return limb_readings(robot, (*senses.sensory, *senses.limb_only))


def _limb_paper(robot: Robot, senses: Senses) -> list[Reading]:
    return limb_paper_readings(robot, (*senses.paper_only, *senses.sensory))


def _joint(robot: Robot, senses: Senses) -> list[Reading]:
    if senses.joint is None:
        return joint_readings(robot, senses.sensory)
    parts = [make(robot) for make in senses.joint]
    return [*parts, direction(robot)] if robot.is_direction_drawn else parts


FEATURES: dict[str, FeatureRow] = {
    "limb": FeatureRow(_limb, "positions, velocities and axes of limbs, enough to know the state"),
    "limb-paper": FeatureRow(_limb_paper, "the paper's limb features to the letter"),
    "joint": FeatureRow(_joint, "joint angles and rates, as dm_control observes them"),
}
"""Feature sets by name."""


def find_features(name: str) -> FeatureRow:
    """The feature set of that name."""
    if name not in FEATURES:
        raise unknown("features", name, FEATURES)
    return FEATURES[name]


def observer(robot: Robot, features: str, senses: Senses | None = None) -> Observer:
    """What an agent observes of a robot."""
    return Observer(robot, find_features(features).make(robot, Senses() if senses is None else senses))


class Observer:
    """Reads one robot's observation. `observe` returns a fresh float32 array each time."""

    def __init__(self, robot: Robot, parts: Sequence[Reading]) -> None:
        self.layout = Layout(tuple(part.field for part in parts))
        self._robot, self._parts = robot, tuple(parts)

    def read(self, xp: Any, scene: Scene) -> Any:
        """The observation [dim] of a scene, in the numbers of its array namespace: a pure function."""
        observation = xp.concatenate([part.read(xp, scene).ravel() for part in self._parts])
        return self.layout.canonical(observation) if self.layout.has_choice else observation

    def observe(self) -> np.ndarray:
        """The observation [dim], float32."""
        return self.observe_exactly().astype(np.float32)

    def observe_exactly(self) -> np.ndarray:
        """The observation [dim] in the simulator's own float64."""
        return self.read(np, self._robot.scene)
