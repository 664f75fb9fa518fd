"""(MJCF text, MjModel) → MJCF text that compiles to exactly the numbers of that model.

MuJoCo writes models with six digits. The text is compiled, and every number of the model that came out differently is
written out in full, as an attribute of its element, until both agree. The same way writes numbers that were changed.
"""

from __future__ import annotations

import dataclasses
import xml.etree.ElementTree as ElementTree
from collections.abc import Callable, Iterator

import mujoco
import numpy as np

from euda.errors import ModelError
from euda.symmetry.rotations import matrix

Compile = Callable[[str], mujoco.MjModel]
Node = ElementTree.Element
_CLOSE = 1e-12  # relative difference below which two numbers are the same
_SIX_DIGITS = 2e-5  # what MuJoCo's own writing leaves, and what follows from it


@dataclasses.dataclass(frozen=True)
class _Row:
    """An attribute of a kind of element, and where the model keeps it [n, k]."""

    attribute: str
    read: Callable[[mujoco.MjModel], np.ndarray]


def exact_xml(text: str, model: mujoco.MjModel, compile_: Compile) -> str:
    """The text with the numbers of `model`, in full; refuses a model that it cannot write so."""
    root = ElementTree.fromstring(text)
    _dissolve_frames(root, compile_(text))
    wrong: list[str] = []
    for _ in range(3):  # a corrected orientation may change what is derived from it
        written = ElementTree.tostring(root, encoding="unicode")
        compiled = compile_(written)
        wrong = _differing(root, compiled, model)
        if not wrong:
            return written
        _correct(root, compiled, model)
    names = ", ".join(sorted(set(wrong)))
    raise ModelError(f"this model cannot be written as MJCF with all its digits: {names} would differ")


def _correct(root: Node, compiled: mujoco.MjModel, model: mujoco.MjModel) -> None:
    for nodes, rows in _tables(root, model):
        for row in rows:
            now, wanted = row.read(compiled), row.read(model)
            for index in np.flatnonzero(~_same(now, wanted)).tolist():
                node = nodes[index]
                if node is not None:
                    node.set(row.attribute, _digits(wanted[index]))
    _correct_inertias(root, compiled, model)


def _correct_inertias(root: Node, compiled: mujoco.MjModel, model: mujoco.MjModel) -> None:
    """Masses are usually derived from geoms; where that does not give the model's, they are written explicitly."""
    wrong = np.zeros(model.nbody, bool)
    for row in _INERTIAL:
        wrong |= ~_same(row.read(compiled), row.read(model))
    compiler = root.find("compiler")
    if wrong.any() and compiler is not None and "settotalmass" in compiler.attrib:
        del compiler.attrib["settotalmass"]  # the masses written are final
        wrong[:] = True
    for body, node in enumerate(_bodies(root)):
        if wrong[body] and body and model.body_mass[body] > 0:
            inertial = node.find("inertial")
            if inertial is None:
                inertial = ElementTree.Element("inertial")
                node.insert(0, inertial)
            inertial.attrib.clear()
            for row in _INERTIAL:
                inertial.set(row.attribute, _digits(row.read(model)[body]))


# -- elements in the order of the model ------------------------------------------------------------------


def _dissolve_frames(root: Node, model: mujoco.MjModel) -> None:
    """Put what is in frames directly into its body: poses in the model are relative to bodies."""
    framed = {id(node) for frame in root.iter("frame") for node in frame.iter()}
    pose = [nodes for nodes, _ in _tables(root, model)]
    for parent in list(root.iter()):
        while (frame := parent.find("frame")) is not None:
            place, name = list(parent).index(frame), frame.get("childclass")
            parent.remove(frame)
            for offset, child in enumerate(frame):
                if name and child.tag != "frame":
                    child.attrib.setdefault("childclass" if child.tag == "body" else "class", name)
                parent.insert(place + offset, child)
    for nodes, rows in zip(pose, (rows for _, rows in _tables(root, model)), strict=True):
        for index, node in enumerate(nodes):
            if node is not None and id(node) in framed:
                for row in (row for row in rows if row.attribute in ("pos", "quat")):
                    node.set(row.attribute, _digits(row.read(model)[index]))


def _bodies(root: Node) -> list[Node]:
    """The world and all bodies, depth first, as in the model."""
    world = root.find("worldbody")
    assert world is not None
    return list(_descend(world))


def _descend(node: Node) -> Iterator[Node]:
    yield node
    for child in _within(node):
        if child.tag == "body":
            yield from _descend(child)


def _within(node: Node) -> Iterator[Node]:
    """Children, those in frames included, but not those of child bodies."""
    for child in node:
        if child.tag == "frame":
            yield from _within(child)
        else:
            yield child


def _tables(root: Node, model: mujoco.MjModel) -> Iterator[tuple[list[Node | None], list[_Row]]]:
    """Elements of each kind in the order of the model, None where one cannot be told, with their attributes."""
    bodies = _bodies(root)
    children = [child for body in bodies for child in _within(body)]
    yield [None, *bodies[1:]], _BODY
    for tags, count, kind, rows in (
        (("joint", "freejoint"), model.njnt, mujoco.mjtObj.mjOBJ_JOINT, _JOINT),
        (("geom",), model.ngeom, mujoco.mjtObj.mjOBJ_GEOM, _GEOM),
        (("site",), model.nsite, mujoco.mjtObj.mjOBJ_SITE, _SITE),
    ):
        yield _ordered([child for child in children if child.tag in tags], count, model, kind), rows
    for section, count, kind, rows in (
        ("actuator", model.nu, mujoco.mjtObj.mjOBJ_ACTUATOR, _ACTUATOR),
        ("tendon", model.ntendon, mujoco.mjtObj.mjOBJ_TENDON, _TENDON),
    ):
        nodes = [child for part in root.iterfind(section) for child in part]
        yield _ordered(nodes, count, model, kind), rows


def _ordered(nodes: list[Node], count: int, model: mujoco.MjModel, kind: mujoco.mjtObj) -> list[Node | None]:
    """Elements by their names, and by their order where they have none."""
    named = {node.get("name"): node for node in nodes if node.get("name")}
    unnamed = iter([node for node in nodes if not node.get("name")])
    result = []
    for index in range(count):
        name = mujoco.mj_id2name(model, kind, index)
        result.append(named.get(name) if name else next(unnamed, None))
    return result


# -- numbers ---------------------------------------------------------------------------------------------


def _array(name: str) -> Callable[[mujoco.MjModel], np.ndarray]:
    def read(model: mujoco.MjModel) -> np.ndarray:
        values = np.asarray(getattr(model, name), np.float64)
        return values.reshape(len(values), int(np.prod(values.shape[1:])))

    return read


def _of_qpos(name: str) -> Callable[[mujoco.MjModel], np.ndarray]:
    def read(model: mujoco.MjModel) -> np.ndarray:
        single = np.isin(model.jnt_type, (2, 3))  # slides and hinges; others have no number to write
        return np.where(single, getattr(model, name)[model.jnt_qposadr], 0.0)[:, None]

    return read


def _of_dofs(name: str) -> Callable[[mujoco.MjModel], np.ndarray]:
    return lambda model: np.asarray(getattr(model, name)[model.jnt_dofadr], np.float64).reshape(model.njnt, -1)


def _geom_pose(which: int) -> Callable[[mujoco.MjModel], np.ndarray]:
    """Poses of geoms as written: MuJoCo moves the frame of a mesh into its centre, and its geoms with it."""

    def read(model: mujoco.MjModel) -> np.ndarray:
        place, turn = model.geom_pos.copy(), model.geom_quat.copy()
        for geom in np.flatnonzero(model.geom_type == int(mujoco.mjtGeom.mjGEOM_MESH)):
            mesh, inverse = int(model.geom_dataid[geom]), np.empty(4)
            mujoco.mju_negQuat(inverse, model.mesh_quat[mesh])
            mujoco.mju_mulQuat(turn[geom], model.geom_quat[geom], inverse)
            place[geom] -= matrix(turn[geom]) @ model.mesh_pos[mesh]
        return place if which == 0 else turn

    return read


def _geom_size(model: mujoco.MjModel) -> np.ndarray:
    mesh = (model.geom_type == int(mujoco.mjtGeom.mjGEOM_MESH))[:, None]
    return np.where(mesh, 0.0, model.geom_size)  # a mesh has none of its own


def _rows(**arrays: str) -> list[_Row]:
    return [_Row(attribute, _array(name)) for attribute, name in arrays.items()]


_INERTIAL = _rows(pos="body_ipos", quat="body_iquat", mass="body_mass", diaginertia="body_inertia")
_BODY = _rows(pos="body_pos", quat="body_quat", gravcomp="body_gravcomp")
_JOINT = [
    *_rows(
        pos="jnt_pos", axis="jnt_axis", range="jnt_range", stiffness="jnt_stiffness", margin="jnt_margin",
        actuatorfrcrange="jnt_actfrcrange", solreflimit="jnt_solref", solimplimit="jnt_solimp",
    ),
    _Row("ref", _of_qpos("qpos0")), _Row("springref", _of_qpos("qpos_spring")),
    _Row("damping", _of_dofs("dof_damping")), _Row("armature", _of_dofs("dof_armature")),
    _Row("frictionloss", _of_dofs("dof_frictionloss")), _Row("solreffriction", _of_dofs("dof_solref")),
    _Row("solimpfriction", _of_dofs("dof_solimp")),
]  # fmt: skip
_GEOM = [
    _Row("pos", _geom_pose(0)), _Row("quat", _geom_pose(1)), _Row("size", _geom_size),
    *_rows(friction="geom_friction", solref="geom_solref", solimp="geom_solimp", margin="geom_margin", gap="geom_gap",
           condim="geom_condim", contype="geom_contype", conaffinity="geom_conaffinity"),
]  # fmt: skip
_SITE = _rows(pos="site_pos", quat="site_quat", size="site_size")
_ACTUATOR = _rows(
    ctrlrange="actuator_ctrlrange", forcerange="actuator_forcerange", actrange="actuator_actrange",
    gear="actuator_gear", gainprm="actuator_gainprm", biasprm="actuator_biasprm", dynprm="actuator_dynprm",
)  # fmt: skip
_TENDON = _rows(
    stiffness="tendon_stiffness", damping="tendon_damping", frictionloss="tendon_frictionloss",
    armature="tendon_armature", range="tendon_range", springlength="tendon_lengthspring",
)  # fmt: skip


def _same(one: np.ndarray, other: np.ndarray) -> np.ndarray:
    """[n] whether all numbers of a part agree."""
    gap, scale = np.abs(one - other), np.maximum(np.abs(one), np.abs(other))
    close = gap <= _CLOSE * np.maximum(scale, scale.max(axis=1, keepdims=True, initial=0.0))
    return np.asarray(close.all(axis=1))


def _digits(values: np.ndarray) -> str:
    return " ".join(f"{value:.17g}" for value in values)


def _differing(root: Node, one: mujoco.MjModel, other: mujoco.MjModel) -> list[str]:
    """What differs between two models of the same parts: rows of tables by more than rounding, the rest visibly."""
    wrong = [row.attribute for nodes, rows in _tables(root, other) for row in rows
             if any(n is not None for n in nodes) and not _same(row.read(one), row.read(other)).all()]  # fmt: skip
    wrong += [row.attribute for row in _INERTIAL if not _same(row.read(one), row.read(other)).all()]
    for name in dir(other):
        mine, its = getattr(one, name), getattr(other, name)
        if isinstance(its, np.ndarray) and its.dtype.kind == "f":
            if mine.shape != its.shape:
                raise ModelError(f"what MuJoCo wrote of this model has other parts than the model: {name}")
            if not np.allclose(mine, its, rtol=_SIX_DIGITS, atol=_SIX_DIGITS * max(1.0, np.abs(its).max(initial=0.0))):
                wrong.append(name)
    return wrong
