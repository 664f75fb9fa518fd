"""MuJoCo's sensors as readings: how a sensor turns follows from its type, never from its name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import mujoco
import numpy as np

from euda.body.layout import Field, Frame, Kind
from euda.body.readings import Make, Reading, Write, gather
from euda.body.robot import Robot
from euda.errors import EudaError, unknown


def read(name: str, *names: str, transform: Callable[..., Any] | None = None) -> Make:
    """Readings of MuJoCo sensors, their kind taken from the sensor's type (see `sensor_kind`)."""

    def make(robot: Robot) -> Reading:
        ids = [_sensor_id(robot.model, sensor) for sensor in names]
        kinds = {sensor_kind(robot.model, sensor) for sensor in ids}
        if len(kinds) > 1:
            raise EudaError(f"sensors {', '.join(names)} turn in different ways: read them as separate fields")
        kind, frame = kinds.pop()
        if transform is not None and kind is not Kind.SCALAR:
            raise EudaError(f"a nonlinear transform of the world vector {names[0]!r} would not turn like a vector")
        index = np.concatenate(
            [np.arange(a := int(robot.model.sensor_adr[i]), a + int(robot.model.sensor_dim[i])) for i in ids]
        )
        count = len(index) // kind.width
        of = names if count == len(names) else ()
        plain = gather(robot, Field(name, kind, count, of, frame=frame), robot.data.sensordata, index.tolist())
        return plain if transform is None else _transformed(plain, transform)

    return make


def _transformed(plain: Reading, transform: Callable[..., Any]) -> Reading:
    """A reading passed through a NumPy function (x, out)."""

    def bind(out: np.ndarray) -> Write:
        fill = plain.bind(out)

        def write() -> None:
            fill()
            transform(out, out)

        return write

    return Reading(plain.field, bind)


def _sensor_id(model: mujoco.MjModel, name: str) -> int:
    index = mujoco.mj_name2id(model, mujoco.mjtObj.mjOBJ_SENSOR, name)
    if index < 0:
        raise unknown("sensor", name, [model.sensor(i).name for i in range(model.nsensor)] or ["(the model has none)"])
    return index


_S = mujoco.mjtSensor
_WORLD_FRAME = {  # unless a reference frame is given, in which case they are readings in that frame
    _S.mjSENS_FRAMEPOS: Kind.VECTOR, _S.mjSENS_FRAMEXAXIS: Kind.VECTOR, _S.mjSENS_FRAMEYAXIS: Kind.VECTOR,
    _S.mjSENS_FRAMEZAXIS: Kind.VECTOR, _S.mjSENS_FRAMELINVEL: Kind.VECTOR, _S.mjSENS_FRAMEANGVEL: Kind.VECTOR,
    _S.mjSENS_FRAMELINACC: Kind.VECTOR, _S.mjSENS_FRAMEANGACC: Kind.VECTOR, _S.mjSENS_SUBTREECOM: Kind.VECTOR,
    _S.mjSENS_SUBTREELINVEL: Kind.VECTOR, _S.mjSENS_SUBTREEANGMOM: Kind.VECTOR, _S.mjSENS_GEOMNORMAL: Kind.VECTOR,
    _S.mjSENS_GEOMFROMTO: Kind.VECTOR, _S.mjSENS_FRAMEQUAT: Kind.QUATERNION,
}  # fmt: skip
_BODY_FRAME = {
    _S.mjSENS_ACCELEROMETER, _S.mjSENS_VELOCIMETER, _S.mjSENS_GYRO, _S.mjSENS_FORCE, _S.mjSENS_TORQUE,
    _S.mjSENS_BALLQUAT, _S.mjSENS_BALLANGVEL,
}  # fmt: skip
_PLAIN = {
    _S.mjSENS_TOUCH, _S.mjSENS_RANGEFINDER, _S.mjSENS_JOINTPOS, _S.mjSENS_JOINTVEL, _S.mjSENS_TENDONPOS,
    _S.mjSENS_TENDONVEL, _S.mjSENS_ACTUATORPOS, _S.mjSENS_ACTUATORVEL, _S.mjSENS_ACTUATORFRC, _S.mjSENS_JOINTACTFRC,
    _S.mjSENS_TENDONACTFRC, _S.mjSENS_JOINTLIMITPOS, _S.mjSENS_JOINTLIMITVEL, _S.mjSENS_JOINTLIMITFRC,
    _S.mjSENS_TENDONLIMITPOS, _S.mjSENS_TENDONLIMITVEL, _S.mjSENS_TENDONLIMITFRC, _S.mjSENS_GEOMDIST,
    _S.mjSENS_E_POTENTIAL, _S.mjSENS_E_KINETIC, _S.mjSENS_CLOCK, _S.mjSENS_INSIDESITE,
}  # fmt: skip


def _is_static(model: mujoco.MjModel, kind: int, index: int) -> bool:
    """Whether a site, geom, camera or body never moves."""
    owners = {"SITE": model.site_bodyid, "GEOM": model.geom_bodyid, "CAMERA": model.cam_bodyid}
    name = mujoco.mjtObj(kind).name.removeprefix("mjOBJ_")
    body = int(owners[name][index]) if name in owners else index
    return int(model.body_weldid[body]) == 0


def sensor_kind(model: mujoco.MjModel, sensor: int) -> tuple[Kind, Frame]:
    """How a MuJoCo sensor turns, from its type: (kind, frame). Refuses sensors that turn in no simple way."""
    kind = _S(model.sensor_type[sensor])
    name = model.sensor(sensor).name
    if kind in _WORLD_FRAME:
        if model.sensor_refid[sensor] >= 0 and model.sensor_reftype[sensor] != mujoco.mjtObj.mjOBJ_UNKNOWN.value:
            if _is_static(model, int(model.sensor_reftype[sensor]), int(model.sensor_refid[sensor])):
                raise EudaError(f"sensor {name!r} is read in a frame fixed to the world: remove its reference")
            return Kind.SCALAR, "body"
        if model.sensor_cutoff[sensor] > 0:
            raise EudaError(
                f"sensor {name!r} clips each component of a world vector, which then does not turn: remove its cutoff"
            )
        return _WORLD_FRAME[kind], "world"
    if kind in _BODY_FRAME:
        return Kind.SCALAR, "body"
    if kind in _PLAIN:
        return Kind.SCALAR, "world"
    raise EudaError(f"sensor {name!r} of type {kind.name} has no known behaviour under a yaw: leave it out")
