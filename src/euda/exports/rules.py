"""An operation of JAX → the steps of a `Program` that do the same: a rule for each operation."""

from __future__ import annotations

import functools
import string
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from euda.errors import EudaError
from euda.exports.program import BATCH

Shape = tuple[int, ...]


class Value(NamedTuple):
    """What is known only when an observation comes."""

    name: str
    shape: Shape
    """With `BATCH` in the place of the number of observations."""


Operand = Value | np.ndarray
Add = Callable[[str, Shape, Sequence[Operand], Mapping[str, Any]], Value]
"""(operation, shape of what it gives, operands, options) → what it gives, in a new step."""


class Place(NamedTuple):
    """An equation on its way to become steps."""

    add: Add
    name: str
    shape: Shape
    """Of the result."""
    parameters: Mapping[str, Any]

    def step(self, operation: str, *operands: Operand, gives: Shape | None = None, **options: Any) -> Value:
        """Add a step, by default one that gives an array of the result's shape."""
        return self.add(operation, self.shape if gives is None else gives, operands, options)

    def refuse(self, why: str) -> EudaError:
        """The error for an equation of a form that is not written down."""
        return EudaError(f"this policy cannot be exported: its network uses JAX's operation {self.name!r} {why}")


def _same(operation: str, at: Place, *operands: Operand) -> Value:
    return at.step(operation, *operands)


def _identity(at: Place, x: Operand) -> Operand:
    return x


def _square(at: Place, x: Operand) -> Value:
    return at.step("mul", x, x)


def _integer_pow(at: Place, x: Operand) -> Value:
    return at.step("pow", x, np.array(at.parameters["y"], np.float32))


def _rsqrt(at: Place, x: Operand) -> Value:
    return at.step("div", np.ones((), np.float32), at.step("sqrt", x))


def _log1p(at: Place, x: Operand) -> Value:
    return at.step("log", at.step("add", x, np.ones((), np.float32)))


def _expm1(at: Place, x: Operand) -> Value:
    return at.step("sub", at.step("exp", x), np.ones((), np.float32))


def _clamp(at: Place, low: Operand, x: Operand, high: Operand) -> Value:
    return at.step("min", at.step("max", x, low), high)


def _select(at: Place, which: Operand, *cases: Operand) -> Value:
    if len(cases) != 2:
        raise at.refuse(f"with {len(cases)} cases")
    return at.step("where", which, cases[1], cases[0])


def _convert(at: Place, x: Operand) -> Operand:
    kind = np.dtype(at.parameters["new_dtype"])
    if kind != np.float32:
        raise at.refuse(f"to numbers of type {kind}")
    return at.step("float", x)


def _reduce(operation: str, at: Place, x: Operand) -> Value:
    return at.step(operation, x, axes=list(at.parameters["axes"]))


def _broadcast(at: Place, x: Operand, *sizes: Operand) -> Operand:
    del sizes  # symbols, which the shape has
    places, own = at.parameters["broadcast_dimensions"], list(np.shape(x) if isinstance(x, np.ndarray) else x.shape)
    padded = tuple(own[places.index(axis)] if axis in places else 1 for axis in range(len(at.shape)))
    if isinstance(x, np.ndarray):
        spread: Operand = x.reshape(padded)
    else:
        spread = x if padded == x.shape else at.step("reshape", x, gives=padded, shape=padded)
    return spread if padded == at.shape else at.step("expand", spread, shape=at.shape)


def _reshape(at: Place, x: Operand, *sizes: Operand) -> Value:
    del sizes
    return at.step("reshape", x, shape=at.shape)


def _transpose(at: Place, x: Operand) -> Value:
    return at.step("transpose", x, axes=list(at.parameters["permutation"]))


def _concatenate(at: Place, *parts: Operand) -> Value:
    return at.step("concat", *parts, axis=at.parameters["dimension"])


def _stack(at: Place, *parts: Operand) -> Value:
    axis = at.parameters["axis"]
    wide = (*at.shape[:axis], 1, *at.shape[axis + 1 :])
    return at.step("concat", *(at.step("reshape", part, gives=wide, shape=wide) for part in parts), axis=axis)


def _reverse(at: Place, x: Operand) -> Operand:
    for axis in at.parameters["dimensions"]:
        if x.shape[axis] == BATCH:
            raise at.refuse("along the observations")
        x = at.step("take", x, np.arange(x.shape[axis])[::-1].copy(), axis=axis)
    return x


def _slice(at: Place, x: Operand) -> Operand:
    starts, limits = at.parameters["start_indices"], at.parameters["limit_indices"]
    strides = at.parameters["strides"] or (1,) * len(starts)
    shape = list(x.shape)
    for axis, (start, limit, stride) in enumerate(zip(starts, limits, strides, strict=True)):
        if shape[axis] == BATCH:
            if at.shape[axis] != BATCH:
                raise at.refuse("along the observations")
        elif (start, limit, stride) != (0, shape[axis], 1):
            indices = np.arange(start, limit, stride)
            shape[axis] = len(indices)
            x = at.step("take", x, indices, gives=tuple(shape), axis=axis)
    return x


def _gather(at: Place, x: Operand, starts: Operand) -> Value:
    """Entries along one axis whose places are known: an indexed axis, a slice, or a list of indices."""
    form, sizes = at.parameters["dimension_numbers"], at.parameters["slice_sizes"]
    axes = form.start_index_map
    others = [n for axis, n in enumerate(x.shape) if axis not in axes]
    whole = [n if isinstance(n, int) else BATCH for axis, n in enumerate(sizes) if axis not in axes]
    if not isinstance(starts, np.ndarray) or len(axes) != 1 or others != whole or form.operand_batching_dims:
        raise at.refuse("with places that depend on the observation, or along several axes")
    (axis,), first = axes, starts[..., 0]
    last = x.shape[axis] - int(sizes[axis])
    if first.size and (first.min() < 0 or first.max() > last):
        raise at.refuse("beyond the ends of an array")
    indices = (first.reshape(-1, 1) + np.arange(sizes[axis])).ravel().astype(np.int64)
    taken = at.step("take", x, indices, gives=(*x.shape[:axis], len(indices), *x.shape[axis + 1 :]), axis=axis)
    if first.ndim and (form.collapsed_slice_dims != axes or form.offset_dims != _around(axis, len(x.shape))):
        raise at.refuse("of blocks of entries")
    return taken if taken.shape == at.shape else at.step("reshape", taken, shape=at.shape)


def _around(axis: int, rank: int) -> tuple[int, ...]:
    """All axes of an array but one."""
    return tuple(other for other in range(rank) if other != axis)


def _dot(at: Place, a: Operand, b: Operand) -> Value:
    (of_a, of_b), (batch_a, batch_b) = at.parameters["dimension_numbers"]
    if not batch_a and len(b.shape) == 2 and (tuple(of_a), tuple(of_b)) == ((len(a.shape) - 1,), (0,)):
        return at.step("matmul", a, b)
    letters = iter(string.ascii_lowercase)
    first = [next(letters) for _ in a.shape]
    second = [next(letters) for _ in b.shape]
    for i, j in [*zip(of_a, of_b, strict=True), *zip(batch_a, batch_b, strict=True)]:
        second[j] = first[i]
    free_a = [letter for i, letter in enumerate(first) if i not in (*of_a, *batch_a)]
    free_b = [letter for i, letter in enumerate(second) if i not in (*of_b, *batch_b)]
    result = [*(first[i] for i in batch_a), *free_a, *free_b]
    return at.step("einsum", a, b, equation=f"{''.join(first)},{''.join(second)}->{''.join(result)}")


_ENTRYWISE = {
    "neg": "neg", "abs": "abs", "sign": "sign", "floor": "floor", "sqrt": "sqrt", "exp": "exp", "log": "log",
    "sin": "sin", "cos": "cos", "tanh": "tanh", "logistic": "sigmoid", "not": "not",
    "add": "add", "add_any": "add", "sub": "sub", "mul": "mul", "div": "div", "max": "max", "min": "min",
    "pow": "pow", "rem": "fmod", "atan2": "atan2", "and": "and", "or": "or",
    "lt": "less", "le": "less_equal", "gt": "greater", "ge": "greater_equal", "eq": "equal", "ne": "not_equal",
}  # fmt: skip
RULES: dict[str, Callable[..., Operand]] = {
    **{name: functools.partial(_same, operation) for name, operation in _ENTRYWISE.items()},
    "square": _square, "integer_pow": _integer_pow, "rsqrt": _rsqrt, "log1p": _log1p, "expm1": _expm1, "clamp": _clamp,
    "select_n": _select, "convert_element_type": _convert, "copy": _identity, "copy_p": _identity,
    "stop_gradient": _identity, "rev": _reverse,
    "reduce_sum": functools.partial(_reduce, "sum"), "reduce_max": functools.partial(_reduce, "amax"),
    "broadcast_in_dim": _broadcast, "reshape": _reshape, "squeeze": _reshape, "expand_dims": _reshape,
    "transpose": _transpose, "concatenate": _concatenate, "stack": _stack, "slice": _slice, "gather": _gather,
    "dot_general": _dot,
}  # fmt: skip
"""By JAX's name for the operation: (place, operands) → the result."""
