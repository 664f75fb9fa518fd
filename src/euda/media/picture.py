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
from euda.media import framing, output
from euda.runs import atomic_files
from euda.tasks.base_env import LimbEnv

_RADIUS = 1.15  # of the circle on which the copies stand, in sizes of the robot
_ARROW = 0.4  # length of the direction's arrow, in sizes of the robot
_HIDDEN = 5  # the last of MuJoCo's groups of geoms and sites, which is not drawn


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
    _pose(env)
    size = _size(env)
    travels = env.morphology.base != "fixed"
    if travels:
        _put_at(env, np.array([_RADIUS * size, 0.0]))
        _endless_floor(env.model)
    elif env.robot.target is not None:
        _put_target_ahead(env)
        _hide_target(env)
    turned = [_turned(env.robot, 2 * np.pi * k / copies) for k in range(1, copies)]
    painted = [(robot.model, robot.data, _paint(k / copies)) for k, robot in enumerate(turned, start=1)]
    robots = [env.robot, *turned]
    marks = [mark for number in range(copies) for mark in _marks(robots, number, size)]
    renderer = rendering.Renderer(env.model, width, height)
    try:
        seen = [framing.corners(r.model, r.data, _geoms(r)) for r in robots] + [mark.points for mark in marks]
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


def _pose(env: LimbEnv) -> None:
    """The model's own pose with bent joints, standing on the floor."""
    env.reset(seed=1)
    model, data = env.model, env.data
    if env.morphology.base == "fixed":
        return
    data.qpos[:] = model.qpos0
    bend = np.zeros(model.nv)
    for number, limb in enumerate(env.morphology.counted[1:]):
        for joint in limb.joints:
            bend[int(model.jnt_dofadr[joint])] = _bend(model, joint, number)
    mujoco.mj_integratePos(model, data.qpos, bend, 1.0)
    mujoco.mj_forward(model, data)
    _stand(env)


def _bend(model: mujoco.MjModel, joint: int, number: int) -> float:
    """A visible angle towards the farther limit (rad): a quarter of it, or most of a narrow one, left unlike right."""
    low, high = model.jnt_range[joint] if model.jnt_limited[joint] else (-0.6, 0.6)
    away = high if abs(high) > abs(low) else low
    share = 0.25 if abs(away) > 0.5 else 0.8
    return float(share * np.clip(away, -1.2, 1.2) * (1.0 if number % 2 else 0.5))


def _stand(env: LimbEnv) -> None:
    """Lower or lift the root until the lowest geom touches the floor."""
    lowest = min((_bottom(env.model, env.data, geom) for geom in _geoms(env.robot)), default=0.0)
    _shift(env, np.array([0.0, 0.0, -lowest]))


def _bottom(model: mujoco.MjModel, data: mujoco.MjData, geom: int) -> float:
    """Height of the lowest point of a geom: exact for spheres and capsules, else of its local bounding box."""
    matrix, place = data.geom_xmat[geom].reshape(3, 3), data.geom_xpos[geom, 2]
    kind, size = mujoco.mjtGeom(model.geom_type[geom]), model.geom_size[geom]
    if kind == mujoco.mjtGeom.mjGEOM_SPHERE:
        return float(place - size[0])
    if kind == mujoco.mjtGeom.mjGEOM_CAPSULE:
        return float(place - abs(matrix[2, 2]) * size[1] - size[0])
    centre, half = model.geom_aabb[geom, :3], model.geom_aabb[geom, 3:]
    return float(place + matrix[2] @ centre - np.abs(matrix[2]) @ half)


def _put_at(env: LimbEnv, place: np.ndarray) -> None:
    root = env.data.xpos[env.morphology.mount, :2]
    _shift(env, np.array([*(place - root), 0.0]))


def _shift(env: LimbEnv, by: np.ndarray) -> None:
    """Move the whole robot: by its state where it is free, by its mounting otherwise."""
    if env.morphology.base == "free":
        start = int(env.model.jnt_qposadr[env.morphology.root.joints[0]])
        env.data.qpos[start : start + 3] += by
    else:
        env.model.body_pos[env.morphology.mount] += by
    mujoco.mj_forward(env.model, env.data)


def _turned(robot: Robot, yaw: float) -> Robot:
    """A copy of the robot in a turned world, of which nothing else is seen."""
    model = copy.deepcopy(robot.model)
    _hide_scenery(model, robot.morphology.mount)
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


def _hide_scenery(model: mujoco.MjModel, mount: int) -> None:
    """Hide what stands still and is not the robot: the first robot's scene has it already."""
    ours = {body for body in range(model.nbody) if framing.top(model, body) == mount}
    for bodies, groups in ((model.geom_bodyid, model.geom_group), (model.site_bodyid, model.site_group)):
        for i, body in enumerate(bodies):
            if model.body_weldid[body] == 0 and int(body) not in ours:
                groups[i] = _HIDDEN


def _endless_floor(model: mujoco.MjModel) -> None:
    """Draw level floors to the horizon: dm_control's planar tasks have a narrow strip."""
    for geom in range(model.ngeom):
        if model.geom_type[geom] == int(mujoco.mjtGeom.mjGEOM_PLANE) and model.geom_bodyid[geom] == 0:
            model.geom_size[geom, :2] = 0.0
            model.geom_pos[geom, :2] = 0.0


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


def _size(env: LimbEnv) -> float:
    """The longest side of the box around the robot (m)."""
    points = framing.corners(env.model, env.data, _geoms(env.robot))
    if not len(points):
        raise EudaError(f"there is nothing to draw: {env.morphology.root.name!r} and its limbs have no geoms")
    return float(np.ptp(points, axis=0).max())


def _geoms(robot: Robot) -> list[int]:
    return framing.geoms_of(robot.model, robot.morphology.mount)


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
