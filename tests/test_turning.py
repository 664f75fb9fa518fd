"""Turning rows of a batch in other people's loops: which, by how much, and what is refused."""

import numpy as np
import pytest
from simulated import assert_simulated, rollout
from turned_by_hand import turned_by_hand

import euda
from euda import Field, Kind, Layout
from euda.errors import EudaError, LayoutError
from euda.replay.batches import Turner, check_actions, check_fit, spread
from euda.testing import random_observations

LAYOUT = Layout(tuple(Field(kind.value, kind, 2) for kind in Kind))


@pytest.mark.parametrize("size", [0, 1, 7, 256])
@pytest.mark.parametrize("share", [0.0, 0.1, 0.5, 0.99, 1.0])
def test_exactly_the_rounded_share_is_chosen(size, share):
    rows = spread(size, share)
    assert len(set(rows.tolist())) == round(share * size)
    assert all(0 <= row < size for row in rows)


@pytest.mark.parametrize(("share", "batch"), [(0.5, 256), (0.25, 64), (0.3, 100)])
def test_batches_drawn_at_once_and_cut_apart_get_their_share_each(share, batch):
    rows = spread(8 * batch, share)
    assert np.bincount(rows // batch, minlength=8).tolist() == [round(share * batch)] * 8


def test_rows_turn_by_yaws_of_their_own_and_the_rest_stays():
    rng = np.random.default_rng(0)
    before, after = (random_observations(LAYOUT, 12, rng) for _ in range(2))
    given = before.copy(), after.copy()
    turned = Turner(LAYOUT, 0.5, np.random.default_rng(7)).turn(before, after)
    rows, yaws = spread(12, 0.5), np.random.default_rng(7).uniform(-np.pi, np.pi, 6)
    for array, result in zip(given, turned, strict=True):
        expected = array.copy()
        expected[rows] = [turned_by_hand(LAYOUT, x, yaw) for x, yaw in zip(array[rows], yaws, strict=True)]
        np.testing.assert_allclose(result, expected, atol=1e-12)
    assert np.array_equal(before, given[0])
    assert np.array_equal(after, given[1])


def test_a_sequence_has_one_yaw():
    x = random_observations(LAYOUT, 8, np.random.default_rng(0)).reshape(2, 4, LAYOUT.dim)
    (turned,) = Turner(LAYOUT, 1.0, np.random.default_rng(3)).turn(x)
    yaws = np.random.default_rng(3).uniform(-np.pi, np.pi, 2)
    for sequence, result, yaw in zip(x, turned, yaws, strict=True):
        np.testing.assert_allclose(result, LAYOUT.rotate(sequence, yaw), atol=1e-12)


@pytest.mark.parametrize("yaws", [True, False])
def test_mirrored_rows_with_their_actions_are_what_the_simulator_does(yaws):
    env = euda.make("walker3d_run", seed=0)
    identity, mirror = euda.symmetries(env.model)
    states, (s, a, r, following) = rollout(env, 20)
    turner = Turner(env.layout, 1.0, np.random.default_rng(0), [mirror], yaws)
    s_image, following_image, a_image = turner.turn(s, following, actions=[a])
    changed = s_image, a_image, r, following_image
    kinds = assert_simulated(env, [identity, mirror], states, (s, a, r, following), changed, yaws=yaws)
    assert set(kinds) == {False, True}
    half = Turner(env.layout, 0.5, np.random.default_rng(0), [mirror], yaws).turn(s, actions=[a])
    rest = np.setdiff1d(np.arange(20), spread(20, 0.5))
    assert all(np.array_equal(old[rest], new[rest]) for old, new in zip((s, a), half, strict=True))


def test_elements_that_are_none_or_of_another_robot_are_refused():
    layout, rng = euda.make("walker_run").layout, np.random.default_rng(0)
    mirror = euda.symmetries(euda.make("walker_run").model).elements[1]
    with pytest.raises(EudaError, match=r"elements are a list, not Element: take those of euda.task_symmetries"):
        Turner(layout, 0.5, rng, mirror)
    with pytest.raises(EudaError, match=r"'mirror' is no element of a symmetry group: .*euda.task_symmetries"):
        Turner(layout, 0.5, rng, ["mirror"])
    with pytest.raises(EudaError, match="actions have 3 numbers, but the elements act on 6 actuators"):
        check_actions([mirror], 3)
    with pytest.raises(EudaError, match="cannot be derived"):
        Turner(LAYOUT, 0.5, rng, [mirror])
    assert Turner(layout, 0.5, rng, (), yaws=False).is_idle


@pytest.mark.parametrize("share", [-0.1, 1.5, float("nan"), "half", None, True])
def test_a_share_outside_is_refused(share):
    with pytest.raises(EudaError, match="share must be between 0 and 1"):
        Turner(LAYOUT, share, np.random.default_rng(0))


@pytest.mark.parametrize("layout", [None, "limb", 24])
def test_no_layout_is_refused(layout):
    with pytest.raises(LayoutError, match="get_wrapper_attr"):
        Turner(layout, 0.5, np.random.default_rng(0))


@pytest.mark.parametrize(
    ("shape", "dtype", "sentence"),
    [
        ((LAYOUT.dim + 1,), np.float32, f"describes {LAYOUT.dim} numbers, but observations have {LAYOUT.dim + 1}"),
        ((3 * LAYOUT.dim,), np.float32, rf"look like 3 stacked frames of {LAYOUT.dim}: .* layout.stacked\(3\)"),
        ((84, 84, 3), np.uint8, "or frames of them, not arrays of shape"),
        ((), np.float32, "or frames of them, not arrays of shape"),
        ((LAYOUT.dim,), np.uint8, "floating point numbers, not uint8"),
    ],
)
def test_observations_that_do_not_fit_are_refused(shape, dtype, sentence):
    with pytest.raises(LayoutError, match=sentence):
        check_fit(LAYOUT, shape, np.dtype(dtype))
    check_fit(LAYOUT, (LAYOUT.dim,), np.dtype(np.float64))
