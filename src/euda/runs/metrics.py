"""Where the numbers of a run go: `metrics.jsonl` always, TensorBoard beside it, Weights & Biases or MLflow if asked.

One JSON object per line with at least `event`, `step` and `seconds`:

- `eval`: `return_mean` and `returns` of the evaluation episodes;
- `train`: at the end of each training episode its number and `return`, and means of the losses since the last one;
- `end`: the run has reached its steps.

`eval` and `train` have `unstable`, the number of episodes that ended early because the simulation blew up, where there
are any. Everything but `seconds` is the same for the same configuration on the same machine, however often the
run was interrupted: a run that goes on first cuts the file back to where its checkpoint was made.
"""

from __future__ import annotations

import contextlib
import importlib
import json
import math
import os
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Any, Protocol

from euda.errors import EudaError
from euda.runs import atomic_files

if TYPE_CHECKING:
    from euda.runs.run_folder import Run

Event = Mapping[str, Any]


class Sink(Protocol):
    """Something that takes events."""

    def write(self, event: Event) -> None:
        """Take one event."""
        ...

    def close(self) -> None:
        """Write what is left."""
        ...


class JsonLines:
    """The record of a run, appended line by line; `size` is what a checkpoint remembers."""

    def __init__(self, path: Path, size: int) -> None:
        self._path, self.size = path, size
        with atomic_files.readable_errors(path):
            self._descriptor = os.open(path, os.O_WRONLY | os.O_CREAT, 0o644)
            found = os.fstat(self._descriptor).st_size
            if found >= size:
                os.ftruncate(self._descriptor, size)
                os.lseek(self._descriptor, size, os.SEEK_SET)
        if found < size:
            os.close(self._descriptor)
            raise atomic_files.StorageError(
                f"{str(path)!r} is damaged: it has {found} bytes, the checkpoint knows of {size}"
            )

    def write(self, event: Event) -> None:
        """Append one line."""
        line = (json.dumps(event, allow_nan=False) + "\n").encode()
        with atomic_files.readable_errors(self._path):
            view = memoryview(line)
            while view:
                view = view[os.write(self._descriptor, view) :]
        self.size += len(line)

    def sync(self) -> None:
        """Bring all lines to the disk, before a checkpoint that counts on them."""
        with atomic_files.readable_errors(self._path):
            os.fsync(self._descriptor)

    def close(self) -> None:
        """Close the file."""
        os.close(self._descriptor)


class TensorBoard:
    """An event file that TensorBoard reads; written in place, without tensorboardX's thread and host name."""

    def __init__(self, folder: Path, step: int) -> None:
        from tensorboardX.record_writer import RecordWriter

        self._proto, self._path = _protobuf("event"), folder
        with atomic_files.readable_errors(folder):
            folder.mkdir(exist_ok=True)
            self._writer = RecordWriter(str(folder / f"events.out.tfevents.{time.time():.6f}.euda"))
            self._put(file_version="brain.Event:2")
            if step:  # a run that goes on: what an earlier file says about later steps is void
                started = self._proto.SessionLog(status=self._proto.SessionLog.START)
                self._put(step=step + 1, session_log=started)

    @staticmethod
    def of(run: Run, step: int) -> TensorBoard:
        """In the folder of a run that goes on from a step."""
        return TensorBoard(run.folder / "tensorboard", step)

    def write(self, event: Event) -> None:
        """Add every number of the event under its own tag."""
        summary = _protobuf("summary").Summary
        values = [summary.Value(tag=tag, simple_value=value) for tag, value in scalars(event).items()]
        with atomic_files.readable_errors(self._path):
            self._put(step=event["step"], summary=summary(value=values))
            if event["event"] != "train":  # tensorboardX waits for the disk here: too slow for every episode
                self._writer.flush()

    def close(self) -> None:
        """Close the file."""
        with atomic_files.readable_errors(self._path):
            self._writer.close()

    def _put(self, **content: Any) -> None:
        self._writer.write(self._proto.Event(wall_time=time.time(), **content).SerializeToString())


class WeightsAndBiases:
    """Sends numbers to Weights & Biases (extra `wandb`)."""

    def __init__(self, project: str, name: str, config: Mapping[str, Any]) -> None:
        self._run = _extra("wandb").init(project=project, name=name, config=dict(config))

    def write(self, event: Event) -> None:
        """Log the numbers of one event; a step that was already sent before an interruption is ignored there."""
        self._run.log(scalars(event), step=event["step"])

    def close(self) -> None:
        """Finish the upload."""
        self._run.finish()


class MLflow:
    """Sends numbers to MLflow (extra `mlflow`)."""

    def __init__(self, experiment: str, name: str, config: Mapping[str, Any]) -> None:
        self._mlflow = _extra("mlflow")
        self._mlflow.set_experiment(experiment)
        self._mlflow.start_run(run_name=name)
        self._mlflow.log_params(dict(_flat(config)))

    def write(self, event: Event) -> None:
        """Log the numbers of one event."""
        self._mlflow.log_metrics(scalars(event), step=event["step"])

    def close(self) -> None:
        """Finish the run."""
        self._mlflow.end_run()


def scalars(event: Event) -> dict[str, float]:
    """The numbers of an event by tag, for example `eval/return_mean`."""
    kind = event["event"]
    numbers = {key: value for key, value in event.items() if isinstance(value, int | float) and key != "step"}
    return {f"{kind}/{key}": float(value) for key, value in numbers.items()}


def read(path: Path) -> Iterator[dict[str, Any]]:
    """The events of a `metrics.jsonl`; lines that are no events (cut off by a crash) are left out."""
    if not path.is_file():
        return
    with atomic_files.readable_errors(path, "read"), path.open("rb") as file:
        for line in file:
            if (event := parse(line)) is not None:
                yield event


def read_from(path: Path, offset: int) -> tuple[list[dict[str, Any]], int]:
    """The events of all whole lines from a place in the file on, and the place behind them."""
    with atomic_files.readable_errors(path, "read"), path.open("rb") as file:
        file.seek(offset)
        content, _, _ = file.read().rpartition(b"\n")
    events = [event for line in content.split(b"\n") if (event := parse(line)) is not None]
    return events, offset + (len(content) + 1 if content else 0)


def parse(line: bytes) -> dict[str, Any] | None:
    """The event of a line, or None if it is none."""
    event = None
    with contextlib.suppress(ValueError, RecursionError):
        event = json.loads(line)
    if not isinstance(event, dict) or not isinstance(event.get("event"), str) or not _is_step(event.get("step")):
        return None
    numbers = [event.get("seconds"), *([event.get("return_mean")] if event["event"] == "eval" else [])]
    return event if all(isinstance(number, int | float) and math.isfinite(number) for number in numbers) else None


def _is_step(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0


def _protobuf(name: str) -> Any:
    """One of TensorBoard's message modules, whose contents are made when they are imported."""
    return importlib.import_module(f"tensorboardX.proto.{name}_pb2")


def _extra(name: str) -> ModuleType:
    try:
        return importlib.import_module(name)
    except ImportError:
        raise EudaError(
            f"{name} is not installed: pip install 'euda[{name}]', or leave the flag --{name} out"
        ) from None


def _flat(config: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    for key, value in config.items():
        if isinstance(value, Mapping):
            yield from _flat(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", value
