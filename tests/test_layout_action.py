"""What elements do to observations and actions: from what each entry reads, against what the simulator observes."""

import functools
import types

import hypothesis.strategies as st
import jax.numpy as jnp
import mujoco
import numpy as np
import pytest
from hypothesis import given, settings
from symmetric_robots import rower, star, tendon_arm

import euda
from euda.body.features import Senses, observer
from euda.body.field import Field, Kind
from euda.body.layout import Layout
from euda.body.robot import describe
from euda.body.sensors import read
from euda.errors import LayoutError
from euda.symmetry.fitting import fit, with_fits
from euda.symmetry.observations import underivable

FEATURES = ("limb", "limb-paper", "joint")
NEAR = {"mirror across 135°", "mirror across 45°", "turn by 90° about z", "turn by 90° about -z"}  # of the quadruped


@functools.cache
def env_of(task: str, features: str):
    return euda.make(task, features=features, cone="elliptic", seed=0)


@functools.cache
def group_of(task: str):
    return euda.symmetries(euda.make(task, cone="elliptic").model)


def observations(env, element, count: int = 3, seed: int = 0):
    """Observations of states from a rollout, and of the images of these states: both [count, dim]."""
    rng, pairs = np.random.default_rng(seed), []
    env.reset(seed=seed)
    places = env.model.body_pos.copy(), env.model.body_quat.copy()
    for _ in range(count):
        for _ in range(8):
            env.step(rng.uniform(-1, 1, env.model.nu))
        state = env.get_state()
        mujoco.mj_forward(env.model, env.data)
        original = env.observer.observe_exactly()
        element.apply(env.robot)
        mujoco.mj_forward(env.model, env.data)
        pairs.append((original, env.observer.observe_exactly()))
        env.model.body_pos[:], env.model.body_quat[:] = places
        env.set_state(state)
    return (np.array(side) for side in zip(*pairs, strict=True))


@pytest.mark.parametrize("features", FEATURES)
@pytest.mark.parametrize("task", sorted(euda.TASKS))
def test_observing_the_image_is_the_image_of_the_observation(task, features):
    env = env_of(task, features)
    for number, element in enumerate(group_of(task)):
        # A mounted robot with a HEADING among its features turns by its own joint, which is another question.
        turns = env.morphology.base == "free" or features != "joint"
        turned = element.turned(0.7) if turns else element
        original, image = observations(env, turned, seed=number)
        found = env.layout.act(turned, original)
        for field in env.layout:
            where = env.layout.slices[field.name]
            felt = {"force", "torque", "acceleration", "imu", "force_torque"}  # what inertia decides
            if element.name in NEAR and field.name in felt:
                continue
            scale = max(1.0, np.abs(image[:, where]).max())
            assert np.abs(found[:, where] - image[:, where]).max() < 1e-8 * scale, (element.name, field.name)


def test_a_wrong_sign_is_seen():
    env, mirror = env_of("hopper3d_hop", "limb"), group_of("hopper3d_hop").elements[1]
    original, image = observations(env, mirror)
    wrong = env.layout.act(mirror, original) * np.where(np.arange(env.layout.dim) == 9, -1, 1)
    assert np.abs(wrong - image).max() > 1e-3


BUILT = {"rower": rower, "star": lambda: star(3), "balls": lambda: star(4, joint="ball"), "tendons": tendon_arm}


def sensors_of(name: str) -> list:
    if name != "rower":
        return []
    pairs = [("forces", ("left_force", "right_force")), ("torques", ("left_torque", "right_torque")),
             ("quats", ("left_quat", "right_quat")), ("pulls", ("left_pull", "right_pull")),
             ("angles", ("left_angle", "right_angle")), ("touches", ("left_touch", "right_touch"))]  # fmt: skip
    singles = [("gyro", ("gyro",)), ("speed", ("speed",)), ("momentum", ("momentum",))]
    return [read(field, *names) for field, names in [*pairs, *singles]]


@pytest.mark.parametrize("features", ["limb", "joint"])
@pytest.mark.parametrize("name", BUILT)
def test_robots_with_frames_of_their_own(name, features):
    """Columns of skew frames mix, ball joints have quaternions, sensors sit askew, references are not zero."""
    model = BUILT[name]()
    group = euda.symmetries(model)
    data = mujoco.MjData(model)
    robot = describe(model, data, allow_loops=True)
    watch = observer(robot, features, Senses(sensory=tuple(sensors_of(name))))
    rng = np.random.default_rng(0)
    for element in group:
        mujoco.mj_resetData(model, data)
        mujoco.mj_integratePos(model, data.qpos, 0.3 * rng.standard_normal(model.nv), 1.0)
        data.qvel[:], data.ctrl[:] = rng.standard_normal(model.nv), rng.uniform(0, 1, model.nu)
        mujoco.mj_forward(model, data)
        original = watch.observe_exactly()
        element.apply(robot)
        mujoco.mj_forward(model, data)
        image = watch.observe_exactly()
        np.testing.assert_allclose(
            watch.layout.act(element, original), image, rtol=1e-7, atol=1e-7, err_msg=element.name
        )
    if (name, features) == ("star", "limb"):  # a third of a turn mixes the axes of its frames
        assert not all(element.on_observations(watch.layout).is_signed_permutation for element in group)


def test_on_the_tasks_entries_only_change_place_and_sign():
    for task in euda.TASKS:
        for features in FEATURES:
            layout = env_of(task, features).layout
            assert all(element.on_observations(layout).is_signed_permutation for element in group_of(task))


# -- algebra ---------------------------------------------------------------------------------------------


@settings(max_examples=40, deadline=None)
@given(
    task=st.sampled_from(["quadruped_run", "walker3d_run", "reacher_hard"]),
    features=st.sampled_from(FEATURES),
    data=st.data(),
    seed=st.integers(0, 2**32 - 1),
)
def test_layouts_carry_a_representation(task, features, data, seed):
    group, layout = group_of(task), env_of(task, features).layout
    pick = st.integers(0, group.order - 1)
    i, k = data.draw(pick), data.draw(pick)
    x = layout.canonical(np.random.default_rng(seed).standard_normal((2, 3, layout.dim)))
    both = layout.act(group.elements[group.product(i, k)], x)
    np.testing.assert_allclose(layout.act(group.elements[i], layout.act(group.elements[k], x)), both, atol=1e-9)
    back = layout.act(group.elements[group.inverse(i)], layout.act(group.elements[i], x))
    np.testing.assert_allclose(back, x, atol=1e-9)
    np.testing.assert_array_equal(layout.act(group.elements[0], x), x)
    yaw = data.draw(st.floats(-3, 3))
    turned = layout.rotate(layout.act(group.elements[i], x), yaw)
    np.testing.assert_allclose(layout.act(group.elements[i].turned(yaw), x), turned, atol=1e-9)


def test_arrays_of_other_libraries():
    env, mirror = env_of("walker3d_run", "limb"), group_of("walker3d_run").elements[1]
    x = np.random.default_rng(0).standard_normal((4, 5, env.layout.dim)).astype(np.float32)
    a = np.random.default_rng(1).standard_normal((4, 5, env.actions.dim)).astype(np.float32)
    images = env.layout.act(mirror, jnp.asarray(x)), env.actions.act(mirror, jnp.asarray(a))
    assert all(isinstance(image, jnp.ndarray) and image.dtype == jnp.float32 for image in images)
    np.testing.assert_array_equal(images[0], env.layout.act(mirror, x))
    np.testing.assert_array_equal(images[1], env.actions.act(mirror, a))
    np.testing.assert_array_equal(env.actions.act(mirror, a[0, 0]), mirror.action(a[0, 0]))


@pytest.mark.parametrize("bad", [np.zeros(5), np.zeros(()), np.zeros(18, int), [0.0] * 18])
def test_bad_actions_are_refused(bad):
    env, mirror = env_of("walker3d_run", "limb"), group_of("walker3d_run").elements[1]
    with pytest.raises(LayoutError, match="action"):
        env.actions.act(mirror, bad)


# -- fields that say nothing -----------------------------------------------------------------------------


def test_the_image_of_a_sensor_may_be_another_field():
    """As --sensors gives every sensor a field of its own: the left foot's becomes the right foot's."""
    model = rower()
    mirror, data = euda.symmetries(model).elements[1], mujoco.MjData(model)
    robot = describe(model, data, allow_loops=True)

    def watched(*fields: tuple[str, ...]):
        senses = Senses(sensory=tuple(read("_".join(names), *names) for names in fields))
        return observer(robot, "limb", senses)

    names = ["left_force", "right_torque", "right_force", "gyro", "left_torque", "left_quat", "right_quat"]
    apart, together = watched(*((name,) for name in names)), watched(("left_force", "right_force"))
    data.qvel[:] = np.random.default_rng(0).standard_normal(model.nv)
    mujoco.mj_forward(model, data)
    original, both = apart.observe_exactly(), together.observe_exactly()
    scene = types.SimpleNamespace(model=model, data=data, target=None, direction=None)
    mirror.apply(scene)
    mujoco.mj_forward(model, data)
    np.testing.assert_allclose(apart.layout.act(mirror, original), apart.observe_exactly(), atol=1e-8)
    np.testing.assert_allclose(apart.layout.act(mirror, apart.layout.act(mirror, original)), original, atol=1e-9)
    np.testing.assert_allclose(together.layout.act(mirror, both), together.observe_exactly(), atol=1e-8)
    for fields, strange in (
        ([("left_force",)], "left_force"),
        ([("left_force",), ("left_force", "right_force")], "left_force"),  # which holds its own image
    ):
        layout = watched(*fields).layout
        assert set(underivable(mirror, layout)) == {strange}
        with pytest.raises(LayoutError, match="nothing reads its image, sensor"):
            layout.act(mirror, np.zeros(layout.dim))


def test_a_field_that_says_nothing_is_named_and_fitted():
    env, mirror = env_of("hopper3d_hop", "limb"), group_of("hopper3d_hop").elements[1]
    fields = [Field(f.name, f.kind, f.count, f.of) if f.name == "velocity" else f for f in env.layout]
    layout = Layout((*fields, Field("luck", Kind.SCALAR)))
    with pytest.raises(LayoutError, match="'velocity' cannot be derived: nothing says what it reads"):
        layout.act(mirror, np.zeros(layout.dim))
    assert set(underivable(mirror, layout)) == {"velocity", "luck"}
    originals, images = observations(env, mirror, count=40)
    luck = np.random.default_rng(0).standard_normal((2, 40, 1))
    originals, images = (
        np.concatenate([side, own], axis=1) for side, own in zip((originals, images), luck, strict=True)
    )
    fits = fit(mirror, layout, originals, images)
    assert fits["velocity"].follows
    assert fits["velocity"].words == "5 change sign"
    assert not fits["luck"].follows
    with pytest.raises(LayoutError, match="'luck' does not follow 'mirror left-right'"):
        with_fits(mirror, fits)
    del fits["luck"]
    known = Layout(tuple(fields))
    image = known.act(with_fits(mirror, fits), originals[:, :-1])
    np.testing.assert_allclose(image, images[:, :-1], atol=1e-9)


def test_too_few_pairs_are_refused():
    layout = Layout((Field("own", Kind.SCALAR, 9),))
    with pytest.raises(LayoutError, match="at least 20 pairs"):
        fit(group_of("walker_run").elements[1], layout, np.zeros((5, 9)), np.zeros((5, 9)))


def test_a_frame_that_does_not_go_to_its_image_is_refused():
    """Where a frame is drawn elsewhere on the other side, its origin does not follow; the centre of mass does."""
    model = star(4, askew=25)
    model.body_pos[model.body("shin1").id] += [0.01, 0, 0]
    model.jnt_pos[model.joint("knee1").id] -= [0.01, 0, 0]
    model.geom_pos[model.geom("shin1").id] -= [0.01, 0, 0]
    model.body_ipos[model.body("shin1").id] -= [0.01, 0, 0]
    robot = describe(model, mujoco.MjData(model))
    element = next(e for e in euda.symmetries(model) if e.name == "turn by 90° about z")
    assert underivable(element, observer(robot, "limb").layout) == {}
    assert "position" in underivable(element, observer(robot, "limb-paper").layout)
