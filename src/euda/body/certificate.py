"""Symmetry proven in the simulator: turn the world, act alike, and compare what happens.

For sampled states (with contacts, and with the robot upright and moving so that rewards say something)
and random yaws, the original and the turned simulation take one control step with the same action.
Next state, every field of the layout, and reward must be the originals, turned.
"""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Callable
from typing import Any, Literal

import numpy as np

from euda.body.comparison import Comparison, Contacts, Observe, Pair, blamed_contacts, sample_states
from euda.body.layout import Kind, Layout
from euda.body.limb_env import LimbEnv, State
from euda.body.suspects import SUSPECTS, Suspect, mended
from euda.errors import EudaError, SimulationError

Verdict = Literal["exact", "approximate", "broken"]
EXACT = 1e-9
_NOISE = 1e-3  # fields that stay smaller are compared as if they were this large: they may be rounding alone
BROKEN = 0.05
"""Median relative error above which a symmetry is not even approximate."""
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
    """What the simulator says about a symmetry.

    >>> import euda
    >>> certificate = euda.certify(lambda: euda.make("walker3d_run", "joint"), states=6, yaws=2)
    >>> certificate.dynamics.verdict, certificate.reward.verdict, certificate.verdict
    ('exact', 'approximate', 'approximate')
    >>> print(*certificate.causes)
    the reward follows a direction that these features do not show: turned transitions contradict each other
    """

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


def certify(
    make: Callable[[], LimbEnv], *, states: int = 60, yaws: int = 4, seed: int = 0,
    layout: Layout | None = None, observe: Observe | None = None,
) -> Certificate:  # fmt: skip
    """Compare an environment with its turned twin.

    `make` builds the environment and is called twice. A user's own features are checked by `observe`, a
    function of the environment returning float64 numbers, with their `layout`.

    >>> import euda
    >>> certificate = euda.certify(lambda: euda.make("hopper3d_hop"), states=6, yaws=2)
    >>> certificate.verdict, certificate.worst < 1e-9
    ('exact', True)
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


# -- errors ----------------------------------------------------------------------------------------------


def _errors(values: np.ndarray) -> Errors:
    return Errors(float(np.median(values)), float(values.max()))


def _reward_errors(result: Comparison) -> Errors:
    """Relative to the largest reward seen; where both rewards are zero nothing was compared."""
    scale = np.abs(result.rewards).max() or 1.0
    earned = (result.rewards != 0) | (result.reward != 0)
    return _errors(result.reward[earned] / scale) if earned.any() else Errors(0.0, 0.0)


def _field_errors(layout: Layout, result: Comparison) -> dict[str, FieldErrors]:
    expected = layout.rotate(result.original, result.yaws)
    fields = {}
    for field in layout:
        where = layout.slices[field.name]
        scale = max(_NOISE, float(np.abs(result.original[:, where]).max()))
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
    scale = max(_NOISE, float(np.abs(a).max()))
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
    """The guilty suspects in words, and the comparison without them."""
    before = float(result.dynamics.max())
    bad = np.array([result.dynamics[result.state == i].max() > EXACT for i in range(len(contacts))])
    found = {suspect: detail for suspect in SUSPECTS if (detail := suspect.find(pair.env.model)) is not None}
    alone = {suspect: _without(pair, trial, [suspect]) for suspect in found}
    guilty = [suspect for suspect, without in alone.items() if _falls(without, EXACT)]
    best = min([result, *(r for r in alone.values() if r is not None)], key=lambda r: r.dynamics.max())
    if not guilty and len(found) > 1 and _falls(together := _without(pair, trial, list(found)), EXACT):
        # Several causes at once: guilty is each without whose removal the error comes back.
        assert together is not None
        rest = {one: _without(pair, trial, [other for other in found if other is not one]) for one in found}
        guilty, best = [one for one, without in rest.items() if not _falls(without, EXACT)], together
    if not guilty:  # no removal makes it exact: what explains most of it is named all the same
        guilty = [suspect for suspect, without in alone.items() if _falls(without, 0.1 * before)]
    after = float(best.dynamics.max())
    sentences = [s.sentence(found[s], before, after, blamed_contacts(contacts, bad), len(guilty)) for s in guilty]
    return sentences, best


def _without(pair: Pair, trial: Trial, suspects: list[Suspect]) -> Comparison | None:
    """The comparison with these suspects removed; None if the simulation does not survive that."""
    with contextlib.ExitStack() as stack:
        for suspect in suspects:
            stack.enter_context(mended(suspect, pair.env.model, pair.twin.model))
        try:
            return pair.compare(*trial)
        except SimulationError:
            return None


def _falls(without: Comparison | None, limit: float) -> bool:
    return without is not None and float(without.dynamics.max()) <= limit


def _reward_cause(pair: Pair) -> str:
    if not pair.sees_direction and pair.env.robot.direction is not None:
        return (
            "the reward follows a direction that these features do not show: turned transitions contradict each other"
        )
    return "the reward does not turn with the world although the dynamics do: it depends on world axes"
