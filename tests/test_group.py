"""Group axioms of the elements, on what they relabel and on states."""

import functools

import hypothesis.strategies as st
import mujoco
import numpy as np
import pytest
from hypothesis import given, settings
from symmetric_robots import crane, drone, rower, star, tendon_arm

import euda
from euda.errors import EudaError
from euda.symmetry.element import PARTS
from euda.symmetry.images import NOWHERE, Images

MODELS = {
    "star of 5": lambda: star(5),
    "star on balls, turned": lambda: star(4, turned=30, joint="ball"),
    "frames askew": lambda: star(4, askew=25),
    "mounted, loose cube": crane,
    "tendons": tendon_arm,
    "closed loops": rower,
    "one body": drone,
    "quadruped": lambda: euda.make("quadruped_run").model,
}


@functools.cache
def model_of(name: str) -> mujoco.MjModel:
    return MODELS[name]()


@functools.cache
def group_of(name: str):
    return euda.symmetries(model_of(name))


def random_state(model: mujoco.MjModel, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    qpos = model.qpos0.copy()
    mujoco.mj_integratePos(model, qpos, rng.standard_normal(model.nv), 1.0)
    return qpos, rng.standard_normal(model.nv)


def same_position(model: mujoco.MjModel, one: np.ndarray, other: np.ndarray) -> float:
    apart = np.empty(model.nv)
    mujoco.mj_differentiatePos(model, apart, 1.0, one, other)
    return float(np.abs(apart).max())


@pytest.mark.parametrize("name", MODELS)
def test_groups_are_closed_with_identity_and_inverses(name):
    group = group_of(name)
    assert group.elements[0].is_identity
    assert not any(element.is_identity for element in group.elements[1:])
    everyone = set(range(group.order))
    assert all(set(row) == everyone for row in group.table)  # a Latin square: every equation has one solution
    assert all(set(column) == everyone for column in group.table.T)
    for i in everyone:
        assert group.product(i, group.inverse(i)) == group.product(group.inverse(i), i) == 0


@pytest.mark.parametrize("name", MODELS)
def test_every_part_composes_as_the_elements_do(name):
    group = group_of(name)
    for i, second in enumerate(group):
        for k, first in enumerate(group):
            product, known = second @ first, group.elements[group.product(i, k)]
            assert product.is_alike(known, tuple(part for part in PARTS if part != "sensors"))
            assert product.sensors.image.tolist() == known.sensors.image.tolist()
            read = known.sensors.image != NOWHERE
            for one, other in zip(product.sensors.matrix[read], known.sensors.matrix[read], strict=True):
                assert min(np.abs(one - other).max(), np.abs(one + other).max()) < 1e-9  # a quaternion has two signs


@settings(max_examples=40, deadline=None)
@given(name=st.sampled_from(sorted(MODELS)), data=st.data(), seed=st.integers(0, 2**32 - 1))
def test_acting_twice_is_acting_with_the_product(name, data, seed):
    group, model = group_of(name), model_of(name)
    pick = st.integers(0, group.order - 1)
    yaws = st.floats(-np.pi, np.pi)
    first = group.elements[data.draw(pick)].turned(data.draw(yaws))
    second = group.elements[data.draw(pick)].turned(data.draw(yaws))
    qpos, qvel = random_state(model, np.random.default_rng(seed))
    middle = first.positions(qpos)
    both = second @ first
    assert same_position(model, second.positions(middle), both.positions(qpos)) < 1e-9
    twice = second.velocities(middle, first.velocities(qpos, qvel))
    np.testing.assert_allclose(twice, both.velocities(qpos, qvel), atol=1e-9)
    pulled = second.accelerations(
        middle, first.velocities(qpos, qvel), first.accelerations(qpos, qvel, qvel[::-1].copy())
    )
    np.testing.assert_allclose(pulled, both.accelerations(qpos, qvel, qvel[::-1].copy()), atol=1e-8)
    action = np.random.default_rng(seed).uniform(-1, 1, (3, model.nu))
    np.testing.assert_array_equal(second.action(first.action(action)), both.action(action))


@settings(max_examples=30, deadline=None)
@given(name=st.sampled_from(sorted(MODELS)), data=st.data(), seed=st.integers(0, 2**32 - 1))
def test_the_inverse_undoes(name, data, seed):
    group, model = group_of(name), model_of(name)
    element = group.elements[data.draw(st.integers(0, group.order - 1))].turned(data.draw(st.floats(-np.pi, np.pi)))
    qpos, qvel = random_state(model, np.random.default_rng(seed))
    image = element.positions(qpos)
    assert same_position(model, element.inverse().positions(image), qpos) < 1e-9
    back = element.inverse().velocities(image, element.velocities(qpos, qvel))
    np.testing.assert_allclose(back, qvel, atol=1e-9)


@pytest.mark.parametrize("name", MODELS)
def test_velocities_are_the_derivatives_of_positions(name):
    """What says that both actions belong together: a state that moves on, then goes to its image, and vice versa."""
    model = model_of(name)
    qpos, qvel = random_state(model, np.random.default_rng(1))
    step = 1e-6
    for element in group_of(name):
        later, image = qpos.copy(), element.positions(qpos)
        mujoco.mj_integratePos(model, later, qvel, step)
        moved = np.empty(model.nv)
        mujoco.mj_differentiatePos(model, moved, step, image, element.positions(later))
        np.testing.assert_allclose(moved, element.velocities(qpos, qvel), atol=1e-4)


def test_mirrors_and_turns_of_the_world_agree_in_handedness():
    for name in MODELS:
        for element in group_of(name):
            assert np.linalg.det(element.world) == pytest.approx(-1 if element.is_mirror else 1)
            np.testing.assert_allclose(np.linalg.det(element.bodies.matrix), np.linalg.det(element.world), atol=1e-9)
            np.testing.assert_allclose(element.world[2], [0, 0, 1], atol=1e-12)


def test_images_pass_on_what_has_no_image():
    swap = Images(np.array([1, 0, NOWHERE]), np.array([[[2.0]], [[1.0]], [[1.0]]]), np.array([[1.0], [0.0], [5.0]]))
    np.testing.assert_array_equal(swap.numbers(np.array([10.0, 20.0, 30.0])), [20.0, 21.0, 0.0])
    assert (swap @ swap).image.tolist() == [0, 1, NOWHERE]
    assert swap.inverse().image.tolist() == [1, 0, NOWHERE]


def test_an_element_of_another_robot_is_refused():
    with pytest.raises(EudaError, match="not an element of this group"):
        group_of("star of 5").index(euda.symmetries(star(5, chiral=True)).elements[1].turned(0.3))
