"""Limb features for anybody's Gymnasium environment that runs on MuJoCo."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import gymnasium
import mujoco
import numpy as np
from gymnasium.spaces import Box
from gymnasium.utils import RecordConstructorArgs

from euda.body.features import Senses, observer
from euda.body.layout import Layout
from euda.body.morphology import Morphology
from euda.body.robot import describe
from euda.body.sensors import read as read_sensors
from euda.errors import EudaError


class LimbObservation(gymnasium.ObservationWrapper[np.ndarray, Any, Any], RecordConstructorArgs):
    """Replace the observation of a MuJoCo environment by limb features with a layout.

    Works with Gymnasium's Ant-v5, Humanoid-v5, HalfCheetah-v5, Hopper-v5, Walker2d-v5 and every environment
    whose `unwrapped` has MuJoCo's `model` and `data`. The environment's own observation, reward and dynamics
    stay untouched: features are computed in a scratch copy of the simulation, because refreshing derived
    quantities in place would change what the environment itself reads before its next step.

    `direction` is the direction of travel, two or three numbers; `target` is the name of a site, geom or body, or
    three numbers; `limb` names what should reach it (by default the last limb); `sensors` are names of MuJoCo
    sensors, whose kind follows from their type; `features` may be `joint` or `limb-paper` instead, for comparison.

    >>> import euda, gymnasium
    >>> env = euda.LimbObservation(gymnasium.make("Ant-v5"), direction=(1, 0, 0))
    >>> observation, _ = env.reset(seed=0)
    >>> observation.shape, env.layout.dim
    ((94,), 94)
    """

    def __init__(self, env: gymnasium.Env, direction: Any = None, target: Any = None, limb: str | None = None,
                 sensors: Sequence[str] = (), allow_loops: bool = False, features: str = "limb") -> None:  # fmt: skip
        self.arguments = {"direction": direction, "target": target, "limb": limb, "sensors": tuple(sensors),
                          "allow_loops": allow_loops, "features": features}  # fmt: skip
        RecordConstructorArgs.__init__(self, **self.arguments)
        gymnasium.ObservationWrapper.__init__(self, env)
        base: Any = env.unwrapped
        model, data = getattr(base, "model", None), getattr(base, "data", None)
        if not isinstance(model, mujoco.MjModel) or not isinstance(data, mujoco.MjData):
            name = type(base).__name__
            raise EudaError(f"{name} is not a MuJoCo environment: it needs an MjModel `model` and an MjData `data`")
        self._model: mujoco.MjModel = model
        self._source: mujoco.MjData = data
        self._scratch = mujoco.MjData(self._model)
        self.robot = describe(self._model, self._scratch, direction, target, limb, allow_loops)
        if self.robot.is_direction_drawn:
            raise EudaError("an environment rewards as it likes: give its direction in numbers, not as 'random'")
        seen = Senses(tuple(read_sensors(name, name) for name in sensors))
        self.observer = observer(self.robot, features, seen)
        self._late = _late_sensors(self._model, sensors)
        self._reads_sensors = bool(sensors)
        self.observation_space = Box(-np.inf, np.inf, (self.layout.dim,), np.float32)

    @property
    def layout(self) -> Layout:
        """What each entry of the observation is and how it turns."""
        return self.observer.layout

    @property
    def morphology(self) -> Morphology:
        """The limb tree."""
        return self.robot.morphology

    def observation(self, observation: Any) -> np.ndarray:
        """The features of the current state, whatever the environment observed."""
        return self.observe()

    def observe(self) -> np.ndarray:
        """The features [dim] of the environment's current state, float32."""
        self._refresh()
        return self.observer.observe()

    def _refresh(self) -> None:
        """Bring the scratch copy to the environment's state, with derived quantities up to date."""
        model, source, scratch = self._model, self._source, self._scratch
        scratch.qpos[:], scratch.qvel[:], scratch.act[:] = source.qpos, source.qvel, source.act
        scratch.mocap_pos[:], scratch.mocap_quat[:] = source.mocap_pos, source.mocap_quat
        scratch.time = source.time
        if not self._reads_sensors:
            mujoco.mj_kinematics(model, scratch)
            mujoco.mj_comPos(model, scratch)
            mujoco.mj_comVel(model, scratch)
            return
        mujoco.mj_fwdPosition(model, scratch)
        mujoco.mj_sensorPos(model, scratch)
        mujoco.mj_fwdVelocity(model, scratch)
        mujoco.mj_sensorVel(model, scratch)
        scratch.sensordata[self._late] = source.sensordata[self._late]


def _late_sensors(model: mujoco.MjModel, names: Sequence[str]) -> np.ndarray:
    """Entries of `sensordata` that belong to the acceleration stage: taken as the environment's last step left them."""
    entries: list[int] = []
    for name in names:
        sensor = model.sensor(name).id
        if model.sensor_needstage[sensor] == int(mujoco.mjtStage.mjSTAGE_ACC):
            start = int(model.sensor_adr[sensor])
            entries += range(start, start + int(model.sensor_dim[sensor]))
    return np.array(entries, dtype=np.int64)
