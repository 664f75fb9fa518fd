"""Settings of the replay and of augmentations, and the table of augmentations. Nothing here loads JAX."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Annotated, Any, NamedTuple

from annotated_types import Ge, Interval

from euda import lookup
from euda.errors import EudaError
from euda.lookup import Maker
from euda.schema import Count, NotNegative, Positive, Settings, Share, Since, Steps


@dataclasses.dataclass(frozen=True)
class ReplayConfig(Settings):
    """Which transitions are kept and how a batch is made of them."""

    capacity: Count = 1_000_000
    """Observations kept; the oldest are forgotten first."""
    batch_size: Count = 256
    """Transitions in one batch."""
    n_step: Count = 3
    """Rewards summed before bootstrapping; fewer where the episode ends earlier."""
    discount: Share = 0.99
    """The factor gamma per decision, which is an environment step unless actions are repeated."""
    seed_steps: Steps = 4000
    """Environment steps stored before the first update."""
    updates_per_step: Positive = 1.0
    """Batches learnt from per environment step; 0.25: one every four steps."""
    anew_from: Annotated[Steps, Since(0)] = 0
    """Step at which networks begin anew and learn from the replay again, as at each 2.5 times that step; 0: never."""
    recency: Annotated[float, Interval(ge=1, le=100), Since(1.0)] = 1.0
    """Preference for new transitions: ages are drawn as (all there are) u^recency; 3: half from the newest eighth."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.capacity < self.batch_size:
            raise EudaError(f"capacity must be at least batch_size ({self.batch_size}), not {self.capacity}")


@dataclasses.dataclass(frozen=True)
class GaussianConfig(Settings):
    """Noise that is added to every entry."""

    stddev: NotNegative = 1.0
    """Standard deviation of every entry of z."""
    same_noise: bool = True
    """Whether an observation and its next one get the same z (as the authors did)."""


@dataclasses.dataclass(frozen=True)
class ScaleConfig(Settings):
    """A factor for every entry, drawn uniformly."""

    low: float = 0.5
    """Lowest factor."""
    high: float = 1.0
    """Highest factor."""
    same_noise: bool = True
    """Whether an observation and its next one get the same factors (as the authors did)."""

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.low > self.high:
            raise EudaError(f"low must be at most high ({self.high!r}), not {self.low!r}")


@dataclasses.dataclass(frozen=True)
class ShareBanditConfig(Settings):
    """How a share is chosen for each episode."""

    bonus: NotNegative = 0.25
    """Weight of the upper-confidence bonus, in units of the spread of recent returns."""
    window: Annotated[int, Ge(5)] = 25
    """Recent episodes that the choice rests on; at least one for each of the five shares."""


class AugmentationRow(NamedTuple):
    """An augmentation: what makes the change, its settings, and the share of a batch that it changes by default."""

    make: Maker | None
    """(settings, layout) → the change, see `augmentation`; None: nothing is changed."""
    settings: type[Settings] = Settings
    share: float | None = 1.0
    """None: chosen for each episode as the agent learns; the settings are then those of the choice."""
    uses_symmetry: bool = False
    """Whether it is right only if the robot has the symmetry."""


class GroupRow(NamedTuple):
    """Which elements of a robot's symmetry group an augmentation that uses symmetry draws from."""

    turns: bool
    """The augmentation's own change, which is a yaw."""
    relabels: bool
    """Before it an element of the finite group: a mirror, limbs that change places."""


YAW, FINITE = "yaw", "mirror"
GROUPS: dict[str, GroupRow] = {
    YAW: GroupRow(turns=True, relabels=False),
    FINITE: GroupRow(turns=False, relabels=True),
    "all": GroupRow(turns=True, relabels=True),
}
"""By name."""


CLEAN, SAFE = 1e-3, 0.03
"""Errors of a step, as shares of its change: up to the first nothing that matters happened, up to the second
mirrored data were as good as new ones in a small regression (docs/symmetry.md)."""


def confirmed(error: float) -> float:
    """Every transition whose image the simulator confirms, and no other."""
    return float(error <= CLEAN)


def bounded(error: float) -> float:
    """As many that what is learnt is wrong by `SAFE` at most: chance times error never exceeds it."""
    return min(1.0, SAFE / max(error, SAFE))


class NearRow(NamedTuple):
    """What is done with a symmetry that is near, not exact."""

    only_exact: bool = False
    """Elements and yaws that are not exact are left out."""
    chance: Callable[[float], float] | None = None
    """Each transition is tried in the simulator: its error → the chance that it may be augmented. None: all may."""


USE = "use"
NEAR: dict[str, NearRow] = {
    USE: NearRow(),
    "exact": NearRow(only_exact=True),
    "clean": NearRow(chance=confirmed),
    "measured": NearRow(chance=bounded),
}
"""By name. A new way is a new row."""
NOTHING = "none"
AUGMENTATIONS: dict[str, AugmentationRow] = {
    NOTHING: AugmentationRow(None, share=0.0),
    # The best share of rotated transitions differs from task to task; half is the middle.
    "rotate": AugmentationRow("euda.replay.augmentation:rotation", share=0.5, uses_symmetry=True),
    "gaussian": AugmentationRow("euda.replay.augmentation:gaussian", GaussianConfig),
    "scale": AugmentationRow("euda.replay.augmentation:scaling", ScaleConfig),
    "rotate-auto": AugmentationRow(
        "euda.replay.augmentation:rotation", ShareBanditConfig, share=None, uses_symmetry=True
    ),
}
"""By name. A new augmentation is a new row."""


@dataclasses.dataclass(frozen=True)
class AugmentationConfig(Settings):
    """How a sampled batch is changed before the agent learns from it."""

    name: str = NOTHING
    """A row of AUGMENTATIONS."""
    share: Share = 1.0
    """Share of the batch that is changed (the paper's rho_aug); exactly round(share * batch size) transitions."""
    settings: Any = None
    """Of the row's class; by default its defaults."""

    def __post_init__(self) -> None:
        super().__post_init__()
        row = self.row
        if self.settings is None:
            object.__setattr__(self, "settings", row.settings())
        if type(self.settings) is not row.settings:
            wanted = row.settings.__name__
            raise EudaError(f"augmentation {self.name!r} has {wanted}, not {type(self.settings).__name__}")
        if row.make is None:
            object.__setattr__(self, "share", 0.0)

    @property
    def row(self) -> AugmentationRow:
        """Of the table."""
        return lookup.find("augmentation", AUGMENTATIONS, self.name)

    @property
    def chooses_share(self) -> bool:
        """Whether the share is chosen for each episode, instead of being this one."""
        return self.row.share is None
