"""Checkpoints: arrays as safetensors and a JSON manifest with their checksum; the last two are kept.

Nothing in a checkpoint is code: loading a hostile one can fail, but runs nothing. The manifest appears
last and in one step, and it names the arrays by their content, so that a crash while saving leaves the
checkpoints before as they were.
"""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import json
import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import safetensors
import safetensors.numpy

from euda.runs import atomic_files
from euda.runs.atomic_files import StorageError

FORMAT = 2
"""Of what is in a checkpoint; 1 had the parameters of each network as one vector."""
KEPT = 2
_MANIFEST = re.compile(r"checkpoint-([0-9]+)\.json")
_ARRAYS = re.compile(r"[0-9]+-[0-9a-f]{12}\.safetensors")  # so never a path


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
    atomic_files.write_atomically(folder / body["arrays"], content)
    atomic_files.write_json(_manifest_path(folder, checkpoint.step), manifest)
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
    manifest = _verified(path, atomic_files.read_json(path))
    arrays_path = path.parent / manifest["arrays"]
    content = atomic_files.read_bytes(arrays_path)
    if hashlib.sha256(content).hexdigest() != manifest["sha256"]:
        raise StorageError(f"checkpoint {arrays_path.name!r} is damaged: its checksum does not fit")
    return Checkpoint(manifest["step"], arrays_of(arrays_path, content), manifest["values"])


def arrays_of(path: Path, content: bytes) -> dict[str, np.ndarray]:
    """The arrays in the content of a safetensors file."""
    try:
        return safetensors.numpy.load(content)
    except safetensors.SafetensorError as error:
        raise StorageError(f"{str(path)!r} is damaged: {error}") from None
    except KeyError as error:  # a type of numbers that safetensors knows and NumPy does not
        raise StorageError(f"{str(path)!r} is damaged: it holds numbers of type {error}") from None


def discard_after(folder: Path, step: int) -> None:
    """Forget manifests newer than a step: they are damaged, and would be taken for newer than what comes next."""
    with atomic_files.readable_errors(folder):
        for path in manifests(folder):
            if step_of(path) > step:
                path.unlink()


def manifests(folder: Path) -> list[Path]:
    """The manifests in a folder, newest first."""
    found = folder.glob("checkpoint-*.json") if folder.is_dir() else ()
    return sorted((path for path in found if _MANIFEST.fullmatch(path.name)), key=step_of, reverse=True)


def with_prefix(prefix: str, arrays: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """The same arrays under names that begin with a prefix."""
    return {f"{prefix}/{name}": array for name, array in arrays.items()}


def without_prefix(prefix: str, arrays: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """The arrays that `with_prefix` named, under their own names."""
    return {name.removeprefix(f"{prefix}/"): array for name, array in arrays.items() if name.startswith(f"{prefix}/")}


def _verified(path: Path, manifest: Any) -> dict[str, Any]:
    """The manifest, if it is one of ours and whole.

    A checksum shows damage, not who wrote it: a manifest may come from anybody, so what is in it is looked at before
    it is used.
    """
    if not isinstance(manifest, dict) or not {"format", "step", "arrays", "sha256", "values"} <= manifest.keys():
        raise StorageError(f"checkpoint {path.name!r} is damaged: entries are missing")
    if manifest["format"] != FORMAT:
        raise StorageError(f"checkpoint {path.name!r} has format {manifest['format']!r}, this euda reads {FORMAT}")
    body = {key: value for key, value in manifest.items() if key != "manifest_sha256"}
    try:
        digest = _digest(body)
    except (ValueError, RecursionError):  # NaN, or nested a thousand deep
        raise StorageError(f"checkpoint {path.name!r} is damaged: it holds what no checkpoint has") from None
    if digest != manifest.get("manifest_sha256"):
        raise StorageError(f"checkpoint {path.name!r} is damaged: its checksum does not fit")
    wrong = [name for name, is_right in (
        ("step", type(body["step"]) is int and body["step"] == step_of(path)),
        ("arrays", isinstance(body["arrays"], str) and _ARRAYS.fullmatch(body["arrays"]) is not None),
        ("values", isinstance(body["values"], dict)),
    ) if not is_right]  # fmt: skip
    if wrong:
        raise StorageError(f"checkpoint {path.name!r} was not written by euda: {', '.join(wrong)} cannot be right")
    return body


def _prune(folder: Path) -> None:
    """Remove everything that the last manifests do not name, left-overs of crashes among it."""
    kept = manifests(folder)[:KEPT]
    needed = {path.name for path in kept} | set(_named_arrays(kept))
    with atomic_files.readable_errors(folder):
        for entry in os.scandir(folder):
            if entry.name not in needed and entry.is_file(follow_symlinks=False):
                os.unlink(entry.path)


def _named_arrays(paths: list[Path]) -> Iterator[str]:
    for path in paths:
        with contextlib.suppress(StorageError):  # one that is damaged needs no arrays
            manifest = atomic_files.read_json(path)
            if isinstance(manifest, dict):
                yield str(manifest.get("arrays"))


def _manifest_path(folder: Path, step: int) -> Path:
    return folder / f"checkpoint-{step:010d}.json"


def step_of(path: Path) -> int:
    """The step in the name of a manifest."""
    return int(path.stem.removeprefix("checkpoint-"))


def _digest(body: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(body, sort_keys=True, allow_nan=False).encode()).hexdigest()


def _plain(array: np.ndarray) -> np.ndarray:
    """A contiguous copy where needed: safetensors stores memory as it lies."""
    # np.ascontiguousarray would add an axis to scalars
    return np.array(array, order="C", copy=None)
