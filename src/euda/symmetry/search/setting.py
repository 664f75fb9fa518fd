"""(MjModel, pose, element) → where everything should be, and where it is instead."""

from __future__ import annotations

import dataclasses
import functools

import mujoco
import numpy as np

from euda.symmetry.element import Element
from euda.symmetry.images import NOWHERE
from euda.symmetry.search.assignment import assign
from euda.symmetry.search.pose import BALL, HINGE, Pose
from euda.symmetry.search.shapes import colliding, distance

ASTRAY = 0.05
"""Further than this share of the robot's size from where its image should be, nothing is an image."""


@dataclasses.dataclass(frozen=True)
class Setting:
    """An element beside the model and the pose at which it was found."""

    model: mujoco.MjModel
    pose: Pose
    element: Element
    size: float
    """Of the robot (m)."""

    def goal(self, body: int, point: np.ndarray) -> np.ndarray:
        """Where a point [3] of a body's frame should go, in world axes at the pose."""
        bodies, image = self.element.bodies, int(self.element.bodies.image[body])
        return self.pose.place[image] + self.pose.frame[image] @ (bodies.matrix[body] @ point + bodies.offset[body])

    @functools.cached_property
    def misplaced(self) -> np.ndarray:
        """[nbody, 3] how far each body's image is from where it should be, by its joints, in world axes (m).

        Where its joints do not show it (along a hinge), a body is as misplaced as the one it hangs on.
        """
        model, result = self.model, np.zeros((self.model.nbody, 3))
        for body in range(1, model.nbody):
            result[body] = result[int(model.body_parentid[body])]
            first = int(model.body_jntadr[body])
            joints = range(first, first + int(model.body_jntnum[body])) if first >= 0 else ()
            rows = [self._across(joint, result[body]) for joint in joints if model.jnt_type[joint] in (HINGE, BALL)]
            if rows:
                across, gaps = (np.concatenate(parts) for parts in zip(*rows, strict=True))
                result[body] += np.linalg.lstsq(across, gaps, rcond=1e-9)[0]
        return result

    def _across(self, joint: int, known: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Directions [3, 3] in which a joint shows where its body is, and what is missing there beyond `known` [3]."""
        other = int(self.element.joints.image[joint])
        gap = self.goal(int(self.model.jnt_bodyid[joint]), self.model.jnt_pos[joint]) - self.pose.anchor[other] - known
        axis = self.pose.axis[other] * (self.model.jnt_type[joint] == HINGE)
        across = np.eye(3) - np.outer(axis, axis)
        return across, across @ gap

    def local_map(self, body: int) -> tuple[np.ndarray, np.ndarray]:
        """(turn, shift) from the frame of a body to that of its image, without what misplaces the body as a whole."""
        bodies, image = self.element.bodies, int(self.element.bodies.image[body])
        return bodies.matrix[body], bodies.offset[body] - self.pose.frame[image].T @ self.misplaced[body]

    @functools.cached_property
    def geoms(self) -> tuple[np.ndarray, np.ndarray]:
        """[ngeom] the image of each geom that collides (else `NOWHERE`), and the distance of their surfaces (m)."""
        model, element = self.model, self.element
        image, apart = np.full(model.ngeom, NOWHERE), np.zeros(model.ngeom)
        touching = np.flatnonzero(colliding(model) & (model.geom_bodyid != 0))
        for body in np.unique(model.geom_bodyid[touching]).tolist():
            turn, shift = self.local_map(body)
            own = touching[model.geom_bodyid[touching] == body]
            there = touching[model.geom_bodyid[touching] == element.bodies.image[body]]
            gaps = np.array([[distance(model, int(g), int(k), turn, shift) for k in there] for g in own])
            if not gaps.size:
                continue
            for row, column in zip(*assign(np.minimum(gaps, 1e3 * self.size)), strict=True):
                if gaps[row, column] <= ASTRAY * self.size:
                    image[own[row]], apart[own[row]] = there[column], gaps[row, column]
        return image, apart
