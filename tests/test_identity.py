"""Which runs are the same: what a configuration's identity covers, and what studies make of folders they find."""

import dataclasses
import functools
import json
import shutil
from pathlib import Path

import pytest
from study_files import TINY, invent, write

from euda.errors import EudaError
from euda.replay.settings import ReplayConfig
from euda.reports import results_table
from euda.runs import resolution, run_folder
from euda.runs.bases import BASES, Base
from euda.runs.config import RunConfig
from euda.studies import plan, status, study_folder
from euda.studies.study_folder import Study

resolve = functools.partial(resolution.resolve, base="paper")
RESULTS = Path(__file__).parents[1] / "results"
FORMAT_1 = RESULTS / "policies" / "reacher_hard"


def numbers(value, path=()):
    """The places of all numbers in nested tables."""
    for key, entry in value.items():
        if isinstance(entry, dict):
            yield from numbers(entry, (*path, key))
        elif isinstance(entry, int | float):
            yield (*path, key)


def changed(value):
    return {bool: lambda: not value, int: lambda: value + 1, float: lambda: value / 2 or 0.5}[type(value)]()


NUMBERS = [path for path in numbers(resolve("reacher_hard", "ddpg-gn").to_json()) if path != ("format",)]


@pytest.mark.parametrize("path", NUMBERS, ids=".".join)
def test_every_setting_but_steps_and_trust_counts(path):
    config = resolve("reacher_hard", "ddpg-gn")
    table = config.to_json()
    place = table
    for key in path[:-1]:
        place = place[key]
    value = place[path[-1]]
    place[path[-1]] = 2.0 if path[-1] == "recency" else changed(value)  # at least 1
    assert (RunConfig.from_json(table).identity == config.identity) == (path[0] in ("steps", "trust_symmetry", "yaws"))


def test_a_default_that_changes_later_makes_no_other_run_of_an_old_one(monkeypatch):
    stored = resolve("reacher_hard").to_json()
    before = RunConfig.from_json(stored).identity
    monkeypatch.setattr(ReplayConfig.__dataclass_fields__["n_step"], "default", 1)
    assert RunConfig.from_json(stored).identity == before


def test_the_name_of_a_base_is_no_part_of_a_run_but_what_it_means_is(monkeypatch):
    monkeypatch.setitem(BASES, "same", Base(label="same"))
    monkeypatch.setitem(BASES, "other", Base(settings=(ReplayConfig(n_step=1),), label="other"))
    paper, same, other = (resolve("reacher_hard", base=base) for base in ("paper", "same", "other"))
    assert paper.identity == same.identity != other.identity
    assert (paper.label, same.label, other.label) == ("rotate 0.5", "same rotate 0.5", "other rotate 0.5")
    assert other.replay == ReplayConfig(n_step=1)
    override = {"replay": {"n_step": 3}}
    assert resolve("reacher_hard", base="other", overrides=override).identity == paper.identity


@pytest.fixture
def study(tmp_path):
    """A study whose runs are all there."""
    found = Study(plan.load(write(tmp_path, TINY.replace("120", "40000"))), tmp_path / "runs")
    invent(found)
    return found


def states(study):
    return {row.planned: row.state for row in status.Reader().look(Study(study.plan, study.runs))}


def rewrite(folder, **entries):
    path = folder / run_folder.CONFIG
    path.write_text(json.dumps(json.loads(path.read_text()) | entries))


@pytest.mark.parametrize("other", [{"seed": 77}, {"task": "cheetah_run"}, {"checkpoint_every": 21}])
def test_a_folder_with_another_run_inside_is_neither_finished_nor_reported(study, other):
    first, *rest = study.plan.runs
    rewrite(study.folder_of(first), **other)
    found = states(study)
    assert found[first] == "failed"
    assert {found[planned] for planned in rest} == {"finished"}
    (row,) = (row for row in status.Reader().look(study) if row.planned is first)
    assert f"{next(iter(other))}: {next(iter(other.values()))!r} there" in row.reason
    table = results_table.of_study(study)
    assert {source.config for source in table.sources} == {planned.config for planned in rest}
    assert any("holds another run" in sentence for sentence in table.damaged)


def test_a_folder_that_an_earlier_euda_named_is_found_by_its_configuration(study):
    first, second, *_ = study.plan.runs
    for planned in (first, second):
        folder = study.folder_of(planned)
        folder.rename(folder.with_name(folder.name[:-8] + "00000000"))
    rewrite(study.runs / f"{second.folder_name[:-8]}00000000", checkpoint_every=21)
    again = Study(study.plan, study.runs)
    assert again.name_of(first) == f"{first.folder_name[:-8]}00000000"
    assert again.name_of(second) == second.folder_name
    assert (states(study)[first], states(study)[second]) == ("finished", "waiting")
    with study_folder.locked(again):
        again.write_plan()
    assert again.strangers() == []


def test_runs_of_format_1_are_read_and_found_by_the_studies_they_belong_to():
    folders = run_folder.find(RESULTS)
    assert {json.loads((folder / "config.json").read_text())["format"] for folder in folders} >= {1}
    for folder in folders:
        config = run_folder.load(folder).config
        assert RunConfig.from_json(json.loads(json.dumps(config.to_json()))) == config
    for file in sorted(RESULTS.glob("*/evidence-*.toml")):
        found = Study(plan.load(file), file.parent / "runs")
        states = [row.state for row in status.Reader().look(found)]
        assert set(states) <= {"finished", "waiting"}, file.name  # waiting: not run yet
        assert states.count("finished") == len(run_folder.find(file.parent / "runs")), file.name


def test_a_run_of_format_1_goes_on_or_is_refused_with_the_reason(tmp_path):
    folder = tmp_path / "run"
    shutil.copytree(FORMAT_1, folder)
    asked = resolve("reacher_hard", "rotate", share=0.25, steps=100_000)
    run_folder.check(folder, asked)
    run_folder.check(folder, dataclasses.replace(asked, steps=200_000))
    with pytest.raises(EudaError, match=r"another configuration \(learning.learning_rate: 0.0001 there, 0.1 asked for"):
        run_folder.check(folder, resolve("reacher_hard", share=0.25, overrides={"ddpg": {"learning_rate": 0.1}}))
