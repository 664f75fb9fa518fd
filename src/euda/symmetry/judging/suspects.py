"""What can break a symmetry of a MuJoCo model: a suspect is found guilty if removing it removes the error.

The suspects here concern the world, the contacts and the solver; those of `joint_suspects` concern the joints and
cables by which a robot hangs on the world, those of `skew` parts that differ from their images.
"""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import mujoco
import numpy as np

from euda.body.robot import Robot
from euda.symmetry.judging.coverage import collidable_pairs, is_iterative, pair_kind

_PLANE = int(mujoco.mjtGeom.mjGEOM_PLANE)


@dataclasses.dataclass(frozen=True)
class Suspect:
    """A property of a model that may care about world axes."""

    name: str
    find: Callable[[Robot], str | None]
    """What was found, in a few words, or None if the model does not have it."""
    mend: Callable[[Robot], None] | None
    """What removes it from the model; None if `apart` does."""
    advice: str
    options: tuple[str, ...] = ()
    """Fields of `model.opt` that `mend` changes."""
    arrays: tuple[str, ...] = ()
    """Arrays of `model` that `mend` changes."""
    names_contacts: bool = False
    is_directed: bool = False
    """Whether it gives the whole world a direction: then the error is the same in every state, and adds up."""
    apart: Callable[[Robot], contextlib.AbstractContextManager[None]] | None = None
    """What removes it from the simulation for a while, where the model has no switch for it."""

    def line(self, detail: str, effect: str, contacts: Sequence[str]) -> str:
        """The finding in full, however long: name and detail, what removing it does, and what to do."""
        where = f"at {', '.join(contacts)}" if self.names_contacts and contacts else detail
        return f"{self.name}: {where}; {effect}; {self.advice}"


def listed(names: Sequence[str], most: int | None = None) -> str:
    """Names, all of them or so many and how many more."""
    more = f" and {len(names) - most} more" if most is not None and len(names) > most else ""
    return f"{', '.join(names[:most])}{more}"


@contextlib.contextmanager
def mended(suspect: Suspect, robot: Robot) -> Iterator[None]:
    """Remove the suspect from the robot's model for a while."""
    model = robot.model
    options = {name: np.copy(getattr(model.opt, name)) for name in suspect.options}
    arrays = {name: getattr(model, name).copy() for name in suspect.arrays}
    if suspect.mend is not None:
        suspect.mend(robot)
    try:
        with contextlib.nullcontext() if suspect.apart is None else suspect.apart(robot):
            yield
    finally:
        for name, value in options.items():
            setattr(model.opt, name, value if value.ndim else value.item())
        for name, values in arrays.items():
            getattr(model, name)[:] = values


def set_option(**values: Any) -> Callable[[Robot], None]:
    """What gives options of the model these values."""

    def mend(robot: Robot) -> None:
        for name, value in values.items():
            setattr(robot.model.opt, name, value)

    return mend


def disable(flag: mujoco.mjtDisableBit) -> Callable[[Robot], None]:
    """What switches a part of the simulation off."""

    def mend(robot: Robot) -> None:
        robot.model.opt.disableflags |= int(flag)

    return mend


# -- the world -------------------------------------------------------------------------------------------


def _wind(robot: Robot) -> str | None:
    option = robot.model.opt
    blows = np.any(option.wind[:2]) and (option.density > 0 or option.viscosity > 0)
    return f"{option.wind.tolist()} m/s" if blows else None


def _gravity(robot: Robot) -> str | None:
    gravity = robot.model.opt.gravity
    return f"{gravity.tolist()} is not vertical" if np.any(gravity[:2]) else None


def _upright_gravity(robot: Robot) -> None:
    robot.model.opt.gravity = (0.0, 0.0, -float(np.linalg.norm(robot.model.opt.gravity)))


def _colliding_world_geoms(model: mujoco.MjModel) -> list[int]:
    solid = {geom for pair in collidable_pairs(model) for geom in pair}
    return [g for g in range(model.ngeom) if model.body_weldid[model.geom_bodyid[g]] == 0 and g in solid]


def _tilt(model: mujoco.MjModel, geom: int) -> float:
    """Angle between a static plane's normal and the vertical (rad)."""
    normal = np.empty(3)
    mujoco.mju_rotVecQuat(normal, np.array([0.0, 0.0, 1.0]), model.geom_quat[geom])
    return float(np.arccos(np.clip(normal[2], -1, 1)))


def _tilted_floors(model: mujoco.MjModel) -> list[int]:
    planes = [g for g in _colliding_world_geoms(model) if model.geom_type[g] == _PLANE]
    return [g for g in planes if 1e-9 < _tilt(model, g) < np.deg2rad(60)]


def _tilted(robot: Robot) -> str | None:
    model, floors = robot.model, _tilted_floors(robot.model)
    tilts = [f"{model.geom(g).name or f'geom {g}'!r} by {np.rad2deg(_tilt(model, g)):.3g}°" for g in floors]
    return listed(tilts) if tilts else None


def _level(robot: Robot) -> None:
    for geom in _tilted_floors(robot.model):
        robot.model.geom_quat[geom] = (1.0, 0.0, 0.0, 0.0)


def _obstacle_geoms(model: mujoco.MjModel) -> list[int]:
    solid = _colliding_world_geoms(model)
    floors = {g for g in solid if model.geom_type[g] == _PLANE and _tilt(model, g) < np.deg2rad(60)}
    return [g for g in solid if g not in floors]


def _obstacles(robot: Robot) -> str | None:
    names = [robot.model.geom(g).name or f"geom {g}" for g in _obstacle_geoms(robot.model)]
    return f"{listed(names)} {'does' if len(names) == 1 else 'do'} not turn" if names else None


def _remove_obstacles(robot: Robot) -> None:
    for geom in _obstacle_geoms(robot.model):
        robot.model.geom_contype[geom] = robot.model.geom_conaffinity[geom] = 0


# -- contacts and solver ---------------------------------------------------------------------------------


def _pyramidal(robot: Robot) -> str | None:
    is_pyramidal = int(robot.model.opt.cone) == int(mujoco.mjtCone.mjCONE_PYRAMIDAL)
    return "its edges lie along world axes" if is_pyramidal else None


def _iterative_kinds(model: mujoco.MjModel) -> list[str]:
    return sorted({pair_kind(model, pair) for pair in collidable_pairs(model) if is_iterative(model, pair)})


def _convex(robot: Robot) -> str | None:
    kinds = _iterative_kinds(robot.model)
    return f"contacts of {listed(kinds)} are found by iteration" if kinds else None


def _coarse_convex(robot: Robot) -> str | None:
    option = robot.model.opt
    ends = f"ends at {option.ccd_tolerance:g} or after {option.ccd_iterations} iterations"
    return ends if _iterative_kinds(robot.model) else None


@contextlib.contextmanager
def _without_iterative_collisions(robot: Robot) -> Iterator[None]:
    """Let only those geoms collide whose contact has a formula. The filter replaces MuJoCo's own rules."""
    model, before = robot.model, mujoco.get_mjcb_contactfilter()
    kept = {pair for pair in collidable_pairs(model) if not is_iterative(model, pair)}

    def is_skipped(model: Any, data: Any, first: int, second: int) -> int:
        return int((min(first, second), max(first, second)) not in kept)

    mujoco.set_mjcb_contactfilter(is_skipped)
    try:
        yield
    finally:
        mujoco.set_mjcb_contactfilter(before)


def _coarse_solver(robot: Robot) -> str | None:
    option = robot.model.opt
    newton = int(option.solver) == int(mujoco.mjtSolver.mjSOL_NEWTON)
    if newton and option.iterations >= 50 and option.tolerance <= 1e-7:
        return None
    name = mujoco.mjtSolver(int(option.solver)).name.removeprefix("mjSOL_")
    return f"{name}, {option.iterations} iterations, tolerance {option.tolerance:g}"


def _noslip(robot: Robot) -> str | None:
    count = int(robot.model.opt.noslip_iterations)
    return f"{count} noslip iterations go through contacts in order" if count else None


def _warm_start(robot: Robot) -> str | None:
    is_off = int(robot.model.opt.disableflags) & int(mujoco.mjtDisableBit.mjDSBL_WARMSTART)
    return None if is_off else "the solver starts from the previous step"


CONVEX_COLLISIONS = Suspect(
    "convex collisions", _convex, None, "spheres, capsules and boxes are exact", apart=_without_iterative_collisions
)
WORLD_SUSPECTS: tuple[Suspect, ...] = (
    Suspect("pyramidal friction cone", _pyramidal, set_option(cone=int(mujoco.mjtCone.mjCONE_ELLIPTIC)),
            "use an elliptic cone", options=("cone",), names_contacts=True),
    Suspect("wind", _wind, set_option(wind=(0.0, 0.0, 0.0)), "set it to zero", options=("wind",), is_directed=True),
    Suspect("tilted gravity", _gravity, _upright_gravity, "make it vertical", options=("gravity",), is_directed=True),
    Suspect("tilted floor", _tilted, _level, "make it level", arrays=("geom_quat",), is_directed=True),
    Suspect("obstacles", _obstacles, _remove_obstacles, "symmetric only away from them",
            arrays=("geom_contype", "geom_conaffinity")),
    Suspect("ccd_tolerance", _coarse_convex, set_option(ccd_tolerance=1e-12, ccd_iterations=1000),
            "try 1e-12 and 1000 iterations", options=("ccd_tolerance", "ccd_iterations")),
    CONVEX_COLLISIONS,
    Suspect("unconverged solver", _coarse_solver,
            set_option(solver=int(mujoco.mjtSolver.mjSOL_NEWTON), iterations=100, tolerance=1e-8),
            "more iterations, lower tolerance", options=("solver", "iterations", "tolerance")),
    Suspect("noslip", _noslip, set_option(noslip_iterations=0), "set noslip_iterations to 0",
            options=("noslip_iterations",)),
    Suspect("warm start", _warm_start, disable(mujoco.mjtDisableBit.mjDSBL_WARMSTART),
            "more solver iterations", options=("disableflags",)),
)  # fmt: skip
