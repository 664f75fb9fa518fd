"""Every element of a group tried in the simulator: verdicts, blame, causes, and the command that prints them."""

import dataclasses
import functools
import json

import mujoco
import numpy as np
import pytest
from symmetric_robots import crane, star

import euda
from euda.errors import EudaError
from euda.media.group_picture import group_picture
from euda.symmetry.examination import examine
from euda.symmetry.group import Group
from euda.symmetry.judging.transformation import ElementImage
from euda.symmetry.judging.trials import Trials
from euda.symmetry.judging.twin import Twin
from euda.symmetry.repair.acting import acting_states
from euda.symmetry.repair.defects import defects
from euda.terminal.cli import main

EXACT = sorted(set(euda.TASKS) - {"humanoid_run", "humanoid_stand"})


@functools.cache
def quadruped():
    return examine("quadruped_run", states=12)


def of(examined, name: str):
    return next(one for one in examined.verdicts if one.element.name == name)


CONES = [(task, cone) for task in EXACT for cone in ("default", "elliptic")]
CONES.remove(("quadruped_run", "elliptic"))  # seven elements and many contacts: its mirror is in test_discovery


@pytest.mark.parametrize(("task", "cone"), CONES)
def test_eight_mirrors_are_exact_in_dynamics_fields_and_reward(task, cone):
    examined = quadruped() if (task, cone) == ("quadruped_run", "default") else examine(
        euda.make(task, cone=cone), states=9
    )  # fmt: skip
    mirror = of(examined, "mirror left-right")
    assert mirror.verdict in ("exact", "exact but for iterative collisions")
    assert mirror.max < 1e-9
    assert mirror.reward == "exact"
    assert set(mirror.fields.values()) == {"exact"}
    assert mirror.causes == ()


@pytest.mark.parametrize("task", ["walker_run", "reacher_hard", "hopper3d_hop"])
def test_mirrors_are_exact_in_joint_features_too(task):
    mirror = of(examine(euda.make(task, "joint", "elliptic"), states=9), "mirror left-right")
    assert (mirror.verdict, set(mirror.fields.values()), mirror.causes) == ("exact", {"exact"}, ())


def test_a_wrong_sign_is_broken():
    env = euda.make("hopper3d_hop")
    group = euda.symmetries(env.model)
    actuators = group.elements[1].actuators
    bad = dataclasses.replace(group.elements[1], actuators=dataclasses.replace(actuators, matrix=-actuators.matrix))
    examined = examine(env, group=Group((group.elements[0], bad), group.pose, group.size), states=9)
    assert examined.verdicts[1].verdict == "broken"


def test_a_field_that_does_not_say_what_it_reads_is_fitted():
    env, layout = euda.make("walker_run", cone="elliptic"), euda.Layout((euda.Field("angles", euda.Kind.SCALAR, 6),))

    def squeezed(env):
        return np.array([*env.data.qpos[3:8], np.abs(env.data.qpos[8]) ** 1.5])

    right = examine(env, states=18, layout=layout, observe=lambda env: env.data.qpos[3:9].copy())
    (one,) = of(right, "mirror left-right").fits
    assert (one.follows, right.verdicts[1].fields) == (True, {"angles": "exact"})
    wrong = examine(env, states=18, layout=layout, observe=squeezed)
    assert wrong.verdicts[1].fields == {"angles": "broken"}


def test_a_tilted_world_breaks_mirrors_as_it_breaks_yaws_and_is_blamed_alone():
    """Its error is the same in every state, so it adds up; the load beside it explains less."""
    tilted = STAR.replace("<worldbody>", '<option gravity="0 .3 -9.8" cone="elliptic"/><worldbody>')
    examined = examine(mujoco.MjModel.from_xml_string(tilted), states=9)
    mirror = of(examined, "mirror left-right")
    assert mirror.verdict == "broken"
    assert 1e-3 < mirror.median < 0.1
    shares = {defect.what: examined.blame[i].share for i, defect in enumerate(examined.defects)}
    assert shares["gravity"] > 0.9
    assert 0 < shares["centre of mass"] < 0.5
    assert of(examined, "turn by 180° about z").verdict == "near"  # in itself: the world stays
    (sentence,) = (defect.sentence for defect in examined.defects if defect.what == "gravity")
    assert sentence == "gravity is 0 0.3 -9.8 m/s², its image 0 -0.3 -9.8"


def test_a_clean_sample_is_no_evidence():
    """The eyes have no image at the back; they seldom touch the floor, so states are made in which they do."""
    examined = quadruped()
    for name in ("turn by 180° about z", "mirror front-back"):
        one = of(examined, name)
        assert one.median < 1e-9  # what a sample shows
        assert one.verdict == "near"
        assert one.max > 0.01
    eyes = [i for i, defect in enumerate(examined.defects) if defect.what == "no image"]
    assert {examined.defects[i].part for i in eyes} == {"eye_l", "eye_r"}
    assert all(examined.blame[i].share > 0.5 for i in eyes)


def test_a_symmetry_of_the_dynamics_that_is_none_of_the_reward():
    """`run` rewards speed along the torso's own x: turning the robot in itself changes it, mirroring it does not."""
    examined = quadruped()
    assert not of(examined, "turn by 180° about z").is_of_the_task
    assert not of(examined, "turn by 90° about z").is_of_the_task
    assert of(examined, "mirror left-right").is_of_the_task


def test_quarter_turns_of_the_quadruped_are_near():
    one = of(quadruped(), "turn by 90° about z")
    assert one.verdict == "near"
    assert 1e-3 < one.median < 0.1
    told = [i for i, d in enumerate(quadruped().defects) if d.part == "torso"]
    assert {quadruped().defects[i].what for i in told} == {"inertia", "shape"}
    assert all(quadruped().blame[i].share > 0.1 for i in told)


def test_the_humanoids_hip_explains_its_error():
    examined = examine("humanoid_run", states=9)
    mirror = of(examined, "mirror left-right")
    assert mirror.verdict == "near"
    assert mirror.max > 0.05
    assert len(examined.defects) == 1
    assert examined.blame[0].share == pytest.approx(1.0)
    assert mirror.causes == ()  # nothing else is wrong


def test_a_payload_of_one_percent_is_a_number():
    """The median error is about the share of mass in the wrong place."""
    examined = examine(star(4, payload=0.01), states=12)
    mirror = of(examined, "mirror left-right")
    assert mirror.verdict == "near"
    assert 1e-3 < mirror.median < 3e-2
    assert mirror.median <= mirror.p90 <= mirror.max
    assert max(blame.share for blame in examined.blame.values()) > 0.3


def test_a_solver_that_sweeps_in_order_is_the_cause_where_there_is_no_defect():
    model = star(4)
    model.opt.solver, model.opt.iterations = int(mujoco.mjtSolver.mjSOL_PGS), 30
    examined = examine(model, states=12)
    turn = of(examined, "turn by 180° about z")
    assert examined.defects == ()
    assert turn.verdict == "near"
    assert any("solver" in cause for cause in turn.causes)


def test_loops_and_loose_things_are_tried_too():
    examined = examine(crane(), states=6)
    assert [one.verdict for one in examined.verdicts] == ["exact", "exact"]


class Drawn(euda.TaskEnv):
    """A task whose robot is another one in every episode."""

    def _initialise(self, seed):
        super()._initialise(seed)
        self.model.body_mass[1] = 1.0 + (seed or 0)


def test_a_model_drawn_in_every_episode_is_refused():
    with pytest.raises(EudaError, match="changes from episode to episode \\(body_mass\\)"):
        examine(Drawn("walker_run"), states=3)
    with pytest.raises(EudaError, match="changes from episode to episode \\(body_mass\\)"):
        group_picture(Drawn("walker_run"), 64, 48)


def test_an_environment_goes_on_as_if_nothing_had_happened():
    env = euda.make("hopper_hop", seed=3)
    env.reset(seed=3)
    before = env.get_state()
    examine(env, states=3)
    after = env.get_state()
    assert all(np.array_equal(before[name], after[name]) for name in before)


# -- the command -----------------------------------------------------------------------------------------


def test_the_json_of_the_command(capsys):
    assert main(["symmetry", "walker3d_run", "--states", "6", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert (told["name"], told["order"], told["defects"]) == ("walker3d_run", 2, [])
    identity, mirror = told["elements"]
    assert identity["identity"]
    assert not mirror["identity"]
    assert mirror["mirror"]
    assert not mirror["trivial"]
    assert mirror["verdict"] == "exact"
    assert set(mirror["error"]) == {"median", "p90", "max"}
    assert mirror["bodies"]["left_foot"] == "right_foot"
    assert mirror["joints"]["left_hip"] == {"image": "right_hip", "sign": 1, "offset": 0.0}
    assert mirror["joints"]["left_hip_x"] == {"image": "right_hip_x", "sign": -1, "offset": 0.0}
    assert mirror["actions"]["left_hip_x"]["image"] == "right_hip_x"
    assert mirror["actions"]["left_hip_x"]["sign"] == -1


def test_trivial_elements_are_named(capsys):
    assert main(["symmetry", "cheetah_run", "--states", "3"]) == 0
    assert "trivial" in capsys.readouterr().out


def test_mending_from_the_command_line(tmp_path, capsys):
    out = tmp_path / "humanoid.xml"
    assert main(["symmetry", "humanoid_run", "--states", "6", "--json"]) == 1
    before = json.loads(capsys.readouterr().out)
    (defect,) = before["defects"]
    assert {defect["part"], defect["image"]} == {"left_hip_y", "right_hip_y"}
    assert {defect["what"], defect["unit"]} == {"range", "deg"}
    assert sorted([defect["value"][0], defect["image_value"][0]]) == pytest.approx([-120, -110])
    assert main(["symmetry", "humanoid_run", "--states", "6", "--mend", str(out)]) == 0
    printed = capsys.readouterr().out
    assert f"wrote {out}" in printed
    assert "differs: right_hip_y has range -110 to 20 deg, its image left_hip_y -120 to 20 (explains 100 %" in printed
    assert main(["symmetry", str(out), "--states", "6"]) == 0


def test_a_tolerance_accepts_what_is_near(tmp_path, capsys):
    path = tmp_path / "star.xml"
    spec = mujoco.MjSpec.from_string(STAR)
    spec.compile()
    path.write_text(spec.to_xml())
    assert main(["symmetry", str(path), "--states", "6"]) == 1
    assert main(["symmetry", str(path), "--states", "6", "--tolerance", "0.5"]) == 0
    capsys.readouterr()


STAR = """<mujoco model="bug"><worldbody><geom type="plane" size="0 0 1"/><body name="trunk" pos="0 0 .3"><freejoint/>
  <geom type="box" size=".1 .1 .03" mass="2"/><geom size=".02" pos="0 .05 .03" mass=".02" contype="0" conaffinity="0"/>
  <body name="left" pos="0 .1 0"><joint name="left" axis="1 0 0"/>
    <geom type="capsule" fromto="0 0 0 0 .1 -.2" size=".02"/></body>
  <body name="right" pos="0 -.1 0"><joint name="right" axis="-1 0 0"/>
    <geom type="capsule" fromto="0 0 0 0 -.1 -.2" size=".02"/></body></body></worldbody>
  <actuator><motor joint="left" ctrlrange="-1 1"/><motor joint="right" ctrlrange="-1 1"/></actuator></mujoco>"""
SKEW = """<mujoco><worldbody><body name="trunk" pos="0 0 1"><freejoint/><geom name="hull" type="box" size=".2 .1 .05"/>
  <body name="arm" pos=".2 .1 .05"><joint name="j" axis="0 1 .3"/>
    <geom name="arm" type="capsule" fromto="0 0 0 .1 .2 .3" size=".03"/></body></body></worldbody>
  <actuator><motor joint="j"/></actuator></mujoco>"""


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["skew.xml"], "has no symmetry other than the yaws; the nearest is"),
        (["two.xml"], "2 robots"),
        (["walker_run", "--tolerance", "nan"], "tolerance must be a finite number of at least 0"),
        (["walker_run", "--states", "0"], "at least one state"),
        (["walker_run", "--payload", "2"], "payload must be a finite number between 0 and 1"),
        (["reacher_hard", "--payload", "0.1"], "payload 0.1 needs a robot that moves freely"),
        (["skew.xml", "--payload", "0.1"], "--payload 0.1 is for tasks"),
        (["walker_run", "--elements", "1"], "--elements needs --mend FILE.xml"),
        (["walker_run", "--mend", "out.txt"], "ends in .xml"),
        (["walker_run", "--mend", "nowhere/out.xml"], "no folder 'nowhere'"),
        (["walker_run", "--mend", "out.xml", "--elements", "sideways"], "elements are 1 (mirror left-right)"),
        (["walker3d_run", "--mend", "out.xml"], "give the model file itself"),
        (["walk_run"], "unknown task"),
        (["missing.xml"], "no model file"),
        ([], "Name a task"),
    ],
)
def test_bad_input_is_one_sentence(arguments, said, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "skew.xml").write_text(SKEW)
    arms = "".join(f'<body pos="{i} 0 1"><joint name="j{i}"/><geom size=".1"/></body>' for i in range(2))
    motors = '<actuator><motor joint="j0"/><motor joint="j1"/></actuator>'
    (tmp_path / "two.xml").write_text(f"<mujoco><worldbody>{arms}</worldbody>{motors}</mujoco>")
    before = sorted(tmp_path.iterdir())
    assert main(["symmetry", *arguments, *([] if "--states" in arguments else ["--states", "3"])]) == 2
    error = capsys.readouterr().err
    assert said in error
    assert error.count("\n") == 1
    assert sorted(tmp_path.iterdir()) == before


@pytest.mark.parametrize("seed", [0, 1])
def test_the_eyes_of_the_quadruped_bear_weight_in_states_made_on_purpose(seed):
    """Beside the trunk they touch the floor and bear nothing: then front and back agree to rounding."""
    env = euda.make("quadruped_run")
    group = euda.symmetries(env.model)
    front_back = next(element for element in group if element.name == "mirror front-back")
    named = defects(env.model, group)
    twin = Twin(env)
    trials = Trials(twin, 6, np.random.default_rng(seed), lambda *arguments: acting_states(
        arguments[0], group, named, *arguments[1:]))  # fmt: skip
    floor, eyes = env.model.geom("floor").id, [env.model.geom(name).id for name in ("eye_l", "eye_r")]
    for eye in eyes:
        pair = (min(floor, eye), max(floor, eye))
        rows = [trial for trial, touched in zip(trials.trials, trials.touched, strict=True) if pair in touched.pairs]
        tried = [dataclasses.replace(trial, transformations=(ElementImage(front_back),)) for trial in rows]
        assert twin.compare(tried).dynamics.max() > 1e-3
