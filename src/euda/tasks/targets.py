"""Where a task may put its target: anywhere that its reset draws it, or only in a part of the world.

What was learnt in one part and is asked for in another shows what a policy makes of symmetry: `euda evaluate --yaws 2`
asks a policy that learnt with `half` for the same targets in the other half.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from euda import lookup
from euda.body.robot import Robot
from euda.body.turn import world_target
from euda.errors import EudaError

Place = Callable[[np.ndarray], np.ndarray]
"""Where a reset drew the target in the world [3] → where it is put."""


def half(place: np.ndarray) -> np.ndarray:
    """On the left of the x axis: a target drawn on its right goes to its mirror image, so distances stay as drawn."""
    return place * np.sign([1.0, place[1] or 1.0, 1.0])


ANYWHERE = "anywhere"
TARGETS: dict[str, Place | None] = {ANYWHERE: None, "half": half}
"""By name. A new restriction is a new row."""


def place_of(name: str, task: str, robot: Robot) -> Place | None:
    """The row of that name; refused for robots whose target, if they have one, does not belong to the world."""
    found = lookup.find("targets", TARGETS, name)
    if found is not None and world_target(robot) is None:
        raise EudaError(f"targets {name!r} needs a task that draws a target, and {task!r} does not")
    return found


def put_target(robot: Robot, place: Place | None) -> None:
    """Move the target where it may be; the simulation knows after its next kinematics."""
    target = world_target(robot)
    if place is not None and target is not None:
        target.move_to(place(target.position()))
