"""Runs on a Ray cluster: a task with one CPU for each, which starts the same worker as on one machine.

Run folders are on storage that every node sees, so a run whose node has died goes on elsewhere from its last
checkpoint. Ray is an extra: `pip install 'euda[ray]'`, on every node.
"""

# pyright: reportMissingImports=false
# Ray is an extra: it is not in the lock.
from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import socket
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from euda.errors import EudaError
from euda.runs import plugins
from euda.runs.config import RunConfig
from euda.studies import worker
from euda.studies.engines.local import explain
from euda.studies.launcher import Ending
from euda.studies.plan import Planned

_PATIENCE = 5.0  # seconds
_MANY = 1_000_000  # Ray has a queue of its own


class RayJob:
    """A task of the cluster."""

    def __init__(self, ray: Any, reference: Any) -> None:
        self._ray, self._reference = ray, reference

    def poll(self) -> Ending | None:
        """How it ended, if it did; a node that died is a reason like any other."""
        ready, _ = self._ray.wait([self._reference], timeout=0)
        if not ready:
            return None
        try:
            code, reason = self._ray.get(self._reference)
        except self._ray.exceptions.RayError as error:
            return Ending(False, _first_line(error))
        return Ending(code == 0, reason)

    def stop(self) -> None:
        """Interrupt it: it asks its worker to save and end."""
        with contextlib.suppress(self._ray.exceptions.RayError):
            self._ray.cancel(self._reference, force=False)

    def kill(self) -> None:
        """End it at once."""
        with contextlib.suppress(self._ray.exceptions.RayError, ValueError):
            self._ray.cancel(self._reference, force=True)


class RayEngine:
    """A cluster, joined as one of its drivers."""

    def __init__(self, address: str | None = None, workers: int | None = None) -> None:
        if workers is not None and workers < 1:
            raise EudaError(f"workers must be at least 1, not {workers}")
        self._ray, self.slots = _ray(), workers or _MANY
        _join(self._ray, address)
        self._task = self._ray.remote(num_cpus=1, max_retries=0)(train)

    def start(self, planned: Planned, folder: Path, log: Path) -> RayJob:
        """Submit one run; Ray begins it when a CPU is free."""
        config = json.dumps(_for_any_node(planned.config).to_json())
        paths = [str(path.resolve()) for path in (folder, log, Path())]
        reference = self._task.options(name=planned.name).remote(config, *paths, plugins.named())
        return RayJob(self._ray, reference)

    def close(self) -> None:
        """Leave the cluster; it goes on without us."""
        self._ray.shutdown()


def _for_any_node(config: RunConfig) -> RunConfig:
    """The same with the whole path of a robot's file: nodes work in folders of their own."""
    robot = config.robot
    if robot is None or robot.path is None:
        return config
    return dataclasses.replace(config, robot=dataclasses.replace(robot, path=str(Path(robot.path).resolve())))


def train(config: str, folder: str, log: str, here: str, modules: Sequence[str]) -> tuple[int, str]:
    """On a node: train one run in a process of its own; its exit code and what went wrong.

    The modules are those of --import. They are installed on the node, or on shared storage in the launch's folder.
    """
    path = Path(log)
    if not path.parent.is_dir():  # made by the launch, so every node must see it
        return 2, f"a node does not see {str(path.parent)!r}: the runs' folder must be on storage that all nodes share"
    with path.open("wb") as errors:
        process = subprocess.Popen(
            worker.command(Path(folder), modules), stdin=subprocess.PIPE, stdout=errors, stderr=errors,
            start_new_session=True, cwd=here if modules and os.path.isdir(here) else None,
        )  # fmt: skip
        try:
            _send(process, config)
            while process.poll() is None:  # in small waits: a blocking one would not notice Ray's interruption
                time.sleep(0.1)
        except BaseException:  # Ray's way to ask a task to stop is an exception out of nowhere
            process.terminate()
            process.wait()
            raise
    return process.returncode, explain(process.returncode, path)


def _send(process: subprocess.Popen[bytes], text: str) -> None:
    with contextlib.suppress(BrokenPipeError), process.stdin or contextlib.nullcontext() as pipe:
        if pipe is not None:
            pipe.write(text.encode())


def _ray() -> Any:
    try:
        import ray
        import ray.exceptions
    except ImportError:
        raise EudaError("ray is not installed: pip install 'euda[ray]', or leave --on ray out") from None
    return ray


def _join(ray: Any, address: str | None) -> None:
    """Connect, or say in one sentence why not; Ray's own attempts take minutes and say many."""
    name = address or os.environ.get("RAY_ADDRESS", "auto")
    if name != "auto":
        _knock(name)
    try:
        ray.init(address=name, log_to_driver=False, logging_level="ERROR", configure_logging=False)
    except (ConnectionError, RuntimeError, ValueError) as error:
        hint = "start one with: ray start --head, or name one with --address HOST:PORT"
        raise EudaError(f"cannot join a Ray cluster at {name!r} ({_first_line(error)}): {hint}") from None


def _knock(address: str) -> None:
    """Refuse an address where nobody listens."""
    host, colon, port = address.removeprefix("ray://").rpartition(":")
    if not colon or not host or not port.isdecimal() or not 0 < int(port) < 65536:
        raise EudaError(f"a Ray address is HOST:PORT or ray://HOST:PORT, not {address!r}")
    try:
        socket.create_connection((host.strip("[]"), int(port)), _PATIENCE).close()
    except OSError as error:
        why = error.strerror or str(error)
        raise EudaError(f"no Ray cluster answers at {address!r}: {why}") from None


def _first_line(error: BaseException) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[0] if lines else type(error).__name__
