"""What every element reads, and how it answers to a mirror: held against the mirror image of the robot."""

import gymnasium
import mujoco
import numpy as np
import pytest
from mirror_image import mirror_image, mirrored_by_its_sources
from robots import ARM, CART, crawler, write

from euda import Field, Kind, Layout, LimbObservation, ModelEnv, certify, make
from euda.body.features import FEATURES, Senses, observer
from euda.body.field import Rule, Source
from euda.body.sensors import read as read_sensors
from euda.errors import LayoutError
from euda.tasks import table

SENSORS = {  # of every type that has a rule, by name; f with a moving reference frame
    "gyro": '<gyro name="gyro" site="sole"/>',
    "accelerometer": '<accelerometer name="accelerometer" site="sole"/>',
    "velocimeter": '<velocimeter name="velocimeter" site="sole"/>',
    "force": '<force name="force" site="sole"/>',
    "torque": '<torque name="torque" site="sole"/>',
    "touch": '<touch name="touch" site="sole"/>',
    "place": '<framepos name="place" objtype="site" objname="sole"/>',
    "pose": '<framequat name="pose" objtype="site" objname="sole"/>',
    "x": '<framexaxis name="x" objtype="site" objname="sole"/>',
    "y": '<frameyaxis name="y" objtype="site" objname="sole"/>',
    "z": '<framezaxis name="z" objtype="site" objname="sole"/>',
    "linvel": '<framelinvel name="linvel" objtype="site" objname="sole"/>',
    "angvel": '<frameangvel name="angvel" objtype="site" objname="sole"/>',
    "linacc": '<framelinacc name="linacc" objtype="site" objname="sole"/>',
    "angacc": '<frameangacc name="angacc" objtype="site" objname="sole"/>',
    "fplace": '<framepos name="fplace" objtype="site" objname="sole" reftype="xbody" refname="left"/>',
    "fpose": '<framequat name="fpose" objtype="site" objname="sole" reftype="xbody" refname="left"/>',
    "fy": '<frameyaxis name="fy" objtype="site" objname="sole" reftype="xbody" refname="left"/>',
    "flinvel": '<framelinvel name="flinvel" objtype="site" objname="sole" reftype="xbody" refname="left"/>',
    "fangvel": '<frameangvel name="fangvel" objtype="site" objname="sole" reftype="xbody" refname="left"/>',
    "com": '<subtreecom name="com" body="trunk"/>',
    "comvel": '<subtreelinvel name="comvel" body="trunk"/>',
    "angmom": '<subtreeangmom name="angmom" body="trunk"/>',
    "angle": '<jointpos name="angle" joint="left_hip"/>',
    "rate": '<jointvel name="rate" joint="left_hip"/>',
    "actuator": '<actuatorfrc name="actuator" actuator="m"/>',
    "limit": '<jointlimitfrc name="limit" joint="left_hip"/>',
    "ballquat": '<ballquat name="ballquat" joint="neck"/>',
    "ballvel": '<ballangvel name="ballvel" joint="neck"/>',
    "energy": '<e_kinetic name="energy"/>',
    "distance": '<distance name="distance" geom1="left_leg" geom2="foot" cutoff="5"/>',
    "normal": '<normal name="normal" geom1="left_leg" geom2="foot" cutoff="5"/>',
    "points": '<fromto name="points" geom1="left_leg" geom2="foot" cutoff="5"/>',
}


def equipped() -> str:
    """The crawler with a head on a ball joint, and with a sensor of every type."""
    head = '<body name="head" pos=".2 .03 .1"><joint name="neck" type="ball"/><geom size=".05" pos="0 .02 .06"/></body>'
    xml = crawler().replace('<body name="left"', head + '<body name="left"')
    sensors = "<sensor>" + "".join(SENSORS.values()) + "</sensor></mujoco>"
    return xml[: xml.index("<sensor>")].replace('<motor joint="left_hip"', '<motor name="m" joint="left_hip"') + sensors


def assert_mirrors(robot, features, senses=None, name=None):
    """Observe a robot and its mirror image; every field's sources say what became of it."""
    image = mirror_image(robot)
    both = [
        observer(each, features, senses) if name is None else table.observer(name, each, features)
        for each in (robot, image)
    ]
    before, after = (each.observe_exactly() for each in both)
    for field in both[0].layout:
        where = both[0].layout.slices[field.name]
        assert len(field.sources) == field.count, field.name
        expected = mirrored_by_its_sources(field, before[where])
        scale = max(1.0, np.abs(expected).max())
        np.testing.assert_allclose(after[where], expected, rtol=0, atol=1e-9 * scale, err_msg=field.name)


def moving(env, seed=0, steps=30):
    """Somewhere in an episode, where nothing stands exactly level."""
    env.reset(seed=seed)
    rng = np.random.default_rng(seed)
    for _ in range(steps):
        env.step(rng.uniform(-1, 1, env.action_space.shape))
    env.data.qvel[:] += rng.normal(size=env.model.nv)
    return env.robot


@pytest.mark.parametrize("features", FEATURES)
@pytest.mark.parametrize("name", table.TASKS)
def test_every_element_of_every_task_answers_to_a_mirror_as_it_says(name, features):
    assert_mirrors(moving(make(name, cone="elliptic")), features, name=name)


@pytest.mark.parametrize("features", FEATURES)
@pytest.mark.parametrize(
    ("xml", "options"),
    [(CART, {}), (ARM, {"target": "goal", "limb": "tip"}), (ARM, {"target": (0.3, 0.1, 0.2)}), (crawler(), {})],
    ids=["cart with wheels", "arm and ball", "arm with a place to reach", "crawler"],
)
def test_elements_of_other_robots(tmp_path, xml, options, features):
    assert_mirrors(moving(ModelEnv(write(tmp_path, xml), **options)), features)


def test_elements_of_every_type_of_sensor(tmp_path):
    robot = moving(ModelEnv(write(tmp_path, equipped()), direction=(1, 0.3, 0)))
    assert_mirrors(robot, "limb", Senses(tuple(read_sensors(name, name) for name in SENSORS)))
    kinds = {mujoco.mjtSensor(kind) for kind in robot.model.sensor_type}
    assert len(kinds) == len(SENSORS) - 5  # five have the type of another, with a reference frame


def test_every_type_of_sensor_turns_as_its_kind_says(tmp_path):
    path = write(tmp_path, equipped())
    found = certify(lambda: ModelEnv(path, sensors=tuple(SENSORS)), states=9, yaws=2)
    assert max(found.fields[name].max for name in SENSORS) < 1e-9
    kinds = {name: found.fields[name].kind for name in ("normal", "points", "fplace", "pose")}
    assert kinds == {"normal": "vector", "points": "vector", "fplace": "scalar", "pose": "quaternion"}


def test_sources_name_mujocos_objects():
    env = make("quadruped_run")
    layout, model = env.layout, env.model
    of = {name: layout.field(name).sources for name in layout.slices}
    assert [model.body(source.id).name for source in of["position"]] == list(layout.field("position").of)
    assert [model.joint(source.id).name for source in of["axis"]] == list(layout.field("axis").of)
    assert [(s.object, s.id, s.component) for s in of["force"][:4]] == [
        ("sensor", model.sensor("force_toe_front_left").id, 0),
        ("sensor", model.sensor("force_toe_front_left").id, 1),
        ("sensor", model.sensor("force_toe_front_left").id, 2),
        ("sensor", model.sensor("force_toe_front_right").id, 0),
    ]
    assert all(s.is_nonlinear for s in of["force"])
    assert not any(s.is_nonlinear for s in of["gyro"])
    assert [s.id for s in of["activation"]] == list(range(12))
    assert {(s.object, s.is_signed) for s in of["joint_angles"]} == {("joint", True)}
    assert [model.joint(s.id).type[0] for s in of["joint_angles"]] == [int(mujoco.mjtJoint.mjJNT_HINGE)] * 16
    extremity = make("humanoid_run").layout.field("extremities").sources[0]
    torso = make("humanoid_run").model.body("torso").id
    assert (extremity.rule, extremity.frame) == (Rule.OWN_POLAR, ("xbody", torso))


def test_centres_of_mass_and_frames_are_told_apart():
    """A mirror whose plane misses a body's frame moves the frame's image, not the centre of mass's."""
    objects = {features: make("walker3d_run", features).layout.field("position").sources[0].object for features in
               ("limb", "limb-paper")}  # fmt: skip
    assert objects == {"limb": "body", "limb-paper": "xbody"}


def test_sources_are_no_part_of_what_a_layout_is():
    layout = make("hopper3d_hop").layout
    bare = Layout.from_json(layout.to_json())
    assert not any(field.sources for field in bare)
    assert (bare, hash(bare), str(bare), repr(bare)) == (layout, hash(layout), str(layout), repr(layout))
    assert layout.replace("direction", kind=Kind.SCALAR, count=3).field("direction").sources == ()
    assert layout.replace("direction", unit="m").field("height").sources
    with pytest.raises(LayoutError, match="2 elements but 1 sources"):
        Field("v", Kind.VECTOR, 2, sources=(Source("body", 1, Rule.POLAR),))


def test_gymnasiums_environments_know_their_sources():
    layout = LimbObservation(gymnasium.make("Ant-v5"), direction=(1, 0, 0)).layout
    assert all(len(field.sources) == field.count for field in layout)
