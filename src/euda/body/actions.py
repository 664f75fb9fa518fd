"""What every entry of an action is: an actuator each, in [-1, 1]."""

from __future__ import annotations

import dataclasses
from typing import TypeVar

import array_api_compat
import mujoco

from euda.body.entry_map import Acting
from euda.errors import LayoutError

Array = TypeVar("Array")


@dataclasses.dataclass(frozen=True)
class Actions:
    """The entries of an action, in the order of the model's actuators. A yaw leaves them alone, a mirror does not.

    >>> import euda
    >>> env = euda.make("walker_run")
    >>> mirror = euda.symmetries(env.model).elements[1]
    >>> env.actions.names[0], env.actions.names[3]
    ('right_hip', 'left_hip')
    >>> import numpy as np
    >>> env.actions.act(mirror, np.array([1.0, 2, 3, 4, 5, 6])).tolist()
    [4.0, 5.0, 6.0, 1.0, 2.0, 3.0]
    """

    names: tuple[str, ...]

    @staticmethod
    def of(model: mujoco.MjModel) -> Actions:
        """Those of a model; an actuator without a name is called by its number."""
        kind = mujoco.mjtObj.mjOBJ_ACTUATOR
        return Actions(tuple(mujoco.mj_id2name(model, kind, i) or f"actuator{i}" for i in range(model.nu)))

    @property
    def dim(self) -> int:
        """Size of an action."""
        return len(self.names)

    def act(self, element: Acting, a: Array) -> Array:
        """The image of actions `a` [..., dim], a NumPy, JAX or PyTorch array of any batch shape."""
        array = a
        try:
            xp = array_api_compat.array_namespace(array)
        except TypeError:
            raise LayoutError(f"actions are a NumPy, JAX or PyTorch array, not {type(a).__name__}") from None
        shape, dtype = tuple(getattr(array, "shape", ())), getattr(array, "dtype", None)
        if not shape or shape[-1] != self.dim:
            raise LayoutError(f"an action has {self.dim} numbers, not an array of shape {shape}")
        if not xp.isdtype(dtype, "real floating"):
            raise LayoutError(f"actions are floating point numbers, not {dtype}")
        return element.on_actions()(array)
