"""What the policies of a study are worth in turned worlds: judged once, kept beside their runs, drawn and tabulated.

    python results/turned.py studies/turned-tripod.toml runs --yaws 8 --mirror

Writes `turned.json` beside the numbers of every finished run that `results/collect.py` has brought here; those that
are there stay. `results/build.py` draws them.
"""

from __future__ import annotations

import argparse
import json
import statistics
from collections.abc import Iterator, Mapping
from pathlib import Path

from euda import evaluate_turned
from euda.reports import polar
from euda.reports.labels import robot_name
from euda.runs import atomic_files, run_folder
from euda.runs.turned_evaluation import TurnedReturns
from euda.studies import plan
from euda.studies.study_folder import Study

RESULTS = Path(__file__).resolve().parent
FILE = "turned.json"
Judged = list[TurnedReturns]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("study", type=Path, help="the study's TOML")
    parser.add_argument("runs", type=Path, help="the folder of its runs")
    parser.add_argument("--yaws", type=int, default=8, help="worlds, evenly turned")
    parser.add_argument("--episodes", type=int, default=10, help="in each world")
    parser.add_argument("--mirror", action="store_true", help="judge again with left and right exchanged")
    options = parser.parse_args()
    study = Study(plan.load(options.study), options.runs)
    for planned in study.plan.runs:
        folder = study.folder_of(planned)
        place = RESULTS / options.study.stem.removeprefix("evidence-") / "runs" / folder.relative_to(options.runs)
        if not place.is_dir() or (place / FILE).exists():
            continue
        if not run_folder.status(run_folder.load(folder)).is_finished:
            continue
        judged = evaluate_turned(folder, options.yaws, options.episodes, mirror=options.mirror)
        atomic_files.write_json(place / FILE, [one.to_json() for one in judged])
        print(f"{planned.name}: {', '.join(f'{one.mean:.0f}' for one in judged)}", flush=True)


def read(study: Path) -> dict[str, dict[str, list[Judged]]]:
    """What is kept of a study's policies: by task and curve, one list of worlds for each seed."""
    found: dict[str, dict[str, list[Judged]]] = {}
    for planned in plan.load(study).runs:
        path = study.parent / "runs" / planned.folder_name / FILE
        if path.is_file():
            worlds = [
                TurnedReturns(one["yaw"], tuple(one["returns"]), one["mirror"]) for one in json.loads(path.read_text())
            ]
            found.setdefault(robot_name(planned.config), {}).setdefault(planned.curve, []).append(worlds)
    return found


def draw(study: Path) -> None:
    """Write a polar figure for each task beside the study."""
    for name, (task, curves) in _drawn(study).items():
        polar.write(polar.draw(curves, f"{task}: return by the yaw of the world"), study.parent / name)


def links(study: Path) -> Iterator[str]:
    """Lines of Markdown that show the figures, from the folder of all results."""
    for name, (task, _) in _drawn(study).items():
        yield f"![{task}: return of the trained policies in turned worlds]({study.parent.name}/{name})\n"


def _drawn(study: Path) -> dict[str, tuple[str, dict[str, list[Judged]]]]:
    """By file name the task and the worlds that are not mirrored, of every task with enough of them for a figure."""
    found: dict[str, tuple[str, dict[str, list[Judged]]]] = {}
    for task, curves in read(study).items():
        plain = {name: [[one for one in judged if one.mirror is None] for judged in seeds]
                 for name, seeds in curves.items()}  # fmt: skip
        if min(len(judged) for seeds in plain.values() for judged in seeds) > 2:
            found[f"turned-{task}.png"] = task, plain
    return found


def table(study: Path) -> Iterator[str]:
    """Lines of Markdown: the medians over seeds of what a policy gets as trained, turned, and mirrored."""
    found = read(study)
    if not found:
        return
    yield "| task | method | seeds | as trained | turned, mean | turned, worst yaw | mirrored, mean |"
    yield "|---|---|---|---|---|---|---|"
    for task, curves in found.items():
        for name, seeds in curves.items():
            yield f"| {task} | {name} | {len(seeds)} | {' | '.join(_cells(seeds))} |"
    yield ""


def _cells(seeds: list[Judged]) -> Iterator[str]:
    values: Mapping[str, list[float]] = {"as trained": [], "mean": [], "worst": [], "mirrored": []}
    for judged in seeds:
        plain, mirrored = (
            [one.mean for one in judged if (one.mirror is None) == is_plain] for is_plain in (True, False)
        )
        values["as trained"].append(plain[0])
        values["mean"] += [statistics.fmean(plain[1:])] if len(plain) > 1 else []
        values["worst"].append(min(plain))
        values["mirrored"] += [statistics.fmean(mirrored)] if mirrored else []
    yield from (f"{statistics.median(found):.0f}" if found else "–" for found in values.values())


if __name__ == "__main__":
    main()
