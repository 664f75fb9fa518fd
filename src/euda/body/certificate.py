"""Symmetry proven in the simulator: turn the world, act alike, and compare what happens.

For sampled states (with contacts, and with the robot upright and moving so that rewards say something)
and random yaws, the original and the turned simulation take one control step with the same action.
Next state, every field of the layout, and reward must be the originals, turned.
"""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Callable
from typing import Any, Literal

import mujoco
import numpy as np

from euda.body.environment import LimbEnv, State
from euda.body.layout import Kind, Layout
from euda.body.readings import point
from euda.body.suspects import SUSPECTS, mended
from euda.body.symmetry import Turn, put_back, target_places, turned_model_arrays
from euda.errors import EudaError, SimulationError

Verdict = Literal["exact", "approximate", "broken"]
EXACT = 1e-9
BROKEN = 0.05
"""Median relative error above which a symmetry is not even approximate."""
Observe = Callable[[LimbEnv], np.ndarray]
Trial = tuple[list[State], np.ndarray, np.ndarray]
"""States, an action for each [states, nu], and yaws for each [states, yaws]."""


@dataclasses.dataclass(frozen=True)
class Errors:
    """Relative errors over all states and yaws."""

    median: float
    max: float

    @property
    def verdict(self) -> Verdict:
        """Exact, approximate (mostly small), or broken (typically large)."""
        if self.max <= EXACT:
            return "exact"
        return "approximate" if self.median <= BROKEN else "broken"


@dataclasses.dataclass(frozen=True)
class FieldErrors(Errors):
    """Errors of one field, with the kind it was declared as and what it turned out to be."""

    kind: str
    finding: str = ""


@dataclasses.dataclass(frozen=True)
class Certificate:
    """What the simulator says about a symmetry."""

    task: str
    features: str
    cone: str
    states: int
    yaws: int
    seed: int
    states_with_contacts: int
    dynamics: Errors
    reward: Errors | None
    """None where the simulation has no reward."""
    fields: dict[str, FieldErrors]
    causes: tuple[str, ...]

    @property
    def features_errors(self) -> Errors:
        """The worst field."""
        return Errors(max(f.median for f in self.fields.values()), max(f.max for f in self.fields.values()))

    @property
    def verdict(self) -> Verdict:
        """The worst verdict of dynamics, fields and reward."""
        parts = [self.dynamics, *self.fields.values(), *([self.reward] if self.reward else [])]
        return max((part.verdict for part in parts), key=["exact", "approximate", "broken"].index)

    @property
    def worst(self) -> float:
        """The largest relative error of all."""
        return max(self.dynamics.max, self.features_errors.max, self.reward.max if self.reward else 0.0)

    def to_json(self) -> dict[str, Any]:
        """Plain JSON values."""
        result = dataclasses.asdict(self) | {"verdict": self.verdict, "worst": self.worst, "causes": list(self.causes)}
        for part in (result["dynamics"], result["reward"], *result["fields"].values()):
            if part is not None:
                part["verdict"] = Errors(part["median"], part["max"]).verdict
        return result


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


def certify(
    make: Callable[[], LimbEnv], *, states: int = 60, yaws: int = 4, seed: int = 0,
    layout: Layout | None = None, observe: Observe | None = None,
) -> Certificate:  # fmt: skip
    """Compare an environment with its turned twin.

    `make` builds the environment and is called twice. A user's own features are checked by `observe`, a
    function of the environment returning float64 numbers, with their `layout`.
    """
    if states < 1 or yaws < 1:
        raise EudaError(f"a certificate needs at least one state and one yaw, not {states} and {yaws}")
    pair = Pair(make(), make(), layout, observe)
    rng = np.random.default_rng(seed)
    samples = sample_states(pair.env, states, rng)
    actions = rng.uniform(-1, 1, (states, pair.env.model.nu))
    angles = rng.uniform(0, 2 * np.pi, (states, yaws))
    result = pair.compare(samples, actions, angles)
    contacts = [pair.contacts(sample, action) for sample, action in zip(samples, actions, strict=True)]
    return Certificate(
        task=getattr(pair.env, "task", "model"),
        features=getattr(pair.env, "features", "limb") if observe is None else "custom",
        cone=getattr(pair.env, "cone", "pyramidal"),
        states=states, yaws=yaws, seed=seed,
        states_with_contacts=sum(bool(pairs) for pairs in contacts),
        dynamics=_errors(result.dynamics),
        reward=_reward_errors(result) if pair.has_reward else None,
        fields=_field_errors(pair.layout, result),
        causes=tuple(_causes(pair, (samples, actions, angles), result, contacts)),
    )  # fmt: skip


class Pair:
    """An environment and the twin in which the world is turned."""

    def __init__(
        self, env: LimbEnv, twin: LimbEnv, layout: Layout | None = None, observe: Observe | None = None
    ) -> None:
        self.env, self.twin = env, twin
        self.layout = env.layout if layout is None else layout
        self.observe: Observe = observe or (lambda which: which.observer.observe_exactly())
        self.by_heading = any(field.kind is Kind.HEADING for field in self.layout)
        # In the plane the direction of travel is part of the mounting and turns with it; a free robot's direction
        # may only turn if the agent sees it.
        self.sees_direction = "direction" in self.layout or env.morphology.base != "free"
        self.has_reward = type(env).reward is not LimbEnv.reward
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
    spread[: env.morphology.d1] = 0.0
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

Contacts = frozenset[tuple[str, str]]
"""Pairs (geometry types, names) of frictional contacts, for example ('sphere-plane', 'toe-floor')."""


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


# -- errors ----------------------------------------------------------------------------------------------


def _errors(values: np.ndarray) -> Errors:
    return Errors(float(np.median(values)), float(values.max()))


def _reward_errors(result: Comparison) -> Errors:
    """Relative to the largest reward seen."""
    return _errors(result.reward / (np.abs(result.rewards).max() or 1.0))


def _field_errors(layout: Layout, result: Comparison) -> dict[str, FieldErrors]:
    expected = layout.rotate(result.original, result.yaws)
    fields = {}
    for field in layout:
        where = layout.slices[field.name]
        scale = np.abs(result.original[:, where]).max() or 1.0
        errors = _errors(_distance(field.kind, result.turned[:, where], expected[:, where]) / scale)
        finding = _behaves_as(field.name, layout, result) if errors.max > EXACT else ""
        fields[field.name] = FieldErrors(errors.median, errors.max, field.kind.value, finding)
    return fields


def _distance(kind: Kind, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Largest difference per row; angles modulo a turn, quaternions modulo their sign."""
    difference = a - b
    if kind is Kind.HEADING:
        difference = np.remainder(difference + np.pi, 2 * np.pi) - np.pi
    if kind is Kind.QUATERNION:
        return np.minimum(np.abs(difference).max(-1), np.abs(a + b).max(-1))
    return np.abs(difference).max(axis=-1)


def _behaves_as(name: str, layout: Layout, result: Comparison) -> str:
    """Which kind the field's numbers follow, if any: the declaration to make instead."""
    where, declared = layout.slices[name], layout.field(name).kind
    size = where.stop - where.start
    a, b = result.original[:, where], result.turned[:, where]
    scale = np.abs(a).max() or 1.0
    for kind in Kind:
        if kind is declared or size % kind.width:
            continue
        alone = Layout(
            (dataclasses.replace(layout.field(name), kind=kind, count=size // kind.width, of=(), frame="world"),)
        )
        if (_distance(kind, b, alone.rotate(a, result.yaws)) / scale).max() <= EXACT:
            return f"declared {declared.name} but turns as {kind.name}"
    return f"does not turn as {declared.name}, nor as any other kind"


# -- causes ----------------------------------------------------------------------------------------------


def _causes(pair: Pair, trial: Trial, result: Comparison, contacts: list[Contacts]) -> list[str]:
    """Why something is not exact. Suspects in the model are proven by removing them and comparing again."""
    sentences: list[str] = []
    if result.dynamics.max() > EXACT:
        sentences, result = _dynamics_causes(pair, trial, result, contacts)
        if result.dynamics.max() > EXACT:
            return sentences or ["the dynamics do not turn, and none of the known causes alone explains it"]
    # What is still wrong with exact dynamics is the fault of the field or of the reward itself.
    sentences += [
        f"field {name!r} {errors.finding}"
        for name, errors in _field_errors(pair.layout, result).items()
        if errors.finding
    ]
    if pair.has_reward and _reward_errors(result).max > EXACT:
        sentences.append(_reward_cause(pair))
    return sentences


def _dynamics_causes(
    pair: Pair, trial: Trial, result: Comparison, contacts: list[Contacts]
) -> tuple[list[str], Comparison]:
    """The suspects that are guilty, in words, and the best comparison reached by removing one."""
    before, best, sentences = float(result.dynamics.max()), result, []
    bad = np.array([result.dynamics[result.state == i].max() > EXACT for i in range(len(contacts))])
    for suspect in SUSPECTS:
        detail = suspect.find(pair.env.model)
        if detail is None:
            continue
        with mended(suspect, pair.env.model, pair.twin.model):
            try:
                without = pair.compare(*trial)
            except SimulationError:
                continue
        after = float(without.dynamics.max())
        if after <= max(EXACT, 0.1 * before):
            sentences.append(suspect.sentence(detail, before, after, blamed_contacts(contacts, bad)))
        if after < best.dynamics.max():
            best = without
    return sentences, best


def _reward_cause(pair: Pair) -> str:
    if not pair.sees_direction and pair.env.robot.direction is not None:
        return "the reward follows a direction that these features do not show, so turned transitions contradict each other"
    return "the reward does not turn with the world although the dynamics do: it depends on world axes"
