"""Symmetry tested in the simulator: transform the state, act alike, and compare what happens.

From sampled states (those that a robot comes to by itself, and others made so that every contact and limit acts) the
simulation takes one control step with the same action, as it is and after a random yaw. Next state, every field of
the layout, and reward must be the originals, turned.
"""

from __future__ import annotations

import contextlib
import dataclasses
import importlib.metadata
from collections.abc import Iterator
from typing import Any

import numpy as np

from euda.body.fingerprint import digest
from euda.body.layout import Layout
from euda.errors import EudaError
from euda.symmetry.judging.coverage import Coverage
from euda.symmetry.judging.findings import FieldErrors, Findings, Question, find
from euda.symmetry.judging.joint_suspects import why_never
from euda.symmetry.judging.reach import Case, Yaws
from euda.symmetry.judging.subject import Subject, environment_of
from euda.symmetry.judging.trials import Trials
from euda.symmetry.judging.twin import Observe, Twin
from euda.symmetry.judging.verdict import EXACT, Energy, Errors, Verdict, worst

_CASES: dict[Case, str] = {
    "free": "free: a turned state is one that this robot can have",
    "never reached": "mounted and never in a turned state ({}): turned data contradict nothing and help little",
    "reached": "mounted, and its own joints bring it into turned states: there it must do what turned data say",
}


@dataclasses.dataclass(frozen=True)
class Certificate:
    """What the simulator says about a symmetry.

    >>> import euda
    >>> certificate = euda.certify(lambda: euda.make("walker3d_run", "joint"), states=12, yaws=2)
    >>> certificate.dynamics.verdict, certificate.reward.verdict, certificate.verdict
    ('exact', 'broken', 'broken')
    >>> print(*certificate.causes)
    the reward follows a direction that these features do not show: turned transitions contradict each other
    """

    task: str
    features: str
    cone: str
    symmetry: str
    """`yaw`; `examination` tries the elements of the robot's finite group."""
    case: Case
    """Whether the robot itself can be in a turned state: `free`, mounted and `reached`, or `never reached`."""
    why: str
    """What keeps a robot that is never in a turned state from it; else empty."""
    states: int
    """States that the robot came to by itself."""
    sought: int
    """States made on purpose beside them, so that a contact or a limit acts."""
    yaws: int
    """Per state."""
    seed: int
    states_with_contacts: int
    """Of the states that the robot came to by itself: those with frictional contacts."""
    coverage: Coverage
    """Which contacts and limits acted."""
    dynamics: Errors
    energy: Energy
    """How near the dynamics are, as one number."""
    reward: Errors | None
    """None where the simulation has no reward."""
    fields: dict[str, FieldErrors]
    causes: tuple[str, ...]
    """Why it is not exact, each in full."""
    model: str
    """Sixteen characters of the compiled model."""
    version: str
    """Of euda."""

    @property
    def features_errors(self) -> Errors:
        """The worst field."""
        found = list(self.fields.values())
        return Errors(
            max(f.median for f in found), max(f.max for f in found), max(f.share for f in found),
            worst([f.verdict for f in found]),
        )  # fmt: skip

    @property
    def verdict(self) -> Verdict:
        """The worst verdict of dynamics, fields and reward."""
        parts: list[Errors] = [self.dynamics, *self.fields.values(), *([self.reward] if self.reward else [])]
        return worst([part.verdict for part in parts])

    @property
    def worst(self) -> float:
        """The largest relative error of all."""
        return max(self.dynamics.max, self.features_errors.max, self.reward.max if self.reward else 0.0)

    @property
    def case_explained(self) -> str:
        """The case in words."""
        return _CASES[self.case].format(self.why)

    @property
    def summary(self) -> str:
        """The verdict in one sentence, with its numbers and with what was looked at."""
        number = "" if self.verdict.startswith("exact") else f" ({self.number})"
        looked = f"{self.states} states and {self.sought} made on purpose" if self.sought else f"{self.states} states"
        return (
            f"{self.verdict}{number}, tested in {looked} with {self.coverage.contacts} contact pairs"
            f" and {self.coverage.limits} limits"
        )

    @property
    def number(self) -> str:
        """How far from exact, in numbers."""
        parts = []
        if self.dynamics.verdict != "exact":
            parts.append(
                f"error of a step {_tidy(self.energy.median)} of its change, {_tidy(self.energy.p90)} in one of ten,"
                f" at worst {_tidy(self.dynamics.max)} of the speed"
            )
        if self.reward is not None and self.reward.verdict != "exact":
            parts.append(f"reward at worst {_tidy(self.reward.max)} of the largest")
        if not parts:
            parts.append(f"a field at worst {_tidy(self.features_errors.max)} of its size")
        return "; ".join(parts)

    def to_json(self) -> dict[str, Any]:
        """Plain JSON values."""
        return dataclasses.asdict(self) | {
            "verdict": self.verdict, "worst": self.worst, "summary": self.summary, "causes": list(self.causes),
            "coverage": self.coverage.to_json(),
        }  # fmt: skip


def certify(
    subject: Subject, *, states: int = 60, yaws: int = 4, seed: int = 0, layout: Layout | None = None,
    observe: Observe | None = None, fold: int = 0,
) -> Certificate:  # fmt: skip
    """Compare a simulation with its turned twin.

    `subject` is a task by name, the path of an MJCF file, a compiled model, an environment (which goes on afterwards
    as if nothing had happened; of one that is not ours the simulation inside is certified, without its reward), or
    a function that makes an environment. A user's own features are checked by `observe`, a function of the
    environment returning float64 numbers, with their `layout`. With a `fold` only those yaws are tried that repeat so
    many times in a turn: 2 for half turns, 4 for quarter turns.

    >>> import euda
    >>> certificate = euda.certify("hopper3d_hop", states=6, yaws=2)
    >>> certificate.verdict, certificate.worst < 1e-9
    ('exact', True)
    """
    if states < 1 or yaws < 1:
        raise EudaError(f"a certificate needs at least one state and one yaw, not {states} and {yaws}")
    if fold < 0 or fold == 1:
        raise EudaError(f"fold is 0 for all yaws, or at least 2, not {fold}")
    with _examined(subject, layout, observe) as twin:
        rng = np.random.default_rng(seed)
        trials = Trials(twin, states, rng)
        kind = Yaws(twin, trials.samples, rng)
        hidden = twin.env.robot.direction is not None and not kind.sees_direction
        question = Question(lambda state: kind.draw(state, yaws, rng, fold), kind.case == "reached", hidden)
        why = why_never(twin.env.model) if kind.case == "never reached" else ""
        return _certificate(trials, find(trials, question), kind.case, why, yaws, seed)


@contextlib.contextmanager
def _examined(subject: Subject, layout: Layout | None, observe: Observe | None) -> Iterator[Twin]:
    """The simulation of a subject, put back afterwards as it was."""
    env = environment_of(subject)
    before = env.get_state()
    try:
        yield Twin(env, layout, observe)
    finally:
        env.data.warning.number[:] = 0
        env.set_state(before)


def _certificate(trials: Trials, findings: Findings, case: Case, why: str, yaws: int, seed: int) -> Certificate:
    twin = trials.twin
    env = twin.env
    return Certificate(
        task=getattr(env, "task", "model"),
        features="custom" if twin.is_custom else getattr(env, "features", "limb"),
        cone=getattr(env, "cone", "pyramidal"),
        symmetry="yaw", case=case, why=why, states=trials.visited, sought=trials.sought, yaws=yaws,
        seed=seed, states_with_contacts=trials.states_with_contacts, coverage=trials.coverage,
        dynamics=findings.dynamics, energy=findings.energy, reward=findings.reward, fields=findings.fields,
        causes=findings.causes, model=digest(env.model), version=_version(),
    )  # fmt: skip


def _tidy(error: float) -> str:
    """Two digits, and rounding errors as what they are."""
    return f"{error:.2g}" if error > EXACT else "0"


def _version() -> str:
    try:
        return importlib.metadata.version("euda")
    except importlib.metadata.PackageNotFoundError:
        return ""
