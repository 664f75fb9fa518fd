"""Configuration → environment: a task of the table, a robot of one's own, or anybody's Gymnasium environment."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from euda.body.layout import Layout
from euda.runs import robot_config
from euda.tasks.targets import ANYWHERE
from euda.tasks.task_env import make

if TYPE_CHECKING:
    from gymnasium.spaces import Box

    from euda.runs.config import RunConfig


class Environment(Protocol):
    """What training, evaluation and films need of an environment."""

    episode_steps: int
    action_space: Box

    @property
    def layout(self) -> Layout:
        """What each entry of the observation is and how it turns."""
        ...

    @property
    def control_timestep(self) -> float:
        """Seconds per step."""
        ...

    @property
    def control_range(self) -> tuple[np.ndarray, np.ndarray]:
        """The simulation's own controls [m] that actions of -1 and of 1 stand for."""
        ...

    def reset(self, *, seed: int | None = None) -> tuple[np.ndarray, dict[str, Any]]:
        """Start an episode."""
        ...

    def step(self, action: np.ndarray) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
        """Apply an action in [-1, 1]."""
        ...

    def render(self) -> np.ndarray | None:
        """A frame of the current state."""
        ...

    def close(self) -> None:
        """Free what is open."""
        ...

    def get_state(self) -> dict[str, np.ndarray]:
        """Everything the future depends on."""
        ...

    def set_state(self, state: Mapping[str, np.ndarray]) -> Any:
        """Go on from there."""
        ...


def make_environment(config: RunConfig, render_mode: str | None = None, **options: Any) -> Any:
    """The environment of a run."""
    if config.robot is not None:
        return robot_config.build(
            config.robot, config.features, config.cone, config.episode_steps, render_mode, **options
        )
    environment = make(
        config.task, config.features, config.cone, render_mode=render_mode, direction=config.direction,
        targets=config.targets or ANYWHERE, payload=config.payload, **options
    )  # fmt: skip
    environment.episode_steps = config.episode_steps
    return environment


def action_count(environment: Environment) -> int:
    """How many numbers an action is."""
    return int(environment.action_space.shape[0])


def hold(environment: Environment, action: np.ndarray, steps: int) -> tuple[np.ndarray, float, bool, bool]:
    """Hold an action for so many steps, or until the episode ends: observation, sum of rewards, and how it ended."""
    observation, total, is_terminal, is_truncated = np.empty(0), 0.0, False, False
    for _ in range(steps):
        observation, reward, is_terminal, is_truncated, _ = environment.step(action)
        total += float(reward)
        if is_terminal or is_truncated:
            break
    return observation, total, is_terminal, is_truncated


def cautions(config: RunConfig) -> list[str]:
    """What the user of an environment should know before the run begins."""
    if config.robot is None or config.robot.env is None:
        return []
    said: list[str] = []
    if not config.robot.resumes_exactly:
        said.append(
            f"{config.task} keeps something that cannot be saved: a stopped run can be resumed, but not bit for bit"
        )
    if config.uses_symmetry and config.robot.direction is None and config.robot.target is None:
        said.append(
            "features show neither a direction nor a target: turning is right only if the reward of"
            f" {config.task} follows no world axis; otherwise name the direction (on the command line --direction X Y)"
        )
    return said
