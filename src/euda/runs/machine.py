"""The machine under a run: how many threads it may use, which core, and what is recorded about it.

Training is one small update after the other, so a run wants one core and no threads; two runs on two cores
give nearly twice the steps, two threads of one run 10 to 30 % more. One thread also makes the results
independent of how many cores there are, because sums are then always added in the same order.
"""

from __future__ import annotations

import contextlib
import ctypes
import hashlib
import importlib.metadata
import os
import platform
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from euda import operating_system
from euda.errors import EudaError
from euda.runs.cores import Cores

_PACKAGES = ("euda", "jax", "jaxlib", "numpy", "mujoco", "dm_control", "gymnasium", "safetensors")
_OPENBLAS = ("scipy_openblas_set_num_threads64_", "scipy_openblas_set_num_threads", "openblas_set_num_threads")
_FLAGS = ("XLA_FLAGS", "NPROC", "OPENBLAS_NUM_THREADS", "JAX_PLATFORMS")
_XLA_FLAG = "--xla_cpu_multi_thread_eigen=false"
_ONE_THREAD = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "NPROC": "1"}  # NPROC: XLA's pool of threads
_taken: list[Cores] = []  # for as long as this process lives


def use_one_thread() -> None:
    """Tell NumPy's and XLA's libraries to use one thread from now on; JAX must not have been used yet."""
    os.environ |= _ONE_THREAD
    flags = os.environ.get("XLA_FLAGS", "")
    if "xla_cpu_multi_thread_eigen" not in flags:
        os.environ["XLA_FLAGS"] = f"{flags} {_XLA_FLAG}".strip()
    for library in _loaded("openblas"):
        for name in _OPENBLAS:
            if hasattr(library, name):
                getattr(library, name)(1)


@contextlib.contextmanager
def borrowed(one_thread: bool) -> Iterator[None]:
    """Train in a process that is somebody else's, and leave its environment variables as they were.

    With `one_thread` JAX begins with one, which stays so: it must not have been imported yet.
    """
    if one_thread and "jax" in sys.modules:
        raise EudaError(
            "one_thread=True comes too late: JAX has been imported and keeps its threads; train first, or leave it out"
        )
    before = dict(os.environ)
    try:
        if one_thread:
            use_one_thread()
        cache_compilations()  # read when JAX is imported, and without effect if that was before
        yield
    finally:
        os.environ.clear()
        os.environ |= before


@contextlib.contextmanager
def on_device(name: str) -> Iterator[None]:
    """Have JAX compute on a device while this is open, whatever it computes on otherwise."""
    import jax

    try:
        device = jax.devices(name)[0]
    except RuntimeError as error:
        raise _no_device(name, error) from None
    with jax.default_device(device):
        yield


def use_device(name: str | None) -> None:
    """Choose what JAX computes on in this process, which is ours; JAX must not have been imported yet.

    Without a name, what JAX_PLATFORMS says, and the CPU if it says nothing: the updates are small, and an accelerator
    that nobody asked for would mostly wait.
    """
    os.environ["JAX_PLATFORMS"] = name or os.environ.get("JAX_PLATFORMS") or "cpu"


def refuse_missing_device() -> None:
    """Say in one sentence that JAX cannot compute where it was told to."""
    import jax

    try:
        jax.devices()
    except (RuntimeError, AssertionError) as error:  # the second where it knows the name and has nothing to go with it
        raise _no_device(os.environ["JAX_PLATFORMS"], error) from None


def _no_device(name: str, error: Exception) -> EudaError:
    said = " ".join(str(error).split()) or "nothing for it is installed"
    return EudaError(f"JAX cannot compute on device {name!r} here ({said}): leave it out for the CPU")


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


def take_core(name: str | None = None, wanted: int = 1) -> str:
    """Keep this process on one core: the one that is named, or one that no other run has taken; says which.

    `any` leaves the choice to the system at every moment. A process that has use for more than one gets as many of
    those that are `wanted` as no other run has taken.
    """
    allowed = operating_system.cores()
    if name == "any":
        return f"on any of {len(allowed)} cores"
    if name is not None and name not in map(str, allowed):
        raise EudaError(f"core {name} is not available: valid are {', '.join(map(str, allowed))} and any")
    cores = Cores(wanted, only=None) if name is None else Cores(1, only=int(name))
    _taken.append(cores)
    if name is None and not cores.claimed:
        return f"on any of {len(allowed)} cores, because none is free of other runs"
    kept = cores.claimed or cores.numbers
    if operating_system.keep_to_core(*kept):
        return f"on core{'s' if len(kept) > 1 else ''} {' and '.join(map(str, kept))} of {len(allowed)}"
    if name is None:
        return "on a core that the system chooses"
    raise EudaError(f"this system chooses the cores itself: leave --core {name} out")


def describe(command: Sequence[str] | None = None) -> dict[str, Any]:
    """Versions, processor and command line, without anything that names this machine or a folder on it."""
    return {
        "time": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        "command": [_without_folder(word) for word in (sys.argv[1:] if command is None else command)],
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.machine()}",
        "processor": _processor(),
        "cores": os.cpu_count(),
        "cores_used": len(operating_system.cores()),
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
