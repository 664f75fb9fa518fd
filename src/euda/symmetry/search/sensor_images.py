"""(MjModel, element) → images of sensors, and how each reading becomes that of its image.

The image of a sensor is one of the same type on the image of what it is attached to. What a reading does follows from
the type: forces and accelerations are polar in the sensor's own frame, rates and torques axial, joint readings carry
the sign of their joint. Readings in world axes go through Q besides, which is left to whoever knows Q.
"""

from __future__ import annotations

import mujoco
import numpy as np

from euda.symmetry.element import Element
from euda.symmetry.images import NOWHERE, Images
from euda.symmetry.rotations import axial, matrix, quaternion_map
from euda.symmetry.search.setting import ASTRAY

_S = mujoco.mjtSensor
_POLAR = {_S.mjSENS_ACCELEROMETER, _S.mjSENS_VELOCIMETER, _S.mjSENS_FORCE}
_AXIAL = {_S.mjSENS_GYRO, _S.mjSENS_TORQUE}
_WORLD_POINT = {_S.mjSENS_FRAMEPOS, _S.mjSENS_FRAMELINVEL, _S.mjSENS_FRAMELINACC}
_WORLD_SPIN = {_S.mjSENS_FRAMEANGVEL, _S.mjSENS_FRAMEANGACC}
_WORLD_TREE = {_S.mjSENS_SUBTREECOM, _S.mjSENS_SUBTREELINVEL, _S.mjSENS_SUBTREEANGMOM}
_AXES = {_S.mjSENS_FRAMEXAXIS: 0, _S.mjSENS_FRAMEYAXIS: 1, _S.mjSENS_FRAMEZAXIS: 2}
_OF_JOINT = {_S.mjSENS_JOINTPOS, _S.mjSENS_JOINTVEL, _S.mjSENS_JOINTACTFRC}
_OF_TENDON = {_S.mjSENS_TENDONPOS, _S.mjSENS_TENDONVEL, _S.mjSENS_TENDONACTFRC}
_OF_ACTUATOR = {_S.mjSENS_ACTUATORPOS, _S.mjSENS_ACTUATORVEL, _S.mjSENS_ACTUATORFRC}
_EVEN = {
    _S.mjSENS_TOUCH, _S.mjSENS_JOINTLIMITPOS, _S.mjSENS_JOINTLIMITVEL, _S.mjSENS_JOINTLIMITFRC,
    _S.mjSENS_TENDONLIMITPOS, _S.mjSENS_TENDONLIMITVEL, _S.mjSENS_TENDONLIMITFRC, _S.mjSENS_E_POTENTIAL,
    _S.mjSENS_E_KINETIC, _S.mjSENS_CLOCK,
}  # fmt: skip
_LENGTHS = {_S.mjSENS_JOINTPOS, _S.mjSENS_TENDONPOS, _S.mjSENS_ACTUATORPOS}


def sensor_images(model: mujoco.MjModel, element: Element, gaps: np.ndarray, size: float) -> Images:
    """Images of sensors: of the same type, on the image of what they are attached to."""
    count = model.nsensor
    result = Images.identity(count, 4)
    result.image[:] = NOWHERE
    taken: set[int] = set()
    for sensor in range(count):
        alike = [
            other
            for other in range(count)
            if other not in taken
            and all(
                getattr(model, f"sensor_{what}")[other] == getattr(model, f"sensor_{what}")[sensor]
                for what in ("type", "objtype", "reftype", "dim")
            )
        ]
        options = {other: gap for other in alike if (gap := _apart(model, element, sensor, other, size)) < ASTRAY}
        if not options:
            continue
        image = min(options, key=lambda other: (round(options[other], 9), other))
        rule = _rule(model, element, sensor, image, gaps)
        if rule is not None:
            taken.add(image)
            result.image[sensor] = image
            k = len(rule[1])
            result.matrix[sensor, :k, :k], result.offset[sensor, :k] = rule
    return result


def _apart(model: mujoco.MjModel, element: Element, sensor: int, other: int, size: float) -> float:
    """How far one sensor is from where the image of another should be, in sizes of the robot; infinite elsewhere."""
    gap = 0.0
    for kind, own, its in (
        (int(model.sensor_objtype[sensor]), int(model.sensor_objid[sensor]), int(model.sensor_objid[other])),
        (int(model.sensor_reftype[sensor]), int(model.sensor_refid[sensor]), int(model.sensor_refid[other])),
    ):
        gap += _object_gap(model, element, mujoco.mjtObj(kind), own, its) / size
    return gap


def _object_gap(model: mujoco.MjModel, element: Element, kind: mujoco.mjtObj, own: int, its: int) -> float:
    relabelled = {
        mujoco.mjtObj.mjOBJ_JOINT: element.joints,
        mujoco.mjtObj.mjOBJ_TENDON: element.tendons,
        mujoco.mjtObj.mjOBJ_ACTUATOR: element.actuators,
        mujoco.mjtObj.mjOBJ_BODY: element.bodies,
        mujoco.mjtObj.mjOBJ_XBODY: element.bodies,
    }
    if own < 0 or its < 0:
        return 0.0 if own == its else np.inf
    if kind in relabelled:
        return 0.0 if relabelled[kind].image[own] == its else np.inf
    owners = {
        mujoco.mjtObj.mjOBJ_SITE: (model.site_bodyid, model.site_pos),
        mujoco.mjtObj.mjOBJ_GEOM: (model.geom_bodyid, model.geom_pos),
        mujoco.mjtObj.mjOBJ_CAMERA: (model.cam_bodyid, model.cam_pos),
    }
    if kind not in owners:
        return 0.0 if own == its else np.inf
    body, place = owners[kind]
    if element.bodies.image[body[own]] != body[its]:
        return np.inf
    goal = element.bodies.matrix[body[own]] @ place[own] + element.bodies.offset[body[own]]
    return float(np.linalg.norm(goal - place[its]))


def _rule(
    model: mujoco.MjModel, element: Element, sensor: int, image: int, gaps: np.ndarray
) -> tuple[np.ndarray, np.ndarray] | None:
    """(matrix, offset) that takes a reading to that of its image, Q apart; None where there is no linear rule."""
    kind, obj = _S(model.sensor_type[sensor]), int(model.sensor_objid[sensor])
    one, zero, none = np.eye(1), np.zeros(1), np.zeros(3)
    has_reference = int(model.sensor_refid[sensor]) >= 0
    if kind in _EVEN:
        return one, zero
    for kinds, images, gap in (
        (_OF_JOINT, element.joints, element.joints.offset[:, 0]),
        (_OF_TENDON, element.tendons, element.tendons.offset[:, 0]),
        (_OF_ACTUATOR, element.actuators, gaps),
    ):
        if kind in kinds:
            return images.signs[obj] * one, zero + (gap[obj] if kind in _LENGTHS else 0.0)
    if kind in _POLAR | _AXIAL:
        turn = _local(model, element, sensor, image, "obj")
        return (axial(turn) if kind in _AXIAL else turn), none
    if kind == _S.mjSENS_BALLANGVEL:
        return axial(element.bodies.matrix[model.jnt_bodyid[obj]]), none
    if kind == _S.mjSENS_BALLQUAT:
        left, right = element.before.matrix[obj], element.bodies.matrix[model.jnt_bodyid[obj]]
        return quaternion_map(left, right), np.zeros(4)
    outer = _local(model, element, sensor, image, "ref") if has_reference else np.eye(3)
    if kind in _WORLD_TREE:
        return outer, none
    if kind in _WORLD_SPIN:
        return (axial(outer) if has_reference else outer), none
    if kind == _S.mjSENS_FRAMEQUAT:
        return quaternion_map(outer, _local(model, element, sensor, image, "obj")), np.zeros(4)
    if kind in _AXES:  # an axis goes to plus or minus the same axis of the image, or to none that is read
        column = _local(model, element, sensor, image, "obj")[:, _AXES[kind]]
        sign = column[_AXES[kind]].round()
        return (sign * outer, none) if abs(sign) == 1 and np.allclose(abs(column).max(), 1, atol=1e-6) else None
    if kind in _WORLD_POINT and _keeps_origin(model, element, sensor, image):
        return outer, none
    return None


def _local(model: mujoco.MjModel, element: Element, sensor: int, image: int, which: str) -> np.ndarray:
    """S in the frames of the objects of two sensors."""
    ids = getattr(model, f"sensor_{which}id")
    body, frame, _ = _object_frame(model, int(getattr(model, f"sensor_{which}type")[sensor]), int(ids[sensor]))
    _, other, _ = _object_frame(model, int(getattr(model, f"sensor_{which}type")[sensor]), int(ids[image]))
    return other.T @ element.bodies.matrix[body] @ frame


def _keeps_origin(model: mujoco.MjModel, element: Element, sensor: int, image: int) -> bool:
    """Whether the point that a sensor follows goes to the point that its image follows."""
    kind = int(model.sensor_objtype[sensor])
    body, _, place = _object_frame(model, kind, int(model.sensor_objid[sensor]))
    _, _, other = _object_frame(model, kind, int(model.sensor_objid[image]))
    goal = element.bodies.matrix[body] @ place + element.bodies.offset[body]
    return bool(np.allclose(goal, other, atol=1e-6)) and int(model.sensor_refid[sensor]) < 0


def _object_frame(model: mujoco.MjModel, kind: int, index: int) -> tuple[int, np.ndarray, np.ndarray]:
    """(body, orientation, place) of an object in the frame of the body it is fixed to."""
    match mujoco.mjtObj(kind):
        case mujoco.mjtObj.mjOBJ_SITE:
            return int(model.site_bodyid[index]), matrix(model.site_quat[index]), model.site_pos[index]
        case mujoco.mjtObj.mjOBJ_GEOM:
            return int(model.geom_bodyid[index]), matrix(model.geom_quat[index]), model.geom_pos[index]
        case mujoco.mjtObj.mjOBJ_CAMERA:
            return int(model.cam_bodyid[index]), matrix(model.cam_quat[index]), model.cam_pos[index]
        case mujoco.mjtObj.mjOBJ_BODY:
            return index, matrix(model.body_iquat[index]), model.body_ipos[index]
        case _:
            return index, np.eye(3), np.zeros(3)
