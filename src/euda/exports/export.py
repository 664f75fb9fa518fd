"""Run → a file with its policy: frame, normaliser and actor, to be run without euda."""

from __future__ import annotations

import importlib.metadata
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from euda import lookup
from euda.body.actions import Actions
from euda.exports.program import Program
from euda.exports.tracing import trace
from euda.lookup import Maker
from euda.media import output
from euda.runs import atomic_files, evaluation
from euda.runs.run_folder import Run


class Format(NamedTuple):
    """A kind of file."""

    write: Maker
    """(program, path) → the content of each file to write."""
    ending: str


FORMATS: dict[str, Format] = {
    "onnx": Format("euda.exports.onnx_file:write", ".onnx"),
    "numpy": Format("euda.exports.numpy_file:write", ".npz"),
    "torch": Format("euda.exports.torch_file:write", ".pt2"),
}
"""By name. A new format is a new row."""


def export(run: Run, to: str, path: Path | None = None) -> list[Path]:
    """Write the newest policy of a run in a format; the files, by default beside the run's own."""
    row = lookup.find("format", FORMATS, to)
    path = run.folder / f"policy{row.ending}" if path is None else path
    output.check(path, row.ending, f"a policy for {to} is a {row.ending}")
    content: Mapping[Path, bytes] = lookup.loaded(row.write)(program(run), path)
    for file, data in content.items():
        atomic_files.write_atomically(file, data)
    return list(content)


def program(run: Run) -> Program:
    """The newest policy of a run as a list of operations."""
    environment = evaluation.make_environment(run.config)
    agent, step = evaluation.load_agent(run, environment)
    about = {
        "euda": importlib.metadata.version("euda"),
        "task": run.config.task,
        "method": run.config.label,
        "seed": run.config.seed,
        "step": step,
        "seconds_per_action": environment.control_timestep * run.config.action_repeat,
        "observation": list(environment.layout.entry_names()),
        "layout": environment.layout.to_json(),
        **_motors(environment),
    }
    return trace(agent.answer, agent.acting, environment.layout.dim, about)


def _motors(environment: Any) -> dict[str, Any]:
    """What an action in [-1, 1] means: the actuators' names, and their controls at -1 and at 1."""
    low, high = (ends.tolist() for ends in environment.control_range)
    names = Actions.of(environment.model).names
    is_each = len(names) == len(low)  # a Gymnasium environment may have actions of another kind
    named = list(names) if is_each else [f"action{k}" for k in range(len(low))]
    return {"action": named, "control_low": low, "control_high": high}
