"""Runs a policy that `euda export --to numpy` wrote. It needs NumPy only; copy it wherever you like.

    from policy import load

    policy = load("policy.npz")
    action = policy(observation)  # [dim] or [B, dim] → [m] or [B, m] in [-1, 1]
    policy.about                  # which run it is from, the names of entries and actuators, the time step

The file holds the constants under their names, and under `program` a JSON object: `steps` is a list of
[operation, inputs, output, options], `output` the value that the actions are.
"""

import json
from collections.abc import Callable
from typing import Any

import numpy as np

OPERATIONS: dict[str, Callable[..., Any]] = {
    "neg": np.negative, "abs": np.abs, "sign": np.sign, "floor": np.floor, "sqrt": np.sqrt, "exp": np.exp,
    "log": np.log, "sin": np.sin, "cos": np.cos, "tanh": np.tanh, "not": np.logical_not,
    "sigmoid": lambda x: 0.5 * (1 + np.tanh(0.5 * x)),
    "add": np.add, "sub": np.subtract, "mul": np.multiply, "div": np.divide, "max": np.maximum, "min": np.minimum,
    "pow": np.power, "fmod": np.fmod, "atan2": np.arctan2, "and": np.logical_and, "or": np.logical_or,
    "less": np.less, "less_equal": np.less_equal, "greater": np.greater, "greater_equal": np.greater_equal,
    "equal": np.equal, "not_equal": np.not_equal, "where": np.where, "float": np.float32,
    "matmul": np.matmul, "einsum": lambda *arrays, equation: np.einsum(equation, *arrays),
    "sum": lambda x, axes: x.sum(tuple(axes)), "amax": lambda x, axes: x.max(tuple(axes)),
    "take": lambda x, indices, axis: x.take(indices, axis), "reshape": lambda x, shape: x.reshape(shape),
    "transpose": lambda x, axes: x.transpose(axes), "concat": lambda *arrays, axis: np.concatenate(arrays, axis),
}  # fmt: skip


class Policy:
    """Observations to actions, without noise."""

    def __init__(self, program: dict[str, Any], constants: dict[str, np.ndarray]) -> None:
        self.about, self.dim = program["about"], program["dim"]
        self._steps, self._output, self._constants = program["steps"], program["output"], constants

    def __call__(self, observations: Any) -> np.ndarray:
        """[dim] or [B, dim] → actions [m] or [B, m] in [-1, 1]."""
        x = np.asarray(observations, np.float32)
        if x.ndim not in (1, 2) or x.shape[-1] != self.dim:
            raise ValueError(f"this policy takes observations of {self.dim} numbers, not an array {list(x.shape)}")
        values = {**self._constants, "observation": np.atleast_2d(x)}
        for operation, inputs, output, options in self._steps:
            arrays = [values[name] for name in inputs]
            if operation == "expand":
                shape = [len(values["observation"]) if n == -1 else n for n in options["shape"]]
                values[output] = np.broadcast_to(arrays[0], shape)
            else:
                values[output] = OPERATIONS[operation](*arrays, **options)
        actions = values[self._output]
        return actions if x.ndim == 2 else actions[0]


def load(path: Any) -> Policy:
    """The policy in a file."""
    with np.load(path, allow_pickle=False) as file:
        constants = {name: file[name] for name in file.files}
    return Policy(json.loads(str(constants.pop("program"))), constants)
