"""What a robot's finite group does, as a picture: its image under every element, and behind each the same, turned.

Every limb keeps its colour on the way to its image. So an image must look like the robot seen in a mirror (or turned),
colours included: where the raised leg is red here, the leg that is raised there must be red, too. A wrong permutation
shows as a wrong colour, a wrong sign as a wrong posture.
"""

from __future__ import annotations

import colorsys
import copy
from collections.abc import Sequence

import mujoco
import numpy as np

from euda.body import rendering
from euda.body.robot import Robot
from euda.errors import EudaError
from euda.media import framing, staging
from euda.symmetry.discovery import symmetries
from euda.symmetry.element import Element
from euda.symmetry.examination import refuse_randomised
from euda.tasks.base_env import LimbEnv

_YAWS = (-0.7, 0.9)  # of an image and of the one behind it (rad)
_CELL, _DEEPER = 1.5, 1.1  # between two robots, in sizes of the robot; and how much more between two rows
_APART = 0.6  # how much more room there is between two lines, for names
_BELOW = 0.7  # how far before an image its name stands, in sizes of the robot
_MOST, _COLUMNS = 8, 4  # elements in a picture, and in a line of it
_AZIMUTH, _ELEVATION = 90.0, -42.0
_TRUNK = (0.62, 0.62, 0.64, 1.0)
Painted = tuple[mujoco.MjModel, mujoco.MjData, rendering.Paint]


def group_picture(env: LimbEnv, width: int = 1280, height: int = 720) -> np.ndarray:
    """The images of a robot under the elements of its finite group: a frame [height, width, 3] (uint8).

    The identity comes first. Behind each image stands the same, turned by a yaw. Of large groups the first eight
    elements are shown.

    >>> import euda
    >>> from euda.media.group_picture import group_picture
    >>> frame = group_picture(euda.make("walker_run"), width=64, height=48)
    >>> frame.shape, frame.dtype.name
    ((48, 64, 3), 'uint8')
    """
    rendering.check_size(width, height)
    refuse_randomised(env)
    group = symmetries(env.model)
    if group.order == 1:
        nearest = f"; the nearest is {group.nearest}" if group.nearest else ""
        raise EudaError(f"there is nothing to draw: the robot has no symmetry beside the yaws{nearest}")
    elements = group.elements[:_MOST]
    staging.pose(env, unlike=True)
    size, colours = staging.size_of(env), _colours(env)
    images, painted, names = list[Robot](), list[Painted](), list[tuple[str, np.ndarray]]()
    for number, element in enumerate(elements):
        line, column = divmod(number, _COLUMNS)
        for row, yaw in enumerate(_YAWS):
            depth = _DEEPER * (line * len(_YAWS) + row) + _APART * line
            place = _CELL * size * np.array([column, depth, 0.0])
            images.append(_image(env.robot, element.turned(_facing(element, yaw)), place))
            painted.append(_painted(images[-1], element, colours))
            if not row:
                names.append((element.name, place - [0.0, _BELOW * size, 0.0]))
    return _drawn(env, images, painted, names, width, height)


def _facing(element: Element, yaw: float) -> float:
    """The yaw under which an image is what a photograph of the robot shows: for mirrors, one seen in a mirror."""
    return np.pi - yaw if element.is_mirror else yaw


def _drawn(
    env: LimbEnv, images: Sequence[Robot], painted: Sequence[Painted], names: Sequence[tuple[str, np.ndarray]],
    width: int, height: int,
) -> np.ndarray:  # fmt: skip
    staging.hide_all_but_floor(env.model)
    staging.light_evenly(env.model)
    renderer = rendering.Renderer(env.model, width, height, max_geoms=10_000)
    try:
        seen = [framing.corners(one.model, one.data, staging.geoms(one)) for one in images]
        below = np.array([place for _, place in names])
        points = np.concatenate([*seen, below, below - [0.0, 0.3 * np.ptp(seen[0], axis=0).max(), 0.0]])
        fovy = float(env.model.vis.global_.fovy)
        camera = framing.fit(points, _AZIMUTH, _ELEVATION, fovy, width / height)
        frame = renderer.draw(env.data, camera, painted)
    finally:
        renderer.close()
    return _labelled(frame, camera, fovy, names)


def _image(robot: Robot, element: Element, place: np.ndarray) -> Robot:
    """The robot in the image of its world, moved to a place on the floor."""
    model = copy.deepcopy(robot.model)
    staging.hide_scenery(model, robot.morphology.mount)
    staging.hide_sites(model)
    data = mujoco.MjData(model)
    direction = None if robot.direction is None else robot.direction.copy()
    image = Robot(model, data, robot.morphology, direction, robot.target)
    data.qpos[:] = robot.data.qpos
    mujoco.mj_forward(model, data)
    element.apply(image)
    mujoco.mj_forward(model, data)
    points = framing.corners(model, data, staging.geoms(image))
    middle = (points.min(axis=0) + points.max(axis=0)) / 2
    staging.shift(image, np.array([*(place - middle)[:2], 0.0]))
    return image


def _colours(env: LimbEnv) -> np.ndarray:
    """A colour for every body [nbody, 4]: a hue for each end of the tree, paler towards it; grey where ends meet."""
    model, root = env.model, env.morphology.root.body
    parents, colours = model.body_parentid, np.tile(np.array(_TRUNK), (model.nbody, 1))
    moving = [body for body in range(1, model.nbody) if framing.top(model, body) == env.morphology.mount]
    ends = [body for body in moving if body not in parents]
    chains = {end: [end] for end in ends}
    for chain in chains.values():
        while parents[chain[-1]] not in (root, 0):
            chain.append(int(parents[chain[-1]]))
    for number, chain in enumerate(chains.values()):
        for height, body in enumerate(chain):
            if sum(body in other for other in chains.values()) == 1 and body != root:
                paler = 1 - height / len(chain)
                colours[body, :3] = colorsys.hsv_to_rgb(number / len(ends), 0.95 - 0.55 * paler, 0.9)
    return colours


def _painted(image: Robot, element: Element, colours: np.ndarray) -> Painted:
    """The image with every limb in the colour of the limb that it is the image of."""
    own = np.empty_like(colours)
    own[element.bodies.image] = colours
    bodies, kind = image.model.geom_bodyid, int(mujoco.mjtObj.mjOBJ_GEOM)

    def paint(geoms: Sequence[mujoco.MjvGeom]) -> None:
        for geom in geoms:
            if geom.objtype == kind:
                geom.matid, geom.rgba = -1, own[bodies[geom.objid]].astype(np.float32)
                geom.emission = geom.specular = geom.reflectance = 0.0  # of the material that it had

    return image.model, image.data, paint


def _labelled(
    frame: np.ndarray, camera: mujoco.MjvCamera, fovy: float, names: Sequence[tuple[str, np.ndarray]]
) -> np.ndarray:
    """The frame with a name below each image of the first row."""
    from PIL import Image, ImageDraw, ImageFont

    height, width = frame.shape[:2]
    picture = Image.fromarray(frame)
    draw = ImageDraw.Draw(picture)
    font = ImageFont.load_default(size=max(9, height // 40))
    forward, right, up = framing.axes(camera.azimuth, camera.elevation)
    slope = np.tan(np.radians(fovy) / 2)
    for name, place in names:
        seen = place - camera.lookat + camera.distance * forward
        depth = seen @ forward
        x = width / 2 * (1 + (seen @ right) / (depth * slope * width / height))
        y = height / 2 * (1 - (seen @ up) / (depth * slope))
        draw.text((x, y), _broken(name), fill="white", font=font, anchor="ma", align="center", stroke_width=1,
                  stroke_fill="black")  # fmt: skip
    return np.asarray(picture)


def _broken(name: str) -> str:
    """A name in lines of a few words."""
    words, lines = name.split(), [""]
    for word in words:
        if len(lines[-1]) + len(word) > 12 and lines[-1]:
            lines.append("")
        lines[-1] = f"{lines[-1]} {word}".strip()
    return "\n".join(lines)
