"""What can be read from a simulation, each reading with the field that says how it turns.

A `Reading` is made for one robot (model, data, limbs) and fills its slice of the observation. Readings
keep views of MuJoCo's arrays, which stay valid for the life of the `MjData`, and write in place: an
observation allocates nothing but its result.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

import mujoco
import numpy as np

from euda.body.layout import Field, Kind
from euda.body.morphology import Limb, Morphology, hinge_axis_through_com
from euda.errors import EudaError, unknown

Write = Callable[[], None]


@dataclasses.dataclass(frozen=True)
class Target:
    """A point to reach: a named site, geom or body, or a fixed place in the world [3] (m)."""

    place: str | np.ndarray
    limb: str
    """Name of the site, geom or body of the robot that should reach it."""


@dataclasses.dataclass(frozen=True)
class Robot:
    """A robot in a simulation: where readings read from."""

    model: mujoco.MjModel
    data: mujoco.MjData
    morphology: Morphology
    direction: np.ndarray | None = None
    """The task's direction of travel t, a unit vector in the world; read anew at every observation."""
    target: Target | None = None


@dataclasses.dataclass(frozen=True)
class Reading:
    """A field and how to fill it: `bind(out)` prepares views of `out` [field.dim] and returns the writer."""

    field: Field
    bind: Callable[[np.ndarray], Write]


Make = Callable[[Robot], Reading]
"""Readings in task tables are recipes: they become readings once the robot is there."""


def _copy(field: Field, source: np.ndarray) -> Reading:
    """A reading that copies a view of MuJoCo's data."""

    def bind(out: np.ndarray) -> Write:
        shaped = out.reshape(source.shape)
        return lambda: np.copyto(shaped, source)

    return Reading(field, bind)


def _rows(array: np.ndarray, indices: Sequence[int]) -> np.ndarray | None:
    """A view of these rows if they are consecutive, as the bodies of one robot usually are."""
    start = indices[0]
    return array[start : start + len(indices)] if list(indices) == list(range(start, start + len(indices))) else None


def _gather(field: Field, array: np.ndarray, indices: Sequence[int]) -> Reading:
    """Rows of one of MuJoCo's arrays, by a view where they are consecutive."""
    view = _rows(array, indices)
    if view is not None:
        return _copy(field, view)
    index = np.asarray(indices)

    def bind(out: np.ndarray) -> Write:
        shaped = out.reshape(len(indices), -1)
        return lambda: np.take(array, index, axis=0, out=shaped, mode="clip")

    return Reading(field, bind)


# -- limbs -----------------------------------------------------------------------------------------------


def rotation(robot: Robot, name: str, limbs: Sequence[Limb]) -> Reading:
    """The columns of R_i, i.e. the limbs' own axes in the world: nine numbers, three vectors, per limb."""
    columns = tuple(f"{limb.name}.{axis}" for limb in limbs for axis in "xyz")
    field = Field(name, Kind.VECTOR, 3 * len(limbs), columns)
    matrices = [robot.data.xmat[limb.body].reshape(3, 3).T for limb in limbs]

    def bind(out: np.ndarray) -> Write:
        pairs = list(zip(out.reshape(-1, 3, 3), matrices, strict=True))

        def write() -> None:
            for target, source in pairs:
                target[...] = source

        return write

    return Reading(field, bind)


def mount_rotation(robot: Robot, name: str) -> Reading:
    """The axes of a fixed base: those of the frame in which the robot's first body is mounted on the world."""
    field = Field(name, Kind.VECTOR, 3, tuple(f"{robot.morphology.root.name}.{axis}" for axis in "xyz"))
    quaternion, matrix = robot.model.body_quat[robot.morphology.mount], np.empty(9)

    def bind(out: np.ndarray) -> Write:
        shaped = out.reshape(3, 3)

        def write() -> None:
            mujoco.mju_quat2Mat(matrix, quaternion)
            np.copyto(shaped, matrix.reshape(3, 3).T)

        return write

    return Reading(field, bind)


def angular_velocity(robot: Robot, name: str, limbs: Sequence[Limb]) -> Reading:
    """ω_i in the world (rad/s)."""
    field = Field(name, Kind.VECTOR, len(limbs), _names(limbs), unit="rad/s")
    return _gather(field, robot.data.cvel[:, :3], [limb.body for limb in limbs])


def position(robot: Robot, name: str, limbs: Sequence[Limb], *, origin: Limb, of_com: bool = True) -> Reading:
    """p_i - p_1 in the world (m), of centres of mass, or of body frames for the paper's equation to the letter."""
    points = robot.data.xipos if of_com else robot.data.xpos
    bodies = [limb.body for limb in limbs]
    field = Field(name, Kind.VECTOR, len(limbs), _names(limbs), unit="m")
    # A fixed base hangs on the world: its place is where the robot's first body is mounted.
    base = points[origin.body] if origin.body else robot.model.body_pos[robot.morphology.mount]
    at_base = [i for i, limb in enumerate(limbs) if limb.body == 0]
    view, index = _rows(points, bodies), np.asarray(bodies)

    def bind(out: np.ndarray) -> Write:
        shaped = out.reshape(-1, 3)
        if view is not None and not at_base:
            return lambda: np.subtract(view, base, out=shaped)

        def write() -> None:
            np.subtract(points[index], base, out=shaped)
            shaped[at_base] = 0.0

        return write

    return Reading(field, bind)


def velocity(robot: Robot, name: str, limbs: Sequence[Limb], *, of_com: bool = True) -> Reading:
    """v_i in the world (m/s): the velocity of the same points as `position`.

    MuJoCo's `cvel` is a spatial velocity at the tree's centre of mass c: v(p) = cvel_lin + ω x (p - c).
    """
    points = robot.data.xipos if of_com else robot.data.xpos
    bodies = [limb.body for limb in limbs]
    field = Field(name, Kind.VECTOR, len(limbs), _names(limbs), unit="m/s")
    views = [_rows(array, bodies) for array in (points, robot.data.cvel)]
    index = np.asarray(bodies)
    roots = robot.model.body_rootid[index]
    centre = robot.data.subtree_com[roots[-1]]
    one_tree = len(set(roots[roots > 0].tolist())) == 1  # rows of the world have zero velocity: any centre will do
    # Cross product by shifted slices: [x y z x y], so that components (1,2,0) and (2,0,1) are slices 1:4 and 2:5.
    spin, lever, product = np.zeros((len(limbs), 5)), np.zeros((len(limbs), 5)), np.empty((len(limbs), 3))
    s012, s01, s34, s120, s201 = spin[:, :3], spin[:, :2], spin[:, 3:], spin[:, 1:4], spin[:, 2:5]
    l012, l01, l34, l120, l201 = lever[:, :3], lever[:, :2], lever[:, 3:], lever[:, 1:4], lever[:, 2:5]
    multiply, subtract, add, copyto = np.multiply, np.subtract, np.add, np.copyto

    def bind(out: np.ndarray) -> Write:
        shaped = out.reshape(-1, 3)
        if views[0] is not None and views[1] is not None and one_tree:
            at, angular, linear = views[0], views[1][:, :3], views[1][:, 3:]

            def write() -> None:
                copyto(s012, angular)
                subtract(at, centre, l012)
                copyto(s34, s01)
                copyto(l34, l01)
                multiply(s120, l201, shaped)
                multiply(s201, l120, product)
                subtract(shaped, product, shaped)
                add(shaped, linear, shaped)

        else:

            def write() -> None:
                twist = robot.data.cvel[index]
                arm = points[index] - robot.data.subtree_com[roots]
                shaped[...] = twist[:, 3:] + np.cross(twist[:, :3], arm)

        return write

    return Reading(field, bind)


def axes(robot: Robot, name: str, limbs: Sequence[Limb]) -> Reading:
    """The world axes of joints made of hinges and slides."""
    joints = [joint for limb in limbs for joint in limb.joints]
    names = tuple(robot.model.joint(joint).name or f"joint{joint}" for joint in joints)
    return _gather(Field(name, Kind.VECTOR, len(joints), names), robot.data.xaxis, joints)


def on_ball(model: mujoco.MjModel, limb: Limb) -> bool:
    """Whether the limb hangs on a ball joint, which has no axes: its own axes are read instead."""
    return any(mujoco.mjtJoint(model.jnt_type[joint]) == mujoco.mjtJoint.mjJNT_BALL for joint in limb.joints)


def _names(limbs: Sequence[Limb]) -> tuple[str, ...]:
    return tuple(limb.name for limb in limbs)


# -- task features ---------------------------------------------------------------------------------------


def check_triple(what: str, value: object) -> np.ndarray:
    """Three finite numbers [3]; says in one sentence what else it is."""
    try:
        array = np.array(value, dtype=np.float64)
    except (TypeError, ValueError):
        raise EudaError(f"a {what} is three numbers (x, y, z), not {value!r}") from None
    if array.shape != (3,) or not np.isfinite(array).all():
        raise EudaError(f"a {what} is three finite numbers (x, y, z), not {value!r}")
    return array


def check_direction(value: object) -> np.ndarray:
    """A direction of travel as a unit vector [3]."""
    array = check_triple("direction", value)
    norm = float(np.linalg.norm(array))
    if norm == 0:
        raise EudaError("a direction must not be zero")
    return array / norm


def direction(robot: Robot) -> Reading:
    """t: the unit vector along which the task wants the robot to travel."""
    if robot.direction is None:
        raise EudaError("this task has no direction to observe")
    return _copy(Field("direction", Kind.VECTOR), robot.direction)


def to_target(robot: Robot, kind: Kind = Kind.VECTOR) -> Reading:
    """t = p_target - p_limb (m), in three dimensions or, as dm_control observes it, in the plane."""
    if robot.target is None:
        raise EudaError("this task has no target to observe")
    place, limb = robot.target.place, point(robot.model, robot.data, robot.target.limb)[: kind.width]
    target = (point(robot.model, robot.data, place) if isinstance(place, str) else place)[: kind.width]
    field = Field("to_target", kind, 1, unit="m")
    return Reading(field, lambda out: lambda: np.subtract(target, limb, out=out))


_POINTS = (("site", "site_xpos"), ("geom", "geom_xpos"), ("body", "xpos"))


def point(model: mujoco.MjModel, data: mujoco.MjData, name: str) -> np.ndarray:
    """A view of the world position of the site, geom or body of that name (first found in this order)."""
    for what, array in _POINTS:
        index = mujoco.mj_name2id(model, getattr(mujoco.mjtObj, f"mjOBJ_{what.upper()}"), name)
        if index >= 0:
            return getattr(data, array)[index]
    names = [getattr(model, what)(i).name for what, _ in _POINTS for i in range(getattr(model, f"n{what}"))]
    raise unknown("site, geom or body", name, sorted({n for n in names if n}))


# -- readings of tables: recipes -------------------------------------------------------------------------


def height(name: str, body: str | None = None) -> Make:
    """Height of a body's frame above the world's origin (m); of the root where none is named."""

    def make(robot: Robot) -> Reading:
        index = robot.morphology.root.body if body is None else robot.model.body(body).id
        return _copy(Field(name, Kind.SCALAR, unit="m"), robot.data.xpos[index, 2:])

    return make


def upright(name: str, body: str, entries: slice = slice(8, 9)) -> Make:
    """Third row of a body's rotation matrix: the vertical seen from the body, or its last entry alone."""

    def make(robot: Robot) -> Reading:
        source = robot.data.xmat[robot.model.body(body).id, entries]
        return _copy(Field(name, Kind.SCALAR, source.size, frame="body"), source)

    return make


def vertical(name: str, body: str) -> Make:
    """The world's vertical in a body's frame: three scalars."""
    return upright(name, body, slice(6, 9))


def joint_positions(name: str, start: int, stop: int | None = None, kind: Kind = Kind.SCALAR) -> Make:
    """A range of `qpos`."""
    return _state(name, "qpos", start, stop, kind)


def joint_velocities(name: str, start: int = 0, stop: int | None = None, kind: Kind = Kind.SCALAR) -> Make:
    """A range of `qvel`."""
    return _state(name, "qvel", start, stop, kind)


def activations(name: str = "activation") -> Make:
    """Internal states of the actuators."""
    return _state(name, "act", 0, None, Kind.SCALAR)


def _state(name: str, array: str, start: int, stop: int | None, kind: Kind) -> Make:
    def make(robot: Robot) -> Reading:
        source = getattr(robot.data, array)[start:stop]
        return _copy(Field(name, kind, source.size // kind.width), source)

    return make


def extremities(name: str, root: str, bodies: Sequence[str]) -> Make:
    """Positions of bodies in the root's frame (m): a body-frame reading, so scalars."""

    def make(robot: Robot) -> Reading:
        model, data = robot.model, robot.data
        torso = model.body(root).id
        index = np.array([model.body(body).id for body in bodies])
        place, frame = data.xpos[torso], data.xmat[torso].reshape(3, 3)
        field = Field(name, Kind.SCALAR, 3 * len(bodies), frame="body", unit="m")

        def bind(out: np.ndarray) -> Write:
            shaped = out.reshape(-1, 3)
            arms = np.empty((len(bodies), 3))

            def write() -> None:
                np.take(data.xpos, index, axis=0, out=arms, mode="clip")
                np.subtract(arms, place, out=arms)
                np.matmul(arms, frame, out=shaped)

            return write

        return Reading(field, bind)

    return make


def planar_orientations(name: str) -> Make:
    """(xx, xz) of every body, as dm_control's walker observes them: seen along the plane the walker runs in."""

    def make(robot: Robot) -> Reading:
        model, data = robot.model, robot.data
        bodies = [limb.body for limb in robot.morphology.limbs]
        columns = data.xmat[bodies[0] : bodies[-1] + 1].reshape(-1, 3, 3)[:, :, ::2]
        mount = model.body_quat[robot.morphology.mount]
        forward, matrix = np.empty(3), np.empty(9)
        field = Field(name, Kind.SCALAR, 2 * len(bodies), frame="body")

        def bind(out: np.ndarray) -> Write:
            shaped = out.reshape(-1, 2)

            def write() -> None:
                mujoco.mju_quat2Mat(matrix, mount)
                forward[:] = matrix[0::3]
                np.einsum("i,bij->bj", forward, columns, out=shaped)

            return write

        return Reading(field, bind)

    return make


def sensors(name: str, *names: str, transform: Callable[..., Any] | None = None) -> Make:
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
        return _sensor_reading(Field(name, kind, count, of, frame=frame), robot.data.sensordata, index, transform)

    return make


def _sensor_reading(
    field: Field, source: np.ndarray, index: np.ndarray, transform: Callable[..., Any] | None
) -> Reading:
    view = _rows(source, index.tolist())

    def bind(out: np.ndarray) -> Write:
        def write() -> None:
            if view is not None:
                np.copyto(out, view)
            else:
                np.take(source, index, out=out, mode="clip")
            if transform is not None:
                transform(out, out)

        return write

    return Reading(field, bind)


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


def sensor_kind(model: mujoco.MjModel, sensor: int) -> tuple[Kind, Any]:
    """How a MuJoCo sensor turns, from its type: (kind, frame). Refuses sensors that turn in no simple way."""
    kind = _S(model.sensor_type[sensor])
    name = model.sensor(sensor).name
    if kind in _WORLD_FRAME:
        if model.sensor_refid[sensor] >= 0 and model.sensor_reftype[sensor] != mujoco.mjtObj.mjOBJ_UNKNOWN.value:
            return Kind.SCALAR, "body"
        if model.sensor_cutoff[sensor] > 0:
            raise EudaError(
                f"sensor {name!r} clips each component of a world vector, which then turns in no simple way: remove its cutoff"
            )
        return _WORLD_FRAME[kind], "world"
    if kind in _BODY_FRAME:
        return Kind.SCALAR, "body"
    if kind in _PLAIN:
        return Kind.SCALAR, "world"
    raise EudaError(f"sensor {name!r} of type {kind.name} has no known behaviour under a yaw: leave it out")


# -- whole robots ----------------------------------------------------------------------------------------


def hidden_spins(robot: Robot) -> list[Limb]:
    """Limbs whose turning may move no centre of mass: wheels, and limbs on ball joints."""
    model, limbs = robot.model, robot.morphology.limbs[1:]
    return [limb for limb in limbs if hinge_axis_through_com(model, limb) or on_ball(model, limb)]
