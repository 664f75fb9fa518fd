"""What a user says about a robot of their own: the flags of `euda train`, which study files and Python say too."""

from __future__ import annotations

import dataclasses
import re
from typing import Annotated, Any, Literal

from euda.body.robot import RANDOM
from euda.errors import EudaError
from euda.schema import RowOf, Settings
from euda.tasks import table

_ENDINGS = (".xml", ".mjcf", ".urdf", ".mjb")


def is_model(subject: str) -> bool:
    """Whether a word on the command line is the path of a model rather than the name of a task."""
    return subject.endswith(_ENDINGS) or "/" in subject


def is_environment(subject: str) -> bool:
    """Whether a name is one of Gymnasium's, which end in a version."""
    return re.search(r"-v\d+$", subject) is not None


@dataclasses.dataclass(frozen=True)
class AimFlags(Settings):
    """What the command line says of a robot of one's own wherever it is observed: what it wants and what is seen."""

    direction: tuple[float | str, ...] = ()
    """Direction of travel of a custom robot or of a run task: two or three numbers, or random in every episode."""
    target: tuple[float | str, ...] = ()
    """Custom robot: what to reach, a site, geom or body by name, or three numbers."""
    limb: str | None = None
    """Custom robot: the site, geom or body that should reach the target; by default the last limb."""
    sensors: tuple[str, ...] = ()
    """Custom robot: sensors to observe beside the limbs."""
    allow_loops: bool = False
    """Custom robot: accept closed kinematic loops."""

    def without_subject(self, question: str) -> EudaError:
        """Nothing was named to train or to look at; a list may have taken the name that was meant for it."""
        lists = {"--direction": self.direction, "--target": self.target, "--sensors": self.sensors}
        for flag, words in lists.items():
            if words and (is_model(str(words[-1])) or words[-1] in table.TASKS):
                return EudaError(f"{flag} takes every word up to the next flag: write {str(words[-1])!r} before it")
        return EudaError(f"{question} Name a task (see euda tasks), an MJCF file, or an environment with --env")

    @property
    def given(self) -> list[str]:
        """The flags that are not at their defaults, as a user types them."""
        fields = [field for field in dataclasses.fields(self) if getattr(self, field.name) != field.default]
        return [f"--{field.name.replace('_', '-')}" for field in fields]

    def direction_of_task(self, task: str) -> tuple[float, ...] | str | None:
        """The direction, which is all that a task of the table can be told; the others are refused."""
        if wrong := ", ".join(flag for flag in self.given if flag != "--direction"):
            raise EudaError(f"{wrong} is only for custom robots (MJCF files), not for task {task!r}")
        return direction_of(self.direction)

    @property
    def aim(self) -> dict[str, Any]:
        """The arguments that say what a robot wants and how it is observed."""
        if self.direction and self.target:
            raise EudaError("a robot has a direction (--direction) or a target (--target), not both")
        return {"direction": direction_of(self.direction), "target": target_of(self.target), "limb": self.limb,
                "sensors": self.sensors, "allow_loops": self.allow_loops}  # fmt: skip


@dataclasses.dataclass(frozen=True)
class RobotFlags(AimFlags):
    """What the command line says of a robot of one's own that is trained."""

    reward: Annotated[str | None, RowOf("reward")] = None
    """Custom robot: your module:function, or one of."""
    control_timestep: float | None = None
    """Custom robot: seconds between two actions, rounded to whole steps of the simulation; by default 0.02."""
    reset_noise: float | None = None
    """Custom robot: how far episodes begin from the first keyframe, a share of each joint's range; default 0.1."""
    heading: Literal["auto", "model", "random"] = "auto"
    """Custom robot: model (episodes begin as in the file), random, or auto: random without direction and target."""
    fall_below: float | None = None
    """Custom robot: end an episode when the root is lower than this (m); by default episodes have full length."""


def direction_of(words: tuple[float | str, ...]) -> tuple[float, ...] | str | None:
    """A direction as typed: in the plane, in space, or drawn in every episode."""
    if words == (RANDOM,):
        return RANDOM
    try:
        numbers = tuple(float(word) for word in words)
    except ValueError:
        typed = " ".join(map(str, words))
        raise EudaError(f"a direction is two or three numbers, or {RANDOM}, not {typed!r}") from None
    return (*numbers, 0.0) if len(numbers) == 2 else numbers or None


def target_of(words: tuple[float | str, ...]) -> str | tuple[float, ...] | None:
    """A target as typed: a name or three numbers."""
    if len(words) <= 1:
        return str(words[0]) if words else None
    try:
        numbers = tuple(float(word) for word in words)
    except ValueError:
        numbers = ()
    if len(numbers) != 3:
        raise EudaError(f"a target is one name or three numbers (x, y, z), not {' '.join(map(str, words))!r}")
    return numbers
