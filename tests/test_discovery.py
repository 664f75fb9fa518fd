"""Symmetries found from the model and judged by the simulator: the ten tasks, and robots built to have them."""

import dataclasses
import functools
from pathlib import Path

import mujoco
import numpy as np
import pytest
from symmetric_robots import crane, drone, rower, star, tendon_arm
from twins import error

import euda
from euda import symmetries
from euda.errors import ModelError
from euda.symmetry import discovery
from euda.symmetry.images import NOWHERE
from euda.symmetry.rotations import axial
from euda.symmetry.search import closure

# Task: bodies that change place, joints that change sign, actuators that change place and that change sign.
LEFT_RIGHT = {
    "cheetah_run": (0, 0, 0, 0),
    "hopper_hop": (0, 0, 0, 0),
    "cheetah3d_run": (0, 12, 0, 12),
    "hopper3d_hop": (0, 8, 0, 8),
    "walker_run": (6, 0, 6, 0),
    "walker3d_run": (6, 12, 18, 12),
    "quadruped_run": (16, 4, 12, 4),
    "reacher_hard": (0, 2, 0, 2),
    "humanoid_run": (12, 8, 18, 8),
    "humanoid_stand": (12, 8, 18, 8),
}
TRIVIAL = {"cheetah_run", "hopper_hop"}
SKEW = {"humanoid_run", "humanoid_stand"}


@functools.cache
def task_group(task: str):
    return euda.symmetries(euda.make(task).model)


def moved(images) -> int:
    return int((images.image != np.arange(len(images.image))).sum())


def test_every_task_has_a_row():
    assert set(LEFT_RIGHT) == set(euda.TASKS)


@pytest.mark.parametrize("task", LEFT_RIGHT)
def test_the_mirror_of_every_task(task):
    group = task_group(task)
    assert group.order == (8 if task == "quadruped_run" else 2)
    mirror = group.elements[1]
    assert mirror.name == "mirror left-right"
    assert mirror.is_mirror
    assert mirror.is_trivial == (task in TRIVIAL)
    np.testing.assert_array_equal(mirror.world, np.diag([1.0, -1.0, 1.0]))
    flipped = int((mirror.joints.signs < 0).sum()), int((mirror.actuators.signs < 0).sum())
    assert (moved(mirror.bodies), flipped[0], moved(mirror.actuators), flipped[1]) == LEFT_RIGHT[task]


def step_both(task: str, cone: str, element, states: int, seed: int = 0) -> tuple[float, float]:
    """Largest relative error of the next state, and largest difference of rewards."""
    env, rng, gaps, rewards = euda.make(task, cone=cone), np.random.default_rng(seed), [], []
    for number in range(states):
        if number % 3 == 0:
            env.reset(seed=seed + number)
        for _ in range(8):
            action = rng.uniform(-1, 1, env.model.nu)
            for _ in range(4):
                env.step(action)
        state, action = env.get_state(), rng.uniform(-1, 1, env.model.nu)
        reward = env.step(action)[1]
        qpos = element.positions(env.data.qpos)
        qvel = element.velocities(env.data.qpos, env.data.qvel)
        act = element.activations.numbers(env.data.act)
        env.set_state(state)
        element.apply(env.robot)
        mujoco.mj_step1(env.model, env.data)
        mirrored = env.step(element.action(action))[1]
        gap = [np.abs(env.data.qvel - qvel).max() / np.abs(qvel).max(), np.abs(env.data.qpos - qpos).max()]
        gaps.append(max([*gap, np.abs(env.data.act - act).max(initial=0.0)]))
        rewards.append(abs(mirrored - reward))
        env.set_state(state)
    return float(np.max(gaps)), float(np.max(rewards))


@pytest.mark.parametrize("cone", ["default", "elliptic"])
@pytest.mark.parametrize("task", sorted(set(LEFT_RIGHT) - SKEW))
def test_eight_mirrors_are_exact_with_both_cones(task, cone):
    dynamics, reward = step_both(task, cone, task_group(task).elements[1], states=6)
    assert dynamics < 1e-9
    assert reward < 1e-9


def test_a_wrong_sign_would_be_seen():
    mirror = task_group("walker3d_run").elements[1]
    signs = mirror.actuators.matrix.copy()
    signs[0] *= -1
    wrong = dataclasses.replace(mirror, actuators=dataclasses.replace(mirror.actuators, matrix=signs))
    assert step_both("walker3d_run", "elliptic", wrong, states=2)[0] > 1e-3


def test_a_group_is_sought_once_for_a_model_and_nobody_can_write_to_it():
    model = euda.make("walker_run").model
    group = symmetries(model)
    assert symmetries(euda.make("walker_run").model) is group
    for array in (group.elements[1].world, group.elements[1].joints.matrix, group.elements[1].table.qpos):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 0
    model.body_mass[1] *= 1 + 1e-12
    assert symmetries(model) is not group


@pytest.mark.parametrize("task", ["walker3d_run", "quadruped_run"])
def test_every_vertical_plane_is_a_mirror(task):
    """The mirror and then a yaw: the whole of O(2)."""
    element = task_group(task).elements[1].turned(0.9)
    assert step_both(task, "elliptic", element, states=3)[0] < 1e-9


def test_a_reachers_group_is_the_whole_of_o2():
    mirror = task_group("reacher_hard").elements[1]
    assert mirror.joints.signs.tolist() == [-1, -1]
    for yaw in (0.0, 0.7, -2.0):
        assert max(step_both("reacher_hard", "default", mirror.turned(yaw), states=2)) < 1e-12


def test_the_planar_walker_exchanges_its_legs():
    mirror = task_group("walker_run").elements[1]
    model = euda.make("walker_run").model
    names = {model.body(b).name: model.body(int(k)).name for b, k in enumerate(mirror.bodies.image)}
    assert names["left_thigh"] == "right_thigh"
    assert names["right_foot"] == "left_foot"
    assert names["torso"] == "torso"
    assert not mirror.is_trivial


# -- robots built to be symmetric ------------------------------------------------------------------------

BUILT = {
    "three legs": (lambda: star(3), 6),
    "four legs, base turned": (lambda: star(4, turned=30), 8),
    "five legs": (lambda: star(5), 10),
    "six legs": (lambda: star(6), 12),
    "frames askew": (lambda: star(4, askew=25), 8),
    "chiral": (lambda: star(3, chiral=True), 3),
    "ball joints": (lambda: star(4, joint="ball"), 8),
    "closed loops": (rower, 2),
    "tendons, activations, mounted": (tendon_arm, 4),
    "slide, loose cube hung by a corner": (crane, 2),
    "loose cube hung by a face": (lambda: crane(corner=False), 2),
    "one body, thrust": (drone, 4),
}


@pytest.mark.parametrize("name", BUILT)
def test_robots_built_to_be_symmetric(name):
    build, order = BUILT[name]
    model = build()
    group = euda.symmetries(model)
    assert group.order == order
    for element in group.elements[1:]:
        assert error(model, element, states=3) < 1e-9, element.name


def test_a_chiral_star_has_no_mirror():
    assert not any(element.is_mirror for element in euda.symmetries(star(3, chiral=True)))


def test_a_cube_gets_the_mirror_that_keeps_its_hook():
    """With the mirror of the robot in place of its own, the cube would hang by another corner."""
    model = crane()
    mirror = euda.symmetries(model).elements[1]
    cube = model.body("cube").id
    np.testing.assert_allclose(mirror.bodies.matrix[cube] @ np.ones(3), np.ones(3), atol=1e-12)
    frames = mirror.bodies.matrix.copy()
    frames[cube] = mirror.world
    wrong = dataclasses.replace(mirror, bodies=dataclasses.replace(mirror.bodies, matrix=frames))
    assert error(model, wrong, states=2) > 1e-2


def test_a_payload_is_near_and_not_exact():
    model = star(4, payload=0.01)
    group = euda.symmetries(model)
    assert group.order == 8
    for element in group.elements[1:]:
        assert 1e-4 < error(model, element, states=2, settle=10) < 0.1


def test_numbers_rounded_in_a_file_do_not_round_the_group():
    """The tripod's hips are typed with four digits: its third of a turn is exact, and the robot is what is off."""
    source = euda.ModelEnv(Path(euda.__file__).parent / "examples" / "tripod.xml")
    group = euda.symmetries(source.model)
    assert group.order == 6
    third = next(e for e in group if e.name == "turn by 120° about z")
    np.testing.assert_allclose(np.linalg.matrix_power(third.robot_map, 3), np.eye(3), atol=1e-12)
    assert 1e-9 < error(source.model, third, states=2, settle=30) < 1e-2


def test_actuators_that_only_push_are_not_turned_upside_down():
    group = euda.symmetries(drone())
    assert all(element.robot_map[2, 2] == 1 for element in group)
    assert "top-bottom" in group.nearest
    assert "thrust" in group.nearest


# -- sensors ---------------------------------------------------------------------------------------------


def expected_readings(model, element, values):
    """What the image's sensors should read, from the element's table and what each type is in world axes."""
    padded = np.zeros((model.nsensor, 4))
    spans = [slice(int(a), int(a + d)) for a, d in zip(model.sensor_adr, model.sensor_dim, strict=True)]
    for row, span in zip(padded, spans, strict=True):
        row[: span.stop - span.start] = values[span]
    images = element.sensors(padded)
    result, known = np.zeros_like(values), np.zeros(len(values), bool)
    for sensor, span in enumerate(spans):
        kind = mujoco.mjtSensor(model.sensor_type[sensor]).name.removeprefix("mjSENS_").lower()
        reading = images[sensor, : span.stop - span.start]
        if kind in ("framepos", "subtreelinvel"):
            reading = element.world @ reading
        elif kind in ("frameangvel", "subtreeangmom"):
            reading = axial(element.world) @ reading
        elif kind == "framequat":
            turned = np.empty(4)
            mujoco.mju_mulQuat(turned, _quaternion(axial(element.world)), reading)
            reading = turned
        result[span], known[span] = reading, element.sensors.image[sensor] != NOWHERE
    return result, known


def _quaternion(rotation):
    result = np.empty(4)
    mujoco.mju_mat2Quat(result, rotation.ravel())
    return result


def test_sensors_follow_their_images():
    """Readings in frames of their own, drawn askew: force, torque, gyro and the others, in a state and its image."""
    model = rower()
    mirror = euda.symmetries(model).elements[1]
    world, twin = mujoco.MjData(model), mujoco.MjData(model)
    rng = np.random.default_rng(0)
    mujoco.mj_integratePos(model, world.qpos, 0.2 * rng.standard_normal(model.nv), 1.0)
    world.qpos[2] = 0.1
    world.qvel[:] = rng.standard_normal(model.nv)
    world.ctrl[:] = rng.uniform(-1, 1, model.nu)
    twin.qpos[:], twin.qvel[:] = mirror.positions(world.qpos), mirror.velocities(world.qpos, world.qvel)
    twin.ctrl[:] = mirror.control(world.ctrl)
    mujoco.mj_forward(model, world)
    mujoco.mj_forward(model, twin)
    assert world.ncon
    expected, known = expected_readings(model, mirror, world.sensordata)
    found = twin.sensordata
    for sensor in range(model.nsensor):
        span = slice(int(model.sensor_adr[sensor]), int(model.sensor_adr[sensor] + model.sensor_dim[sensor]))
        if "quat" in model.sensor(sensor).name and found[span] @ expected[span] < 0:
            found[span] *= -1
    np.testing.assert_allclose(found[known], expected[known], rtol=1e-8, atol=1e-8)
    lost = {model.sensor(i).name for i in np.flatnonzero(mirror.sensors.image == NOWHERE)}
    assert lost == {"compass"}  # it follows a field of the world that no mirror of the robot turns


# -- bad input -------------------------------------------------------------------------------------------


def test_several_robots_are_refused():
    legs = "".join(f'<body pos="{i} 0 1"><joint name="j{i}" axis="0 1 0"/><geom size=".1"/></body>' for i in range(2))
    motors = '<motor joint="j0"/><motor joint="j1"/>'
    xml = f"<mujoco><worldbody>{legs}</worldbody><actuator>{motors}</actuator></mujoco>"
    with pytest.raises(ModelError, match="2 robots"):
        euda.symmetries(mujoco.MjModel.from_xml_string(xml))


def test_no_symmetry_at_all_names_the_nearest():
    xml = """<mujoco><worldbody><body name="trunk" pos="0 0 1"><freejoint/><geom type="box" size=".2 .1 .05"/>
      <body name="arm" pos=".2 .1 .05"><joint name="j" axis="0 1 .3"/>
        <geom type="capsule" fromto="0 0 0 .1 .2 .3" size=".03"/></body></body></worldbody>
      <actuator><motor joint="j"/></actuator></mujoco>"""
    group = euda.symmetries(mujoco.MjModel.from_xml_string(xml))
    assert group.order == 1
    assert "mirror" in group.nearest or "turn" in group.nearest
    assert "'" in group.nearest  # the part that does not fit, by its name


def test_a_group_too_large_to_list_is_refused(monkeypatch):
    monkeypatch.setattr(discovery, "_FOUND", {})  # nobody has sought them before
    monkeypatch.setattr(closure, "LARGEST", 8)
    with pytest.raises(ModelError, match="more than 8 symmetries: probably it is round"):
        symmetries(star(5))
