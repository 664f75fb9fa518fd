"""Copies what is worth keeping of a study's runs: configuration, numbers and machine of each, and no replay.

    python results/collect.py studies/evidence-reacher.toml runs

The study goes to `results/reacher`. Runs that have not ended are left out: a method is compared at the last step that
all of its runs have. Copying again later brings what is new; a finished run that is here stays, because the same run on
another processor rounds otherwise, and which of two is published must not be a choice. `--policy rotate --seed 0` keeps
the policy of that run in `results/policies` too.
"""

from __future__ import annotations

import argparse
import os
import shutil
import tomllib
from pathlib import Path

from euda import evaluate
from euda.runs import atomic_files, run_folder
from euda.studies import plan
from euda.studies.study_folder import Study

RESULTS = Path(__file__).resolve().parent
KEPT = ("config.json", "metrics.jsonl", "provenance.json")
EPISODES = 100


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("study", type=Path, help="the study's TOML")
    parser.add_argument("runs", type=Path, help="the folder of its runs")
    parser.add_argument("--policy", help="keep the policy of this method for each task")
    parser.add_argument("--seed", type=int, default=0, help="of the policy")
    options = parser.parse_args()
    study = Study(plan.load(options.study), options.runs)
    target = RESULTS / options.study.stem.removeprefix("evidence-")
    target.mkdir(exist_ok=True)
    (target / options.study.name).write_text(moved(options.study, target))
    copied = kept = 0
    for planned in study.plan.runs:
        folder = study.folder_of(planned)
        if not (folder / run_folder.CONFIG).is_file() or not is_finished(folder):
            continue
        if options.policy == planned.config.method and options.seed == planned.config.seed:
            keep_policy(folder, RESULTS / "policies" / planned.config.task)
        place = target / "runs" / folder.relative_to(options.runs)
        if place.is_dir() and is_finished(place):
            kept += 1
            continue
        place.mkdir(parents=True, exist_ok=True)
        for name in KEPT:
            shutil.copyfile(folder / name, place / name)
        copied += 1
    print(f"{target.name}: {copied} new runs, {kept} were there, of {len(study.plan.runs)}")
    if copied:
        print("now `make results`: tables that do not show every run here fail the tests")


def moved(study: Path, target: Path) -> str:
    """The text of a study as it reads in another folder: paths of robots lead from there."""
    text = study.read_text("utf-8")
    for name in tomllib.loads(text).get("robots", {}):
        if (study.parent / name).is_file():
            path = os.path.relpath(study.parent.resolve() / name, target.resolve())
            text = text.replace(f'"{name}"', f'"{Path(path).as_posix()}"')
    return text


def is_finished(folder: Path) -> bool:
    """Whether the run has made all of its steps."""
    return run_folder.status(run_folder.load(folder)).is_finished


def keep_policy(folder: Path, place: Path) -> None:
    """The policy with its configuration, and its return over episodes that no training saw."""
    place.mkdir(parents=True, exist_ok=True)
    for name in ("config.json", "policy.safetensors"):
        shutil.copyfile(folder / name, place / name)
    record_returns(place)


def record_returns(place: Path) -> None:
    """Write the return of every episode of a kept policy, so that a test can say whether it is still as good."""
    returns = evaluate(place, episodes=EPISODES)
    atomic_files.write_json(place / "return.json", {"episodes": EPISODES, "mean": sum(returns) / EPISODES,
                                               "lowest": min(returns), "highest": max(returns),
                                               "returns": [round(value, 3) for value in returns]})  # fmt: skip


if __name__ == "__main__":
    main()
