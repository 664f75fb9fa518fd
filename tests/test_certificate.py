"""Physics is the judge: what is exact, what is not and why, and that wrong declarations are caught."""

import json
import re

import gymnasium
import mujoco
import numpy as np
import pytest
from robots import ARM, CART, crawler, write

from euda import Field, Kind, Layout, LimbObservation, ModelEnv, TaskEnv, certify, picture
from euda.errors import EudaError
from euda.symmetry.judging.coverage import Touched, blamed_contacts
from euda.symmetry.judging.reach import Yaws
from euda.symmetry.judging.states import visited_states
from euda.symmetry.judging.transformation import WorldYaw
from euda.symmetry.judging.twin import Trial, Twin
from euda.tasks import table
from euda.terminal.cli import main


def compare(twin, count, rng, angles=None):
    """States that the robot comes to by itself, each turned once."""
    samples = visited_states(twin.env, count, rng)
    draw = Yaws(twin, samples, rng).draw
    angles = [None] * count if angles is None else angles
    return twin.compare([
        Trial(state, rng.uniform(-1, 1, twin.env.model.nu), draw(state, 1, rng) if yaw is None else [WorldYaw(yaw)])
        for state, yaw in zip(samples, angles, strict=True)
    ])  # fmt: skip


@pytest.mark.parametrize("features", ["limb", "limb-paper"])
@pytest.mark.parametrize("name", table.TASKS)
def test_elliptic_tasks_are_exact(name, features):
    """Dynamics and every field to 1e-9; the one known exception is humanoid_stand's reward, and it is reported."""
    found = certify(TaskEnv(name, features, "elliptic"), states=24 if features == "limb" else 12, yaws=2)
    assert found.dynamics.verdict == "exact"
    assert {field.verdict for field in found.fields.values()} == {"exact"}
    assert found.reward is not None
    if name == "humanoid_stand":
        assert found.reward.max > 0.01
        assert found.verdict == "near"
        assert found.causes == (
            "the reward does not turn with the world although the dynamics do: it depends on world axes",
        )
    else:
        assert found.verdict == "exact"
        assert found.causes == ()
    if name != "reacher_hard":  # its contacts are switched off in dm_control's model
        assert found.states_with_contacts >= (5 if features == "limb" else 2)


@pytest.mark.parametrize("name", table.TASKS)
def test_certificates_are_informative(name):
    """Samples move, touch the floor, and earn rewards: nothing is exact because nothing happens."""
    twin = Twin(TaskEnv(name, cone="elliptic"))
    result = compare(twin, 36, np.random.default_rng(0))
    assert np.unique(result.rewards.round(6)).size > 1
    assert result.rewards.max() > 0.01
    moved = np.abs(result.found - result.original).max(axis=0)
    kinds = np.concatenate([[field.kind is Kind.VECTOR] * field.dim for field in twin.layout])
    vertical = np.concatenate(
        [[field.kind is Kind.VECTOR and i % 3 == 2 for i in range(field.dim)] for field in twin.layout]
    )
    # Every horizontal component of a vector really turns, but for the root's position relative to itself.
    still = kinds & ~vertical & (moved < 1e-6)
    names = np.array(twin.layout.entry_names())
    assert set(names[still]) <= {"position[torso].x", "position[torso].y"}


@pytest.mark.parametrize(
    ("name", "pairs"),
    [
        ("quadruped_run", ("sphere-plane", "ellipsoid-plane")),
        ("humanoid_run", ("sphere-plane",)),
        ("hopper_hop", ("capsule-capsule",)),
    ],
)
def test_pyramids_are_named_with_their_contacts(name, pairs):
    found = certify(TaskEnv(name, cone="default"), states=36, yaws=2)
    assert found.verdict == "near"
    assert found.dynamics.median < 1e-9 < 1e-4 < found.dynamics.max
    (cause,) = found.causes
    assert cause.startswith("pyramidal friction cone")
    for pair in pairs:
        assert pair in cause
    assert "capsule-plane" not in cause  # MuJoCo turns those pyramids with the capsule


@pytest.mark.parametrize("name", ["walker_run", "reacher_hard", "walker3d_run"])
def test_some_pyramids_are_harmless(name):
    assert certify(lambda: TaskEnv(name, cone="default"), states=36).verdict == "exact"


@pytest.mark.parametrize("name", ["cheetah_run", "walker_run", "reacher_hard", "quadruped_run", "humanoid_run"])
def test_joint_features_of_planar_and_direction_free_tasks_are_exact(name):
    assert certify(lambda: TaskEnv(name, "joint", "elliptic"), states=30, yaws=2).verdict == "exact"


@pytest.mark.parametrize("name", ["cheetah3d_run", "hopper3d_hop", "walker3d_run"])
def test_joint_features_of_3d_tasks_do_not_show_the_direction(name):
    found = certify(lambda: TaskEnv(name, "joint"), states=36)
    assert found.dynamics.verdict == "exact"
    assert {field.verdict for field in found.fields.values()} == {"exact"}
    assert found.reward is not None
    assert found.reward.verdict != "exact"
    assert "direction that these features do not show" in found.causes[0]


# -- wrong declarations must fail ------------------------------------------------------------------------


def scalars(layout, name):
    field = layout.field(name)
    return layout.replace(name, kind=Kind.SCALAR, count=field.dim, of=())


def row_of_the_rotation_matrix(env):
    return env.data.xmat[env.morphology.root.body][:3].copy()


def swapped_axes(env):
    return env.data.xmat[env.morphology.root.body].reshape(3, 3)[[1, 0, 2], 0].copy()


def body_frame_velocity(env):
    body = env.morphology.root.body
    return env.data.xmat[body].reshape(3, 3).T @ env.data.qvel[:3]


VECTOR = Layout((Field("claim", Kind.VECTOR),))


@pytest.mark.parametrize(
    ("name", "layout", "observe", "says"),
    [
        ("cheetah3d_run", VECTOR, row_of_the_rotation_matrix, "'claim' does not turn as VECTOR, nor as any other kind"),
        ("cheetah3d_run", VECTOR, swapped_axes, "'claim' does not turn as VECTOR, nor as any other kind"),
        ("humanoid_run", VECTOR, body_frame_velocity, "declared VECTOR but turns as SCALAR"),
        ("reacher_hard", scalars, "to_target", "'to_target' declared SCALAR but turns as VECTOR"),
        ("cheetah3d_run", scalars, "direction", "'direction' declared SCALAR but turns as VECTOR"),
        ("cheetah_run", scalars, "velocity", "'velocity' declared SCALAR but turns as VECTOR"),
        ("humanoid_run", scalars, "com_velocity", "'com_velocity' declared SCALAR but turns as VECTOR"),
    ],
)
def test_wrong_layouts_are_broken(name, layout, observe, says):
    if callable(observe):
        found = certify(lambda: TaskEnv(name, cone="elliptic"), states=24, yaws=2, layout=layout, observe=observe)
    else:
        wrong = layout(TaskEnv(name).layout, observe)
        found = certify(lambda: TaskEnv(name, cone="elliptic"), states=24, yaws=2, layout=wrong)
    assert found.dynamics.verdict == "exact"
    assert found.verdict == "broken"
    assert any(says in cause for cause in found.causes)


@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_a_wrong_sign_of_the_yaw_is_noticed(sign):
    """The tolerances would catch a rotation in the wrong sense, on every task."""
    for name in table.TASKS:
        twin, rng = Twin(TaskEnv(name, cone="elliptic")), np.random.default_rng(0)
        yaws = rng.uniform(0.5, 2.5, 3)
        result = compare(twin, 3, rng, yaws)
        error = np.abs(result.found - twin.layout.rotate(result.original, sign * yaws)).max()
        assert error < 1e-9 if sign > 0 else error > 0.1


# -- anybody's model, and what breaks it -----------------------------------------------------------------


def certificate(tmp_path, xml, **options):
    path = write(tmp_path, xml)
    return certify(ModelEnv(path, **options), states=24, yaws=3)


@pytest.mark.parametrize("xml", [crawler(), CART, ARM], ids=["crawler", "cart", "arm"])
def test_other_robots_are_exact(tmp_path, xml):
    found = certificate(
        tmp_path, xml.replace("<mujoco>", '<mujoco><option cone="elliptic"/>') if "cone=" not in xml else xml
    )
    assert found.verdict == ("exact but for iterative collisions" if xml is ARM else "exact")
    assert found.reward is None


def test_models_with_direction_target_and_sensors(tmp_path):
    found = certificate(tmp_path, crawler(), direction=(0, 1, 0), sensors=("gyro", "linvel", "touch"))
    assert found.verdict == "exact"
    assert found.fields["direction"].kind == "vector"
    for target in ("goal", (0.3, 0.1, 0.5)):
        found = certificate(tmp_path, ARM, cone="elliptic", target=target, limb="tip")
        assert found.verdict == "exact but for iterative collisions"  # the loose ball is an ellipsoid
        assert "to_target" in found.fields


@pytest.mark.parametrize("place", ["spot", "knob", "stand"])
def test_a_target_on_something_fixed_to_the_world_turns_too(tmp_path, place):
    """A site or a geom of a static body, or that body itself, which sits on another static body."""
    table = """<body name="table" pos=".4 .3 0" euler="0 0 50"><geom size=".01" contype="0" conaffinity="0"/>
      <body name="stand" pos=".1 -.2 .3" euler="20 0 0"><geom name="knob" size=".02" contype="0" conaffinity="0"/>
        <site name="spot"/></body></body>"""
    options = {"target": place, "reward": "reach"}
    for xml, limb in ((crawler(world=table), "foot"), (ARM.replace("<worldbody>", f"<worldbody>{table}"), "tip")):
        found = certificate(tmp_path, xml, cone="elliptic", limb=limb, **options)
        assert found.verdict.startswith("exact")
        assert found.fields["to_target"].max < 1e-3


BALL_FIRST = crawler(world='<body name="ball" pos="3 0 .2"><freejoint/><geom name="ball" size=".1"/></body>')


def test_a_loose_object_before_the_robot_is_not_taken_for_its_root(tmp_path):
    env = ModelEnv(write(tmp_path, BALL_FIRST))
    robot, ball = env.model.body("trunk").id, env.model.body("ball").id
    places = []
    for state in visited_states(env, 9, np.random.default_rng(0))[6:]:  # the last third is posed
        env.set_state(state)
        places.append(env.data.xpos[[robot, ball], :2].copy())
    robots, balls = np.array(places).transpose(1, 0, 2)
    np.testing.assert_allclose(robots, 0.0, atol=1e-12)  # stays where the file has it
    assert np.ptp(balls, axis=0).min() > 1e-3
    assert certify(env, states=12, yaws=2).verdict == "exact"


def test_a_picture_moves_the_robot_and_not_the_object_before_it(tmp_path):
    env = ModelEnv(write(tmp_path, BALL_FIRST))
    picture(env, copies=2, width=32, height=24)
    assert np.hypot(*env.data.xpos[env.model.body("trunk").id, :2]) > 0.2
    np.testing.assert_allclose(env.data.xpos[env.model.body("ball").id], [3, 0, 0.2], atol=1e-9)


@pytest.mark.parametrize(
    "make",
    [
        pytest.param(lambda path: "reacher_hard", id="task"),
        pytest.param(str, id="path as text"),
        pytest.param(lambda path: path, id="path"),
        pytest.param(lambda path: mujoco.MjModel.from_xml_path(str(path)), id="model"),
        pytest.param(ModelEnv, id="environment"),
        pytest.param(lambda path: lambda: ModelEnv(path), id="function"),
        pytest.param(lambda path: gymnasium.make("euda/reacher_hard-v0"), id="registered environment of ours"),
    ],
)
def test_anything_can_be_certified(tmp_path, make):
    assert certify(make(write(tmp_path, crawler())), states=3, yaws=1).verdict == "exact"


def test_the_simulation_in_anybodys_environment_is_certified_as_it_is_observed():
    env = LimbObservation(gymnasium.make("Hopper-v5"), direction=(1, 0, 0), features="joint")
    found = certify(env, states=6, yaws=1)
    assert (found.task, found.features, found.reward) == ("Hopper-v5", "joint", None)
    assert tuple(found.fields) == tuple(field.name for field in env.layout)


@pytest.mark.parametrize(
    ("subject", "says"),
    [
        (3, "certify a task by name, an MJCF file, a model or an environment, not int"),
        ("raecher_hard", "unknown task 'raecher_hard': did you mean 'reacher_hard'"),
        ("nowhere.xml", "no model file at 'nowhere.xml'"),
        (gymnasium.make("CartPole-v1"), "CartPoleEnv is not a MuJoCo environment"),
    ],
)
def test_what_cannot_be_certified_is_refused(subject, says):
    with pytest.raises(EudaError, match=says):
        certify(subject)


@pytest.mark.parametrize(
    ("xml", "cause"),
    [
        (crawler(cone="pyramidal"), "pyramidal friction cone"),
        (crawler(option='wind="4 0 0" density="1.2"'), "wind: [4.0, 0.0, 0.0] m/s"),
        (crawler(option='gravity="0.3 0 -9.8"'), "tilted gravity"),
        (crawler(tilt='euler="0 3 0"'), "tilted floor: 'floor' by 3"),
        (
            crawler(world='<geom name="step" type="box" size=".05 2 .05" pos=".1 0 .05"/>'),
            "obstacles: step",
        ),
        (
            crawler().replace('<freejoint name="root"/>', '<joint name="root" type="free" stiffness="30"/>'),
            "spring on the root",
        ),
    ],
)
def test_what_breaks_a_symmetry_is_named_and_removed(tmp_path, xml, cause):
    found = certificate(tmp_path, xml)
    assert found.dynamics.max > 1e-9
    assert found.verdict != "exact"
    assert any(line.startswith(cause) and "; worst error" in line and ", without it" in line for line in found.causes)


def test_long_causes_are_whole_and_printed_on_lines_of_less_than_120_characters(tmp_path, capsys):
    names = [f"stone_number_{i}_in_the_way" for i in range(7)]
    stones = "".join(
        f'<geom name="{name}" type="box" size=".05 .3 .05" pos="{0.1 * (i - 3)} 0 .05"/>'
        for i, name in enumerate(names)
    )
    path = str(write(tmp_path, crawler(world=stones)))
    assert main(["certify", path, "--states", "6", "--json"]) == 1
    (cause,) = json.loads(capsys.readouterr().out)["causes"]
    assert cause.startswith(f"obstacles: {', '.join(names)} do not turn; worst error ")
    assert cause.endswith("; symmetric only away from them")
    assert main(["certify", path, "--states", "6"]) == 1
    printed = capsys.readouterr().out
    assert max(map(len, printed.splitlines())) < 120
    assert "…" not in printed
    assert f"because: {cause}" in re.sub(r"\n +", " ", printed)


def test_a_solver_that_stops_early_is_named():
    """Conjugate gradients end where they began to: the humanoid's contacts then do not turn exactly."""

    def coarse():
        env = TaskEnv("humanoid_run", cone="elliptic")
        env.model.opt.solver = mujoco.mjtSolver.mjSOL_CG
        return env

    found = certify(coarse, states=24, yaws=2)
    assert found.verdict == "near"
    assert any(line.startswith("unconverged solver: CG, 100 iterations") for line in found.causes)


def test_wind_without_air_and_damping_are_harmless(tmp_path):
    assert certificate(tmp_path, crawler(option='wind="4 0 0"')).verdict == "exact"
    assert certificate(tmp_path, crawler(option='density="1.2" viscosity="0.1" integrator="RK4"')).verdict == "exact"


def test_contacts_are_blamed_by_what_separates_bad_from_good():
    model = mujoco.MjModel.from_xml_string(crawler())
    floor, leg, foot = (model.geom(name).id for name in ("floor", "left_leg", "foot"))
    good = Touched(frictional=frozenset({(floor, leg)}))
    bad = Touched(frictional=frozenset({(floor, leg), (floor, foot)}))
    assert blamed_contacts(model, [good, bad], np.array([False, True])) == ["sphere-plane (foot-floor)"]


@pytest.mark.parametrize("name", ["cheetah_run", "reacher_hard"])
def test_an_environment_goes_on_as_if_nothing_had_happened(name):
    env, other = TaskEnv(name, seed=0), TaskEnv(name, seed=0)
    for one in (env, other):
        one.reset(seed=3)
        one.step(np.ones(one.model.nu))
    certify(env, states=3, yaws=2)
    for array in ("body_pos", "body_quat", "geom_pos", "site_pos"):
        np.testing.assert_array_equal(getattr(env.model, array), getattr(other.model, array))
    for _ in range(3):
        np.testing.assert_array_equal(env.step(np.ones(env.model.nu))[0], other.step(np.ones(env.model.nu))[0])
    np.testing.assert_array_equal(env.reset()[0], other.reset()[0])


def test_json_and_counts():
    found = certify(lambda: TaskEnv("reacher_hard"), states=6, yaws=2)
    stored = json.loads(json.dumps(found.to_json()))
    assert stored["task"] == "reacher_hard"
    assert stored["fields"]["to_target"]["kind"] == "vector"
    assert set(stored) >= {"task", "cone", "states", "yaws", "verdict", "dynamics", "reward", "fields"}
    assert set(stored["dynamics"]) >= {"median", "max"}
    with pytest.raises(EudaError, match="at least one state and one yaw"):
        certify(lambda: TaskEnv("reacher_hard"), states=0)


@pytest.mark.parametrize(("joint", "verdict"), [(0, "exact"), (1, "broken")])
def test_a_heading_is_a_joint_that_turns_the_robot(tmp_path, joint, verdict):
    """The arm's first joint is a vertical hinge (on a pedestal, not on the world itself); its second one is not."""
    layout = Layout((Field("angle", Kind.HEADING),))
    found = certify(ModelEnv(write(tmp_path, ARM), "elliptic"), layout=layout, states=6,
                    observe=lambda env: env.data.qpos[joint : joint + 1].copy())  # fmt: skip
    assert found.verdict.startswith(verdict)  # its convex collisions may or may not act in so few states


def test_mujoco_is_really_turned():
    """An independent look: the twin's torso stands where a hand-made rotation matrix puts the original's."""
    env = TaskEnv("walker_run", cone="elliptic")
    twin = Twin(env)
    (state,) = visited_states(env, 1, np.random.default_rng(0))
    twin.place(state)
    twin.step(np.zeros(6))
    place = env.data.xpos[1].copy()
    twin.transform(state, WorldYaw(0.9))
    twin.step(np.zeros(6))
    c, s = np.cos(0.9), np.sin(0.9)
    np.testing.assert_allclose(env.data.xpos[1], np.array([[c, -s, 0], [s, c, 0], [0, 0, 1]]) @ place, atol=1e-12)


def test_several_causes_at_once_are_all_named(tmp_path):
    found = certificate(tmp_path, crawler(option='wind="4 0 0" density="1.2" gravity="0.3 0 -9.8"'))
    assert [cause.split(":")[0] for cause in found.causes] == ["wind", "tilted gravity"]
    assert "without all 2 causes" in found.causes[0]


def test_ties_to_the_world_are_named(tmp_path):
    rope = (
        '<tendon><spatial name="rope" stiffness="40"><site site="hook"/><site site="sole"/></spatial></tendon></mujoco>'
    )
    xml = crawler(world='<site name="hook" pos="1 0 1"/>').replace("</mujoco>", rope)
    (cause,) = certificate(tmp_path, xml).causes
    assert cause.startswith("ties to the world: rope pull between robot and world")


def test_mocap_bodies_turn_too(tmp_path):
    hand = '<body name="hand" mocap="true" pos=".1 .1 .5"><geom name="hand" size=".2"/></body>'
    assert certificate(tmp_path, crawler(world=hand)).verdict == "exact"


def test_rewards_that_are_mostly_zero_are_judged_where_they_are_not():
    class Sparse(TaskEnv):
        def reward(self):
            return float(self.data.qvel[0] > 0.5)

    found = certify(lambda: Sparse("hopper3d_hop"))
    assert found.reward is not None
    assert found.reward.verdict == "broken"


def test_a_heading_of_a_free_robot(tmp_path):
    layout = Layout((Field("heading", Kind.HEADING),))

    def heading(env):
        rotation = env.data.xmat[1].reshape(3, 3)
        return np.array([np.arctan2(rotation[1, 0], rotation[0, 0])])

    assert (
        certify(lambda: TaskEnv("walker3d_run"), states=12, layout=layout, observe=heading).fields["heading"].max < 1e-9
    )


def test_observations_that_do_not_fit_are_refused():
    layout = Layout((Field("speed", Kind.SCALAR),))
    for observe, says in (
        (lambda env: np.array([np.nan]), "entries are not: speed"),
        (lambda env: np.zeros(2), "describes 1 numbers"),
    ):
        with pytest.raises(EudaError, match=says):
            certify(lambda: TaskEnv("reacher_hard"), states=2, layout=layout, observe=observe)
