"""`Program` → a file of `torch.export`: observations [batch, dim] to actions [batch, m], any batch."""

# pyright: reportMissingImports=false
# PyTorch is an extra: it is not in the lock.
from __future__ import annotations

import io
import json
import logging
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np

from euda.errors import EudaError
from euda.exports.program import BATCH, OBSERVATION, Program

ABOUT = "about.json"
"""The name of the extra file that says what the policy is from."""


def write(program: Program, path: Path) -> Mapping[Path, bytes]:
    """The file to write and what is in it."""
    try:
        import torch
    except ImportError:
        raise EudaError("exporting to PyTorch needs the package torch: pip install torch") from None
    example = torch.zeros(2, program.dim)
    batch = torch.export.Dim("batch")
    logging.getLogger("torch.export").setLevel(logging.ERROR)
    traced = torch.export.export(_module(torch, program), (example,), dynamic_shapes=({0: batch},))
    content = io.BytesIO()
    torch.export.save(traced, content, extra_files={ABOUT: json.dumps(program.about)})
    return {path: content.getvalue()}


def _module(torch: Any, program: Program) -> Any:
    """The program as a module of PyTorch."""
    operations = _operations(torch)

    class Policy(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            for number, array in enumerate(program.constants.values()):
                self.register_buffer(f"constant{number}", torch.from_numpy(np.array(array)))

        def forward(self, observation: Any) -> Any:
            values = {name: getattr(self, f"constant{number}") for number, name in enumerate(program.constants)}
            values[OBSERVATION] = observation
            for step in program.steps:
                arrays = [values[name] for name in step.inputs]
                if step.operation == "expand":
                    shape = [len(observation) if n == BATCH else n for n in step.options["shape"]]
                    values[step.output] = arrays[0].expand(shape)
                else:
                    values[step.output] = operations[step.operation](*arrays, **step.options)
            return values[program.output]

    return Policy()


def _operations(torch: Any) -> dict[str, Callable[..., Any]]:
    same = {
        "neg": "neg", "abs": "abs", "sign": "sign", "floor": "floor", "sqrt": "sqrt", "exp": "exp", "log": "log",
        "sin": "sin", "cos": "cos", "tanh": "tanh", "sigmoid": "sigmoid", "not": "logical_not", "add": "add",
        "sub": "sub", "mul": "mul", "div": "div", "max": "maximum", "min": "minimum", "pow": "pow", "fmod": "fmod",
        "atan2": "atan2", "and": "logical_and", "or": "logical_or", "less": "lt", "less_equal": "le", "greater": "gt",
        "greater_equal": "ge", "equal": "eq", "not_equal": "ne", "where": "where", "matmul": "matmul",
    }  # fmt: skip
    return {
        **{operation: getattr(torch, name) for operation, name in same.items()},
        "float": lambda x: x.to(torch.float32),
        "einsum": lambda *arrays, equation: torch.einsum(equation, *arrays),
        "sum": lambda x, axes: x.sum(list(axes)),
        "amax": lambda x, axes: x.amax(list(axes)),
        "take": lambda x, indices, axis: x.index_select(axis, indices),
        "reshape": lambda x, shape: x.reshape(list(shape)),
        "transpose": lambda x, axes: x.permute(list(axes)),
        "concat": lambda *arrays, axis: torch.cat(arrays, axis),
    }
