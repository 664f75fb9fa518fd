"""The configuration of a run: everything its numbers depend on, as frozen dataclasses and as JSON.

Two runs with the same settings on the same machine are the same run; `identity` says so in sixteen
characters. What does not change a number (core, display, trackers) is no part of it.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
from collections.abc import Iterator, Mapping
from typing import Any

from euda.body import tasks
from euda.body.observation import check_features
from euda.config import (
    AGENTS,
    AugmentationConfig,
    DDPGConfig,
    LearningConfig,
    MLPConfig,
    ReplayConfig,
    SACConfig,
    SEGNNConfig,
)
from euda.errors import EudaError, unknown
from euda.study import methods
from euda.study.methods import Method
from euda.study.robots import RobotConfig, changed_parts

FORMAT = 1
"""Of the run folder: raised when a newer euda can no longer go on with an older run."""
STEPS = 2_000_000
"""Environment steps of a robot of one's own, unless others are asked for."""


def _check_seed(name: str, seed: int) -> None:
    if not 0 <= seed < 2**32:
        raise EudaError(f"{name} must be a whole number from 0 to 2**32 - 1, not {seed!r}")


@dataclasses.dataclass(frozen=True)
class EvaluationConfig:
    """How the policy is judged during training."""

    every: int = 10_000
    """Environment steps between two evaluations; the first is before any step."""
    episodes: int = 10
    """Episodes of one evaluation, all stepped together, without exploration noise."""
    seed: int = 0
    """Their starts depend on this and the step only, so they are the same for every run."""

    def __post_init__(self) -> None:
        for name in ("every", "episodes"):
            if getattr(self, name) < 1:
                raise EudaError(f"evaluation {name} must be at least 1, not {getattr(self, name)!r}")
        _check_seed("evaluation seed", self.seed)


@dataclasses.dataclass(frozen=True)
class RunConfig:
    """Everything the numbers of a run depend on."""

    task: str
    features: str = "limb"
    agent: str = "ddpg"
    network: str = "mlp"
    augmentation: AugmentationConfig = dataclasses.field(default_factory=AugmentationConfig)
    learning: LearningConfig = dataclasses.field(default_factory=DDPGConfig)
    mlp: MLPConfig = dataclasses.field(default_factory=MLPConfig)
    replay: ReplayConfig = dataclasses.field(default_factory=ReplayConfig)
    evaluation: EvaluationConfig = dataclasses.field(default_factory=EvaluationConfig)
    cone: str = "default"
    seed: int = 0
    steps: int = 2_000_000
    episode_steps: int = tasks.EPISODE_STEPS
    checkpoint_every: int = 10_000
    segnn: SEGNNConfig | None = None
    """None where the network is a perceptron."""
    robot: RobotConfig | None = None
    """None for tasks of the table."""

    def __post_init__(self) -> None:
        if self.robot is None:
            tasks.find(self.task)
        if self.cone not in tasks.CONES:
            raise unknown("cone", self.cone, tasks.CONES)
        check_features(self.features)
        if self.agent not in AGENTS:
            raise unknown("agent", self.agent, AGENTS)
        if self.network not in methods.NETWORKS:
            raise unknown("network", self.network, methods.NETWORKS)
        if self.network != "mlp":
            object.__setattr__(self, "segnn", self.segnn or SEGNNConfig())
            _check_graph(self.task, self.features, self.network, self.segnn or SEGNNConfig(), self.robot is not None)
        elif self.segnn is not None:
            raise EudaError(f"the settings of segnn do not belong to network {self.network!r}")
        for name in ("steps", "checkpoint_every", "episode_steps"):
            if getattr(self, name) < 1:
                raise EudaError(f"{name} must be at least 1, not {getattr(self, name)!r}")
        _check_seed("seed", self.seed)

    @property
    def method(self) -> str:
        """The name of its method."""
        return methods.name_of(Method(self.agent, self.features, self.augmentation.name, self.network))

    @property
    def ends_early(self) -> bool:
        """Whether episodes may be shorter than their number of steps."""
        return self.robot is not None and (self.robot.env is not None or self.robot.fall_below is not None)

    @property
    def label(self) -> str:
        """Method, parity if it is not the paper's, and share, readable: `rotate 0.25`, `segnn axial`."""
        share = f" {self.augmentation.share:.4g}" if self.augmentation.name not in ("none", "rotate-auto") else ""
        parity = f" {self.segnn.parity}" if self.segnn is not None and self.segnn.parity != "paper" else ""
        return f"{self.method}{parity}{share}"

    @property
    def folder_name(self) -> str:
        """A readable folder below the runs' folder: `reacher_hard/rotate-0.25-seed0`."""
        return f"{self.task.removesuffix('.xml').replace('/', '-')}/{self.label.replace(' ', '-')}-seed{self.seed}"

    @property
    def identity(self) -> str:
        """Sixteen characters that two configurations share exactly if they are the same but for their steps.

        Only what differs from the defaults counts, so a setting that a later euda adds changes no identity.
        """
        content = {key: value for key, value in _changed(self).items() if key != "steps"}
        if self.robot is not None:
            content["robot"].pop("path", None)  # it may move; what it holds counts
        return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:16]

    def to_json(self) -> dict[str, Any]:
        """Plain JSON values, with the format's version."""
        values = {"format": FORMAT, **dataclasses.asdict(self)}
        return {key: value for key, value in values.items() if value is not None or key not in ("segnn", "robot")}

    def as_in(self, stored: RunConfig) -> RunConfig:
        """The same, with what may differ from a stored one taken from there: the steps, and where a file is."""
        robot = self.robot
        if robot is not None and stored.robot is not None and None not in (robot.path, stored.robot.path):
            robot = dataclasses.replace(robot, path=stored.robot.path)
        return dataclasses.replace(self, steps=stored.steps, robot=robot)

    @staticmethod
    def from_json(value: Mapping[str, Any]) -> RunConfig:
        """The configuration that `to_json` wrote; refuses other formats and unknown entries."""
        if value.get("format") != FORMAT:
            raise EudaError(f"it was written in format {value.get('format')!r}, this euda reads format {FORMAT}")
        fields = {key: entry for key, entry in value.items() if key != "format"}
        parts: dict[str, Any] = {
            "augmentation": AugmentationConfig,
            "learning": AGENTS.get(str(fields.get("agent")), AGENTS["ddpg"]).settings,
            "mlp": MLPConfig,
            "replay": ReplayConfig,
            "evaluation": EvaluationConfig,
            **({"segnn": SEGNNConfig} if "segnn" in fields else {}),
            **({"robot": RobotConfig} if "robot" in fields else {}),
        }
        try:
            nested = {key: kind(**fields[key]) for key, kind in parts.items()}
            return RunConfig(**(fields | nested))
        except (KeyError, TypeError) as error:
            raise EudaError(f"it does not fit this euda: {error}") from None


def _changed(config: Any) -> dict[str, Any]:
    """The entries of a configuration that are not the defaults, as plain JSON values."""
    entries: dict[str, Any] = {}
    for field in dataclasses.fields(config):
        value = getattr(config, field.name)
        default = field.default_factory() if callable(field.default_factory) else field.default
        if value != default:
            entries[field.name] = _changed(value) if dataclasses.is_dataclass(value) else value
    return entries


def resolve(task: str, method: Method, share: float | None, *, steps: int | None, seed: int, cone: str | None,
            augmentation: AugmentationConfig, ddpg: DDPGConfig, sac: SACConfig, segnn: SEGNNConfig | None = None,
            robot: RobotConfig | None = None, **parts: Any) -> RunConfig:  # fmt: skip
    """The configuration that a task, a method and overrides amount to, written in one way only.

    A share of zero is no augmentation, and parameters that an augmentation does not use are the defaults,
    so that runs which cannot differ have the same identity.
    """
    default_cone, default_steps = "default", STEPS
    if robot is None:
        row = tasks.find(task)
        default_cone, default_steps = row.default_cone, row.steps
    share = methods.share_of(method, share)
    name = method.augment if share else "none"
    used = {
        "gaussian": ("same_noise", "stddev"),
        "scale": ("same_noise", "low", "high"),
        "rotate-auto": ("bonus", "window"),
    }.get(name, ())
    kept = {key: getattr(augmentation, key) for key in used}
    kind = AGENTS[method.agent].settings  # agents with the same settings share their flags
    learning: LearningConfig = next((given for given in (ddpg, sac) if type(given) is kind), kind())
    steerable = None if method.network == "mlp" else segnn or SEGNNConfig()
    if steerable is not None:
        learning = _with_rate_of(steerable, learning)
        parts["mlp"] = MLPConfig()
    return RunConfig(
        task=task,
        features=method.features,
        agent=method.agent,
        network=method.network,
        augmentation=AugmentationConfig(name=name, share=share, **kept),
        learning=learning,
        segnn=steerable,
        cone=default_cone if cone is None else cone,
        seed=seed,
        steps=default_steps if steps is None else steps,
        robot=robot,
        **parts,
    )


def _check_graph(task: str, features: str, network: str, segnn: SEGNNConfig, is_own: bool) -> None:
    """Refuse a network whose graph is not defined."""
    if features != "limb":
        raise EudaError(f"{network} reads its points out of features 'limb', not {features!r}")
    reachable = [name for name, row in tasks.TASKS.items() if row.target is not None]
    if network == "segnn" and (is_own or task not in reachable):
        raise EudaError(
            f"the graph of segnn is defined for tasks with a target ({', '.join(reachable)}), not for {task!r}:"
            " use segnn-single"
        )
    if network == "segnn-single" and segnn.parity != "paper":
        raise EudaError(f"segnn-single has no plane of hinges, so its parity is 'paper', not {segnn.parity!r}")


def _with_rate_of(segnn: SEGNNConfig, learning: LearningConfig) -> LearningConfig:
    """The agent's learning with the learning rate of the SEGNN, which is a parameter of its own."""
    if learning.learning_rate != type(learning)().learning_rate:
        raise EudaError("with segnn the learning rate is --segnn.learning-rate, not the agent's")
    return dataclasses.replace(learning, learning_rate=segnn.learning_rate)


def differences(old: Mapping[str, Any], new: Mapping[str, Any], prefix: str = "") -> Iterator[str]:
    """Where two configurations in JSON differ, readable: `seed: 0 there, 1 asked for`."""
    for key in [*old, *(key for key in new if key not in old)]:
        before, after = old.get(key), new.get(key)
        if f"{prefix}{key}" == "robot.model" and before is not None and after is not None:
            if parts := changed_parts(before, after):
                yield f"the robot itself has changed since the run began: its {', '.join(parts)}"
        elif isinstance(before, Mapping) and isinstance(after, Mapping):
            yield from differences(before, after, f"{prefix}{key}.")
        elif before != after:
            yield f"{prefix}{key}: {before!r} there, {after!r} asked for"
