"""Turning rows of a batch in other people's loops: which, by how much, and what is refused."""

import numpy as np
import pytest
from turned_by_hand import turned_by_hand

from euda import Field, Kind, Layout
from euda.errors import EudaError, LayoutError
from euda.replay.turning import Turner, check_fit, spread
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
    rows, yaws = spread(12, 0.5), np.random.default_rng(7).uniform(0, 2 * np.pi, 6)
    for array, result in zip(given, turned, strict=True):
        expected = array.copy()
        expected[rows] = [turned_by_hand(LAYOUT, x, yaw) for x, yaw in zip(array[rows], yaws, strict=True)]
        np.testing.assert_allclose(result, expected, atol=1e-12)
    assert np.array_equal(before, given[0])
    assert np.array_equal(after, given[1])


def test_a_sequence_has_one_yaw():
    x = random_observations(LAYOUT, 8, np.random.default_rng(0)).reshape(2, 4, LAYOUT.dim)
    (turned,) = Turner(LAYOUT, 1.0, np.random.default_rng(3)).turn(x)
    yaws = np.random.default_rng(3).uniform(0, 2 * np.pi, 2)
    for sequence, result, yaw in zip(x, turned, yaws, strict=True):
        np.testing.assert_allclose(result, LAYOUT.rotate(sequence, yaw), atol=1e-12)


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
        ((3 * LAYOUT.dim,), np.float32, f"look like 3 stacked frames of {LAYOUT.dim}: leave the stacking out"),
        ((4, LAYOUT.dim), np.float32, f"are 4 stacked frames of {LAYOUT.dim} numbers: leave the stacking out"),
        ((84, 84, 3), np.uint8, "flat observations"),
        ((), np.float32, "flat observations"),
        ((LAYOUT.dim,), np.uint8, "floating point numbers, not uint8"),
    ],
)
def test_observations_that_do_not_fit_are_refused(shape, dtype, sentence):
    with pytest.raises(LayoutError, match=sentence):
        check_fit(LAYOUT, shape, np.dtype(dtype))
    check_fit(LAYOUT, (LAYOUT.dim,), np.dtype(np.float64))
