"""Examined → elements to learn from: those that keep motion and reward, with what is said of the others.

An element must be a symmetry of the dynamics, at least nearly, and of the reward. What is kept is closed under
composition. Everything here is plain data, so that it can be stored and read again.
"""

from __future__ import annotations

import dataclasses
import logging

from euda.errors import EudaError
from euda.symmetry.element import Element
from euda.symmetry.examination import examine
from euda.symmetry.examined import ElementVerdict, Examined
from euda.symmetry.judging.subject import Subject

STATES = 18
"""That a short examination tries."""


@dataclasses.dataclass(frozen=True)
class Candidate:
    """What the simulator says about one element, as far as learning needs to know."""

    name: str
    is_trivial: bool
    verdict: str
    """Of dynamics and observations."""
    reward: str | None
    """None where there is no reward to compare."""
    median: float
    """Error of a step, as a share of its change: about the share of mass in the wrong place."""
    number: str
    """How far from exact, in words."""
    causes: tuple[str, ...]
    fitted: dict[str, str]
    """Fields whose answer cannot be derived, and what they seemed to do in the states that were tried."""

    @property
    def is_of_the_task(self) -> bool:
        """Whether the reward keeps it."""
        return self.reward != "broken"

    @property
    def is_exact(self) -> bool:
        """Whether motion and reward are, iterative collisions apart."""
        return self.verdict.startswith("exact") and self.reward in (None, "exact")

    @property
    def because(self) -> str:
        """The first cause, after a colon."""
        return f": {self.causes[0]}" if self.causes else ""

    def why_left_out(self, only_exact: bool) -> str:
        """Why it is not used."""
        if not self.is_of_the_task:
            return f"{self.name} keeps the motion, but not the reward"
        if self.verdict == "broken":
            return f"{self.name} is broken ({self.number}){self.because}"
        if only_exact and not self.is_exact:
            return f"{self.name} is near, not exact ({self.number}){self.because}"
        return f"{self.name} together with the others makes elements that are left out"


@dataclasses.dataclass(frozen=True)
class Selection:
    """The elements to learn from, and what is to be said about them."""

    elements: tuple[Candidate, ...]
    said: tuple[str, ...]
    """A sentence for each element that is left out or near."""


@dataclasses.dataclass(frozen=True)
class Candidates:
    """The finite group of a robot with the verdict on every element, identity first."""

    robot: str
    elements: tuple[Candidate, ...]
    table: tuple[tuple[int, ...], ...]
    """[order, order] places of the products."""
    nearest: str
    """The best isometry where there is no symmetry, and what is in its way."""

    @staticmethod
    def of(found: Examined) -> Candidates:
        """What matters of an examination."""
        elements = tuple(_candidate(found, place, one) for place, one in enumerate(found.verdicts))
        table = tuple(tuple(row) for row in found.group.table.tolist())
        return Candidates(found.name, elements, table, found.group.nearest)

    def select(self, instead: str, *, insist: str = "", trust: bool = False, only_exact: bool = False) -> Selection:
        """The elements to use, or one sentence that says why there are none.

        `instead` says what else to do, and `insist` how to use those that are refused, if there are any.
        `trust`: rather use elements that are broken than none. `only_exact`: none that are near.
        """
        places = [place for place, one in enumerate(self.elements) if place and not one.is_trivial]
        if not places:
            raise EudaError(f"{self._without_any()}; {instead}")
        otherwise = f"{instead}, or {insist}" if insist else instead
        rewarded = [place for place in places if self.elements[place].is_of_the_task]
        rewarded = [place for place in rewarded if self.elements[place].is_exact or not only_exact]
        fit = self._closed([place for place in rewarded if self.elements[place].verdict != "broken"])
        chosen = fit or (self._closed(rewarded) if trust else [])
        if not chosen:
            reason = self.elements[places[0]].why_left_out(only_exact)
            raise EudaError(f"{self.robot} has no mirror or exchange of limbs to learn from: {reason}; {otherwise}")
        _refuse_underivable([self.elements[place] for place in chosen], instead)  # no insisting: no rule is known
        return Selection(tuple(self.elements[place] for place in chosen), tuple(self._said(places, chosen, only_exact)))

    def _said(self, places: list[int], chosen: list[int], only_exact: bool) -> list[str]:
        said = []
        if self.elements[0].reward is None:
            said.append(f"the reward of {self.robot} was not compared: mirrored data are right only if mirrors keep it")
        for place in places:
            one = self.elements[place]
            if place not in chosen:
                said.append(f"left out: {one.why_left_out(only_exact)}")
            elif one.verdict in ("near", "broken"):
                said.append(f"{one.name} of {self.robot} is {one.verdict}, not exact ({one.number}){one.because}")
        return said

    def _without_any(self) -> str:
        if len(self.elements) > 1:
            name = self.elements[1].name
            return f"{name} of {self.robot} is trivial: it moves no joint, so it adds nothing to yaws"
        nearest = f"; the nearest is {self.nearest}" if self.nearest else ""
        return f"{self.robot} has no symmetry other than the yaws{nearest}"

    def _closed(self, places: list[int]) -> list[int]:
        """A subgroup of some elements, without the identity: the nearest to exact first, others as they fit in."""
        kept = {0}
        for place in sorted(places, key=self._distance):
            grown = self._generated(kept | {place})
            kept = grown if grown <= {0, *places} else kept
        return sorted(kept - {0})

    def _distance(self, place: int) -> tuple[bool, float, int]:
        """How far an element is from exact."""
        one = self.elements[place]
        return not one.is_exact, 0.0 if one.is_exact else one.median, place

    def _generated(self, places: set[int]) -> set[int]:
        while (grown := places | {self.table[i][j] for i in places for j in places}) != places:
            places = grown
        return places


def _candidate(found: Examined, place: int, one: ElementVerdict) -> Candidate:
    number = f"error of a step {one.median:.2g} of its change, {one.p90:.2g} in one of ten, at worst {one.max:.2g}"
    differences = [defect.sentence for defect in found.defects if place in defect.origin.elements]
    broken = [f"field {name} does not follow it" for name, verdict in one.fields.items() if verdict == "broken"]
    causes, fitted = (*differences, *broken, *one.causes), {fit.field: fit.words for fit in one.fits}
    name, is_trivial = one.element.name, one.element.is_trivial
    return Candidate(name, is_trivial, one.verdict, one.reward, one.median, number, causes, fitted)


def _refuse_underivable(chosen: list[Candidate], instead: str) -> None:
    """Refuse fields that no rule maps: a fit is evidence about the states that were tried, and no more."""
    for one in chosen:
        for field, words in one.fitted.items():
            raise EudaError(
                f"what {one.name} does to field {field!r} cannot be derived from what it reads (in the states that were"
                f" tried, {words}): leave it out of the observations, or {instead}"
            )


def task_symmetries(subject: Subject, *, states: int = STATES) -> tuple[Element, ...]:
    """The mirrors and exchanges of limbs that a learner may use: those that keep the motion and the reward.

    `subject` is what `certify` takes. Each element of the robot's finite group is tried in the simulator. What is near
    or left out is logged; if nothing is left, that is refused.

    >>> import euda
    >>> [element.name for element in euda.task_symmetries("walker_run", states=6)]
    ['mirror left-right']
    """
    found = examine(subject, states=states)
    selection = Candidates.of(found).select("use yaws alone")
    for sentence in selection.said:
        logging.getLogger("euda").warning("%s", sentence)
    by_name = {element.name: element for element in found.group}
    return tuple(by_name[one.name] for one in selection.elements)
