"""What can be read from a simulation, each reading with the field that says how it turns.

A `Reading` is made for one robot (model, data, limbs) and fills its slice of the observation. Readings
keep views of MuJoCo's arrays, which stay valid for the life of the `MjData`, and write in place: an
observation allocates nothing but its result.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence

import mujoco
import numpy as np

from euda.body import memory
from euda.body.layout import Field, Kind
from euda.body.memory import Copied
from euda.body.morphology import Limb, hinge_axis_through_com
from euda.body.robot import Robot, point
from euda.errors import EudaError

Write = Callable[[], None]


@dataclasses.dataclass(frozen=True)
class Reading:
    """A field and how to fill it: `bind(out)` prepares views of `out` [field.dim] and returns the writer."""

    field: Field
    bind: Callable[[np.ndarray], Write]
    copied: Copied | None = None
    """Where the numbers come from if they are only copied, so that neighbours can be copied together."""


Make = Callable[[Robot], Reading]
"""Readings in task tables are recipes: they become readings once the robot is there."""


def _copy(robot: Robot, field: Field, source: np.ndarray) -> Reading:
    """A reading that copies a view, usually of MuJoCo's data."""

    def bind(out: np.ndarray) -> Write:
        shaped = out.reshape(source.shape)

        def write() -> None:
            shaped[...] = source

        return write

    return Reading(field, bind, Copied.of(robot.data, source))


def together(copies: Sequence[Copied], out: np.ndarray) -> Write:
    """One writer for neighbouring readings that only copy; `out` is the room of them all."""
    block, places = copies[0].block, np.concatenate([copied.places for copied in copies])

    def write() -> None:
        block.take(places, None, out, "clip")

    return write


def consecutive(array: np.ndarray, indices: Sequence[int]) -> np.ndarray | None:
    """A view of these rows if they are consecutive, as the bodies of one robot usually are."""
    start = indices[0]
    return array[start : start + len(indices)] if list(indices) == list(range(start, start + len(indices))) else None


def gather(robot: Robot, field: Field, array: np.ndarray, indices: Sequence[int]) -> Reading:
    """Rows of one of MuJoCo's arrays, by a view where they are consecutive."""
    view = consecutive(array, indices)
    if view is not None:
        return _copy(robot, field, view)
    index = np.asarray(indices)

    def bind(out: np.ndarray) -> Write:
        shaped = out.reshape(len(indices), *array.shape[1:])

        def write() -> None:
            array.take(index, 0, shaped, "clip")

        return write

    return Reading(field, bind, Copied.of(robot.data, array, indices))


# -- limbs -----------------------------------------------------------------------------------------------


def rotation(robot: Robot, name: str, limbs: Sequence[Limb]) -> Reading:
    """The columns of R_i, i.e. the limbs' own axes in the world: nine numbers, three vectors, per limb."""
    columns = tuple(f"{limb.name}.{axis}" for limb in limbs for axis in "xyz")
    field = Field(name, Kind.VECTOR, 3 * len(limbs), columns)
    matrices = robot.data.xmat.reshape(-1, 3, 3).transpose(0, 2, 1)
    return gather(robot, field, matrices, [limb.body for limb in limbs])


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
    return gather(robot, field, robot.data.cvel[:, :3], [limb.body for limb in limbs])


def position(robot: Robot, name: str, limbs: Sequence[Limb], *, origin: Limb, of_com: bool = True) -> Reading:
    """p_i - p_1 in the world (m), of centres of mass, or of body frames for the paper's equation to the letter."""
    points = robot.data.xipos if of_com else robot.data.xpos
    bodies = [limb.body for limb in limbs]
    field = Field(name, Kind.VECTOR, len(limbs), _names(limbs), unit="m")
    # A fixed base hangs on the world: its place is where the robot's first body is mounted.
    base = points[origin.body] if origin.body else robot.model.body_pos[robot.morphology.mount]
    at_base = [i for i, limb in enumerate(limbs) if limb.body == 0]
    view, index = consecutive(points, bodies), np.asarray(bodies)

    def bind(out: np.ndarray) -> Write:
        shaped = out.reshape(-1, 3)

        def write() -> None:
            np.subtract(points[index], base, out=shaped)
            shaped[at_base] = 0.0

        return write

    return Reading(field, bind) if view is None or at_base else _difference(field, view, base)


def _difference(field: Field, a: np.ndarray, b: np.ndarray) -> Reading:
    """A - b, of views with the same last axis."""

    def bind(out: np.ndarray) -> Write:
        shaped = out.reshape(a.shape)

        def write() -> None:
            np.subtract(a, b, out=shaped)

        return write

    return Reading(field, bind)


def velocity(robot: Robot, name: str, limbs: Sequence[Limb], *, of_com: bool = True) -> Reading:
    """v_i in the world (m/s): the velocity of the same points as `position`.

    MuJoCo's `cvel` is a spatial velocity at the tree's centre of mass c: v(p) = cvel_lin + ω x (p - c).
    """
    data, count = robot.data, len(limbs)
    points = data.xipos if of_com else data.xpos
    field = Field(name, Kind.VECTOR, count, _names(limbs), unit="m/s")
    # Cross product by shifted slices: in rows x y z x y, components (1,2,0) and (2,0,1) are slices 1:4 and 2:5. One
    # row per component, so that NumPy's inner loop runs over the limbs and not over three numbers.
    repeated = [0, 1, 2, 0, 1]
    bodies = [limb.body for limb in limbs]
    twist, at = _places(data, data.cvel, bodies), _places(data, points, bodies)
    centre = _places(data, data.subtree_com, robot.model.body_rootid[bodies].tolist())
    rows = [twist[repeated], at[repeated], centre[repeated], twist[3:]]
    index, numbers = np.concatenate(rows).ravel(), memory.block(data)
    taken, products = np.empty(index.size), np.empty((2, 3, count))
    spin, lever, origin, linear = np.split(taken.reshape(-1, count), [5, 10, 15])
    (spin_120, lever_120), (spin_201, lever_201) = (spin[1:4], lever[1:4]), (spin[2:5], lever[2:5])
    first, second = products
    multiply, subtract, add = np.multiply, np.subtract, np.add

    def bind(out: np.ndarray) -> Write:
        by_component = out.reshape(-1, 3).T

        def write() -> None:
            numbers.take(index, None, taken, "clip")
            subtract(lever, origin, lever)
            multiply(spin_120, lever_201, first)
            multiply(spin_201, lever_120, second)
            subtract(first, second, first)
            add(first, linear, by_component)

        return write

    return Reading(field, bind)


def _places(data: mujoco.MjData, array: np.ndarray, rows: Sequence[int]) -> memory.Places:
    """Places of rows of one of MuJoCo's arrays, transposed: [columns, rows]."""
    found = memory.places(data, array)
    if found is None:
        raise EudaError("these numbers are not part of the robot's MjData")
    return found.reshape(array.shape)[list(rows)].T


def axes(robot: Robot, name: str, limbs: Sequence[Limb]) -> Reading:
    """The world axes of joints made of hinges and slides."""
    joints = [joint for limb in limbs for joint in limb.joints]
    names = tuple(robot.model.joint(joint).name or f"joint{joint}" for joint in joints)
    return gather(robot, Field(name, Kind.VECTOR, len(joints), names), robot.data.xaxis, joints)


def on_ball(model: mujoco.MjModel, limb: Limb) -> bool:
    """Whether the limb hangs on a ball joint, which has no axes: its own axes are read instead."""
    return any(mujoco.mjtJoint(model.jnt_type[joint]) == mujoco.mjtJoint.mjJNT_BALL for joint in limb.joints)


def _names(limbs: Sequence[Limb]) -> tuple[str, ...]:
    return tuple(limb.name for limb in limbs)


# -- task features ---------------------------------------------------------------------------------------


def direction(robot: Robot) -> Reading:
    """t: the unit vector along which the task wants the robot to travel."""
    if robot.direction is None:
        raise EudaError("this task has no direction to observe")
    return _copy(robot, Field("direction", Kind.VECTOR), robot.direction)


def to_target(robot: Robot, kind: Kind = Kind.VECTOR) -> Reading:
    """T = p_target - p_limb (m), in three dimensions or, as dm_control observes it, in the plane."""
    if robot.target is None:
        raise EudaError("this task has no target to observe")
    place, limb = robot.target.place, point(robot.model, robot.data, robot.target.limb)[: kind.width]
    target = (point(robot.model, robot.data, place) if isinstance(place, str) else place)[: kind.width]
    field = Field("to_target", kind, 1, unit="m")
    return _difference(field, target, limb)


# -- readings of tables: recipes -------------------------------------------------------------------------


def height(name: str, body: str | None = None) -> Make:
    """Height of a body's frame above the world's origin (m); of the root where none is named."""

    def make(robot: Robot) -> Reading:
        index = robot.morphology.root.body if body is None else robot.model.body(body).id
        return _copy(robot, Field(name, Kind.SCALAR, unit="m"), robot.data.xpos[index, 2:])

    return make


def upright(name: str, body: str, entries: slice = slice(8, 9)) -> Make:
    """Third row of a body's rotation matrix: the vertical seen from the body, or its last entry alone."""

    def make(robot: Robot) -> Reading:
        source = robot.data.xmat[robot.model.body(body).id, entries]
        return _copy(robot, Field(name, Kind.SCALAR, source.size, frame="body"), source)

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
        return _copy(robot, Field(name, kind, source.size // kind.width), source)

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
                data.xpos.take(index, 0, arms, "clip")
                np.subtract(arms, place, arms)
                np.matmul(arms, frame, shaped)

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


# -- whole robots ----------------------------------------------------------------------------------------


def hidden_spins(robot: Robot) -> list[Limb]:
    """Limbs whose turning may move no centre of mass: wheels, and limbs on ball joints."""
    model, limbs = robot.model, robot.morphology.limbs[1:]
    return [limb for limb in limbs if hinge_axis_through_com(model, limb) or on_ball(model, limb)]
