"""What a certificate looked at: contacts and limits, states made for them, and the rules of its verdict."""

import mujoco
import numpy as np
import pytest
from robots import ARM, crawler, write

from euda import ModelEnv, TaskEnv, certify
from euda.symmetry.judging.coverage import Coverage, Limit, all_limits, collidable_pairs, touched_now
from euda.symmetry.judging.seek import Seeker
from euda.symmetry.judging.states import visited_states
from euda.symmetry.judging.suspects import WORLD_SUSPECTS
from euda.symmetry.judging.transformation import WorldYaw
from euda.symmetry.judging.twin import Trial, Twin
from euda.symmetry.judging.verdict import Rows, judge_dynamics, judge_part
from euda.terminal import printing

# Everything overlaps everything, so what does not collide is kept from it by a rule.
HEAP = """
<mujoco><option {option}/><worldbody><geom name="floor" type="plane" size="0 0 1" pos="0 0 .05"/>
  <geom name="pillar" type="box" size=".1 .1 .1"/>
  <body name="a"><freejoint/><geom name="a" size=".1"/><geom name="ghost" size=".1" contype="0" conaffinity="0"/>
    <body name="a1"><joint axis="0 0 1"/><geom name="a1" size=".1"/>
      <body name="a2"><joint axis="0 0 1"/><geom name="a2" size=".1"/></body>
      <body name="welded"><geom name="welded" size=".1"/></body></body></body>
  <body name="b"><freejoint/><geom name="b" type="box" size=".1 .1 .1" contype="2" conaffinity="1"/></body>
  <body name="c"><freejoint/><geom name="c" type="capsule" size=".1 .1" contype="0" conaffinity="2"/></body>
  <body name="d"><freejoint/><geom name="d" size=".1"/></body>
</worldbody><contact><exclude body1="a" body2="d"/><pair geom1="a" geom2="a1"/></contact></mujoco>"""


@pytest.mark.parametrize("option", ["", '><flag filterparent="disable"/></option><option '])
def test_pairs_that_can_collide_are_those_that_mujoco_lets_collide(option):
    model = mujoco.MjModel.from_xml_string(HEAP.format(option=option))
    data = mujoco.MjData(model)
    mujoco.mj_forward(model, data)
    colliding = {tuple(sorted(pair)) for pair in data.contact.geom.tolist()}
    assert set(collidable_pairs(model)) == colliding
    assert len(colliding) > 10


def test_no_pairs_where_contacts_are_off():
    model = mujoco.MjModel.from_xml_string(HEAP.format(option='><flag contact="disable"/></option><option '))
    assert collidable_pairs(model) == []


def test_every_end_of_a_range_is_a_limit():
    xml = """
    <mujoco><worldbody><body><joint name="hinge" axis="0 1 0" range="-30 40"/><joint name="free" axis="1 0 0"/>
      <geom size=".1"/>
      <body><joint name="ball" type="ball" limited="true" range="0 30"/><geom size=".1" pos=".3 0 0"/></body></body>
    </worldbody>
    <tendon><fixed name="rope" limited="true" range="-.1 .1"><joint joint="free" coef="1"/></fixed></tendon>
    <actuator><motor joint="hinge"/></actuator></mujoco>"""
    env = ModelEnv(mujoco.MjModel.from_xml_string(xml))
    wanted = [Limit("joint", 0, False), Limit("joint", 0, True), Limit("joint", 2, True)]
    wanted += [Limit("tendon", 0, False), Limit("tendon", 0, True)]
    assert all_limits(env.model) == wanted
    rng = np.random.default_rng(0)
    samples = visited_states(env, 3, rng)
    touched = []
    for state in Seeker(env, samples, rng).seek([]):
        env.set_state(state)
        touched.append(touched_now(env))
    assert Coverage.of(env.model, touched).limits.missed == ()


def test_limbs_that_touch_are_sought_and_not_exact_with_pyramids():
    """Rollouts of the cheetah hardly ever show it, so that it was called exact."""
    found = certify(TaskEnv("cheetah_run", cone="default"), states=24, yaws=3)
    assert found.verdict == "near"
    assert found.dynamics.max > 1e-3
    assert found.dynamics.share == 0.0
    assert found.coverage.contacts.touched >= 8
    assert found.coverage.limits.missed == ()
    (cause,) = found.causes
    assert cause.startswith("pyramidal friction cone: at capsule-capsule")
    assert certify(TaskEnv("cheetah_run", cone="elliptic"), states=24, yaws=3).verdict == "exact"


def test_coverage_is_part_of_what_is_said(tmp_path):
    """A wall behind the robot is found; one that is out of reach for a robot on a mounting is named as not touched."""
    wall = '<geom name="wall" type="box" size=".1 9 2" pos="-8 0 1"/>'
    found = certify(ModelEnv(write(tmp_path, crawler(world=wall))), states=12, yaws=2)
    assert any(cause.startswith("obstacles: wall") for cause in found.causes)
    assert found.verdict == "near"  # far from the wall the robot is symmetric
    far = ARM.replace("<worldbody>", f"<worldbody>{wall}").replace("<mujoco>", '<mujoco><option cone="elliptic"/>')
    found = certify(ModelEnv(write(tmp_path, far.replace("<freejoint/>", '<joint axis="0 0 1"/>'))), states=6, yaws=2)
    contacts = found.coverage.contacts
    assert any("wall" in name for name in contacts.missed)
    stored = found.to_json()["coverage"]["contacts"]
    assert (stored["touched"], stored["total"]) == (contacts.touched, contacts.total)
    assert list(contacts.missed) == stored["missed"]
    assert f"with {contacts.touched} of {contacts.total} contact pairs and 0 of 0 limits" in found.summary


# -- numbers ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("tilt", [0.01, 0.2])
def test_the_error_of_a_step_is_a_share_of_its_change(tmp_path, tilt):
    """A body that falls in gravity tilted by θ, turned by α: the error is 2 sin(α/2) sin θ of the fall."""
    gravity = f'gravity="{9.81 * np.sin(tilt)} 0 {-9.81 * np.cos(tilt)}"'
    env = ModelEnv(write(tmp_path, crawler(option=gravity).replace('gear="8"', 'gear="1e-9"')))
    env.reset(seed=0)
    env.data.qpos[2] = 5.0
    mujoco.mj_forward(env.model, env.data)
    result = Twin(env).compare([Trial(env.get_state(), np.zeros(3), [WorldYaw(0.7), WorldYaw(-2.0)])])
    np.testing.assert_allclose(result.energy, 2 * np.sin(np.array([0.35, 1.0])) * np.sin(tilt), rtol=1e-6)


def rows(count, own=None):
    return Rows(np.ones(count, bool), np.zeros(count, bool), np.ones(count, bool) if own is None else own)


@pytest.mark.parametrize(
    ("errors", "verdict"),
    [
        pytest.param(np.full(60, 1e-10), "exact", id="rounding"),
        pytest.param(np.r_[np.zeros(59), 0.3], "near", id="one row"),
        pytest.param(np.r_[np.zeros(59), 0.85], "broken", id="one row, by more than half"),
        pytest.param(np.r_[np.zeros(45), np.full(15, 0.3)], "near", id="a quarter"),
        pytest.param(np.r_[np.zeros(35), np.full(25, 0.3)], "broken", id="more than a third"),
    ],
)
def test_a_reward_that_is_wrong_in_some_rows(errors, verdict):
    """Right in more than half of the rows is not near enough: share and worst case decide."""
    assert judge_part(errors, rows(60)).verdict == verdict


def test_what_decides_about_dynamics():
    errors, energy = np.full(60, 1e-3), np.full(60, 2e-3)
    assert judge_dynamics(errors, energy, rows(60), is_directed=False).verdict == "near"
    assert judge_dynamics(errors, energy, rows(60), is_directed=True).verdict == "broken"
    assert judge_dynamics(errors, np.full(60, 0.2), rows(60), is_directed=False).verdict == "broken"
    sought = Rows(np.arange(60) < 40, np.zeros(60, bool), np.ones(60, bool))
    rare = np.r_[np.zeros(40), np.ones(20)]  # wrong only in states made on purpose
    assert judge_dynamics(rare, rare, sought, is_directed=False).verdict == "near"
    iterative = Rows(np.ones(60, bool), rare > 0, np.ones(60, bool))
    assert judge_dynamics(1e-4 * rare, rare, iterative, False).verdict == "exact but for iterative collisions"
    assert judge_dynamics(1e-2 * rare, rare, iterative, False).verdict == "near"


def test_a_field_is_judged_where_the_dynamics_are_exact():
    errors = np.r_[np.zeros(40), np.full(20, 0.9)]
    assert judge_part(errors, rows(60, own=errors == 0)).verdict == "near"
    assert judge_part(errors, rows(60)).verdict == "broken"


def test_causes_are_complete_and_printed_on_short_lines(capsys):
    cone = next(one for one in WORLD_SUSPECTS if one.names_contacts)
    contacts = [f"capsule-ellipsoid (thigh {k} and shin {k})" for k in range(9)]
    cause = cone.line("", "without it the worst error is 1e-12", contacts)
    assert all(contact in cause for contact in contacts)
    assert cause.endswith(cone.advice)
    printing.statement(f"because: {cause}")
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) > 2
    assert all(len(line) < 120 for line in lines)
    assert " ".join(line.strip() for line in lines) == f"because: {cause}"


# -- solver and collisions -------------------------------------------------------------------------------


BARREL = """
<mujoco><option cone="elliptic" timestep="0.004"/><worldbody>
  <body name="trunk" pos="0 0 .5"><freejoint/><geom name="trunk" type="capsule" size=".1 .2"/>
    <body name="arm" pos=".25 0 0"><joint name="arm" axis="0 1 0" armature=".01" damping=".05"/>
      <geom type="sphere" size=".05"/>
      <body name="hand" pos=".2 0 0"><joint name="hand" type="ball" armature=".01" damping=".05"/>
        <geom name="hand" type="{shape}" size=".08 .06 .05"/></body></body></body></worldbody>
  <actuator><motor joint="arm" gear="2"/></actuator></mujoco>"""


def test_collisions_found_by_iteration_are_a_verdict_of_their_own(tmp_path):
    found = certify(ModelEnv(write(tmp_path, BARREL.format(shape="ellipsoid"))), states=24, yaws=4)
    assert found.coverage.contacts.missed == ()
    assert found.verdict == "exact but for iterative collisions"
    assert 1e-9 < found.dynamics.max < 1e-3
    assert any(line.startswith("convex collisions: contacts of ellipsoid-capsule") for line in found.causes)
    assert mujoco.get_mjcb_contactfilter() is None
    assert certify(ModelEnv(write(tmp_path, BARREL.format(shape="box"))), states=24, yaws=4).verdict == "exact"
