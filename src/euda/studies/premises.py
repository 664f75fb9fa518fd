"""Do the robots of a study have the symmetries that its runs learn from? Asked once, before any worker starts."""

from __future__ import annotations

import functools
from collections.abc import Callable

from euda.errors import EudaError
from euda.runs import run_folder, symmetry_choice
from euda.runs.config import RunConfig
from euda.studies.study_folder import Study

Say = Callable[[str], None]
INSIST = "insist with trust_symmetry = true in the overrides of the study or the method"


def check(study: Study, say: Say) -> None:
    """Refuse a study in which a run that has not begun would learn from a broken symmetry; say what is near, once."""
    said: list[str] = []
    for (curve, *_), config in _to_begin(study).items():
        testing = f"testing the symmetry of {config.task} in the simulator ({config.features} features)"
        try:
            symmetry_choice.settled(config, said.append, functools.partial(say, testing), INSIST)
        except EudaError as error:
            raise EudaError(f"[methods.{curve}]: {error}") from None
    for sentence in dict.fromkeys(said):
        say(sentence)


def _to_begin(study: Study) -> dict[tuple[str, ...], RunConfig]:
    """One run for each of the robots, features and cones that a method begins with."""
    found: dict[tuple[str, ...], RunConfig] = {}
    for planned in study.plan.runs:
        config = planned.config
        if config.uses_symmetry and not run_folder.is_run(study.folder_of(planned)):
            seen = (config.task, config.features, config.cone, str(config.direction), str(config.payload))
            found.setdefault((planned.curve, *seen, config.group, config.near), config)
    return found
