"""What is tried as a symmetry: something that changes a simulation, an action and an observation alike.

The certificate asks one question of every `Transformation` g: does g of the outcome of an action equal the outcome
of g(action) from g(state)? A yaw is asked in one of two ways. `WorldYaw` turns everything, the place where a robot is
mounted included. `OwnYaw` turns nothing that the robot cannot turn itself: the mounting stays, and the robot's own
first joints bring it into the turned posture. For a free robot both are the same. `ElementImage` is a mirror or a
permutation of limbs.
"""

from __future__ import annotations

import dataclasses
from typing import Protocol

import mujoco
import numpy as np

from euda.body.layout import Layout
from euda.body.robot import Robot
from euda.body.turn import Turn, free_joints, multiply, yaw_matrix, yaw_quaternion
from euda.symmetry.element import Element

_ROUNDING = 1e-13  # steps below this (m, rad) end the search for a posture
_ITERATIONS = 30
_BEYOND = 1e-6  # by how much farther than before a joint may leave its range (m, rad)


@dataclasses.dataclass(frozen=True)
class Posture:
    """Where a simulation is and how it moves: `qpos` [nq], `qvel` [nv], `act` [na]."""

    qpos: np.ndarray
    qvel: np.ndarray
    act: np.ndarray

    @staticmethod
    def of(data: mujoco.MjData) -> Posture:
        """A copy of a simulation's own."""
        return Posture(data.qpos.copy(), data.qvel.copy(), data.act.copy())


class Transformation(Protocol):
    """A candidate symmetry of a robot in its world."""

    def apply(self, robot: Robot) -> bool:
        """Bring state, warm start, mocap bodies, target and direction to their images, in place.

        Arrays of the model that place bodies, geoms and sites may change too; they are put back afterwards. False if
        this robot has no such state: then nothing is compared. Derived quantities are current before, not after.
        """
        ...

    def posture(self, robot: Robot, posture: Posture, like: Posture) -> Posture:
        """The image of a posture; where several are the same to the eye, the one nearest to `like`.

        `robot.data` is scratch: it may be overwritten.
        """
        ...

    def action(self, action: np.ndarray) -> np.ndarray:
        """The image of an action [nu] in [-1, 1]."""
        ...

    def observation(self, layout: Layout, observation: np.ndarray) -> np.ndarray:
        """What the agent will be told the image of an observation [..., dim] is."""
        ...


@dataclasses.dataclass(frozen=True)
class WorldYaw:
    """A yaw of everything but floor, gravity and wind, whether or not the robot could turn that way itself."""

    yaw: float
    turn_direction: bool = True

    @property
    def _turn(self) -> Turn:
        return Turn(self.yaw, turn_direction=self.turn_direction)

    def apply(self, robot: Robot) -> bool:
        """Turn mountings in the model, and what is free in the state."""
        turn, data = self._turn, robot.data
        turn.model(robot)
        turn.state(robot, data.qpos, data.qvel, data.qacc_warmstart)
        turn.direction(robot)
        turn.mocap(data)
        return True

    def posture(self, robot: Robot, posture: Posture, like: Posture) -> Posture:
        """Free joints turn; what is mounted keeps its joint angles."""
        qpos, qvel = posture.qpos.copy(), posture.qvel.copy()
        self._turn.state(robot, qpos, qvel)
        return Posture(qpos, qvel, posture.act)

    def action(self, action: np.ndarray) -> np.ndarray:
        """Unchanged: motors turn with the robot."""
        return action

    def observation(self, layout: Layout, observation: np.ndarray) -> np.ndarray:
        """As augmentation does it."""
        return layout.rotate(observation, self.yaw)


@dataclasses.dataclass(frozen=True)
class OwnYaw:
    """A yaw that a robot on a mounting makes with its own first joints, about the axis on which it stands."""

    yaw: float
    turn_direction: bool = True

    def apply(self, robot: Robot) -> bool:
        """Turn by the state; False if a joint would have to leave its range."""
        model, data = robot.model, robot.data
        turn = Turn(self.yaw, axis_of(robot), self.turn_direction)
        before = _excess(model, data.qpos)
        goals = [_Goal.of(model, data, body, turn, data.qvel, data.qacc_warmstart) for body in first_bodies(model)]
        turn.target(robot)
        turn.state(robot, data.qpos, data.qvel, data.qacc_warmstart)
        turn.direction(robot)
        turn.mocap(data)
        for goal in goals:
            goal.reach(model, data, data.qvel, data.qacc_warmstart)
        return bool((_excess(model, data.qpos) <= before.max(initial=0.0) + _BEYOND).all())

    def posture(self, robot: Robot, posture: Posture, like: Posture) -> Posture:
        """First joints as they must be, from `like` on; the others keep their angles."""
        model, data = robot.model, robot.data
        data.qpos[:] = posture.qpos
        _kinematics(model, data)
        turn = Turn(self.yaw, axis_of(robot))
        goals = [_Goal.of(model, data, body, turn, posture.qvel) for body in first_bodies(model)]
        qvel = posture.qvel.copy()
        turn.state(robot, data.qpos, qvel)
        for goal in goals:
            data.qpos[goal.positions(model)] = like.qpos[goal.positions(model)]
            qvel[goal.dofs(model)] = like.qvel[goal.dofs(model)]
            goal.reach(model, data, qvel)
        return Posture(data.qpos.copy(), qvel, posture.act)

    def action(self, action: np.ndarray) -> np.ndarray:
        """Unchanged: this is what augmentation believes."""
        return action

    def observation(self, layout: Layout, observation: np.ndarray) -> np.ndarray:
        """As augmentation does it."""
        return layout.rotate(observation, self.yaw)


@dataclasses.dataclass(frozen=True, eq=False)
class ElementImage:
    """An element of the robot's finite group: a mirror, or limbs that change places."""

    element: Element
    turn_direction: bool = True
    """Whether the direction of travel goes to its image too: it must, if the agent observes it."""

    def apply(self, robot: Robot) -> bool:
        """Bring everything to its image, but for a direction that the agent does not see."""
        direction = None if robot.direction is None else robot.direction.copy()
        self.element.apply(robot)
        if robot.direction is not None and not self.turn_direction:
            robot.direction[:] = direction
        return True

    def posture(self, robot: Robot, posture: Posture, like: Posture) -> Posture:
        """Limbs change places; what exchanges hands changes sign; quaternions have the signs of those in `like`."""
        element, table = self.element, self.element.table
        qpos = element.positions(posture.qpos)
        for joint in (*table.free, *table.balls):
            start = int(table.qpos[joint]) + (3 if joint in table.free else 0)
            entries = slice(start, start + 4)
            qpos[entries] *= 1.0 if qpos[entries] @ like.qpos[entries] >= 0 else -1.0
        qvel = element.velocities(posture.qpos, posture.qvel)
        return Posture(qpos, qvel, element.activations.numbers(posture.act))

    def action(self, action: np.ndarray) -> np.ndarray:
        """Motors change places and signs too."""
        return self.element.action(action)

    def observation(self, layout: Layout, observation: np.ndarray) -> np.ndarray:
        """As augmentation does it."""
        return layout.act(self.element, observation)


# -- turning by one's own joints -------------------------------------------------------------------------


def first_bodies(model: mujoco.MjModel) -> list[int]:
    """Bodies that move on something fixed to the world, by joints other than a free one."""
    free = {int(model.jnt_bodyid[joint]) for joint in free_joints(model)}
    moving = (b for b in range(1, model.nbody) if model.body_dofnum[b] > 0 and b not in free)
    return [b for b in moving if model.body_weldid[model.body_parentid[b]] == 0]


def joints_of(model: mujoco.MjModel, body: int) -> range:
    """The joints of a body."""
    first = int(model.body_jntadr[body])
    return range(first, first + int(model.body_jntnum[body]))


def axis_of(robot: Robot) -> tuple[float, float]:
    """Where the vertical about which a mounted robot turns meets the floor: its vertical first hinge or mounting."""
    model, data, mount = robot.model, robot.data, robot.morphology.mount
    place = model.body_pos[mount]
    for body in first_bodies(model):
        joint = joints_of(model, body)[0]
        is_hinge = model.jnt_type[joint] == int(mujoco.mjtJoint.mjJNT_HINGE)
        if int(model.body_rootid[body]) == mount and is_hinge and is_vertical(data.xaxis[joint]):
            place = data.xanchor[joint]
    return float(place[0]), float(place[1])


def is_vertical(axis: np.ndarray) -> bool:
    """Whether a unit vector [3] points up or down."""
    return bool(np.abs(axis[:2]).max() < 1e-9)


@dataclasses.dataclass(frozen=True)
class _Goal:
    """Where a first body has to be, and how it and its warm start have to move there (velocity, angular velocity)."""

    body: int
    place: np.ndarray
    quaternion: np.ndarray
    twists: tuple[np.ndarray, ...]

    @staticmethod
    def of(model: mujoco.MjModel, data: mujoco.MjData, body: int, turn: Turn, *rates: np.ndarray) -> _Goal:
        """The image of a body's present pose and of its rates."""
        jacobian, matrix = _jacobian(model, data, body), yaw_matrix(turn.yaw)
        dofs = slice(int(model.body_dofadr[body]), int(model.body_dofadr[body] + model.body_dofnum[body]))
        twists = (jacobian @ rate[dofs] for rate in rates)
        turned = tuple(np.concatenate([matrix @ twist[:3], matrix @ twist[3:]]) for twist in twists)
        quaternion = multiply(yaw_quaternion(turn.yaw), data.xquat[body])
        return _Goal(body, turn.place(data.xpos[body]), quaternion, turned)

    def dofs(self, model: mujoco.MjModel) -> slice:
        """Its entries of velocities."""
        first = int(model.body_dofadr[self.body])
        return slice(first, first + int(model.body_dofnum[self.body]))

    def positions(self, model: mujoco.MjModel) -> slice:
        """Its entries of `qpos`."""
        joints = joints_of(model, self.body)
        size = 4 if model.jnt_type[joints[-1]] == int(mujoco.mjtJoint.mjJNT_BALL) else 1
        return slice(int(model.jnt_qposadr[joints[0]]), int(model.jnt_qposadr[joints[-1]]) + size)

    def reach(self, model: mujoco.MjModel, data: mujoco.MjData, *rates: np.ndarray) -> None:
        """Move the body's own joints towards the goal as far as they allow (Gauss-Newton), then set their rates."""
        dofs, step = self.dofs(model), np.zeros(model.nv)
        for _ in range(_ITERATIONS):
            _kinematics(model, data)
            step[dofs] = np.linalg.lstsq(_jacobian(model, data, self.body), self._error(data), rcond=1e-9)[0]
            mujoco.mj_integratePos(model, data.qpos, step, 1.0)
            if np.abs(step).max() < _ROUNDING:
                break
        _kinematics(model, data)
        jacobian = _jacobian(model, data, self.body)
        for rate, twist in zip(rates, self.twists, strict=True):
            rate[dofs] += np.linalg.lstsq(jacobian, twist - jacobian @ rate[dofs], rcond=1e-9)[0]

    def _error(self, data: mujoco.MjData) -> np.ndarray:
        """What is missing: a shift and a rotation vector in the world [6]."""
        back, missing, vector = np.empty(4), np.empty(4), np.empty(3)
        mujoco.mju_negQuat(back, data.xquat[self.body])
        mujoco.mju_mulQuat(missing, self.quaternion, back)
        mujoco.mju_quat2Vel(vector, missing, 1.0)
        return np.concatenate([self.place - data.xpos[self.body], vector])


def _kinematics(model: mujoco.MjModel, data: mujoco.MjData) -> None:
    mujoco.mj_kinematics(model, data)
    mujoco.mj_comPos(model, data)


def _jacobian(model: mujoco.MjModel, data: mujoco.MjData, body: int) -> np.ndarray:
    """How the frame of a first body moves with its own joints: velocity and angular velocity [6, dofs]."""
    place, turn = np.empty((3, model.nv)), np.empty((3, model.nv))
    mujoco.mj_jacBody(model, data, place, turn, body)
    first = int(model.body_dofadr[body])
    return np.concatenate([place, turn])[:, first : first + int(model.body_dofnum[body])]


def _excess(model: mujoco.MjModel, qpos: np.ndarray) -> np.ndarray:
    """How far each limited hinge or slide is outside its range."""
    simple = (model.jnt_type >= int(mujoco.mjtJoint.mjJNT_SLIDE)) & model.jnt_limited.astype(bool)
    values, (low, high) = qpos[model.jnt_qposadr[simple]], model.jnt_range[simple].T
    return np.maximum(0.0, np.maximum(low - values, values - high))
