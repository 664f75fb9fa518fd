"""An environment beside its turned twin: what both do from the same states with the same actions."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Callable

import mujoco
import numpy as np

from euda.body.layout import Kind, Layout
from euda.body.limb_env import LimbEnv, State
from euda.body.robot import point
from euda.body.symmetry import Turn, put_back, target_places, turned_model_arrays
from euda.errors import EudaError

Observe = Callable[[LimbEnv], np.ndarray]
Contacts = frozenset[tuple[str, str]]
"""Pairs (geometry types, names) of frictional contacts, for example ('sphere-plane', 'toe-floor')."""


@dataclasses.dataclass
class Comparison:
    """Raw outcomes, one row per state and yaw."""

    dynamics: np.ndarray  # [rows]
    reward: np.ndarray  # [rows], absolute differences
    rewards: np.ndarray  # [rows], rewards of the original
    turned: np.ndarray  # [rows, dim], observation in the turned simulation
    original: np.ndarray  # [rows, dim], observation in the original simulation
    yaws: np.ndarray  # [rows]
    state: np.ndarray  # [rows], which state a row belongs to


class Pair:
    """An environment and the twin in which the world is turned."""

    def __init__(
        self, env: LimbEnv, twin: LimbEnv, layout: Layout | None = None, observe: Observe | None = None
    ) -> None:
        self.env, self.twin = env, twin
        self.layout = env.layout if layout is None else layout
        self.observe: Observe = observe or (lambda which: which.observer.observe_exactly())
        self.by_heading = env.morphology.base == "fixed" and any(f.kind is Kind.HEADING for f in self.layout)
        # In the plane the direction of travel is part of the mounting and turns with it; a free robot's direction
        # may only turn if the agent sees it.
        self.sees_direction = "direction" in self.layout or env.morphology.base != "free"
        self.has_reward = env.has_reward
        self._mountings = turned_model_arrays(twin.model)
        env.reset(seed=0)
        twin.reset(seed=0)

    def compare(self, samples: list[State], actions: np.ndarray, angles: np.ndarray) -> Comparison:
        """One control step from every state, original and turned by every yaw."""
        rows: list[tuple[float, float, float, np.ndarray, np.ndarray, float, int]] = []
        for number, (sample, action, yaws) in enumerate(zip(samples, actions, angles, strict=True)):
            self.env.set_state(sample)
            self._step(self.env, action)
            seen, reward = self.observe(self.env), self.env.reward()
            for yaw in yaws:
                turn = Turn(float(yaw), self.by_heading, self.sees_direction)
                self._set_turned(sample, turn)
                self._step(self.twin, action)
                error = self._state_error(turn)
                rows.append(
                    (error, abs(self.twin.reward() - reward), reward, self.observe(self.twin), seen, yaw, number)
                )
        dynamics, difference, rewards, turned, original, yaws_used, state = zip(*rows, strict=True)
        put_back(self.twin.model, self._mountings)
        _refuse_nan(self.layout, np.array(turned))
        return Comparison(
            *(np.array(column) for column in (dynamics, difference, rewards, turned, original, yaws_used, state))
        )

    def contacts(self, sample: State, action: np.ndarray) -> Contacts:
        """Frictional contacts at any substep of the step from this state."""
        env = self.env
        env.set_state(sample)
        env._set_control(action)
        pairs = contact_pairs(env)
        for _ in range(env.substeps):
            mujoco.mj_step(env.model, env.data)
            pairs |= contact_pairs(env)
        return pairs

    def _set_turned(self, sample: State, turn: Turn) -> None:
        twin = self.twin
        put_back(twin.model, self._mountings)
        twin.set_state(sample)
        turn.model(twin.robot)
        turn.state(twin.robot, twin.data.qpos, twin.data.qvel, twin.data.qacc_warmstart)
        turn.direction(twin.robot)
        turn.mocap(twin.data)
        mujoco.mj_step1(twin.model, twin.data)

    def _step(self, env: LimbEnv, action: np.ndarray) -> None:
        env._set_control(action)
        env.advance()

    def _state_error(self, turn: Turn) -> float:
        """Largest difference of the next states, relative to the largest velocity and, for positions, to 1."""
        env, twin = self.env, self.twin
        qpos, qvel = env.data.qpos.copy(), env.data.qvel.copy()
        turn.state(env.robot, qpos, qvel)
        speed = np.abs(qvel).max() or 1.0
        place = max(1.0, np.abs(qpos).max())
        errors = [np.abs(twin.data.qvel - qvel).max() / speed, np.abs(twin.data.qpos - qpos).max() / place]
        if env.model.na:
            errors.append(np.abs(twin.data.act - env.data.act).max() / (np.abs(env.data.act).max() or 1.0))
        return float(max(errors))


def _refuse_nan(layout: Layout, observations: np.ndarray) -> None:
    if observations.shape[1:] != (layout.dim,):
        raise EudaError(f"the layout describes {layout.dim} numbers, but {observations.shape[1:]} were observed")
    names = np.array(layout.entry_names())[~np.isfinite(observations).all(axis=0)]
    if names.size:
        raise EudaError(f"observations must be finite, but {names[0]} is not")


# -- states ----------------------------------------------------------------------------------------------


def sample_states(env: LimbEnv, count: int, rng: np.random.Generator) -> list[State]:
    """Two thirds from rollouts with held random actions, where contacts happen; one third upright and moving."""
    posed = count // 3
    return _rollout_states(env, count - posed, rng) + [_posed_state(env, rng) for _ in range(posed)]


def _rollout_states(env: LimbEnv, count: int, rng: np.random.Generator) -> list[State]:
    states: list[State] = []
    while len(states) < count:
        if len(states) % 5 == 0:
            env.reset(seed=int(rng.integers(2**31)))
        for _ in range(int(rng.integers(4, 13))):
            action = rng.uniform(-1, 1, env.model.nu)
            for _ in range(4):
                env.step(action)
        states.append(env.get_state())
    return states


def _posed_state(env: LimbEnv, rng: np.random.Generator) -> State:
    """The model's own pose, bent a little and moving: where a standing or running reward is not zero."""
    model, data = env.model, env.data
    env.reset(seed=int(rng.integers(2**31)))
    data.qpos[:] = model.qpos0
    spread = np.full(model.nv, 0.05)
    # The root turns a little, so that nothing stands exactly level, where collision points jump; it does not shift.
    spread[: min(3, env.morphology.d1)] = 0.0
    mujoco.mj_integratePos(model, data.qpos, spread * rng.standard_normal(model.nv), 1.0)
    data.qvel[:] = rng.standard_normal(model.nv)
    mujoco.mj_forward(model, data)
    if env.robot.target is not None:
        _bring_target(env, rng)
    return env.get_state()


def _bring_target(env: LimbEnv, rng: np.random.Generator) -> None:
    """Put a target that is part of the world where the limb is, or close by: elsewhere its reward is often zero."""
    assert env.robot.target is not None
    limb = point(env.model, env.data, env.robot.target.limb)
    for place in target_places(env.robot):
        place[:2] = limb[:2] + rng.uniform(-0.01, 0.01, 2)
    mujoco.mj_forward(env.model, env.data)


# -- contacts --------------------------------------------------------------------------------------------


def contact_pairs(env: LimbEnv) -> Contacts:
    """Frictional contacts of the current state."""
    pairs = set()
    for contact in range(env.data.ncon):
        if env.data.contact.dim[contact] > 1:
            geoms = sorted(
                (int(g) for g in env.data.contact.geom[contact]), key=lambda g: env.model.geom_bodyid[g], reverse=True
            )
            pairs.add(
                ("-".join(_geom_type(env.model, g) for g in geoms), "-".join(_geom_name(env.model, g) for g in geoms))
            )
    return frozenset(pairs)


def _geom_type(model: mujoco.MjModel, geom: int) -> str:
    return mujoco.mjtGeom(model.geom_type[geom]).name.removeprefix("mjGEOM_").lower()


def _geom_name(model: mujoco.MjModel, geom: int) -> str:
    return model.geom(geom).name or f"{model.body(int(model.geom_bodyid[geom])).name or 'world'}[{geom}]"


def blamed_contacts(contacts: list[Contacts], bad: np.ndarray) -> list[str]:
    """Types of contact that best separate bad states from good ones, greedily, with an example each."""
    left, blamed = {i for i in range(len(contacts)) if bad[i]}, []
    types = [{kind for kind, _ in pairs} for pairs in contacts]

    def guilt(kind: str) -> tuple[float, int, str]:
        having = [i for i in range(len(types)) if kind in types[i]]
        return sum(bool(bad[i]) for i in having) / len(having), sum(kind in types[i] for i in left), kind

    while candidates := {kind for i in left for kind in types[i]}:
        worst = max(candidates, key=guilt)
        explained = {i for i in left if worst in types[i]}
        names = Counter(name for i in explained for kind, name in contacts[i] if kind == worst)
        blamed.append(f"{worst} (such as {names.most_common(1)[0][0]}; {len(explained)} states)")
        left -= explained
    return blamed
