"""Helpers with which users test their own features, networks and policies."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from euda.body.layout import Kind, Layout
from euda.body.yaws import wrap


def random_observations(layout: Layout, count: int, rng: np.random.Generator, scale: float = 1.0) -> np.ndarray:
    """Random observations [count, dim] (float64) valid for their kinds: angles in [-π, π), unit quaternions with w ≥ 0.

    >>> import numpy as np
    >>> from euda import Field, Kind, Layout
    >>> from euda.testing import random_observations
    >>> layout = Layout((Field("orientation", Kind.QUATERNION), Field("height", Kind.SCALAR)))
    >>> x = random_observations(layout, 5, np.random.default_rng(0))
    >>> x.shape, np.linalg.norm(x[:, :4], axis=1).round(12).tolist()
    ((5, 5), [1.0, 1.0, 1.0, 1.0, 1.0])
    """
    x = scale * rng.standard_normal((count, layout.dim))
    for field in layout:
        where = layout.slices[field.name]
        if field.kind is Kind.HEADING:
            x[:, where] = rng.uniform(-np.pi, np.pi, (count, field.dim))
        if field.kind is Kind.QUATERNION:
            quaternions = x[:, where].reshape(count, field.count, 4)
            x[:, where] = (quaternions / np.linalg.norm(quaternions, axis=-1, keepdims=True)).reshape(count, field.dim)
    return layout.canonical(x)


def assert_equivariant(
    function: Callable[..., Any],
    inputs: Layout | Sequence[Layout | int],
    output: Layout | None = None,
    *,
    samples: int = 64,
    tolerance: float = 1e-5,
    seed: int = 0,
    dtype: Any = np.float32,
    convert: Callable[[np.ndarray], Any] = np.asarray,
) -> None:
    """Assert that turning the inputs and applying `function` is applying it and turning the output.

    `function` takes one batch [samples, dim] per input. An input given as a whole number n is n numbers that
    do not turn, such as an action. `output` is the layout of the result, or None if it must not change.
    `convert` makes the arrays the function wants (for example `jax.numpy.asarray` or `torch.as_tensor`).

    >>> from euda import Field, Kind, Layout
    >>> from euda.testing import assert_equivariant
    >>> layout = Layout((Field("velocity", Kind.VECTOR),))
    >>> assert_equivariant(lambda x: (x**2).sum(-1), layout)
    """
    rng = np.random.default_rng(seed)
    layouts = [inputs] if isinstance(inputs, Layout) else list(inputs)
    yaws = rng.uniform(-np.pi, np.pi, samples)
    plain: list[np.ndarray] = []
    turned: list[np.ndarray] = []
    for layout in layouts:
        x = (
            random_observations(layout, samples, rng)
            if isinstance(layout, Layout)
            else rng.standard_normal((samples, layout))
        )
        plain.append(x.astype(dtype))
        turned.append((layout.rotate(x, yaws) if isinstance(layout, Layout) else x).astype(dtype))
    before = np.asarray(function(*map(convert, plain)), dtype=np.float64)
    after = np.asarray(function(*map(convert, turned)), dtype=np.float64)
    if before.shape[:1] != (samples,):
        raise AssertionError(
            f"the function must return one result per sample ({samples}), not an array of shape {before.shape}"
        )
    expected = before if output is None else output.rotate(before, yaws)
    difference = _difference(after, expected, output)
    worst = float(difference.max()) / max(1.0, float(np.abs(before).max()))
    if not worst <= tolerance:
        sample = int(np.unravel_index(int(np.argmax(difference)), difference.shape)[0])
        raise AssertionError(
            f"not equivariant: relative error {worst:.3g} > {tolerance:g} at yaw {yaws[sample]:.4f} rad"
            f" (sample {sample} of {samples})"
        )


def _difference(after: np.ndarray, expected: np.ndarray, output: Layout | None) -> np.ndarray:
    """Absolute differences; headings modulo a full turn, quaternions modulo their sign."""
    difference = np.abs(after - expected)
    for field in output or ():
        where = output.slices[field.name]  # pyright: ignore[reportOptionalMemberAccess]
        if field.kind is Kind.HEADING:
            difference[..., where] = np.abs(wrap(np, after[..., where] - expected[..., where]))
        if field.kind is Kind.QUATERNION:
            pair = [
                np.abs(after[..., where] + sign * expected[..., where]).reshape(len(after), field.count, 4)
                for sign in (1, -1)
            ]
            is_closer = pair[0].max(-1, keepdims=True) < pair[1].max(-1, keepdims=True)
            difference[..., where] = np.where(is_closer, *pair).reshape(len(after), -1)
    return difference
