"""Tasks and models as Gymnasium environments that step MuJoCo directly.

`TaskEnv` is a task of the table with dm_control's model and reset; `ModelEnv` is anybody's MJCF, with a
reward of theirs or none. Both observe limbs and can save and restore their exact state.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import gymnasium
import mujoco
import numpy as np

from euda.body.features import Observer, Senses, observer
from euda.body.naming import model_name
from euda.body.robot import describe, read_model
from euda.body.sensors import read as read_sensors
from euda.errors import EudaError
from euda.tasks import table
from euda.tasks.base_env import LimbEnv, State
from euda.tasks.directions import check_travel, draw_direction, track
from euda.tasks.payload import load
from euda.tasks.resets import NOISE, Start
from euda.tasks.rewards import RewardFunction, bind
from euda.tasks.rng_state import stream_from_array, stream_to_array
from euda.tasks.targets import ANYWHERE, place_of, put_target


class TaskEnv(LimbEnv):
    """A task of `euda.TASKS`, with dm_control's own model and reset.

    A task that travels may be given another `direction`, two or three numbers, or `random`: then every episode draws
    one, and observations of all feature sets show it. One that draws a target may be given a part of the world for it:
    `targets="half"`. A free robot may be given a `payload` on its left, a share of its mass: then its mirror is near.

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
        direction: Any = None,
        targets: str = ANYWHERE,
        payload: float = 0.0,
    ) -> None:
        self.task, self.features = task, features
        self._random = _random(seed)
        self.dm_control = table.load(task, cone, self._random)
        robot = table.robot(task, self.dm_control, direction)
        load(robot, payload, task)
        if direction is not None:
            check_travel(robot)
        self._target_place = place_of(targets, task, robot)
        seen = table.observer(task, robot, features)
        substeps = round(self.dm_control.control_timestep() / robot.model.opt.timestep)
        super().__init__(robot, seen, substeps, table.EPISODE_STEPS, render_mode, width, height, camera)
        self._reward = table.reward(task, self.dm_control)
        self.cone = table.cone_name(self.model)

    def observer_of(self, features: str) -> Observer:
        """As `LimbEnv.observer_of`, with what the task observes beside limbs and joints."""
        return table.observer(self.task, self.robot, features)

    def reward(self) -> float:
        """The reward of the current state, in [0, 1]: dm_control's, along the direction of travel."""
        return float(self._reward(np, self.robot.scene))

    def _initialise(self, seed: int | None) -> None:
        if seed is not None:
            self._random.set_state(_random(seed).get_state())
        physics = self.dm_control.physics
        with physics.reset_context():
            self.dm_control.task.initialize_episode(physics)
            put_target(self.robot, self._target_place)
        draw_direction(self.robot, self._random)
        # dm_control's reset leaves warnings of discarded attempts (full contact buffers) behind.
        self._warnings[:] = 0

    def begin_here(self) -> None:
        """As `LimbEnv.begin_here`, without actuation: so dm_control's resets end."""
        self.dm_control.physics.after_reset()
        self._warnings[:] = 0

    def get_state(self) -> State:
        """As `LimbEnv.get_state`, with the stream of resets."""
        _, keys, position, has_gauss, gauss = self._random.get_state(legacy=True)
        stream = {"random_keys": np.asarray(keys), "random_rest": np.array([position, has_gauss, gauss], np.float64)}
        return super().get_state() | stream

    def set_state(self, state: Mapping[str, np.ndarray]) -> None:
        """As `LimbEnv.set_state`."""
        super().set_state(state)
        position, has_gauss, gauss = state["random_rest"].tolist()
        self._random.set_state(("MT19937", state["random_keys"], int(position), int(has_gauss), gauss))


def _random(seed: int | None) -> np.random.RandomState:
    """The generator that dm_control wants. It takes 32 bits; Gymnasium allows more, and Minari draws 64."""
    try:
        is_long = seed is not None and seed >= 2**32
        return np.random.RandomState(np.random.MT19937(np.random.SeedSequence(seed)) if is_long else seed)
    except (ValueError, TypeError):
        raise EudaError(f"a seed is a whole number of at least 0, not {seed!r}") from None


class ModelEnv(LimbEnv):
    """Any MJCF file or MjModel with one robot: for certificates and pictures, and with a reward for training.

    `reward` is `run`, `reach`, `stand`, or a function (model, data) that returns a number and may also ask for
    `direction` and `target`. Episodes begin at the first keyframe (or the model's own pose), every limited joint
    of it off by at most `noise` of its range; a free robot without direction and target begins with a random
    heading, unless `random_heading` says otherwise. `direction` is two or three numbers, or `random`: then every
    episode draws one in which the robot can travel. An episode ends early only where `fall_below` is given: when the
    root's frame is lower than that (m).

    >>> import pathlib
    >>> import euda, gymnasium.envs.mujoco
    >>> path = pathlib.Path(gymnasium.envs.mujoco.__file__).parent / "assets" / "ant.xml"
    >>> ant = euda.ModelEnv(path, direction=(1, 0, 0))
    >>> ant.morphology.n, ant.layout.dim, ant.cone
    (9, 94, 'pyramidal')
    """

    def __init__(self, source: str | Path | mujoco.MjModel, cone: str | None = None, direction: Any = None,
                 target: Any = None, limb: str | None = None, sensors: Sequence[str] = (), allow_loops: bool = False,
                 control_timestep: float = 0.02, render_mode: str | None = None, width: int = 480, height: int = 360,
                 camera: str | int | None = None, *, features: str = "limb",
                 reward: str | RewardFunction | None = None, reward_name: str | None = None,
                 episode_steps: int = table.EPISODE_STEPS, noise: float = NOISE, random_heading: bool | None = None,
                 fall_below: float | None = None) -> None:  # fmt: skip
        model = read_model(source)
        table.set_cone(model, "default" if cone is None else cone)
        if not 0 < control_timestep < np.inf:
            raise EudaError(f"control_timestep must be a positive number of seconds, not {control_timestep!r}")
        if not 0 <= noise <= 1:
            raise EudaError(f"noise must be between 0 and 1, not {noise!r}")
        robot = describe(model, mujoco.MjData(model), direction, target, limb, allow_loops)
        if robot.is_direction_drawn:
            track(robot)  # refuses a robot that cannot travel before the first episode does
        self._senses = Senses(tuple(read_sensors(name, name) for name in sensors))
        seen = observer(robot, features, self._senses)
        substeps = max(1, round(control_timestep / model.opt.timestep))
        super().__init__(robot, seen, substeps, episode_steps, render_mode, width, height, camera)
        self.task, self.cone, self.features = model_name(source), table.cone_name(model), features
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
        self.noise, self._start = noise, Start(robot, noise, self.random_heading)

    @property
    def has_reward(self) -> bool:
        """Whether it was made with a reward."""
        return self._reward is not None or type(self).reward is not ModelEnv.reward

    def observer_of(self, features: str) -> Observer:
        """As `LimbEnv.observer_of`, with the sensors that it was made with."""
        return observer(self.robot, features, self._senses)

    def reward(self) -> float:
        """The reward of the current state; 0 without one."""
        return 0.0 if self._reward is None else self._reward()

    def has_fallen(self) -> bool:
        """Whether the root is too low to go on."""
        return self.root_height < self._fall_below

    def _initialise(self, seed: int | None) -> None:
        self._start(self.np_random)
        draw_direction(self.robot, self.np_random)

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
    own; `seed` seeds the first reset; `options` are render_mode, width, height, camera, for tasks that travel
    `direction`, for tasks that draw a target `targets`, and for robots that move freely `payload`.

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
    for name in table.TASKS:
        if f"euda/{name}-v0" not in gymnasium.registry:
            gymnasium.register(f"euda/{name}-v0", entry_point="euda.tasks.task_env:TaskEnv", kwargs={"task": name})
