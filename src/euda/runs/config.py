"""The configuration of a run: everything its numbers depend on, as frozen dataclasses and as JSON.

Two runs with the same settings on the same machine are the same run; `identity` says so in sixteen
characters. What does not change a number (core, display, trackers) is no part of it.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import re
from collections.abc import Mapping
from typing import Annotated, Any, Literal

from euda import lookup, schema
from euda.agents.input_settings import FRAMES, WORLD, InputsConfig
from euda.agents.network_settings import NETWORKS, NetworkConfig
from euda.agents.settings import AGENTS, LearningConfig
from euda.body.features import find_features
from euda.body.robot import RANDOM
from euda.errors import EudaError
from euda.replay.settings import AUGMENTATIONS, GROUPS, NEAR, USE, YAW, AugmentationConfig, ReplayConfig
from euda.runs import bases, methods, plugins, settings
from euda.runs.bases import Base
from euda.runs.config_entries import from_format_1
from euda.runs.robot_config import RobotConfig
from euda.runs.settings import EvaluationConfig
from euda.schema import Count, Seed, Settings, Share, Since, Steps, TopLevel
from euda.tasks import table
from euda.tasks.targets import ANYWHERE, TARGETS

FORMAT = 2
"""Of the run folder: raised when a newer euda can no longer go on with an older run."""
STEPS = 2_000_000
"""Environment steps of a robot of one's own, unless others are asked for."""
_NOT_IDENTITY = ("steps", "base", "trust_symmetry", "imports", "elements", "yaws")
"""What two descriptions of the same run may differ in."""


@dataclasses.dataclass(frozen=True)
class RunConfig(Settings):
    """Everything the numbers of a run depend on."""

    task: str
    features: str = "limb"
    agent: str = "ddpg"
    learning: LearningConfig = None  # pyright: ignore[reportAssignmentType] - the defaults of the agent's row
    network: str = "mlp"
    architecture: NetworkConfig = None  # pyright: ignore[reportAssignmentType] - the defaults of the network's row
    frame: str = WORLD
    inputs: InputsConfig = dataclasses.field(default_factory=InputsConfig)
    augmentation: AugmentationConfig = dataclasses.field(default_factory=AugmentationConfig)
    replay: ReplayConfig = dataclasses.field(default_factory=ReplayConfig)
    evaluation: EvaluationConfig = dataclasses.field(default_factory=EvaluationConfig)
    cone: Annotated[Literal["default", "elliptic"], TopLevel()] = "default"
    """default (as dm_control, or as your file) or elliptic (exactly symmetric); by default the task's own."""
    direction: Annotated[tuple[float, ...] | str | None, TopLevel()] = None
    """Of a task that travels: two or three numbers, or random: another one in every episode; by default +x."""
    targets: Annotated[str | None, TopLevel()] = None
    """Of a task that draws a target: half (only where y is at least 0); by default anywhere."""
    payload: Annotated[Share, TopLevel(), Since(0.0)] = 0.0
    """Of a task whose robot is free: a load on its left, as a share of its mass, so that its mirror is near."""
    seed: Seed = 0
    steps: Count = STEPS
    episode_steps: Annotated[Count, TopLevel()] = table.EPISODE_STEPS
    """Steps of an episode; by default 1000, or what an environment is registered with."""
    action_repeat: Annotated[Count, TopLevel()] = 1
    """Environment steps for which an action is held; an episode that ends within them counts them all."""
    overlap: Annotated[bool, TopLevel(), Since(False)] = False
    """Step the simulation while the updates compute, acting by the policy before them; uses a second core if free."""
    checkpoint_every: Annotated[Count, TopLevel()] = 10_000
    """Environment steps between two checkpoints."""
    group: Annotated[str, TopLevel(), Since(YAW)] = YAW
    """What augmented transitions may look like: yaw (turned), mirror (mirrored, limbs exchanged) or all (both)."""
    near: Annotated[str, TopLevel(), Since(USE)] = USE
    """Where a symmetry is near: use, exact (elements that are), clean (transitions that are), measured (fewer)."""
    average_actor: Annotated[bool, TopLevel(), Since(False)] = False
    """Act by the mean of the actor's answers over the robot's mirrors: exactly invariant, at twice the cost or more."""
    elements: tuple[str, ...] = ()
    """Those of the robot's finite group that are in use; a short certificate chooses them when a run begins."""
    yaws: Steps = 0
    """Equally spaced yaws in use, 0 for all; a short certificate chooses it when a run of exact ones begins."""
    trust_symmetry: Annotated[bool, TopLevel()] = False
    """Train even where a short certificate finds the symmetry broken; changes no number."""
    robot: RobotConfig | None = None
    """None for tasks of the table."""
    base: str = bases.PAPER
    """The name under which the settings were found; they themselves are above."""
    imports: tuple[str, ...] = ()
    """Modules from outside that the rows above come from; imported only if the user names them again."""

    def __post_init__(self) -> None:
        if self.robot is None:
            table.find(self.task)
        find_features(self.features)
        lookup.find("frame", FRAMES, self.frame)
        lookup.find("group", GROUPS, self.group)
        lookup.find("near", NEAR, self.near)
        self._complete("learning", lookup.find("agent", AGENTS, self.agent).settings)
        self._complete("architecture", lookup.find("network", NETWORKS, self.network).settings)
        super().__post_init__()
        self._settle_direction()
        self._settle_targets()
        self._check_simulation()
        self._check_network()
        self._check_repeat()

    def _complete(self, name: str, kind: type[Settings]) -> None:
        """Settings that were not given are the defaults of their row, and no others will do."""
        if getattr(self, name) is None:
            object.__setattr__(self, name, kind())
        if type(found := getattr(self, name)) is not kind:
            raise EudaError(f"{name} must be {kind.__name__}, not {type(found).__name__}")

    def _settle_direction(self) -> None:
        """Write a direction in one way only: a unit vector, and none if it is the task's own."""
        if self.direction is None:
            return
        if self.robot is not None:
            raise EudaError(
                f"{self.task!r} is a custom robot: its direction is a setting of the robot, like its reward"
            )
        vector, is_drawn = table.travel(self.task, self.direction)
        plain = RANDOM if is_drawn or vector is None else tuple(vector.tolist())
        object.__setattr__(self, "direction", None if plain == table.FORWARD else plain)

    def _settle_targets(self) -> None:
        """Write `anywhere` as none, and refuse a part of the world for targets that are not drawn."""
        if self.targets is None:
            return
        lookup.find("targets", TARGETS, self.targets)
        if self.robot is not None or self.target is None:
            raise EudaError(f"targets {self.targets!r} needs a task that draws a target, and {self.task!r} does not")
        object.__setattr__(self, "targets", None if self.targets == ANYWHERE else self.targets)

    def _check_simulation(self) -> None:
        """Refuse what needs a simulation of ours."""
        if self.robot is not None and self.payload:
            raise EudaError(f"payload {self.payload:g} is for tasks: put the load of {self.task!r} into its model")
        if self.marks_transitions and self.robot is not None and self.robot.env is not None:
            raise EudaError(
                f"near {self.near!r} tries every transition in the simulator, and what {self.task!r} does in a step is"
                " its own: use near 'exact'"
            )

    def _check_network(self) -> None:
        """Refuse a network that is not defined for these observations."""
        row, features = NETWORKS[self.network], self.features
        if row.features and features not in row.features:
            valid = " or ".join(map(repr, row.features))
            raise EudaError(f"{self.network} reads its points out of features {valid}, not {features!r}")
        if row.needs_target and self.target is None:
            reachable = ", ".join(name for name, task in table.TASKS.items() if task.target is not None)
            raise EudaError(f"{self.network} is defined for tasks with a target ({reachable}), not for {self.task!r}")

    def _check_repeat(self) -> None:
        """Refuse to hold actions for a number of steps that does not fit into what is counted in steps."""
        counted = {"episode_steps": self.episode_steps, "evaluation.every": self.evaluation.every,
                   "checkpoint_every": self.checkpoint_every, "steps": self.steps}  # fmt: skip
        for name, steps in counted.items():
            if steps % self.action_repeat:
                raise EudaError(f"action_repeat {self.action_repeat} must divide {name}, which is {steps}")

    @property
    def target(self) -> str | None:
        """The limb that should reach a target, in tasks of the table."""
        target = None if self.robot is not None else table.find(self.task).target
        return None if target is None else target.limb

    @property
    def method(self) -> str:
        """The name of its method, or one made of its parts."""
        base = bases.BASES.get(self.base, Base())
        parts = (self.features, self.augmentation.name, self.frame, self.agent, self.network)
        for name, row in methods.METHODS.items():
            if parts == (row.features, row.augment, row.frame, row.agent or base.agent, row.network or base.network):
                return name
        shown = [] if self.network == base.network else [self.network]
        changed = [self.augmentation.name] if self.augmentation.row.make is not None else []
        changed += [] if self.frame == WORLD else [self.frame]
        return "-".join([*shown, self.agent, self.features, *changed])

    @property
    def turns_batches(self) -> bool:
        """Whether its augmentation draws yaws."""
        return self.augmentation.row.uses_symmetry and GROUPS[self.group].turns

    @property
    def uses_yaw(self) -> bool:
        """Whether the run learns something wrong if the robot does not behave alike in all directions."""
        return self.turns_batches or NETWORKS[self.network].uses_symmetry or FRAMES[self.frame].uses_symmetry

    @property
    def uses_elements(self) -> bool:
        """Whether it learns something wrong if the elements of the robot's finite group are no symmetries."""
        return self.average_actor or (self.augmentation.row.uses_symmetry and GROUPS[self.group].relabels)

    @property
    def marks_transitions(self) -> bool:
        """Whether each transition is tried in the simulator before it may be augmented."""
        return NEAR[self.near].chance is not None

    @property
    def uses_symmetry(self) -> bool:
        """Whether it rests on any symmetry."""
        return self.uses_yaw or self.uses_elements

    @property
    def ends_early(self) -> bool:
        """Whether episodes may be shorter than their number of steps."""
        return self.robot is not None and (self.robot.env is not None or self.robot.fall_below is not None)

    @property
    def label(self) -> str:
        """Base, method, what tells networks apart, and share, readable: `rotate 0.25`, `segnn axial`."""
        augmentation = self.augmentation
        has_share = augmentation.row.make is not None and not augmentation.chooses_share
        base = bases.BASES.get(self.base, Base(label=self.base)).label
        share = f"{augmentation.share:.4g}" if has_share else ""
        group, average = "" if self.group == YAW else self.group, "averaged" if self.average_actor else ""
        near, load = "" if self.near == USE else self.near, f"payload {self.payload:.4g}" if self.payload else ""
        words = (base, self.method, self.architecture.label, group, near, average, load, share)
        return " ".join(word for word in words if word)

    @property
    def folder_name(self) -> str:
        """A readable folder below the runs' folder: `reacher_hard/rotate-0.25-seed0`."""
        task = re.sub(r"[^\w.+-]+", "-", self.task.removesuffix(".xml")).strip(".-") or "robot"
        return f"{task}/{self.label.replace(' ', '-')}-seed{self.seed}"

    @property
    def identity(self) -> str:
        """Sixteen characters that two configurations share exactly if they are the same but for their steps."""
        entries = {"format": FORMAT, **schema.established(self)}
        content = {key: value for key, value in entries.items() if key not in _NOT_IDENTITY and value not in (None, ())}
        if self.robot is not None:  # it may move and be called otherwise; what it holds counts
            content["robot"].pop("path", None)
            content.pop("task")
        return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:16]

    def to_json(self) -> dict[str, Any]:
        """Plain JSON values, with the format's version."""
        values = {"format": FORMAT, **dataclasses.asdict(self)}
        return {key: value for key, value in values.items() if value is not None and value != ()}

    def as_in(self, stored: RunConfig) -> RunConfig:
        """The same, with what may differ from a stored one taken from there: the steps, names, and where a file is."""
        robot, task = self.robot, self.task
        if robot is not None and stored.robot is not None and None not in (robot.path, stored.robot.path):
            robot, task = dataclasses.replace(robot, path=stored.robot.path), stored.task
        names = {name: getattr(stored, name) for name in _NOT_IDENTITY}
        return dataclasses.replace(self, task=task, robot=robot, **names)

    @staticmethod
    def from_json(value: Mapping[str, Any]) -> RunConfig:
        """The configuration that `to_json` wrote, now or in format 1; refuses other formats and unknown entries."""
        if value.get("format") not in (1, FORMAT):
            raise EudaError(f"it was written in format {value.get('format')!r}, this euda reads formats 1 and {FORMAT}")
        entries = {key: entry for key, entry in value.items() if key != "format"}
        try:
            return _stored(entries if value["format"] == FORMAT else from_format_1(entries))
        except (KeyError, TypeError) as error:
            raise EudaError(f"it does not fit this euda: {error}") from None


def _stored(entries: dict[str, Any]) -> RunConfig:
    """The configuration of entries of a JSON file; what an older euda did not write yet has its default."""
    plugins.require(schema.checked("imports", tuple[str, ...], entries.get("imports", ())))
    kinds: dict[str, Any] = {
        "learning": lookup.find("agent", AGENTS, str(entries.get("agent"))).settings,
        "architecture": lookup.find("network", NETWORKS, str(entries.get("network"))).settings,
        **settings.COMMON,
        "robot": RobotConfig,
    }
    nested = {key: schema.make(kind, entries[key], key) for key, kind in kinds.items() if key in entries}
    augmentation = dict(entries["augmentation"])
    row = lookup.find("augmentation", AUGMENTATIONS, str(augmentation.get("name")))
    augmentation["settings"] = schema.make(row.settings, augmentation.get("settings", {}), "augmentation.settings")
    nested["augmentation"] = schema.make(AugmentationConfig, augmentation, "augmentation")
    return schema.make(RunConfig, entries | nested, "the configuration")
