"""What only some operating systems have, and what is done on the others: the one place that knows.

Linux has everything here. macOS lacks choosing cores, reserving room on a disk and a signal at a parent's end;
Windows lacks `flock`, hang-ups and synchronised folders too. Each function names what it falls back on. Tests
take Linux's ways away and run the fallbacks, on Linux; nothing was tried on macOS or Windows.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import importlib
import os
import signal
import sqlite3
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, BinaryIO

_BLOCK = 1 << 20  # bytes
_WATCH = 1.0  # seconds
_BETWEEN = 0.02  # seconds
_PR_SET_PDEATHSIG = 1  # from <linux/prctl.h>
_UNSUPPORTED = (errno.ENOSYS, errno.EOPNOTSUPP)


def stop_signals() -> tuple[int, ...]:
    """The signals that ask a process to end: Ctrl-C, SIGTERM and, where there are terminals to close, SIGHUP."""
    names = ("SIGINT", "SIGTERM", "SIGHUP")
    return tuple(getattr(signal, name) for name in names if hasattr(signal, name))


UNREAD: int = getattr(signal, "SIGPIPE", signal.SIGTERM)
"""What a process gets that writes where nobody reads any more."""


# -- locks -------------------------------------------------------------------------------------------------


class Lock:
    """A lock that is held; the system frees it when the process ends, however it ends."""

    def __init__(self, release: Callable[[], None]) -> None:
        self._release = release

    def release(self) -> None:
        """Others may have it."""
        self._release()


def lock(path: Path, looks: int = 3) -> Lock | None:
    """Take the lock of a file, which is made if it is not there; None if another process, or this one, holds it.

    By `flock`; elsewhere by a transaction of SQLite, which can lock a file on every system. Whoever asks `is_locked`
    holds a part of it for a moment, so a second look is worth waiting for.
    """
    for look in range(looks):
        if look:
            time.sleep(_BETWEEN)
        if (taken := _take(path)) is not None:
            return taken
    return None


def is_locked(path: Path) -> bool:
    """Whether somebody holds the lock of a file, which may be on a disk that is read-only for us."""
    if not path.is_file():
        return False
    try:
        taken = _take(path, to_look=True)
    except OSError:
        return False
    if taken is not None:
        taken.release()
    return taken is None


def _take(path: Path, to_look: bool = False) -> Lock | None:
    try:
        fcntl: Any = importlib.import_module("fcntl")
    except ImportError:
        return _take_by_sqlite(path, to_look)
    descriptor = os.open(path, os.O_RDONLY if to_look else os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o644)
    try:
        fcntl.flock(descriptor, (fcntl.LOCK_SH if to_look else fcntl.LOCK_EX) | fcntl.LOCK_NB)
    except OSError as error:
        os.close(descriptor)
        if isinstance(error, BlockingIOError):
            return None
        raise
    return Lock(lambda: os.close(descriptor))


def _take_by_sqlite(path: Path, to_look: bool) -> Lock | None:
    place, connection = path.absolute().as_uri() + ("?mode=ro" if to_look else ""), None
    try:
        connection = sqlite3.connect(place, timeout=0, isolation_level=None, check_same_thread=False, uri=True)
        connection.execute("SELECT * FROM sqlite_master" if to_look else "BEGIN EXCLUSIVE")
    except sqlite3.OperationalError as error:
        if connection is not None:
            connection.close()
        if "locked" in str(error):
            return None
        raise OSError(errno.EACCES, os.strerror(errno.EACCES), str(path)) from error
    return Lock(connection.close)


# -- disks -------------------------------------------------------------------------------------------------


def reserve(file: BinaryIO, size: int) -> None:
    """Give an open file at least this size with all its blocks on the disk: a full disk is an error now.

    By `posix_fallocate`; elsewhere by writing zeros behind its end, which leaves holes that it had as they are.
    """
    if _fallocate(file.fileno(), size):
        return
    missing = size - file.seek(0, os.SEEK_END)
    for start in range(0, missing, _BLOCK):
        file.write(bytes(min(_BLOCK, missing - start)))
    file.flush()


def _fallocate(descriptor: int, size: int) -> bool:
    """Whether the system has done it: neither every system nor every file system can."""
    fallocate = getattr(os, "posix_fallocate", None)
    if fallocate is None:
        return False
    try:
        fallocate(descriptor, 0, size)
    except OSError as error:
        if error.errno in _UNSUPPORTED:
            return False
        raise
    return True


def sync_folder(folder: Path) -> None:
    """Bring the names in a folder to the disk; elsewhere nothing, because a folder cannot be opened."""
    if not hasattr(os, "O_DIRECTORY"):
        return
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


# -- processes ---------------------------------------------------------------------------------------------


def cores() -> list[int]:
    """The numbers of the cores that this process may use; elsewhere all there are."""
    affinity = getattr(os, "sched_getaffinity", None)
    return list(range(os.cpu_count() or 1)) if affinity is None else sorted(affinity(0))


def keep_to_core(*cores: int) -> bool:
    """Keep this process on one core, or on a few; False where the system does not let it choose."""
    choose = getattr(os, "sched_setaffinity", None)
    if choose is None:
        return False
    choose(0, set(cores))
    return True


def user() -> str:
    """What tells the users of one machine apart; elsewhere nothing: there each has a folder of temporary files."""
    return str(os.getuid()) if hasattr(os, "getuid") else ""


def stop_with_parent(parent: int) -> None:
    """Have this process get SIGTERM when the one that started it ends, so that no run goes on unwatched.

    By the kernel; elsewhere by a thread that looks every second.
    """
    if not _ask_kernel_to_stop():
        threading.Thread(target=_watch, args=(parent,), daemon=True).start()
    if os.getppid() != parent:  # it has ended already
        os.kill(os.getpid(), signal.SIGTERM)


def _ask_kernel_to_stop() -> bool:
    with contextlib.suppress(AttributeError, OSError, TypeError):  # no prctl, or no C library to ask for it
        return ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGTERM, 0, 0, 0) == 0
    return False


def _watch(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(_WATCH)
    os.kill(os.getpid(), signal.SIGTERM)
