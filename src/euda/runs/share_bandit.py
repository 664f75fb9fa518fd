"""Returns of episodes → which share of a batch to turn next: an upper-confidence bandit over five shares.

The idea is UCB-DrAC's (Raileanu et al., 2021), where a bandit chooses among augmentations by the return of the
policy after it was updated with one. Here an arm is a share, one is held for an episode, and the return of the
episode after is its reward. Only the last `window` rewards count, because what helps changes while an agent
learns and returns grow; they are scaled to [0, 1] by the lowest and the highest of them, so the bonus means the
same on every task. An arm without a reward in the window is tried next.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

SHARES = (0.5, 0.25, 0.75, 0.0, 1.0)
"""In the order in which they are tried first, and preferred where they are equal."""


class ShareBandit:
    """Chooses a share for each episode; no randomness, so its state is its rewards."""

    def __init__(self, bonus: float, window: int, state: Mapping[str, Any] | None = None) -> None:
        self._bonus, self._window = bonus, window
        state = state or {"arm": 0, "credited": None, "rewards": []}
        self._arm: int = state["arm"]
        self._credited: int | None = state["credited"]
        self._rewards: list[tuple[int, float]] = [(arm, reward) for arm, reward in state["rewards"]]

    @property
    def share(self) -> float:
        """The one in use."""
        return SHARES[self._arm]

    def end_episode(self, reward: float, has_learned: bool) -> None:
        """An episode ended with this return: credit the share of the one before, then choose the next.

        `has_learned`: whether the agent was updated in this episode; one without updates says nothing about a share.
        """
        if self._credited is not None:
            self._rewards = [*self._rewards, (self._credited, reward)][-self._window :]
        self._credited = self._arm if has_learned else None
        if has_learned:
            self._arm = self._choose()

    def _choose(self) -> int:
        values = [reward for _, reward in self._rewards]
        low, span = min(values, default=0.0), max(values, default=0.0) - min(values, default=0.0)
        total = len(values) + 1

        def bound(arm: int) -> float:
            own = [(reward - low) / span if span else 0.0 for a, reward in self._rewards if a == arm]
            count = len(own) + (arm == self._credited)  # whose reward is still to come
            if not count:
                return math.inf
            mean = sum(own) / len(own) if own else 0.0
            return mean + self._bonus * math.sqrt(math.log(total) / count)

        return max(range(len(SHARES)), key=lambda arm: (bound(arm), -arm))

    def state(self) -> dict[str, Any]:
        """Everything its future depends on, as plain JSON values."""
        return {"arm": self._arm, "credited": self._credited, "rewards": [list(pair) for pair in self._rewards]}
