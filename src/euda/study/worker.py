"""One run in a process of its own: `python -m euda.study.worker FOLDER PARENT [CORE]`, configuration as JSON on stdin.

Engines start this, on this machine or another. It ends with 0 when the run is complete, with 128 + signal
when it was asked to stop (everything is saved), and otherwise says why in the last line of standard error.
"""

from __future__ import annotations

import ctypes
import json
import os
import signal
import sys
from pathlib import Path

from euda.errors import EudaError
from euda.study import machine
from euda.study.settings import RunConfig

_PR_SET_PDEATHSIG = 1  # from <linux/prctl.h>


def command(folder: Path, core: int | None = None) -> list[str]:
    """The command line of a worker."""
    own = [str(os.getpid()), *([] if core is None else [str(core)])]
    return [sys.executable, "-m", "euda.study.worker", str(folder), *own]


def main(arguments: list[str]) -> int:
    """Train one run; its exit code."""
    stop_with_parent(int(arguments[1]))
    config = RunConfig.from_json(json.load(sys.stdin))
    machine.pin(int(arguments[2]) if len(arguments) > 2 else None)
    machine.use_one_thread()
    machine.cache_compilations()
    from euda.study import training
    from euda.study.display import Silent
    from euda.study.metrics import TensorBoard

    display = Silent()
    outcome = training.train(config, Path(arguments[0]), display=display, sinks=(TensorBoard.of,))
    for sentence in display.said:
        sys.stderr.write(f"{sentence}\n")
    return 0 if outcome.signal is None else 128 + outcome.signal


def stop_with_parent(parent: int) -> None:
    """Have the kernel send SIGTERM when the process that started this one ends, so that no run goes on unwatched."""
    ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0)
    if os.getppid() != parent:  # it has ended already
        os.kill(os.getpid(), signal.SIGTERM)


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except EudaError as error:
        sys.stderr.write(f"{error}\n")
        sys.exit(2)
