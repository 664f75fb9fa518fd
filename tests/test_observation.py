"""What is observed: MuJoCo's own numbers, enough of them, and in other people's environments too."""

import collections

import gymnasium
import jax
import jax.numpy as jnp
import mujoco
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from robots import ARM, CART, crawler, write

from euda import Kind, LimbObservation, ModelEnv, make, sufficiency
from euda.body.features import FEATURES, FeatureRow, Senses, observer
from euda.body.readings import height
from euda.body.robot import Scene
from euda.body.sensors import read as read_sensors
from euda.body.turn import Turn, put_back, turned_model_arrays
from euda.errors import EudaError
from euda.tasks import table

SHORT_OF_SUFFICIENT = {  # how many directions of the state `limb-paper` cannot show (PHYSICS.md D4, order z-x-y)
    "cheetah_run": 5, "hopper_hop": 3, "walker_run": 0, "reacher_hard": 0, "quadruped_run": 1, "humanoid_run": 1,
    "humanoid_stand": 1, "cheetah3d_run": 13, "hopper3d_hop": 8, "walker3d_run": 6,
}  # fmt: skip


def random_state(env, seed=0, steps=20):
    env.reset(seed=seed)
    rng = np.random.default_rng(seed)
    for _ in range(steps):
        env.step(rng.uniform(-1, 1, env.action_space.shape))


@pytest.mark.parametrize(
    ("features", "kind"), [("limb", mujoco.mjtObj.mjOBJ_BODY), ("limb-paper", mujoco.mjtObj.mjOBJ_XBODY)]
)
@pytest.mark.parametrize("name", table.TASKS)
def test_limbs_are_read_as_mujoco_computes_them(name, features, kind):
    """Positions and velocities against mj_objectVelocity, body by body: at the CoM, or at the frame for the paper."""
    env = make(name, features)
    random_state(env)
    seen = env.observer.observe_exactly()
    limbs = [limb for limb in env.morphology.limbs if features == "limb-paper" or limb.body != 0]
    points = env.data.xipos if features == "limb" else env.data.xpos
    root = env.morphology.root
    origin = points[root.body] if root.body else env.model.body_pos[env.morphology.mount]
    twist = np.empty(6)
    for element, limb in enumerate(limbs):
        mujoco.mj_objectVelocity(env.model, env.data, kind, limb.body, twist, 0)
        position = seen[env.layout.slice("position")].reshape(-1, 3)[element]
        velocity = seen[env.layout.slice("velocity")].reshape(-1, 3)[element]
        np.testing.assert_allclose(velocity, twist[3:], atol=1e-12)
        np.testing.assert_allclose(position, points[limb.body] - origin if limb.body else 0, atol=1e-15)
        assert env.layout.field("position").of[element] == limb.name
    if "root_rotation" in env.layout:
        mujoco.mj_objectVelocity(env.model, env.data, kind, root.body, twist, 0)
        np.testing.assert_allclose(seen[env.layout.slice("root_angular_velocity")], twist[:3], atol=1e-12)
        columns = seen[env.layout.slice("root_rotation")].reshape(3, 3)
        np.testing.assert_array_equal(columns, env.data.xmat[root.body].reshape(3, 3).T)


def test_velocities_are_derivatives_of_positions():
    env = make("humanoid_run")
    random_state(env)
    state, where = env.get_state(), env.layout.slice("position")
    ends = []
    for sign in (1, -1):
        env.set_state(state)
        mujoco.mj_integratePos(env.model, env.data.qpos, env.data.qvel, sign * 1e-6)
        mujoco.mj_kinematics(env.model, env.data)
        mujoco.mj_comPos(env.model, env.data)
        ends.append(env.observer.observe_exactly()[where])
    env.set_state(state)
    velocity = env.observer.observe_exactly()[env.layout.slice("velocity")].reshape(-1, 3)
    relative = (velocity - velocity[0]).ravel()
    np.testing.assert_allclose((ends[0] - ends[1]) / 2e-6, relative, atol=1e-6)


@pytest.mark.parametrize("name", table.TASKS)
def test_limb_features_are_sufficient_and_the_papers_are_not(name):
    full = sufficiency(make(name))
    assert full.is_sufficient
    assert full.rank == full.expected
    assert full.smallest > 1e-3
    paper = sufficiency(make(name, "limb-paper"))
    assert paper.expected - paper.rank == SHORT_OF_SUFFICIENT[name]


@pytest.mark.parametrize("name", table.TASKS)
def test_turned_rows_are_what_the_turned_robot_observes(name):
    """Along an episode of held actions: a turn of 0 changes nothing, and any other gives the twin's very numbers.

    The twin comes to its heading by one or two turns more, after which the simulator's angles and the signs of its
    quaternions are others. What is observed must not be.
    """
    env, twin = make(name, "joint"), make(name, "joint")
    observers = {features: [table.observer(name, e.robot, features) for e in (env, twin)] for features in FEATURES}
    env.reset(seed=0)
    twin.reset(seed=0)
    rng, mounting = np.random.default_rng(0), turned_model_arrays(twin.model)
    for step in range(400):
        if step % 100 == 0:
            action = rng.choice([-1.0, 1.0], env.action_space.shape)
        env.step(action)
        for mine, _ in observers.values():
            x = mine.observe()
            assert np.array_equal(mine.layout.rotate(x, 0.0), x)
        if step % 8 == 0:
            state, yaw = env.get_state(), rng.uniform(-np.pi, np.pi)
            for features, (mine, theirs) in observers.items():
                more = 2 * np.pi * rng.integers(-2, 3)
                turn, has_heading = Turn(yaw + more), any(field.kind is Kind.HEADING for field in mine.layout)
                put_back(twin.model, mounting)
                twin.set_state(state)
                if has_heading:  # the angle of a first joint that is vertical: the robot turns itself
                    twin.data.qpos[0] += turn.yaw
                    turn.target(twin.robot)
                else:
                    turn.model(twin.robot)
                turn.state(twin.robot, twin.data.qpos, twin.data.qvel)
                turn.direction(twin.robot)
                mujoco.mj_step1(twin.model, twin.data)
                expected = mine.layout.rotate(mine.observe_exactly(), yaw)
                np.testing.assert_allclose(theirs.observe_exactly(), expected, atol=1e-9, err_msg=features)


Data = collections.namedtuple(
    "Data", "qpos qvel act ctrl xpos xipos xmat cvel subtree_com xaxis geom_xpos site_xpos sensordata"
)
Model = collections.namedtuple("Model", "body_pos body_quat geom_size")


def stand_in(env):
    """The current scene as MJX would hold it: arrays in a tree, rotation matrices three by three."""
    data = Data(*(np.copy(getattr(env.data, name)) for name in Data._fields))
    model = Model(*(np.copy(getattr(env.model, name)) for name in Model._fields))
    return env.robot.scene._replace(model=model, data=data._replace(xmat=data.xmat.reshape(-1, 3, 3)))


@pytest.mark.parametrize("name", table.TASKS)
def test_readings_and_rewards_are_the_same_functions_in_jax(name):
    """Compiled, over a batch of scenes, with nothing but arrays to read from; float32, so to 1e-5 of the largest."""
    env = make(name)
    observers = {features: table.observer(name, env.robot, features) for features in FEATURES}
    reward, scenes, expected = table.reward(name, env.dm_control), [], []
    for seed in range(3):
        random_state(env, seed)
        scenes.append(stand_in(env))
        expected.append([*(observer.observe_exactly() for observer in observers.values()), env.reward()])
    batch = scenes[0]._replace(data=Data(*(np.stack(arrays) for arrays in zip(*(s.data for s in scenes), strict=True))))
    alike = Scene(model=None, data=0, direction=None, target=None)

    def read(scene):
        return [*(observer.read(jnp, scene) for observer in observers.values()), reward(jnp, scene)]

    found = jax.jit(jax.vmap(read, in_axes=(alike,)))(batch)
    for layout, ours, theirs in zip(
        [*(o.layout for o in observers.values()), None], found, zip(*expected, strict=True), strict=True
    ):
        fields = {"reward": slice(None)} if layout is None else layout.slices
        ours, theirs = np.asarray(ours).reshape(3, -1), np.array(theirs).reshape(3, -1)
        for field, where in fields.items():
            scale = max(1.0, np.abs(theirs[:, where]).max())
            np.testing.assert_allclose(ours[:, where], theirs[:, where], rtol=0, atol=1e-5 * scale, err_msg=field)


def test_readings_of_other_robots_in_jax(tmp_path):
    """Ball joints, wheels, loose objects, sensors, and a target that is a fixed place."""
    robots = [
        ModelEnv(write(tmp_path, CART, "cart.xml")),
        ModelEnv(write(tmp_path, ARM, "arm.xml"), target=(0.1, 0.2, 0.3), limb="tip"),
        ModelEnv(write(tmp_path, crawler()), direction=(1, 2, 0)),
    ]
    senses = {"robot.xml": Senses(tuple(read_sensors(name, name) for name in ("gyro", "linvel", "touch")))}
    for env in robots:
        random_state(env)
        for features in FEATURES:
            seen = observer(env.robot, features, senses.get(env.task))
            found = jax.jit(lambda scene, seen=seen: seen.read(jnp, scene))(stand_in(env))
            expected = seen.observe_exactly()
            np.testing.assert_allclose(found, expected, rtol=0, atol=1e-5 * max(1.0, np.abs(expected).max()))


def test_observations_hold_no_view_of_the_simulation():
    """A reading keeps nothing: what was observed stays when the simulation goes on."""
    env = make("quadruped_run")
    env.reset(seed=0)
    seen = env.observer.observe_exactly()
    before = seen.copy()
    env.step(np.ones(12))
    np.testing.assert_array_equal(seen, before)


def test_features_of_the_reachers_target_and_constants():
    env = make("reacher_hard")
    random_state(env)
    assert "root_rotation" not in env.layout
    to_target = env.observer.observe_exactly()[env.layout.slice("to_target")]
    geoms = [env.data.geom(name).xpos for name in ("target", "finger")]
    np.testing.assert_array_equal(to_target, geoms[0] - geoms[1])
    paper = make("reacher_hard", "limb-paper")
    np.testing.assert_array_equal(paper.reset(seed=0)[0][:12], [1, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0, 0])


def test_observe_after_the_user_changed_the_state():
    env = make("cheetah3d_run")
    env.reset(seed=0)
    before = env.unwrapped.observe()
    env.unwrapped.data.qpos[2] += 1.0
    mujoco.mj_forward(env.unwrapped.model, env.unwrapped.data)
    after = env.unwrapped.observe()
    height = env.unwrapped.layout.slice("height")
    np.testing.assert_allclose(after[height] - before[height], 1.0, rtol=1e-6)


# -- anybody's robot -------------------------------------------------------------------------------------


@pytest.mark.parametrize("xml", [crawler(), CART, ARM], ids=["crawler", "cart with wheels", "arm and ball"])
def test_limb_features_are_sufficient_for_other_robots(tmp_path, xml):
    env = ModelEnv(write(tmp_path, xml))
    found = sufficiency(env)
    assert found.is_sufficient


def test_wheels_and_ball_joints_are_seen(tmp_path):
    env = ModelEnv(write(tmp_path, CART))
    assert {name.split(".")[0] for name in env.layout.field("rotation").of} == {"left_wheel", "right_wheel", "mast"}
    assert env.layout.field("angular_velocity").of == ("left_wheel", "right_wheel", "mast")


TURNTABLE = """
<mujoco><worldbody><body name="upper"><joint name="turn" axis="0 0 1"/>
    <geom type="capsule" fromto="0 0 0 .2 0 .1" size=".02"/>
    <body name="fore" pos=".2 0 .1"><joint name="elbow" axis="0 1 0"/>
      <geom type="capsule" fromto="0 0 0 .2 0 0" size=".02"/></body></body></worldbody>
  <actuator><motor joint="turn"/><motor joint="elbow"/></actuator></mujoco>"""


@pytest.mark.parametrize(
    ("xml", "sensors", "kind", "again"),
    [
        (TURNTABLE, (), Kind.HEADING, lambda qpos: np.add(qpos, [2 * np.pi, 0])),
        (crawler(), ("pose",), Kind.QUATERNION, lambda qpos: qpos * [1, 1, 1, -1, -1, -1, -1, 1, 1, 1]),
    ],
    ids=["turntable", "crawler"],
)
def test_a_pose_is_one_observation(tmp_path, xml, sensors, kind, again):
    """An arm that went round once, and a free root whose quaternion has the other sign, look as before."""
    pose = '<sensor><framequat name="pose" objtype="body" objname="trunk"/>'
    env = ModelEnv(write(tmp_path, xml.replace("<sensor>", pose)), features="joint", sensors=sensors)
    assert [field.kind for field in env.layout].count(kind) == 1 + len(sensors)
    env.reset(seed=0)
    before = env.observer.observe_exactly()
    env.data.qpos[:] = again(env.data.qpos)
    mujoco.mj_forward(env.model, env.data)
    np.testing.assert_allclose(env.observer.observe_exactly(), before, atol=1e-9)


def test_sensors_know_how_they_turn(tmp_path):
    path = write(tmp_path, crawler())
    env = ModelEnv(path, sensors=("gyro", "linvel", "touch"))
    kinds = {name: (env.layout.field(name).kind, env.layout.field(name).frame) for name in ("gyro", "linvel", "touch")}
    assert kinds == {"gyro": (Kind.SCALAR, "body"), "linvel": (Kind.VECTOR, "world"), "touch": (Kind.SCALAR, "world")}
    with pytest.raises(EudaError, match="'compass' of type mjSENS_MAGNETOMETER has no known behaviour"):
        ModelEnv(path, sensors=("compass",))
    with pytest.raises(EudaError, match="unknown sensor 'gyr': did you mean 'gyro'"):
        ModelEnv(path, sensors=("gyr",))
    clipped = write(tmp_path, crawler().replace('name="linvel"', 'name="linvel" cutoff="2"'), "clipped.xml")
    with pytest.raises(EudaError, match="remove its cutoff"):
        ModelEnv(clipped, sensors=("linvel",))
    referred = crawler().replace('name="linvel"', 'name="linvel" reftype="body" refname="foot"')
    env = ModelEnv(write(tmp_path, referred, "referred.xml"), sensors=("linvel",))
    assert (env.layout.field("linvel").kind, env.layout.field("linvel").count) == (Kind.SCALAR, 3)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"direction": (1, 0, 0, 0)}, "a direction is two or three finite numbers"),
        ({"direction": (0, 0, 0)}, "must not be zero"),
        ({"direction": (np.nan, 0, 0)}, "three finite numbers"),
        ({"direction": "north"}, "a direction is two or three finite numbers"),
        ({"target": (1, 2, 3, 4)}, "a target is three finite numbers"),
        ({"target": "gaol"}, "unknown site, geom or body 'gaol'.*did you mean 'goal'"),
        ({"target": "goal", "limb": "tipp"}, "did you mean 'tip'"),
    ],
)
def test_bad_directions_and_targets(tmp_path, options, says):
    with pytest.raises(EudaError, match=says):
        ModelEnv(write(tmp_path, ARM), **options)


GYM = ["Ant-v5", "Humanoid-v5", "HalfCheetah-v5", "Hopper-v5", "Walker2d-v5"]


@pytest.mark.parametrize("name", GYM)
def test_limb_observation_leaves_the_environment_alone(name):
    """Same rewards, states and ends as without the wrapper, and features of the state as it is now."""
    plain, wrapped = gymnasium.make(name), LimbObservation(gymnasium.make(name), direction=(1, 0, 0))
    plain.reset(seed=0)
    observation, _ = wrapped.reset(seed=0)
    rng = np.random.default_rng(0)
    fresh = mujoco.MjData(wrapped.unwrapped.model)
    where = wrapped.layout.slice("position")
    for _ in range(60):
        action = rng.uniform(-1, 1, plain.action_space.shape)
        action *= plain.action_space.high
        _, reward, terminated, *_ = plain.step(action)
        observation, other, ended, *_ = wrapped.step(action)
        assert (reward, terminated) == (other, ended)
        np.testing.assert_array_equal(plain.unwrapped.data.qpos, wrapped.unwrapped.data.qpos)
        fresh.qpos[:], fresh.qvel[:] = wrapped.unwrapped.data.qpos, wrapped.unwrapped.data.qvel
        mujoco.mj_forward(wrapped.unwrapped.model, fresh)
        bodies = [limb.body for limb in wrapped.morphology.limbs]
        expected = fresh.xipos[bodies] - fresh.xipos[bodies[0]]
        np.testing.assert_allclose(observation[where].reshape(-1, 3), expected, atol=1e-6)
        assert wrapped.observation_space.contains(observation)
    np.testing.assert_array_equal(observation[wrapped.layout.slice("direction")], [1, 0, 0])


def test_limb_observation_reads_sensors_and_targets(tmp_path):
    env = gymnasium.make("euda/quadruped_run-v0")
    wrapped = LimbObservation(
        env, sensors=("imu_gyro", "force_toe_front_left"), target=(1.0, 2.0, 0.0), limb="toe_front_left"
    )
    wrapped.reset(seed=0)
    for _ in range(30):
        observation, *_ = wrapped.step(np.zeros(12, np.float32))
    data = env.unwrapped.data
    for name in ("imu_gyro", "force_toe_front_left"):
        np.testing.assert_allclose(
            observation[wrapped.layout.slice(name)], data.sensor(name).data, rtol=1e-5, atol=1e-6
        )
    expected = np.array([1.0, 2.0, 0.0]) - data.body("toe_front_left").xpos
    np.testing.assert_allclose(observation[wrapped.layout.slice("to_target")], expected, rtol=1e-5)


def test_limb_observation_refuses_other_simulators():
    with pytest.raises(EudaError, match="CartPoleEnv is not a MuJoCo environment"):
        LimbObservation(gymnasium.make("CartPole-v1"))


@pytest.mark.filterwarnings("ignore:.*(Box observation space|different from the unwrapped version)")
def test_limb_observation_passes_gymnasiums_checker():
    check_env(LimbObservation(gymnasium.make("Hopper-v5").unwrapped, direction=(1, 0, 0)), skip_render_check=True)


def test_driven_free_joints_and_nearly_centred_wheels(tmp_path):
    body = '<body name="drone" pos="0 0 1"><joint name="fly" type="free"/><geom size=".1"/></body>'
    drone = f"<mujoco><worldbody>{body}</worldbody>"
    env = ModelEnv(write(tmp_path, drone + '<actuator><motor joint="fly" gear="0 0 1 0 0 0"/></actuator></mujoco>'))
    assert env.morphology.base == "free"
    assert sufficiency(env).is_sufficient
    off_centre = CART.replace('size=".1 .03" euler', 'pos=".0001 0 0" size=".1 .03" euler')
    found = sufficiency(ModelEnv(write(tmp_path, off_centre)))
    assert found.is_sufficient
    assert found.smallest > 1e-3


def test_a_limb_without_a_target_and_a_static_reference(tmp_path):
    with pytest.raises(EudaError, match="no target that it should reach"):
        ModelEnv(write(tmp_path, ARM), limb="tip")
    fixed = crawler().replace('name="linvel"', 'name="linvel" reftype="geom" refname="floor"')
    with pytest.raises(EudaError, match="fixed to the world"):
        ModelEnv(write(tmp_path, fixed), sensors=("linvel",))


def test_a_feature_set_from_outside_is_one_row(monkeypatch, tmp_path):
    """For tasks and for robots of one's own alike, with sensors where they are asked for."""
    row = FeatureRow(
        lambda robot, senses: [height("how_high")(robot), *(make(robot) for make in senses.sensory)], "own"
    )
    monkeypatch.setitem(FEATURES, "height", row)
    assert [field.name for field in make("hopper_hop", "height").layout] == ["how_high", "touch"]
    env = ModelEnv(write(tmp_path, crawler()), features="height", sensors=("gyro",))
    env.reset(seed=0)
    assert env.layout.dim == 4
    assert env.observe()[0] == np.float32(env.root_height)
    with pytest.raises(EudaError, match="unknown features 'heihgt': did you mean 'height'"):
        make("hopper_hop", "heihgt")
