"""The machine under a run: how many threads it may use, which core, and what is recorded about it.

Training is one small update after the other, so a run wants one core and no threads; two runs on two cores
give nearly twice the steps, two threads of one run 10 to 30 % more. One thread also makes the results
independent of how many cores there are, because sums are then always added in the same order.
"""

from __future__ import annotations

import ctypes
import hashlib
import importlib.metadata
import os
import platform
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from euda.errors import EudaError

_PACKAGES = ("euda", "jax", "jaxlib", "numpy", "mujoco", "dm_control", "gymnasium", "safetensors")
_OPENBLAS = ("scipy_openblas_set_num_threads64_", "scipy_openblas_set_num_threads", "openblas_set_num_threads")
_FLAGS = ("XLA_FLAGS", "NPROC", "OPENBLAS_NUM_THREADS", "JAX_PLATFORMS")
_XLA_FLAG = "--xla_cpu_multi_thread_eigen=false"


def use_one_thread() -> None:
    """Tell NumPy's and XLA's libraries to use one thread; JAX must not have been used yet."""
    os.environ |= {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "NPROC": "1"}  # NPROC: XLA's pool of threads
    os.environ.setdefault("JAX_PLATFORMS", "cpu")
    flags = os.environ.get("XLA_FLAGS", "")
    if "xla_cpu_multi_thread_eigen" not in flags:
        os.environ["XLA_FLAGS"] = f"{flags} {_XLA_FLAG}".strip()
    for library in _loaded("openblas"):
        for name in _OPENBLAS:
            if hasattr(library, name):
                getattr(library, name)(1)


def cache_compilations(folder: str | Path | None = None) -> None:
    """Let processes share what JAX compiled; JAX must not have been imported yet.

    The folder is one of this processor and these versions, below the user's cache. Those who set
    JAX_COMPILATION_CACHE_DIR themselves (or set it empty, for no cache) keep what they set.
    """
    if folder is None:
        words = (_cpuinfo("model name"), _cpuinfo("flags"), _version("jaxlib"), _version("euda"))
        name = hashlib.sha256(repr(words).encode()).hexdigest()[:16]
        folder = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache", "euda", f"compiled-{name}")
    os.environ.setdefault("JAX_COMPILATION_CACHE_DIR", str(folder))
    os.environ.setdefault("JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS", "0.5")


def _loaded(part: str) -> list[ctypes.CDLL]:
    """The shared libraries of this process whose file name contains `part`; they read the environment long ago."""
    try:
        lines = Path("/proc/self/maps").read_text("utf-8").splitlines()
    except OSError:
        return []
    files = {line.split(maxsplit=5)[5] for line in lines if part in line.rpartition("/")[2]}
    return [ctypes.CDLL(file) for file in sorted(files) if os.path.isfile(file)]


def pin(core: int | None) -> None:
    """Keep this process on one core; None leaves it free."""
    if core is None:
        return
    allowed = sorted(os.sched_getaffinity(0))
    if core not in allowed:
        raise EudaError(f"core {core} is not available: valid are {', '.join(map(str, allowed))}")
    os.sched_setaffinity(0, {core})


def describe(command: Sequence[str] | None = None) -> dict[str, Any]:
    """Versions, processor and command line, without anything that names this machine or a folder on it."""
    return {
        "time": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "command": [_without_folder(word) for word in (sys.argv[1:] if command is None else command)],
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.machine()}",
        "processor": _processor(),
        "cores": os.cpu_count(),
        "cores_used": len(os.sched_getaffinity(0)),
        "flags": {name: os.environ[name] for name in _FLAGS if name in os.environ},
        "packages": {name: version for name in _PACKAGES if (version := _version(name))},
    }


def changes(before: Mapping[str, Any], now: Mapping[str, Any]) -> list[str]:
    """What of two descriptions can change the last bits of a number, readable: `jax 0.10.1, now 0.10.2`."""
    pairs = {name: (before.get(name), now.get(name)) for name in ("processor", "python", "flags")}
    versions = before.get("packages", {}), now.get("packages", {})
    pairs |= {name: (versions[0].get(name), versions[1].get(name)) for name in sorted({*versions[0], *versions[1]})}
    return [f"{name} {old}, now {new}" for name, (old, new) in pairs.items() if old != new]


def _without_folder(word: str) -> str:
    """A word of a command line; of an absolute path only the last part."""
    flag, equals, value = word.rpartition("=")
    return f"{flag}{equals}{Path(value).name if value.startswith(('/', '~')) else value}"


def _processor() -> str:
    """The processor's model as Linux names it."""
    return _cpuinfo("model name") or platform.processor()


def _cpuinfo(entry: str) -> str | None:
    """An entry of Linux's description of the first processor."""
    try:
        lines = Path("/proc/cpuinfo").read_text("utf-8").splitlines()
    except OSError:
        return None
    return next((line.partition(":")[2].strip() for line in lines if line.startswith(entry)), None)


def _version(package: str) -> str | None:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None
