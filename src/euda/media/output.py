"""Files that pictures, films and policies go to: what is wrong with one is said before any work is done."""

from __future__ import annotations

import tempfile
from pathlib import Path

from euda.errors import EudaError
from euda.runs import atomic_files


def check(path: Path, ending: str, what: str, makes_folder: bool = False) -> None:
    """Refuse a file of another kind (`what` begins the sentence), and one that cannot be written."""
    if path.suffix.lower() != ending:
        raise EudaError(f"{what} file, not {path.name!r}")
    if makes_folder:
        with atomic_files.readable_errors(path):
            path.parent.mkdir(parents=True, exist_ok=True)
    if not path.parent.is_dir():
        raise EudaError(f"no folder {str(path.parent)!r} to write {path.name!r} into")
    with atomic_files.readable_errors(path), tempfile.TemporaryFile(dir=path.parent):
        pass
