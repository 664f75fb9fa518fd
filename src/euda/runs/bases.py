"""Bases: how an agent learns, under one name: agent, network, and the settings of everything; any base, any method.

A base is only a short way to say these; a run is identified by what they resolve to. A new base is a new row. The
defaults of the settings classes are the paper's and never change: better values are what bases are for.
"""

from __future__ import annotations

import dataclasses
from typing import TypeVar

from euda import lookup
from euda.agents.input_settings import InputsConfig
from euda.agents.network_settings import MLPConfig, SEGNNConfig
from euda.agents.settings import DDPGConfig, SACConfig, TD3Config
from euda.replay.settings import ReplayConfig
from euda.schema import Settings

S = TypeVar("S", bound=Settings)


@dataclasses.dataclass(frozen=True)
class Base:
    """One row."""

    agent: str = "ddpg"
    """Of methods that name none."""
    network: str = "mlp"
    """Of methods that name none."""
    method: str = "rotate"
    """Of runs that name none, where it fits (`usual_method`)."""
    settings: tuple[Settings, ...] = ()
    """Of any class, where they are not that class's defaults."""
    symmetric_share: float | None = None
    """Share of a batch that an augmentation by a symmetry changes unless asked otherwise; None: the augmentation's."""
    steps: int | None = None
    """Environment steps of a run unless asked otherwise, or fewer where the task has fewer; None: the task's."""
    label: str = ""
    """What names of runs and curves begin with."""

    def of(self, kind: type[S]) -> S:
        """The settings of a class on this base; of a class that it was derived from, if the base has only those."""
        for ancestor in kind.__mro__:
            for given in self.settings:
                if type(given) is ancestor:
                    entries = {field.name: getattr(given, field.name) for field in dataclasses.fields(given)}
                    return kind(**entries)
        return kind()


PAPER = "paper"
"""The base of the settings classes' own defaults, and of every stored run that names none."""
SWIFT = "swift"
"""Learns in minutes on one core. `studies/base-ingredients.toml` removes each choice once."""
FRUGAL = "frugal"
"""Learns four times from each step of the robot, and a tenth of its steps are random ones that throw it off its course;
about four times the time of `swift`."""
_SWIFT_SAC = SACConfig(
    learning_rate=1e-3,
    noise="held-at-first",
    exploration_steps=4000,
    critics=1,
    temperature=0.002,
    temperature_rate=3e-4,
    entropy_per_action=-0.5,
    log_stddev_start=-1.5,
)
"""One critic: the lower of two costs as much again, and returns that never end early need no pessimism. The temperature
begins where its bonus is small beside rewards of 0.02 per step, and the policy with a spread that explores; from the
usual 0.01 a fifth of a short run goes by in which actions are random. The first, random actions are held for some
steps, which moves an arm; noise that is new at every step shakes it."""
_SWIFT_REPLAY = ReplayConfig(batch_size=128, recency=3.0)
"""Half of a batch is of the newest eighth of all steps: what the robot does now counts more than what it did before it
could do anything. Better on planar robots, undecided on others (results/README.md)."""
_SWIFT_DDPG = DDPGConfig(
    learning_rate=1e-3, noise="held-at-first", stddev_start=0.5, stddev_end=0.1, stddev_steps=50_000
)
_SWIFT_TD3 = TD3Config(learning_rate=1e-3, noise="held-at-first", critics=2, stddev_start=0.2, stddev_end=0.2)
_SWIFT_OTHERS: tuple[Settings, ...] = (
    # An update is nearly all of the time of a step. Half the width is a third of its cost, which is better spent on
    # twice as many updates.
    MLPConfig(hidden_size=128, layer_norm=True, last_gain=0.1),
    # The paper's 5e-5 is for a million steps: with it four of five seeds learn nothing of the reacher in 30 000.
    SEGNNConfig(learning_rate=5e-4),
    InputsConfig(normaliser="symmetric"),
)
_SWIFT = Base(
    agent="sac",
    # better than `rotate` on the reacher, and without a share to choose; see docs/choosing.md
    method="canonical",
    settings=(_SWIFT_SAC, _SWIFT_DDPG, _SWIFT_TD3, _SWIFT_REPLAY, *_SWIFT_OTHERS),
    symmetric_share=1.0,
    steps=200_000,
    label="swift",
)
BASES: dict[str, Base] = {
    PAPER: Base(),
    SWIFT: _SWIFT,
    # With four updates for each step one critic overestimates what it saw often (cheetah: 457 after 60 000 steps, with
    # the mean of two 627), and the lower of two finds rare rewards late (hopper: 11, with the mean 176). One seed each,
    # results/screening. Without bursts fewer robots learn to get up: six of fifty cheetahs end on the back instead of
    # none, and two quadrupeds of five lie for most of the run (results/README.md says what bursts cost).
    FRUGAL: dataclasses.replace(
        _SWIFT,
        settings=(
            dataclasses.replace(_SWIFT_SAC, critics=2, pessimism=0.0, noise="bursts"),
            dataclasses.replace(_SWIFT_DDPG, noise="bursts"),
            dataclasses.replace(_SWIFT_TD3, noise="bursts"),
            dataclasses.replace(_SWIFT_REPLAY, updates_per_step=4.0),
            *_SWIFT_OTHERS,
        ),
        steps=100_000,
        label="frugal",
    ),
}
"""The bases by name. `paper` is the paper's table of hyperparameters to the letter."""
DEFAULT = SWIFT
"""The base of runs and studies that name none."""


def find(name: str) -> Base:
    """The row of that name."""
    return lookup.find("base", BASES, name)
