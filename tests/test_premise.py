"""A run that learns from a symmetry is refused where the simulator says that there is none."""

import dataclasses
import json
import tomllib

import pytest
from robots import CART, crawler, write

import euda
from euda.errors import EudaError
from euda.runs import certificates, element_premise, premise
from euda.runs.resolution import resolve
from euda.runs.robot_config import of_file
from euda.runs.robot_flags import RobotFlags
from euda.studies import plan, premises
from euda.studies.study_folder import Study
from euda.terminal import cli

SHORT = {"steps": 20, "episode_steps": 10, "evaluation": {"every": 20, "episodes": 1}, "mlp": {"hidden_size": 8}}
RUN = {"reward": "run", "direction": (1, 0)}


@pytest.fixture(autouse=True)
def own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


def said_of(config):
    said = []
    premise.check(config, said.append)
    return said


def test_tilted_gravity_is_refused_with_its_cause_unless_told_otherwise(tmp_path):
    robot = str(write(tmp_path, crawler(option='gravity="1 0 -9.7"')))
    out = tmp_path / "run"
    with pytest.raises(EudaError, match=r"does not have the symmetry .*tilted gravity: \[1.0, 0.0, -9.7\] is not vert"):
        euda.train(robot, "rotate", robot=RUN, out=out, **SHORT)
    assert not out.exists()
    euda.train(robot, "rotate", robot=RUN, out=out, trust_symmetry=True, **SHORT)
    assert euda.train(robot, "limb", robot=RUN, out=tmp_path / "limb", **SHORT).folder.is_dir()


def test_features_that_hide_the_direction_are_refused():
    with pytest.raises(EudaError, match="the reward follows a direction that these features do not show"):
        premise.check(resolve("hopper3d_hop", "joint-rotate"), print)


def test_near_is_one_sentence_with_its_number_and_exact_says_nothing():
    sentence, untouched = said_of(resolve("quadruped_run", "rotate"))
    assert untouched.startswith("contacts that no tested state had: ")
    assert len(untouched) < 200
    assert sentence.startswith("the symmetry of quadruped_run is near, not exact (error of a step 0 of its change,")
    assert "pyramidal friction cone" in sentence
    assert said_of(resolve("reacher_hard", "rotate")) == []
    assert said_of(resolve("reacher_hard", "ddpg")) == []


def test_a_premise_is_tested_once_for_each_model_and_setting(tmp_path, monkeypatch):
    calls = []
    certify = certificates.certify
    monkeypatch.setattr(
        certificates, "certify", lambda *args, **options: (calls.append(1), certify(*args, **options))[1]
    )
    config = resolve("reacher_hard", "rotate")
    for _ in range(2):
        said_of(config)
    assert len(calls) == 1
    (kept,) = certificates.cache().glob("*.json")
    kept.write_text(json.dumps({"verdict": "<b>exact</b>"}))  # of the wrong shape: made again
    said_of(config)
    said_of(dataclasses.replace(config, features="limb-paper"))
    path = write(tmp_path, crawler())
    for mass in ("", 'density="900"'):
        path.write_text(crawler().replace('<geom type="box"', f'<geom {mass} type="box"'))
        robot = of_file(str(path), RobotFlags(reward="stand"), "limb", None)
        said_of(resolve(robot.task, "rotate", robot=robot))
    assert len(calls) == 5


TILTED = """
tasks = ["robot.xml", "reacher_hard"]
seeds = [0, 1]
steps = 20
[robots."robot.xml"]
reward = "run"
direction = [1, 0]
[methods.limb]
[methods.turned]
method = "rotate"
[methods.turned-less]
method = "rotate"
share = 0.5
"""


def test_a_study_with_a_broken_premise_is_refused_before_any_worker_starts(tmp_path, capsys):
    write(tmp_path, crawler(option='gravity="1 0 -9.7"'))
    study, runs = tmp_path / "tilted.toml", tmp_path / "runs"
    study.write_text(TILTED)
    assert cli.main(["study", "run", str(study), "--runs", str(runs)]) == 2
    out, error = capsys.readouterr()
    assert out == ""
    assert not runs.exists()
    testing, refused = error.splitlines()
    assert testing == "euda: testing the symmetry of robot in the simulator (limb features)"
    assert refused.startswith("euda: [methods.turned]: robot does not have the symmetry that this run would learn from")
    assert "tilted gravity: [1.0, 0.0, -9.7] is not vertical" in refused
    assert refused.endswith("trust_symmetry = true in the overrides of the study or the method")


def test_a_study_says_once_what_is_near_and_asks_nothing_of_runs_that_have_begun_or_are_trusted(tmp_path):
    def said_of_study(text):
        found = []
        premises.check(Study(plan.parse("near", tomllib.loads(text)), tmp_path), found.append)
        return found

    text = 'tasks = ["quadruped_run"]\nseeds = [0, 1]\n[methods.rotate]\nshares = [0.5, 1.0]\n[overrides]\n'
    testing, near, untouched = said_of_study(text)
    assert testing.startswith("testing the symmetry of quadruped_run")
    assert near.startswith("the symmetry of quadruped_run is near, not exact")
    assert untouched.startswith("contacts that no tested state had: ")
    assert said_of_study(text) == [near, untouched]  # the certificate is kept
    assert said_of_study(f"{text}trust_symmetry = true") == []
    for planned in plan.parse("near", tomllib.loads(text)).runs:
        (tmp_path / planned.folder_name).mkdir(parents=True)
        (tmp_path / planned.folder_name / "config.json").write_text(json.dumps(planned.config.to_json()))
    assert said_of_study(text) == []


def test_trust_changes_no_identity():
    config = resolve("reacher_hard", "rotate")
    assert dataclasses.replace(config, trust_symmetry=True).identity == config.identity


# -- elements of the finite group ------------------------------------------------------------------------


def chosen(task, *overrides, **options):
    said = []
    config = resolve(task, "rotate", overrides={"group": "mirror", **dict(overrides)}, **options)
    return element_premise.choose(config, said.append), said


def test_elements_of_the_reward_are_used_and_others_are_left_out_and_said():
    names, said = chosen("quadruped_run")
    assert names == ("mirror left-right",)
    assert "left out: turn by 180° about z keeps the motion, but not the reward" in said
    assert len(said) == 6


def test_a_near_element_is_used_and_its_number_and_cause_are_said():
    names, said = chosen("humanoid_run")
    assert names == ("mirror left-right",)
    (sentence,) = said
    assert sentence.startswith("mirror left-right of humanoid_run is near, not exact (error of a step ")
    assert "right_hip_y has range -110 to 20 deg, its image left_hip_y -120 to 20" in sentence


def cart(folder, option="", mast="0 0 .1"):
    """A robot of wheels, which has two mirrors, or with its mast ahead only that of left and right."""
    text = CART.replace("<mujoco>", f"<mujoco><option {option}/>").replace('pos="0 0 .1"', f'pos="{mast}"')
    return of_file(str(write(folder, text)), RobotFlags(reward="stand"), "limb", None)


def test_a_broken_element_is_left_out_and_its_cause_is_said(tmp_path):
    robot = cart(tmp_path, 'gravity="0 6 -8"')
    names, said = chosen(robot.task, robot=robot)
    assert names == ("turn by 180° about z",)  # the world is not turned for it
    assert len(said) == 2
    assert all("is broken (error of a step" in sentence and "gravity" in sentence for sentence in said)


def test_trivial_missing_and_broken_elements_are_refused_with_the_cause(tmp_path):
    with pytest.raises(EudaError, match="mirror left-right of cheetah_run is trivial: it moves no joint"):
        chosen("cheetah_run")
    skew = crawler().replace('pos="0 .14 0"', 'pos=".1 .14 0"')
    crawling = of_file(str(write(tmp_path, skew)), RobotFlags(reward="stand"), "limb", None)
    with pytest.raises(EudaError, match="robot has no symmetry other than the yaws; the nearest is ") as refused:
        chosen(crawling.task, robot=crawling)
    assert "insist" not in str(refused.value)  # there is nothing to insist on
    tilted = cart(tmp_path, 'gravity="0 6 -8"', ".1 0 .1")
    with pytest.raises(EudaError, match=r"left-right is broken .*gravity is 0 6 -8 m/s².*insist with --trust"):
        chosen(tilted.task, robot=tilted)
    assert chosen(tilted.task, ("trust_symmetry", True), robot=tilted)[0] == ("mirror left-right",)
    out = tmp_path / "run"
    with pytest.raises(EudaError, match="use --group yaw"):
        euda.train("cheetah_run", "rotate", group="mirror", out=out, **SHORT)
    assert not out.exists()


def test_groups_are_part_of_a_run_but_yaw_is_what_runs_always_had():
    plain = resolve("reacher_hard", "rotate", "paper")
    assert plain.identity == "483a0bde511eed8e"  # as it was before there were groups
    assert resolve("reacher_hard", "rotate", "paper", overrides={"group": "yaw"}).identity == plain.identity
    identities = {
        resolve("reacher_hard", "rotate", "paper", overrides={"group": group}).identity for group in ("mirror", "all")
    }
    assert len(identities | {plain.identity}) == 3
    mirrored = resolve("reacher_hard", "rotate", "paper", overrides={"group": "mirror"})
    assert (mirrored.label, mirrored.uses_yaw, mirrored.uses_elements) == ("rotate mirror 0.5", False, True)
    assert dataclasses.replace(mirrored, elements=("mirror left-right",)).identity == mirrored.identity
    assert resolve("reacher_hard", "limb", shared={"group": "mirror"}).group == "yaw"
    assert resolve("reacher_hard", "rotate", "paper", share=0.0, overrides={"group": "all"}).group == "yaw"
    for method in ("canonical", "ddpg-gn"):
        with pytest.raises(EudaError, match=r"group 'mirror' changes nothing: .*add --augment with one that does"):
            resolve("reacher_hard", method, overrides={"group": "mirror"})
    both = resolve("reacher_hard", "canonical", overrides={"group": "mirror", "augment": "rotate"})
    assert (both.frame, both.group, both.uses_yaw) == ("own", "mirror", True)
