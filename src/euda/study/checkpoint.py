"""Checkpoints: arrays as safetensors and a JSON manifest with their checksum; the last two are kept.

Nothing in a checkpoint is code: loading a hostile one can fail, but runs nothing. The manifest appears
last and in one step, and it names the arrays by their content, so that a crash while saving leaves the
checkpoints before as they were.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import safetensors
import safetensors.numpy

from euda.study import storage
from euda.study.storage import StorageError

FORMAT = 1
KEPT = 2


@dataclasses.dataclass(frozen=True)
class Checkpoint:
    """Everything a run needs to go on from a step."""

    step: int
    arrays: dict[str, np.ndarray]
    values: dict[str, Any]
    """Plain JSON: states of generators, counters, sizes of files."""


def save(folder: Path, checkpoint: Checkpoint) -> None:
    """Write a checkpoint and drop all but the last two."""
    content = safetensors.numpy.save({name: _plain(array) for name, array in checkpoint.arrays.items()})
    digest = hashlib.sha256(content).hexdigest()
    body = {
        "format": FORMAT,
        "step": checkpoint.step,
        "arrays": f"{checkpoint.step:010d}-{digest[:12]}.safetensors",
        "sha256": digest,
        "values": checkpoint.values,
    }
    manifest = {**body, "manifest_sha256": _digest(body)}
    storage.write_atomically(folder / body["arrays"], content)
    storage.write_json(_manifest_path(folder, checkpoint.step), manifest)
    _prune(folder)


def newest(folder: Path) -> tuple[Checkpoint | None, list[str]]:
    """The newest checkpoint that is whole, and one reason for each newer one that is not."""
    reasons: list[str] = []
    for path in manifests(folder):
        try:
            return load(path), reasons
        except StorageError as error:
            reasons.append(str(error))
    return None, reasons


def load(path: Path) -> Checkpoint:
    """Read the checkpoint of one manifest and verify every byte of it."""
    manifest = storage.read_json(path)
    body = _verified(path, manifest)
    arrays_path = path.parent / Path(body["arrays"]).name
    with storage.readable_errors(arrays_path, "read"):
        content = arrays_path.read_bytes()
    if hashlib.sha256(content).hexdigest() != body["sha256"]:
        raise StorageError(f"checkpoint {arrays_path.name!r} is damaged: its checksum does not fit")
    try:
        arrays = safetensors.numpy.load(content)
    except safetensors.SafetensorError as error:
        raise StorageError(f"checkpoint {arrays_path.name!r} is damaged: {error}") from None
    return Checkpoint(body["step"], arrays, body["values"])


def discard_after(folder: Path, step: int) -> None:
    """Forget manifests newer than a step: they are damaged, and would be taken for newer than what comes next."""
    with storage.readable_errors(folder):
        for path in manifests(folder):
            if _step(path) > step:
                path.unlink()


def manifests(folder: Path) -> list[Path]:
    """The manifests in a folder, newest first."""
    found = folder.glob("checkpoint-*.json") if folder.is_dir() else ()
    return sorted((path for path in found if path.stem.removeprefix("checkpoint-").isdigit()), key=_step, reverse=True)


def with_prefix(prefix: str, arrays: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """The same arrays under names that begin with a prefix."""
    return {f"{prefix}/{name}": array for name, array in arrays.items()}


def without_prefix(prefix: str, arrays: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """The arrays that `with_prefix` named, under their own names."""
    return {name.removeprefix(f"{prefix}/"): array for name, array in arrays.items() if name.startswith(f"{prefix}/")}


def _verified(path: Path, manifest: Any) -> dict[str, Any]:
    """The manifest without its checksum, if it is one of ours and whole."""
    if not isinstance(manifest, dict) or not {"format", "step", "arrays", "sha256", "values"} <= manifest.keys():
        raise StorageError(f"checkpoint {path.name!r} is damaged: entries are missing")
    if manifest["format"] != FORMAT:
        raise StorageError(f"checkpoint {path.name!r} has format {manifest['format']!r}, this euda reads {FORMAT}")
    body = {key: value for key, value in manifest.items() if key != "manifest_sha256"}
    if _digest(body) != manifest.get("manifest_sha256"):
        raise StorageError(f"checkpoint {path.name!r} is damaged: its checksum does not fit")
    return body


def _prune(folder: Path) -> None:
    """Remove everything that the last manifests do not name, left-overs of crashes among it."""
    kept = manifests(folder)[:KEPT]
    needed = {path.name for path in kept} | set(_named_arrays(kept))
    with storage.readable_errors(folder):
        for entry in os.scandir(folder):
            if entry.name not in needed and entry.is_file(follow_symlinks=False):
                os.unlink(entry.path)


def _named_arrays(paths: list[Path]) -> Iterator[str]:
    for path in paths:
        manifest = storage.read_json(path)
        if isinstance(manifest, dict):
            yield str(manifest.get("arrays"))


def _manifest_path(folder: Path, step: int) -> Path:
    return folder / f"checkpoint-{step:010d}.json"


def _step(path: Path) -> int:
    return int(path.stem.removeprefix("checkpoint-"))


def _digest(body: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(body, sort_keys=True, allow_nan=False).encode()).hexdigest()


def _plain(array: np.ndarray) -> np.ndarray:
    """A contiguous copy where needed: safetensors stores memory as it lies."""
    # np.ascontiguousarray would add an axis to scalars
    return np.array(array, order="C", copy=None)
