"""Robot → readings: the paper's limb features, made sufficient (`limb`) or to the letter (`limb-paper`).

`docs/features.md` says why they differ, with the rank test that shows it.
"""

from __future__ import annotations

from collections.abc import Sequence

from euda.body import readings
from euda.body.morphology import Limb
from euda.body.readings import Make, Reading
from euda.body.robot import Robot


def limb_readings(robot: Robot, sensory: Sequence[Make] = ()) -> list[Reading]:
    """The paper's limb-based features, made sufficient for any robot.

    Against the equation: centres of mass instead of body frames (a foot turning in its ankle moves its
    centre of mass, not its frame), angular velocities of limbs on 3-DoF joints, orientation and spin of
    limbs whose turning moves no centre of mass (wheels), the root's height, activations of actuators, and
    loose objects. The constants of a fixed base are left out.
    """
    limbs, root = robot.morphology.limbs, robot.morphology.root
    if robot.morphology.base == "fixed":
        parts, limbs = [], limbs[1:]
    else:
        parts = _root(robot)
    parts.append(readings.position(robot, "position", limbs, origin=root))
    parts.append(readings.velocity(robot, "velocity", limbs))
    hidden = readings.hidden_spins(robot)
    parts += _axes(robot, [limb for limb in robot.morphology.counted[1:] if limb not in hidden])
    spinning = [limb for limb in robot.morphology.counted[1:] if limb.dofs >= 3 or limb in hidden]
    if hidden:
        parts.append(readings.rotation(robot, "rotation", hidden))
    if spinning:
        parts.append(readings.angular_velocity(robot, "angular_velocity", spinning))
    parts += task_readings(robot)
    if robot.morphology.base != "fixed":
        parts.append(readings.height("height")(robot))
    parts += [make(robot) for make in sensory]
    if robot.morphology.activations and not any(part.field.name == "activation" for part in parts):
        parts.append(readings.activations()(robot))
    return parts + object_readings(robot)


def limb_paper_readings(robot: Robot, sensory: Sequence[Make] = ()) -> list[Reading]:
    """The paper's equation (limb_based) to the letter: R_1, ω_1, all p_i - p_1 and v_i of body frames, axes."""
    limbs, root = robot.morphology.limbs, robot.morphology.root
    parts = _root(robot)
    parts.append(readings.position(robot, "position", limbs, origin=root, of_com=False))
    parts.append(readings.velocity(robot, "velocity", limbs, of_com=False))
    parts += _axes(robot, robot.morphology.counted[1:])
    return parts + task_readings(robot) + [make(robot) for make in sensory]


def _root(robot: Robot) -> list[Reading]:
    root = [robot.morphology.root]
    if root[0].body == 0:
        return [
            readings.mount_rotation(robot, "root_rotation"),
            readings.angular_velocity(robot, "root_angular_velocity", root),
        ]
    return [
        readings.rotation(robot, "root_rotation", root),
        readings.angular_velocity(robot, "root_angular_velocity", root),
    ]


def _axes(robot: Robot, limbs: Sequence[Limb]) -> list[Reading]:
    several = [limb for limb in limbs if limb.dofs > 1]
    balls = [limb for limb in several if readings.on_ball(robot.model, limb)]
    hinged = [limb for limb in several if limb not in balls]
    parts = [readings.axes(robot, "axis", hinged)] if hinged else []
    return parts + ([readings.rotation(robot, "ball_rotation", balls)] if balls else [])


def task_readings(robot: Robot) -> list[Reading]:
    """What the task wants: without it, a reward that follows it cannot be learned."""
    parts = [readings.direction(robot)] if robot.direction is not None else []
    return parts + ([readings.to_target(robot)] if robot.target is not None else [])


def object_readings(robot: Robot) -> list[Reading]:
    """Loose things in the scene, observed as one-limb bodies relative to the root."""
    if not robot.morphology.objects:
        return []
    things = [
        Limb(robot.model.body(b).name or f"body{b}", b, None, (), int(robot.model.body_dofnum[b]))
        for b in robot.morphology.objects
    ]
    return [
        readings.rotation(robot, "object_rotation", things),
        readings.angular_velocity(robot, "object_angular_velocity", things),
        readings.position(robot, "object_position", things, origin=robot.morphology.root),
        readings.velocity(robot, "object_velocity", things),
    ]
