"""Runs → short names that tell them apart: of the robot, and of the curve with whatever setting differs.

Runs get one curve only if they differ in nothing but the seed (and how far they went); otherwise the curve's name says
in which settings they differ, so no run hides another.
"""

from __future__ import annotations

import dataclasses
import hashlib
from collections import defaultdict
from collections.abc import Hashable, Iterable, Sequence
from pathlib import Path, PurePath
from typing import Any

from euda.body.naming import model_name
from euda.runs.config import RunConfig
from euda.runs.robot_flags import is_model

_UNNAMED = ("format", "task", "base", "imports", "seed", "steps", "robot.path")
"""What never makes a curve of its own: a panel has the task, a curve has seeds, a base is settings, a run may go on."""
_LONGEST, _MOST = 24, 3  # letters of a name or value, settings that a label has room for


@dataclasses.dataclass(frozen=True)
class Source:
    """A run that a table is made of, and what it is called there."""

    config: RunConfig
    folder: Path
    name: str
    """Of the folder, below the runs' folder."""
    curve: str
    task: str
    """The task, or the name of a custom robot."""

    @property
    def title(self) -> str:
        """Readable: `reacher_hard, rotate 25 %, seed 0`."""
        return f"{self.task}, {self.curve}, seed {self.config.seed}"


def source(config: RunConfig, folder: Path, name: str, curve: str | None = None) -> Source:
    """A run under its plain names; `curve` is what a study calls its method."""
    return Source(config, folder, name, method_name(config) if curve is None else curve, robot_name(config))


def method_name(config: RunConfig) -> str:
    """`rotate 0.25` as studies write it: `rotate 25 %`."""
    share = config.augmentation.share
    name = config.label.removesuffix(f" {share:.4g}")
    return config.label if name == config.label else f"{name} {100 * share:.4g} %"


def robot_name(config: RunConfig) -> str:
    """The task, or the robot's name; where an earlier version named a run after its file, what its model says."""
    robot = config.robot
    if robot is None or robot.path is None or not is_model(config.task) or not Path(robot.path).is_file():
        return _short(config.task)
    return _short(model_name(robot.path))


def told_apart(sources: Iterable[Source]) -> list[Source]:
    """The same runs, with names that differ wherever the runs do."""
    return _by_folder(_by_settings(_robots_by_folder(list(sources))))


def _robots_by_folder(sources: list[Source]) -> list[Source]:
    """Several robots of one name (files are often called scene.xml) get the folder of the file in theirs."""
    models: dict[str, dict[Hashable, str]] = defaultdict(dict)
    for one in sources:
        models[one.task].setdefault(_model(one.config), _place(one.config))
    names: dict[tuple[str, Hashable], str] = {}
    for task, places in models.items():
        for number, (model, place) in enumerate(places.items(), start=1):
            is_clear = place and list(places.values()).count(place) == 1
            named = place if is_clear else f"{place} {number}".strip()
            names[task, model] = task if len(places) == 1 else f"{task} ({named})"
    return [dataclasses.replace(one, task=names[one.task, _model(one.config)]) for one in sources]


def _model(config: RunConfig) -> Hashable:
    """Equal for runs of the same robot."""
    return None if config.robot is None else tuple(sorted(config.robot.model.items()))


def _place(config: RunConfig) -> str:
    """The folder that the robot's file was in."""
    return "" if config.robot is None or config.robot.path is None else PurePath(config.robot.path).parent.name


def _by_settings(sources: list[Source]) -> list[Source]:
    """Runs of one curve and task whose settings differ get those settings in their curve's name."""
    settings = [_flat(one.config.to_json()) for one in sources]
    keys = dict.fromkeys(key for entries in settings for key in entries)
    settings = [{key: entries.get(key) for key in keys} for entries in settings]  # what a run has not is none
    values: dict[tuple[str, str, str], set[Hashable]] = defaultdict(set)
    for one, entries in zip(sources, settings, strict=True):
        for key, value in entries.items():
            values[one.curve, one.task, key].add(value)
    named = {(curve, key) for (curve, _, key), found in values.items() if len(found) > 1}
    result = []
    for one, entries in zip(sources, settings, strict=True):
        different = [(key, value) for key, value in entries.items() if (one.curve, key) in named]
        result.append(dataclasses.replace(one, curve=f"{one.curve} ({_listed(different)})" if different else one.curve))
    return result


def _listed(settings: Sequence[tuple[str, Hashable]]) -> str:
    """A few settings as they are; of many the first ones, and a few letters that stand for all others."""
    words = [f"{key} {_shown(value)}" for key, value in settings]
    if len(words) <= _MOST:
        return ", ".join(words)
    others = hashlib.sha256(repr(settings[_MOST:]).encode()).hexdigest()[:4]
    return f"{', '.join(words[:_MOST])} and {len(words) - _MOST} more: {others}"


def _flat(config: dict[str, Any], prefix: str = "") -> dict[str, Hashable]:
    """Every setting by its dotted name."""
    flat: dict[str, Hashable] = {}
    for key, value in config.items():
        name = prefix + key
        if name in _UNNAMED or name == "robot.model":  # the robot's name tells models apart
            continue
        flat |= _flat(value, f"{name}.") if isinstance(value, dict) else {name: _frozen(value)}
    return flat


def _frozen(value: Any) -> Hashable:
    return tuple(map(_frozen, value)) if isinstance(value, list | tuple) else value


def _shown(value: Hashable) -> str:
    """A setting in a few characters."""
    if isinstance(value, tuple):
        text = " ".join(map(_shown, value))
    else:
        text = f"{value:.4g}" if isinstance(value, float) else "none" if value is None else str(value)
    return _short(text)


def _short(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 9]}…{text[-8:]}"


def _by_folder(sources: list[Source]) -> list[Source]:
    """Runs that do not differ at all, not even in their seed, get the part of their path that does."""
    seeds: dict[tuple[str, str, int], list[Source]] = defaultdict(list)
    for one in sources:
        seeds[one.curve, one.task, one.config.seed].append(one)
    parts: dict[str, int] = {}
    for (curve, _, _), same in seeds.items():
        if len(same) > 1:
            parts[curve] = max(parts.get(curve, 0), _first_difference([_path(one) for one in same]))
    return [
        dataclasses.replace(one, curve=f"{one.curve} ({'/'.join(_path(one)[: parts[one.curve] + 1])})")
        if one.curve in parts
        else one
        for one in sources
    ]


def _path(one: Source) -> tuple[str, ...]:
    return PurePath(one.name).parts


def _first_difference(paths: Sequence[tuple[str, ...]]) -> int:
    """The first place at which all of the paths differ from each other, or the last place of the longest."""
    longest = max(map(len, paths))
    return next((i for i in range(longest) if len({path[: i + 1] for path in paths}) == len(paths)), longest)
