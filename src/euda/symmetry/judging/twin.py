"""A simulation beside its twin: what both do from transformed states with transformed actions."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence

import mujoco
import numpy as np

from euda.body.layout import Layout
from euda.body.robot import Robot
from euda.body.turn import put_back, turned_model_arrays
from euda.errors import EudaError, SimulationError
from euda.symmetry.judging.transformation import Posture, Transformation
from euda.symmetry.judging.verdict import EXACT
from euda.tasks.base_env import LimbEnv, State

Observe = Callable[[LimbEnv], np.ndarray]


@dataclasses.dataclass(frozen=True)
class Trial:
    """A state, an action [nu], and the transformations to try there."""

    state: State
    action: np.ndarray
    transformations: Sequence[Transformation]
    is_sought: bool = False
    """Whether the state was made on purpose, so that a contact or a limit acts in it."""


@dataclasses.dataclass(frozen=True)
class Comparison:
    """Raw outcomes, one row per state and transformation."""

    dynamics: np.ndarray
    """[rows], largest difference of the next states, relative to the largest velocity and, for positions, to 1."""
    energy: np.ndarray
    """[rows], the kinetic energy of the error divided by that of the step's own change of velocity, square root."""
    reward: np.ndarray
    """[rows], absolute differences."""
    own_reward: np.ndarray
    """[rows], the same between the next state and its image: that of the reward itself, whatever the dynamics do."""
    rewards: np.ndarray
    """[rows], rewards of the original."""
    found: np.ndarray
    """[rows, dim], observation of the twin."""
    expected: np.ndarray
    """[rows, dim], the original's observation, transformed."""
    original: np.ndarray
    """[rows, dim], the original's observation."""
    trial: np.ndarray
    """[rows], which trial a row belongs to."""
    transformations: tuple[Transformation, ...]
    """[rows]"""
    is_sought: np.ndarray
    """[rows], whether the state was made on purpose."""


@dataclasses.dataclass(frozen=True)
class _Row:
    """One row of a comparison."""

    dynamics: float
    energy: float
    reward: float
    own_reward: float
    rewards: float
    found: np.ndarray
    expected: np.ndarray
    original: np.ndarray
    trial: int
    transformation: Transformation


class Twin:
    """A simulation that is run twice from every state: as it is, and transformed."""

    def __init__(self, env: LimbEnv, layout: Layout | None = None, observe: Observe | None = None) -> None:
        self.env = env
        self.layout = env.layout if layout is None else layout
        self.is_custom = observe is not None
        self._observe: Observe = observe or (lambda which: which.observer.observe_exactly())
        robot = env.robot
        self._scratch = Robot(
            robot.model, mujoco.MjData(robot.model), robot.morphology, robot.direction, robot.target
        )  # transformations may overwrite its data; direction and target are read only there
        self._places = turned_model_arrays(env.model)

    def observe(self) -> np.ndarray:
        """What the agent would see now [dim], in the simulator's own float64."""
        seen = self._observe(self.env)
        if seen.shape != (self.layout.dim,):
            raise EudaError(f"the layout describes {self.layout.dim} numbers, but {seen.shape} were observed")
        return seen

    def compare(self, trials: Sequence[Trial]) -> Comparison:
        """One control step from every state, as it is and transformed in every way."""
        rows: list[_Row] = []
        try:
            for number, trial in enumerate(trials):
                try:
                    rows += self._rows(number, trial)
                except SimulationError:
                    if not trial.is_sought:  # a state made on purpose may be one that no simulation survives
                        raise
        finally:
            put_back(self.env.model, self._places)
        if not rows:
            raise EudaError("no state of this robot could be compared with a transformed one")
        columns = {field.name: [getattr(row, field.name) for row in rows] for field in dataclasses.fields(_Row)}
        transformations = tuple(columns.pop("transformation"))
        arrays = {name: np.array(column) for name, column in columns.items()}
        self._refuse_nan(arrays["found"])
        is_sought = np.array([trials[number].is_sought for number in arrays["trial"]])
        return Comparison(**arrays, transformations=transformations, is_sought=is_sought)

    def _rows(self, number: int, trial: Trial) -> list[_Row]:
        self.place(trial.state)
        env, before = self.env, self.env.data.qvel.copy()
        self.step(trial.action)
        after, seen, reward = Posture.of(env.data), self.observe(), env.reward()
        change = max(self._energy(after.qvel - before), np.finfo(float).tiny)
        then = env.get_state()
        rows: list[_Row] = []
        for transformation in trial.transformations:
            if not self.transform(trial.state, transformation):
                continue
            self.step(transformation.action(trial.action))
            now = Posture.of(env.data)
            image = transformation.posture(self._scratch, after, now)
            error = _distance(now, image), self._energy(now.qvel - image.qvel) / change, abs(env.reward() - reward)
            expected, found = transformation.observation(self.layout, seen), self.observe()
            own = self._own_reward(then, transformation, reward) if error[0] > EXACT else error[2]
            rows.append(_Row(*error, own, reward, found, expected, seen, number, transformation))
        return rows

    def _own_reward(self, state: State, transformation: Transformation, reward: float) -> float:
        """By how much the reward of a state's image differs from its own."""
        return abs(self.env.reward() - reward) if self.transform(state, transformation) else 0.0

    def follow(self, trial: Trial, after: Posture, reward: float, steps: int = 1) -> float:
        """The largest error of a trial's transformations, where what happens without them is known already.

        That is the posture after so many control steps with the trial's action, and the sum of their rewards. The
        error is a share of the change of velocity, or of the reward (or of 1, if that is more); infinite where the
        image of a state blows up.
        """
        worst = 0.0
        try:
            for transformation in trial.transformations:
                if self.transform(trial.state, transformation):
                    worst = max(worst, self._followed(trial, transformation, after, reward, steps))
        except SimulationError:
            return float("inf")
        finally:
            put_back(self.env.model, self._places)
        return worst

    def _followed(
        self, trial: Trial, transformation: Transformation, after: Posture, reward: float, steps: int
    ) -> float:
        start, found, action = self.env.data.qvel.copy(), 0.0, transformation.action(trial.action)
        for _ in range(steps):
            self.step(action)
            found += self.env.reward()
        now = Posture.of(self.env.data)
        image = transformation.posture(self._scratch, after, now)
        gap = abs(found - reward) / max(1.0, abs(reward))
        if _distance(now, image) <= EXACT:  # it may have moved so little that no error is a share of that
            return gap
        change = max(self._energy(now.qvel - start), np.finfo(float).tiny)
        return max(gap, self._energy(now.qvel - image.qvel) / change)

    def transform(self, state: State, transformation: Transformation) -> bool:
        """Put the simulation into the image of a state; False if this robot has no such state."""
        self.place(state)
        if not transformation.apply(self.env.robot):
            return False
        mujoco.mj_step1(self.env.model, self.env.data)
        return True

    def place(self, state: State) -> None:
        """Put the simulation into a state, and the model as it was before any transformation."""
        put_back(self.env.model, self._places)
        self.env.data.warning.number[:] = 0  # of a state that blew up before
        self.env.set_state(state)

    def step(self, action: np.ndarray) -> None:
        """One control step."""
        self.env.set_control(action)
        self.env.advance()

    def _energy(self, velocity: np.ndarray) -> float:
        """Square root of twice the kinetic energy of a velocity [nv] in the present posture."""
        momentum = np.empty_like(velocity)
        mujoco.mj_mulM(self.env.model, self.env.data, momentum, velocity)
        return float(np.sqrt(max(velocity @ momentum, 0.0)))

    def _refuse_nan(self, observations: np.ndarray) -> None:
        names = np.array(self.layout.entry_names())[~np.isfinite(observations).all(axis=0)]
        if names.size:
            raise EudaError(f"observations must be finite, but {names[0]} is not")


def _distance(found: Posture, expected: Posture) -> float:
    """Largest difference, relative to the largest velocity, for positions to 1, for activations to the largest."""
    speed, place = np.abs(expected.qvel).max() or 1.0, max(1.0, np.abs(expected.qpos).max())
    errors = [np.abs(found.qvel - expected.qvel).max() / speed, np.abs(found.qpos - expected.qpos).max() / place]
    if found.act.size:
        errors.append(np.abs(found.act - expected.act).max() / (np.abs(expected.act).max() or 1.0))
    return float(max(errors))
