"""Study file → runs: tasks × methods × bases × shares × seeds × steps with overrides, from a short TOML.

    title = "Half a batch turned"
    tasks = ["reacher_hard", "hopper3d_hop"]
    seeds = [0, 1, 2]
    base = "paper"                 # how agents learn; or several: bases = ["paper", "mine"], which curves then name
    steps = 100000                 # by default what the task's published protocol has
    axes = ["steps", "hours"]      # of the figures; by default steps alone
    reach = 500                    # the return of "steps to reach"; by default halfway to the best
    claims = [["rotate 25 %", "ddpg"]]   # which curve should be better than which; by default each than the first

    [methods.ddpg]

    [methods.rotate]
    shares = [0.25, 0.5]           # or one for each task: shares = {reacher_hard = 0.25, hopper3d_hop = 0.5}
    seeds = [0, 1]                 # instead of the study's; tasks, steps, base and bases alike

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
import functools
import tomllib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from euda.errors import EudaError, unknown
from euda.runs import atomic_files, bases
from euda.runs.config import RunConfig
from euda.runs.resolution import merged, resolve, resolve_parts
from euda.runs.robot_flags import is_environment, is_model
from euda.studies import study_file
from euda.studies.study_file import MethodTable, StudyFile
from euda.studies.study_robots import StudyRobot, study_robots
from euda.tasks import table


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
    claims: tuple[tuple[str, str], ...] | None = None
    """Pairs of curves, the better one first; None where the file names none."""

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
    with atomic_files.readable_errors(path, "read"):
        content = path.read_bytes()
    try:
        return parse(path.stem, tomllib.loads(content.decode()), path.parent)
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise EudaError(f"{str(path)!r} is not TOML: {error}") from None
    except EudaError as error:
        raise EudaError(f"{str(path)!r}: {error}") from None


def parse(name: str, content: Mapping[str, Any], folder: Path = Path()) -> Plan:
    """The study of a parsed TOML; the robots' files are in and below `folder`."""
    file = study_file.read(content)
    robots = study_robots(file.robots, folder)
    runs = [planned for curve, row in file.methods.items() for planned in _method_runs(file, curve, row, robots)]
    if unused := [robot for robot in robots.values() if not any(p.config.task == robot.task for p in runs)]:
        raise EudaError(f"[robots.{unused[0].name!r}] is in no list of tasks")
    found = Plan(name, file.title or name, _ordered(runs), file.axes, file.reach, file.claims)
    for pair in file.claims or ():
        _known("curve in claims", pair, found.curves)
        if pair[0] == pair[1]:
            raise EudaError(f"claims compare two curves, the better one first, not {pair[0]!r} with itself")
    return found


def _method_runs(
    file: StudyFile, curve: str, row: Mapping[str, Any], robots: Mapping[str, StudyRobot]
) -> Iterator[Planned]:
    """The runs of one table [methods.NAME]."""
    try:
        table = study_file.method(row, file)
        for task in _tasks(table, robots):
            for prefix, base in _bases(table):
                for label, share in _shares(prefix + curve, table, task, robots):
                    for seed in _seeds(table):
                        run = dataclasses.replace(table, method=table.method or curve, base=base, bases=None,
                                                  share=share, shares=None)  # fmt: skip
                        yield Planned(label, _config(run, task, seed, file.overrides, robots.get(task)))
    except EudaError as error:
        raise EudaError(f"[methods.{curve}]: {error}") from None


def _config(run: MethodTable, task: str, seed: int, shared: Mapping[str, Any], own: StudyRobot | None) -> RunConfig:
    """The configuration of a run whose method, base and share are known."""
    method, base = str(run.method), str(run.base)
    make = functools.partial(resolve, method=method, base=base, share=run.share, steps=run.steps, seed=seed,
                             shared=shared, overrides=run.overrides)  # fmt: skip
    if own is None:
        return make(task)
    both = merged(shared, run.overrides)
    robot, usual_steps = own.resolve(resolve_parts(method, base, both)["features"], both.get("cone"))
    return make(own.task, robot=robot, episode_steps=usual_steps)


def _bases(table: MethodTable) -> list[tuple[str, str]]:
    """What the curves of each base begin with, and its name."""
    if table.bases is None:
        return [("", bases.DEFAULT if table.base is None else table.base)]
    _known("base", table.bases, bases.BASES)
    return [(f"{name} ", name) for name in table.bases]


def _shares(
    curve: str, method: MethodTable, task: str, robots: Mapping[str, StudyRobot]
) -> list[tuple[str, float | None]]:
    """Label and share of each curve that a table makes on a task."""
    given = method.shares
    if isinstance(given, dict):
        _known("task in shares", given, (*table.TASKS, *robots))
        if task not in given:
            raise EudaError(f"shares has no entry for {task!r}")
        return [(curve, given[task])]
    if given is None:
        given = () if method.share is None else (method.share,)
    return [(f"{curve} {100 * value:.4g} %", value) for value in given] or [(curve, None)]


def _tasks(method: MethodTable, robots: Mapping[str, StudyRobot]) -> tuple[str, ...]:
    if method.tasks is None:
        raise EudaError("tasks are missing: a list of names")
    for name in method.tasks:
        if name not in robots and (is_model(name) or is_environment(name)):
            least = "" if is_environment(name) else " with at least its reward"
            raise EudaError(f"{name!r} needs a table [robots.{name!r}]{least}")
    _known("task", method.tasks, (*table.TASKS, *robots))
    return method.tasks


def _seeds(method: MethodTable) -> tuple[int, ...]:
    if method.seeds is None:
        raise EudaError("seeds are missing: a list of whole numbers")
    return method.seeds


def _known(what: str, found: Iterable[Any], valid: Iterable[str]) -> None:
    valid = list(valid)
    for name in found:
        if name not in valid:
            raise unknown(what, name, valid)


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
