"""Subject → Examined: the group of a robot, each element of it tried in the simulator, with defects and causes.

What was found from the model is a conjecture. For states that the robot comes to by itself, and others made so that
every contact, every limit and every named difference acts, a control step is taken from the state and from its image
under each element. Next state, every field and the reward must be images too.
"""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Callable, Sequence
from pathlib import Path

import mujoco
import numpy as np

from euda.body.layout import Layout
from euda.errors import EudaError, ModelError, SimulationError
from euda.symmetry.discovery import symmetries
from euda.symmetry.element import Element
from euda.symmetry.examined import ElementVerdict, Examined
from euda.symmetry.fitting import Fit, fit, with_fits
from euda.symmetry.group import Group
from euda.symmetry.judging import causes as reasons
from euda.symmetry.judging.coverage import Touched
from euda.symmetry.judging.reach import differences
from euda.symmetry.judging.subject import Subject, environment_of
from euda.symmetry.judging.suspects import CONVEX_COLLISIONS, mended
from euda.symmetry.judging.transformation import ElementImage
from euda.symmetry.judging.trials import Trials
from euda.symmetry.judging.twin import Comparison, Observe, Trial, Twin
from euda.symmetry.judging.verdict import EXACT, TOLERANCE, Rows, Verdict, judge_dynamics, judge_part, worst
from euda.symmetry.observations import underivable
from euda.symmetry.repair.acting import acting_states
from euda.symmetry.repair.blame import Blame, blame, instead, mended_but, worst_trials
from euda.symmetry.repair.defects import DIRECTIONS, FRAME, averaged, defects
from euda.symmetry.repair.mend import generated
from euda.tasks.base_env import LimbEnv, State
from euda.tasks.task_env import ModelEnv

Progress = Callable[[str], None]
_OWN = 1e-6  # difference of rewards that is no rounding
_PASSED_ON = 10.0  # by how much a reward may magnify what differs in the robot, up to `TOLERANCE`
_SOME = 0.05  # share of states with a wrong reward from which on it is not that of the image


def examine(
    subject: Subject, *, states: int = 60, seed: int = 0, group: Group | None = None, layout: Layout | None = None,
    observe: Observe | None = None, progress: Progress = lambda what: None,
) -> Examined:  # fmt: skip
    """Find the symmetries of a robot and try each in the simulator.

    `subject`, and `layout` with `observe`, are what `certify` takes. `group` is tried instead of the one that is found
    in the model. `progress` is told in a few words what begins.

    >>> import euda
    >>> from euda.symmetry.examination import examine
    >>> examined = examine("walker_run", states=6)
    >>> [(one.element.name, one.verdict) for one in examined.verdicts]
    [('identity', 'exact'), ('mirror left-right', 'exact')]
    """
    if states < 1:
        raise EudaError(f"an examination needs at least one state, not {states}")
    if isinstance(subject, mujoco.MjModel | Path) or str(subject).endswith(".xml"):
        subject = ModelEnv(subject, allow_loops=True)  # loops leave limb features redundant, which is no matter here
    env = environment_of(subject)
    before = env.get_state()
    try:
        progress("looking for symmetries in the model")
        refuse_randomised(env)
        group = symmetries(env.model) if group is None else group
        return _Examination(Twin(env, layout, observe), group, states, seed, progress).result()
    finally:
        env.data.warning.number[:] = 0
        env.set_state(before)


class _Examination:
    def __init__(self, twin: Twin, group: Group, states: int, seed: int, progress: Progress) -> None:
        self.twin, self.env, self.group, self.progress = twin, twin.env, group, progress
        self.defects = defects(self.env.model, group)
        sees = "direction" in twin.layout or self.env.morphology.base != "free"
        self.tried = [ElementImage(element, sees) for element in group.elements[1:]]
        progress("visiting states")
        self.trials = Trials(twin, states, np.random.default_rng(seed), self._acting_states)

    def _acting_states(
        self, env: LimbEnv, samples: Sequence[State], touched: Sequence[Touched], rng: np.random.Generator
    ) -> list[State]:
        self.progress("making states in which contacts, limits and differences act")
        return acting_states(env, self.group, self.defects, samples, touched, rng)

    def result(self) -> Examined:
        """Try every element, and say why one is not exact."""
        verdicts, results = [_identity(self.group.elements[0], self.env)], list[Comparison]()
        for place, tried in enumerate(self.tried):
            self.progress(f"trying {tried.element.name} ({place + 1} of {len(self.tried)})")
            tried, fits = self._fitted(tried)
            self.tried[place] = tried
            results.append(self.twin.compare(self._of(tried)))
            verdicts.append(self._verdict(place, results[-1], fits))
        shares: dict[int, Blame] = {}
        if self.defects and any(not one.is_exact for one in verdicts):
            self.progress("asking how much each difference explains")
            shares = blame(self.twin, self.group, self.defects, self.tried, self.trials.trials, results)
        for place, result in enumerate(results):
            if not verdicts[place + 1].is_exact:
                self.progress(f"looking for causes ({self.tried[place].element.name})")
                lines = self._causes(place, result)
                verdicts[place + 1] = dataclasses.replace(verdicts[place + 1], causes=lines)
        return Examined(
            name=getattr(self.env, "task", "model"), model=self.env.model, group=self.group, verdicts=tuple(verdicts),
            defects=self.defects, blame=shares, states=self.trials.visited, sought=self.trials.sought,
            coverage=self.trials.coverage,
        )  # fmt: skip

    def _of(self, tried: ElementImage) -> list[Trial]:
        return self.trials.of(lambda state: (tried,))

    def _fitted(self, tried: ElementImage) -> tuple[ElementImage, tuple[Fit, ...]]:
        """The element with what had to be fitted; a field that does not follow it is left as it is."""
        if not underivable(tried.element, self.twin.layout):
            return tried, ()
        pairs = []
        for state in self.trials.samples:
            self.twin.place(state)
            original = self.twin.observe()
            self.twin.transform(state, tried)
            pairs.append((original, self.twin.observe()))
        originals, images = (np.array(side) for side in zip(*pairs, strict=True))
        fits = fit(tried.element, self.twin.layout, originals, images)
        kept = {name: one if one.follows else _untouched(one) for name, one in fits.items()}
        return dataclasses.replace(tried, element=with_fits(tried.element, kept)), tuple(fits.values())

    def _verdict(self, place: int, result: Comparison, fits: tuple[Fit, ...]) -> ElementVerdict:
        tried = self.tried[place]
        agrees = result.dynamics <= EXACT
        # A row that agrees to rounding may have moved so little that its error is no share of anything.
        energy = np.where(agrees, np.minimum(result.energy, result.dynamics), result.energy)
        iterative = self.trials.iterative(result)
        kept = ~iterative if (~iterative).any() else np.ones_like(iterative)
        rows = Rows((~result.is_sought)[kept], iterative[kept], np.ones(kept.sum(), bool))
        errors = result.dynamics[kept], result.energy[kept]
        dynamics = judge_dynamics(*errors, rows, self._is_directed(place)).verdict
        if dynamics == "exact" and not agrees.all():
            dynamics = "exact but for iterative collisions" if self._exact_without_them(tried, result) else "near"
        fields = self._fields(result, kept, rows)
        fields |= {one.field: "broken" for one in fits if not one.follows}
        visited = energy[~result.is_sought & kept]
        visited = visited if visited.size else energy
        return ElementVerdict(
            element=tried.element,
            verdict=worst([dynamics, *(fields.values() if dynamics.startswith("exact") else ())]),
            median=float(np.median(visited)), p90=float(np.quantile(visited, 0.9)), max=float(energy[kept].max()),
            collisions=float(energy[iterative].max(initial=0.0)), fields=fields,
            reward=self._reward(result, kept, rows), fits=fits, causes=(),
        )  # fmt: skip

    def _is_directed(self, place: int) -> bool:
        """Whether the world has a direction that the element does not keep: then errors add up over an episode."""
        return any(place + 1 in defect.origin.elements for defect in self.defects if defect.what in DIRECTIONS)

    def _exact_without_them(self, tried: ElementImage, result: Comparison) -> bool:
        """Whether the wrong rows agree once no collision is found by iteration."""
        wrong = sorted(set(result.trial[result.dynamics > EXACT].tolist()))
        trials = [dataclasses.replace(self.trials.trials[i], transformations=(tried,)) for i in wrong]
        with mended(CONVEX_COLLISIONS, self.env.robot), contextlib.suppress(SimulationError):
            return bool((self.twin.compare(trials).dynamics <= EXACT).all())
        return False

    def _fields(self, result: Comparison, kept: np.ndarray, rows: Rows) -> dict[str, Verdict]:
        layout = self.twin.layout
        distance, fields = differences(layout, result.found, result.expected), dict[str, Verdict]()
        for field in layout:
            where = layout.slices[field.name]
            scale = max(reasons.NOISE, float(np.abs(result.original[:, where]).max()))
            fields[field.name] = judge_part(distance[kept][:, where].max(axis=1) / scale, rows).verdict
        return fields

    def _reward(self, result: Comparison, kept: np.ndarray, rows: Rows) -> Verdict | None:
        """Relative to the largest reward seen. Wrong is what differs between a state and its very image.

        A load beside the trunk moves the centre of mass, so a reward for its speed is a little off there too.
        """
        if not self.env.has_reward:
            return None
        largest = np.abs(result.rewards).max() or 1.0
        gaps = result.reward[kept] / largest
        own = np.minimum(gaps, result.own_reward[kept] / largest)
        wrong = (own > _OWN + np.minimum(_PASSED_ON * result.dynamics[kept], TOLERANCE))[rows.is_visited]
        if wrong.mean() > _SOME:
            return "broken"
        return "near" if gaps.max(initial=0.0) > EXACT else "exact"

    def _causes(self, place: int, result: Comparison) -> tuple[str, ...]:
        """What beside the defects keeps an element from being exact: the cone, the solver, collisions."""
        model, tried = self.env.model, self.tried[place]
        mine = [defect for defect in self.defects if place + 1 in defect.origin.elements]
        if any(defect.what == FRAME for defect in mine):
            return ()  # nothing mends it, so what else there is cannot be told
        if not mine:
            return reasons.of_dynamics(self.twin, self._of(tried), result, self.trials.touched).lines
        means = averaged(model, self.group, generated(self.group, range(self.group.order)))
        some = worst_trials(self.trials.trials, result, tried)
        touched = [self.trials.touched[self._place(trial)] for trial in some]
        with contextlib.suppress(ModelError, SimulationError):
            mended_model = mended_but(model, means, self.defects, None)
            with instead(self.twin, mended_model, some) as (twin, trials):
                left = twin.compare(trials)
                if left.dynamics.max() > EXACT:
                    return reasons.of_dynamics(twin, trials, left, touched).lines
        return ()

    def _place(self, trial: Trial) -> int:
        return next(i for i, own in enumerate(self.trials.trials) if own.state is trial.state)


def _identity(element: Element, env: LimbEnv) -> ElementVerdict:
    fields: dict[str, Verdict] = dict.fromkeys((field.name for field in env.layout), "exact")
    return ElementVerdict(element, "exact", 0.0, 0.0, 0.0, 0.0, fields, "exact" if env.has_reward else None, (), ())


def _untouched(one: Fit) -> Fit:
    """In place of a fit that does not hold: the field as it is, so that the others can be compared."""
    return dataclasses.replace(one, matrix=np.eye(len(one.offset)), offset=np.zeros(len(one.offset)), residual=0.0)


_PHYSICAL = ("body_mass", "body_inertia", "body_ipos", "jnt_range", "jnt_stiffness", "dof_damping", "dof_armature",
             "actuator_gainprm", "actuator_biasprm", "actuator_gear", "tendon_stiffness", "wrap_prm")  # fmt: skip


def refuse_randomised(env: LimbEnv) -> None:
    """A model that an episode draws anew has a group of its own in every episode."""
    seen = []
    for seed in (0, 1):
        env.reset(seed=seed)
        seen.append({name: getattr(env.model, name).copy() for name in _PHYSICAL})
    changed = [name for name in _PHYSICAL if not np.array_equal(seen[0][name], seen[1][name])]
    if changed:
        raise EudaError(
            f"this model changes from episode to episode ({', '.join(changed)}), and so do its symmetries: give one of"
            " its models as a file"
        )
