"""A robot on the stage of a picture: a pose to look at, on the floor, with nothing in the way."""

from __future__ import annotations

import mujoco
import numpy as np

from euda.body.robot import Robot
from euda.errors import EudaError
from euda.media import framing
from euda.tasks.base_env import LimbEnv

_HIDDEN = 5  # the last of MuJoCo's groups of geoms and sites, which is not drawn


def pose(env: LimbEnv, *, unlike: bool = False) -> None:
    """The model's own pose with bent joints, standing on the floor; `unlike`: no two limbs bent alike."""
    env.reset(seed=1)
    model, data = env.model, env.data
    if env.morphology.base == "fixed":
        return
    data.qpos[:] = model.qpos0
    bend = np.zeros(model.nv)
    limbs = env.morphology.counted[1:]
    for number, limb in enumerate(limbs):
        share = (number + 1) / len(limbs) if unlike else 1.0 if number % 2 else 0.5
        for joint in limb.joints:
            bend[int(model.jnt_dofadr[joint])] = share * _bend(model, joint)
    mujoco.mj_integratePos(model, data.qpos, bend, 1.0)
    mujoco.mj_forward(model, data)
    _stand(env)


def _bend(model: mujoco.MjModel, joint: int) -> float:
    """A visible angle towards the farther limit (rad): a quarter of it, or most of a narrow one."""
    low, high = model.jnt_range[joint] if model.jnt_limited[joint] else (-0.6, 0.6)
    away = high if abs(high) > abs(low) else low
    share = 0.25 if abs(away) > 0.5 else 0.8
    return float(share * np.clip(away, -1.2, 1.2))


def _stand(env: LimbEnv) -> None:
    """Lower or lift the root until the lowest geom touches the floor."""
    lowest = min((_bottom(env.model, env.data, geom) for geom in geoms(env.robot)), default=0.0)
    shift(env, np.array([0.0, 0.0, -lowest]))


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


def put_at(env: LimbEnv, place: np.ndarray) -> None:
    """Move the robot so that its root is above a point [2] of the floor."""
    root = env.data.xpos[env.morphology.mount, :2]
    shift(env, np.array([*(place - root), 0.0]))


def shift(env: LimbEnv | Robot, by: np.ndarray) -> None:
    """Move the whole robot: by its state where it is free, by its mounting otherwise."""
    if env.morphology.base == "free":
        start = int(env.model.jnt_qposadr[env.morphology.root.joints[0]])
        env.data.qpos[start : start + 3] += by
    else:
        env.model.body_pos[env.morphology.mount] += by
    mujoco.mj_forward(env.model, env.data)


def hide_scenery(model: mujoco.MjModel, mount: int) -> None:
    """Hide what stands still and is not the robot: the first robot's scene has it already."""
    ours = {body for body in range(model.nbody) if framing.top(model, body) == mount}
    for bodies, groups in ((model.geom_bodyid, model.geom_group), (model.site_bodyid, model.site_group)):
        for i, body in enumerate(bodies):
            if model.body_weldid[body] == 0 and int(body) not in ours:
                groups[i] = _HIDDEN


def hide_sites(model: mujoco.MjModel) -> None:
    """Draw no sites: they mark places on limbs, and have no colour of their limb."""
    model.site_group[:] = _HIDDEN


def hide_all_but_floor(model: mujoco.MjModel) -> None:
    """Draw nothing but level floors, to the horizon: the images of a robot are drawn into their scene."""
    hide_sites(model)
    for geom in range(model.ngeom):
        is_plane = model.geom_type[geom] == int(mujoco.mjtGeom.mjGEOM_PLANE) and model.geom_bodyid[geom] == 0
        if not is_plane or np.abs(model.geom_quat[geom, 1:3]).max() > 1e-6:  # turned about a horizontal axis: a wall
            model.geom_group[geom] = _HIDDEN
    endless_floor(model)
    model.mat_reflectance[:] = 0.0


def light_evenly(model: mujoco.MjModel) -> None:
    """Light from the camera alone, so that a colour looks the same wherever it stands."""
    model.light_active[:] = 0
    light = model.vis.headlight
    light.active, light.ambient[:], light.diffuse[:], light.specular[:] = 1, 0.45, 0.55, 0.0


def endless_floor(model: mujoco.MjModel) -> None:
    """Draw level floors to the horizon: dm_control's planar tasks have a narrow strip."""
    for geom in range(model.ngeom):
        if model.geom_type[geom] == int(mujoco.mjtGeom.mjGEOM_PLANE) and model.geom_bodyid[geom] == 0:
            model.geom_size[geom, :2] = 0.0
            model.geom_pos[geom, :2] = 0.0


def size_of(env: LimbEnv) -> float:
    """The longest side of the box around the robot (m)."""
    points = framing.corners(env.model, env.data, geoms(env.robot))
    if not len(points):
        raise EudaError(f"there is nothing to draw: {env.morphology.root.name!r} and its limbs have no geoms")
    return float(np.ptp(points, axis=0).max())


def geoms(robot: Robot) -> list[int]:
    """The geoms of a robot."""
    return framing.geoms_of(robot.model, robot.morphology.mount)
