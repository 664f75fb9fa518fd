"""States in which a difference between a part and its image acts: contacts of its geoms, ends of its range."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import mujoco
import numpy as np

from euda.symmetry.element import Element
from euda.symmetry.group import Group
from euda.symmetry.judging.coverage import Touched
from euda.symmetry.judging.seek import Seeker
from euda.symmetry.repair.defects import Defect
from euda.tasks.base_env import LimbEnv, State

_PUSH = 20.0  # rad/s or m/s into a limit that is tried: a stiff spring would leave it by itself
_PER_RANGE = 3  # states in which the difference of two ranges acts


def acting_states(
    env: LimbEnv, group: Group, defects: Sequence[Defect], samples: Sequence[State], touched: Sequence[Touched],
    rng: np.random.Generator,
) -> list[State]:  # fmt: skip
    """States for contacts and limits that no sample met, and for every contact and range that a defect names.

    A clean sample says nothing about an eye that never touched the floor, nor about the last degrees of a range.
    """
    geoms = {defect.origin.index for defect in defects if defect.origin.kind == mujoco.mjtObj.mjOBJ_GEOM}
    unnamed = [
        dataclasses.replace(one, pairs=frozenset(pair for pair in one.pairs if not geoms & set(pair)))
        for one in touched
    ]
    states = Seeker(env, samples, rng).seek(unnamed, pressing=geoms)
    for defect in defects:
        if defect.what == "range" and defect.origin.kind == mujoco.mjtObj.mjOBJ_JOINT:
            element = group.elements[defect.origin.elements[0]]
            states += _between_ranges(env, element, defect.origin.index, samples, rng)
    return states


def _between_ranges(
    env: LimbEnv, element: Element, joint: int, samples: Sequence[State], rng: np.random.Generator
) -> list[State]:
    """States in which a joint is beyond its own limit or that of its image, but not both, and goes on."""
    model, data, states = env.model, env.data, []
    image, sign, offset = int(element.joints.image[joint]), element.joints.signs[joint], element.joints.offset[joint]
    own, other = model.jnt_range[joint], np.sort(sign * (model.jnt_range[image] - offset))
    for end, outward in ((0, -1.0), (1, 1.0)):
        if np.isclose(own[end], other[end], rtol=0, atol=1e-12):
            continue
        for _ in range(_PER_RANGE):
            env.set_state(samples[int(rng.integers(len(samples)))])
            data.qpos[model.jnt_qposadr[joint]] = rng.uniform(*sorted((own[end], other[end])))
            data.qvel[:] = rng.standard_normal(model.nv)
            data.qvel[model.jnt_dofadr[joint]] = outward * _PUSH
            data.qacc_warmstart[:] = 0.0
            mujoco.mj_step1(model, data)
            states.append(env.get_state())
    return states
