"""What only some systems have: Linux's ways, and the fallbacks of other systems with Linux's ways taken away."""

import errno
import importlib
import os
import signal
import subprocess
import sys
import textwrap
import time
from pathlib import Path

import pytest

from euda import operating_system
from euda.replay.buffer import ReplayBuffer

LINUX_ONLY = ("posix_fallocate", "sched_getaffinity", "sched_setaffinity", "O_DIRECTORY", "getuid")
ELSEWHERE = """
    from euda import operating_system  # with all that it needs
    import os, sys
    sys.modules["fcntl"] = None
    for name in ("posix_fallocate", "sched_getaffinity", "sched_setaffinity", "O_DIRECTORY", "getuid"):
        delattr(os, name)
    import ctypes
    def no_library(*args, **kwargs):
        raise OSError("no C library")
    ctypes.CDLL = no_library
"""


@pytest.fixture(params=["here", "elsewhere"])
def system(request, monkeypatch):
    """This system, and one that has nothing of what Linux has."""
    if request.param == "elsewhere":
        monkeypatch.setitem(sys.modules, "fcntl", None)
        for name in LINUX_ONLY:
            monkeypatch.delattr(os, name)
    return request.param


def in_another_process(system: str, code: str, *arguments: object) -> subprocess.Popen[str]:
    text = textwrap.dedent(ELSEWHERE if system == "elsewhere" else "") + textwrap.dedent(code)
    command = [sys.executable, "-c", text, *map(str, arguments)]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def test_a_lock_is_held_once(tmp_path, system):
    path = tmp_path / "lock"
    assert not operating_system.is_locked(path)
    first = operating_system.lock(path)
    assert operating_system.is_locked(path)
    assert operating_system.lock(path) is None
    first.release()
    assert not operating_system.is_locked(path)
    again = operating_system.lock(path)
    again.release()
    assert [entry.name for entry in tmp_path.iterdir()] == ["lock"]


HOLD = """
    import sys
    from pathlib import Path
    from euda import operating_system
    held = operating_system.lock(Path(sys.argv[1]))
    print(held is not None, flush=True)
    sys.stdin.read()
"""


def test_a_killed_process_leaves_no_lock_behind(tmp_path, system):
    path = tmp_path / "lock"
    holder = in_another_process(system, HOLD, path)
    assert holder.stdout.readline() == "True\n"
    assert operating_system.is_locked(path)
    assert operating_system.lock(path) is None
    holder.kill()
    holder.communicate()
    assert path.is_file()
    assert not operating_system.is_locked(path)
    again = operating_system.lock(path)
    assert again is not None
    again.release()


def test_a_lock_that_cannot_be_made_is_the_systems_error(tmp_path, system):
    with pytest.raises(OSError, match=r"Permission denied|No such file"):
        operating_system.lock(tmp_path / "nowhere" / "lock")
    assert not operating_system.is_locked(tmp_path / "nowhere" / "lock")


def test_files_get_their_size_and_keep_their_content(tmp_path, system):
    path = tmp_path / "file"
    path.write_bytes(b"content")
    with path.open("ab") as file:
        operating_system.reserve(file, 3 * 2**20 + 5)
        operating_system.reserve(file, 10)
    assert path.stat().st_size == 3 * 2**20 + 5
    assert path.stat().st_blocks * 512 >= path.stat().st_size
    assert path.read_bytes()[:10] == b"content\0\0\0"


def test_a_file_system_that_cannot_reserve_is_written_to(tmp_path, monkeypatch):
    def unsupported(*args):
        raise OSError(errno.EOPNOTSUPP, os.strerror(errno.EOPNOTSUPP))

    monkeypatch.setattr(os, "posix_fallocate", unsupported)
    with (tmp_path / "file").open("ab") as file:
        operating_system.reserve(file, 1000)
    assert (tmp_path / "file").read_bytes() == bytes(1000)


def test_a_replay_is_the_same_on_every_system(tmp_path, system):
    buffer = ReplayBuffer(50, 5, 1000, folder=tmp_path)
    assert sum(file.stat().st_size for file in tmp_path.iterdir()) == buffer.nbytes


def test_folders_are_synchronised_where_they_can_be(tmp_path, system):
    operating_system.sync_folder(tmp_path)


def test_cores_are_numbers_of_this_machine(system):
    cores = operating_system.cores()
    assert cores == sorted(set(cores))
    assert set(cores) <= set(range(os.cpu_count()))
    if system == "elsewhere":
        assert len(cores) == os.cpu_count()


def test_a_process_keeps_to_its_core_where_it_may_choose():
    code = """
        from euda import operating_system
        core = operating_system.cores()[-1]
        print(operating_system.keep_to_core(core), operating_system.cores() == [core])
    """
    assert in_another_process("here", code).communicate()[0] == "True True\n"
    said = in_another_process("elsewhere", code).communicate()[0]
    assert said == f"False {os.cpu_count() == 1}\n"


PARENT = """
    import subprocess, sys
    child = subprocess.Popen([sys.executable, "-c", sys.argv[1]], stdout=subprocess.PIPE, text=True)
    print(child.stdout.readline().strip(), flush=True)
    sys.stdin.read()
"""
CHILD = """
    import os, signal, sys, time
    from pathlib import Path
    from euda import operating_system
    def end(number, frame):
        Path({path!r}).write_text(str(number))
        os._exit(0)
    signal.signal(signal.SIGTERM, end)
    operating_system.stop_with_parent(os.getppid())
    print("ready", flush=True)
    time.sleep(60)
"""


@pytest.mark.parametrize("where", ["here", "elsewhere"])
def test_a_process_ends_with_its_parent(tmp_path, where):
    path = tmp_path / "signal"
    child = textwrap.dedent(ELSEWHERE if where == "elsewhere" else "") + textwrap.dedent(CHILD.format(path=str(path)))
    parent = in_another_process("here", PARENT, child)
    assert parent.stdout.readline() == "ready\n"
    parent.kill()
    parent.communicate()
    deadline = time.monotonic() + 30
    while not (path.is_file() and path.read_text()):
        assert time.monotonic() < deadline
        time.sleep(0.02)
    assert int(path.read_text()) == signal.SIGTERM


def test_signals_that_ask_to_end(monkeypatch):
    assert operating_system.stop_signals() == (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    monkeypatch.delattr(signal, "SIGHUP")
    assert operating_system.stop_signals() == (signal.SIGINT, signal.SIGTERM)


def test_nothing_else_imports_what_only_linux_has():
    """The one place that knows: everything else asks it."""
    words = ("fcntl", "msvcrt", *LINUX_ONLY[:4], "signal.SIGHUP", "prctl")
    package = Path(importlib.import_module("euda").__file__).parent
    found = [
        (path.name, word)
        for path in package.rglob("*.py")
        for word in words
        if path.name != "operating_system.py" and word in path.read_text("utf-8")
    ]
    assert found == []
