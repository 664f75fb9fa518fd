"""The tutorial's files where the user works."""

from __future__ import annotations

from importlib import resources
from pathlib import Path

from euda.errors import EudaError
from euda.runs import atomic_files


def example(out: Path = Path()) -> int:
    """Write the tutorial's robot and study: tripod.xml, tripod.toml.

    Args:
        out: The folder to write into; by default this one.
    """
    files = {file.name: file.read_bytes() for file in sorted(resources.files("euda.examples").iterdir(), key=str)
             if file.is_file() and file.name.startswith("tripod.")}  # fmt: skip
    there = [name for name in files if (out / name).exists()]
    if there:
        raise EudaError(f"{', '.join(there)} is there already: nothing was written; choose another folder with --out")
    with atomic_files.readable_errors(out):
        out.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        atomic_files.write_atomically(out / name, content)
    study = out / "tripod.toml"
    print(f"wrote {', '.join(str(out / name) for name in files)}; next: euda study show {study}, docs/robot.md")
    return 0
