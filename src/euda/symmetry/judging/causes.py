"""Why something does not agree: suspects in the model are tried by removing them and comparing again."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Sequence

import numpy as np

from euda.body.layout import Field, Kind, Layout
from euda.errors import SimulationError
from euda.symmetry.judging.coverage import Touched, blamed_contacts
from euda.symmetry.judging.joint_suspects import JOINT_SUSPECTS
from euda.symmetry.judging.reach import differences
from euda.symmetry.judging.suspects import WORLD_SUSPECTS, Suspect, mended
from euda.symmetry.judging.twin import Comparison, Trial, Twin
from euda.symmetry.judging.verdict import EXACT

SUSPECTS: tuple[Suspect, ...] = (*WORLD_SUSPECTS, *JOINT_SUSPECTS)
UNEXPLAINED = "the dynamics do not agree, and none of the known causes explains it"
HIDDEN = "the reward follows a direction that these features do not show: turned transitions contradict each other"
AXES = "the reward does not turn with the world although the dynamics do: it depends on world axes"
_ENOUGH = 24
NOISE = 1e-3
"""Fields that stay smaller are compared as if they were this large: they may be rounding alone."""


@dataclasses.dataclass(frozen=True)
class Causes:
    """Why the dynamics do not agree."""

    lines: tuple[str, ...]
    is_directed: bool
    """Whether a direction of the world itself is guilty."""
    rest: Comparison | None
    """The comparison without what was found guilty; None if the dynamics do not agree even then."""


def of_dynamics(twin: Twin, trials: Sequence[Trial], result: Comparison, touched: Sequence[Touched]) -> Causes:
    """The guilty suspects, a line each: what explains the largest errors first, then what is left without that."""
    robot, lines, removed, is_directed = twin.env.robot, list[str](), list[Suspect](), False
    bad = np.array([(result.dynamics[result.trial == i] > EXACT).any() for i in range(len(touched))])
    contacts = blamed_contacts(robot.model, touched, bad)
    suspects = {suspect: detail for suspect in SUSPECTS if (detail := suspect.find(robot)) is not None}
    rest: Comparison | None = result
    while rest is not None and _Size.of(rest).worst > EXACT:
        some = _worst_trials(trials, rest)
        found = _guilty(twin, some, removed, [suspect for suspect in suspects if suspect not in removed])
        lines += [one.line(suspects[one], effect, contacts) for one, effect in found.effects.items()]
        is_directed |= any(suspect.is_directed for suspect in found.effects)
        if not found.removed:
            return Causes(tuple(lines) or (UNEXPLAINED,), is_directed, None)
        removed += found.removed
        rest = _without(twin, trials, removed)
    return Causes(tuple(lines), is_directed, rest)


@dataclasses.dataclass(frozen=True)
class _Size:
    """How large the errors of some trials are."""

    worst: float
    median: float

    @staticmethod
    def of(result: Comparison | None) -> _Size:
        """Of a comparison; None is one that the simulation did not survive."""
        if result is None:
            return _Size(np.inf, np.inf)
        return _Size(float(result.dynamics.max()), float(np.median(result.dynamics)))


@dataclasses.dataclass(frozen=True)
class _Guilty:
    """Suspects that explain the errors of some trials."""

    effects: dict[Suspect, str]
    """What removing each does, in words."""
    removed: tuple[Suspect, ...] = ()
    """What to remove before looking further; empty if nothing explains the errors."""


def _guilty(twin: Twin, trials: Sequence[Trial], removed: list[Suspect], suspects: list[Suspect]) -> _Guilty:
    def left(without: Sequence[Suspect]) -> _Size:
        return _Size.of(_without(twin, trials, [*removed, *without]))

    before, alone = left([]), {suspect: left([suspect]) for suspect in suspects}
    exact = {suspect: size for suspect, size in alone.items() if size.worst <= EXACT}
    if exact:
        effects = {suspect: f"{_fall('worst', before, size)}" for suspect, size in exact.items()}
        return _Guilty(effects, tuple(exact)[:1])
    if len(suspects) > 1 and left(suspects).worst <= EXACT:
        # Several causes at once: guilty is each without whose removal the error comes back.
        needed = [one for one in suspects if left([other for other in suspects if other is not one]).worst > EXACT]
        if needed and (after := left(needed)).worst <= EXACT:
            return _Guilty(dict.fromkeys(needed, _fall("worst", before, after, len(needed))), tuple(needed))
    # No removal makes all of it exact: what explains most of it, or half of the rows, is named; the rest comes next.
    falls = [(getattr(size, what) / getattr(before, what), what, suspect) for suspect, size in alone.items()
             for what in ("worst", "median") if getattr(before, what) > EXACT]  # fmt: skip
    share, what, best = min(falls, key=lambda fall: fall[0], default=(np.inf, "", None))
    if best is None or share > 0.1:
        return _Guilty({})
    return _Guilty({best: _fall(what, before, alone[best])}, (best,))


def _fall(what: str, before: _Size, after: _Size, causes: int = 1) -> str:
    """How an error falls, in words."""
    it = "it" if causes == 1 else f"all {causes} causes"
    return f"{what} error {getattr(before, what):.2g}, without {it} {getattr(after, what):.1g}"


def _worst_trials(trials: Sequence[Trial], result: Comparison) -> list[Trial]:
    """The trials with the largest errors: enough to see whether they vanish."""
    errors = np.zeros(len(trials))
    np.maximum.at(errors, result.trial, result.dynamics)
    return [trials[int(index)] for index in np.argsort(-errors)[:_ENOUGH] if errors[index] > EXACT]


def _without(twin: Twin, trials: Sequence[Trial], suspects: list[Suspect]) -> Comparison | None:
    """The comparison with these suspects removed; None if the simulation does not survive that."""
    with contextlib.ExitStack() as stack:
        for suspect in suspects:
            stack.enter_context(mended(suspect, twin.env.robot))
        try:
            return twin.compare(trials)
        except SimulationError:
            return None


# -- fields ----------------------------------------------------------------------------------------------


def of_field(name: str, finding: str) -> str:
    """A line about a field that does not follow its declaration."""
    return f"field {name!r} {finding}"


def behaves_as(name: str, layout: Layout, result: Comparison, counts: np.ndarray) -> str:
    """Which kind the field's numbers follow, if any: the declaration to make instead."""
    where, declared = layout.slices[name], layout.field(name).kind
    size = where.stop - where.start
    original, found = result.original[:, where], result.found[:, where]
    scale = max(NOISE, float(np.abs(original).max()))
    for kind in Kind:
        if kind is declared or size % kind.width:
            continue
        alone = Layout((Field(name, kind, size // kind.width),))
        pairs = zip(result.transformations, original, strict=True)
        expected = np.array([transformation.observation(alone, row) for transformation, row in pairs])
        if (differences(alone, found, expected)[:, counts[where]] / scale).max(initial=0.0) <= EXACT:
            return f"declared {declared.name} but turns as {kind.name}"
    return f"does not turn as {declared.name}, nor as any other kind"
