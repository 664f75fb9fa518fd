"""What can break the yaw symmetry of a MuJoCo model, and how each is removed to prove it guilty."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import mujoco
import numpy as np

from euda.body.symmetry import free_joints

_PLANE = int(mujoco.mjtGeom.mjGEOM_PLANE)


@dataclasses.dataclass(frozen=True)
class Suspect:
    """A property of a model that may care about world axes."""

    name: str
    find: Callable[[mujoco.MjModel], str | None]
    """What was found, in words, or None if the model does not have it."""
    mend: Callable[[mujoco.MjModel], None]
    advice: str
    options: tuple[str, ...] = ()
    """Fields of `model.opt` that `mend` changes."""
    arrays: tuple[str, ...] = ()
    """Arrays of `model` that `mend` changes."""
    names_contacts: bool = False

    def sentence(self, detail: str, before: float, after: float, contacts: Sequence[str], causes: int) -> str:
        """The finding in one sentence."""
        where = ""
        if self.names_contacts and contacts:
            where = f" at contacts {', '.join(contacts)}"
        it = "it" if causes == 1 else f"all {causes} causes"
        proof = f"without {it} the worst error falls from {before:.2g} to {after:.2g}"
        return f"{self.name}: {detail}{where}; {proof}; {self.advice}"


@contextlib.contextmanager
def mended(suspect: Suspect, *models: mujoco.MjModel) -> Iterator[None]:
    """Remove the suspect from the models for a while."""
    saved: list[tuple[mujoco.MjModel, dict[str, Any], dict[str, np.ndarray]]] = []
    for model in models:
        options = {name: np.copy(getattr(model.opt, name)) for name in suspect.options}
        saved.append((model, options, {name: getattr(model, name).copy() for name in suspect.arrays}))
        suspect.mend(model)
    try:
        yield
    finally:
        for model, options, arrays in saved:
            for name, value in options.items():
                setattr(model.opt, name, value if value.ndim else value.item())
            for name, values in arrays.items():
                getattr(model, name)[:] = values


def _set_option(**values: Any) -> Callable[[mujoco.MjModel], None]:
    def mend(model: mujoco.MjModel) -> None:
        for name, value in values.items():
            setattr(model.opt, name, value)

    return mend


def _pyramidal(model: mujoco.MjModel) -> str | None:
    is_pyramidal = int(model.opt.cone) == int(mujoco.mjtCone.mjCONE_PYRAMIDAL)
    return "friction pyramids have edges along world axes" if is_pyramidal else None


def _wind(model: mujoco.MjModel) -> str | None:
    blows = np.any(model.opt.wind[:2]) and (model.opt.density > 0 or model.opt.viscosity > 0)
    return f"wind of {model.opt.wind.tolist()} m/s" if blows else None


def _gravity(model: mujoco.MjModel) -> str | None:
    return f"gravity {model.opt.gravity.tolist()} is not vertical" if np.any(model.opt.gravity[:2]) else None


def _upright_gravity(model: mujoco.MjModel) -> None:
    model.opt.gravity = (0.0, 0.0, -float(np.linalg.norm(model.opt.gravity)))


def _colliding_world_geoms(model: mujoco.MjModel) -> list[int]:
    if int(model.opt.disableflags) & int(mujoco.mjtDisableBit.mjDSBL_CONTACT):
        return []
    solid = (model.geom_contype | model.geom_conaffinity) != 0
    return [g for g in range(model.ngeom) if model.body_weldid[model.geom_bodyid[g]] == 0 and solid[g]]


def _tilt(model: mujoco.MjModel, geom: int) -> float:
    """Angle between a static plane's normal and the vertical (rad)."""
    normal = np.empty(3)
    mujoco.mju_rotVecQuat(normal, np.array([0.0, 0.0, 1.0]), model.geom_quat[geom])
    return float(np.arccos(np.clip(normal[2], -1, 1)))


def _tilted_floors(model: mujoco.MjModel) -> list[int]:
    planes = [g for g in _colliding_world_geoms(model) if model.geom_type[g] == _PLANE]
    return [g for g in planes if 1e-9 < _tilt(model, g) < np.deg2rad(60)]


def _tilted(model: mujoco.MjModel) -> str | None:
    floors = _tilted_floors(model)
    if not floors:
        return None
    return ", ".join(
        f"{model.geom(g).name or f'geom {g}'!r} is tilted by {np.rad2deg(_tilt(model, g)):.3g}°" for g in floors
    )


def _level(model: mujoco.MjModel) -> None:
    for geom in _tilted_floors(model):
        model.geom_quat[geom] = (1.0, 0.0, 0.0, 0.0)


def _obstacle_geoms(model: mujoco.MjModel) -> list[int]:
    floors = set(_tilted_floors(model))
    level = {g for g in _colliding_world_geoms(model) if model.geom_type[g] == _PLANE and _tilt(model, g) <= 1e-9}
    return [g for g in _colliding_world_geoms(model) if g not in floors | level]


def _obstacles(model: mujoco.MjModel) -> str | None:
    names = [model.geom(g).name or f"geom {g}" for g in _obstacle_geoms(model)]
    return f"fixed obstacles {', '.join(names[:5])}{' …' if len(names) > 5 else ''} do not turn" if names else None


def _remove_obstacles(model: mujoco.MjModel) -> None:
    for geom in _obstacle_geoms(model):
        model.geom_contype[geom] = model.geom_conaffinity[geom] = 0


def _root_springs(model: mujoco.MjModel) -> str | None:
    held = [model.joint(j).name or f"joint {j}" for j in free_joints(model) if np.any(model.jnt_stiffness[j])]
    return f"free joint {', '.join(held)} is held by a spring to its first place and orientation" if held else None


def _cut_springs(model: mujoco.MjModel) -> None:
    for joint in free_joints(model):
        model.jnt_stiffness[joint] = 0.0


_DOF_ARRAYS = ("dof_armature", "dof_damping", "dof_frictionloss")


def _uneven(model: mujoco.MjModel) -> str | None:
    for joint in free_joints(model):
        dofs = slice(int(model.jnt_dofadr[joint]), int(model.jnt_dofadr[joint]) + 2)
        for name in _DOF_ARRAYS:
            if np.ptp(getattr(model, name)[dofs], axis=0).any():
                what = name.removeprefix("dof_")
                return f"{what} of free joint {model.joint(joint).name!r} differs between world x and y"
    return None


def _even_out(model: mujoco.MjModel) -> None:
    for joint in free_joints(model):
        dofs = slice(int(model.jnt_dofadr[joint]), int(model.jnt_dofadr[joint]) + 2)
        for name in _DOF_ARRAYS:
            getattr(model, name)[dofs] = getattr(model, name)[dofs].mean(axis=0)


def _coarse_solver(model: mujoco.MjModel) -> str | None:
    newton = int(model.opt.solver) == int(mujoco.mjtSolver.mjSOL_NEWTON)
    if newton and model.opt.iterations >= 50 and model.opt.tolerance <= 1e-7:
        return None
    name = mujoco.mjtSolver(int(model.opt.solver)).name.removeprefix("mjSOL_")
    return f"solver {name} with {model.opt.iterations} iterations and tolerance {model.opt.tolerance:g} stops early"


def _world_ties(model: mujoco.MjModel) -> tuple[list[int], list[int]]:
    """Spatial tendons with a point on the world, and actuators that pull on them or push against a world site."""
    site, geoms = (
        int(mujoco.mjtWrap.mjWRAP_SITE),
        (int(mujoco.mjtWrap.mjWRAP_SPHERE), int(mujoco.mjtWrap.mjWRAP_CYLINDER)),
    )

    def on_world(wrap: int) -> bool:
        kind, index = int(model.wrap_type[wrap]), int(model.wrap_objid[wrap])
        owner = model.site_bodyid if kind == site else model.geom_bodyid if kind in geoms else None
        return owner is not None and int(model.body_weldid[owner[index]]) == 0

    spans = [range(int(adr), int(adr + num)) for adr, num in zip(model.tendon_adr, model.tendon_num, strict=True)]
    tendons = [tendon for tendon, span in enumerate(spans) if any(map(on_world, span))]
    return tendons, [a for a in range(model.nu) if _pushes_world(model, a, tendons)]


def _pushes_world(model: mujoco.MjModel, actuator: int, tendons: list[int]) -> bool:
    kind, (first, second) = mujoco.mjtTrn(model.actuator_trntype[actuator]), model.actuator_trnid[actuator]
    if kind == mujoco.mjtTrn.mjTRN_TENDON:
        return int(first) in tendons
    return kind == mujoco.mjtTrn.mjTRN_SITE and second >= 0 and int(model.body_weldid[model.site_bodyid[second]]) == 0


def _tied(model: mujoco.MjModel) -> str | None:
    tendons, actuators = _world_ties(model)
    names = [model.tendon(t).name or f"tendon {t}" for t in tendons]
    names += [model.actuator(a).name or f"actuator {a}" for a in actuators]
    return f"{', '.join(names)} act between the robot and the world" if names else None


def _untie(model: mujoco.MjModel) -> None:
    tendons, actuators = _world_ties(model)
    model.tendon_stiffness[tendons] = 0.0
    model.tendon_damping[tendons] = 0.0
    model.tendon_limited[tendons] = 0
    model.actuator_gear[actuators] = 0.0


SUSPECTS: tuple[Suspect, ...] = (
    Suspect("pyramidal friction cone", _pyramidal, _set_option(cone=int(mujoco.mjtCone.mjCONE_ELLIPTIC)),
            "use an elliptic cone (--cone elliptic)", options=("cone",), names_contacts=True),
    Suspect("wind", _wind, _set_option(wind=(0.0, 0.0, 0.0)), "set the wind to zero", options=("wind",)),
    Suspect("tilted gravity", _gravity, _upright_gravity, "make gravity vertical", options=("gravity",)),
    Suspect("tilted floor", _tilted, _level, "make the floor level", arrays=("geom_quat",)),
    Suspect("obstacles", _obstacles, _remove_obstacles, "the task is symmetric only away from them",
            arrays=("geom_contype", "geom_conaffinity")),
    Suspect("spring on the root", _root_springs, _cut_springs, "set its stiffness to zero", arrays=("jnt_stiffness",)),
    Suspect("uneven root", _uneven, _even_out, "give both directions the same value", arrays=_DOF_ARRAYS),
    Suspect("ties to the world", _tied, _untie, "tie the robot to itself only",
            arrays=("tendon_stiffness", "tendon_damping", "tendon_limited", "actuator_gear")),
    Suspect("unconverged solver", _coarse_solver,
            _set_option(solver=int(mujoco.mjtSolver.mjSOL_NEWTON), iterations=100, tolerance=1e-8),
            "raise the iterations or lower the tolerance", options=("solver", "iterations", "tolerance")),
)  # fmt: skip
