"""Study files: what they resolve to, what they share, and what is refused."""

import tomllib
from pathlib import Path

import pytest
from study_files import TINY, write

from euda.errors import EudaError
from euda.replay.settings import ReplayConfig
from euda.runs.bases import BASES, Base
from euda.studies import plan
from euda.tasks.table import TASKS
from euda.terminal import cli

STUDIES = sorted((Path(__file__).parents[1] / "studies").glob("*.toml"))
RESULTS = sorted((Path(__file__).parents[1] / "results").glob("*/evidence-*.toml"))
TABLE = {"tasks": ["reacher_hard"], "seeds": [0], "base": "paper", "methods": {"rotate": {}}}


@pytest.mark.parametrize("path", STUDIES, ids=lambda path: path.stem)
def test_every_study_of_the_repository_is_valid(path):
    found = plan.load(path)
    assert found.runs
    assert found.title != found.name


def test_the_studies_are_the_papers_figures():
    main, share, joint, single, reacher = (
        plan.load(path)
        for name in ("main", "share", "joint", "single-point", "reacher")
        for path in STUDIES
        if path.stem == name
    )
    assert set(main.tasks) == set(TASKS) - {"reacher_hard"}
    assert set(main.curves) == {"ddpg", "sac", "ddpg-gn", "ddpg-ras", "limb", "rotate"}
    assert {p.config.steps for p in main.runs if p.config.task.startswith("humanoid")} == {5_000_000}
    assert {p.config.steps for p in main.runs if not p.config.task.startswith("humanoid")} == {2_000_000}
    assert len(main.runs) == 9 * 6 * 5
    assert set(share.tasks) == set(TASKS)
    assert len(share.curves) == 5
    assert len(joint.tasks) == 3
    assert single.tasks == ("reacher_hard", "cheetah3d_run")
    assert {"segnn", "rotate 25 %"} <= set(reacher.curves)
    assert reacher.axes == ("steps", "hours")


def test_studies_share_the_runs_they_have_in_common():
    plans = {path.stem: {p.folder_name for p in plan.load(path).runs} for path in STUDIES}
    both = plans["main"] & plans["share"]
    assert {name.split("/")[1].split("-seed")[0] for name in both} == {"limb", "rotate-0.5", "rotate-1"}
    assert plans["evidence-cheetah"] & plans["main"]  # the same runs, with fewer steps


def test_a_share_of_zero_is_the_run_of_limb():
    turned = plan.parse("a", {**TABLE, "methods": {"rotate": {"shares": [0]}}}).runs[0]
    limb = plan.parse("b", {**TABLE, "methods": {"limb": {}}}).runs[0]
    assert turned.curve == "rotate 0 %"
    assert turned.config == limb.config
    assert turned.folder_name == limb.folder_name


def test_first_seeds_come_first_and_everything_multiplies():
    table = {**TABLE, "seeds": [3, 5], "tasks": ["reacher_hard", "hopper_hop"], "methods": {"ddpg": {}, "limb": {}}}
    runs = plan.parse("a", table).runs
    assert [p.config.seed for p in runs] == [3] * 4 + [5] * 4
    assert len({p.folder_name for p in runs}) == 8


def test_overrides_reach_the_configuration_and_the_methods_own_win(tmp_path):
    text = TINY + '[methods.small]\nmethod = "rotate"\nsteps = 40\nseeds = [7]\noverrides.mlp.hidden_size = 4\n'
    text = text.replace("[overrides]", "[methods.sac]\n[overrides]\nagent = 'ddpg'\ncone = 'elliptic'", 1)
    found = plan.load(write(tmp_path, text.replace("[methods.sac]\n", "")))
    small = next(p.config for p in found.runs if p.curve == "small")
    assert (small.architecture.hidden_size, small.steps, small.seed, small.cone) == (4, 40, 7, "elliptic")
    other = next(p.config for p in found.runs if p.curve == "limb")
    assert (other.architecture.hidden_size, other.evaluation.every, other.replay.capacity) == (8, 30, 100)


def test_shares_by_task():
    methods = {"rotate": {"shares": {"reacher_hard": 0.25, "hopper_hop": 1}}}
    found = plan.parse("a", {**TABLE, "tasks": ["reacher_hard", "hopper_hop"], "methods": methods})
    assert [p.config.augmentation.share for p in found.runs] == [0.25, 1.0]
    assert found.curves == ("rotate",)


def test_a_study_and_each_of_its_methods_may_name_their_base(monkeypatch):
    monkeypatch.setitem(BASES, "mine", Base(agent="sac", settings=(ReplayConfig(n_step=1),), label="mine"))
    methods = {"rotate": {}, "limb": {"base": "mine"}}
    first, second = (planned.config for planned in plan.parse("a", {**TABLE, "methods": methods}).runs)
    assert (first.base, first.agent, first.replay.n_step) == ("paper", "ddpg", 3)
    assert (second.base, second.agent, second.replay.n_step) == ("mine", "sac", 1)
    both = plan.parse("a", {**TABLE, "methods": {"rotate": {"bases": ["paper", "mine"], "shares": [0.5, 1]}}})
    assert both.curves == ("paper rotate 50 %", "paper rotate 100 %", "mine rotate 50 %", "mine rotate 100 %")
    assert [planned.config.base for planned in both.runs] == ["paper", "paper", "mine", "mine"]
    assert len({planned.folder_name for planned in both.runs}) == 4
    everywhere = {"tasks": ["reacher_hard"], "seeds": [0, 1], "bases": ["mine", "paper"], "methods": methods}
    assert plan.parse("a", everywhere).curves == ("mine rotate", "paper rotate", "limb")


def test_every_study_names_its_base_and_those_of_the_paper_name_the_paper_s():
    for path in [*STUDIES, *RESULTS]:
        first = path.stem.split("-")[0]
        base = {"uniform": "swift", "base": "swift", "turned": "swift"}.get(first, first if first in BASES else "paper")
        assert tomllib.loads(path.read_text())["base"] == base, path.name
        assert {planned.config.base for planned in plan.load(path).runs} == {base}, path.name


BAD = [
    ({"base": "papre"}, "unknown base 'papre': did you mean 'paper'"),
    ({"base": ["paper"]}, "base must be a text"),
    ({"bases": ["paper"]}, "give base or bases, not both"),
    ({"methods": {"rotate": {"bases": ["paper", "paper"]}}}, "base 'paper' is listed twice"),
    ({"methods": {"rotate": {"bases": ["papre"]}}}, "unknown base 'papre'"),
    ({"methods": {"rotate": {"bases": "paper"}}}, "bases must be a list"),
    ({"sedes": [0]}, "did you mean 'seeds'"),
    ({"tasks": ["reacher_hrd"]}, "did you mean 'reacher_hard'"),
    ({"tasks": []}, "tasks must be a list"),
    ({"tasks": ["reacher_hard", "reacher_hard"]}, "'reacher_hard' is listed twice"),
    ({"seeds": [0, 1, 0]}, "seed 0 is listed twice"),
    ({"seeds": [0.5]}, "whole number"),
    ({"seeds": [-1]}, "seeds must be a list of one or more whole numbers between 0 and 4294967295, not -1"),
    ({"seeds": 3}, "seeds must be a list"),
    ({"steps": "many"}, "steps must be a whole number"),
    ({"steps": 0}, "steps must be a whole number of at least 1"),
    ({"axes": ["days"]}, "axes must be a list of one or more steps or hours, not 'days'"),
    ({"axes": []}, "axes must be a list"),
    ({"claims": [["rotate"]]}, "claims must be a list of pairs of texts"),
    ({"claims": [["rotate", "rotat"]]}, "unknown curve in claims 'rotat'"),
    ({"claims": [["rotate", "rotate"]]}, "not 'rotate' with itself"),
    ({"seeds": []}, "seeds must be a list of one or more whole numbers"),
    ({"reach": "much"}, "reach must be a finite number"),
    ({"title": 3}, "title must be a text"),
    ({"methods": {}}, "at least one table"),
    ({"methods": {"rotat": {}}}, "did you mean 'rotate'"),
    ({"methods": {"rotate": 1}}, "must be a table"),
    ({"methods": {"rotate": {"shaers": [1]}}}, "did you mean 'shares'"),
    ({"methods": {"rotate": {"shares": [0.5, 0.5]}}}, "share 0.5 is listed twice"),
    ({"methods": {"rotate": {"shares": [50]}}}, "between 0 and 1"),
    ({"methods": {"rotate": {"share": 0.1, "shares": [0.5]}}}, "not both"),
    ({"methods": {"rotate": {"shares": {"hopper_hop": 0.5}}}}, "no entry for 'reacher_hard'"),
    ({"methods": {"rotate": {"shares": {"hopper": 0.5}}}}, "unknown task in shares"),
    ({"methods": {"ddpg": {"share": 0.5}}}, "changes nothing"),
    ({"methods": {"limb": {}, "rotate": {"share": 0}}}, "are the same run"),
    ({"overrides": {"mpl": {}}}, "did you mean 'mlp'"),
    ({"overrides": {"mlp": {"hidden": 3}}}, "unknown entry of mlp"),
    ({"overrides": {"mlp": {"hidden_size": "big"}}}, "mlp.hidden_size must be a whole number"),
    ({"overrides": {"mlp": 3}}, "mlp must be a table"),
    ({"overrides": 3}, "overrides must be a table"),
    ({"overrides": {"replay": {"capacity": -1}}}, "capacity must be a whole number of at least 1"),
    ({"overrides": {"augmentation": {"share": 1}}}, "unknown override"),
    ({"overrides": {"cone": "round"}}, "unknown cone"),
]


@pytest.mark.parametrize(("changes", "words"), BAD, ids=[words for _, words in BAD])
def test_bad_studies_are_refused_in_one_sentence(changes, words):
    with pytest.raises(EudaError) as caught:
        plan.parse("bad", {**TABLE, **changes})
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)


def test_the_command_says_it_in_one_sentence(tmp_path, capsys):
    broken = write(tmp_path, "tasks = [", "broken")
    for path, words in (
        (tmp_path / "none.toml", "cannot read"),
        (broken, "is not TOML"),
        (write(tmp_path, TINY + "x = 1"), "'x'"),
    ):
        assert cli.main(["study", "show", str(path)]) == 2
        error = capsys.readouterr().err.strip()
        assert words in error
        assert path.name in error
        assert "\n" not in error


def test_show_lists_everything_without_writing(tmp_path, capsys):
    path = write(tmp_path)
    assert cli.main(["study", "show", str(path), "--runs", str(tmp_path / "runs"), "--no-measure"]) == 0
    printed = capsys.readouterr().out
    assert "rotate 25 %" in printed
    assert "4 runs, 0 finished; 480 steps to do" in printed
    assert not (tmp_path / "runs").exists()


def test_an_override_that_is_the_default_changes_nothing():
    first = plan.parse("a", TABLE).runs[0].config
    assert plan.parse("a", {**TABLE, "overrides": {"mlp": {"hidden_size": 256}}}).runs[0].config == first
    assert plan.parse("a", {**TABLE, "overrides": {"mlp": {"hidden_size": 255}}}).runs[0].config != first
