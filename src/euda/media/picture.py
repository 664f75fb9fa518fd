"""What augmentation does, as a picture: a robot and its turned copies in one scene."""

from __future__ import annotations

import colorsys
import copy
import dataclasses
import io
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import mujoco
import numpy as np

from euda.body import rendering
from euda.body.robot import Robot, point
from euda.body.turn import Turn, world_target, yaw_matrix
from euda.errors import EudaError
from euda.media import framing, output, staging
from euda.runs import atomic_files
from euda.tasks.base_env import LimbEnv

_RADIUS = 1.15  # of the circle on which the copies stand, in sizes of the robot
_ARROW = 0.4  # length of the direction's arrow, in sizes of the robot


def picture(env: LimbEnv, copies: int = 6, width: int = 1280, height: int = 720) -> np.ndarray:
    """The robot in its own colours and `copies - 1` yaws of it in others: a frame [height, width, 3] (uint8).

    A yaw turns the world about the vertical through its origin, so a robot that can travel appears on a
    circle, each copy with its own direction of travel; one with a fixed base stays where it is mounted.

    >>> import euda
    >>> frame = euda.picture(euda.make("reacher_hard"), copies=3, width=64, height=48)
    >>> frame.shape, frame.dtype.name
    ((48, 64, 3), 'uint8')
    """
    if copies < 1:
        raise EudaError(f"a picture shows at least one copy of the robot, not {copies}")
    rendering.check_size(width, height)
    staging.pose(env)
    size = staging.size_of(env)
    travels = env.morphology.base != "fixed"
    if travels:
        staging.put_at(env, np.array([_RADIUS * size, 0.0]))
        staging.endless_floor(env.model)
    elif env.robot.target is not None:
        _put_target_ahead(env)
        _hide_target(env)
    turned = [_turned(env.robot, 2 * np.pi * k / copies) for k in range(1, copies)]
    painted = [(robot.model, robot.data, _paint(k / copies)) for k, robot in enumerate(turned, start=1)]
    robots = [env.robot, *turned]
    marks = [mark for number in range(copies) for mark in _marks(robots, number, size)]
    renderer = rendering.Renderer(env.model, width, height)
    try:
        seen = [framing.corners(r.model, r.data, staging.geoms(r)) for r in robots] + [mark.points for mark in marks]
        fovy = float(env.model.vis.global_.fovy)
        view = framing.fit(np.concatenate(seen), 125.0, -40.0 if travels else -60.0, fovy, width / height)
        return renderer.draw(env.data, view, painted, lambda scene: [mark.add(scene) for mark in marks])
    finally:
        renderer.close()


def save_png(path: Path, draw: Callable[[], np.ndarray]) -> None:
    """Write a frame as PNG, whole or not at all; what is wrong with the path is said before anything is drawn."""
    from PIL import Image

    output.check(path, ".png", "a picture is a .png")
    content = io.BytesIO()
    Image.fromarray(draw()).save(content, format="PNG")
    atomic_files.write_atomically(path, content.getvalue())


def _turned(robot: Robot, yaw: float) -> Robot:
    """A copy of the robot in a turned world, of which nothing else is seen."""
    model = copy.deepcopy(robot.model)
    staging.hide_scenery(model, robot.morphology.mount)
    data = mujoco.MjData(model)
    direction = None if robot.direction is None else robot.direction.copy()
    twin = Robot(model, data, robot.morphology, direction, robot.target)
    data.qpos[:] = robot.data.qpos
    turn = Turn(yaw)
    turn.model(twin)
    turn.state(twin, data.qpos)
    turn.direction(twin)
    mujoco.mj_forward(model, data)
    return twin


def _put_target_ahead(env: LimbEnv) -> None:
    """Beyond the limb that should reach it, so that a person sees which target belongs to which copy."""
    assert env.robot.target is not None
    limb = point(env.model, env.data, env.robot.target.limb)
    if (target := world_target(env.robot)) is not None:
        target.move_to(np.array([*(1.25 * limb[:2]), target.position()[2]]))
    mujoco.mj_forward(env.model, env.data)


def _hide_target(env: LimbEnv) -> None:
    """The original's target is drawn like the others, as a ball in the colour of its robot."""
    place = env.robot.target and env.robot.target.place
    geom = mujoco.mj_name2id(env.model, mujoco.mjtObj.mjOBJ_GEOM, place) if isinstance(place, str) else -1
    if geom >= 0:
        env.model.geom_matid[geom], env.model.geom_rgba[geom] = -1, 0.0


def _colour(share: float) -> tuple[float, float, float, float]:
    return (*colorsys.hsv_to_rgb((0.08 + share) % 1.0, 0.62, 0.86), 1.0)


def _paint(share: float) -> rendering.Paint:
    def paint(geoms: Any) -> None:
        for geom in geoms:
            geom.matid, geom.rgba = -1, _colour(share)

    return paint


@dataclasses.dataclass(frozen=True)
class _Mark:
    """An arrow or a ball beside a robot, in its colour."""

    start: np.ndarray
    end: np.ndarray
    """The arrow's tip; the ball's centre again."""
    size: float
    colour: np.ndarray

    @property
    def points(self) -> np.ndarray:
        """What must be in the frame [n, 3]."""
        ball = self.size * np.concatenate([np.eye(3), -np.eye(3)])
        return np.concatenate([self.start + ball, self.end + ball])

    def add(self, scene: mujoco.MjvScene) -> None:
        """Draw it."""
        is_ball = np.array_equal(self.start, self.end)
        kind = mujoco.mjtGeom.mjGEOM_SPHERE if is_ball else mujoco.mjtGeom.mjGEOM_ARROW
        geom = scene.geoms[scene.ngeom]
        mujoco.mjv_initGeom(geom, int(kind), np.full(3, self.size), self.start, np.eye(3).ravel(), self.colour)
        if not is_ball:  # MuJoCo draws an arrow of half the length
            mujoco.mjv_connector(geom, int(kind), self.size, self.start, 2 * self.end - self.start)
        scene.ngeom += 1


def _marks(robots: Sequence[Robot], number: int, size: float) -> Iterator[_Mark]:
    """The arrow along a copy's direction of travel, and its turned target."""
    robot, colour = robots[number], np.array(_colour(number / len(robots)), np.float32)
    if robot.direction is not None:
        start = robot.data.subtree_com[robot.morphology.mount].copy()
        start[2] = 0.03 * size
        start += 0.55 * size * robot.direction
        yield _Mark(start, start + _ARROW * size * robot.direction, 0.025 * size, colour)
    if robot.target is not None:
        place = yaw_matrix(2 * np.pi * number / len(robots)) @ _target(robots[0])
        yield _Mark(place, place, 0.07 * size, colour)


def _target(robot: Robot) -> np.ndarray:
    assert robot.target is not None
    place = robot.target.place
    return point(robot.model, robot.data, place) if isinstance(place, str) else place
