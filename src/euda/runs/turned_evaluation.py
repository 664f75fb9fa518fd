"""Agent → returns in turned worlds: what a policy is worth that is asked to do the same thing facing another way.

The episodes are those of `evaluation`, with start, target and direction of travel turned by each of several yaws, and
mirrored if that is asked for. The policy is the same and sees what it sees: one that has the symmetry gets the same
return everywhere, but for rounding, which grows in a simulation that is chaotic.
"""

from __future__ import annotations

import dataclasses
import functools
import math
from typing import Any

from euda.errors import EudaError
from euda.runs import evaluation
from euda.runs.run_folder import Run
from euda.symmetry.turned_start import TurnedStart, mirror_of
from euda.tasks.base_env import LimbEnv


@dataclasses.dataclass(frozen=True)
class TurnedReturns:
    """The returns of one policy in one turned world.

    >>> from euda.runs.turned_evaluation import TurnedReturns
    >>> TurnedReturns(0.0, (900.0, 950.0)).mean
    925.0
    """

    yaw: float
    """By which the world was turned (rad)."""
    returns: tuple[float, ...]
    """One for each episode; the same episodes at every yaw."""
    mirror: str | None = None
    """The mirror that the world went through before, by name."""

    @property
    def mean(self) -> float:
        """Over the episodes."""
        return math.fsum(self.returns) / len(self.returns)

    @property
    def degrees(self) -> float:
        """The yaw in degrees."""
        return math.degrees(self.yaw)

    def to_json(self) -> dict[str, Any]:
        """Plain JSON values."""
        return {"yaw": self.yaw, "degrees": self.degrees, "mirror": self.mirror, "return_mean": self.mean,
                "returns": list(self.returns)}  # fmt: skip


def evaluate(
    run: Run, yaws: int, episodes: int = 10, seed: int | None = None, *, mirror: bool = False
) -> tuple[int, list[TurnedReturns]]:
    """The step of a run's newest policy, and its returns at so many yaws, evenly spread; with `mirror` then mirrored.

    Without a seed the episodes are those of training's evaluation.
    """
    for name, number in (("yaws", yaws), ("episodes", episodes)):
        if number < 1:
            raise EudaError(f"{name} must be at least 1, not {number}")
    evaluator = evaluation.Evaluator(run.config, min(episodes, evaluation.TOGETHER))
    policy, step = evaluation.load_policy(run, evaluator.environments[0])
    first = evaluator.environments[0]
    if not isinstance(first, LimbEnv):
        raise EudaError(
            f"{run.config.task} has its own reward, which cannot be turned: use --yaws with tasks and MJCF files"
        )
    chosen = evaluation.run_seeds(run, seed, step, episodes)
    mirrors = [None, mirror_of(first)] if mirror else [None]
    start, found = TurnedStart(first), list[TurnedReturns]()
    for element in mirrors:
        for yaw in (2 * math.pi * k / yaws for k in range(yaws)):
            begin = functools.partial(start.begin, yaw=yaw, mirror=element)
            returns = evaluation.returns_of(evaluator, policy, chosen, begin)
            found.append(TurnedReturns(yaw, tuple(returns), None if element is None else element.name))
    return step, found
