"""MuJoCo model → where it keeps the numbers of its joints, actuators, sites and geoms."""

from __future__ import annotations

import dataclasses
import functools

import mujoco
import numpy as np

_FREE, _BALL = int(mujoco.mjtJoint.mjJNT_FREE), int(mujoco.mjtJoint.mjJNT_BALL)


@dataclasses.dataclass(frozen=True)
class Addresses:
    """Where a model keeps the numbers of its parts, and what sites and geoms are fixed to; copies of its tables."""

    type: np.ndarray
    """[njnt], as are the next three."""
    body: np.ndarray
    qpos: np.ndarray
    dof: np.ndarray
    activation: np.ndarray
    """[nu], -1 where an actuator has none."""
    fixed: dict[str, tuple[np.ndarray, np.ndarray]]
    """Of sites and geoms: the body of each, and where it is in the body's frame."""
    extent: float
    """Size of the whole model (m)."""

    @staticmethod
    def of(model: mujoco.MjModel) -> Addresses:
        """The tables of a model."""
        fixed = {"site": (model.site_bodyid, model.site_pos), "geom": (model.geom_bodyid, model.geom_pos)}
        return Addresses(
            model.jnt_type.copy(), model.jnt_bodyid.copy(), model.jnt_qposadr.copy(), model.jnt_dofadr.copy(),
            model.actuator_actadr.copy(), {name: (body.copy(), place.copy()) for name, (body, place) in fixed.items()},
            float(model.stat.extent),
        )  # fmt: skip

    @functools.cached_property
    def single(self) -> np.ndarray:
        """Hinges and slides: joints of one number."""
        return np.flatnonzero((self.type != _FREE) & (self.type != _BALL))

    @functools.cached_property
    def balls(self) -> list[int]:
        """Ball joints."""
        return np.flatnonzero(self.type == _BALL).tolist()

    @functools.cached_property
    def free(self) -> list[int]:
        """Free joints."""
        return np.flatnonzero(self.type == _FREE).tolist()
