"""One run in a process of its own: `python -m euda.studies.worker FOLDER PARENT CORE [MODULE …]`.

Its configuration comes on stdin; the modules are those that the user has named with --import.

Engines start this, on this machine or another. It ends with 0 when the run is complete, with 128 + signal
when it was asked to stop (everything is saved), and otherwise says why in the last line of standard error.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from euda import operating_system
from euda.errors import EudaError
from euda.runs import machine, plugins, run_folder
from euda.runs.config import RunConfig


def command(folder: Path, modules: Sequence[str], core: int | None = None) -> list[str]:
    """The command line of a worker, which imports these modules."""
    own = [str(os.getpid()), "any" if core is None else str(core), *modules]
    return [sys.executable, "-m", "euda.studies.worker", str(folder), *own]


def main(arguments: list[str]) -> int:
    """Train one run; its exit code."""
    operating_system.stop_with_parent(int(arguments[1]))
    plugins.load(arguments[3:])
    config = RunConfig.from_json(json.load(sys.stdin))
    if arguments[2] != "any":
        operating_system.keep_to_core(int(arguments[2]))  # where it may be chosen; elsewhere the system spreads them
    folder = Path(arguments[0])
    run_folder.check(folder, config)  # before JAX is loaded
    machine.use_one_thread()
    machine.cache_compilations()
    from euda.runs import session
    from euda.runs.display import Silent
    from euda.runs.metrics import TensorBoard

    display = Silent()
    outcome = session.train(config, folder, display=display, sinks=(TensorBoard.of,))
    for sentence in display.said:
        sys.stderr.write(f"{sentence}\n")
    return 0 if outcome.signal is None else 128 + outcome.signal


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except EudaError as error:
        sys.stderr.write(f"{error}\n")
        sys.exit(2)
