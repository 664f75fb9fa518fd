"""The algebra of layouts: group axioms, shapes, refusals, printing."""

import json
import math

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from euda import Field, Kind, Layout
from euda.errors import LayoutError
from euda.testing import assert_equivariant, random_observations

LAYOUT = Layout(
    (
        Field("velocity", Kind.VECTOR, 2, ("torso", "foot"), unit="m/s"),
        Field("height", Kind.SCALAR),
        Field("orientation", Kind.QUATERNION),
        Field("to_target", Kind.PLANAR),
        Field("heading", Kind.HEADING),
        Field("gyro", Kind.SCALAR, 3, frame="body"),
    )
)
yaws = st.floats(-10, 10, allow_nan=False)
layouts = st.lists(st.tuples(st.sampled_from(Kind), st.integers(1, 3)), min_size=1, max_size=6).map(
    lambda rows: Layout(tuple(Field(f"f{i}", kind, count) for i, (kind, count) in enumerate(rows)))
)
seeds = st.integers(0, 2**32 - 1)


def close(layout, a, b, tolerance=1e-9):
    """Equal up to rounding, which may jump from one end of a heading's or quaternion's range to the other."""
    a, b = np.asarray(a, np.float64), np.asarray(b, np.float64)
    difference = np.abs(a - b)
    for field in layout:
        where = layout.slice(field.name)
        if field.kind is Kind.HEADING:
            difference[..., where] = np.abs((a - b + np.pi) % (2 * np.pi) - np.pi)[..., where]
        if field.kind is Kind.QUATERNION:
            pair = [x[..., where].reshape(*x.shape[:-1], field.count, 4) for x in (a, b)]
            edge = np.abs(pair[0][..., :1]) < tolerance
            mirrored = np.where(
                edge, np.minimum(np.abs(pair[0] - pair[1]), np.abs(pair[0] + pair[1])), pair[0] - pair[1]
            )
            difference[..., where] = np.abs(mirrored).reshape(difference[..., where].shape)
    return difference.max() < tolerance


@given(layouts, seeds, yaws, yaws)
def test_yaws_form_a_group(layout, seed, a, b):
    x = random_observations(layout, 3, np.random.default_rng(seed))
    assert np.array_equal(layout.rotate(x, 0.0), x)
    assert close(layout, layout.rotate(layout.rotate(x, a), b), layout.rotate(x, a + b))
    assert close(layout, layout.rotate(layout.rotate(x, a), -a), x)
    assert close(layout, layout.rotate(x, 2 * math.pi), x)


@given(layouts, seeds, yaws)
def test_norms_and_scalars_stay(layout, seed, yaw):
    x = random_observations(layout, 4, np.random.default_rng(seed))
    y = layout.rotate(x, yaw)
    for field in layout:
        a, b = x[:, layout.slice(field.name)], y[:, layout.slice(field.name)]
        if field.kind is Kind.SCALAR:
            assert np.array_equal(a, b)
        elif field.kind is not Kind.HEADING:
            norms = [np.linalg.norm(v.reshape(4, field.count, -1), axis=-1) for v in (a, b)]
            np.testing.assert_allclose(*norms, rtol=1e-12)


def test_each_kind_turns_as_physics_says():
    """Against independent formulas: rotation matrix, complex number, quaternion product, addition."""
    rng = np.random.default_rng(0)
    x, yaw = random_observations(LAYOUT, 1, rng)[0], 0.7
    y = LAYOUT.rotate(x, yaw)
    c, s = math.cos(yaw), math.sin(yaw)
    matrix = np.array([[c, -s, 0], [s, c, 0], [0, 0, 1]])
    np.testing.assert_allclose(
        y[LAYOUT.slice("velocity")].reshape(2, 3), x[LAYOUT.slice("velocity")].reshape(2, 3) @ matrix.T
    )
    planar = complex(*x[LAYOUT.slice("to_target")]) * np.exp(1j * yaw)
    np.testing.assert_allclose(y[LAYOUT.slice("to_target")], [planar.real, planar.imag])
    (heading,) = y[LAYOUT.slice("heading")]
    assert math.isclose(math.cos(heading), math.cos(x[LAYOUT.slice("heading")][0] + yaw), abs_tol=1e-12)
    assert -math.pi <= heading < math.pi
    w, i, j, k = x[LAYOUT.slice("orientation")]
    p, q = math.cos(yaw / 2), math.sin(yaw / 2)
    product = np.array([p * w - q * k, p * i - q * j, p * j + q * i, p * k + q * w])
    np.testing.assert_allclose(y[LAYOUT.slice("orientation")], np.sign(product[0]) * product)


@given(layouts, seeds, yaws, st.sampled_from([np.float32, np.float64]))
def test_one_choice_among_numbers_that_say_the_same(layout, seed, yaw, dtype):
    """Angles any number of turns on and quaternions of either sign become one observation, whichever is turned."""
    rng = np.random.default_rng(seed)
    x = random_observations(layout, 4, rng).astype(dtype)
    other = x.copy()
    for field in layout:
        where = layout.slice(field.name)
        if field.kind is Kind.HEADING:
            other[:, where] += 2 * np.pi * rng.integers(-3, 4, (4, field.dim))
        if field.kind is Kind.QUATERNION:
            other[:, where] *= np.repeat(rng.choice([-1, 1], (4, field.count)), 4, axis=1)
    chosen = layout.canonical(other)
    assert np.array_equal(layout.canonical(x), x)
    assert np.array_equal(layout.canonical(chosen), chosen)
    assert close(layout, chosen, x, 1e-4 if dtype is np.float32 else 1e-9)
    for y in (chosen, layout.rotate(other, yaw)):
        for field in layout:
            values = y[:, layout.slice(field.name)].reshape(4, field.count, field.kind.width)
            if field.kind is Kind.HEADING:
                assert ((dtype(-np.pi) <= values) & (values < dtype(np.pi))).all()
            if field.kind is Kind.QUATERNION:
                assert (values[..., 0] >= 0).all()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_headings_at_the_ends_of_their_range(dtype):
    """Rounding leaves no angle outside of the range, and none that is inside is moved."""
    layout, edges = Layout((Field("h", Kind.HEADING),)), [dtype(k * np.pi) for k in (-3, -1, 1, 3)]
    near = [x for e in edges for x in (np.nextafter(e, dtype(-9)), e, np.nextafter(e, dtype(9)))]
    x = np.array([*near, 0, 1e-30, -1e-30], dtype)[:, None]
    y = layout.canonical(x)
    inside = (x >= dtype(-np.pi)) & (x < dtype(np.pi))
    assert ((y >= dtype(-np.pi)) & (y < dtype(np.pi))).all()
    assert np.array_equal(y[inside], x[inside])
    assert np.array_equal(layout.canonical(y), y)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("shape", [(), (5,), (2, 3), (0,), (2, 1, 4)])
def test_numpy_and_jax_agree_in_any_batch_shape(dtype, shape):
    rng = np.random.default_rng(1)
    x = random_observations(LAYOUT, math.prod(shape), rng).reshape(*shape, LAYOUT.dim).astype(dtype)
    yaw = rng.uniform(-3, 3, shape)
    expected = LAYOUT.rotate(x, yaw)
    assert (expected.shape, expected.dtype) == (x.shape, x.dtype)
    with jax.enable_x64(dtype == "float64"):
        turned = LAYOUT.rotate(jnp.asarray(x), jnp.asarray(yaw, dtype))
        compiled = jax.jit(LAYOUT.rotate)(jnp.asarray(x), jnp.asarray(yaw, dtype))
        assert (turned.shape, turned.dtype) == (x.shape, x.dtype)
        tolerance = 1e-5 if dtype == "float32" else 1e-12
        if expected.size:
            assert close(LAYOUT, turned, expected, tolerance)
            assert close(LAYOUT, compiled, expected, tolerance)


def test_one_yaw_for_many_observations():
    x = random_observations(LAYOUT, 6, np.random.default_rng(2))
    np.testing.assert_array_equal(LAYOUT.rotate(x, 0.3), LAYOUT.rotate(x, np.full(6, 0.3)))


def test_input_is_not_changed():
    x = random_observations(LAYOUT, 6, np.random.default_rng(2))
    before = x.copy()
    LAYOUT.rotate(x, 1.0)
    np.testing.assert_array_equal(x, before)


def test_offsets_are_derived():
    assert [(f.name, LAYOUT.slice(f.name).start, f.dim) for f in LAYOUT] == [
        ("velocity", 0, 6), ("height", 6, 1), ("orientation", 7, 4), ("to_target", 11, 2), ("heading", 13, 1),
        ("gyro", 14, 3),
    ]  # fmt: skip
    assert LAYOUT.dim == 17 == len(LAYOUT.entry_names())
    assert LAYOUT.entry_names()[5] == "velocity[foot].z"


def test_hashable_printable_and_json():
    same = Layout.from_json(json.loads(json.dumps(LAYOUT.to_json())))
    assert same == LAYOUT
    assert hash(same) == hash(LAYOUT)
    assert {LAYOUT: 1}[same] == 1
    assert str(LAYOUT).splitlines()[1].split() == ["velocity", "vector", "2", "0:6", "world", "m/s", "torso", "foot"]
    assert str(LAYOUT).endswith("17 numbers in 6 fields")


@pytest.mark.parametrize(
    ("broken", "says"),
    [
        (lambda: Field("gyro", Kind.VECTOR, frame="body"), "SCALAR with count 3"),
        (lambda: Field("q", Kind.QUATERNION, frame="body"), "SCALAR with count 4"),
        (lambda: Field("a b", Kind.SCALAR), "without spaces"),
        (lambda: Field("a", Kind.SCALAR, 0), "at least 1"),
        (lambda: Field("a", Kind.VECTOR, 2, ("x",)), "2 elements but 1 names"),
        (lambda: Field("a", "vector"), "valid are VECTOR"),
        (lambda: Layout(()), "at least one"),
        (lambda: Layout((Field("a", Kind.SCALAR), Field("a", Kind.VECTOR))), "'a' appears 2 times"),
        (lambda: LAYOUT.slice("speed"), "fields are velocity"),
        (lambda: LAYOUT.rotate(np.zeros(16), 0.1), "size 17"),
        (lambda: LAYOUT.rotate(np.zeros(17, int), 0.1), "floating point numbers, not int"),
        (lambda: LAYOUT.rotate([0.0] * 17, 0.1), "not list"),
        (lambda: LAYOUT.rotate(np.zeros(17), np.nan), "yaws must be finite, not nan"),
        (lambda: LAYOUT.rotate(np.full((2, 17), np.nan), 0.1), r"entries are not: velocity\[.*, …$"),
        (lambda: LAYOUT.rotate(np.array([*[0.0] * 16, np.inf]), 0.1), r"entries are not: gyro.*$"),
        (lambda: LAYOUT.rotate(np.zeros((2, 17)), np.array([0.1, -np.inf])), "yaws must be finite, not -inf"),
        (lambda: LAYOUT.rotate(np.zeros((2, 17)), [0.1, 0.2, 0.3]), r"shape \(3,\) do not fit a batch of shape \(2,\)"),
        (lambda: LAYOUT.rotate(np.zeros(17), [0.1, 0.2]), r"shape \(2,\) do not fit a batch of shape \(\)"),
        (lambda: LAYOUT.rotate(jnp.zeros((2, 17)), jnp.zeros((2, 1))), r"shape \(2, 1\) do not fit"),
        (lambda: LAYOUT.rotate(np.zeros(17), "north"), "a number of radians, not 'north'"),
        (lambda: Layout.from_json([{"name": "a", "kind": "tensor"}]), "unknown kind 'tensor'"),
        (lambda: Layout.from_json([{"name": "a"}]), "name and kind"),
    ],
)
def test_refusals_say_what_is_wrong(broken, says):
    with pytest.raises(LayoutError, match=says):
        broken()


def test_turns_tells_no_ops():
    assert LAYOUT.turns
    assert not Layout((Field("q", Kind.SCALAR, 9),)).turns
    assert Layout((Field("h", Kind.HEADING),)).turns


VECTORS = Layout((Field("a", Kind.VECTOR), Field("b", Kind.VECTOR)))


@pytest.mark.parametrize(
    ("function", "output"),
    [
        (lambda x: (x[:, :3] * x[:, 3:]).sum(-1), None),
        (lambda x: np.cross(x[:, :3], x[:, 3:]), Layout((Field("c", Kind.VECTOR),))),
        (lambda x: np.arctan2(x[:, 1:2], x[:, :1]), Layout((Field("h", Kind.HEADING),))),
    ],
)
def test_assert_equivariant_accepts_what_is(function, output):
    assert_equivariant(function, VECTORS, output, dtype=np.float64, tolerance=1e-9)


@pytest.mark.parametrize(
    ("function", "output"),
    [
        (lambda x: x[:, 0], None),
        (lambda x: np.arcsinh(x[:, :3]), Layout((Field("c", Kind.VECTOR),))),
        (lambda x: x[:, [1, 0, 2]], Layout((Field("c", Kind.VECTOR),))),
        (lambda x: np.full(len(x), np.nan), None),
    ],
)
def test_assert_equivariant_refuses_what_is_not(function, output):
    with pytest.raises(AssertionError, match="not equivariant"):
        assert_equivariant(function, VECTORS, output)


def test_assert_equivariant_with_actions_and_jax():
    def critic(x, a):
        return jnp.sum(x[:, :3] ** 2, -1) * jnp.sum(a, -1)

    assert_equivariant(critic, [VECTORS, 4], convert=jnp.asarray)
    with pytest.raises(AssertionError, match="one result per sample"):
        assert_equivariant(lambda x: x.sum(), VECTORS)


@settings(max_examples=20)
@given(st.integers(1, 5))
def test_replace_keeps_the_rest(count):
    changed = LAYOUT.replace("height", count=count)
    assert changed.dim == LAYOUT.dim + count - 1
    assert changed.field("velocity") == LAYOUT.field("velocity")
