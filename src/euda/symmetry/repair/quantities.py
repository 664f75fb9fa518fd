"""Everything that a part of a model has and its image should have too: masses, ranges, gains, shapes; a row each.

Comparing a part with its image finds defects, averaging both over a group mends them.
"""

from __future__ import annotations

import mujoco
import numpy as np

from euda.symmetry.repair import model_arrays as arrays
from euda.symmetry.repair import moves, parts
from euda.symmetry.repair.quantity import Quantity

# -- what differences are compared with ------------------------------------------------------------------


def _own(model: mujoco.MjModel, values: np.ndarray, size: float) -> np.ndarray:
    del model, size
    return np.abs(values).max(axis=1, initial=0.0)


def _width(model: mujoco.MjModel, values: np.ndarray, size: float) -> np.ndarray:
    del model, size
    return values[:, -1] - values[:, 0]


def _size(model: mujoco.MjModel, values: np.ndarray, size: float) -> np.ndarray:
    del model
    return np.full(len(values), size)


def _unit(model: mujoco.MjModel, values: np.ndarray, size: float) -> np.ndarray:
    del model, size
    return np.ones(len(values))


_B, _J, _A = mujoco.mjtObj.mjOBJ_BODY, mujoco.mjtObj.mjOBJ_JOINT, mujoco.mjtObj.mjOBJ_ACTUATOR
_T, _G = mujoco.mjtObj.mjOBJ_TENDON, mujoco.mjtObj.mjOBJ_GEOM

QUANTITIES: tuple[Quantity, ...] = (
    Quantity("mass", _B, *arrays.array("body_mass"), moves.same, _own, "kg", parts.massive),
    Quantity("centre of mass", _B, *arrays.array("body_ipos"), moves.points, _size, "m", parts.massive),
    Quantity("inertia", _B, *arrays.inertia(), moves.tensors, _own, "kg m²", parts.massive),
    Quantity("gravity compensation", _B, *arrays.array("body_gravcomp"), moves.same, _unit),
    Quantity("anchor", _J, *arrays.anchors(), moves.anchors, _size, "m", parts.first_joints),
    Quantity("axis", _J, arrays.array("jnt_axis")[0], arrays.write_axes, moves.axes, _unit, "", parts.is_single),
    Quantity("range", _J, *arrays.array("jnt_range"), moves.signed("joints"), _width, "",
             parts.single_and("jnt_limited"), parts.hinges),
    Quantity("stiffness", _J, *arrays.array("jnt_stiffness"), moves.same, _own, "", parts.not_free),
    Quantity("spring reference", _J, *arrays.springs(), moves.signed("joints"), _unit, "", parts.sprung, parts.hinges),
    Quantity("damping", _J, *arrays.of_dofs("dof_damping"), moves.same, _own, "", parts.not_free),
    Quantity("armature", _J, *arrays.of_dofs("dof_armature"), moves.same, _own, "", parts.not_free),
    Quantity("friction loss", _J, *arrays.of_dofs("dof_frictionloss"), moves.same, _own, "", parts.not_free),
    Quantity("actuator force range", _J, *arrays.array("jnt_actfrcrange"), moves.signed_force("joints"), _width, "",
             parts.when("jnt_actfrclimited")),
    Quantity("limit solref", _J, *arrays.array("jnt_solref"), moves.same, _own, "", parts.when("jnt_limited")),
    Quantity("limit solimp", _J, *arrays.array("jnt_solimp"), moves.same, _own, "", parts.when("jnt_limited")),
    Quantity("limit margin", _J, *arrays.array("jnt_margin"), moves.same, _unit, "", parts.when("jnt_limited")),
    Quantity("gear", _A, *arrays.gears(), moves.same, _own, "", parts.has_gear),
    Quantity("control range", _A, *arrays.array("actuator_ctrlrange"), moves.signed("actuators"), _width, "",
             parts.when("actuator_ctrllimited")),
    Quantity("force range", _A, *arrays.array("actuator_forcerange"), moves.signed_force("actuators"), _width, "",
             parts.when("actuator_forcelimited")),
    Quantity("gain", _A, *arrays.array("actuator_gainprm"), moves.same, _own),
    Quantity("servo stiffness and damping", _A, *arrays.servo(), moves.same, _own),
    Quantity("dynamics", _A, *arrays.array("actuator_dynprm"), moves.same, _own, "", parts.when("actuator_actnum")),
    Quantity("stiffness", _T, *arrays.array("tendon_stiffness"), moves.same, _own),
    Quantity("damping", _T, *arrays.array("tendon_damping"), moves.same, _own),
    Quantity("friction loss", _T, *arrays.array("tendon_frictionloss"), moves.same, _own),
    Quantity("armature", _T, *arrays.array("tendon_armature"), moves.same, _own),
    Quantity("range", _T, *arrays.array("tendon_range"), moves.signed("tendons"), _width, "",
             parts.when("tendon_limited")),
    Quantity("rest length", _T, *arrays.array("tendon_lengthspring"), moves.signed("tendons"), _size, "",
             parts.when("tendon_stiffness")),
    Quantity("place", _G, *arrays.array("geom_pos"), moves.geom_points, _size, "m", parts.primitive, is_listed=False),
    Quantity("size", _G, *arrays.array("geom_size"), moves.geom_sizes, _size, "m", parts.primitive, is_listed=False),
    Quantity("orientation", _G, *arrays.geom_frames(), moves.geom_frames, _unit, "", parts.primitive, is_listed=False),
    Quantity("friction", _G, *arrays.array("geom_friction"), moves.same, _own),
    Quantity("contact solref", _G, *arrays.array("geom_solref"), moves.same, _own),
    Quantity("contact solimp", _G, *arrays.array("geom_solimp"), moves.same, _own),
    Quantity("contact margin", _G, *arrays.array("geom_margin"), moves.same, _unit),
    Quantity("contact dimension", _G, *arrays.array("geom_condim"), moves.same, _own),
    Quantity("contact filter", _G, *arrays.array("geom_contype"), moves.same, _own),
    Quantity("contact filter (affinity)", _G, *arrays.array("geom_conaffinity"), moves.same, _own),
)  # fmt: skip
"""Everything that is compared, and can be averaged."""
