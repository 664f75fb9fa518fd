"""MuJoCo's sensors as readings: how a sensor turns and mirrors follows from its type, never from its name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import mujoco
import numpy as np

from euda.body.field import Field, Frame, Kind, Rule, Source
from euda.body.readings import Make, Reading
from euda.body.robot import Robot, Scene
from euda.errors import EudaError, unknown

Transform = Callable[[Any, Any], Any]
"""(array namespace, numbers) → as many numbers, each a function of its own."""


def read(name: str, *names: str, transform: Transform | None = None) -> Make:
    """Readings of MuJoCo sensors, their kind taken from the sensor's type (see `sensor_kind`)."""

    def make(robot: Robot) -> Reading:
        model, ids = robot.model, [_sensor_id(robot.model, sensor) for sensor in names]
        found = {sensor_kind(model, sensor) for sensor in ids}
        if len(found) > 1:
            raise EudaError(f"sensors {', '.join(names)} turn in different ways: read them as separate fields")
        kind, frame = found.pop()
        if transform is not None and kind is not Kind.SCALAR:
            raise EudaError(f"a nonlinear transform of the world vector {names[0]!r} would not turn like a vector")
        entries = np.concatenate([model.sensor_adr[i] + np.arange(model.sensor_dim[i]) for i in ids])
        count = len(entries) // kind.width
        of = names if count == len(names) else ()
        read_from = tuple(s for i in ids for s in _sources(model, i, kind, transform is not None))
        field = Field(name, kind, count, of, frame=frame, sources=read_from)

        def read(xp: Any, scene: Scene) -> Any:
            plain = scene.data.sensordata[entries]
            return plain if transform is None else transform(xp, plain)

        return Reading(field, read)

    return make


def _sensor_id(model: mujoco.MjModel, name: str) -> int:
    index = mujoco.mj_name2id(model, mujoco.mjtObj.mjOBJ_SENSOR, name)
    if index < 0:
        raise unknown("sensor", name, [model.sensor(i).name for i in range(model.nsensor)] or ["(the model has none)"])
    return index


class _Answer(NamedTuple):
    """How a type of sensor turns and mirrors."""

    kind: Kind
    frame: Frame
    rule: Rule
    is_signed: bool = False
    column: int = 0
    """Of a rotation matrix."""


def _world(rule: Rule, column: int = 0) -> _Answer:
    """A vector in the world, or in a reference frame where the sensor has one."""
    return _Answer(Kind.VECTOR, "world", rule, column=column)


def _own(rule: Rule) -> _Answer:
    return _Answer(Kind.SCALAR, "body", rule)


_EVEN = _Answer(Kind.SCALAR, "world", Rule.SCALAR)
_SIGNED = _Answer(Kind.SCALAR, "world", Rule.SCALAR, is_signed=True)
_S = mujoco.mjtSensor
_ANSWERS = {
    _S.mjSENS_FRAMEPOS: _world(Rule.POLAR), _S.mjSENS_FRAMELINVEL: _world(Rule.POLAR),
    _S.mjSENS_FRAMELINACC: _world(Rule.POLAR), _S.mjSENS_SUBTREECOM: _world(Rule.POLAR),
    _S.mjSENS_SUBTREELINVEL: _world(Rule.POLAR), _S.mjSENS_GEOMNORMAL: _world(Rule.POLAR),
    _S.mjSENS_GEOMFROMTO: _world(Rule.POLAR), _S.mjSENS_FRAMEANGVEL: _world(Rule.AXIAL),
    _S.mjSENS_FRAMEANGACC: _world(Rule.AXIAL), _S.mjSENS_SUBTREEANGMOM: _world(Rule.AXIAL),
    _S.mjSENS_FRAMEXAXIS: _world(Rule.COLUMN, 0), _S.mjSENS_FRAMEYAXIS: _world(Rule.COLUMN, 1),
    _S.mjSENS_FRAMEZAXIS: _world(Rule.COLUMN, 2),
    _S.mjSENS_FRAMEQUAT: _Answer(Kind.QUATERNION, "world", Rule.ORIENTATION),
    _S.mjSENS_ACCELEROMETER: _own(Rule.OWN_POLAR), _S.mjSENS_VELOCIMETER: _own(Rule.OWN_POLAR),
    _S.mjSENS_FORCE: _own(Rule.OWN_POLAR), _S.mjSENS_GYRO: _own(Rule.OWN_AXIAL), _S.mjSENS_TORQUE: _own(Rule.OWN_AXIAL),
    _S.mjSENS_BALLQUAT: _own(Rule.ORIENTATION), _S.mjSENS_BALLANGVEL: _own(Rule.OWN_AXIAL),
} | dict.fromkeys((
    _S.mjSENS_JOINTPOS, _S.mjSENS_JOINTVEL, _S.mjSENS_TENDONPOS, _S.mjSENS_TENDONVEL, _S.mjSENS_ACTUATORPOS,
    _S.mjSENS_ACTUATORVEL, _S.mjSENS_ACTUATORFRC, _S.mjSENS_JOINTACTFRC, _S.mjSENS_TENDONACTFRC,
), _SIGNED) | dict.fromkeys((
    _S.mjSENS_TOUCH, _S.mjSENS_RANGEFINDER, _S.mjSENS_JOINTLIMITPOS, _S.mjSENS_JOINTLIMITVEL,
    _S.mjSENS_JOINTLIMITFRC, _S.mjSENS_TENDONLIMITPOS, _S.mjSENS_TENDONLIMITVEL, _S.mjSENS_TENDONLIMITFRC,
    _S.mjSENS_GEOMDIST, _S.mjSENS_E_POTENTIAL, _S.mjSENS_E_KINETIC, _S.mjSENS_CLOCK, _S.mjSENS_INSIDESITE,
), _EVEN)  # fmt: skip
_BETWEEN_GEOMS = (_S.mjSENS_GEOMDIST, _S.mjSENS_GEOMNORMAL, _S.mjSENS_GEOMFROMTO)
_IN_REFERENCE = {Rule.POLAR: Rule.OWN_POLAR, Rule.AXIAL: Rule.OWN_AXIAL, Rule.COLUMN: Rule.RELATIVE}


def _reference(model: mujoco.MjModel, sensor: int) -> tuple[str, int] | None:
    """Object and id of the frame in which a sensor is read, if it names one; the second geom of a distance is none."""
    kind, index = mujoco.mjtObj(model.sensor_reftype[sensor]), int(model.sensor_refid[sensor])
    if index < 0 or kind == mujoco.mjtObj.mjOBJ_UNKNOWN or _S(model.sensor_type[sensor]) in _BETWEEN_GEOMS:
        return None
    return kind.name.removeprefix("mjOBJ_").lower(), index


def _is_clipped(model: mujoco.MjModel, sensor: int) -> bool:
    """Whether MuJoCo cuts each component off; a cutoff between geoms is how far apart they may be."""
    is_real = int(model.sensor_datatype[sensor]) == int(mujoco.mjtDataType.mjDATATYPE_REAL)
    return model.sensor_cutoff[sensor] > 0 and is_real and _S(model.sensor_type[sensor]) not in _BETWEEN_GEOMS


def _is_static(model: mujoco.MjModel, what: str, index: int) -> bool:
    """Whether a site, geom, camera or body never moves."""
    owners = {"site": model.site_bodyid, "geom": model.geom_bodyid, "camera": model.cam_bodyid}
    body = int(owners[what][index]) if what in owners else index
    return int(model.body_weldid[body]) == 0


def sensor_kind(model: mujoco.MjModel, sensor: int) -> tuple[Kind, Frame]:
    """How a MuJoCo sensor turns, from its type: (kind, frame). Refuses sensors that turn in no simple way."""
    kind, name = _S(model.sensor_type[sensor]), model.sensor(sensor).name
    if kind not in _ANSWERS:
        raise EudaError(f"sensor {name!r} of type {kind.name} has no known behaviour under a yaw: leave it out")
    answer, reference = _ANSWERS[kind], _reference(model, sensor)
    if answer.kind is Kind.SCALAR:
        return answer.kind, answer.frame
    if reference is not None:
        if _is_static(model, *reference):
            raise EudaError(f"sensor {name!r} is read in a frame fixed to the world: remove its reference")
        return Kind.SCALAR, "body"
    if _is_clipped(model, sensor):
        raise EudaError(
            f"sensor {name!r} clips each component of a world vector, which then does not turn: remove its cutoff"
        )
    return answer.kind, answer.frame


def _sources(model: mujoco.MjModel, sensor: int, kind: Kind, is_nonlinear: bool) -> list[Source]:
    """What each element of a sensor reads."""
    answer, reference = _ANSWERS[_S(model.sensor_type[sensor])], _reference(model, sensor)
    rule, elements = answer.rule, int(model.sensor_dim[sensor]) // kind.width
    if answer.kind is Kind.SCALAR or reference is None:
        components = [answer.column] if rule is Rule.COLUMN else list(range(elements))
        reference = None
    else:
        rule = _IN_REFERENCE.get(rule, rule)
        components = [3 * row + answer.column for row in range(3)] if rule is Rule.RELATIVE else list(range(elements))
    return [
        Source("sensor", sensor, rule, k, answer.is_signed, reference, is_nonlinear=is_nonlinear) for k in components
    ]
