"""What results/ shows is what its raw data says."""

import importlib.util
import json
from pathlib import Path

import numpy as np
import pytest
import safetensors.numpy

import euda
from euda.reports import page
from euda.runs import run_folder
from euda.runs.config import RunConfig
from euda.terminal import cli

EPISODES = 5
RESULTS = Path(__file__).resolve().parent.parent / "results"


@pytest.fixture(scope="module")
def build():
    spec = importlib.util.spec_from_file_location("build_results", RESULTS / "build.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def gathered(build):
    """What is gathered of every study, by its file."""
    return {study: build.gather(study, with_certificates=False) for study in build.studies()}


def test_the_numbers_are_those_of_the_raw_data(build, gathered):
    reports = {study.parent.name: found for study, found in gathered.items()}
    assert reports
    text = (RESULTS / "README.md").read_text("utf-8")
    assert build.put(build.tables(reports), text) == text, "run: make results"
    front = (RESULTS.parent / "README.md").read_text("utf-8")
    assert build.put(build.headlines.table(reports.values()), front) == front, "run: make results"


def test_the_tables_of_single_runs_are_those_of_the_raw_data(build):
    for name in build.SINGLE_RUNS:
        text = (RESULTS / name / "README.md").read_text("utf-8")
        assert build.put(build.evaluations(RESULTS / name), text) == text, "run: make results"


def test_kept_policies_are_trained_again_by_the_command_beside_them(build, capsys):
    text = (RESULTS / build.POLICIES / "README.md").read_text("utf-8")
    assert build.put(build.kept_policies(), text) == text, "run: make results"
    for folder in (RESULTS / build.POLICIES).glob("*/"):
        config = run_folder.load(folder).config
        assert cli.main([*build.command(config)[1:], "--dry-run"]) == 0
        again = RunConfig.from_json(json.loads(capsys.readouterr().out))
        assert (again.identity, again.steps) == (config.identity, config.steps), folder.name


def test_no_study_has_lost_a_run_or_a_line(gathered):
    """Every run belongs to its study, its numbers are whole, and it says on which machine they were made."""
    for study, found in gathered.items():
        known = {source.config.identity for source in found.table.sources}
        for folder in run_folder.find(study.parent / "runs"):
            kept = run_folder.load(folder)
            assert kept.config.identity in known, folder.name
            assert kept.provenance()[0]["packages"]["mujoco"]
            for line in kept.metrics_path.read_text("utf-8").splitlines():
                assert {"event", "step", "seconds"} <= json.loads(line).keys()


def test_the_pages_share_one_plotting_library_and_all_of_it_is_small(build):
    assert build.LIBRARY.read_text("utf-8") == page.plotly_js(), "run: make results"
    for study in build.studies():
        assert '<script src="../plotly.min.js"></script>' in (study.parent / "report.html").read_text("utf-8")
    committed = [path for path in RESULTS.rglob("*") if path.is_file() and ".studies" not in path.parts]
    assert sum(path.stat().st_size for path in committed) < 40e6


def test_published_returns_are_found_by_task_and_step(build):
    published = build.published
    assert published.best("quadruped_run", 100_000) == "845 (DR.Q)"
    assert published.best("reacher_hard", 15_000) == "831 (SimBa) at 50 000"
    assert published.best("hopper3d_hop", 100_000) == "–"
    for one in published.load():
        assert one.task in euda.TASKS
        assert one.repository.count("/") == 1
        assert all(0 <= mean <= 1000 and deviation >= 0 for _, mean, deviation in one.points)


def test_our_curves_are_drawn_beside_the_published_ones(build, gathered):
    reports = [found for study, found in gathered.items() if "swift" in study.stem]
    figure = build.published.figure(reports)
    (reacher,) = [axes for axes in figure.axes if axes.get_title().startswith("reacher_hard\nswift: ")]
    thick = max(reacher.lines, key=lambda line: line.get_linewidth())
    assert thick.get_xdata()[0] == 0
    assert max(thick.get_ydata()) > 900
    theirs = [one for one in build.published.load() if one.task == "reacher_hard"]
    assert len([line for line in reacher.lines if line.get_marker() == "o"]) == len(theirs)


@pytest.mark.parametrize("policy", sorted((RESULTS / "policies").glob("*/")), ids=lambda path: path.name)
def test_a_kept_policy_is_as_good_as_it_says(policy):
    """Five episodes, whose mean is that of the hundred up to four standard errors.

    Not return by return: a body that touches the floor is chaotic, and other versions or processors round differently.
    """
    said = json.loads((policy / "return.json").read_text())
    stored = np.array(said["returns"])
    assert (len(stored), said["episodes"]) == (100, 100)
    summary = [said["mean"], said["lowest"], said["highest"]]
    np.testing.assert_allclose([stored.mean(), stored.min(), stored.max()], summary, atol=1e-3)
    found = np.mean(euda.evaluate(policy, episodes=EPISODES))
    assert abs(found - stored.mean()) <= 4 * stored.std() / EPISODES**0.5


def test_a_policy_that_is_not_the_kept_one_is_found_out(tmp_path):
    """The reacher's, with the sign of all its weights turned round."""
    kept = RESULTS / "policies" / "reacher_hard"
    (tmp_path / "config.json").write_bytes((kept / "config.json").read_bytes())
    weights = safetensors.numpy.load_file(kept / "policy.safetensors")
    safetensors.numpy.save_file({name: -array for name, array in weights.items()}, tmp_path / "policy.safetensors")
    stored = np.array(json.loads((kept / "return.json").read_text())["returns"])
    found = np.mean(euda.evaluate(tmp_path, episodes=EPISODES))
    assert abs(found - stored.mean()) > 4 * stored.std() / EPISODES**0.5
