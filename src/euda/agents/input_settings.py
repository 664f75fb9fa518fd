"""Settings of what the networks see: the frame, then the normaliser, and their tables. Nothing here loads JAX."""

from __future__ import annotations

import dataclasses
from typing import Annotated, NamedTuple

from euda import lookup
from euda.lookup import Maker
from euda.schema import Positive, RowOf, Settings


class FrameRow(NamedTuple):
    """A frame in which the networks see observations."""

    make: Maker | None
    """(layout, target) → `frames.Frame`; `target` as in `NetworkRow.make`. None: observations stay as they are."""
    uses_symmetry: bool = False
    """Whether it is right only if the robot has the symmetry."""


WORLD = "world"
FRAMES: dict[str, FrameRow] = {
    WORLD: FrameRow(None),
    "own": FrameRow("euda.agents.frames:own_frame", uses_symmetry=True),
    "root": FrameRow("euda.agents.frames:root_frame", uses_symmetry=True),
}
"""By name. A new frame is a new row."""
NORMALISERS: dict[str, Maker | None] = {
    "none": None,
    "symmetric": "euda.agents.normaliser:symmetric",
    "full": "euda.agents.normaliser:full",
}
"""By name: (layout, clip, is_turned, maps) → `normaliser.Normaliser`. A new normaliser is a new row."""


@dataclasses.dataclass(frozen=True)
class InputsConfig(Settings):
    """What the networks see of an observation, after it was turned into their frame."""

    normaliser: Annotated[str, RowOf("normaliser")] = "none"
    """Scaling by running statistics: ones that keep every symmetry (symmetric), or each entry its own (full)."""
    clip: Positive = 10.0
    """Normalised entries are clipped to plus or minus this, except x and y of world vectors."""

    def __post_init__(self) -> None:
        super().__post_init__()
        lookup.find("normaliser", NORMALISERS, self.normaliser)
