"""What results/ shows is what its raw data says."""

import importlib.util
import json
from pathlib import Path

import pytest

import euda
from euda.study import run

RESULTS = Path(__file__).resolve().parent.parent / "results"


@pytest.fixture(scope="module")
def build():
    spec = importlib.util.spec_from_file_location("build_results", RESULTS / "build.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_numbers_are_those_of_the_raw_data(build):
    reports = {study.parent.name: build.gather(study, with_certificates=False) for study in build.studies()}
    assert reports
    page = (RESULTS / "README.md").read_text("utf-8")
    assert build.put(build.tables(reports), page) == page, "run: make results"


def test_the_tables_of_single_runs_are_those_of_the_raw_data(build):
    for name in build.SINGLE_RUNS:
        page = (RESULTS / name / "README.md").read_text("utf-8")
        assert build.put(build.evaluations(RESULTS / name), page) == page, "run: make results"


def test_no_study_has_lost_a_run_or_a_line(build):
    """Every run belongs to its study, its numbers are whole, and it says on which machine they were made."""
    for study in build.studies():
        found = build.gather(study, with_certificates=False)
        known = {source.planned.config.identity for source in found.table.sources}
        for folder in run.find(study.parent / "runs"):
            kept = run.load(folder)
            assert kept.config.identity in known, folder.name
            assert kept.provenance()[0]["packages"]["mujoco"]
            for line in kept.metrics_path.read_text("utf-8").splitlines():
                assert {"event", "step", "seconds"} <= json.loads(line).keys()


@pytest.mark.parametrize("policy", sorted((RESULTS / "policies").iterdir()), ids=lambda path: path.name)
def test_a_kept_policy_is_as_good_as_it_says(policy):
    said = json.loads((policy / "return.json").read_text())
    returns = euda.evaluate(policy, episodes=5)
    assert said["episodes"] == 100
    assert said["mean"] * 0.6 <= sum(returns) / 5 <= said["highest"] + 1e-6
