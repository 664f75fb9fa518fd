"""A policy as a JAX function → `Program`: JAX writes down what the function does, and every operation becomes a step.

Whatever network, frame or normaliser the function consists of, it is written down as it is computed, so a new one
needs nothing here unless it uses an operation that is not in `euda.exports.rules`. What does not depend on the
observation is computed now and becomes a constant.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax import export

from euda.agents.named_arrays import flatten
from euda.errors import EudaError
from euda.exports.program import BATCH, OBSERVATION, Program, Step
from euda.exports.rules import RULES, Operand, Place, Shape, Value

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
        return [RULES[name](Place(self.step, name, shape, parameters), *operands)]

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


def _shape(name: str, sizes: Sequence[Any]) -> Shape:
    """A shape of JAX with `BATCH` in the place of its symbol."""
    if any(not isinstance(n, int) and str(n) != "B" for n in sizes):
        raise EudaError(
            f"this policy cannot be exported: in its operation {name!r} observations do not stay apart, shape"
            f" {list(map(str, sizes))}"
        )
    return tuple(n if isinstance(n, int) else BATCH for n in sizes)
