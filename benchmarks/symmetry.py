"""Seconds of the processor that finding and trying a robot's symmetries takes, meshes included.

The humanoid with meshes is dm_control's, every capsule and sphere replaced by a mesh of 140 points.
"""

from __future__ import annotations

import tempfile
import time
from pathlib import Path

import mujoco
import numpy as np
import recording

from euda import make, symmetries
from euda.symmetry.examination import examine
from euda.symmetry.repair.mend import last_text

_TASKS = ("hopper3d_hop", "walker3d_run", "quadruped_run", "humanoid_run")
_STATES = 60
_ROUND, _ACROSS = 14, 5
_CAPSULE, _SPHERE = mujoco.mjtGeom.mjGEOM_CAPSULE, mujoco.mjtGeom.mjGEOM_SPHERE


def main() -> None:
    models = {task: make(task).model for task in _TASKS} | {"humanoid with meshes": meshed(make("humanoid_run").model)}
    rows = []
    for name, model in models.items():
        start = time.process_time()
        group = symmetries(model)
        found = time.process_time()
        examined = examine(model, states=_STATES, group=group)
        row = {
            "robot": name, "bodies": int(model.nbody), "mesh_points": int(model.nmeshvert), "elements": group.order,
            "states": _STATES + examined.sought, "find": round(found - start, 2),
            "try": round(time.process_time() - found, 2),
        }  # fmt: skip
        rows.append(row)
        print(f"{name:22} {group.order} elements: found in {row['find']} s, tried in {row['try']} s")
    recording.write("symmetry", {"machine": recording.machine(), "rows": rows})


def meshed(model: mujoco.MjModel) -> mujoco.MjModel:
    """The model with meshes in place of its capsules and spheres."""
    with tempfile.TemporaryDirectory() as folder:
        spec = mujoco.MjSpec.from_string(last_text(model, Path(folder)))
    for number, geom in enumerate(spec.geoms):
        kind, size = mujoco.mjtGeom(model.geom_type[number]), model.geom_size[number]
        if kind in (_CAPSULE, _SPHERE):
            points = _surface(size[0], size[1] if kind == _CAPSULE else 0.0)
            spec.add_mesh(name=f"surface{number}", uservert=points.ravel())
            geom.type, geom.meshname = mujoco.mjtGeom.mjGEOM_MESH, f"surface{number}"
            geom.pos, geom.quat = model.geom_pos[number], model.geom_quat[number]
            geom.fromto, geom.size = [np.nan] * 6, [0.0] * 3
    return spec.compile()


def _surface(radius: float, half: float) -> np.ndarray:
    """Points [n, 3] of a capsule along z; of a sphere if it has no length."""
    angle, polar = np.meshgrid(np.linspace(0, 2 * np.pi, _ROUND, endpoint=False), np.linspace(0, np.pi / 2, _ACROSS))
    across = radius * np.sin(polar)
    cap = np.stack([across * np.cos(angle), across * np.sin(angle), half + radius * np.cos(polar)], axis=-1)
    return np.concatenate([cap.reshape(-1, 3), cap.reshape(-1, 3) * [1, 1, -1]])


if __name__ == "__main__":
    main()
