"""Anybody's Gymnasium environment as our training loop wants it: our features, actions in [-1, 1], saved exactly.

Gymnasium has no way to save an environment. What is saved here is how the episode began (the stream of random
numbers, and MuJoCo's state before the reset) and its actions; restoring repeats them. So everything that an
environment keeps within an episode comes back, whatever it is. What it carries from one episode into the next in
attributes of its own does not, nor does randomness from elsewhere than its `np_random`: `is_saved_exactly` tries.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Self

import gymnasium
import mujoco
import numpy as np
from gymnasium.envs.registration import EnvSpec
from gymnasium.spaces import Box

from euda import trusted_code
from euda.body import rendering
from euda.body.layout import Layout
from euda.body.robot import quiet_warnings
from euda.errors import EudaError, InstabilityError, SimulationError, failure, unknown
from euda.tasks.limb_observation import LimbObservation
from euda.tasks.rng_state import stream_from_array, stream_to_array

_INTEGRATION = int(mujoco.mjtState.mjSTATE_INTEGRATION)
_MUTABLE = ("geom_pos", "geom_size", "site_pos", "body_pos")
EPISODE_STEPS = 1000
"""Of environments that are registered without a limit."""


def split_id(text: str) -> tuple[str | None, str]:
    """Module and id of `module:Id` or `Id`; Gymnasium's own module needs no mention."""
    module, colon, name = text.rpartition(":")
    if not name or (colon and not module):
        raise EudaError(f"an environment is named Id or module:Id, not {text!r}")
    return (None if module in ("", "gymnasium") else module), name


def find(text: str) -> EnvSpec:
    """The registered environment that `module:Id` names; imports the module, which may register it.

    The id may come from a stored run, so a module is imported only if the user of this process named it.
    """
    module, name = split_id(text)
    if module is not None:
        trusted_code.require(text, "--env")
        trusted_code.module(text, "environment")
    try:
        return gymnasium.spec(name)
    except gymnasium.error.Error:
        raise unknown("environment", name, _alike(name)) from None


def _alike(name: str) -> list[str]:
    """Registered MuJoCo environments, which are not all that there are, but those that people mean."""
    namespace = name.rpartition("/")[0]
    return sorted(
        key
        for key, spec in gymnasium.registry.items()
        if (namespace and key.startswith(namespace)) or ("mujoco" in str(spec.entry_point) and "v5" in key)
    )


class SavedEnvironment:
    """A registered Gymnasium environment that `euda` can train on, stop and go on with."""

    def __init__(self, name: str, *, direction: Any = None, target: Any = None, limb: str | None = None,
                 sensors: Sequence[str] = (), allow_loops: bool = False, features: str = "limb",
                 episode_steps: int | None = None, render_mode: str | None = None, width: int = 480,
                 height: int = 360) -> None:  # fmt: skip
        spec = find(name)
        self.task, self.steps = spec.id, 0
        self.episode_steps = episode_steps or spec.max_episode_steps or EPISODE_STEPS
        # Our own count of steps replaces Gymnasium's limit, so that it is saved and can be chosen.
        quiet_warnings()
        try:
            made = gymnasium.make(spec, max_episode_steps=-1, disable_env_checker=True)
        except (Exception, SystemExit) as error:  # anything may happen in an environment of theirs
            said = " ".join(str(error).split())
            raise EudaError(f"environment {spec.id!r} cannot be made: {type(error).__name__}: {said}") from error
        self._env = LimbObservation(made, direction, target, limb, sensors, allow_loops, features)
        self.robot, self._base = self._env.robot, made.unwrapped
        self.model: mujoco.MjModel = self.robot.model
        self._data: mujoco.MjData = getattr(self._base, "data")  # noqa: B009 - not an attribute of every Env
        self.action_space, self._middle, self._half = _actions(spec.id, made.action_space)
        self.observation_space = self._env.observation_space
        self._size, self._renderer, self._draws = (width, height), None, render_mode is not None
        self._beginning: dict[str, np.ndarray] = {}
        self._taken: list[np.ndarray] = []
        self._has_reset = False

    # -- what it is ------------------------------------------------------------------------------------

    @property
    def layout(self) -> Layout:
        """What each entry of the observation is and how it turns."""
        return self._env.layout

    @property
    def control_range(self) -> tuple[np.ndarray, np.ndarray]:
        """The environment's own actions [m] that -1 and 1 stand for."""
        return self._middle - self._half, self._middle + self._half

    @property
    def control_timestep(self) -> float:
        """Seconds per step, as the environment says."""
        return float(getattr(self._base, "dt", self.model.opt.timestep))

    # -- Gymnasium -------------------------------------------------------------------------------------

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[np.ndarray, dict[str, Any]]:
        """Start an episode. The same seed gives the same episode; without one, the stream goes on."""
        self._beginning = self._now(seed)
        self._taken, self.steps, self._has_reset = [], 0, True
        with self._explained("reset"):
            return self._env.reset(seed=seed, options=options)

    def step(self, action: np.ndarray) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
        """Apply an action in [-1, 1] (clipped), scaled to the environment's own bounds."""
        action = np.asarray(action, np.float32)
        if action.shape != self.action_space.shape or not np.isfinite(action).all():
            shape = self.action_space.shape
            raise SimulationError(f"an action is {shape} finite numbers, not {action.tolist()}")
        action = np.clip(action, -1.0, 1.0)
        self._taken.append(action)
        with self._explained("step"):
            observation, reward, terminated, truncated, info = self._env.step(self._middle + self._half * action)
        self.steps, reward = self.steps + 1, float(reward)
        if not math.isfinite(reward) or not np.isfinite(observation).all():
            raise InstabilityError(f"{self.task} returned a reward or an observation that is not finite")
        return observation, reward, bool(terminated), bool(truncated) or self.steps >= self.episode_steps, info

    @contextlib.contextmanager
    def _explained(self, what: str) -> Iterator[None]:
        """Whatever the environment's own code raises, as one sentence."""
        try:
            yield
        except EudaError:
            raise
        except (Exception, SystemExit) as error:
            raise failure(f"{what} of environment {self.task!r}", error) from error

    def render(self) -> np.ndarray | None:
        """A frame of the current state, drawn by us: environments choose their backends in many ways."""
        if not self._draws:
            return None
        if self._renderer is None:
            self._renderer = rendering.Renderer(self.model, *self._size)
        return self._renderer.draw(self._data, rendering.camera(self.model))

    def close(self) -> None:
        """Free what is open."""
        if self._renderer is not None:
            self._renderer.close()
            self._renderer = None
        self._env.close()

    # -- exact state -----------------------------------------------------------------------------------

    def _now(self, seed: int | None) -> dict[str, np.ndarray]:
        integration = np.empty(mujoco.mj_stateSize(self.model, _INTEGRATION))
        mujoco.mj_getState(self.model, self._data, integration, _INTEGRATION)
        numbers = {"integration": integration, "stream": stream_to_array(self._base.np_random)}
        seeded = np.array([] if seed is None else [seed], np.int64)
        return numbers | {"seed": seeded} | {name: getattr(self.model, name).copy() for name in _MUTABLE}

    def get_state(self) -> dict[str, np.ndarray]:
        """How the episode began and the actions since."""
        if not self._beginning:
            raise EudaError("an environment has a state only after its first reset")
        return self._beginning | {"actions": np.array(self._taken, np.float32).reshape(-1, *self.action_space.shape)}

    def set_state(self, state: Mapping[str, np.ndarray]) -> Self:
        """Begin as the saved episode began, and repeat its actions."""
        if not self._has_reset:
            self._env.reset(seed=0)  # Gymnasium asks for it before anything else
        wanted = self._now(None)
        wrong = [name for name in wanted if name not in state or np.ndim(state[name]) != np.ndim(wanted[name])]
        if wrong or np.shape(state["integration"]) != wanted["integration"].shape:
            raise EudaError(f"this state does not belong to {self.task}: {', '.join(wrong) or 'integration'}")
        for name in _MUTABLE:
            getattr(self.model, name)[:] = state[name]
        mujoco.mj_setState(self.model, self._data, np.asarray(state["integration"], np.float64), _INTEGRATION)
        self._base.np_random = stream_from_array(state["stream"])
        self.reset(seed=int(state["seed"][0]) if len(state["seed"]) else None)
        for action in state["actions"]:
            self.step(action)
        return self


def _actions(name: str, space: Any) -> tuple[Box, np.ndarray, np.ndarray]:
    """The space [-1, 1] of an environment's actions, and middle and half width of its own bounds."""
    if not isinstance(space, Box) or len(space.shape) != 1:
        raise EudaError(f"{name} has actions {space}: valid are a row of bounded numbers (Box)")
    if not (np.isfinite(space.low).all() and np.isfinite(space.high).all()):
        raise EudaError(f"{name} has actions without bounds: wrap it in gymnasium.wrappers.ClipAction or bound them")
    low, high = space.low.astype(np.float32), space.high.astype(np.float32)
    return Box(-1.0, 1.0, space.shape, np.float32), (high + low) / 2, (high - low) / 2


def is_saved_exactly(make: Callable[[], SavedEnvironment], steps: int = 25, seed: int = 12345) -> bool:
    """Whether a fresh environment goes on from a saved state bit by bit, over the end of an episode and beyond."""
    first, second = make(), make()
    draw = np.random.default_rng(seed)

    def go(*environments: Any) -> bool:
        same = True
        for _ in range(steps):
            action = draw.uniform(-1, 1, first.action_space.shape).astype(np.float32)
            results = [environment.step(action) for environment in environments]
            same &= all(_same(results[0], other) for other in results[1:])
            if results[0][2] or results[0][3]:
                observations = [environment.reset()[0] for environment in environments]
                same &= all(np.array_equal(observations[0], other) for other in observations[1:])
        return same

    first.reset(seed=seed)
    go(first)
    first.reset()
    go(first)
    second.set_state(first.get_state())
    same = go(first, second)
    same &= np.array_equal(first.reset()[0], second.reset()[0])
    same &= go(first, second)
    first.close()
    second.close()
    return bool(same)


def _same(one: tuple[Any, ...], two: tuple[Any, ...]) -> bool:
    return bool(np.array_equal(one[0], two[0])) and one[1:4] == two[1:4]
