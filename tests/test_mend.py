"""Defects are found where they were put, and models are mended to exactness, which the simulator confirms."""

import mujoco
import numpy as np
import pytest
from symmetric_robots import drone, rower, star, tendon_arm
from twins import error

import euda
from euda.errors import EudaError, ModelError
from euda.symmetry.repair import mend
from euda.symmetry.repair.defects import Defect, defects
from euda.symmetry.repair.mjcf import exact_xml
from euda.tasks import table

QUADRUPED = """
<mujoco model="pony"><compiler angle="degree"/><option timestep=".005" cone="elliptic"/>
  <default><joint damping=".2" armature=".01"/><default class="leg"><geom size=".02" density="900"/></default></default>
  <worldbody><geom type="plane" size="0 0 1"/>
    <body name="trunk" pos="0 0 .35"><freejoint/>
      <geom type="box" size=".2 .08 .05" mass="4"/>{load}
      <body name="left" pos="{left} .1 0"><joint name="left_roll" axis="1 0 0" range="-40 30" {damping}/>
        <joint name="left_pitch" axis="0 1 0" range="-60 60"/>
        <geom name="left_leg" class="leg" type="capsule" fromto="0 0 0 0 .02 -.3"/></body>
      <frame pos="0 -.1 0"><body name="right"><joint name="right_roll" axis="-1 0 0" range="-40 {roll}"/>
        <joint name="right_pitch" axis="0 1 0" range="-60 60"/>
        <geom name="right_leg" class="leg" type="capsule" fromto="0 0 0 0 -.02 -.3" {friction}/></body></frame>
      <body name="tail" pos="-.2 0 0"><joint name="tail" axis="0 0 1" range="-30 30"/>
        <geom type="capsule" fromto="0 0 0 -.1 0 .1" size=".02" mass=".3"/></body></body></worldbody>
  <actuator><motor joint="left_roll" ctrlrange="-1 1" gear="3"/><motor joint="left_pitch" ctrlrange="-1 1" gear="3"/>
    <motor joint="right_roll" ctrlrange="-1 1" gear="{gear}"/><motor joint="right_pitch" ctrlrange="-1 1" gear="3"/>
    <motor joint="tail" ctrlrange="-1 1"/></actuator></mujoco>"""
EXACT = {"load": "", "left": "0", "damping": "", "roll": "30", "friction": "", "gear": "3"}


def pony(**changes: str) -> mujoco.MjModel:
    return mujoco.MjModel.from_xml_string(QUADRUPED.format(**{**EXACT, **changes}))


def found(model: mujoco.MjModel) -> dict[tuple[str, str], Defect]:
    group = euda.symmetries(model)
    assert group.order > 1
    return {(defect.part, defect.what): defect for defect in defects(model, group)}


def test_a_symmetric_robot_has_no_defects():
    assert found(pony()) == {}
    assert found(rower()) == {}
    assert found(star(5)) == {}
    assert found(star(4, joint="ball", turned=30)) == {}


@pytest.mark.parametrize(
    ("change", "names", "what", "values"),
    [
        ({"roll": "27"}, ("left_roll", "right_roll"), "range", ((-40, 30), (-40, 27))),
        ({"damping": 'damping=".25"'}, ("left_roll", "right_roll"), "damping", (0.25, 0.2)),
        ({"gear": "2.5"}, ("actuator 0", "actuator 2"), "gear", (3, 2.5)),
        ({"friction": 'friction=".8"'}, ("left_leg", "right_leg"), "friction", ((1, 0.005, 1e-4), (0.8, 0.005, 1e-4))),
    ],
)
def test_a_difference_is_named_with_both_values(change, names, what, values):
    (defect,) = found(pony(**change)).values()
    stored = defect.to_json()
    assert (stored["part"], stored["image"], stored["what"]) == (*names, what)
    np.testing.assert_allclose(stored["value"], values[0], atol=1e-9)
    np.testing.assert_allclose(stored["image_value"], values[1], atol=1e-9)
    np.testing.assert_allclose(stored["expected"], values[0], atol=1e-9)


def test_a_flipped_range_is_not_a_defect_and_a_wrong_one_is_told_in_both_frames():
    """Hinges that turn against each other have mirrored ranges; the sentence says what was expected."""
    text = QUADRUPED.format(**EXACT).replace(
        '"right_roll" axis="-1 0 0" range="-40 30"', '"right_roll" axis="1 0 0" range="-30 35"'
    )
    model = mujoco.MjModel.from_xml_string(text)
    (defect,) = defects(model, euda.symmetries(model))
    assert defect.sentence == "left_roll has range -40 to 30 deg, its image right_roll -30 to 35 instead of -30 to 40"


def test_a_misplaced_leg_is_blamed_once_and_not_its_parts():
    (defect,) = found(pony(left=".004")).values()
    assert defect.sentence == "the anchors of left_roll and of its image right_roll are 4 mm apart"


def test_a_payload_is_a_centre_of_mass_off_the_plane():
    listed = found(pony(load='<geom size=".02" pos="0 .05 .05" mass=".04" contype="0" conaffinity="0"/>'))
    assert {what for _, what in listed} == {"centre of mass", "inertia"}
    defect = listed["trunk", "centre of mass"]
    off = 0.04 * 0.05 / 4.04
    assert f"{1000 * off:.3g} mm off the mirror plane" in defect.sentence


def test_a_root_frame_off_the_plane_is_found_and_named():
    """MuJoCo's constraints leave out the term that moves with the frame: exact in the air but for the integrator."""
    text = QUADRUPED.format(**EXACT).replace('mass="4"/>', 'mass="4" pos=".01 .02 .03"/><frame pos=".01 .02 .03">')
    model = mujoco.MjModel.from_xml_string(
        text.replace("</body></body></worldbody>", "</body></frame></body></worldbody>")
    )
    (defect,) = found(model).values()
    assert defect.sentence == "the frame origin of trunk lies 20 mm off the mirror plane"
    mirror = euda.symmetries(model).elements[1]
    np.testing.assert_allclose(mirror.bodies.offset[1], (0, 0.04, 0), atol=1e-12)
    world, twin = mujoco.MjData(model), mujoco.MjData(model)
    rng = np.random.default_rng(0)
    mujoco.mj_integratePos(model, world.qpos, rng.standard_normal(model.nv), 1.0)
    world.qpos[2], world.qvel[:] = 3.0, rng.standard_normal(model.nv)
    twin.qpos[:], twin.qvel[:] = mirror.positions(world.qpos), mirror.velocities(world.qpos, world.qvel)
    for data in (world, twin):
        mujoco.mj_forward(model, data)
    expected = mirror.accelerations(world.qpos, world.qvel, world.qacc)
    np.testing.assert_allclose(twin.qacc, expected, rtol=1e-9, atol=1e-9)
    assert 1e-6 < error(model, mirror, states=3) < 0.1


def test_parts_without_an_image_are_named():
    model = euda.make("quadruped_run").model
    lost = {defect.part for defect in defects(model, euda.symmetries(model)) if defect.what == "no image"}
    assert lost == {"eye_r", "eye_l"}


def test_obstacles_and_tilted_gravity_are_named():
    text = QUADRUPED.format(**EXACT).replace("<option ", '<option gravity="0 1 -9.8" ')
    text = text.replace(
        '<body name="trunk"', '<geom name="box" type="box" size=".1 .1 .1" pos="1 .5 0"/><body name="trunk"'
    )
    listed = found(mujoco.MjModel.from_xml_string(text))
    assert listed.keys() == {("world", "gravity"), ("box", "fixed to the world")}


def test_the_humanoids_skew_hip_is_found():
    (defect,) = found(euda.make("humanoid_run").model).values()
    assert {defect.part, defect.image} == {"left_hip_y", "right_hip_y"}
    assert defect.what == "range"
    ranges = {defect.part: defect.value, defect.image: defect.image_value}
    np.testing.assert_allclose(ranges["left_hip_y"], (-120, 20))
    np.testing.assert_allclose(ranges["right_hip_y"], (-110, 20))


# -- mending ---------------------------------------------------------------------------------------------


def hip_limit_error(model: mujoco.MjModel, mirror) -> float:
    """Error of one step from a pose in which one hip is between the two limits."""
    world, twin = mujoco.MjData(model), mujoco.MjData(model)
    world.qpos[2] = 2.0
    hip = model.joint("right_hip_y")
    world.qpos[hip.qposadr], world.qvel[hip.dofadr] = np.radians(-115), -30.0  # against a stiff spring, into the limit
    twin.qpos[:], twin.qvel[:] = mirror.positions(world.qpos), mirror.velocities(world.qpos, world.qvel)
    for data in (world, twin):
        mujoco.mj_step(model, data, 3)
    velocity = mirror.velocities(world.qpos, world.qvel)
    return float(np.abs(twin.qvel - velocity).max() / np.abs(velocity).max())


def test_the_mended_humanoid_is_exact_where_it_was_not(tmp_path):
    model = table.load("humanoid_run").physics.model.ptr
    text = mend.last_text(model, tmp_path)
    group = euda.symmetries(model)
    assert hip_limit_error(model, group.elements[1]) > 0.1
    mend.write_mended(text, mend.mended(model, group, [1]), tmp_path / "humanoid.xml")
    assert [path.name for path in tmp_path.iterdir()] == ["humanoid.xml"]
    mended = mujoco.MjModel.from_xml_path(str(tmp_path / "humanoid.xml"))
    mirror = euda.symmetries(mended).elements[1]
    np.testing.assert_allclose(np.degrees(mended.joint("left_hip_y").range), (-115, 20), atol=1e-12)
    assert hip_limit_error(mended, mirror) < 1e-9
    assert error(mended, mirror, states=3) < 1e-9
    assert defects(mended, euda.symmetries(mended)) == ()


def test_a_mended_file_has_all_digits_and_every_kind_of_defect_is_gone(tmp_path):
    """Frames, default classes and degrees in the source; includes and six digits would be lost on the way."""
    load = '<geom size=".02" pos="0 .05 .05" mass=".04" contype="0" conaffinity="0"/>'
    changes = {"load": load, "left": ".00123456789", "damping": 'damping=".25"', "roll": "27.123456789", "gear": "2.5",
               "friction": 'friction=".8"'}  # fmt: skip
    source = tmp_path / "pony.xml"
    source.write_text(QUADRUPED.format(**changes))
    model = mujoco.MjModel.from_xml_path(str(source))
    group = euda.symmetries(model)
    out = tmp_path / "mended" / "pony.xml"
    out.parent.mkdir()
    in_place = mend.mended(model, group, [1])
    mend.write_mended(mend.model_text(source), in_place, out, source.parent)
    written = mujoco.MjModel.from_xml_path(str(out))
    for name in ("body_pos", "body_mass", "body_ipos", "body_inertia", "jnt_range", "dof_damping", "geom_friction",
                 "geom_size", "actuator_gear", "body_invweight0"):  # fmt: skip
        np.testing.assert_allclose(getattr(written, name), getattr(in_place, name), rtol=1e-10, atol=1e-12)
    mirror = euda.symmetries(written).elements[1]
    assert error(model, group.elements[1], states=2) > 1e-3
    assert error(written, mirror, states=3) < 1e-9


def test_a_star_is_averaged_over_its_whole_group():
    model = star(4, payload=0.03)
    group = euda.symmetries(model)
    mended = mend.mended(model, group, range(group.order))
    assert mended.body_subtreemass[1] == pytest.approx(model.body_subtreemass[1])
    for element in euda.symmetries(mended).elements[1:]:
        assert error(mended, element, states=2) < 1e-9


@pytest.mark.parametrize("legs", [3, 5])
def test_a_star_that_was_written_with_six_digits_is_mended_to_exactness(tmp_path, legs):
    """Places, axes and the orientations of capsules are rounded, and the centre of the group with them."""
    rounded = mujoco.MjModel.from_xml_string(mend.last_text(star(legs), tmp_path))
    group = euda.symmetries(rounded)
    assert 1e-9 < max(defect.error for defect in defects(rounded, group)) < 1e-4
    whole = mend.mended(rounded, group, range(group.order))
    after = euda.symmetries(whole)
    assert after.order == 2 * legs
    assert defects(whole, after) == ()
    assert max(error(whole, element, states=2) for element in after) < 1e-9


def test_boxes_that_are_turned_differently_are_averaged():
    def turned(left: float, right: float) -> mujoco.MjModel:
        load = f'<geom name="a" type="box" size=".05 .02 .01" pos=".1 .12 .1" euler="{left} 0 30" mass="0"/>'
        load += f'<geom name="b" type="box" size=".02 .05 .01" pos=".1 -.12 .1" euler="{-right} 0 60" mass="0"/>'
        return pony(load=load)

    assert found(turned(0, 0)) == {}
    skew = turned(0, 1)
    assert {what for _, what in found(skew)} == {"shape"}
    group = euda.symmetries(skew)
    whole = mend.mended(skew, group, [1])
    assert found(whole) == {}
    moved = np.abs(whole.geom_quat - skew.geom_quat).max(axis=1)
    assert set(np.flatnonzero(moved > 1e-6)) == {skew.geom("a").id, skew.geom("b").id}


def test_a_subgroup_is_what_some_elements_generate():
    group = euda.symmetries(star(6))
    turns = [i for i, e in enumerate(group) if e.name == "turn by 60° about z"]
    assert len(mend.generated(group, turns)) == 6
    assert mend.generated(group, []) == [0]


def test_tendons_at_rest_in_another_pose_are_found_and_mended():
    """The rest length of a spatial tendon is that of the springs' own pose, here 20 degrees off the mirror's."""
    model = tendon_arm()
    model.tendon_lengthspring[0] += 0.01
    group = euda.symmetries(model)
    front = next(i for i, e in enumerate(group) if e.name == "mirror front-back")
    assert {d.what for d in defects(model, group)} == {"rest length"}
    assert error(model, group.elements[front], states=2) > 1e-4
    assert error(mend.mended(model, group, [front]), group.elements[front], states=2) < 1e-9


def test_what_cannot_be_mended_is_said(tmp_path):
    model = drone()
    group = euda.symmetries(model)
    model.body_ipos[1] += [0, 0.001, 0]
    with pytest.raises(ModelError, match="cannot be mended in place"):
        mend.mended(model, group, [1])
    with pytest.raises(ModelError, match="cannot be read for mending"):
        mend.model_text(tmp_path / "missing.xml")
    with pytest.raises(EudaError, match="cannot write"):
        mend.write_mended("<mujoco/>", model, tmp_path / "no" / "such" / "folder.xml")


def test_text_of_another_model_is_refused():
    with pytest.raises(ModelError, match="other parts"):
        exact_xml("<mujoco><worldbody/></mujoco>", star(3), mujoco.MjModel.from_xml_string)
