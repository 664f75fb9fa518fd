"""`Program` → an ONNX graph: input `observation` [batch, dim], output `action` [batch, m]."""

# pyright: reportMissingImports=false
# ONNX is an extra: it is not in the lock.
from __future__ import annotations

import importlib.metadata
import itertools
import json
import math
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from euda.errors import EudaError
from euda.exports.program import BATCH, OBSERVATION, Program, Step

OPSET, FORMAT = 17, 8
"""Old enough for the runtimes of small computers; all operations are there."""
_NODES = {
    "neg": "Neg", "abs": "Abs", "sign": "Sign", "floor": "Floor", "sqrt": "Sqrt", "exp": "Exp", "log": "Log",
    "sin": "Sin", "cos": "Cos", "tanh": "Tanh", "sigmoid": "Sigmoid", "not": "Not", "add": "Add", "sub": "Sub",
    "mul": "Mul", "div": "Div", "max": "Max", "min": "Min", "pow": "Pow", "and": "And", "or": "Or", "less": "Less",
    "less_equal": "LessOrEqual", "greater": "Greater", "greater_equal": "GreaterOrEqual", "equal": "Equal",
    "where": "Where", "matmul": "MatMul", "einsum": "Einsum", "take": "Gather", "concat": "Concat",
}  # fmt: skip
"""Operations that are one node with the same inputs and options."""
ACTION, _SIZE = "action", "batch_size"


def write(program: Program, path: Path) -> Mapping[Path, bytes]:
    """The file to write and what is in it."""
    try:
        import onnx
    except ImportError:
        raise EudaError("exporting to ONNX needs the package onnx: pip install 'euda[onnx]'") from None
    graph = _Graph(onnx, program)
    inputs = [onnx.helper.make_tensor_value_info(OBSERVATION, onnx.TensorProto.FLOAT, ["batch", program.dim])]
    outputs = [onnx.helper.make_tensor_value_info(ACTION, onnx.TensorProto.FLOAT, ["batch", program.actions])]
    made = onnx.helper.make_graph(graph.nodes, "policy", inputs, outputs, graph.constants)
    opset = [onnx.helper.make_opsetid("", OPSET)]
    producer = {"producer_name": "euda", "producer_version": importlib.metadata.version("euda")}
    model = onnx.helper.make_model(made, opset_imports=opset, ir_version=FORMAT, **producer)
    onnx.helper.set_model_props(model, {"about": json.dumps(program.about)})
    onnx.checker.check_model(model, full_check=True)
    return {path: model.SerializeToString()}


class _Graph:
    """Nodes and constants, step by step."""

    def __init__(self, onnx: Any, program: Program) -> None:
        self._onnx, self._numbers = onnx, itertools.count()
        self.nodes: list[Any] = []
        self.constants = [onnx.numpy_helper.from_array(np.asarray(a), name) for name, a in program.constants.items()]
        if any(step.operation == "expand" for step in program.steps):
            sizes = self.node("Shape", OBSERVATION)
            self.node("Gather", sizes, self.constant(np.zeros(1, np.int64)), output=_SIZE)
        for step in program.steps:
            output = ACTION if step.output == program.output else step.output
            inputs = tuple(ACTION if name == program.output else name for name in step.inputs)
            self._step(step._replace(inputs=inputs, output=output))

    def _step(self, step: Step) -> None:
        if step.operation in _NODES:
            self.node(_NODES[step.operation], *step.inputs, output=step.output, **step.options)
        elif step.operation in _COMPOSED:
            _COMPOSED[step.operation](self, step)
        else:
            raise EudaError(
                f"this policy cannot be exported to ONNX, which has no operator {step.operation!r}: valid are"
                f" {', '.join(sorted([*_NODES, *_COMPOSED]))}; --to numpy and --to torch may have it"
            )

    def node(self, kind: str, *inputs: str, output: str | None = None, **attributes: Any) -> str:
        """Add a node; the name of its output."""
        name = f"n{next(self._numbers)}" if output is None else output
        self.nodes.append(self._onnx.helper.make_node(kind, list(inputs), [name], **attributes))
        return name

    def constant(self, array: np.ndarray) -> str:
        """Add a constant; its name."""
        name = f"k{next(self._numbers)}"
        self.constants.append(self._onnx.numpy_helper.from_array(array, name))
        return name

    def number(self, value: float) -> str:
        """Add a constant that is one number."""
        return self.constant(np.array(value, np.float32))

    @property
    def float_type(self) -> int:
        """ONNX's number for float32."""
        return int(self._onnx.TensorProto.FLOAT)


# -- operations that take more than one node, or options as inputs -------------------------------------------


def _atan2(graph: _Graph, step: Step) -> None:
    """ONNX has atan only: the angle of y / x, half a turn on where x < 0, and a quarter turn where x is 0."""
    y, x = step.inputs
    zero, pi, quarter = graph.number(0.0), graph.number(math.pi), graph.number(math.pi / 2)
    is_zero = graph.node("Equal", x, zero)
    divisor = graph.node("Where", is_zero, graph.number(1.0), x)
    angle = graph.node("Atan", graph.node("Div", y, divisor))
    half = graph.node("Where", graph.node("Less", y, zero), graph.node("Neg", pi), pi)
    turned = graph.node("Where", graph.node("Less", x, zero), graph.node("Add", angle, half), angle)
    upright = graph.node("Mul", graph.node("Sign", y), quarter)
    graph.node("Where", is_zero, upright, turned, output=step.output)


def _fmod(graph: _Graph, step: Step) -> None:
    graph.node("Mod", *step.inputs, output=step.output, fmod=1)


def _not_equal(graph: _Graph, step: Step) -> None:
    graph.node("Not", graph.node("Equal", *step.inputs), output=step.output)


def _float(graph: _Graph, step: Step) -> None:
    graph.node("Cast", *step.inputs, output=step.output, to=graph.float_type)


def _sum(graph: _Graph, step: Step) -> None:
    axes = graph.constant(np.array(step.options["axes"], np.int64))
    graph.node("ReduceSum", *step.inputs, axes, output=step.output, keepdims=0)


def _amax(graph: _Graph, step: Step) -> None:
    graph.node("ReduceMax", *step.inputs, output=step.output, axes=list(step.options["axes"]), keepdims=0)


def _reshape(graph: _Graph, step: Step) -> None:
    shape = graph.constant(np.array(step.options["shape"], np.int64))
    graph.node("Reshape", *step.inputs, shape, output=step.output)


def _transpose(graph: _Graph, step: Step) -> None:
    graph.node("Transpose", *step.inputs, output=step.output, perm=list(step.options["axes"]))


def _expand(graph: _Graph, step: Step) -> None:
    sizes = [_SIZE if n == BATCH else graph.constant(np.array([n], np.int64)) for n in step.options["shape"]]
    shape = sizes[0] if len(sizes) == 1 else graph.node("Concat", *sizes, axis=0)
    graph.node("Expand", *step.inputs, shape, output=step.output)


_COMPOSED: dict[str, Callable[[_Graph, Step], None]] = {
    "atan2": _atan2, "fmod": _fmod, "not_equal": _not_equal, "float": _float, "sum": _sum, "amax": _amax,
    "reshape": _reshape, "transpose": _transpose, "expand": _expand,
}  # fmt: skip
