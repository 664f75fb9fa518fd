"""Drawing without a screen: an OpenGL context chosen by us, and a frame of one or several robots."""

from __future__ import annotations

import importlib
import os
import weakref
from collections.abc import Callable, Sequence
from typing import Any

import mujoco
import numpy as np

from euda.errors import RenderingError

_INSTALL = "install Debian's libegl1 and libgl1-mesa-dri (or libosmesa6), or name a backend in MUJOCO_GL"
_BACKENDS = ("egl", "osmesa", "glfw")
_BODIES = mujoco.mjtCatBit.mjCAT_STATIC.value | mujoco.mjtCatBit.mjCAT_DYNAMIC.value  # no decoration
Paint = Callable[[Any], Any]


LARGEST = 16_384
"""Pixels to a side: what OpenGL has room for nearly everywhere."""


def check_size(width: int, height: int) -> None:
    """Refuse a frame that cannot be drawn."""
    if not 1 <= width <= LARGEST or not 1 <= height <= LARGEST:
        raise RenderingError(f"a frame has 1 to {LARGEST} pixels to a side, not {width} x {height} pixels")


def _candidates() -> tuple[str, ...]:
    """The user's choice if there is one; otherwise what works without a screen before what needs one."""
    chosen = os.environ.get("MUJOCO_GL", "").lower()
    if chosen in ("", "on", "1", "true"):
        return ("glfw", "egl", "osmesa") if os.environ.get("DISPLAY") else ("egl", "osmesa")
    if chosen not in _BACKENDS:
        raise RenderingError(f"MUJOCO_GL={chosen!r} cannot draw: valid are {', '.join(_BACKENDS)}, or leave it unset")
    return (chosen,)


def _open_context(width: int, height: int) -> Any:
    """An OpenGL context of the first backend that works, made current."""
    reasons, platform = [], os.environ.get("PYOPENGL_PLATFORM")
    for backend in _candidates():
        try:
            context = importlib.import_module(f"mujoco.{backend}").GLContext(width, height)
            context.make_current()
            return context
        except Exception as reason:  # noqa: BLE001 - OpenGL bindings fail in many ways, from ImportError to AttributeError
            reasons.append(f"{backend}: {str(reason).splitlines()[0] if str(reason) else type(reason).__name__}")
            if platform is None:
                os.environ.pop("PYOPENGL_PLATFORM", None)  # set by the failed backend, would forbid the next
    raise RenderingError(f"no OpenGL backend works without a screen here ({'; '.join(reasons)}): {_INSTALL}")


class Renderer:
    """Draws frames [height, width, 3] (uint8) of simulations of one model."""

    def __init__(self, model: mujoco.MjModel, width: int, height: int, max_geoms: int = 2000) -> None:
        check_size(width, height)
        self._model, self._width, self._height = model, width, height
        model.vis.global_.offwidth = max(width, model.vis.global_.offwidth)
        model.vis.global_.offheight = max(height, model.vis.global_.offheight)
        self._gl: Any = _open_context(width, height)
        try:
            self._context = mujoco.MjrContext(model, mujoco.mjtFontScale.mjFONTSCALE_150.value)
        except mujoco.FatalError as error:  # the driver has no room for such a frame
            self._gl.free()
            raise RenderingError(f"a frame of {width} x {height} pixels cannot be drawn here: {error}") from None
        mujoco.mjr_setBuffer(mujoco.mjtFramebuffer.mjFB_OFFSCREEN.value, self._context)
        self._scene = mujoco.MjvScene(model, maxgeom=max_geoms)
        self._option, self._perturb = mujoco.MjvOption(), mujoco.MjvPerturb()
        self._viewport = mujoco.MjrRect(0, 0, width, height)
        # Freed before the interpreter takes the OpenGL library down, also when nobody calls close().
        self._free = weakref.finalize(self, _free, self._gl, self._context)

    def draw(
        self,
        data: mujoco.MjData,
        camera: mujoco.MjvCamera,
        copies: Sequence[tuple[mujoco.MjModel, mujoco.MjData, Paint]] = (),
        paint: Paint = lambda scene: None,
    ) -> np.ndarray:
        """One frame; `copies` are drawn into the same scene, each repainted by its function of the new geoms."""
        self._gl.make_current()
        scene = self._scene
        every = mujoco.mjtCatBit.mjCAT_ALL.value
        mujoco.mjv_updateScene(self._model, data, self._option, self._perturb, camera, every, scene)
        for model, other, repaint in copies:
            start = scene.ngeom
            mujoco.mjv_addGeoms(model, other, self._option, self._perturb, _BODIES, scene)
            repaint([scene.geoms[i] for i in range(start, scene.ngeom)])
        paint(scene)
        mujoco.mjr_render(self._viewport, scene, self._context)
        frame = np.empty((self._height, self._width, 3), np.uint8)
        mujoco.mjr_readPixels(frame, None, self._viewport, self._context)
        return np.flipud(frame).copy()

    def close(self) -> None:
        """Free the OpenGL context; safe to call twice."""
        self._free()


def _free(gl: Any, context: mujoco.MjrContext) -> None:
    gl.make_current()
    context.free()
    gl.free()


def camera(model: mujoco.MjModel, name: str | int | None = None) -> mujoco.MjvCamera:
    """A camera of the model by name or number, by default its first, or a free one where it has none."""
    result = mujoco.MjvCamera()
    if name is None and model.ncam == 0:
        mujoco.mjv_defaultFreeCamera(model, result)
        return result
    index = 0 if name is None else name
    if isinstance(index, str):
        found = mujoco.mj_name2id(model, mujoco.mjtObj.mjOBJ_CAMERA, index)
        if found < 0:
            valid = ", ".join(model.camera(i).name for i in range(model.ncam)) or "(the model has none)"
            raise RenderingError(f"unknown camera {index!r}: valid are {valid}")
        index = found
    if not 0 <= index < model.ncam:
        raise RenderingError(f"unknown camera {index}: the model has {model.ncam}")
    result.type, result.fixedcamid = mujoco.mjtCamera.mjCAMERA_FIXED, index
    return result
