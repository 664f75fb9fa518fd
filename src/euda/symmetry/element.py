"""One symmetry of a robot: which part becomes which, with which sign, and what that does to a state.

A symmetry is a pair (Q, S). Q acts on the world and keeps gravity and floor: a mirror in a vertical plane or a turn
about the vertical, x → Q x + shift. S acts on the robot: its body b takes the place of body π(b), a point x in the
frame of b becoming the point S_b x + s_b in the frame of π(b). The two meet in the pose of every body,

    R'_π(b) = Q R_b S_bᵀ,    p'_π(b) = Q p_b + shift - R'_π(b) s_b,

and agree in handedness: det Q = det S_b. Joint angles follow as q'_π(j) = ±q_j + offset.

Everything an element relabels is a list of items whose numbers go through an affine map of their own (`Images`), so
composition and inverse are written once.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Mapping

import mujoco
import numpy as np

from euda.body.entry_map import EntryMap
from euda.body.layout import Layout
from euda.body.robot import Robot
from euda.body.turn import world_target
from euda.symmetry.addresses import Addresses
from euda.symmetry.images import Images
from euda.symmetry.observations import entry_map
from euda.symmetry.rotations import axial, between, cross, describe, matrix


@dataclasses.dataclass(frozen=True, eq=False, repr=False)
class Element:
    """One element of the finite group of a robot. Composition is `second @ first`.

    >>> import euda
    >>> mirror = euda.symmetries(euda.make("quadruped_run").model).elements[1]
    >>> mirror.name, mirror.is_mirror, (mirror @ mirror).is_identity
    ('mirror left-right', True, True)
    """

    world: np.ndarray
    """Q [3, 3], keeps the vertical."""
    shift: np.ndarray
    """[3] (m), horizontal; zero where the robot moves freely."""
    root: int
    """Body id of the robot's first body."""
    bodies: Images
    """Points in the frame of each body; 3 numbers."""
    before: Images
    """Points in the frame just before each joint acts, for a body's first joint where it is mounted; 3 numbers."""
    joints: Images
    """Angle or displacement of each hinge and slide (q' = ±q + offset); 1 number, unused for balls and free joints."""
    actuators: Images
    """Controls, in the model's own units; 1 number. Of an action in [-1, 1] the sign alone is used."""
    activations: Images
    """Internal states of the actuators; 1 number."""
    tendons: Images
    """Lengths; 1 number."""
    sensors: Images
    """Readings, up to 4 numbers each, without what Q does to those in world axes; `NOWHERE` where no linear rule
    gives them."""
    table: Addresses = dataclasses.field(repr=False)
    yaw: float = 0.0
    """By how much the world was turned after the element of the finite group (rad)."""
    fitted: Mapping[str, tuple[np.ndarray, np.ndarray]] = dataclasses.field(default_factory=dict, repr=False)
    """(matrix, offset) of fields whose answer cannot be derived, by name (see `euda.symmetry.fitting`)."""

    # -- what it is ------------------------------------------------------------------------------------

    def __repr__(self) -> str:
        """Its name; all of its tables would fill a page."""
        return f"<{self.name}>" if not self.yaw else f"<{self.name}, yaw {self.yaw:.3g}>"

    @property
    def is_free(self) -> bool:
        """Whether the robot moves freely: then S is independent of Q, but for its handedness."""
        return any(self.table.body[joint] == self.root for joint in self.table.free)

    @property
    def robot_map(self) -> np.ndarray:
        """S [3, 3]: what it does to the robot, in the frame of a free root; a mounted robot moves with the world."""
        return self.bodies.matrix[self.root] if self.is_free else self.world

    @property
    def is_mirror(self) -> bool:
        """Whether left and right hands are exchanged."""
        return bool(np.linalg.det(self.world) < 0)

    @property
    def _handedness(self) -> int:
        return -1 if self.is_mirror else 1

    @property
    def is_identity(self) -> bool:
        """Whether it is the neutral element."""
        return self.is_trivial and bool(np.allclose(self.robot_map, np.eye(3), atol=1e-6))

    @property
    def is_trivial(self) -> bool:
        """Whether it changes no joint and no action: the world is mirrored and the robot in it looks the same."""
        stays = not self.is_free or bool(np.allclose(self.robot_map, np.eye(3), atol=1e-6))
        return stays and all(part.is_identity for part in (self.joints, self.actuators, self.activations))

    @property
    def name(self) -> str:
        """What it does to the robot, in words."""
        return describe(self.robot_map)

    # -- the group -------------------------------------------------------------------------------------

    def __matmul__(self, first: Element) -> Element:
        """`first`, then this."""
        return dataclasses.replace(
            self,
            world=self.world @ first.world,
            shift=self.world @ first.shift + self.shift,
            yaw=self.yaw + self._handedness * first.yaw,
            fitted={},
            **{name: getattr(self, name) @ getattr(first, name) for name in PARTS},
        )

    def inverse(self) -> Element:
        """What undoes this."""
        return dataclasses.replace(
            self,
            world=self.world.T,
            shift=-self.world.T @ self.shift,
            yaw=-self._handedness * self.yaw,
            fitted={},
            **{name: getattr(self, name).inverse() for name in PARTS},
        )

    def turned(self, yaw: float) -> Element:
        """The element followed by a yaw of the world (rad): the whole group consists of these."""
        c, s = np.cos(yaw), np.sin(yaw)
        turn = np.array([[c, -s, 0.0], [s, c, 0.0], [0.0, 0.0, 1.0]])
        return dataclasses.replace(
            self, world=turn @ self.world, shift=turn @ self.shift, yaw=self.yaw + yaw, fitted={}
        )

    def is_alike(self, other: Element, parts: tuple[str, ...] = ("bodies", "joints"), tolerance: float = 1e-6) -> bool:
        """Whether both do the same to the world, and to these parts of the robot, up to rounding."""
        return (
            bool(np.allclose(self.world, other.world, atol=tolerance))
            and bool(np.allclose(self.shift, other.shift, atol=tolerance))
            and all(getattr(self, part).is_close(getattr(other, part), tolerance) for part in parts)
        )

    # -- states ----------------------------------------------------------------------------------------

    def positions(self, qpos: np.ndarray) -> np.ndarray:
        """The image of `qpos` [nq]."""
        result = qpos.copy()
        at = self.table.qpos
        single = self.table.single
        result[at[self.joints.image[single]]] = (
            self.joints.signs[single] * qpos[at[single]] + self.joints.offset[single, 0]
        )
        for joint in self.table.balls:
            q, to = at[joint], at[self.joints.image[joint]]
            result[to : to + 4] = between(self.before.matrix[joint], qpos[q : q + 4], self.after(joint))
        for joint in self.table.free:
            q, to, body = at[joint], at[self.joints.image[joint]], self.table.body[joint]
            result[to : to + 7] = np.concatenate(self._posed(self.bodies, body, qpos[q : q + 3], qpos[q + 3 : q + 7]))
        return result

    def velocities(self, qpos: np.ndarray, qvel: np.ndarray) -> np.ndarray:
        """The image of velocities `qvel` [..., nv] at `qpos` [nq]."""
        result = qvel.copy()
        at = self.table.dof
        single = self.table.single
        result[..., at[self.joints.image[single]]] = self.joints.signs[single] * qvel[..., at[single]]
        for joint in self.table.balls:
            v, to = at[joint], at[self.joints.image[joint]]
            result[..., to : to + 3] = qvel[..., v : v + 3] @ axial(self.after(joint)).T
        for joint in self.table.free:
            v, to, body = at[joint], at[self.joints.image[joint]], self.table.body[joint]
            spin = qvel[..., v + 3 : v + 6] @ axial(self.bodies.matrix[body]).T  # in the body's own frame
            result[..., to + 3 : to + 6] = spin
            frame = self._image_frame(qpos, joint)
            lever = frame @ self.bodies.offset[body]
            result[..., to : to + 3] = qvel[..., v : v + 3] @ self.world.T - cross(spin @ frame.T, lever)
        return result

    def accelerations(self, qpos: np.ndarray, qvel: np.ndarray, qacc: np.ndarray) -> np.ndarray:
        """The image of accelerations `qacc` [nv], such as the solver's warm start, at `qpos` and `qvel`."""
        result = self.velocities(qpos, qacc)
        for joint in self.table.free:
            v, to, body = self.table.dof[joint], self.table.dof[self.joints.image[joint]], self.table.body[joint]
            frame = self._image_frame(qpos, joint)
            spin = frame @ axial(self.bodies.matrix[body]) @ qvel[v + 3 : v + 6]
            result[to : to + 3] -= cross(spin, cross(spin, frame @ self.bodies.offset[body]))
        return result

    def after(self, joint: int) -> np.ndarray:
        """S [3, 3] in the frame just after a ball joint: that of the next joint of the body, or of the body itself."""
        body, following = self.table.body[joint], joint + 1
        if following < len(self.table.body) and self.table.body[following] == body:
            return self.before.matrix[following]
        return self.bodies.matrix[body]

    def _image_frame(self, qpos: np.ndarray, joint: int) -> np.ndarray:
        """R' of the body that takes the place of a free one."""
        q, body = self.table.qpos[joint], self.table.body[joint]
        return self.world @ matrix(qpos[q + 3 : q + 7]) @ self.bodies.matrix[body].T

    def control(self, ctrl: np.ndarray) -> np.ndarray:
        """The image of controls [..., nu] in the model's own units."""
        return self.actuators.numbers(ctrl)

    def action(self, action: np.ndarray) -> np.ndarray:
        """The image of actions [..., nu] in [-1, 1]."""
        return self.actuators.numbers(action, rates=True)

    @property
    def mounting(self) -> np.ndarray:
        """S [3, 3] in the frame in which the robot's first body is mounted on the world."""
        joints = np.flatnonzero(self.table.body == self.root)
        return self.before.matrix[joints[0]] if len(joints) else self.bodies.matrix[self.root]

    def on_observations(self, layout: Layout) -> EntryMap:
        """What it does to observations of a layout (`layout.act`); refuses one that says too little."""
        key = layout, tuple(field.sources for field in layout)
        if key not in self._maps:
            self._maps[key] = entry_map(self, layout)
        return self._maps[key]

    @functools.cached_property
    def _maps(self) -> dict[tuple[Layout, tuple], EntryMap]:
        """What was derived before."""
        return {}

    def on_actions(self) -> EntryMap:
        """What it does to actions in [-1, 1]."""
        count = len(self.actuators.image)
        matrix = np.zeros((count, count))
        matrix[self.actuators.image, np.arange(count)] = self.actuators.signs
        return EntryMap.of_matrix(matrix, np.zeros(count))

    # -- worlds ----------------------------------------------------------------------------------------

    def apply(self, robot: Robot) -> None:
        """Replace the state of a simulation, its target and its direction by their images.

        Velocities and the warm start follow; derived quantities do not, so that a caller takes the steps it needs.
        """
        model, data = robot.model, robot.data
        qpos, qvel, warm = data.qpos.copy(), data.qvel.copy(), data.qacc_warmstart.copy()
        target = world_target(robot)
        place = None if target is None else self.world @ target.position() + self.shift
        self._mountings(model)
        data.qpos[:] = self.positions(qpos)
        data.qvel[:] = self.velocities(qpos, qvel)
        data.qacc_warmstart[:] = self.accelerations(qpos, qvel, warm)
        data.ctrl[:] = self.control(data.ctrl.copy())
        if model.na:
            data.act[:] = self.activations.numbers(data.act.copy())
        self._mocap(model, data)
        if target is not None and place is not None:
            target.move_to(place)
        if robot.direction is not None:
            robot.direction[:] = self.world @ robot.direction

    def _mountings(self, model: mujoco.MjModel) -> None:
        """Move where trees without a free joint are mounted on the world; the robot's own moves only with a yaw."""
        free = {int(self.table.body[joint]) for joint in self.table.free}
        moving = set(model.body_rootid[model.body_weldid != 0].tolist()) - free
        for body in sorted(moving):
            first = int(model.body_jntadr[body])
            images, item = (self.before, first) if first >= 0 else (self.bodies, body)
            pose = self._posed(images, item, model.body_pos[body], model.body_quat[body])
            model.body_pos[body], model.body_quat[body] = pose

    def _mocap(self, model: mujoco.MjModel, data: mujoco.MjData) -> None:
        for body in np.flatnonzero(model.body_mocapid >= 0).tolist():
            index = model.body_mocapid[body]
            pose = self._posed(self.bodies, body, data.mocap_pos[index], data.mocap_quat[index])
            data.mocap_pos[index], data.mocap_quat[index] = pose

    def _posed(
        self, images: Images, item: int, place: np.ndarray, quaternion: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """The pose of what takes the place of a frame in this pose."""
        image = between(self.world, quaternion, images.matrix[item])
        return self.world @ place + self.shift - matrix(image) @ images.offset[item], image


PARTS = ("bodies", "before", "joints", "actuators", "activations", "tendons", "sensors")
"""What an element relabels."""
