"""Where a run's robot is: stored as the way from the run's folder to its file, so that the two can move together."""

from __future__ import annotations

import dataclasses
import os
from pathlib import Path

from euda.runs.config import RunConfig


def seen_from(folder: Path, config: RunConfig) -> RunConfig:
    """The configuration as it is stored in a run's folder."""
    if config.robot is None or config.robot.path is None:
        return config
    return _at(config, os.path.relpath(os.path.realpath(config.robot.path), os.path.realpath(folder)))


def found_from(folder: Path, config: RunConfig) -> RunConfig:
    """A stored configuration, with the path of its robot from where this process works.

    Runs of earlier versions have the path as it was typed. A file that is in neither place is refused when it is
    needed, and the user may say where it is.
    """
    if config.robot is None or config.robot.path is None:
        return config
    place = Path(os.path.realpath(folder), config.robot.path)
    if not place.is_file():
        return config
    whole, here = os.path.realpath(place), os.path.realpath(os.curdir)
    is_below = os.path.commonpath([whole, here]) == here
    return _at(config, os.path.relpath(whole, here) if is_below else whole)


def _at(config: RunConfig, path: str) -> RunConfig:
    assert config.robot is not None
    return dataclasses.replace(config, robot=dataclasses.replace(config.robot, path=path))
