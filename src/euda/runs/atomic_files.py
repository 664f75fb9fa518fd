"""Files that are either old or new, never half: the ground under checkpoints, configurations and videos."""

from __future__ import annotations

import contextlib
import errno
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from euda import operating_system
from euda.errors import EudaError

TEMPORARY = ".tmp"
_REASONS = {
    errno.ENOSPC: "the disk is full: free some space and run the same command again",
    errno.EDQUOT: "your disk quota is used up: free some space and run the same command again",
    errno.EROFS: "the disk is read-only: choose another folder with --out",
    errno.EACCES: "there is no permission to write there: choose another folder with --out",
    errno.EPERM: "there is no permission to write there: choose another folder with --out",
    errno.ENOTDIR: "a part of its path is a file, not a folder: choose another folder with --out",
    errno.EIO: "the disk reports an input/output error: check it, then run the same command again",
}


class StorageError(EudaError):
    """A disk that is full, read-only or broken; what was complete before is still complete."""


@contextlib.contextmanager
def readable_errors(path: Path, doing: str = "write") -> Iterator[None]:
    """Turn the disk's refusals into one sentence that names the file and what to do."""
    try:
        yield
    except OSError as error:
        reason = _REASONS.get(error.errno or 0, error.strerror or str(error))
        raise StorageError(f"cannot {doing} {str(path)!r}: {reason}") from error


def write_atomically(path: Path, content: bytes) -> None:
    """Write a file so that after a crash at any moment it has its old content or all of the new one.

    The content goes to a temporary file beside it, reaches the disk, and takes the name in one step;
    the folder is synchronised too, because the name lives there.
    """
    temporary = path.with_name(path.name + TEMPORARY)
    with readable_errors(path):
        try:
            _write_and_sync(temporary, content)
            os.replace(temporary, path)
        except OSError:
            with contextlib.suppress(OSError):
                temporary.unlink(missing_ok=True)
            raise
        operating_system.sync_folder(path.parent)


def _write_and_sync(path: Path, content: bytes) -> None:
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o644)
    try:
        view = memoryview(content)
        while view:
            view = view[os.write(descriptor, view) :]
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def write_json(path: Path, value: Any) -> None:
    """Write a value as readable JSON, atomically."""
    write_atomically(path, (json.dumps(value, indent=2, allow_nan=False) + "\n").encode())


def read_bytes(path: Path) -> bytes:
    """The content of a file; says in one sentence when it cannot be read."""
    with readable_errors(path, "read"):
        return path.read_bytes()


def read_json(path: Path) -> Any:
    """The value in a JSON file; says in one sentence when it cannot be read."""
    content = read_bytes(path)
    try:
        return json.loads(content)
    except (ValueError, RecursionError):
        raise StorageError(f"{str(path)!r} is damaged: it is not JSON") from None
