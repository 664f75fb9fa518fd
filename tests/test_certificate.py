"""Physics is the judge: what is exact, what is not and why, and that wrong declarations are caught."""

import json

import mujoco
import numpy as np
import pytest
from robots import ARM, CART, crawler, write

from euda import Field, Kind, Layout, ModelEnv, TaskEnv, certify
from euda.body import tasks
from euda.body.comparison import Pair, blamed_contacts, sample_states
from euda.errors import EudaError


@pytest.mark.parametrize("features", ["limb", "limb-paper"])
@pytest.mark.parametrize("name", tasks.TASKS)
def test_elliptic_tasks_are_exact(name, features):
    """Dynamics and every field to 1e-9; the one known exception is humanoid_stand's reward, and it is reported."""
    found = certify(lambda: TaskEnv(name, features, "elliptic"), states=36, yaws=3)
    assert found.dynamics.verdict == "exact"
    assert {field.verdict for field in found.fields.values()} == {"exact"}
    assert found.reward is not None
    if name == "humanoid_stand":
        assert found.reward.max > 0.01
        assert found.verdict == "approximate"
        assert found.causes == (
            "the reward does not turn with the world although the dynamics do: it depends on world axes",
        )
    else:
        assert found.verdict == "exact"
        assert found.causes == ()
    if name != "reacher_hard":  # its contacts are switched off in dm_control's model
        assert found.states_with_contacts >= 8


@pytest.mark.parametrize("name", tasks.TASKS)
def test_certificates_are_informative(name):
    """Samples move, touch the floor, and earn rewards: nothing is exact because nothing happens."""
    pair = Pair(TaskEnv(name, cone="elliptic"), TaskEnv(name, cone="elliptic"))
    rng = np.random.default_rng(0)
    samples = sample_states(pair.env, 36, rng)
    result = pair.compare(samples, rng.uniform(-1, 1, (36, pair.env.model.nu)), rng.uniform(0, 6, (36, 1)))
    assert np.unique(result.rewards.round(6)).size > 1
    assert result.rewards.max() > 0.01
    moved = np.abs(result.turned - result.original).max(axis=0)
    kinds = np.concatenate([[field.kind is Kind.VECTOR] * field.dim for field in pair.layout])
    vertical = np.concatenate(
        [[field.kind is Kind.VECTOR and i % 3 == 2 for i in range(field.dim)] for field in pair.layout]
    )
    # Every horizontal component of a vector really turns, but for the root's position relative to itself.
    still = kinds & ~vertical & (moved < 1e-6)
    names = np.array(pair.layout.entry_names())
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
    found = certify(lambda: TaskEnv(name, cone="default"))
    assert found.verdict == "approximate"
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
    for name in tasks.TASKS:
        pair = Pair(TaskEnv(name, cone="elliptic"), TaskEnv(name, cone="elliptic"))
        rng = np.random.default_rng(0)
        samples, yaws = sample_states(pair.env, 3, rng), rng.uniform(0.5, 2.5, (3, 1))
        result = pair.compare(samples, rng.uniform(-1, 1, (3, pair.env.model.nu)), yaws)
        error = np.abs(result.turned - pair.layout.rotate(result.original, sign * result.yaws)).max()
        assert error < 1e-9 if sign > 0 else error > 0.1


# -- anybody's model, and what breaks it -----------------------------------------------------------------


def certificate(tmp_path, xml, **options):
    path = write(tmp_path, xml)
    return certify(lambda: ModelEnv(path, **options), states=36, yaws=3)


@pytest.mark.parametrize("xml", [crawler(), CART, ARM], ids=["crawler", "cart", "arm"])
def test_other_robots_are_exact(tmp_path, xml):
    found = certificate(
        tmp_path, xml.replace("<mujoco>", '<mujoco><option cone="elliptic"/>') if "cone=" not in xml else xml
    )
    assert found.verdict == "exact"
    assert found.reward is None


def test_models_with_direction_target_and_sensors(tmp_path):
    found = certificate(tmp_path, crawler(), direction=(0, 1, 0), sensors=("gyro", "linvel", "touch"))
    assert found.verdict == "exact"
    assert found.fields["direction"].kind == "vector"
    for target in ("goal", (0.3, 0.1, 0.5)):
        found = certificate(tmp_path, ARM, cone="elliptic", target=target, limb="tip")
        assert found.verdict == "exact"
        assert "to_target" in found.fields


@pytest.mark.parametrize(
    ("xml", "cause"),
    [
        (crawler(cone="pyramidal"), "pyramidal friction cone"),
        (crawler(option='wind="4 0 0" density="1.2"'), "wind: wind of [4.0, 0.0, 0.0] m/s"),
        (crawler(option='gravity="0.3 0 -9.8"'), "tilted gravity"),
        (crawler(tilt='euler="0 3 0"'), "tilted floor: 'floor' is tilted by 3"),
        (
            crawler(world='<geom name="step" type="box" size=".05 2 .05" pos=".1 0 .05"/>'),
            "obstacles: fixed obstacles step",
        ),
        (
            crawler().replace('<freejoint name="root"/>', '<joint name="root" type="free" stiffness="30"/>'),
            "spring on the root",
        ),
    ],
)
def test_what_breaks_a_symmetry_is_named_and_proven(tmp_path, xml, cause):
    found = certificate(tmp_path, xml)
    assert found.dynamics.max > 1e-9
    assert found.verdict != "exact"
    assert any(
        sentence.startswith(cause) and "without it the worst error falls" in sentence for sentence in found.causes
    )


def test_a_solver_that_stops_early_is_named():
    """Conjugate gradients end where they began to: the humanoid's contacts then do not turn exactly."""

    def coarse():
        env = TaskEnv("humanoid_run", cone="elliptic")
        env.model.opt.solver = mujoco.mjtSolver.mjSOL_CG
        return env

    found = certify(coarse)
    assert found.verdict == "approximate"
    assert any(sentence.startswith("unconverged solver: solver CG") for sentence in found.causes)


def test_wind_without_air_and_damping_are_harmless(tmp_path):
    assert certificate(tmp_path, crawler(option='wind="4 0 0"')).verdict == "exact"
    assert certificate(tmp_path, crawler(option='density="1.2" viscosity="0.1" integrator="RK4"')).verdict == "exact"


def test_contacts_are_blamed_by_what_separates_bad_from_good():
    contacts = [
        frozenset({("capsule-plane", "leg-floor")}),
        frozenset({("capsule-plane", "leg-floor"), ("sphere-plane", "toe-floor")}),
    ]
    assert blamed_contacts(contacts, np.array([False, True])) == ["sphere-plane (such as toe-floor; 1 states)"]


def test_the_turned_twin_is_put_back():
    env, twin = TaskEnv("cheetah_run"), TaskEnv("cheetah_run")
    pair = Pair(env, twin)
    before = twin.model.body_quat.copy()
    rng = np.random.default_rng(0)
    pair.compare(sample_states(env, 2, rng), np.zeros((2, 6)), np.ones((2, 2)))
    np.testing.assert_array_equal(twin.model.body_quat, before)


def test_json_and_counts():
    found = certify(lambda: TaskEnv("reacher_hard"), states=6, yaws=2)
    stored = json.loads(json.dumps(found.to_json()))
    assert stored["task"] == "reacher_hard"
    assert stored["fields"]["to_target"]["kind"] == "vector"
    assert set(stored) >= {"task", "cone", "states", "yaws", "verdict", "dynamics", "reward", "fields"}
    assert set(stored["dynamics"]) >= {"median", "max"}
    with pytest.raises(EudaError, match="at least one state and one yaw"):
        certify(lambda: TaskEnv("reacher_hard"), states=0)


def test_heading_needs_a_joint_that_is_one(tmp_path):
    path, layout = write(tmp_path, ARM), Layout((Field("angle", Kind.HEADING),))
    with pytest.raises(EudaError, match="no unlimited hinge about the vertical"):
        certify(lambda: ModelEnv(path), layout=layout, observe=lambda env: env.data.qpos[:1].copy(), states=2)


def test_mujoco_is_really_turned():
    """An independent look: the twin's torso stands where a hand-made rotation matrix puts the original's."""
    pair = Pair(TaskEnv("walker_run", cone="elliptic"), TaskEnv("walker_run", cone="elliptic"))
    sample = sample_states(pair.env, 1, np.random.default_rng(0))
    pair.compare(sample, np.zeros((1, 6)), np.array([[0.9]]))
    c, s = np.cos(0.9), np.sin(0.9)
    np.testing.assert_allclose(
        pair.twin.data.xpos[1], np.array([[c, -s, 0], [s, c, 0], [0, 0, 1]]) @ pair.env.data.xpos[1], atol=1e-12
    )
    assert mujoco.mj_versionString() >= "3.17"


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
    assert cause.startswith("ties to the world: rope act between the robot and the world")


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
        (lambda env: np.array([np.nan]), "speed is not"),
        (lambda env: np.zeros(2), "describes 1 numbers"),
    ):
        with pytest.raises(EudaError, match=says):
            certify(lambda: TaskEnv("reacher_hard"), states=2, layout=layout, observe=observe)
