"""(Element, Layout) → what the element does to observations, from what each entry reads.

Every element of a field says which MuJoCo object it reads and by which rule it answers to a symmetry (`Source`). The
object goes to its image, so the numbers become those of the element that reads the image, turned as the rule says: a
world vector by Q, an angular velocity by det Q · Q, a force in a sensor's frame by S in that frame. Where a vector in a
frame of its own is observed entry by entry, its entries mix as S mixes the axes of that frame.
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

import numpy as np

from euda.body.entry_map import EntryMap
from euda.body.field import Field, Kind, Rule, Source
from euda.body.layout import AGE, Layout
from euda.errors import LayoutError
from euda.symmetry.images import NOWHERE
from euda.symmetry.rotations import axial, quaternion_map

if TYPE_CHECKING:
    from euda.symmetry.element import Element

_STILL = 1e-3  # points closer than this share of the model's size are one: a symmetry may be near only


class UnderivableError(LayoutError):
    """A field whose answer to an element does not follow from what it reads."""

    def __init__(self, field: str, reason: str) -> None:
        super().__init__(f"what a symmetry does to field {field!r} cannot be derived: {reason}")
        self.field = field


@dataclasses.dataclass(frozen=True)
class _Image:
    """What becomes of one object's numbers: whose they are, and by which matrix and offset they go there."""

    id: int
    matrix: np.ndarray
    """[k, k] over the components of the rule."""
    offset: np.ndarray
    """[k]"""


def entry_map(element: Element, layout: Layout) -> EntryMap:
    """What an element does to all entries of an observation, before angles are wrapped."""
    matrix, offset = np.zeros((layout.dim, layout.dim)), np.zeros(layout.dim)
    for field in layout:
        where = layout.slices[field.name]
        fitted = element.fitted.get(field.name.partition(AGE)[0])
        if fitted is None:
            columns, shift = field_map(element, field, layout)
            if (columns.any(axis=1) & matrix.any(axis=1)).any():
                raise UnderivableError(field.name, "another field has the same image")
            matrix[:, where] = columns
            offset += shift
        else:
            matrix[where, where], offset[where] = fitted
    return EntryMap.of_matrix(matrix, offset)


def underivable(element: Element, layout: Layout) -> dict[str, str]:
    """Fields whose answer does not follow from what they read, with the reason."""
    found = {}
    for field in layout:
        try:
            field_map(element, field, layout)
        except UnderivableError as error:
            found[field.name] = str(error)
    return found


def field_map(element: Element, field: Field, layout: Layout) -> tuple[np.ndarray, np.ndarray]:
    """(matrix [layout.dim, dim], offset [layout.dim]): where the numbers of one field go, and how.

    That is the field itself, or, where it does not hold an image, another field: that of the other foot's sensor.
    """
    if not field.sources:
        raise UnderivableError(field.name, "nothing says what it reads")
    matrix, offset = np.zeros((layout.dim, field.dim)), np.zeros(layout.dim)
    reads = _rows(field, layout)
    for place, source in enumerate(field.sources):
        image = _image(element, field, source)
        for component in _components(field, source):
            column = matrix[:, field.kind.width * place : field.kind.width * (place + 1)]
            _spread(field, source, component, image, reads, column, offset)
    if any(source.is_nonlinear for source in field.sources) and not np.isin(np.abs(matrix).round(12), (0, 1)).all():
        raise UnderivableError(field.name, "its numbers went through a function, and mix on the way to their images")
    return matrix, offset


def _rows(field: Field, layout: Layout) -> dict[tuple, int]:
    """By what is read, the row where its numbers begin; of other fields only plain ones of the same kind and age.

    A field that reads the same as this one has its own images, so it is not asked for those of this one.
    """
    age, width, own = field.name.partition(AGE)[2], field.kind.width, {_key(s, s.component) for s in field.sources}
    rows = dict[tuple, int]()
    for other in (*(one for one in layout if one.name != field.name), field):  # itself last, so that it wins
        keys = [_key(source, source.component) for source in other.sources]
        if other.kind is not field.kind or other.name.partition(AGE)[2] != age:
            continue
        if other.name != field.name and (not own.isdisjoint(keys) or any(s.is_nonlinear for s in other.sources)):
            continue  # two functions that numbers went through need not be the same one
        rows |= {key: layout.slices[other.name].start + width * place for place, key in enumerate(keys)}
    return rows


def _key(source: Source, component: int) -> tuple[str, int, Rule, int, bool, tuple[str, int] | None]:
    return source.object, source.id, source.rule, component, source.is_length, source.frame


def _components(field: Field, source: Source) -> range | tuple[int, ...]:
    """The components of the image to which an element contributes."""
    if field.kind is Kind.SCALAR and source.rule is Rule.RELATIVE:
        return range(9)
    if source.rule is Rule.COLUMN:
        return range(3)
    if field.kind is Kind.SCALAR and source.rule in _MIXED:
        return range(4 if source.rule is Rule.ORIENTATION else 3)
    return (source.component,)


_MIXED = (Rule.POLAR, Rule.AXIAL, Rule.ORIENTATION, Rule.OWN_POLAR, Rule.OWN_AXIAL)


def _spread(
    field: Field, source: Source, component: int, image: _Image, reads: dict, column: np.ndarray, offset: np.ndarray
) -> None:
    """Add what an element gives to the element that reads `component` of its image, in place."""
    width = field.kind.width
    if source.rule is Rule.COLUMN:
        block = image.matrix[:3, :3] * image.matrix[3 + component, 3 + source.component]
        shift = np.zeros(3)
    elif len(_components(field, source)) > 1:
        block = image.matrix[component : component + 1, source.component : source.component + 1]
        shift = np.zeros(1)
    else:
        block, shift = image.matrix[:width, :width], image.offset[:width]
    if not np.abs(block).max() > 1e-12:
        return
    frame = None if source.frame is None else (source.frame[0], source.frame[1])
    row = reads.get((source.object, image.id, source.rule, component, source.is_length, frame))
    if row is None:
        held, missing = f"{source.object} {source.id}", f"{source.object} {image.id}"
        raise UnderivableError(field.name, f"it reads {held}, and nothing reads its image, {missing}")
    column[row : row + width] += block
    offset[row : row + width] = shift


# -- rules -----------------------------------------------------------------------------------------------


def _image(element: Element, field: Field, source: Source) -> _Image:
    """Where an object's numbers go, and how, by the rule of its source."""
    image, sign = _target(element, field, source)
    q, none = element.world, np.zeros(4)
    match source.rule:
        case Rule.POLAR:
            _refuse_moved(element, field, source)
            return _Image(image, sign * q, none)
        case Rule.AXIAL:
            return _Image(image, sign * axial(q), none)
        case Rule.COLUMN:
            turn = np.zeros((6, 6))
            turn[:3, :3], turn[3:, 3:] = q, _frame(element, source.object, source.id)
            return _Image(image, turn, none)
        case Rule.ORIENTATION:
            return _Image(image, _orientation(element, source), none)
        case Rule.OWN_POLAR | Rule.OWN_AXIAL:
            return _Image(image, _own_frame(element, field, source), none)
        case Rule.RELATIVE:
            outer, inner = _frame(element, *source.frame or ("xbody", 0)), _frame(element, source.object, source.id)
            return _Image(image, np.kron(outer, inner), none)
        case Rule.SCALAR:
            return _Image(image, np.array([[sign]]), np.array([_shift(element, field, source)]))


def _target(element: Element, field: Field, source: Source) -> tuple[int, float]:
    """The object that takes the place of the one that is read, and the sign that goes with it."""
    what, index = source.object, source.id
    match what:
        case "task":
            return index, 1.0
        case "body" | "xbody":
            return int(element.bodies.image[index]), 1.0
        case "joint" | "actuator":
            images = element.joints if what == "joint" else element.actuators
            return int(images.image[index]), float(images.signs[index]) if source.is_signed else 1.0
        case "sensor":
            image = int(element.sensors.image[index])
            if image == NOWHERE:
                raise UnderivableError(field.name, f"sensor {index} has no image, or follows no linear rule")
            return image, float(element.sensors.matrix[index, 0, 0]) if source.rule is Rule.SCALAR else 1.0
        case "site" | "geom":
            return index, 1.0  # `_refuse_moved` sees to it that it stays where it is
        case _:
            raise UnderivableError(field.name, f"it reads {what!r}, which is none of the parts that go to images")


def _refuse_moved(element: Element, field: Field, source: Source) -> None:
    """Points other than centres of mass must go to the points that are read of their images."""
    if source.object == "xbody":
        _refuse_shifted(element, field, source.id)
    if source.object in element.table.fixed:
        bodies, places = element.table.fixed[source.object]
        body, place = int(bodies[source.id]), places[source.id]
        goal = element.bodies.matrix[body] @ place + element.bodies.offset[body]
        if element.bodies.image[body] != body or np.abs(goal - place).max() > _STILL * element.table.extent:
            raise UnderivableError(field.name, f"{source.object} {source.id} does not stay in its place")


def _refuse_shifted(element: Element, field: Field, body: int) -> None:
    if body and np.abs(element.bodies.offset[body]).max() > _STILL * element.table.extent:
        image = int(element.bodies.image[body])
        raise UnderivableError(
            field.name, f"the origin of the frame of body {body} does not go to that of its image, body {image}"
        )


def _frame(element: Element, what: str, index: int) -> np.ndarray:
    """S [3, 3] in the frame of an object; for the world, and what is mounted on it, in the mounting's frame."""
    if what == "sensor":
        return element.sensors.matrix[index, :3, :3]
    is_mounting = not element.is_free and index == element.root
    if index == 0:
        return element.world if element.is_free else element.mounting
    return element.mounting if is_mounting else element.bodies.matrix[index]


def _own_frame(element: Element, field: Field, source: Source) -> np.ndarray:
    """S in the frame in which a vector is expressed, for what a right-hand rule defines with its handedness."""
    if source.object == "sensor" and source.frame is None:
        return element.sensors.matrix[source.id, :3, :3]  # the sensor's own rule says polar or axial
    if source.object == "joint":
        turn = element.after(source.id)
    else:
        turn = _frame(element, *source.frame or (source.object, source.id))
    if source.object == "xbody" and source.frame is not None:
        for body in (source.id, source.frame[1]):
            _refuse_shifted(element, field, body)
    return axial(turn) if source.rule is Rule.OWN_AXIAL else turn


def _orientation(element: Element, source: Source) -> np.ndarray:
    """[4, 4] for quaternions: of a ball joint relative to what it hangs on, of a body or sensor in the world."""
    if source.object == "joint":
        return quaternion_map(element.before.matrix[source.id], element.after(source.id))
    if source.object == "sensor":
        own = element.sensors.matrix[source.id]
        return own if source.frame is not None else quaternion_map(element.world, np.eye(3)) @ own
    return quaternion_map(element.world, _frame(element, source.object, source.id))


def _shift(element: Element, field: Field, source: Source) -> float:
    """The offset of a number: a joint's, a sensor's; of a heading also how far the world was turned."""
    if source.object in ("body", "xbody"):
        _refuse_shifted(element, field, source.id)
        return 0.0
    heading = element.yaw if field.kind is Kind.HEADING else 0.0
    if source.object == "joint":
        return heading + (float(element.joints.offset[source.id, 0]) if source.is_length else 0.0)
    if source.object == "sensor":
        return heading + float(element.sensors.offset[source.id, 0])
    if source.object == "actuator":
        return float(element.activations.offset[int(element.table.activation[source.id]) + source.component, 0])
    return heading
