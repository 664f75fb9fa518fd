"""Task, method, base and overrides → the configuration of a run, the same for terminal, study files and Python."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, cast

from euda import lookup, schema
from euda.agents.input_settings import InputsConfig
from euda.agents.network_settings import NetworkConfig
from euda.agents.settings import LearningConfig
from euda.errors import EudaError, unknown
from euda.replay.settings import AUGMENTATIONS, USE, YAW, AugmentationConfig
from euda.runs import bases, methods, plugins, settings
from euda.runs.config import RunConfig
from euda.runs.robot_config import RobotConfig
from euda.schema import Settings
from euda.tasks import table

PARTS = {
    "agent": "Learning algorithm, instead of the base's.",
    "network": "Actor and critic, instead of the base's.",
    "features": "What is observed, instead of the method's.",
    "augment": "What is done to batches, instead of the method's.",
    "frame": "Frame in which the networks see observations, instead of the method's.",
}
"""What a method and a base decide, unless it is overridden, with help texts."""


def overridable() -> tuple[str, ...]:
    """What the overrides of a run may name."""
    return (*PARTS, *schema.top_level(RunConfig), *settings.groups())


def resolve_parts(method: str, base: str = bases.DEFAULT, overrides: Mapping[str, Any] | None = None) -> dict[str, str]:
    """The agent, network, features, augmentation and frame that a method, a base and overrides amount to."""
    given, ground, row = overrides or {}, bases.find(base), methods.find(method)
    for key in given:
        if key not in overridable():
            raise unknown("override", key, overridable())
    part = {"agent": row.agent or ground.agent, "network": row.network or ground.network,
            "features": row.features, "augment": row.augment, "frame": row.frame}  # fmt: skip
    return part | {key: schema.checked(key, str, given[key]) for key in PARTS if key in given}


def resolve(task: str, method: str = "rotate", base: str = bases.DEFAULT, *, share: float | None = None,
            steps: int | None = None, seed: int = 0, overrides: Mapping[str, Any] | None = None,
            shared: Mapping[str, Any] | None = None, robot: RobotConfig | None = None,
            episode_steps: int = table.EPISODE_STEPS) -> RunConfig:  # fmt: skip
    """The configuration that a task, a method, a base and overrides amount to, written in one way only.

    A share of zero is no augmentation, and groups of settings that nothing in the run has are left out, so that runs
    which cannot differ have the same identity. They are refused among `overrides`, which are meant for this run, and
    not among `shared`, which are meant for other runs too. `episode_steps` is what a robot of one's own has unless
    overridden.
    """
    given, ground = merged(shared or {}, overrides or {}), bases.find(base)
    part = resolve_parts(method, base, given)
    groups = {name: schema.make(kind, given.get(name, {}), name, ground.of(kind))
              for name, kind in settings.groups().items() if name in given or name in settings.COMMON}  # fmt: skip
    learning, architecture = (
        _of_row(lookup.find(what, settings.TABLES[what], part[what]), groups, ground) for what in ("agent", "network")
    )
    if architecture.rate is not None:
        learning = _with_rate(architecture, learning, given)
    asked = schema.checked("share", schema.Share | None, share)
    share = methods.share_of(method, part["augment"], asked, ground.symmetric_share)
    name = part["augment"] if share else methods.NOTHING
    augmentation = AugmentationConfig(name, share, _of_row(AUGMENTATIONS[name], groups, ground))
    given |= _of_symmetry(given, overrides or {}, augmentation, part)
    used = {settings.name_of(type(one)) for one in (learning, architecture, augmentation.settings)}
    _refuse_unused(overrides or {}, used, part)
    rest: dict[str, Any] = {key: groups[key] for key in settings.COMMON} | {"episode_steps": episode_steps}
    if robot is None:
        rest |= {"cone": table.find(task).cone, "steps": table.find(task).steps}
    if steps is not None:
        rest["steps"] = steps
    elif ground.steps is not None:
        rest["steps"] = min(ground.steps, rest.get("steps", ground.steps))
    rows = part | {"augment": name, "normaliser": cast("InputsConfig", groups["inputs"]).normaliser}
    rows |= {"head": learning.head, "noise": learning.noise}
    rows |= {"task": task} if robot is None else {"reward": str(robot.reward)}
    return RunConfig(
        task=task,
        features=part["features"],
        agent=part["agent"],
        learning=learning,
        network=part["network"],
        architecture=architecture,
        frame=part["frame"],
        augmentation=augmentation,
        seed=seed,
        robot=robot,
        base=base,
        imports=plugins.modules_of(rows),
        **rest | {key: given[key] for key in schema.top_level(RunConfig) if key in given},
    )


def merged(first: Mapping[str, Any], second: Mapping[str, Any]) -> dict[str, Any]:
    """Nested tables, the second one's entries over the first one's."""
    result = dict(first)
    for key, value in second.items():
        old = result.get(key)
        result[key] = merged(old, value) if isinstance(old, Mapping) and isinstance(value, Mapping) else value
    return result


def _refuse_unused(overrides: Mapping[str, Any], used: set[str], part: Mapping[str, str]) -> None:
    """Refuse settings of an agent, a network or an augmentation that this run does not have."""
    for group in settings.groups().keys() - settings.COMMON.keys() - used:
        for entry in overrides.get(group, {}):
            parts = ", ".join(f"{what} {name!r}" for what, name in part.items())
            raise EudaError(f"{group}.{entry} is not used: this run has {parts}")


_OF_SYMMETRY = {"group": YAW, "near": USE}
"""What says how an augmentation uses symmetry, and its value in runs that use none."""


def _of_symmetry(
    given: Mapping[str, Any], overrides: Mapping[str, Any], augmentation: AugmentationConfig, part: Mapping[str, str]
) -> dict[str, str]:
    """Nothing if the augmentation uses symmetry; otherwise the values of runs which do not."""
    if augmentation.row.uses_symmetry:
        return {}
    for name, usual in _OF_SYMMETRY.items():
        # not those of a share of zero, or meant for other runs too
        if not AUGMENTATIONS[part["augment"]].uses_symmetry and overrides.get(name, usual) != usual:
            drawing = ", ".join(name for name, row in AUGMENTATIONS.items() if row.uses_symmetry)
            raise EudaError(
                f"{name} {overrides[name]!r} changes nothing: this run has augmentation {part['augment']!r}, which"
                f" draws from no group; add --augment with one that does ({drawing})"
            )
    return {name: usual for name, usual in _OF_SYMMETRY.items() if name in given}


def _of_row(row: Any, groups: Mapping[str, Settings], ground: bases.Base) -> Any:
    """The settings of a row: those that were given, or the base's."""
    return next((found for found in groups.values() if type(found) is row.settings), None) or ground.of(row.settings)


def _with_rate(architecture: NetworkConfig, learning: LearningConfig, given: Mapping[str, Any]) -> LearningConfig:
    """The agent's learning with the learning rate of the network, which is a parameter of its own."""
    agent, network = settings.name_of(type(learning)), settings.name_of(type(architecture))
    if "learning_rate" in given.get(agent, {}):
        raise EudaError(f"with {network} the learning rate is --{network}.learning-rate, not the agent's")
    return dataclasses.replace(learning, learning_rate=architecture.rate)
