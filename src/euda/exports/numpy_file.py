"""`Program` → an .npz of NumPy, and beside it the short Python file that runs it."""

from __future__ import annotations

import io
import json
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from euda.exports import numpy_runner
from euda.exports.program import Program


def write(program: Program, path: Path) -> Mapping[Path, bytes]:
    """The files to write and what is in them."""
    steps = [[step.operation, step.inputs, step.output, step.options] for step in program.steps]
    text = json.dumps({"dim": program.dim, "steps": steps, "output": program.output, "about": program.about})
    content = io.BytesIO()
    np.savez(content, allow_pickle=False, program=np.array(text), **program.constants)
    return {path: content.getvalue(), path.with_suffix(".py"): Path(numpy_runner.__file__).read_bytes()}
