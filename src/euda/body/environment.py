"""Tasks and models as Gymnasium environments that step MuJoCo directly.

`TaskEnv` is a task of the table with dm_control's reward and reset; `ModelEnv` is anybody's MJCF, with a
reward of theirs or none. Both observe limbs and can save and restore their exact state.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Self

import gymnasium
import mujoco
import numpy as np
from gymnasium.spaces import Box

from euda.body import rendering, tasks
from euda.body.joint_features import own_observer
from euda.body.layout import Layout
from euda.body.morphology import Morphology
from euda.body.observation import Observer
from euda.body.resets import NOISE, Start
from euda.body.rewards import RewardFunction, bind
from euda.body.robot import Robot, describe, read_model
from euda.body.sensors import read as read_sensors
from euda.body.streams import stream_from_array, stream_to_array
from euda.errors import EudaError, SimulationError

State = dict[str, np.ndarray]
_INTEGRATION = int(mujoco.mjtState.mjSTATE_INTEGRATION)
_MUTABLE = ("geom_pos", "geom_size", "site_pos", "body_pos")  # where resets put targets, in the model


class LimbEnv(gymnasium.Env[np.ndarray, np.ndarray]):
    """A robot in MuJoCo: actions in [-1, 1], float32 observations with a layout, truncation after `episode_steps`."""

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
        self._no_warnings = bytes(self._warnings.nbytes)
        self._ctrl, self._middle, self._half = self.data.ctrl, *_control_range(self.model)
        self._clipped = np.empty(self.model.nu)
        self._is_unit_range = bool((self._middle == 0).all() and (self._half == 1).all())
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
    def morphology(self) -> Morphology:
        """The limb tree."""
        return self.robot.morphology

    @property
    def control_timestep(self) -> float:
        """Seconds per step of the environment."""
        return self.substeps * float(self.model.opt.timestep)

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
        self._set_control(action)
        self.advance()
        self.steps += 1
        return self.observe(), self.reward(), self.has_fallen(), self.steps >= self.episode_steps, {}

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

    def _set_control(self, action: np.ndarray) -> None:
        """Scale an action in [-1, 1] to the actuators' ranges; beyond it is clipped, or refused if not finite."""
        if type(action) is np.ndarray and action.shape == self._clipped.shape and self._is_unit_range:
            values = action.tolist()  # sooner than NumPy checks twenty numbers; only the sum shows every NaN
            if min(values) >= -1.0 and max(values) <= 1.0 and math.isfinite(sum(values)):
                self._ctrl[...] = action
                return
        self._ctrl[...] = self._scaled(action)

    def _scaled(self, action: Any) -> np.ndarray:
        try:
            raw = np.asarray(action, dtype=np.float64)
        except (TypeError, ValueError):
            raise SimulationError(f"an action is {len(self._clipped)} numbers, not {action!r}") from None
        if raw.shape != self._clipped.shape:
            raise SimulationError(f"an action has shape {self._clipped.shape}, not {raw.shape}")
        if not np.isfinite(raw).all():
            raise SimulationError(f"actions must be finite, not {raw.tolist()}")
        np.clip(raw, -1.0, 1.0, out=self._clipped)
        return self._middle + self._half * self._clipped

    def advance(self) -> None:
        """One control step of MuJoCo, ending with positions and velocities up to date, as dm_control does it."""
        if self._is_rk4:
            mujoco.mj_step(self.model, self.data, self.substeps)
        else:
            mujoco.mj_step2(self.model, self.data)
            if self.substeps > 1:
                mujoco.mj_step(self.model, self.data, self.substeps - 1)
        mujoco.mj_step1(self.model, self.data)
        if self._warnings.tobytes() != self._no_warnings:
            self._refuse_warnings()

    def _refuse_warnings(self) -> None:
        members = mujoco.mjtWarning.__members__.items()
        raised = [name for name, value in members if int(value) < len(self._warnings) and self._warnings[int(value)]]
        raise SimulationError(
            f"the simulation became invalid at step {self.steps} (MuJoCo's {', '.join(raised)}): the state blew up"
            " or its buffers overflowed; lower the actuators' gear, raise armature or damping, or shorten the timestep"
        )

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
        wanted = {name: value.shape for name, value in self.get_state().items()}
        wrong = [name for name, shape in wanted.items() if name not in state or np.shape(state[name]) != shape]
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


class TaskEnv(LimbEnv):
    """A task of `euda.TASKS`, with dm_control's own physics, reward and reset.

    An environment goes on from a stored state bit by bit, in this or in another process.

    >>> import euda
    >>> env, other = euda.TaskEnv("cheetah_run", seed=0), euda.TaskEnv("cheetah_run", seed=1)
    >>> _ = env.reset(), other.reset()
    >>> other.set_state(env.get_state())
    >>> action = env.action_space.high
    >>> bool((env.step(action)[0] == other.step(action)[0]).all())
    True
    """

    def __init__(
        self,
        task: str,
        features: str = "limb",
        cone: str | None = None,
        seed: int | None = None,
        render_mode: str | None = None,
        width: int = 480,
        height: int = 360,
        camera: str | int | None = None,
    ) -> None:
        self.task, self.features = task, features
        self._control = tasks.load(task, cone, _random(seed))
        robot = tasks.robot(task, self._control)
        observer = tasks.observer(task, robot, features)
        super().__init__(
            robot, observer, self._control._n_sub_steps, tasks.EPISODE_STEPS, render_mode, width, height, camera
        )
        self._physics, self._task = self._control.physics, self._control.task
        self._reward = self._task.get_reward
        self.cone = tasks.cone_name(self.model)

    def reward(self) -> float:
        """dm_control's reward of the current state, in [0, 1]."""
        return float(self._reward(self._physics))

    def _initialise(self, seed: int | None) -> None:
        if seed is not None:
            self._task._random = _random(seed)
        with self._physics.reset_context():
            self._task.initialize_episode(self._physics)
        # dm_control's reset leaves warnings of discarded attempts (full contact buffers) behind.
        self._warnings[:] = 0

    def get_state(self) -> State:
        """As `LimbEnv.get_state`, with the stream of resets."""
        _, keys, position, has_gauss, gauss = self._task.random.get_state(legacy=True)
        stream = {"random_keys": np.asarray(keys), "random_rest": np.array([position, has_gauss, gauss], np.float64)}
        return super().get_state() | stream

    def set_state(self, state: Mapping[str, np.ndarray]) -> None:
        """As `LimbEnv.set_state`."""
        super().set_state(state)
        position, has_gauss, gauss = state["random_rest"].tolist()
        self._task.random.set_state(("MT19937", state["random_keys"], int(position), int(has_gauss), gauss))


def _random(seed: int | None) -> np.random.RandomState:
    """The generator that dm_control wants. It takes 32 bits; Gymnasium allows more, and Minari draws 64."""
    try:
        is_long = seed is not None and seed >= 2**32
        return np.random.RandomState(np.random.MT19937(np.random.SeedSequence(seed)) if is_long else seed)
    except (ValueError, TypeError):
        raise EudaError(f"a seed is a whole number of at least 0, not {seed!r}") from None


class ModelEnv(LimbEnv):
    """Any MJCF with one robot: for certificates and pictures, and with a reward for training.

    `reward` is `run`, `reach`, `stand`, or a function (model, data) that returns a number and may also ask for
    `direction` and `target`. Episodes begin at the first keyframe (or the model's own pose), every limited joint
    of it off by at most `noise` of its range; a free robot without direction and target begins with a random
    heading, unless `random_heading` says otherwise. An episode ends early only where `fall_below` is given: when
    the root's frame is lower than that (m).

    >>> import pathlib
    >>> import euda, gymnasium.envs.mujoco
    >>> path = pathlib.Path(gymnasium.envs.mujoco.__file__).parent / "assets" / "ant.xml"
    >>> ant = euda.ModelEnv(path, direction=(1, 0, 0))
    >>> ant.morphology.n, ant.layout.dim, ant.cone
    (9, 94, 'pyramidal')
    """

    def __init__(self, path: str | Path, cone: str | None = None, direction: Any = None, target: Any = None,
                 limb: str | None = None, sensors: Sequence[str] = (), allow_loops: bool = False,
                 control_timestep: float = 0.02, render_mode: str | None = None, width: int = 480, height: int = 360,
                 camera: str | int | None = None, *, features: str = "limb",
                 reward: str | RewardFunction | None = None, reward_name: str | None = None,
                 episode_steps: int = tasks.EPISODE_STEPS, noise: float = NOISE, random_heading: bool | None = None,
                 fall_below: float | None = None) -> None:  # fmt: skip
        model = read_model(path)
        tasks.set_cone(model, "default" if cone is None else cone)
        if not 0 < control_timestep < np.inf:
            raise EudaError(f"control_timestep must be a positive number of seconds, not {control_timestep!r}")
        if not 0 <= noise <= 1:
            raise EudaError(f"noise must be between 0 and 1, not {noise!r}")
        robot = describe(model, mujoco.MjData(model), direction, target, limb, allow_loops)
        observer = own_observer(robot, features, [read_sensors(name, name) for name in sensors])
        substeps = max(1, round(control_timestep / model.opt.timestep))
        super().__init__(robot, observer, substeps, episode_steps, render_mode, width, height, camera)
        self.task, self.cone, self.features = Path(path).name, tasks.cone_name(model), features
        self._reward = None if reward is None else bind(robot, reward, reward_name)
        is_free = robot.morphology.base == "free"
        if random_heading and not is_free:
            raise EudaError("random_heading needs a robot with a free root")
        self.random_heading = is_free and direction is None and target is None
        if random_heading is not None:
            self.random_heading = random_heading
        if fall_below is not None and robot.morphology.base == "fixed":
            raise EudaError("fall_below needs a robot that can fall, and the base of this one is fixed")
        self._fall_below = -np.inf if fall_below is None else fall_below
        self._root_place = self.data.xpos[robot.morphology.root.body]
        self.noise, self._start = noise, Start(robot, noise, self.random_heading)

    @property
    def has_reward(self) -> bool:
        """Whether it was made with a reward."""
        return self._reward is not None or type(self).reward is not ModelEnv.reward

    def reward(self) -> float:
        """The reward of the current state; 0 without one."""
        return 0.0 if self._reward is None else self._reward()

    def has_fallen(self) -> bool:
        """Whether the root is too low to go on."""
        return bool(self._root_place[2] < self._fall_below)

    def _initialise(self, seed: int | None) -> None:
        self._start(self.np_random)

    def get_state(self) -> State:
        """As `LimbEnv.get_state`, with the stream of resets."""
        return super().get_state() | {"stream": stream_to_array(self.np_random)}

    def set_state(self, state: Mapping[str, np.ndarray]) -> None:
        """As `LimbEnv.set_state`."""
        super().set_state(state)
        self.np_random = stream_from_array(state["stream"])


def make(
    task: str, features: str = "limb", cone: str | None = None, seed: int | None = None, **options: Any
) -> TaskEnv:
    """A task as a Gymnasium environment.

    `features` is `limb`, `limb-paper` or `joint`; `cone` is `default` or `elliptic`, by default the task's
    own; `seed` seeds the first reset; `options` are render_mode, width, height, camera.

    >>> import euda
    >>> env = euda.make("hopper3d_hop", seed=0)
    >>> observation, _ = env.reset()
    >>> observation.shape == env.observation_space.shape == (env.layout.dim,)
    True
    >>> observation, reward, terminated, truncated, _ = env.step(env.action_space.sample())
    >>> 0 <= reward <= 1, terminated, truncated
    (True, False, False)
    """
    return TaskEnv(task, features, cone, seed, **options)


def register() -> None:
    """Register every task with Gymnasium as `euda/<task>-v0`; harmless if done before."""
    for name in tasks.TASKS:
        if f"euda/{name}-v0" not in gymnasium.registry:
            gymnasium.register(f"euda/{name}-v0", entry_point="euda.body.environment:TaskEnv", kwargs={"task": name})
