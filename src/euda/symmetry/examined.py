"""What the simulator says about each element of a robot's group, as values to print and to store."""

from __future__ import annotations

import dataclasses
from typing import Any

import mujoco
import numpy as np

from euda.symmetry.element import Element
from euda.symmetry.fitting import Fit
from euda.symmetry.group import Group
from euda.symmetry.images import Images
from euda.symmetry.judging.coverage import Coverage
from euda.symmetry.judging.verdict import Verdict, worst
from euda.symmetry.repair.blame import Blame
from euda.symmetry.repair.defects import Defect


@dataclasses.dataclass(frozen=True)
class ElementVerdict:
    """What the simulator says about one element."""

    element: Element
    verdict: Verdict
    """Of dynamics and fields."""
    median: float
    """Error of a step in the kinetic-energy norm, as a share of the step's own change of velocity: about the share
    of mass in the wrong place. Over states that the robot comes to by itself."""
    p90: float
    max: float
    """Of all states, those made on purpose included, but without collisions that are found by iteration."""
    collisions: float
    """The largest error where a collision that is found by iteration acts."""
    fields: dict[str, Verdict]
    reward: Verdict | None
    """None where there is no reward."""
    fits: tuple[Fit, ...]
    """Fields whose answer could not be derived."""
    causes: tuple[str, ...]
    """Why it is not exact, beside the defects."""

    @property
    def is_exact(self) -> bool:
        """Exact, iterative collisions apart."""
        return self.verdict.startswith("exact")

    @property
    def is_of_the_task(self) -> bool:
        """Whether the reward keeps it, too."""
        return self.reward != "broken"

    def to_json(self, model: mujoco.MjModel) -> dict[str, Any]:
        """Plain JSON values; images of parts by name."""
        element = self.element
        return {
            "name": element.name, "identity": element.is_identity, "mirror": element.is_mirror,
            "trivial": element.is_trivial and not element.is_identity, "verdict": self.verdict,
            "error": {"median": self.median, "p90": self.p90, "max": self.max}, "collisions": self.collisions,
            "fields": self.fields, "reward": self.reward, "task_symmetry": self.is_of_the_task,
            "world": element.world.tolist(), "robot": element.robot_map.tolist(), "shift": element.shift.tolist(),
            "bodies": _named(model, mujoco.mjtObj.mjOBJ_BODY, element.bodies.image),
            "joints": _signed(model, mujoco.mjtObj.mjOBJ_JOINT, element.joints),
            "actions": _signed(model, mujoco.mjtObj.mjOBJ_ACTUATOR, element.actuators),
            "sensors": _named(model, mujoco.mjtObj.mjOBJ_SENSOR, element.sensors.image),
            "fitted": {one.field: one.words for one in self.fits}, "causes": list(self.causes),
        }  # fmt: skip


@dataclasses.dataclass(frozen=True)
class Examined:
    """The symmetries of a robot, found and tried."""

    name: str
    model: mujoco.MjModel = dataclasses.field(repr=False)
    group: Group = dataclasses.field(repr=False)
    verdicts: tuple[ElementVerdict, ...]
    """One per element of the group, identity first."""
    defects: tuple[Defect, ...]
    blame: dict[int, Blame]
    """How much of the error each defect explains, by its place; of the largest only."""
    states: int
    sought: int
    coverage: Coverage

    @property
    def worst(self) -> Verdict:
        """The worst verdict of all elements."""
        return worst([one.verdict for one in self.verdicts])

    def to_json(self) -> dict[str, Any]:
        """Plain JSON values."""
        listed = []
        for place, defect in enumerate(self.defects):
            explained = self.blame.get(place)
            listed.append(defect.to_json() | {"sentence": defect.sentence, "explains": explained and explained.share})
        return {
            "name": self.name, "order": self.group.order, "elements": [v.to_json(self.model) for v in self.verdicts],
            "defects": listed, "nearest": self.group.nearest, "states": self.states, "sought": self.sought,
            "coverage": self.coverage.to_json(),
        }  # fmt: skip


def _named(model: mujoco.MjModel, kind: mujoco.mjtObj, images: np.ndarray) -> dict[str, str | None]:
    names = [mujoco.mj_id2name(model, kind, i) or str(i) for i in range(len(images))]
    return {name: names[int(image)] if image >= 0 else None for name, image in zip(names, images, strict=True)}


def _signed(model: mujoco.MjModel, kind: mujoco.mjtObj, images: Images) -> dict[str, dict[str, Any]]:
    named = _named(model, kind, images.image)
    offsets = images.offset[:, 0].tolist()
    return {
        name: {"image": image, "sign": int(sign), "offset": offset}
        for (name, image), sign, offset in zip(named.items(), images.signs, offsets, strict=True)
    }
