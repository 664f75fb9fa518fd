"""Robots on a mounting: it never turns for the agent, so their own joints must bring them into turned states.

Each robot here stands on the world by something that a turned mounting hides: a servo, a limit, a spring, a cable,
motors along world axes. The numbers are measured by hand, without any code of the certificate.
"""

from pathlib import Path

import gymnasium
import gymnasium.envs.mujoco
import mujoco
import numpy as np
import pytest
from robots import ARM, write

from euda import ModelEnv, TaskEnv, certify

PUSHER = Path(gymnasium.envs.mujoco.__file__).parent / "assets" / "pusher_v5.xml"
MOTOR = '<motor joint="turn" gear="2"/>'
TURN = '<joint name="turn" axis="0 0 1" {}/>'
FREE_TURN = TURN.format("")


def arm(first=FREE_TURN, motor=MOTOR, more=""):
    """Two limbs that swing over the floor; `first` is what the first one hangs on."""
    return f"""
    <mujoco><option timestep="0.002" cone="elliptic"/><default><joint armature=".02" damping=".1"/></default><worldbody>
      <body name="upper" pos="0 0 .5">{first}<geom type="capsule" fromto="0 0 0 .3 0 0" size=".03"/>
        <body name="fore" pos=".3 0 0"><joint name="elbow" axis="0 0 1"/>
          <geom type="capsule" fromto="0 0 0 .25 0 0" size=".025"/></body></body></worldbody>
      <actuator>{motor}<motor joint="elbow"/></actuator>{more}</mujoco>"""


SERVO = arm(motor='<position joint="turn" kp="20" ctrlrange="-3 3"/>')
LIMITED = arm(TURN.format('limited="true" range="-60 60"'))
SPRUNG = arm(TURN.format('stiffness="30"'))
PUCK = """
<mujoco><worldbody><body name="puck" pos="0 0 .1"><joint name="x" type="slide" axis="1 0 0" damping=".5"/>
  <joint name="y" type="slide" axis="0 1 0" damping=".5"/><geom size=".05"/></body></worldbody>
  <actuator><motor joint="x" gear="3"/></actuator></mujoco>"""


PEDESTAL = ARM.replace("<mujoco>", '<mujoco><option cone="elliptic"/>').replace(
    'contype="0"', 'contype="0" conaffinity="0"'
)


def certificate(tmp_path, xml, **options):
    return certify(ModelEnv(write(tmp_path, xml), **options), states=24, yaws=3)


def outcome(env, qpos, qvel, action):
    """The observation in a state and after one step from it."""
    env.reset(seed=0)
    env.data.qpos[:], env.data.qvel[:] = qpos, qvel
    mujoco.mj_forward(env.model, env.data)
    return env.observer.observe_exactly(), (env.step(action), env.observer.observe_exactly())[1]


@pytest.mark.parametrize(
    ("xml", "start", "turned", "smallest"),
    [
        pytest.param(SERVO, [0.2, 0.4], [1.0, 0.4], 0.5, id="servo"),
        # Beyond its limit of 60 degrees the joint is pushed back; turned back to the middle it is free.
        pytest.param(LIMITED, [1.1, 0.4], [0.3, 0.4], 0.5, id="limit"),
        pytest.param(SPRUNG, [0.2, 0.4], [1.0, 0.4], 1.0, id="spring"),
    ],
)
def test_turned_data_contradict_what_the_arm_does(tmp_path, xml, start, turned, smallest):
    """The premise of this file: the turned observation is one that the arm has, and there it does something else."""
    env, action, qvel = ModelEnv(write(tmp_path, xml)), np.array([0.5, 0.2]), [0.3, -0.2]
    yaw = turned[0] - start[0]
    seen, after = outcome(env, start, qvel, action)
    really_seen, really_after = outcome(env, turned, qvel, action)
    np.testing.assert_allclose(env.layout.rotate(seen, yaw), really_seen, atol=1e-12)
    contradiction = np.abs(env.layout.rotate(after, yaw) - really_after).max()
    change = np.abs(after - seen).max()
    assert contradiction > smallest * change > 0.1


@pytest.mark.parametrize(
    ("xml", "verdict", "cause"),
    [
        pytest.param(SERVO, "broken", "servo: 'turn' is pulled to an angle", id="servo"),
        pytest.param(LIMITED, "near", "limit: 'turn' ends at its range", id="limit"),
        pytest.param(SPRUNG, "broken", "spring: 'turn' is pulled back to one angle", id="spring"),
        pytest.param(PUCK, "broken", "world-fixed motor: 'x' push along world axes", id="motor on one slide"),
        pytest.param(
            arm(more='<tendon><fixed name="rope" stiffness="20"><joint joint="turn" coef="1"/></fixed></tendon>'),
            "broken", "cable: rope ties a first joint", id="cable",
        ),
        pytest.param(
            arm(more='<equality><joint name="gear" joint1="turn" joint2="elbow" polycoef="0 .5 0 0 0"/></equality>'),
            "broken", "constraint: gear ties the robot", id="constraint",
        ),
        pytest.param(
            PUCK.replace('axis="0 1 0" damping=".5"', 'axis="0 1 0" damping="20"').replace(
                '<motor joint="x" gear="3"/>', '<motor site="tip" gear="0 0 1 0 0 0"/>'
            ).replace("<geom", '<site name="tip"/><geom'),
            "near", "uneven slides: damping differs between 'x', 'y'", id="uneven slides",
        ),
    ],
)  # fmt: skip
def test_falsely_exact_roots_are_named(tmp_path, xml, verdict, cause):
    """All of these were called exact when the mounting was turned with them."""
    found = certificate(tmp_path, xml)
    assert found.case == "reached"
    assert found.verdict == verdict
    assert found.dynamics.max > 0.05
    (line,) = found.causes
    assert line.startswith(cause)
    assert len(line) < 120
    removed = float(line.partition("without it ")[2].partition(";")[0])
    assert removed < 1e-9 < found.dynamics.max


def test_gymnasiums_pusher_is_exact_between_its_limits_and_not_at_them():
    """Its shoulder turns from -2.29 to 1.71 rad; states at the limit are made on purpose."""
    found = certify(ModelEnv(PUSHER, control_timestep=0.05), states=24, yaws=3)
    assert found.case == "reached"
    assert found.verdict == "near"
    assert found.dynamics.median < 1e-9
    assert found.dynamics.max > 0.05
    assert any(line.startswith("limit: 'r_shoulder_pan_joint'") for line in found.causes)
    model = mujoco.MjModel.from_xml_path(str(PUSHER))
    turning = [j for j in range(model.njnt) if "pan" in model.joint(j).name or "slide" in model.joint(j).name]
    model.jnt_limited[turning] = 0
    free = certify(ModelEnv(model, control_timestep=0.05), states=24, yaws=3)
    assert free.verdict == "exact but for iterative collisions"  # the object is a cylinder
    assert free.dynamics.max < 1e-6


@pytest.mark.parametrize(
    "xml",
    [
        pytest.param(arm(), id="vertical hinge"),
        pytest.param(PEDESTAL, id="on a pedestal, with a loose ball"),
        pytest.param(arm(TURN.format("").replace("0 0 1", "0 0 -1")), id="hinge that points down"),
        pytest.param(arm('<joint name="turn" type="ball"/>', '<motor joint="turn" gear="1 1 1"/>'), id="ball"),
        pytest.param(
            arm('<joint name="lift" type="slide" axis="0 0 1" range="-.2 .2"/>' + TURN.format("")),
            id="limited vertical slide before the hinge",
        ),
    ],
)
def test_torque_driven_arms_stay_exact(tmp_path, xml):
    found = certificate(tmp_path, xml)
    assert (found.case, found.verdict, found.causes) == ("reached", "exact", ())


@pytest.mark.parametrize("features", ["limb", "limb-paper", "joint"])
def test_the_reacher_turns_itself(features):
    found = certify(TaskEnv("reacher_hard", features), states=12, yaws=2)
    assert (found.case, found.verdict) == ("reached", "exact")
    if features == "limb-paper":  # the axes of the base never change, so turned copies of them are never seen
        assert found.fields["root_rotation"].finding == "never changes: it shows the mounting"


@pytest.mark.parametrize(
    ("xml", "why"),
    [
        pytest.param(arm('<joint name="turn" axis=".2 0 1"/>'), "'turn' is not vertical", id="leaning hinge"),
        pytest.param(
            arm('<joint name="turn" type="slide" axis="1 0 0"/>'), "'turn' slides along a world axis", id="one slide"
        ),
    ],
)
def test_robots_that_never_are_in_a_turned_state(tmp_path, xml, why):
    found = certificate(tmp_path, xml)
    assert found.case == "never reached"
    assert why in found.why
    assert found.verdict == "exact"  # a turned mounting would do the same
    assert "contradict nothing and help little" in found.case_explained


@pytest.mark.parametrize("name", ["cheetah_run", "hopper_hop", "walker_run"])
def test_planar_tasks_are_never_in_a_turned_state(name):
    found = certify(TaskEnv(name, cone="elliptic"), states=12, yaws=2)
    assert (found.case, found.verdict) == ("never reached", "exact")
    assert "'rootx' slides along a world axis" in found.why or "'rootz'" in found.why
