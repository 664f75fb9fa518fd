"""Can a robot have the state that a yaw of the data speaks of? Then its outcome must agree.

The mounting of an arm never turns for its agent. A turned transition says: from the turned observation, the same
action leads to the turned next observation. Where the robot's own joints can bring it into a state with that
observation, the simulator decides whether this is true (`OwnYaw`). Where no state of the robot looks like that, the
turned transition contradicts nothing and helps little; then only the turned world can be compared (`WorldYaw`).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np

from euda.body.layout import Kind, Layout
from euda.symmetry.judging.transformation import OwnYaw, Transformation, WorldYaw, first_bodies
from euda.symmetry.judging.twin import Twin
from euda.tasks.base_env import State

Case = Literal["free", "never reached", "reached"]
_SAME = 1e-6  # relative difference of two observations of the same state; features are float32 for an agent
_TRIES = 12
_HALVINGS = 5  # how often a yaw is halved, to either side, until a joint with limits allows it


class Yaws:
    """Draws the yaws to try, as the robot can make them; knows in which case the robot is."""

    def __init__(self, twin: Twin, samples: Sequence[State], rng: np.random.Generator) -> None:
        self._twin = twin
        # In the plane the direction of travel is part of the mounting and turns with it; a free robot's direction
        # may only turn if the agent sees it.
        self.sees_direction = "direction" in twin.layout or twin.env.morphology.base != "free"
        self.case: Case = "free"
        if first_bodies(twin.env.model):
            self.case = "reached" if self._is_reached(samples[:_TRIES], rng) else "never reached"

    def draw(self, state: State, count: int, rng: np.random.Generator, fold: int = 0) -> list[Transformation]:
        """Up to `count` random yaws of a state; with a `fold`, those that repeat so many times in a turn."""
        if fold:
            chosen = rng.choice(np.arange(1, fold), min(count, fold - 1), replace=False)
            found = [self.at(state, 2 * np.pi * float(k) / fold, in_part=False) for k in chosen]
        else:
            found = [self.at(state, float(angle)) for angle in rng.uniform(-np.pi, np.pi, count)]
        return [yaw for yaw in found if yaw is not None]

    def at(self, state: State, angle: float, in_part: bool = True) -> Transformation | None:
        """A yaw of a state; None if the robot's joints do not allow it, nor (with `in_part`) a part of it."""
        if self.case != "reached":
            return WorldYaw(angle, self.sees_direction)
        if in_part:
            return self._possible(state, angle)
        yaw = OwnYaw(angle, self.sees_direction)
        return yaw if self._twin.transform(state, yaw) else None

    def _possible(self, state: State, angle: float) -> OwnYaw | None:
        """The yaw, or as large a part of it, to either side, as the robot's joints allow from here."""
        for halving in range(_HALVINGS):
            for sign in (1.0, -1.0):
                yaw = OwnYaw(sign * angle / 2**halving, self.sees_direction)
                if self._twin.transform(state, yaw):
                    return yaw
        return None

    def _is_reached(self, samples: Sequence[State], rng: np.random.Generator) -> bool:
        """Whether what the robot observes after turning itself is the turned observation."""
        twin, layout = self._twin, self._twin.layout
        before, after, expected = [], [], []
        for state in samples:
            yaw = self._possible(state, float(rng.uniform(0.3, 3.0) * rng.choice((-1.0, 1.0))))
            if yaw is None:
                continue
            twin.place(state)
            before.append(twin.observe())
            expected.append(yaw.observation(layout, before[-1]))
            twin.transform(state, yaw)
            after.append(twin.observe())
        if not before:
            return False
        seen, found, wanted = np.array(before), np.array(after), np.array(expected)
        counts = ~constant(layout, seen, found)
        scale = np.maximum(1e-3, np.abs(seen).max(axis=0))
        return bool((differences(layout, found, wanted)[:, counts] <= _SAME * scale[counts]).all())


def constant(layout: Layout, original: np.ndarray, found: np.ndarray) -> np.ndarray:
    """Entries [dim] of elements that never change, not even when the robot turns itself: they show its mounting.

    An axis of a slide on the world is one. A network may heed it or not, so it does not excuse a contradiction.
    """
    still = (np.ptp(original, axis=0) <= 1e-12) & (np.abs(found - original).max(axis=0) <= 1e-12)
    for field in layout:
        where = layout.slices[field.name]
        elements = still[where].reshape(field.count, field.kind.width)
        still[where] = np.repeat(elements.all(axis=1), field.kind.width)
    return still


def differences(layout: Layout, found: np.ndarray, expected: np.ndarray) -> np.ndarray:
    """Absolute differences [rows, dim]; angles modulo a turn, quaternions modulo their sign."""
    result = np.abs(found - expected)
    for field in layout:
        where = layout.slices[field.name]
        if field.kind is Kind.HEADING:
            wrapped = np.remainder(found[:, where] - expected[:, where] + np.pi, 2 * np.pi) - np.pi
            result[:, where] = np.abs(wrapped)
        if field.kind is Kind.QUATERNION:
            for start in range(where.start, where.stop, 4):
                entries = slice(start, start + 4)
                sums = np.abs(found[:, entries] + expected[:, entries])
                flipped = sums.max(axis=1) < result[:, entries].max(axis=1)
                result[flipped, entries] = sums[flipped]
    return result
