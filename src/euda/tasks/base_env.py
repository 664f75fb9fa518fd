"""A robot in MuJoCo as a Gymnasium environment: acting, observing, drawing, saving and restoring its exact state.

What a task adds, a reset and a reward, is in `euda.tasks.task_env`.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any, Self

import gymnasium
import mujoco
import numpy as np
from gymnasium.spaces import Box

from euda.body import rendering
from euda.body.actions import Actions
from euda.body.features import Observer
from euda.body.layout import Layout
from euda.body.morphology import Morphology
from euda.body.robot import Robot
from euda.errors import EudaError, InstabilityError, SimulationError

State = dict[str, np.ndarray]
_INTEGRATION = int(mujoco.mjtState.mjSTATE_INTEGRATION)
_MUTABLE = ("geom_pos", "geom_size", "site_pos", "body_pos")  # where resets put targets, in the model


class LimbEnv(gymnasium.Env[np.ndarray, np.ndarray]):
    """A robot in MuJoCo: actions in [-1, 1], float32 observations with a layout, truncation after `episode_steps`."""

    task: str
    """Its name; set by those that have a task."""
    metadata = {"render_modes": ["rgb_array"], "render_fps": 50}  # noqa: RUF012 - Gymnasium's convention

    def __init__(self, robot: Robot, observer: Observer, substeps: int, episode_steps: int, render_mode: str | None,
                 width: int, height: int, camera: str | int | None) -> None:  # fmt: skip
        if render_mode not in (None, "rgb_array"):
            raise EudaError(f"unknown render_mode {render_mode!r}: valid are None and 'rgb_array'")
        self.model, self.data, self.robot = robot.model, robot.data, robot
        self.observer, self.substeps, self.episode_steps, self.steps = observer, substeps, episode_steps, 0
        self.observation_space = Box(-np.inf, np.inf, (self.layout.dim,), np.float32)
        self.action_space = Box(-1.0, 1.0, (int(self.model.nu),), np.float32)
        self.render_mode = render_mode
        self.metadata = {**self.metadata, "render_fps": round(1 / self.control_timestep)}
        self._frame, self._camera, self._renderer = (width, height), camera, None
        self._warnings = self.data.warning.number
        self._middle, self._half = _control_range(self.model)
        self._is_rk4 = int(self.model.opt.integrator) == int(mujoco.mjtIntegrator.mjINT_RK4)

    # -- what it is ------------------------------------------------------------------------------------

    @property
    def unwrapped(self) -> Self:
        """The environment itself, with MuJoCo's own `model` and `data`."""
        return self

    @property
    def layout(self) -> Layout:
        """What each entry of the observation is and how it turns."""
        return self.observer.layout

    @property
    def actions(self) -> Actions:
        """What each entry of an action is, and what a mirror does to it."""
        return Actions.of(self.model)

    @property
    def control_range(self) -> tuple[np.ndarray, np.ndarray]:
        """The controls [m] of MuJoCo that actions of -1 and of 1 stand for."""
        return self._middle - self._half, self._middle + self._half

    @property
    def morphology(self) -> Morphology:
        """The limb tree."""
        return self.robot.morphology

    @property
    def control_timestep(self) -> float:
        """Seconds per step of the environment."""
        return self.substeps * float(self.model.opt.timestep)

    @property
    def root_height(self) -> float:
        """Height of the root's frame above the world's origin (m)."""
        return float(self.data.xpos[self.morphology.root.body, 2])

    # -- Gymnasium -------------------------------------------------------------------------------------

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[np.ndarray, dict[str, Any]]:
        """Start an episode. The same seed gives the same episode; without one, the stream goes on."""
        super().reset(seed=seed)
        self._initialise(seed)
        self.steps = 0
        return self.observe(), {}

    def step(self, action: np.ndarray) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
        """Apply an action in [-1, 1] (clipped) for one control step."""
        self.set_control(action)
        self.advance()
        self.steps += 1
        return self.observe(), self.reward(), self.has_fallen(), self.steps >= self.episode_steps, {}

    def observer_of(self, features: str) -> Observer:
        """What reads another feature set of the same robot in the same simulation."""
        raise NotImplementedError

    def observe(self) -> np.ndarray:
        """The observation [dim] of the current state, float32, a fresh array."""
        return self.observer.observe()

    @property
    def has_reward(self) -> bool:
        """Whether there is a reward to compare; without one it is always 0."""
        return type(self).reward is not LimbEnv.reward

    def reward(self) -> float:
        """The reward of the current state."""
        return 0.0

    def has_fallen(self) -> bool:
        """Whether the episode ends here because nothing worth having can follow; tasks never do."""
        return False

    def render(self) -> np.ndarray | None:
        """A frame [height, width, 3] of the current state."""
        if self.render_mode is None:
            gymnasium.logger.warn("render() was called without a render_mode: pass render_mode='rgb_array' to make")
            return None
        if self._renderer is None:
            self._renderer = rendering.Renderer(self.model, *self._frame)
        return self._renderer.draw(self.data, rendering.camera(self.model, self._camera))

    def close(self) -> None:
        """Free the renderer."""
        if self._renderer is not None:
            self._renderer.close()
            self._renderer = None

    # -- MuJoCo ----------------------------------------------------------------------------------------

    def set_control(self, action: Any) -> None:
        """Scale an action in [-1, 1] to the actuators' ranges; beyond it is clipped, or refused if not finite."""
        shape = self._middle.shape
        try:
            raw = np.asarray(action, dtype=np.float64)
        except (TypeError, ValueError):
            raise SimulationError(f"an action is {len(self._middle)} numbers, not {action!r}") from None
        if raw.shape != shape:
            raise SimulationError(f"an action has shape {shape}, not {raw.shape}")
        if np.count_nonzero(np.isfinite(raw)) < len(raw):  # half the time of `all`
            raise SimulationError(f"actions must be finite, not {raw.tolist()}")
        self.data.ctrl[:] = self._middle + self._half * raw.clip(-1.0, 1.0)

    def advance(self) -> None:
        """One control step of MuJoCo, ending with positions and velocities up to date, as dm_control does it."""
        if self._is_rk4:
            mujoco.mj_step(self.model, self.data, self.substeps)
        else:
            mujoco.mj_step2(self.model, self.data)
            if self.substeps > 1:
                mujoco.mj_step(self.model, self.data, self.substeps - 1)
        mujoco.mj_step1(self.model, self.data)
        if np.count_nonzero(self._warnings):  # a third of the time of `any`
            self._refuse_warnings()

    def _refuse_warnings(self) -> None:
        members = mujoco.mjtWarning.__members__.items()
        raised = [name for name, value in members if int(value) < len(self._warnings) and self._warnings[int(value)]]
        raise InstabilityError(
            f"the simulation became invalid at step {self.steps} (MuJoCo's {', '.join(raised)}): the state blew up"
            " or its buffers overflowed; lower the actuators' gear, raise armature or damping, or shorten the timestep"
        )

    def begin_here(self) -> None:
        """Bring everything derived up to date after the state in which an episode begins was changed by hand."""
        mujoco.mj_forward(self.model, self.data)

    def _initialise(self, seed: int | None) -> None:
        raise NotImplementedError

    # -- exact state -----------------------------------------------------------------------------------

    def get_state(self) -> State:
        """Everything the future depends on, as plain arrays: a fresh environment goes on from it bit by bit."""
        integration = np.empty(mujoco.mj_stateSize(self.model, _INTEGRATION))
        mujoco.mj_getState(self.model, self.data, integration, _INTEGRATION)
        state = {"integration": integration, "sensordata": self.data.sensordata.copy(), "steps": np.array(self.steps)}
        aims = {name: value.copy() for name, value in self._aims().items()}
        return state | aims | {name: getattr(self.model, name).copy() for name in _MUTABLE}

    @functools.cached_property
    def _shapes(self) -> dict[str, tuple[int, ...]]:
        """What a state of this model looks like; certificates restore thousands."""
        return {name: value.shape for name, value in self.get_state().items()}

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        """Refused: the copy would go on reading the original's memory."""
        raise EudaError("an environment cannot be copied: make another one and give it set_state(env.get_state())")

    def __reduce__(self) -> Any:
        """Refused likewise."""
        raise EudaError("an environment cannot be pickled: make another one and give it set_state(env.get_state())")

    def _aims(self) -> State:
        """What the task wants, where it is not part of the model: direction of travel, place of a target."""
        aims = {"direction": self.robot.direction, "target": self.robot.target and self.robot.target.place}
        return {name: value for name, value in aims.items() if isinstance(value, np.ndarray)}

    def set_state(self, state: Mapping[str, np.ndarray]) -> None:
        """Go on from a state that `get_state` returned, in this or in a fresh environment of the same kind."""
        wrong = [name for name, shape in self._shapes.items() if name not in state or np.shape(state[name]) != shape]
        if wrong:
            raise EudaError(f"this state does not belong to this model: {', '.join(wrong)} missing or of another size")
        for name in _MUTABLE:
            getattr(self.model, name)[:] = state[name]
        for name, value in self._aims().items():
            value[:] = state[name]
        mujoco.mj_setState(self.model, self.data, np.asarray(state["integration"], np.float64), _INTEGRATION)
        mujoco.mj_step1(self.model, self.data)
        # Touch, force and acceleration readings belong to the last substep and are not recomputed by mj_step1.
        self.data.sensordata[:] = state["sensordata"]
        self.steps = int(state["steps"])


def _control_range(model: mujoco.MjModel) -> tuple[np.ndarray, np.ndarray]:
    """Middle and half width of each actuator's range; actuators without a range take [-1, 1] as it is."""
    limited = model.actuator_ctrllimited.astype(bool)
    low = np.where(limited, model.actuator_ctrlrange[:, 0], -1.0)
    high = np.where(limited, model.actuator_ctrlrange[:, 1], 1.0)
    return (high + low) / 2, (high - low) / 2
