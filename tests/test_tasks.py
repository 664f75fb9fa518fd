"""Every task through the same promises; dm_control's tasks value by value."""

import json
import os
from pathlib import Path

import mujoco
import numpy as np
import pytest
from dm_control_suite import load_original  # imports dm_control without a screen

from euda import make
from euda.body.features import FEATURES
from euda.body.robot import Scene
from euda.errors import EudaError
from euda.tasks import bodies3d, table
from euda.tasks.task_sizes import summary

SEVEN = [name for name, row in table.TASKS.items() if row.original]
THREE = [name for name, row in table.TASKS.items() if not row.original]
LAYOUTS = Path(__file__).parent / "layouts"


def held_bang_bang(rng, step, size):
    if step % 10 == 0:
        held_bang_bang.action = rng.choice([-1.0, 1.0], size)
    return held_bang_bang.action


POLICIES = {
    "zero": lambda rng, step, size: np.zeros(size),
    "uniform": lambda rng, step, size: rng.uniform(-1, 1, size),
    "bang-bang": lambda rng, step, size: rng.choice([-1.0, 1.0], size),
    "held bang-bang": held_bang_bang,
}


@pytest.mark.slow
@pytest.mark.parametrize("name", SEVEN)
def test_same_as_dm_control_over_whole_episodes(name):
    """Same seed and actions: the same states, rewards and observations, bit for bit, in an episode and the next one.

    Only an angle of heading differs, by whole turns: dm_control counts them.
    """
    row = table.find(name)
    ours, theirs = make(name, "joint"), load_original(*row.original, seed=7)
    rng = np.random.default_rng(0)
    spec = theirs.action_spec()
    middle, half = (spec.maximum + spec.minimum) / 2, (spec.maximum - spec.minimum) / 2
    for seed, steps in ((7, 1000), (None, 100)):
        observation, _ = ours.reset(seed=seed)
        timestep = theirs.reset()
        for _ in range(steps):
            flat = np.concatenate([np.ravel(value) for value in timestep.observation.values()])
            np.testing.assert_array_equal(observation, ours.layout.canonical(flat).astype(np.float32))
            np.testing.assert_array_equal(ours.data.qpos, theirs.physics.data.qpos)
            np.testing.assert_array_equal(ours.data.qvel, theirs.physics.data.qvel)
            np.testing.assert_array_equal(ours.data.act, theirs.physics.data.act)
            action = rng.uniform(-1, 1, ours.action_space.shape)
            timestep = theirs.step(middle + half * action)
            observation, reward, terminated, truncated, _ = ours.step(action)
            assert reward == timestep.reward
            assert truncated == timestep.last()
            assert not terminated
        assert timestep.discount == 1.0
        assert truncated == (steps == 1000)


@pytest.mark.parametrize("name", SEVEN)
def test_rewards_are_dm_controls_wherever_each_term_acts(name):
    """Value by value on numbers drawn around every bound and margin: heights, uprightness, speeds, controls, places.

    Both read the same arrays of MuJoCo's data, so drawing these reaches what random actions never do: standing
    humanoids, running hoppers. Along another direction, dm_control's x velocity is the speed along it.
    """
    row = table.find(name)
    theirs = load_original(*row.original, seed=0)
    theirs.reset()
    model, data = theirs.physics.model.ptr, theirs.physics.data.ptr
    ours, rng, seen = table.reward(name, theirs), np.random.default_rng(0), []
    for _ in range(2000):
        data.xpos[:], data.xipos[:] = rng.uniform(0, 1.7, (2, model.nbody, 3))
        data.xmat[:, 8] = rng.uniform(-1, 1, model.nbody)
        data.sensordata[:] = rng.uniform(-4, 12, model.nsensordata) * rng.choice([0.05, 1])
        data.ctrl[:] = rng.uniform(-1.5, 1.5, model.nu)
        data.geom_xpos[:] = rng.uniform(-0.02, 0.02, (model.ngeom, 3))
        expected = theirs.task.get_reward(theirs.physics)
        assert ours(np, Scene(model, data, np.array([1.0, 0.0, 0.0]))) == expected
        seen.append(float(expected))
        if row.travels:
            direction, velocity = rng.normal(size=3), data.sensor("torso_subtreelinvel").data
            turned = ours(np, Scene(model, data, direction))
            velocity[0] = velocity @ direction
            assert turned == theirs.task.get_reward(theirs.physics)
    assert min(seen) < 0.01
    assert max(seen) > 0.6
    assert len(set(seen)) > 150 or set(seen) == {0.0, 1.0}  # the reacher's is all or nothing


@pytest.mark.parametrize("features", FEATURES)
@pytest.mark.parametrize("name", table.TASKS)
def test_layout_is_the_stored_one(name, features):
    """Any change to a state space is a visible diff. To accept one: EUDA_WRITE_LAYOUTS=1 make test."""
    printed = str(make(name, features).layout) + "\n"
    path = LAYOUTS / f"{name}.{features}.txt"
    if os.environ.get("EUDA_WRITE_LAYOUTS"):
        path.write_text(printed)
    assert printed == path.read_text()


@pytest.mark.parametrize("name", table.TASKS)
def test_promises_of_every_task(name):
    env, again = make(name), make(name, seed=3)
    first, _ = env.reset(seed=3)
    same, _ = again.reset()
    np.testing.assert_array_equal(first, same)  # make(seed) seeds the first reset
    rng = np.random.default_rng(1)
    previous = first
    for _ in range(50):
        action = rng.uniform(-1, 1, env.action_space.shape).astype(np.float32)
        observation, reward, terminated, truncated, _ = env.step(action)
        other, other_reward, *_ = again.step(action)
        np.testing.assert_array_equal(observation, other)
        assert reward == other_reward
        assert 0 <= reward <= 1
        assert (terminated, truncated) == (False, False)
        assert env.observation_space.contains(observation)
        assert np.isfinite(observation).all()
        assert not np.shares_memory(observation, previous)
        assert not np.array_equal(observation, previous)
        previous = observation
    second, _ = env.reset()
    assert not np.array_equal(first, second)
    np.testing.assert_array_equal(env.reset(seed=3)[0], first)


@pytest.mark.parametrize("cone", ["default", "elliptic"])
@pytest.mark.parametrize("name", table.TASKS)
def test_cones(name, cone):
    """The seven keep dm_control's pyramids by default, the three default to elliptic; both can be had everywhere."""
    pyramidal = cone == "default"
    assert make(name, cone=cone).cone == ("pyramidal" if pyramidal else "elliptic")
    assert make(name).cone == ("elliptic" if name in THREE else "pyramidal")


@pytest.mark.parametrize("policy", POLICIES)
@pytest.mark.parametrize("name", THREE)
def test_3d_variants_survive_rough_actions(name, policy):
    """No NaN and no MuJoCo warning over whole episodes; velocities stay physical."""
    env = make(name)
    for seed in range(2):
        env.reset(seed=seed)
        rng, total, fastest = np.random.default_rng(seed), 0.0, 0.0
        for step in range(1000):
            observation, reward, *_ = env.step(POLICIES[policy](rng, step, env.action_space.shape))
            total += float(reward)
            fastest = max(fastest, float(np.abs(env.data.qvel).max()))
        assert np.isfinite(observation).all()
        assert not env.data.warning.number.any()
        assert fastest < 100
        assert 0 <= total < 100  # none of these policies runs


@pytest.mark.parametrize("name", THREE)
def test_3d_variants_start_sane(name):
    env = make(name)
    for seed in range(30):
        env.reset(seed=seed)
        rotation = env.data.xmat[env.morphology.root.body].reshape(3, 3)
        assert abs(rotation[1, 1]) > 0.99  # the robot's side axis stays level: no roll, no yaw
        assert env.data.xpos[env.morphology.root.body, 2] > 0.3
        assert np.abs(env.data.qpos[:2]).max() < 0.3
        hinges = slice(7, None)
        low, high = env.model.jnt_range[1:].T
        assert (env.data.qpos[hinges] > low - 0.1).all()
        assert (env.data.qpos[hinges] < high + 0.1).all()
        deepest = min((float(d) for d in env.data.contact.dist), default=0.0)
        assert deepest > -0.12
    if name == "cheetah3d_run":  # settles on its feet in the plane before it leaves it
        assert rotation[2, 2] > 0.98


@pytest.mark.parametrize("domain", bodies3d.VARIANTS)
def test_3d_variants_are_dm_controls_bodies(domain):
    """Masses, inertias, geometry and pitch hinges of the planar model, exactly; a free root without springs."""
    planar = load_original(domain, "hop" if domain == "hopper" else "run", seed=0).physics.model.ptr
    solid = bodies3d.build(domain)
    assert solid.jnt_type[0] == int(mujoco.mjtJoint.mjJNT_FREE)
    assert not np.any(solid.jnt_stiffness[0])
    assert not np.any(solid.dof_armature[:6])
    assert not np.any(solid.dof_damping[:6])
    for array in ("body_mass", "body_inertia", "body_ipos", "body_pos", "geom_size", "geom_friction", "geom_contype"):
        a, b = getattr(planar, array), getattr(solid, array)
        keep = slice(None) if array.startswith("body") else slice(1, None)  # the floor is drawn larger
        np.testing.assert_allclose(b[keep], a[keep], rtol=1e-12, atol=1e-15)
    for joint in range(3, planar.njnt):
        name = planar.joint(joint).name
        mine = solid.joint(name).id
        for array in ("jnt_range", "jnt_axis", "jnt_pos", "jnt_stiffness", "jnt_solimp", "jnt_solref"):
            np.testing.assert_array_equal(getattr(solid, array)[mine], getattr(planar, array)[joint])
        for array in ("dof_armature", "dof_damping"):
            of = solid.jnt_dofadr[mine], planar.jnt_dofadr[joint]
            np.testing.assert_array_equal(getattr(solid, array)[of[0]], getattr(planar, array)[of[1]])
        assert solid.actuator(name).gear[0] == planar.actuator(name).gear[0]
        order = [solid.joint(j).name for j in range(mine - 2, mine + 1)]
        assert order == [f"{name}_z", f"{name}_x", name]


def test_unknown_names_offer_the_nearest():
    with pytest.raises(EudaError, match="unknown task 'walker3d_rum': did you mean 'walker3d_run'"):
        make("walker3d_rum")
    with pytest.raises(EudaError, match="unknown features 'limbs': did you mean 'limb'"):
        make("reacher_hard", "limbs")
    with pytest.raises(EudaError, match="unknown cone 'round': valid are default, elliptic"):
        make("reacher_hard", cone="round")
    with pytest.raises(EudaError, match="a seed is a whole number"):
        make("reacher_hard", seed=-1)


def test_summaries_are_json():
    row = json.loads(json.dumps(summary("humanoid_run").__dict__))
    assert row["features"] == {"limb": 182, "limb-paper": 174, "joint": 67}
