"""A policy as a JAX function → `Program`: JAX writes down what the function does, and every operation becomes a step.

Whatever network, frame or normaliser the function consists of, it is written down as it is computed, so a new one
needs nothing here unless it uses an operation that is not in `RULES`. What does not depend on the observation is
computed now and becomes a constant.
"""

from __future__ import annotations

import functools
import string
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
from jax import export

from euda.agents.named_arrays import flatten
from euda.errors import EudaError
from euda.exports.program import BATCH, OBSERVATION, Program, Step

Shape = tuple[int, ...]


class Value(NamedTuple):
    """What is known only when an observation comes."""

    name: str
    shape: Shape
    """With `BATCH` in the place of the number of observations."""


Operand = Value | np.ndarray
_INLINED = {"jit": "jaxpr", "pjit": "jaxpr", "closed_call": "call_jaxpr", "remat": "jaxpr", "checkpoint": "jaxpr",
            "custom_jvp_call": "call_jaxpr", "custom_vjp_call": "call_jaxpr"}  # fmt: skip
"""Calls of other functions, by the name of the parameter that holds them."""


def trace(
    function: Callable[[Any, Any], Any], arrays: Mapping[str, Any], dim: int, about: Mapping[str, Any]
) -> Program:
    """The program of function(arrays, observations [B, dim]), with the arrays as constants under their own names."""
    (batch,) = export.symbolic_shape("B")
    observations = jax.ShapeDtypeStruct((batch, dim), jnp.float32)
    traced = jax.make_jaxpr(function)(arrays, observations)
    named = flatten(arrays)  # in the order of the leaves
    writer = _Writer({id(array): name for name, array in named.items()})
    (actions,) = writer.write(traced, [*named.values(), Value(OBSERVATION, (BATCH, dim))])
    if isinstance(actions, np.ndarray) or actions.name == OBSERVATION:
        raise EudaError("this policy cannot be exported: its actions do not depend on the observation")
    steps = _needed(writer.steps, actions.name)
    used = {name for step in steps for name in step.inputs}
    constants = {name: array for name, array in writer.constants.items() if name in used}
    return Program(dim, actions.shape[-1], constants, steps, actions.name, about)


def _needed(steps: Sequence[Step], output: str) -> tuple[Step, ...]:
    """The steps that the output depends on."""
    wanted, kept = {output}, []
    for step in reversed(steps):
        if step.output in wanted:
            wanted |= set(step.inputs)
            kept.append(step)
    return tuple(reversed(kept))


class _Writer:
    """Collects steps and constants."""

    def __init__(self, names: dict[int, str]) -> None:
        self.steps: list[Step] = []
        self.constants: dict[str, np.ndarray] = {}
        self._names = names

    def write(self, closed: Any, inputs: Sequence[Operand]) -> list[Operand]:
        """Go through JAX's list of equations; the operands that it ends in."""
        jaxpr = closed.jaxpr
        known: dict[Any, Operand] = dict(zip(jaxpr.constvars, map(np.asarray, closed.consts), strict=True))
        known |= dict(zip(jaxpr.invars, inputs, strict=True))

        def read(atom: Any) -> Operand:
            return np.asarray(atom.val) if hasattr(atom, "val") else known[atom]

        for equation in jaxpr.eqns:
            results = self._equation(equation, [read(atom) for atom in equation.invars])
            known |= dict(zip(equation.outvars, results, strict=True))
        return [read(atom) for atom in jaxpr.outvars]

    def _equation(self, equation: Any, operands: list[Operand]) -> Sequence[Operand]:
        name, parameters = equation.primitive.name, equation.params
        if name in _INLINED:
            return self.write(parameters[_INLINED[name]], operands)
        is_fixed = all(isinstance(n, int) for result in equation.outvars for n in result.aval.shape)
        if is_fixed and all(isinstance(operand, np.ndarray) for operand in operands):
            found = equation.primitive.bind(*map(jnp.asarray, operands), **parameters)
            return [np.asarray(one) for one in (found if equation.primitive.multiple_results else [found])]
        if name not in RULES:
            raise EudaError(
                f"this policy cannot be exported: its network uses JAX's operation {name!r}, which has no counterpart"
                f" here; those that have are {', '.join(sorted(RULES))}"
            )
        shape = _shape(name, equation.outvars[0].aval.shape)
        return [RULES[name](_Place(self, name, shape, parameters), *operands)]

    def step(self, operation: str, gives: Shape, operands: Sequence[Operand], options: Mapping[str, Any]) -> Value:
        """Add a step that gives an array of a shape."""
        output = Value(f"v{len(self.steps)}", gives)
        self.steps.append(Step(operation, tuple(map(self.name_of, operands)), output.name, options))
        return output

    def name_of(self, operand: Operand) -> str:
        """What an operand is called; numbers become a constant."""
        if isinstance(operand, Value):
            return operand.name
        name = self._names.setdefault(id(operand), f"c{len(self.constants)}")
        kind = np.int64 if operand.dtype.kind in "iu" else operand.dtype
        self.constants.setdefault(name, operand.astype(kind))
        self._alive = (*getattr(self, "_alive", ()), operand)  # so that no other array gets its id
        return name


class _Place(NamedTuple):
    """An equation on its way to become steps."""

    writer: _Writer
    name: str
    shape: Shape
    """Of the result."""
    parameters: Mapping[str, Any]

    def step(self, operation: str, *operands: Operand, gives: Shape | None = None, **options: Any) -> Value:
        """Add a step, by default one that gives an array of the result's shape."""
        return self.writer.step(operation, self.shape if gives is None else gives, operands, options)

    def refuse(self, why: str) -> EudaError:
        """The error for an equation of a form that is not written down."""
        return EudaError(f"this policy cannot be exported: its network uses JAX's operation {self.name!r} {why}")


def _shape(name: str, sizes: Sequence[Any]) -> Shape:
    """A shape of JAX with `BATCH` in the place of its symbol."""
    if any(not isinstance(n, int) and str(n) != "B" for n in sizes):
        raise EudaError(
            f"this policy cannot be exported: in its operation {name!r} observations do not stay apart, shape"
            f" {list(map(str, sizes))}"
        )
    return tuple(n if isinstance(n, int) else BATCH for n in sizes)


# -- a rule for each operation of JAX -------------------------------------------------------------------------


def _same(operation: str, at: _Place, *operands: Operand) -> Value:
    return at.step(operation, *operands)


def _identity(at: _Place, x: Operand) -> Operand:
    return x


def _square(at: _Place, x: Operand) -> Value:
    return at.step("mul", x, x)


def _integer_pow(at: _Place, x: Operand) -> Value:
    return at.step("pow", x, np.array(at.parameters["y"], np.float32))


def _rsqrt(at: _Place, x: Operand) -> Value:
    return at.step("div", np.ones((), np.float32), at.step("sqrt", x))


def _log1p(at: _Place, x: Operand) -> Value:
    return at.step("log", at.step("add", x, np.ones((), np.float32)))


def _expm1(at: _Place, x: Operand) -> Value:
    return at.step("sub", at.step("exp", x), np.ones((), np.float32))


def _clamp(at: _Place, low: Operand, x: Operand, high: Operand) -> Value:
    return at.step("min", at.step("max", x, low), high)


def _select(at: _Place, which: Operand, *cases: Operand) -> Value:
    if len(cases) != 2:
        raise at.refuse(f"with {len(cases)} cases")
    return at.step("where", which, cases[1], cases[0])


def _convert(at: _Place, x: Operand) -> Operand:
    kind = np.dtype(at.parameters["new_dtype"])
    if kind != np.float32:
        raise at.refuse(f"to numbers of type {kind}")
    return at.step("float", x)


def _reduce(operation: str, at: _Place, x: Operand) -> Value:
    return at.step(operation, x, axes=list(at.parameters["axes"]))


def _broadcast(at: _Place, x: Operand, *sizes: Operand) -> Operand:
    del sizes  # symbols, which the shape has
    places, own = at.parameters["broadcast_dimensions"], list(np.shape(x) if isinstance(x, np.ndarray) else x.shape)
    padded = tuple(own[places.index(axis)] if axis in places else 1 for axis in range(len(at.shape)))
    if isinstance(x, np.ndarray):
        spread: Operand = x.reshape(padded)
    else:
        spread = x if padded == x.shape else at.step("reshape", x, gives=padded, shape=padded)
    return spread if padded == at.shape else at.step("expand", spread, shape=at.shape)


def _reshape(at: _Place, x: Operand, *sizes: Operand) -> Value:
    del sizes
    return at.step("reshape", x, shape=at.shape)


def _transpose(at: _Place, x: Operand) -> Value:
    return at.step("transpose", x, axes=list(at.parameters["permutation"]))


def _concatenate(at: _Place, *parts: Operand) -> Value:
    return at.step("concat", *parts, axis=at.parameters["dimension"])


def _stack(at: _Place, *parts: Operand) -> Value:
    axis = at.parameters["axis"]
    wide = (*at.shape[:axis], 1, *at.shape[axis + 1 :])
    return at.step("concat", *(at.step("reshape", part, gives=wide, shape=wide) for part in parts), axis=axis)


def _reverse(at: _Place, x: Operand) -> Operand:
    for axis in at.parameters["dimensions"]:
        if x.shape[axis] == BATCH:
            raise at.refuse("along the observations")
        x = at.step("take", x, np.arange(x.shape[axis])[::-1].copy(), axis=axis)
    return x


def _slice(at: _Place, x: Operand) -> Operand:
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


def _gather(at: _Place, x: Operand, starts: Operand) -> Value:
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


def _dot(at: _Place, a: Operand, b: Operand) -> Value:
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
