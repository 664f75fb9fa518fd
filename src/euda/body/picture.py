"""What augmentation does, as a picture: a robot and its turned copies in one scene."""

from __future__ import annotations

import colorsys
import copy
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import mujoco
import numpy as np

from euda.body import rendering
from euda.body.limb_env import LimbEnv
from euda.body.robot import Robot, point
from euda.body.symmetry import Turn, target_places, yaw_matrix
from euda.errors import EudaError

_RADIUS = 1.6  # of the circle on which the copies stand, in reaches of the robot
_ARROW = 0.9  # length of the direction's arrow, in reaches of the robot


def picture(env: LimbEnv, copies: int = 6, width: int = 1280, height: int = 720) -> np.ndarray:
    """The robot in its own colours and `copies - 1` yaws of it in others: a frame [height, width, 3] (uint8).

    A yaw turns the world about the vertical through its origin, so a robot that can travel appears on a
    circle, each copy with its own direction of travel; one with a fixed base stays where it is mounted.

    >>> import euda
    >>> frame = euda.picture(euda.make("reacher_hard"), copies=3, width=64, height=48)
    >>> frame.shape, frame.dtype.name
    ((48, 64, 3), 'uint8')
    """
    if copies < 1 or width < 1 or height < 1:
        raise EudaError(
            f"a picture needs at least one copy and one pixel, not {copies} copies and {width}x{height} pixels"
        )
    _pose(env)
    reach = _reach(env)
    travels = env.morphology.base != "fixed"
    if travels:
        _put_at(env, np.array([_RADIUS * reach, 0.0]))
        _endless_floor(env.model)
    elif env.robot.target is not None:
        _put_target_ahead(env)
        _hide_target(env)
    turned = [_turned(env.robot, 2 * np.pi * k / copies) for k in range(1, copies)]
    painted = [(robot.model, robot.data, _paint(k / copies)) for k, robot in enumerate(turned, start=1)]
    robots = [env.robot, *turned]
    renderer = rendering.Renderer(env.model, width, height)
    try:
        view = _view(env, reach, travels)
        return renderer.draw(env.data, view, painted, lambda scene: _decorate(scene, robots, copies, reach))
    finally:
        renderer.close()


def save_png(path: Path, draw: Callable[[], np.ndarray]) -> None:
    """Write a frame as PNG, whole or not at all; what is wrong with the path is said before anything is drawn."""
    from PIL import Image

    if path.suffix.lower() != ".png":
        raise EudaError(f"a picture is a .png file, not {path.name!r}")
    if not path.parent.is_dir():
        raise EudaError(f"no folder {str(path.parent)!r} to write {path.name!r} into")
    part = path.with_name(f".{path.name}.part")
    try:
        part.touch()
        Image.fromarray(draw()).save(part, format="PNG")
        part.replace(path)
    except OSError as error:
        raise EudaError(f"cannot write {str(path)!r}: {error.strerror or error}") from error
    finally:
        part.unlink(missing_ok=True)


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
    model, data = env.model, env.data
    limbs = {limb.body for limb in env.morphology.limbs}
    lowest = min(_bottom(model, data, g) for g in range(model.ngeom) if int(model.geom_bodyid[g]) in limbs)
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
        env.data.qpos[:3] += by
    else:
        env.model.body_pos[env.morphology.mount] += by
    mujoco.mj_forward(env.model, env.data)


def _turned(robot: Robot, yaw: float) -> Robot:
    """A copy of the robot in a turned world."""
    model = copy.deepcopy(robot.model)
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
    for place in target_places(env.robot):
        place[:2] = 1.25 * limb[:2]
    mujoco.mj_forward(env.model, env.data)


def _hide_target(env: LimbEnv) -> None:
    """The original's target is drawn like the others, as a ball in the colour of its robot."""
    place = env.robot.target and env.robot.target.place
    geom = mujoco.mj_name2id(env.model, mujoco.mjtObj.mjOBJ_GEOM, place) if isinstance(place, str) else -1
    if geom >= 0:
        env.model.geom_matid[geom], env.model.geom_rgba[geom] = -1, 0.0


def _reach(env: LimbEnv) -> float:
    """Horizontal size of the robot (m)."""
    bodies = [limb.body for limb in env.morphology.limbs if limb.body]
    return float(np.ptp(env.data.xipos[bodies], axis=0).max())


def _colour(share: float) -> tuple[float, float, float, float]:
    return (*colorsys.hsv_to_rgb((0.08 + share) % 1.0, 0.62, 0.86), 1.0)


def _paint(share: float) -> rendering.Paint:
    def paint(geoms: Any) -> None:
        for geom in geoms:
            geom.matid, geom.rgba = -1, _colour(share)

    return paint


def _decorate(scene: Any, robots: Sequence[Robot], copies: int, reach: float) -> None:
    """Arrows along each copy's direction of travel, and the turned targets."""
    for number, robot in enumerate(robots):
        colour = np.array(_colour(number / copies), np.float32)
        if robot.direction is not None:
            start = robot.data.subtree_com[robot.morphology.mount].copy()
            start[2] = 0.03
            start += 0.5 * reach * robot.direction
            _arrow(scene, start, start + _ARROW * reach * robot.direction, 0.03 * reach, colour)
        if robot.target is not None:
            place = yaw_matrix(2 * np.pi * number / copies) @ _target(robots[0])
            _new_geom(scene, mujoco.mjtGeom.mjGEOM_SPHERE, place, 0.09 * reach, colour)


def _target(robot: Robot) -> np.ndarray:
    assert robot.target is not None
    place = robot.target.place
    return point(robot.model, robot.data, place) if isinstance(place, str) else place


def _arrow(scene: Any, start: np.ndarray, end: np.ndarray, size: float, colour: np.ndarray) -> None:
    geom = _new_geom(scene, mujoco.mjtGeom.mjGEOM_ARROW, start, size, colour)
    mujoco.mjv_connector(geom, int(mujoco.mjtGeom.mjGEOM_ARROW), size, start, end)


def _new_geom(scene: Any, kind: mujoco.mjtGeom, place: np.ndarray, size: float, colour: np.ndarray) -> Any:
    geom = scene.geoms[scene.ngeom]
    mujoco.mjv_initGeom(geom, int(kind), np.full(3, size), place, np.eye(3).ravel(), colour)
    scene.ngeom += 1
    return geom


def _view(env: LimbEnv, reach: float, travels: bool) -> mujoco.MjvCamera:
    """A free camera from above that sees the whole circle."""
    view = mujoco.MjvCamera()
    centre = np.zeros(3) if travels else env.data.xpos[env.morphology.mount].copy()
    view.lookat[:] = centre + np.array([0.0, 0.0, 0.1 * reach if travels else 0.0])
    view.distance = 5.6 * reach if travels else 5.0 * reach
    view.azimuth, view.elevation = 125.0, -40.0 if travels else -60.0
    return view
