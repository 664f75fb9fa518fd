"""Study file → runs: tasks × methods × shares × seeds × steps with overrides, from a short TOML.

    title = "Half a batch turned"
    tasks = ["reacher_hard", "hopper3d_hop"]
    seeds = [0, 1, 2]
    steps = 100000                 # by default what the task's published protocol has
    axes = ["steps", "hours"]      # of the figures; by default steps alone
    reach = 500                    # the return of "steps to reach"; by default half of the best

    [methods.ddpg]

    [methods.rotate]
    shares = [0.25, 0.5]           # or one for each task: shares = {reacher_hard = 0.25, hopper3d_hop = 0.5}
    seeds = [0, 1]                 # instead of the study's; tasks and steps alike

    [methods."rotate, small"]      # any name; the method is named beside it
    method = "rotate"
    overrides.mlp.hidden_size = 64

    [overrides]                    # of every run: the entries that `euda train --help` lists
    evaluation.every = 5000

    [robots."hexapod.xml"]         # a robot of one's own, if tasks names its MJCF file or its Gymnasium environment
    reward = "run"
    direction = [1, 0]

A run is the content of its resolved configuration, so studies share the runs they have in common.
"""

from __future__ import annotations

import dataclasses
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from euda.body import tasks
from euda.config import AugmentationConfig, DDPGConfig, SACConfig, SEGNNConfig
from euda.errors import EudaError, unknown
from euda.study import methods, storage
from euda.study.robots import is_environment, is_model
from euda.study.settings import RunConfig, resolve
from euda.study.study_robots import StudyRobot, study_robots

AXES = ("steps", "hours")
_STUDY = ("title", "tasks", "seeds", "steps", "axes", "reach", "methods", "overrides", "robots")
_METHOD = ("method", "share", "shares", "tasks", "seeds", "steps", "overrides")
_CHOICES: dict[str, Any] = {
    "augmentation": AugmentationConfig,
    "ddpg": DDPGConfig,
    "sac": SACConfig,
    "segnn": SEGNNConfig,
}
_SECTIONS: dict[str, Any] = {  # the other parts of a configuration, with their defaults
    field.name: field.default_factory
    for field in dataclasses.fields(RunConfig)
    if isinstance(field.default_factory, type) and field.name not in ("augmentation", "learning")
} | _CHOICES
_PARTS = ("agent", "features", "augment")
_NUMBERS = {"episode_steps": int, "checkpoint_every": int, "cone": str}
_CHOSEN = ("name", "share")  # entries of an augmentation that the method and its shares decide


@dataclasses.dataclass(frozen=True)
class Planned:
    """One run of a study and the curve it belongs to."""

    curve: str
    config: RunConfig

    @property
    def folder_name(self) -> str:
        """Its folder below the runs' folder, the same in every study: `reacher_hard/rotate-0.25-seed0-1a2b3c4d`."""
        return f"{self.config.folder_name}-{self.config.identity[:8]}"

    @property
    def name(self) -> str:
        """Readable: `reacher_hard, rotate 25 %, seed 0`."""
        return f"{self.config.task}, {self.curve}, seed {self.config.seed}"


@dataclasses.dataclass(frozen=True)
class Plan:
    """What a study file says, resolved."""

    name: str
    title: str
    runs: tuple[Planned, ...]
    """All first seeds come first, so that every curve begins early."""
    axes: tuple[str, ...] = ("steps",)
    reach: float | None = None

    @property
    def tasks(self) -> tuple[str, ...]:
        """In order of appearance."""
        return tuple(dict.fromkeys(planned.config.task for planned in self.runs))

    @property
    def curves(self) -> tuple[str, ...]:
        """In order of appearance."""
        return tuple(dict.fromkeys(planned.curve for planned in self.runs))


def load(path: Path) -> Plan:
    """The study in a TOML file; everything unknown or contradictory is refused in one sentence."""
    with storage.readable_errors(path, "read"):
        content = path.read_bytes()
    try:
        return parse(path.stem, tomllib.loads(content.decode()), path.parent)
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise EudaError(f"{str(path)!r} is not TOML: {error}") from None
    except EudaError as error:
        raise EudaError(f"{str(path)!r}: {error}") from None


def parse(name: str, table: Mapping[str, Any], folder: Path = Path()) -> Plan:
    """The study of a parsed TOML; the robots' files are in and below `folder`."""
    _known("key", table, _STUDY)
    rows = table.get("methods", {})
    if not isinstance(rows, dict) or not rows:
        raise EudaError("a study needs at least one table [methods.NAME]")
    robots = study_robots(table.get("robots", {}), folder)
    runs = [planned for curve, row in rows.items() for planned in _method_runs(table, curve, row, robots)]
    if unused := [robot for robot in robots.values() if not any(p.config.task == robot.task for p in runs)]:
        raise EudaError(f"[robots.{unused[0].name!r}] is in no list of tasks")
    axes, reach = table.get("axes", ["steps"]), table.get("reach")
    if not isinstance(axes, list) or not axes:
        raise EudaError(f"axes must be a list of {', '.join(AXES)}, not {axes!r}")
    _known("axis", axes, AXES)
    if reach is not None and (isinstance(reach, bool) or not isinstance(reach, int | float)):
        raise EudaError(f"reach must be a return, not {reach!r}")
    title = table.get("title", name)
    if not isinstance(title, str):
        raise EudaError(f"title must be a text, not {title!r}")
    return Plan(name, title, _ordered(runs), tuple(axes), reach)


def _method_runs(table: Mapping[str, Any], curve: str, row: Any, robots: Mapping[str, StudyRobot]) -> Iterator[Planned]:
    """The runs of one table [methods.NAME]."""
    if not isinstance(row, dict):
        raise EudaError(f"[methods.{curve}] must be a table, not {row!r}")
    try:
        _known("key", row, _METHOD)
        both = {key: row.get(key, table.get(key)) for key in ("tasks", "seeds", "steps")}
        overrides = _merged(_table("overrides", table), _table("overrides", row))
        name = row.get("method", curve)
        for task in _tasks(both["tasks"], robots):
            for label, share in _shares(curve, row, task, robots):
                for seed in _seeds(both["seeds"]):
                    config = _config(task, name, share, seed, both["steps"], overrides, robots.get(task))
                    yield Planned(label, config)
    except EudaError as error:
        raise EudaError(f"[methods.{curve}]: {error}") from None


def _config(
    task: str, name: str, share: float | None, seed: int, steps: Any, overrides: dict[str, Any], own: StudyRobot | None
) -> RunConfig:
    _known("override", overrides, (*_SECTIONS, *_PARTS, *_NUMBERS))
    sections = {key: _section(key, overrides.get(key, {})) for key in _CHOICES}
    others = [key for key in _SECTIONS if key in overrides and key not in sections]
    parts: dict[str, Any] = {key: _section(key, overrides[key]) for key in others}
    parts |= {key: _typed(key, overrides[key], kind) for key, kind in _NUMBERS.items() if key in overrides}
    method = methods.combine(str(name), *(overrides.get(key) for key in _PARTS))
    cone = parts.pop("cone", None)
    whole = None if steps is None else _typed("steps", steps, int)
    robot = None
    if own is not None:
        robot, usual_steps = own.resolve(method.features, cone)
        task = robot.task
        parts.setdefault("episode_steps", usual_steps)
    return resolve(task, method, share, steps=whole, seed=seed, cone=cone, robot=robot, **sections, **parts)


def _section(name: str, table: Any) -> Any:
    """The configuration that a table of overrides makes of the defaults."""
    kind = _SECTIONS[name]
    if not isinstance(table, dict):
        raise EudaError(f"overrides.{name} must be a table, not {table!r}")
    fields = {field.name: field for field in dataclasses.fields(kind) if field.name not in _CHOSEN}
    _known(f"entry of overrides.{name}", table, fields)
    defaults = kind()
    entries = {key: _like(f"{name}.{key}", value, getattr(defaults, key)) for key, value in table.items()}
    return kind(**entries)


def _like(name: str, value: Any, default: Any) -> Any:
    """A value of the default's type; whole numbers may stand for others."""
    if default is None:
        return value if isinstance(value, int | float) and not isinstance(value, bool) else _typed(name, value, int)
    if type(default) is float and type(value) is int:
        return float(value)
    return _typed(name, value, type(default))


def _typed(name: str, value: Any, kind: type) -> Any:
    if type(value) is not kind:
        words = {int: "a whole number", float: "a number", bool: "true or false", str: "a text"}
        raise EudaError(f"{name} must be {words[kind]}, not {value!r}")
    return value


def _shares(
    curve: str, row: Mapping[str, Any], task: str, robots: Mapping[str, StudyRobot]
) -> list[tuple[str, float | None]]:
    """Label and share of each curve that a table makes on a task."""
    if "share" in row and "shares" in row:
        raise EudaError("give share or shares, not both")
    given = row.get("shares", row.get("share"))
    if given is None:
        return [(curve, None)]
    if isinstance(given, dict):
        _known("task in shares", given, (*tasks.TASKS, *robots))
        if task not in given:
            raise EudaError(f"shares has no entry for {task!r}")
        return [(curve, _share(given[task]))]
    several = isinstance(given, list)
    values = [_share(value) for value in (given if several else [given])]
    _no_twice("share", values)
    return [(f"{curve} {100 * value:.4g} %", value) for value in values]


def _share(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1:
        raise EudaError(f"a share must be a number between 0 and 1, not {value!r}")
    return float(value)


def _tasks(value: Any, robots: Mapping[str, StudyRobot]) -> list[str]:
    if not isinstance(value, list) or not value:
        raise EudaError(f"tasks must be a list of tasks, not {value!r}")
    for name in value:
        if isinstance(name, str) and name not in robots and (is_model(name) or is_environment(name)):
            least = "" if is_environment(name) else " with at least its reward"
            raise EudaError(f"{name!r} needs a table [robots.{name!r}]{least}")
    _known("task", value, (*tasks.TASKS, *robots))
    _no_twice("task", value)
    return value


def _seeds(value: Any) -> list[int]:
    if not isinstance(value, list) or not value:
        raise EudaError(f"seeds must be a list of whole numbers, not {value!r}")
    for seed in value:
        _typed("a seed", seed, int)
    _no_twice("seed", value)
    return value


def _table(name: str, table: Mapping[str, Any]) -> dict[str, Any]:
    value = table.get(name, {})
    if not isinstance(value, dict):
        raise EudaError(f"{name} must be a table, not {value!r}")
    return value


def _merged(first: Mapping[str, Any], second: Mapping[str, Any]) -> dict[str, Any]:
    """Nested tables, the second one's entries over the first one's."""
    result = dict(first)
    for key, value in second.items():
        old = result.get(key)
        result[key] = _merged(old, value) if isinstance(old, dict) and isinstance(value, dict) else value
    return result


def _known(what: str, found: Iterable[Any], valid: Iterable[str]) -> None:
    valid = list(valid)
    for name in found:
        if name not in valid:
            raise unknown(what, name, valid)


def _no_twice(what: str, values: list[Any]) -> None:
    for value in values:
        if values.count(value) > 1:
            raise EudaError(f"{what} {value!r} is there twice")


def _ordered(runs: list[Planned]) -> tuple[Planned, ...]:
    """First seeds first; refuses two curves that are the same run, because one would count twice."""
    seen: dict[str, Planned] = {}
    rounds: dict[tuple[str, str], int] = {}
    places: list[tuple[int, Planned]] = []
    for planned in runs:
        other = seen.setdefault(planned.config.identity, planned)
        if other is not planned:
            raise EudaError(f"{planned.name} and {other.name} are the same run")
        key = (planned.config.task, planned.curve)
        rounds[key] = rounds.get(key, -1) + 1
        places.append((rounds[key], planned))
    return tuple(planned for _, planned in sorted(places, key=lambda place: place[0]))
