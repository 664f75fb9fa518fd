"""Twins → a scene in the browser: the robot in its own colours, its twins translucent over it, what they aim at."""

# pyright: reportMissingImports=false
# viser is an extra: it is not in the lock.
from __future__ import annotations

import colorsys
from typing import Any

import mujoco
import numpy as np

from euda.media import framing
from euda.media.shapes import Shape, colour, is_drawn, shapes
from euda.media.twins import Twin, Twins

_OPACITY = 0.5
_CELL = 1.0  # metres between the lines of the floor
_FLIP = np.array([1.0, -1.0, 1.0])
_PRECISION = 2.0**-12
"""Positions (m) and quaternions are rounded to this, a quarter of a millimetre: then recordings compress well."""


class BrowserScene:
    """What a viser server shows; `update` brings it to where the twins are."""

    def __init__(self, server: Any, twins: Twins, apart: float = 0.0) -> None:
        self._server, self._twins = server, twins
        self._robots = [_DrawnTwin(server, twin, number) for number, twin in enumerate(twins.all)]
        self.shown = [True] * len(twins.all)
        """Which of them are drawn."""
        robot = twins.robot.env.robot
        self._follows = robot.morphology.base != "fixed"
        points = framing.corners(robot.model, robot.data, framing.geoms_of(robot.model, robot.morphology.mount))
        self.size = float(np.ptp(points, axis=0).max())
        self.apart = apart * self.size
        """Metres between one and the next, side by side; 0 lays all over each other."""
        self._scenery = _scenery(server, twins.robot)
        self._floor = _floor(server, robot.model)
        middle = (points.min(axis=0) + points.max(axis=0)) / 2 - self._offset(twins.robot.root)
        _look(server, middle, self.size + 0.4 * self.apart * len(twins.all), self._follows, is_behind=apart > 0)
        self.update()

    def update(self) -> None:
        """Draw the twins where they are now; a robot that travels stays in the middle, and the floor moves."""
        root = self._twins.robot.root
        offset = -self._offset(root)
        with self._server.atomic():
            for number, robot in enumerate(self._robots):
                robot.update(offset + self._aside(number), self.shown[number])
            for handle in self._scenery:
                handle.position = _rounded(offset)
            if self._floor is not None:
                self._floor.position = _rounded(offset % _CELL)

    def _offset(self, root: np.ndarray) -> np.ndarray:
        """What is in the middle of the picture [3]: a robot that travels, or the origin."""
        return np.array([root[0], root[1], 0.0]) if self._follows else np.zeros(3)

    def _aside(self, number: int) -> np.ndarray:
        """Where one stands beside the robot: left and right of it in turns."""
        place = (number + 1) // 2 * (-1) ** number
        return np.array([0.0, self.apart * place, 0.0])


class _DrawnTwin:
    """The meshes of one twin."""

    def __init__(self, server: Any, twin: Twin, number: int) -> None:
        self._twin, self._is_mirrored = twin, np.linalg.det(twin.world.map) < 0
        model, mount = twin.env.robot.model, twin.env.robot.morphology.mount
        paint = None if number == 0 else ghost_colour(number)
        drawn = [geom for geom in framing.geoms_of(model, mount) if is_drawn(model, geom)]
        self._parts = [
            (shape.geoms, self._add(server, f"/twin{number}/shape{k}", model, shape, paint))
            for k, shape in enumerate(shapes(model, drawn))
        ]
        self._target = None
        if twin.target is not None:
            radius = 0.05 * max(float(np.ptp(twin.env.robot.data.xpos, axis=0).max()), 0.2)
            name, rgb = f"/twin{number}/target", paint or (230, 80, 60)
            self._target = server.scene.add_icosphere(name, radius, rgb, opacity=None if paint is None else _OPACITY)

    def _add(self, server: Any, name: str, model: mujoco.MjModel, shape: Shape, paint: Any) -> Any:
        """A mesh with its geoms; a mirrored twin has mirrored meshes."""
        vertices, faces = shape.vertices, shape.faces
        if self._is_mirrored:
            vertices, faces = vertices * _FLIP, faces[:, ::-1]
        own = [(255 * colour(model, geom)[:3]).round() for geom in shape.geoms]
        opacities = [float(colour(model, geom)[3]) if paint is None else _OPACITY for geom in shape.geoms]
        count = len(shape.geoms)
        return server.scene.add_batched_meshes_simple(
            name, vertices.astype(np.float32), faces.astype(np.uint32), np.tile([1.0, 0.0, 0.0, 0.0], (count, 1)),
            np.zeros((count, 3)), batched_scales=shape.scales.astype(np.float32),
            batched_colors=np.array(own if paint is None else [paint] * count, np.uint8),
            batched_opacities=None if min(opacities) == 1 else np.array(opacities, np.float32),
            flat_shading=shape.has_edges, lod="off", cast_shadow=paint is None, receive_shadow=False,
        )  # fmt: skip

    def update(self, offset: np.ndarray, is_shown: bool) -> None:
        """Move the meshes to where their geoms are."""
        twin, data = self._twin, self._twin.env.robot.data
        for geoms, handle in self._parts:
            if handle.visible != is_shown:
                handle.visible = is_shown
            if not is_shown:
                continue
            matrices = twin.turned(data.geom_xmat[geoms].reshape(-1, 3, 3))
            if self._is_mirrored:
                matrices = matrices * _FLIP  # of the mesh's own axes, as the mesh itself is
            handle.batched_positions = _rounded(twin.place(data.geom_xpos[geoms]) + offset)
            handle.batched_wxyzs = _rounded(_quaternions(matrices))
        if self._target is not None and (place := twin.target) is not None:
            self._target.visible = is_shown
            self._target.position = _rounded(place + offset)


def ghost_colour(number: int) -> tuple[int, int, int]:
    """Of the twin of that number, from 1 on."""
    red, green, blue = colorsys.hsv_to_rgb((0.58 + 0.37 * (number - 1)) % 1.0, 0.75, 0.95)
    return round(255 * red), round(255 * green), round(255 * blue)


def _scenery(server: Any, robot: Twin) -> list[Any]:
    """What stands still and is not the robot, once; targets are drawn for each twin."""
    model, data = robot.env.robot.model, robot.env.robot.data
    ours = set(framing.geoms_of(model, robot.env.robot.morphology.mount))
    aim = robot.env.robot.target and robot.env.robot.target.place
    is_aim = [robot.target is not None and model.geom(geom).name == aim for geom in range(model.ngeom)]
    others = [g for g in range(model.ngeom) if g not in ours and not is_aim[g] and is_drawn(model, g)]
    handles = []
    for k, shape in enumerate(shapes(model, others)):
        handles.append(
            server.scene.add_batched_meshes_simple(
                f"/scenery/shape{k}", shape.vertices.astype(np.float32), shape.faces.astype(np.uint32),
                _quaternions(data.geom_xmat[shape.geoms].reshape(-1, 3, 3)), data.geom_xpos[shape.geoms],
                batched_scales=shape.scales.astype(np.float32),
                batched_colors=np.array([(255 * colour(model, g)[:3]).round() for g in shape.geoms], np.uint8),
                flat_shading=shape.has_edges, lod="off", receive_shadow=False,
            )
        )  # fmt: skip
    return handles


def _floor(server: Any, model: mujoco.MjModel) -> Any | None:
    planes = np.flatnonzero(model.geom_type == int(mujoco.mjtGeom.mjGEOM_PLANE))
    if not len(planes):
        return None
    options = {"width": 60.0, "height": 60.0, "cell_size": _CELL, "section_size": 5 * _CELL, "fade_distance": 30.0}
    return server.scene.add_grid("/floor", plane_opacity=0.35, plane_color=(235, 235, 235), **options)


def _look(server: Any, middle: np.ndarray, size: float, follows: bool, is_behind: bool) -> None:
    """Begin with a camera that sees a travelling robot from the side, several from behind, an arm from above."""
    towards = (-2.4, 0.9, 1.3) if is_behind else (0.7, -2.4, 1.0)
    server.initial_camera.look_at = middle
    server.initial_camera.position = middle + size * np.array(towards if follows else (0.0, -1.0, 1.6))
    server.initial_camera.fov = np.radians(45)


def _quaternions(matrices: np.ndarray) -> np.ndarray:
    """Unit quaternions [n, 4] of rotation matrices [n, 3, 3]."""
    result = np.empty((len(matrices), 4))
    for row, matrix in zip(result, matrices, strict=True):
        mujoco.mju_mat2Quat(row, np.ascontiguousarray(matrix).reshape(9))
    return result


def _rounded(array: np.ndarray) -> np.ndarray:
    return (np.round(array / _PRECISION) * _PRECISION).astype(np.float32)
