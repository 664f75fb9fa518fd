"""Examined → plain tables: what each element does to joints, actuators, bodies, the root's frame and observations.

All of them say where a number comes from: y[i] = sign[i] · x[index[i]] + offset[i]. Nothing but JSON values, so that
every format is written from the same.
"""

from __future__ import annotations

import importlib.metadata
from collections.abc import Sequence
from typing import Any

import mujoco
import numpy as np

from euda.body.entry_map import EntryMap
from euda.body.fingerprint import digest
from euda.body.layout import Layout
from euda.symmetry.examined import ElementVerdict, Examined
from euda.symmetry.images import Images
from euda.symmetry.observations import underivable

_OBJECTS = {"bodies": mujoco.mjtObj.mjOBJ_BODY, "actuators": mujoco.mjtObj.mjOBJ_ACTUATOR}


def tables(examined: Examined, places: Sequence[int], layout: Layout) -> dict[str, Any]:
    """The tables of some elements of an examined robot, by their places in its group."""
    model = examined.model
    chosen = [examined.verdicts[place] for place in places]
    single = chosen[0].element.table.single.tolist()
    kind = mujoco.mjtObj.mjOBJ_JOINT
    names = {name: _names(model, what, range(_count(model, name))) for name, what in _OBJECTS.items()}
    return {
        "robot": examined.name, "euda": importlib.metadata.version("euda"), "mujoco": mujoco.__version__,
        "model": digest(model), "states": examined.states + examined.sought,
        "joints": _names(model, kind, single), **names, "driven": _driven(model),
        "observations": list(layout.entry_names()),
        "elements": [_element(one, single, layout) for one in chosen],
        "differences": [defect.sentence for defect in examined.defects],
    }  # fmt: skip


def _element(one: ElementVerdict, single: list[int], layout: Layout) -> dict[str, Any]:
    element = one.element
    joints = _gathered(element.joints, single)
    on_observations = None if underivable(element, layout) else _mixed(element.on_observations(layout))
    return {
        "name": element.name, "mirror": element.is_mirror, "verdict": one.verdict, "reward": one.reward,
        "error": {"median": one.median, "p90": one.p90, "max": one.max},
        "robot": _tidy(element.robot_map), "world": _tidy(element.world),
        "joints": joints, "actuators": _gathered(element.actuators, range(len(element.actuators.image)), rates=True),
        "bodies": {"index": np.argsort(element.bodies.image).tolist()}, "observations": on_observations,
    }  # fmt: skip


def _gathered(images: Images, some: Sequence[int], *, rates: bool = False) -> dict[str, Any]:
    """Images of some items, which go to each other, as where each number comes from; rates have no offset."""
    place = {item: i for i, item in enumerate(some)}
    index, sign, offset = [0] * len(place), [1] * len(place), [0.0] * len(place)
    for item, i in place.items():
        to = place[int(images.image[item])]
        index[to], sign[to] = i, int(np.sign(images.signs[item]))
        offset[to] = 0.0 if rates else round(float(images.offset[item, 0]), 12) + 0.0
    return {"index": index, "sign": sign, "offset": offset}


def _mixed(entries: EntryMap) -> dict[str, Any]:
    """Index and weight of every term, and offsets; usually there is one term, and weights are signs."""
    return {"index": entries.index.tolist(), "weight": _tidy(entries.weight), "offset": _tidy(entries.offset)}


def _tidy(array: np.ndarray) -> Any:
    return (np.round(array, 12) + 0.0).tolist()


def _count(model: mujoco.MjModel, name: str) -> int:
    return {"bodies": model.nbody, "actuators": model.nu}[name]


def _names(model: mujoco.MjModel, kind: mujoco.mjtObj, ids: Sequence[int]) -> list[str]:
    """Names of parts; a part without one is called by its number."""
    return [mujoco.mj_id2name(model, kind, i) or f"{kind.name[6:].lower()}{i}" for i in ids]


def _driven(model: mujoco.MjModel) -> list[str | None]:
    """The joint that each actuator drives; None if it drives something else."""
    transmission = (int(mujoco.mjtTrn.mjTRN_JOINT), int(mujoco.mjtTrn.mjTRN_JOINTINPARENT))
    joints = _names(model, mujoco.mjtObj.mjOBJ_JOINT, range(model.njnt))
    ids = model.actuator_trnid[:, 0].tolist()
    return [
        joints[i] if int(kind) in transmission else None for kind, i in zip(model.actuator_trntype, ids, strict=True)
    ]
