"""Environment → environment that observes more: the last few observations, or several feature sets by name.

For training loops of one's own: both keep a layout, so what they observe turns and mirrors like any observation.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import gymnasium
import numpy as np
from gymnasium import spaces

from euda.body.dict_layout import DictLayout
from euda.body.layout import Layout
from euda.errors import EudaError
from euda.tasks.base_env import LimbEnv, State


class History(gymnasium.Wrapper[Any, Any, Any, Any]):
    """Observes the last `frames` observations in one row, oldest first; an episode begins with copies of its first.

    `env` is an environment with a layout: one of euda's, or a LimbObservation.

    >>> import euda
    >>> from euda.tasks.wrappers import History
    >>> env = History(euda.make("hopper3d_hop", seed=0), frames=3)
    >>> env.reset()[0].shape, env.layout.dim, env.layout.fields[0].name, env.layout.fields[-1].name
    ((288,), 288, 'root_rotation@2', 'touch')
    """

    def __init__(self, env: gymnasium.Env, frames: int) -> None:
        super().__init__(env)
        self.layout: Layout = _layout(env).stacked(frames)
        self.frames = frames
        self.observation_space = spaces.Box(-np.inf, np.inf, (self.layout.dim,), np.float32)
        self._seen = np.zeros((frames, self.layout.dim // frames), np.float32)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[np.ndarray, dict[str, Any]]:
        """Start an episode."""
        observation, info = self.env.reset(seed=seed, options=options)
        self._seen = np.tile(observation, (self.frames, 1))
        return self._seen.reshape(-1), info

    def step(self, action: np.ndarray) -> tuple[np.ndarray, Any, bool, bool, dict[str, Any]]:
        """One step; the oldest observation is forgotten."""
        observation, reward, is_terminal, is_truncated, info = self.env.step(action)
        self._seen = np.concatenate([self._seen[1:], observation[None]])
        return self._seen.reshape(-1), reward, is_terminal, is_truncated, info

    def get_state(self) -> State:
        """Everything the future depends on, the observations so far among it."""
        return self.env.get_wrapper_attr("get_state")() | {"history": self._seen.copy()}

    def set_state(self, state: Mapping[str, np.ndarray]) -> None:
        """Go on from a state that `get_state` returned."""
        if "history" not in state or np.shape(state["history"]) != self._seen.shape:
            raise EudaError(f"this state does not belong here: it has no history of {list(self._seen.shape)}")
        self.env.get_wrapper_attr("set_state")({name: value for name, value in state.items() if name != "history"})
        self._seen = np.array(state["history"], np.float32)


class DictObservation(gymnasium.Wrapper[Any, Any, Any, Any]):
    """Observes several feature sets of the same robot by name: one for the actor, say, and more for the critic.

    >>> import euda
    >>> from euda.tasks.wrappers import DictObservation
    >>> env = DictObservation(euda.make("hopper3d_hop", seed=0), {"actor": "joint", "critic": "limb"})
    >>> {name: part.shape for name, part in env.reset()[0].items()}
    {'actor': (37,), 'critic': (96,)}
    >>> env.layout["critic"].dim
    96
    """

    def __init__(self, env: LimbEnv, features: Mapping[str, str]) -> None:
        if not isinstance(env, LimbEnv):
            raise EudaError(f"several feature sets are observed of an environment of euda's, not of {env!r}")
        super().__init__(env)
        self._observers = {name: env.observer_of(kind) for name, kind in features.items()}
        self.layout = DictLayout({name: observer.layout for name, observer in self._observers.items()})
        sizes = {name: observer.layout.dim for name, observer in self._observers.items()}
        boxes: dict[str, Any] = {name: spaces.Box(-np.inf, np.inf, (dim,), np.float32) for name, dim in sizes.items()}
        self.observation_space = spaces.Dict(boxes)

    def observe(self) -> dict[str, np.ndarray]:
        """The observations of the current state."""
        return {name: observer.observe() for name, observer in self._observers.items()}

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
        """Start an episode."""
        _, info = self.env.reset(seed=seed, options=options)
        return self.observe(), info

    def step(self, action: np.ndarray) -> tuple[dict[str, np.ndarray], Any, bool, bool, dict[str, Any]]:
        """One step."""
        _, reward, is_terminal, is_truncated, info = self.env.step(action)
        return self.observe(), reward, is_terminal, is_truncated, info


def _layout(env: gymnasium.Env) -> Layout:
    try:
        found = env.get_wrapper_attr("layout")
    except AttributeError:
        found = None
    if not isinstance(found, Layout):
        raise EudaError(f"a history needs an environment with a layout, not {env}: use euda.make or LimbObservation")
    return found
