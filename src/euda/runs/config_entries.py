"""Configurations as the JSON in a run's folder: those of an older format brought up to date, and where two differ."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from euda import lookup, schema
from euda.replay.settings import AUGMENTATIONS
from euda.runs.robot_config import changed_parts


def from_format_1(entries: Mapping[str, Any]) -> dict[str, Any]:
    """Entries as they are now, of what was written when all augmentations had one class and all runs had `mlp`."""
    entries = dict(entries)
    networks = {"mlp": entries.pop("mlp"), "segnn": entries.pop("segnn", None)}
    noise = entries["augmentation"]
    row = lookup.find("augmentation", AUGMENTATIONS, str(noise["name"]))
    own = {name: noise[name] for name in schema.hints(row.settings) if name in noise}
    return entries | {
        "architecture": networks["segnn"] or networks["mlp"],
        "augmentation": {"name": noise["name"], "share": noise["share"], "settings": own},
    }


def differences(old: Mapping[str, Any], new: Mapping[str, Any], prefix: str = "") -> Iterator[str]:
    """Where two configurations in JSON differ, readable: `seed: 0 there, 1 asked for`."""
    for key in [*old, *(key for key in new if key not in old)]:
        before, after = old.get(key), new.get(key)
        if f"{prefix}{key}" == "robot.model" and before is not None and after is not None:
            if parts := changed_parts(before, after):
                yield f"the robot itself has changed since the run began: its {', '.join(parts)}"
        elif isinstance(before, Mapping) and isinstance(after, Mapping):
            yield from differences(before, after, f"{prefix}{key}.")
        elif before != after:
            yield f"{prefix}{key}: {before!r} there, {after!r} asked for"
