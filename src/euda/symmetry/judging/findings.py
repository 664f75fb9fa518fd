"""Trials and a question about yaws → what came out: errors of dynamics, fields and reward, and why."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence

import numpy as np

from euda.symmetry.judging import causes as reasons
from euda.symmetry.judging.causes import Causes
from euda.symmetry.judging.reach import constant, differences
from euda.symmetry.judging.transformation import Transformation
from euda.symmetry.judging.trials import Trials
from euda.symmetry.judging.twin import Comparison
from euda.symmetry.judging.verdict import EXACT, Energy, Errors, Rows, judge_dynamics, judge_part
from euda.tasks.base_env import State


@dataclasses.dataclass(frozen=True)
class FieldErrors(Errors):
    """Errors of one field, with the kind it was declared as and what it turned out to be."""

    kind: str = ""
    finding: str = ""


@dataclasses.dataclass(frozen=True)
class Findings:
    """What came out for one symmetry."""

    dynamics: Errors
    energy: Energy
    reward: Errors | None
    fields: dict[str, FieldErrors]
    causes: tuple[str, ...]


@dataclasses.dataclass(frozen=True)
class Question:
    """Which yaws are asked about."""

    draw: Callable[[State], Sequence[Transformation]]
    leaves_mounting: bool = False
    """Whether a robot on a mounting turns by itself, so that what shows the mounting cannot turn."""
    hides_direction: bool = False
    """Whether the robot has a direction of travel that the features do not show."""

    @property
    def reward_line(self) -> str:
        """What is said of a reward that does not agree although the dynamics do."""
        return reasons.HIDDEN if self.hides_direction else reasons.AXES


def find(trials: Trials, question: Question) -> Findings:
    """Compare, judge, and say why."""
    twin, drawn = trials.twin, trials.of(question.draw)
    result = twin.compare(drawn)
    why = reasons.of_dynamics(twin, drawn, result, trials.touched)
    rows = _rows(trials, result)
    return Findings(
        judge_dynamics(result.dynamics, result.energy, rows, why.is_directed),
        Energy.of(result.energy[rows.is_visited]),
        _reward(result, rows, question.hides_direction) if twin.env.has_reward else None,
        _fields(trials, result, rows, question),
        (*why.lines, *_own_faults(trials, why, question)),
    )


def _rows(trials: Trials, result: Comparison) -> Rows:
    is_exact = result.dynamics <= EXACT
    return Rows(~result.is_sought, trials.iterative(result), is_exact if is_exact.any() else ~is_exact)


def _fields(trials: Trials, result: Comparison, rows: Rows, question: Question) -> dict[str, FieldErrors]:
    layout, fields = trials.twin.layout, {}
    distance = differences(layout, result.found, result.expected)
    counts = np.ones(layout.dim, bool)
    if question.leaves_mounting:  # what shows the mounting of a robot that turns by itself is not compared
        counts = ~constant(layout, result.original, result.found)
    for field in layout:
        where = layout.slices[field.name]
        used = counts[where]
        scale = max(reasons.NOISE, float(np.abs(result.original[:, where]).max()))
        errors = distance[:, where][:, used].max(axis=1, initial=0.0) / scale
        judged = judge_part(errors, rows)
        finding = "" if used.any() else "never changes: it shows the mounting"
        if judged.verdict in ("near", "broken"):
            finding = reasons.behaves_as(field.name, layout, result, counts)
        fields[field.name] = FieldErrors(**dataclasses.asdict(judged), kind=field.kind.value, finding=finding)
    return fields


def _own_faults(trials: Trials, why: Causes, question: Question) -> list[str]:
    """What is still wrong once the dynamics agree is the fault of a field or of the reward itself."""
    if why.rest is None:
        return []
    rows = _rows(trials, why.rest)
    found = _fields(trials, why.rest, rows, question)
    lines = [reasons.of_field(name, errors.finding) for name, errors in found.items() if errors.max > EXACT]
    if trials.twin.env.has_reward and _reward(why.rest, rows, question.hides_direction).max > EXACT:
        lines.append(question.reward_line)
    return lines


def _reward(result: Comparison, rows: Rows, hides_direction: bool) -> Errors:
    """Relative to the largest reward seen; where both rewards are zero nothing was compared."""
    scale = np.abs(result.rewards).max() or 1.0
    earned = (result.rewards != 0) | (result.reward != 0)
    kept = Rows(rows.is_visited[earned], rows.is_iterative[earned], rows.is_own[earned])
    errors = result.reward[earned] / scale
    return judge_part(errors, kept, is_contradictory=hides_direction and bool((errors > EXACT).any()))
