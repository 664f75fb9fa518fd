"""Where benchmarks write their raw figures, and what they say about the machine: no host names, no paths."""

from __future__ import annotations

import importlib.metadata
import json
import os
import platform
from pathlib import Path
from typing import Any

_RESULTS = Path(__file__).resolve().parent.parent / "results" / "benchmarks"
_PACKAGES = ("mujoco", "dm_control", "numpy", "gymnasium")


def machine() -> dict[str, Any]:
    """Processor, cores, versions, and how busy the machine is now."""
    return {
        "cpu": _cpu_model(),
        "cores": os.cpu_count(),
        "python": platform.python_version(),
        "load_average": [round(load, 2) for load in os.getloadavg()],
        **{name: importlib.metadata.version(name) for name in _PACKAGES},
    }


def _cpu_model() -> str:
    lines = Path("/proc/cpuinfo").read_text("utf-8").splitlines()
    return next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), "unknown")


def write(name: str, figures: dict[str, Any]) -> None:
    """Write `results/benchmarks/<name>.json`, whole or not at all."""
    _RESULTS.mkdir(parents=True, exist_ok=True)
    path, part = _RESULTS / f"{name}.json", _RESULTS / f".{name}.json.part"
    part.write_text(json.dumps(figures, indent=2) + "\n", "utf-8")
    part.replace(path)
    print(f"wrote results/benchmarks/{name}.json")
