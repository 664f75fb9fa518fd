"""What can be read from a simulation: pure functions, each with the field that says how its numbers turn.

A `Reading` is made for one robot, where names become ids. After that it is a function of (array namespace, scene) and
of nothing else: it writes nothing and keeps no view. So the same readings serve MuJoCo's data with NumPy, and MJX's
with jax.numpy under `jit` and `vmap`.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

import mujoco
import numpy as np

from euda.body import sources
from euda.body.field import Field, Frame, Kind, Rule, Source
from euda.body.morphology import Limb, hinge_axis_through_com
from euda.body.robot import Robot, Scene, find_point
from euda.errors import EudaError

Read = Callable[[Any, Scene], Any]
"""(array namespace, scene) → the numbers of a field, in any shape that holds them in their order."""


@dataclasses.dataclass(frozen=True)
class Reading:
    """A field and the function that reads it."""

    field: Field
    read: Read


Make = Callable[[Robot], Reading]
"""Readings in task tables are recipes: they become readings once the robot is there."""


# -- limbs -----------------------------------------------------------------------------------------------


def rotation(robot: Robot, name: str, limbs: Sequence[Limb]) -> Reading:
    """The columns of R_i, i.e. the limbs' own axes in the world: nine numbers, three vectors, per limb."""
    entries = _entries(_bodies(limbs), _BY_COLUMN, 9)
    return _columns(name, limbs, lambda xp, scene: scene.data.xmat.take(entries))


def mount_rotation(robot: Robot, name: str) -> Reading:
    """The axes of a fixed base: those of the frame in which the robot's first body is mounted on the world."""
    mount = robot.morphology.mount
    return _columns(name, [robot.morphology.root], lambda xp, scene: matrix(xp, scene.model.body_quat[mount]).T)


def _columns(name: str, limbs: Sequence[Limb], read: Read) -> Reading:
    of = tuple(f"{limb.name}.{axis}" for limb in limbs for axis in "xyz")
    read_from = tuple(Source("xbody", limb.body, Rule.COLUMN, column) for limb in limbs for column in range(3))
    return Reading(Field(name, Kind.VECTOR, len(of), of, sources=read_from), read)


def angular_velocity(robot: Robot, name: str, limbs: Sequence[Limb]) -> Reading:
    """ω_i in the world (rad/s)."""
    spins = _entries(_bodies(limbs), _XYZ, 6)
    return Reading(_of_limbs(name, limbs, "rad/s", Rule.AXIAL), lambda xp, scene: scene.data.cvel.take(spins))


def position(robot: Robot, name: str, limbs: Sequence[Limb], *, origin: Limb, of_com: bool = True) -> Reading:
    """p_i - p_1 in the world (m), of centres of mass, or of body frames for the paper's equation to the letter."""
    bodies, mount = _bodies(limbs), robot.morphology.mount
    places, origins = _entries(bodies, _XYZ, 3), _entries(np.full_like(bodies, origin.body), _XYZ, 3)
    is_base = (bodies == 0)[:, None]  # a fixed base hangs on the world: its place is where the robot is mounted

    def read(xp: Any, scene: Scene) -> Any:
        points = scene.data.xipos if of_com else scene.data.xpos
        if origin.body:
            return points.take(places) - points.take(origins)
        return xp.where(is_base, 0.0, points.take(places) - scene.model.body_pos[mount])

    return Reading(_of_limbs(name, limbs, "m", Rule.POLAR, of_com), read)


def velocity(robot: Robot, name: str, limbs: Sequence[Limb], *, of_com: bool = True) -> Reading:
    """v_i in the world (m/s): the velocity of the same points as `position`.

    MuJoCo's `cvel` is a spatial velocity at the tree's centre of mass c: v(p) = v_c + ω x (p - c).
    """
    bodies = _bodies(limbs)
    trees, linear = robot.model.body_rootid[bodies], _entries(bodies, _LINEAR, 6)
    # Both terms of the cross product at once, [2, n, 3]: ω_y r_z - ω_z r_y and so on.
    spins = np.stack([_entries(bodies, columns, 6) for columns in (_NEXT, _LAST)])
    ends, centres = (np.stack([_entries(of, columns, 3) for columns in (_LAST, _NEXT)]) for of in (bodies, trees))

    def read(xp: Any, scene: Scene) -> Any:
        data = scene.data
        points = data.xipos if of_com else data.xpos
        terms = data.cvel.take(spins) * (points.take(ends) - data.subtree_com.take(centres))
        return data.cvel.take(linear) + (terms[0] - terms[1])

    return Reading(_of_limbs(name, limbs, "m/s", Rule.POLAR, of_com), read)


def axes(robot: Robot, name: str, limbs: Sequence[Limb]) -> Reading:
    """The world axes of joints made of hinges and slides."""
    joints = np.array([joint for limb in limbs for joint in limb.joints])
    of = tuple(robot.model.joint(joint).name or f"joint{joint}" for joint in joints)
    read_from = tuple(sources.of_axis(robot.model, int(joint)) for joint in joints)
    field = Field(name, Kind.VECTOR, len(joints), of, sources=read_from)
    return Reading(field, lambda xp, scene: scene.data.xaxis.take(joints, 0))


def on_ball(model: mujoco.MjModel, limb: Limb) -> bool:
    """Whether the limb hangs on a ball joint, which has no axes: its own axes are read instead."""
    return any(mujoco.mjtJoint(model.jnt_type[joint]) == mujoco.mjtJoint.mjJNT_BALL for joint in limb.joints)


def hidden_spins(robot: Robot) -> list[Limb]:
    """Limbs whose turning may move no centre of mass: wheels, and limbs on ball joints."""
    model, limbs = robot.model, robot.morphology.limbs[1:]
    return [limb for limb in limbs if hinge_axis_through_com(model, limb) or on_ball(model, limb)]


def _bodies(limbs: Sequence[Limb]) -> np.ndarray:
    return np.array([limb.body for limb in limbs])


def _entries(rows: np.ndarray, columns: np.ndarray, width: int) -> np.ndarray:
    """Where columns of rows lie in an array of that width, read as one line [rows, columns].

    `take` then fetches them in one call, the quickest that NumPy has for a robot's few numbers.
    """
    return width * rows[:, None] + columns


_XYZ, _NEXT, _LAST = np.array([0, 1, 2]), np.array([1, 2, 0]), np.array([2, 0, 1])
_LINEAR = np.array([3, 4, 5])  # of `cvel`, whose first three are the spin
_BY_COLUMN = np.arange(9).reshape(3, 3).T.ravel()  # of a matrix stored by rows, as MuJoCo's are


def _matrix_of(data: Any, body: int) -> Any:
    """A body's rotation matrix [3, 3]: MuJoCo stores nine numbers, MJX three by three."""
    return data.xmat[body].reshape(3, 3)


def _of_limbs(name: str, limbs: Sequence[Limb], unit: str, rule: Rule, of_com: bool = True) -> Field:
    """One vector per limb."""
    what = "body" if of_com else "xbody"
    read_from = tuple(Source(what, limb.body, rule) for limb in limbs)
    return Field(name, Kind.VECTOR, len(limbs), tuple(limb.name for limb in limbs), unit=unit, sources=read_from)


def matrix(xp: Any, quaternion: Any) -> Any:
    """The rotation matrix [3, 3] of a unit quaternion (w, x, y, z)."""
    w, x, y, z = (quaternion[i] for i in range(4))
    return xp.stack([
        w * w + x * x - y * y - z * z, 2 * (x * y - w * z), 2 * (x * z + w * y),
        2 * (x * y + w * z), w * w - x * x + y * y - z * z, 2 * (y * z - w * x),
        2 * (x * z - w * y), 2 * (y * z + w * x), w * w - x * x - y * y + z * z,
    ]).reshape(3, 3)  # fmt: skip


# -- task features ---------------------------------------------------------------------------------------


def direction(robot: Robot) -> Reading:
    """t: the unit vector along which the task wants the robot to travel."""
    if robot.direction is None:
        raise EudaError("this task has no direction to observe")
    field = Field("direction", Kind.VECTOR, sources=(Source("task", 0, Rule.POLAR),))
    return Reading(field, lambda xp, scene: scene.direction)


def to_target(robot: Robot, kind: Kind = Kind.VECTOR) -> Reading:
    """T = p_target - p_limb (m), in three dimensions or, as dm_control observes it, in the plane."""
    if robot.target is None:
        raise EudaError("this task has no target to observe")
    place, limb = robot.target.place, find_point(robot.model, robot.target.limb)
    target = find_point(robot.model, place) if isinstance(place, str) else None

    def read(xp: Any, scene: Scene) -> Any:
        goal = scene.target if target is None else target.place(scene.data)
        return goal[: kind.width] - limb.place(scene.data)[: kind.width]

    return Reading(Field("to_target", kind, unit="m", sources=(Source(limb.object, limb.id, Rule.POLAR),)), read)


# -- readings of tables: recipes -------------------------------------------------------------------------


def height(name: str, body: str | None = None) -> Make:
    """Height of a body's frame above the world's origin (m); of the root where none is named."""

    def make(robot: Robot) -> Reading:
        index = robot.morphology.root.body if body is None else robot.model.body(body).id
        field = Field(name, Kind.SCALAR, unit="m", sources=(Source("xbody", index, Rule.SCALAR),))
        return Reading(field, lambda xp, scene: scene.data.xpos[index, 2:])

    return make


def upright(name: str, body: str) -> Make:
    """How far a body's own z axis points up: the cosine of its tilt."""
    return _vertical(name, body, slice(2, 3))


def vertical(name: str, body: str) -> Make:
    """The world's vertical in a body's frame: three scalars."""
    return _vertical(name, body, slice(3))


def _vertical(name: str, body: str, entries: slice) -> Make:
    """Entries of the third row of a body's rotation matrix."""

    def make(robot: Robot) -> Reading:
        index = robot.model.body(body).id
        read_from = tuple(_seen_from(0, index, 2, column) for column in range(3)[entries])
        field = Field(name, Kind.SCALAR, len(read_from), frame="body", sources=read_from)
        return Reading(field, lambda xp, scene: _matrix_of(scene.data, index)[2, entries])

    return make


def _seen_from(frame: int, body: int, row: int, column: int) -> Source:
    """An entry of a body's rotation matrix, seen from the frame of another."""
    return Source("xbody", body, Rule.RELATIVE, 3 * row + column, frame=("xbody", frame))


def joint_positions(name: str, start: int, stop: int | None = None, kind: Kind = Kind.SCALAR) -> Make:
    """A range of `qpos`."""
    return _state(name, "qpos", start, stop, kind, sources.of_qpos)


def joint_velocities(name: str, start: int = 0, stop: int | None = None, kind: Kind = Kind.SCALAR) -> Make:
    """A range of `qvel`."""
    return _state(name, "qvel", start, stop, kind, sources.of_qvel)


def activations(name: str = "activation") -> Make:
    """Internal states of the actuators."""
    return _state(name, "act", 0, None, Kind.SCALAR, sources.of_act)


def _state(name: str, array: str, start: int, stop: int | None, kind: Kind,
           of: Callable[[mujoco.MjModel], list[Source]]) -> Make:  # fmt: skip
    def make(robot: Robot) -> Reading:
        read_from = of(robot.model)[start : stop : kind.width]
        field = Field(name, kind, len(read_from), sources=tuple(read_from))
        return Reading(field, lambda xp, scene: getattr(scene.data, array)[start:stop])

    return make


def extremities(name: str, root: str, bodies: Sequence[str]) -> Make:
    """Positions of bodies in the root's frame (m): a body-frame reading, so scalars."""

    def make(robot: Robot) -> Reading:
        torso, ends = robot.model.body(root).id, np.array([robot.model.body(body).id for body in bodies])
        places, origins = _entries(ends, _XYZ, 3), _entries(np.full_like(ends, torso), _XYZ, 3)
        read_from = tuple(
            Source("xbody", int(end), Rule.OWN_POLAR, k, frame=("xbody", torso)) for end in ends for k in range(3)
        )
        frame: Frame = "body"

        def read(xp: Any, scene: Scene) -> Any:
            points = scene.data.xpos
            return (points.take(places) - points.take(origins)) @ _matrix_of(scene.data, torso)

        return Reading(Field(name, Kind.SCALAR, len(read_from), frame=frame, unit="m", sources=read_from), read)

    return make


def planar_orientations(name: str) -> Make:
    """(xx, xz) of every body, as dm_control's walker observes them: seen along the plane the walker runs in."""

    def make(robot: Robot) -> Reading:
        mount, bodies = robot.morphology.mount, _bodies(robot.morphology.limbs)
        # Under a yaw the mounting turns as the bodies do, so these numbers stay: they belong to the mounting's frame.
        read_from = tuple(_seen_from(mount, int(body), 0, column) for body in bodies for column in (0, 2))

        def read(xp: Any, scene: Scene) -> Any:
            forward = matrix(xp, scene.model.body_quat[mount])[:, 0]
            return forward @ scene.data.xmat.reshape(-1, 3, 3).take(bodies, 0)[:, :, ::2]

        return Reading(Field(name, Kind.SCALAR, len(read_from), frame="body", sources=read_from), read)

    return make
