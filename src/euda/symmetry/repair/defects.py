"""(MjModel, element) → what keeps a symmetry from being exact: a part, its image, and what both have."""

from __future__ import annotations

import dataclasses
from typing import Any

import mujoco
import numpy as np

from euda.symmetry.element import Element
from euda.symmetry.group import Group
from euda.symmetry.images import NOWHERE
from euda.symmetry.repair.quantities import QUANTITIES
from euda.symmetry.repair.quantity import Quantity, images_of, placed
from euda.symmetry.search.matching import part_name
from euda.symmetry.search.setting import Setting
from euda.symmetry.search.shapes import colliding, distance

ROUNDING = 1e-9
"""Differences below this, relative to what they are compared with, are rounding."""
NO_IMAGE, FIXED, FRAME = "no image", "fixed to the world", "frame origin"
GRAVITY, WIND = "gravity", "wind"
DIRECTIONS = (GRAVITY, WIND)
"""What gives the whole world a direction: it acts in every state."""
_GEOM = mujoco.mjtObj.mjOBJ_GEOM


@dataclasses.dataclass(frozen=True)
class Origin:
    """Where a defect was found."""

    elements: tuple[int, ...]
    """Places in the group of the elements that show it; the first is the one whose image is named."""
    about: str
    """What that element keeps: the mirror plane, the axis, or the centre."""
    quantity: int | None
    """Place in `QUANTITIES`; None for what cannot be averaged."""
    kind: mujoco.mjtObj
    index: int
    """Number of the part in the model."""


@dataclasses.dataclass(frozen=True)
class Defect:
    """A part that differs from its image.

    Numbers are those of the model, in the frame of each part; `expected` is what the image would have, were it one.
    """

    part: str
    image: str
    """The part itself, if it is its own image; empty if there is none."""
    what: str
    value: tuple[float, ...]
    image_value: tuple[float, ...]
    expected: tuple[float, ...]
    error: float
    """Relative to the part's own value, the width of a range, or the size of the robot."""
    unit: str
    origin: Origin

    @property
    def sentence(self) -> str:
        """What an engineer wants to hear."""
        return _sentence(self)

    def to_json(self) -> dict[str, Any]:
        """Plain JSON values."""
        return {
            "part": self.part, "image": self.image, "what": self.what, "value": _plain(self.value),
            "image_value": _plain(self.image_value), "expected": _plain(self.expected), "error": self.error,
            "unit": self.unit, "elements": list(self.origin.elements),
        }  # fmt: skip


def defects(model: mujoco.MjModel, group: Group) -> tuple[Defect, ...]:
    """Every difference between a part and its image under any element, the largest first; each pair once."""
    found: dict[tuple[str, str, str], Defect] = {}
    for number, element in enumerate(group.elements):
        if element.is_identity:
            continue
        for defect in _of_element(Setting(model, group.pose, element, group.size), number):
            first, second = sorted((defect.part, defect.image or defect.part))
            known = found.setdefault((first, second, defect.what), defect)
            shown = tuple(dict.fromkeys((*known.origin.elements, number)))
            origin = dataclasses.replace(known.origin, elements=shown)
            found[first, second, defect.what] = dataclasses.replace(known, origin=origin)
    return tuple(sorted(found.values(), key=lambda defect: -defect.error))


def _of_element(setting: Setting, number: int) -> list[Defect]:
    result = [*_world(setting, number), *_root_frame(setting, number)]
    result += [*_shapes(setting, number), *_scenery(setting, number)]
    for place, quantity in enumerate(QUANTITIES):
        if quantity.is_listed:
            result += _differences(setting, number, place, quantity)
    return result


def _differences(setting: Setting, number: int, place: int, quantity: Quantity) -> list[Defect]:
    model = setting.model
    values = quantity.read(model)
    if not len(values):
        return []
    image, moved = images_of(setting, quantity.kind), quantity.move(setting, values)
    applies = np.ones(len(values), bool) if quantity.applies is None else quantity.applies(model)
    scale = quantity.scale(model, values, setting.size)
    result = []
    for index in np.flatnonzero(applies & (image != NOWHERE)).tolist():
        other = int(image[index])
        gap = float(np.abs(moved[index] - values[other]).max())
        against = max(float(scale[index]), float(scale[other]))
        if gap <= ROUNDING * against or gap == 0:
            continue
        degrees = quantity.in_degrees is not None and bool(quantity.in_degrees(model)[index])
        factor = 180 / np.pi if degrees else 1.0
        value, image_value, expected = (factor * row for row in (values[index], values[other], moved[index]))
        result.append(
            Defect(
                part=_short_name(model, quantity.kind, index), image=_short_name(model, quantity.kind, other),
                what=quantity.what, value=tuple(value.tolist()), image_value=tuple(image_value.tolist()),
                expected=tuple(expected.tolist()), error=gap / against if against else 1.0,
                unit="deg" if degrees else quantity.unit,
                origin=Origin((number,), _kept(setting.element), place, quantity.kind, index),
            )
        )  # fmt: skip
    return result


def _kept(element: Element) -> str:
    """What an element keeps, in words."""
    stays = np.linalg.matrix_rank(element.robot_map - np.eye(3), tol=1e-6)
    return {1: "mirror plane", 2: "axis"}.get(int(stays), "centre")


# -- what cannot be averaged -----------------------------------------------------------------------------


def _world(setting: Setting, number: int) -> list[Defect]:
    """Gravity and wind that the element does not keep."""
    result, options = [], setting.model.opt
    blows = options.density > 0 or options.viscosity > 0
    for what, value in ((GRAVITY, options.gravity), *([(WIND, options.wind)] if blows else [])):
        moved, scale = setting.element.world @ value, float(np.abs(value).max())
        gap = float(np.abs(moved - value).max())
        if gap > ROUNDING * scale:
            numbers = tuple(value.tolist()), tuple(value.tolist()), tuple(moved.tolist())
            origin = Origin((number,), _kept(setting.element), None, mujoco.mjtObj.mjOBJ_BODY, 0)
            unit = {GRAVITY: "m/s²", WIND: "m/s"}[what]
            result.append(Defect("world", "world", what, *numbers, gap / scale, unit, origin))
    return result


def _root_frame(setting: Setting, number: int) -> list[Defect]:
    """A free root whose frame the element does not keep in place.

    MuJoCo integrates the frame's origin, and its constraints leave out how the Jacobian changes (the term J' v), so
    that both depend on where the origin was put.
    """
    element, root = setting.element, setting.element.root
    lever = element.bodies.offset[root]
    gap = float(np.linalg.norm(lever))
    if not element.is_free or gap <= ROUNDING * setting.size:
        return []
    name = _short_name(setting.model, mujoco.mjtObj.mjOBJ_BODY, root)
    origin = Origin((number,), _kept(element), None, mujoco.mjtObj.mjOBJ_BODY, root)
    numbers = (0.0, 0.0, 0.0), (0.0, 0.0, 0.0), tuple(lever.tolist())
    return [Defect(name, name, FRAME, *numbers, gap / setting.size, "m", origin)]


def _shapes(setting: Setting, number: int) -> list[Defect]:
    """Geoms that collide and have no image, or one of another shape, by the distance of the surfaces (m)."""
    model, result = setting.model, []
    geoms, gaps = setting.geoms
    moving = colliding(model) & (model.body_weldid[model.geom_bodyid] != 0)
    for geom in np.flatnonzero(moving).tolist():
        name, other = _short_name(model, _GEOM, geom), int(geoms[geom])
        origin = Origin((number,), _kept(setting.element), None, _GEOM, geom)
        if other == NOWHERE:
            result.append(Defect(name, "", NO_IMAGE, (), (), (), 1.0, "", origin))
        elif gaps[geom] > ROUNDING * setting.size:
            gap, image = float(gaps[geom]), _short_name(model, _GEOM, other)
            sizes = tuple(model.geom_size[geom].tolist()), tuple(model.geom_size[other].tolist())
            result.append(Defect(name, image, "shape", *sizes, (gap,), gap / setting.size, "m", origin))
    return result


def _scenery(setting: Setting, number: int) -> list[Defect]:
    """Obstacles fixed to the world that the element would have to move."""
    model, element = setting.model, setting.element
    fixed = colliding(model) & (model.body_weldid[model.geom_bodyid] == 0)
    fixed &= model.geom_type != int(mujoco.mjtGeom.mjGEOM_PLANE)
    fixed &= model.body_mocapid[model.geom_bodyid] < 0
    owned = model.body_rootid[model.geom_bodyid] == element.root  # a pedestal belongs to the robot and moves with it
    result = []
    for geom in np.flatnonzero(fixed & ~owned).tolist():
        body = int(model.geom_bodyid[geom])
        rivals = np.flatnonzero(fixed & (model.geom_bodyid == body)).tolist()
        turn, shift = element.bodies.matrix[body], element.bodies.offset[body]
        if min(distance(model, geom, rival, turn, shift) for rival in rivals) > 1e-6 * setting.size:
            origin = Origin((number,), _kept(element), None, _GEOM, geom)
            result.append(Defect(_short_name(model, _GEOM, geom), "", FIXED, (), (), (), 1.0, "", origin))
    return result


# -- averages --------------------------------------------------------------------------------------------


def averaged(
    model: mujoco.MjModel, group: Group, elements: list[int], which: set[int] | None = None
) -> dict[int, np.ndarray]:
    """For each quantity (by its place) the numbers [n, k] averaged over some elements, which must be a group.

    `which` restricts it to some quantities. A geom without an image keeps what it has.
    """
    result = {}
    settings = [Setting(model, group.pose, group.elements[number], group.size) for number in elements]
    for place, quantity in enumerate(QUANTITIES):
        values = quantity.read(model)
        if not len(values) or (which is not None and place not in which):
            continue
        applies = np.ones(len(values), bool) if quantity.applies is None else quantity.applies(model)
        total = np.zeros_like(values)
        for setting in settings:
            total += placed(images_of(setting, quantity.kind), quantity.move(setting, values), values)
        mean = total / len(elements)
        scale = quantity.scale(model, values, group.size)
        changed = applies & (np.abs(mean - values).max(axis=1) > ROUNDING * scale)
        if changed.any():
            result[place] = np.where(changed[:, None], mean, values)
    return result


# -- words -----------------------------------------------------------------------------------------------


def _short_name(model: mujoco.MjModel, kind: mujoco.mjtObj, index: int) -> str:
    """The name of a part alone, or what and where it is."""
    return mujoco.mj_id2name(model, kind, index) or part_name(model, kind, index)


def _plain(values: tuple[float, ...]) -> float | list[float]:
    return values[0] if len(values) == 1 else list(values)


def _text(values: tuple[float, ...], joiner: str = " ") -> str:
    return joiner.join(f"{value:.6g}" for value in values)


def _sentence(defect: Defect) -> str:
    own, unit = defect.part == defect.image, f" {defect.unit}" if defect.unit else ""
    gap = float(np.linalg.norm(np.subtract(defect.expected, defect.image_value))) if defect.what in _PLACES else 0.0
    if not defect.image:
        reason = "is fixed to the world" if defect.what == FIXED else "collides and has no image"
        return f"{defect.part} {reason}"
    if defect.what in DIRECTIONS:
        return f"{defect.what} is {_text(defect.value, ' ')}{unit}, its image {_text(defect.expected, ' ')}"
    pair = f"of {defect.part} and of its image {defect.image}" if not own else f"of {defect.part} and of its own image"
    if defect.what == "shape":
        return f"the surfaces {pair} are up to {1000 * defect.expected[0]:.3g} mm apart"
    if defect.what == "inertia":
        return f"the inertias {pair} differ by {100 * defect.error:.2g} %"
    if defect.what in _PLACES and own:
        return f"the {defect.what} of {defect.part} lies {500 * gap:.3g} mm off the {defect.origin.about}"
    if defect.what in _PLACES:
        return f"the {_PLACES[defect.what]} {pair} are {1000 * gap:.3g} mm apart"
    joiner = " to " if defect.what.endswith("range") else " "
    text = f"{defect.part} has {defect.what} {_text(defect.value, joiner)}{unit}, its image {defect.image}"
    text += f" {_text(defect.image_value, joiner)}"
    is_turned = not np.allclose(defect.expected, defect.value, rtol=1e-6, atol=1e-12)
    return text + (f" instead of {_text(defect.expected, joiner)}" if is_turned else "")


_PLACES = {"centre of mass": "centres of mass", "anchor": "anchors", FRAME: "frame origins"}
