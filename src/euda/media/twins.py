"""A robot and its twins: the same policy from the same start, in worlds that were turned or mirrored.

Each twin lives in a simulation of its own. Its world is laid back over the robot's, so a policy (and a simulation) that
has the symmetry moves all of them as one, and one that has not is seen to come apart.
"""

from __future__ import annotations

import dataclasses
import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from euda.body.turn import world_target, yaw_matrix
from euda.errors import EudaError, InstabilityError
from euda.runs import evaluation
from euda.runs.evaluation import Policy
from euda.runs.run_folder import Run
from euda.symmetry.discovery import symmetries
from euda.symmetry.element import Element
from euda.symmetry.turned_start import TurnedStart, mirror_of
from euda.tasks.base_env import LimbEnv

_PUSH = 0.1
"""Seconds for which a push lasts."""


@dataclasses.dataclass(frozen=True)
class World:
    """How the world of a twin differs from the robot's: mirrored first, if it is, then turned (rad)."""

    yaw: float = 0.0
    mirror: Element | None = None

    @property
    def name(self) -> str:
        """In words."""
        words = [] if self.mirror is None else [self.mirror.name]
        words += [f"turned by {math.degrees(self.yaw):.4g}°"] if self.yaw % (2 * math.pi) else []
        return ", ".join(words) or "the robot"

    @property
    def map(self) -> np.ndarray:
        """What a vector [3] of the robot's world is in the twin's, [3, 3]."""
        return yaw_matrix(self.yaw) @ (np.eye(3) if self.mirror is None else self.mirror.world)


@dataclasses.dataclass
class Twin:
    """One of them."""

    world: World
    env: Any
    observation: np.ndarray = dataclasses.field(default_factory=lambda: np.zeros(0))
    total: float = 0.0
    """Return so far."""
    is_moving: bool = False
    """Until its episode ends."""
    back: np.ndarray = dataclasses.field(default_factory=lambda: np.zeros(3))
    """What is added after turning back, so that robot and twin begin in the same place [3]."""

    @property
    def root(self) -> np.ndarray:
        """Where its root is, in the robot's world [3] (m)."""
        body = self.env.robot.morphology.root.body or self.env.robot.morphology.mount
        return self.place(self.env.robot.data.xpos[body])

    def place(self, points: np.ndarray) -> np.ndarray:
        """Points [..., 3] of its world, in the robot's."""
        return points @ self.world.map + self.back  # the map is orthogonal: its transpose, from the right

    def turned(self, matrices: np.ndarray) -> np.ndarray:
        """Rotation matrices [..., 3, 3] of its world, in the robot's; improper ones where the twin is mirrored."""
        return np.swapaxes(self.world.map, 0, 1) @ matrices

    @property
    def target(self) -> np.ndarray | None:
        """Where its target is, in the robot's world [3] (m), if it is part of the scenery."""
        found = world_target(self.env.robot)
        return None if found is None else self.place(found.position())


class Twins:
    """The robot, which is the first, and its twins."""

    def __init__(
        self, make: Callable[[], Any], policy: Policy | None, worlds: Sequence[World] = (), repeat: int = 1
    ) -> None:
        self.all = [Twin(world, make()) for world in (World(), *worlds)]
        self._policy, self._repeat, self._step = policy, repeat, 0
        self._pushed = 0
        first = self.all[0].env
        self._start = TurnedStart(first) if isinstance(first, LimbEnv) else None
        self.begin(0)

    @property
    def robot(self) -> Twin:
        """The one that the others are laid over."""
        return self.all[0]

    @property
    def seconds(self) -> float:
        """Of one step."""
        return float(self.robot.env.control_timestep)

    @property
    def has_reward(self) -> bool:
        """Whether returns mean anything."""
        return bool(getattr(self.robot.env, "has_reward", True))

    def begin(self, seed: int) -> None:
        """Start the episode of a seed in every world."""
        self._step = self._pushed = 0
        for twin in self.all:
            if self._start is None:
                twin.observation = twin.env.reset(seed=seed)[0]
            else:
                twin.observation = self._start.begin(twin.env, seed, twin.world.yaw, twin.world.mirror)
            twin.env.robot.data.xfrc_applied[:] = 0.0
            twin.total, twin.is_moving, twin.back = 0.0, True, np.zeros(3)
            twin.back = self.robot.root - twin.root
        self._actions = self._act()

    def step(self) -> bool:
        """One step of every simulation; False once the robot's episode is over."""
        if self._step % self._repeat == 0:
            self._actions = self._act()
        for twin, action in zip(self.all, self._actions, strict=True):
            if twin.is_moving:
                self._advance(twin, action)
        self._step += 1
        self._pushed -= 1
        if self._pushed == 0:
            for twin in self.all:
                twin.env.robot.data.xfrc_applied[:] = 0.0
        return self.robot.is_moving

    def push(self, degrees: float, speed: float = 1.0) -> None:
        """Push the robot towards a direction in its world so that it would gain a speed (m/s), and the twins alike."""
        robot = self.robot.env.robot
        angle = math.radians(degrees)
        mass = float(robot.model.body_subtreemass[robot.morphology.mount])
        self._pushed = max(1, round(_PUSH / self.seconds))
        force = mass * speed / (self._pushed * self.seconds) * np.array([math.cos(angle), math.sin(angle), 0.0])
        for twin in self.all:
            limbs = twin.env.robot.morphology.limbs
            body = limbs[-1].body if twin.env.robot.morphology.base == "fixed" else limbs[0].body
            twin.env.robot.data.xfrc_applied[body, :3] = twin.world.map @ force

    def apart(self) -> float:
        """The largest distance between the robot's root and a twin's (m): 0 where all move as one."""
        return max((float(np.linalg.norm(twin.root - self.robot.root)) for twin in self.all), default=0.0)

    def _act(self) -> np.ndarray:
        seen = np.stack([twin.observation for twin in self.all])
        if self._policy is None:
            return np.zeros((len(seen), *self.robot.env.action_space.shape), np.float32)
        return self._policy(seen)

    def _advance(self, twin: Twin, action: np.ndarray) -> None:
        try:
            twin.observation, reward, *ended, _ = twin.env.step(action)
        except InstabilityError:  # it stays where it is
            twin.is_moving = False
            return
        twin.total += float(reward)
        twin.is_moving = not any(ended)


def worlds_of(env: Any, yaws: int = 2, mirrored: bool = True) -> list[World]:
    """The worlds of twins: so many yaws beside none, evenly spread, and the robot's mirror, if it has one.

    A Gymnasium environment has no twins: its reward does not turn.
    """
    if yaws < 0:
        raise EudaError(f"yaws must be at least 0, not {yaws}")
    if not isinstance(env, LimbEnv):
        return []
    turned = [World(2 * math.pi * k / (yaws + 1)) for k in range(1, yaws + 1)]
    mirrors = [element for element in symmetries(env.model) if element.is_mirror] if mirrored else []
    return [*turned, *([World(mirror=mirror_of(env))] if mirrors else [])]


def of_environment(make: Callable[[], Any], yaws: int = 2, mirrored: bool = True) -> Twins:
    """The robot of an environment, which nothing controls, and its twins."""
    return Twins(make, None, worlds_of(make(), yaws, mirrored))


def of_run(run: Run, yaws: int = 2, mirrored: bool = True) -> Twins:
    """The robot of a run with its newest policy, and its twins."""
    make = functools.partial(evaluation.make_environment, run.config)
    first = make()
    policy, _ = evaluation.load_policy(run, first)
    return Twins(make, policy, worlds_of(first, yaws, mirrored), run.config.action_repeat)
