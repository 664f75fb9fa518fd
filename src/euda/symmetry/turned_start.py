"""Where an episode begins → the same beginning in a world that was turned, or whose left and right were exchanged.

Start, target and direction of travel go to their images together, so a robot that knows no world axes has the same
episode before it. A free robot is turned with all that is free; a robot on a mounting turns itself, if its own joints
can (then it meets such starts anyway), and otherwise its mounting turns.
"""

from __future__ import annotations

import math

import numpy as np

from euda.body.turn import put_back, turned_model_arrays
from euda.errors import EudaError
from euda.symmetry.discovery import symmetries
from euda.symmetry.element import Element
from euda.symmetry.judging.reach import Yaws
from euda.symmetry.judging.transformation import ElementImage, OwnYaw, Transformation, WorldYaw
from euda.symmetry.judging.twin import Twin
from euda.tasks.base_env import LimbEnv

_LEFT_RIGHT = np.diag([1.0, -1.0, 1.0])
_LOOKS = 4  # starts by which a mounted robot shows whether it can turn itself


class TurnedStart:
    """Begins episodes in the images of their starts; for environments that were made alike and never reset."""

    def __init__(self, env: LimbEnv) -> None:
        self._places, self._fresh = turned_model_arrays(env.model), env.get_state()
        self._turns_itself = _turns_itself(env)

    def begin(self, env: LimbEnv, seed: int, yaw: float, mirror: Element | None = None) -> np.ndarray:
        """Start the episode of a seed in its mirror image, if there is one, then turned (rad): the observation."""
        put_back(env.model, self._places)
        env.set_state(self._fresh)  # with the direction of travel as it was
        observation, _ = env.reset(seed=seed)
        for transformation in self._transformations(yaw, mirror):
            if not transformation.apply(env.robot):
                degrees = f"{math.degrees(yaw):.4g}°"
                raise EudaError(f"{env.task} cannot start turned by {degrees}: a joint would have to leave its range")
            env.begin_here()
            observation = env.observe()
        return observation

    def _transformations(self, yaw: float, mirror: Element | None) -> list[Transformation]:
        found: list[Transformation] = [] if mirror is None else [ElementImage(mirror)]
        if yaw % (2 * math.pi):
            found.append(OwnYaw(yaw) if self._turns_itself else WorldYaw(yaw))
        return found


def mirror_of(env: LimbEnv) -> Element:
    """The mirror of the robot that exchanges left and right, or the one that is nearest to that."""
    group = symmetries(env.model)
    mirrors = [element for element in group if element.is_mirror]
    if not mirrors:
        raise EudaError(f"{env.task} has no mirror: its symmetries are {', '.join(e.name for e in group)}")
    return min(mirrors, key=lambda element: float(np.linalg.norm(element.robot_map - _LEFT_RIGHT)))


def _turns_itself(env: LimbEnv) -> bool:
    if env.morphology.base != "fixed":
        return False
    starts = []
    for seed in range(_LOOKS):
        env.reset(seed=seed)
        starts.append(env.get_state())
    return Yaws(Twin(env), starts, np.random.default_rng(0)).case == "reached"
