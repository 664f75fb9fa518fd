"""A program of a benchmark in a process of its own: one command per line goes in, one line of JSON comes out."""

from __future__ import annotations

import json
import os
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
_ONE_THREAD = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "NPROC": "1", "JAX_PLATFORMS": "cpu"}
_XLA = {"XLA_FLAGS": "--xla_cpu_multi_thread_eigen=false"}


class Worker:
    """The process; its first answer says that it is ready."""

    def __init__(self, script: str, arguments: Sequence[object], python: str, root: Path = ROOT) -> None:
        command = [python, "-W", "ignore", str(root / "benchmarks" / script), *map(str, arguments)]
        environment = {**os.environ, **_ONE_THREAD, **_XLA, "PYTHONPATH": str(root / "src")}
        pipe = subprocess.PIPE
        self._process = subprocess.Popen(command, stdin=pipe, stdout=pipe, stderr=pipe, text=True, env=environment)
        self.ready = self.ask(None)

    def ask(self, command: str | None) -> dict[str, Any]:
        """Send a command and wait for its answer."""
        self.send(command)
        return self.answer()

    def send(self, command: str | None) -> None:
        """Without waiting."""
        if command is not None and self._process.stdin is not None:
            self._process.stdin.write(command + "\n")
            self._process.stdin.flush()

    def answer(self) -> dict[str, Any]:
        """The next answer; what else a program prints is left out."""
        assert self._process.stdout is not None
        assert self._process.stderr is not None
        while line := self._process.stdout.readline():
            if line.startswith("{"):
                return json.loads(line)
        reason = self._process.stderr.read().strip().splitlines()
        raise RuntimeError(reason[-1] if reason else "it ended without a word")

    def close(self) -> None:
        """No more commands: it ends."""
        self._process.communicate()
