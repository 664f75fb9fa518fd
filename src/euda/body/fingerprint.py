"""What a compiled model is, in a few characters for each of its parts: whether a robot is still the same.

Compiled, because a model may include other files, meshes and defaults from anywhere. Numbers are compared as
float32, so that a processor that rounds the last bit of an inertia differently still finds the same robot.
Colours, lights, cameras and textures are no part of it: they change no number of a run.
"""

from __future__ import annotations

import hashlib
from typing import Any

import mujoco
import numpy as np

_PARTS: dict[str, tuple[str, ...]] = {
    "options": (),  # of model.opt
    "bodies": ("body_", "nbody"),
    "joints": ("jnt_", "dof_", "qpos0", "qpos_spring"),
    "geoms": ("geom_", "pair_", "exclude_"),
    "sites": ("site_",),
    "shapes": ("mesh_", "hfield_", "flex_", "flexedge_", "flexvert_"),
    "tendons": ("tendon_", "wrap_"),
    "constraints": ("eq_",),
    "actuators": ("actuator_",),
    "sensors": ("sensor_",),
    "keyframes": ("key_",),
    "custom data": ("numeric_", "text_", "tuple_", "plugin_"),
}
_SEEN_ONLY = ("_rgba", "_matid", "_group", "_texcoord", "_texcoordadr", "_texcoordnum")
_NAMED = {"bodies": "body", "joints": "jnt", "geoms": "geom", "sites": "site", "actuators": "actuator",
          "sensors": "sensor", "tendons": "tendon"}  # fmt: skip


def content(model: mujoco.MjModel) -> dict[str, str]:
    """Eight characters for each part that the model has, the same exactly if the part is."""
    found: dict[str, str] = {}
    nothing = hashlib.sha256().digest()
    for part, prefixes in _PARTS.items():
        digest = hashlib.sha256()
        source = model.opt if part == "options" else model
        for name in sorted(dir(source)):
            wanted = not name.startswith("_") if part == "options" else name.startswith(prefixes)
            if wanted and not name.endswith(_SEEN_ONLY):
                _add(digest, name, getattr(source, name))
        for index in range(getattr(model, f"n{_NAMED[part]}")) if part in _NAMED else ():
            accessor = {"jnt": "joint"}.get(_NAMED[part], _NAMED[part])
            digest.update(f"{index} {getattr(model, accessor)(index).name}\n".encode())
        if digest.digest() != nothing:
            found[part] = digest.hexdigest()[:8]
    return found


def digest(model: mujoco.MjModel) -> str:
    """Sixteen characters for the whole of it."""
    return hashlib.sha256(repr(sorted(content(model).items())).encode()).hexdigest()[:16]


def exact(model: mujoco.MjModel) -> bytes:
    """Thirty-two bytes for a model to its last bit, names included, but for textures: a key for what is read off it."""
    total = hashlib.sha256()
    for source in (model, model.opt, model.stat):
        for name in dir(source):
            if name.startswith(("_", "tex_")):
                continue
            value = getattr(source, name)
            if isinstance(value, np.ndarray):
                total.update(f"{name} {value.shape}\n".encode())
                total.update(np.ascontiguousarray(value).tobytes())
            elif isinstance(value, int | float | bytes):
                total.update(f"{name} {value!r}\n".encode())
    return total.digest()


def _add(digest: Any, name: str, value: Any) -> None:
    """Put an array into a sum; what is all zeros is left out, so that what a later MuJoCo adds changes nothing."""
    if not isinstance(value, np.ndarray | int | float | bytes):
        return
    array = np.frombuffer(value, np.uint8) if isinstance(value, bytes) else np.atleast_1d(value)
    if not array.any():
        return
    kind = np.float32 if array.dtype.kind == "f" else np.int64
    digest.update(f"{name} {array.shape}\n".encode())
    digest.update(np.ascontiguousarray(array.astype(kind)).tobytes())
