"""dm_control's own tasks: their models, resets and timing. It is imported here only, and without a screen."""

from __future__ import annotations

import contextlib
import logging
import os
import sys
import warnings
from collections.abc import Iterator

import numpy as np

if "dm_control" not in sys.modules and "MUJOCO_GL" not in os.environ and "DISPLAY" not in os.environ:
    # Without a screen dm_control would try GLFW first and print a warning; euda draws by its own means.
    os.environ["MUJOCO_GL"] = "disabled"
    try:
        from dm_control import suite
    finally:
        del os.environ["MUJOCO_GL"]
else:
    from dm_control import suite

from dm_control.mujoco import wrapper
from dm_control.rl.control import Environment
from dm_control.suite import cheetah, common, hopper, walker

# Other modules take dm_control from this one, because of the guard above.
__all__ = ["Environment", "cheetah", "common", "hopper", "load", "quiet_compile", "suite", "walker", "wrapper"]


def load(domain: str, task: str, random: np.random.RandomState) -> Environment:
    """dm_control's environment of that name."""
    with quiet_compile():
        return suite.load(domain, task, task_kwargs={"random": random})


@contextlib.contextmanager
def quiet_compile() -> Iterator[None]:
    """Silence the one deprecation warning that the cheetah's `settotalmass` prints on every compile."""

    def keep(record: logging.LogRecord) -> bool:
        return "settotalmass" not in record.getMessage()

    logger = logging.getLogger("absl")
    logger.addFilter(keep)
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message=".*settotalmass.*")
            yield
    finally:
        logger.removeFilter(keep)
