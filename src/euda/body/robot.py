"""A robot in a simulation: its model, data, limbs, and what its task wants of it."""

from __future__ import annotations

import copy
import dataclasses
import functools
import logging
import warnings
from pathlib import Path
from typing import Any, NamedTuple, cast

import mujoco
import numpy as np

from euda.body.morphology import Morphology, from_model
from euda.errors import EudaError, ModelError, unknown


@dataclasses.dataclass(frozen=True)
class Target:
    """A point to reach: a named site, geom or body, or a fixed place in the world [3] (m)."""

    place: str | np.ndarray
    limb: str
    """Name of the site, geom or body of the robot that should reach it."""


class Scene(NamedTuple):
    """What readings and rewards are functions of: a simulation at one moment, and what the task wants of it.

    MuJoCo's own model and data, or MJX's, whose arrays have the same names.
    """

    model: Any
    data: Any
    direction: Any = None
    """The direction of travel t, a unit vector in the world [3]."""
    target: Any = None
    """A fixed place to reach [3] (m); None where the target is a part of the simulation."""


@dataclasses.dataclass(frozen=True)
class Robot:
    """A robot in a simulation: where readings read from."""

    model: mujoco.MjModel
    data: mujoco.MjData
    morphology: Morphology
    direction: np.ndarray | None = None
    """The task's direction of travel t, a unit vector in the world; read anew at every observation."""
    target: Target | None = None
    is_direction_drawn: bool = False
    """Whether episodes differ in their direction, so that every feature set has to show it."""

    @functools.cached_property
    def scene(self) -> Scene:
        """The simulation as it is now; its arrays are MuJoCo's own and follow it."""
        place = None if self.target is None or isinstance(self.target.place, str) else self.target.place
        return Scene(self.model, self.data, self.direction, place)


def describe(
    model: mujoco.MjModel,
    data: mujoco.MjData,
    direction: Any = None,
    target: Any = None,
    limb: str | None = None,
    allow_loops: bool = False,
) -> Robot:
    """The robot in a simulation, with the direction of travel or the target that its task has.

    `direction` is two or three numbers, or `random` if episodes draw it; `target` is the name of a site, geom or body,
    or three numbers; `limb` names what should reach it, by default the last limb.
    """
    morphology = from_model(model, allow_loops=allow_loops)
    heading, is_drawn = (None, False) if direction is None else direction_of(direction)
    aim = None
    if target is None and limb is not None:
        raise EudaError(f"limb {limb!r} is named, but no target that it should reach")
    if target is not None:
        place = target if isinstance(target, str) else check_triple("target", target)
        aim = Target(place, morphology.limbs[-1].name if limb is None else limb)
    return Robot(model, data, morphology, heading, aim, is_drawn)


def check_triple(what: str, value: object) -> np.ndarray:
    """Three finite numbers [3]; says in one sentence what else it is."""
    try:
        array = np.array(value, dtype=np.float64)
    except (TypeError, ValueError):
        raise EudaError(f"a {what} is three numbers (x, y, z), not {value!r}") from None
    if array.shape != (3,) or not np.isfinite(array).all():
        raise EudaError(f"a {what} is three finite numbers (x, y, z), not {value!r}")
    return array


RANDOM = "random"
"""In the place of a direction: drawn at the beginning of every episode."""


def direction_of(value: object) -> tuple[np.ndarray, bool]:
    """A direction of travel as a unit vector [3], and whether every episode draws another."""
    is_drawn = isinstance(value, str) and value == RANDOM
    return check_direction((1.0, 0.0, 0.0) if is_drawn else value), is_drawn


def check_direction(value: object) -> np.ndarray:
    """A direction of travel, in the plane or in space, as a unit vector [3]."""
    is_planar = not isinstance(value, str) and np.shape(cast("Any", value)) == (2,)
    try:
        array = check_triple("direction", (*cast("Any", value), 0.0) if is_planar else value)
    except EudaError:
        wanted = f"two or three finite numbers (x, y, z), or {RANDOM!r}"
        raise EudaError(f"a direction is {wanted}, not {value!r}") from None
    norm = float(np.linalg.norm(array))
    if norm == 0:
        raise EudaError("a direction must not be zero")
    return array / norm


_PLACES = {"site": "site_xpos", "geom": "geom_xpos", "xbody": "xpos"}


class Point(NamedTuple):
    """A site, a geom, or the frame of a body."""

    object: str
    """MuJoCo's word: `site`, `geom` or `xbody`."""
    id: int

    def place(self, data: Any) -> Any:
        """Where it is in the world [3] (m)."""
        return getattr(data, _PLACES[self.object])[self.id]


def find_point(model: mujoco.MjModel, name: str) -> Point:
    """The site, geom or body of that name (first found in this order)."""
    for what in _PLACES:
        index = mujoco.mj_name2id(model, getattr(mujoco.mjtObj, f"mjOBJ_{what.upper()}"), name)
        if index >= 0:
            return Point(what, index)
    words = ("site", "geom", "body")
    names = {getattr(model, what)(i).name for what in words for i in range(getattr(model, f"n{what}"))}
    raise unknown("site, geom or body", name, sorted(names - {""}))


def point(model: mujoco.MjModel, data: mujoco.MjData, name: str) -> np.ndarray:
    """A view of the world position of the site, geom or body of that name."""
    return find_point(model, name).place(data)


def quiet_warnings() -> None:
    """Have MuJoCo log warnings; by default it writes them into a file in the working directory."""
    if mujoco.get_mju_user_warning() is None:
        mujoco.set_mju_user_warning(logging.getLogger("euda").debug)  # steps report those that matter as errors


def read_model(source: str | Path | mujoco.MjModel) -> mujoco.MjModel:
    """Compile an MJCF file, or copy a model that is compiled; says in one sentence what is wrong with a file."""
    quiet_warnings()
    if isinstance(source, mujoco.MjModel):
        return copy.copy(source)
    path = Path(source)
    if not path.is_file():
        raise ModelError(f"no model file at {str(path)!r}")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return mujoco.MjModel.from_xml_path(str(path))
    except (ValueError, mujoco.FatalError) as error:
        reason = " ".join(str(error).split())
        raise ModelError(f"{str(path)!r} is not a valid MuJoCo model: {reason}") from None
