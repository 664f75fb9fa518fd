"""(Defects, trials) → how much of an element's error each defect explains, by removing all the others.

A defect is guilty of what is left when everything else is mended. Sizes of errors are root mean squares over states
that the robot comes to by itself and those in which the defect acts, in the kinetic-energy norm.
"""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Iterator, Sequence

import mujoco
import numpy as np

from euda.errors import ModelError, SimulationError
from euda.symmetry.group import Group
from euda.symmetry.judging.transformation import ElementImage
from euda.symmetry.judging.twin import Comparison, Trial, Twin
from euda.symmetry.repair.defects import DIRECTIONS, FIXED, NO_IMAGE, Defect, averaged
from euda.symmetry.repair.mend import generated, with_numbers
from euda.symmetry.repair.quantities import QUANTITIES

_MOST = 12  # defects that are asked, the largest first
_TRIALS = 60  # states in which they are asked, those with the largest errors


@dataclasses.dataclass(frozen=True)
class Blame:
    """What one defect explains."""

    share: float
    """Of the error with all defects, 0 to 1."""
    error: float
    """Root mean square of what is left with this defect alone, as a share of a step's change of velocity."""


def blame(
    twin: Twin, group: Group, defects: Sequence[Defect], tried: Sequence[ElementImage], trials: Sequence[Trial],
    results: Sequence[Comparison],
) -> dict[int, Blame]:  # fmt: skip
    """The blame of the largest defects, by their places in the list."""
    found = dict[int, Blame]()
    means = averaged(twin.env.model, group, generated(group, range(group.order)))
    for place, defect in enumerate(defects[:_MOST]):
        number = defect.origin.elements[0]
        some = worst_trials(trials, results[number - 1], tried[number - 1])
        everything = _error(twin, some)
        with contextlib.suppress(ModelError, SimulationError):  # then nothing can be said
            alone = mended_but(twin.env.model, means, defects, defect)
            with instead(twin, alone, some) as (its_twin, its_trials):
                left = _error(its_twin, its_trials)
            found[place] = Blame(min(1.0, left / everything) if everything > 0 else 0.0, left)
    return found


def worst_trials(trials: Sequence[Trial], result: Comparison, tried: ElementImage) -> list[Trial]:
    """The trials with the largest errors: those in which anything acts at all."""
    errors = np.zeros(len(trials))
    np.maximum.at(errors, result.trial, result.energy)
    return [dataclasses.replace(trials[int(i)], transformations=(tried,)) for i in np.argsort(-errors)[:_TRIALS]]


def _error(twin: Twin, trials: Sequence[Trial]) -> float:
    return float(np.sqrt(np.mean(np.square(twin.compare(trials).energy))))


def mended_but(
    model: mujoco.MjModel, means: dict[int, np.ndarray], defects: Sequence[Defect], kept: Defect | None
) -> mujoco.MjModel:
    """The model with every defect mended but one, or none; what has no image is made not to collide."""
    numbers = {}
    for place, mean in means.items():
        values = QUANTITIES[place].read(model)
        whose = np.isin(np.arange(len(mean)), [] if kept is None else _parts(model, place, kept))[:, None]
        numbers[place] = np.where(whose, values, mean)
    result = with_numbers(model, numbers)
    for defect in defects:
        if defect.what in (NO_IMAGE, FIXED) and defect is not kept:
            result.geom_contype[defect.origin.index] = result.geom_conaffinity[defect.origin.index] = 0
        if defect.what in DIRECTIONS and defect is not kept:
            getattr(result.opt, defect.what)[:2] = 0.0
    return result


def _parts(model: mujoco.MjModel, place: int, defect: Defect) -> list[int]:
    """The parts to leave as they are: the defect's own and its image, if this is the quantity it is about."""
    if defect.what == "shape" and QUANTITIES[place].kind == defect.origin.kind and not QUANTITIES[place].is_listed:
        return _named(model, defect)
    return _named(model, defect) if place == defect.origin.quantity else []


def _named(model: mujoco.MjModel, defect: Defect) -> list[int]:
    image = mujoco.mj_name2id(model, defect.origin.kind, defect.image)
    return [defect.origin.index, image if image >= 0 else defect.origin.index]


@contextlib.contextmanager
def instead(twin: Twin, other: mujoco.MjModel, trials: Sequence[Trial]) -> Iterator[tuple[Twin, list[Trial]]]:
    """The same simulation and trials with the numbers of another model of the same parts, for a while.

    A state holds where targets are, and with them the places and sizes of everything: those follow the other model.
    """
    model, changed = twin.env.model, dict[str, np.ndarray]()
    directions = {name: getattr(model.opt, name).copy() for name in DIRECTIONS}
    for name in dir(model):
        mine, its = getattr(model, name), getattr(other, name)
        if isinstance(mine, np.ndarray) and mine.flags.writeable and not np.array_equal(mine, its):
            changed[name] = mine.copy()
    moved = {name: getattr(other, name) - before for name, before in changed.items() if name in trials[0].state}
    there = [
        dataclasses.replace(trial, state={n: v + moved[n] if n in moved else v for n, v in trial.state.items()})
        for trial in trials
    ]
    try:
        for name in changed:
            getattr(model, name)[:] = getattr(other, name)
        for name in directions:
            setattr(model.opt, name, getattr(other.opt, name))
        yield Twin(twin.env), there
    finally:
        for name, values in changed.items():
            getattr(model, name)[:] = values
        for name, values in directions.items():
            setattr(model.opt, name, values)
