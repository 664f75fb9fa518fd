"""Where a symmetry is near: exact parts of it alone, or only transitions whose image the simulator confirms."""

import dataclasses
import math

import jax
import mujoco
import numpy as np
import pytest
from robots import crawler, write
from simulated import assert_simulated, rollout

import euda
from euda.errors import EudaError
from euda.replay.augmentation import make_augmentation
from euda.replay.buffer import Marked, ReplayBuffer, Transition
from euda.replay.settings import CLEAN, NEAR, SAFE, AugmentationConfig
from euda.runs import run_folder, symmetry_choice
from euda.runs.evaluation import drawn_elements, elements_in_use, make_environment
from euda.runs.marking import Marker
from euda.runs.resolution import resolve
from euda.runs.robot_config import of_file
from euda.runs.robot_flags import RobotFlags
from euda.symmetry.judging.states import visited_states
from euda.symmetry.judging.transformation import ElementImage, Posture, WorldYaw
from euda.symmetry.judging.twin import Trial, Twin
from euda.tasks.payload import PLACE

LEFT_RIGHT = ("mirror left-right",)


@pytest.fixture(autouse=True)
def own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


# -- marks in the replay -----------------------------------------------------------------------------------


def filled(marks, lengths, **options):
    """A buffer of episodes of these lengths, whose actions carry the marks in turn; observations are numbered."""
    buffer, number, left = ReplayBuffer(1, 1, 100, **options), 0, iter(marks)
    for length in lengths:
        buffer.start([number])
        for _ in range(length):
            number += 1
            buffer.step([0.0], 1.0, 1.0, [number], next(left))
        number += 1
    return buffer


@pytest.mark.parametrize("n_step", [1, 3])
def test_a_window_has_a_mark_only_if_all_its_actions_have(n_step):
    rng, lengths = np.random.default_rng(0), [7, 1, 12]
    marks = rng.random(20) < 0.7
    buffer = filled(marks, lengths, n_step=n_step, marked=True)
    sample = buffer.sample(rng, 600)
    assert isinstance(sample, Marked)
    starts = sample.transition.observation[:, 0].astype(int)
    first, expected = 0, {}
    for episode, length in enumerate(lengths):
        own = marks[first : first + length]
        expected |= {first + episode + t: bool(own[t : t + n_step].all()) for t in range(length)}
        first += length
    assert set(starts) == set(expected)
    assert sample.mark.tolist() == [expected[start] for start in starts]


def test_marks_are_a_file_of_their_own_and_survive(tmp_path):
    marks = np.arange(20) % 3 == 0
    plain = filled(marks, [20], folder=tmp_path / "plain")
    marked = filled(marks, [20], folder=tmp_path / "marked", marked=True)
    assert isinstance(plain.sample(np.random.default_rng(0)), Transition)
    files = {name: {path.name for path in (tmp_path / name).iterdir()} for name in ("plain", "marked")}
    assert files["marked"] - files["plain"] == {"mark.bin"}
    for name in files["plain"]:
        assert (tmp_path / "plain" / name).read_bytes() == (tmp_path / "marked" / name).read_bytes()
    again = ReplayBuffer(1, 1, 100, folder=tmp_path / "marked", marked=True, state=marked.state())
    before, after = (buffer.sample(np.random.default_rng(1)) for buffer in (marked, again))
    assert np.array_equal(before.mark, after.mark)
    (tmp_path / "marked" / "mark.bin").unlink()
    with pytest.raises(EudaError, match=r"mark\.bin' is gone"):
        ReplayBuffer(1, 1, 100, folder=tmp_path / "marked", marked=True, state=marked.state())


@pytest.mark.parametrize("share", [0.0, 0.5, 1.0])
def test_only_marked_transitions_are_augmented(share):
    env = euda.make("walker3d_run")
    rng, size = np.random.default_rng(0), 64
    shapes = ((size, env.layout.dim), (size, env.model.nu), (size,), (size,), (size, env.layout.dim))
    batch = Transition(*(rng.normal(size=shape).astype(np.float32) for shape in shapes))
    mark = rng.random(size) < 0.5
    config, elements = AugmentationConfig("rotate", share), euda.symmetries(env.model).elements[1:]
    key = jax.random.key(0)
    free = make_augmentation(config, env.layout, "all", elements)(key, batch)
    bound = jax.jit(make_augmentation(config, env.layout, "all", elements, marked=True))(key, Marked(batch, mark))
    assert type(bound) is Transition
    for old, changed, new in zip(batch, free, bound, strict=True):
        np.testing.assert_allclose(np.asarray(new)[mark], np.asarray(changed)[mark], atol=1e-5)
        assert np.array_equal(np.asarray(new)[~mark], old[~mark])


# -- what the simulator says of a transition ---------------------------------------------------------------


def test_rules():
    clean, measured = NEAR["clean"].chance, NEAR["measured"].chance
    assert clean is not None
    assert measured is not None
    assert [clean(error) for error in (0.0, CLEAN / 2, 2 * CLEAN, math.inf)] == [1, 1, 0, 0]
    for error in (0.0, SAFE, 0.1, 0.3, math.inf):
        assert measured(error) == (1 if error <= SAFE else pytest.approx(SAFE / error))


def errors_of(env, transformations, count=12):
    """Of the transitions of a rollout."""
    twin, found = Twin(euda.make(env.task, cone=env.cone if env.cone == "elliptic" else "default")), []
    twin.env.model.body_mass[:], twin.env.model.body_ipos[:] = env.model.body_mass, env.model.body_ipos
    rng = np.random.default_rng(0)
    env.reset(seed=1)
    for _ in range(count):
        state, action = env.get_state(), rng.uniform(-1, 1, env.model.nu)
        reward = sum(env.step(action)[1] for _ in range(2))
        found.append(twin.follow(Trial(state, action, transformations), Posture.of(env.data), reward, steps=2))
    return np.array(found)


def test_an_exact_mirror_is_confirmed_and_a_wrong_one_is_not():
    env = euda.make("walker3d_run")
    mirror = euda.symmetries(env.model).elements[1]
    assert errors_of(env, [ElementImage(mirror)]).max() < 1e-9
    stay = dataclasses.replace(mirror.actuators, image=np.arange(env.model.nu))
    wrong = dataclasses.replace(mirror, actuators=stay)  # motors of the left leg stay on the left
    assert errors_of(env, [ElementImage(mirror), ElementImage(wrong)]).min() > 0.1


def test_with_a_pyramidal_cone_yaws_are_wrong_only_where_something_touches():
    """The plain mirror and half turns are exact all the same."""
    env = euda.make("quadruped_run")  # falls for some steps, then lands
    mirror = euda.symmetries(env.model).elements[1]
    assert errors_of(env, [ElementImage(mirror, turn_direction=False)], 24).max() < 1e-6
    assert errors_of(env, [WorldYaw(math.pi)], 24).max() < 1e-6
    errors = errors_of(env, [WorldYaw(0.4)], 24)
    assert errors.max() > 1e-2
    assert errors.min() < 1e-9


# -- a load ------------------------------------------------------------------------------------------------


def test_a_load_is_a_point_mass_beside_the_root():
    plain, loaded = euda.make("quadruped_run"), euda.make("quadruped_run", payload=0.1)
    root, total = plain.morphology.root.body, plain.model.body_subtreemass[0]
    mass = 0.1 * total
    assert loaded.model.body_subtreemass[0] == pytest.approx(1.1 * total)
    centres = [env.model.body_mass[root] * env.model.body_ipos[root] for env in (plain, loaded)]
    np.testing.assert_allclose(centres[1] - centres[0], mass * np.array(PLACE), atol=1e-9)
    moments = [about_origin(env.model, root) for env in (plain, loaded)]
    place = np.array(PLACE)
    np.testing.assert_allclose(moments[1] - moments[0], mass * (place @ place * np.eye(3) - np.outer(place, place)),
                               atol=1e-9)  # fmt: skip
    assert loaded.layout == plain.layout
    for payload, task, words in ((0.1, "reacher_hard", "moves freely"), (-0.1, "quadruped_run", "between 0 and 1")):
        with pytest.raises(EudaError, match=f"payload .*{words}"):
            euda.make(task, payload=payload)


def about_origin(model, body):
    """The inertia [3, 3] of a body about the origin of its frame."""
    axes, place = np.empty(9), model.body_ipos[body]
    mujoco.mju_quat2Mat(axes, model.body_iquat[body])
    matrix = axes.reshape(3, 3)
    own = matrix @ np.diag(model.body_inertia[body]) @ matrix.T
    return own + model.body_mass[body] * (place @ place * np.eye(3) - np.outer(place, place))


@pytest.mark.parametrize(("payload", "low", "high"), [(0.0, 0.0, 1e-6), (0.03, 0.01, 0.06), (0.3, 0.1, 0.5)])
def test_the_error_of_a_mirrored_transition_is_about_the_share_of_the_load(payload, low, high):
    config = resolve("quadruped_run", overrides={"group": "mirror", "near": "measured", "payload": payload})
    config = dataclasses.replace(config, elements=LEFT_RIGHT)
    env = make_environment(config)
    mirror = ElementImage(elements_in_use(config, env)[0], turn_direction=False)
    twin, rng, found = Twin(make_environment(config)), np.random.default_rng(0), []
    env.reset(seed=0)
    for _ in range(30):
        state, action = env.get_state(), rng.uniform(-1, 1, env.model.nu)
        _, reward, *_ = env.step(action)
        found.append(twin.follow(Trial(state, action, [mirror]), Posture.of(env.data), reward))
    assert low <= np.median(found) <= high


def test_on_the_path_of_rollouts_the_median_error_is_the_share_of_the_load_and_less_in_posed_states():
    """What docs/symmetry.md says of the states over which the median is taken."""
    share, count = 0.1, 72
    env, rng = euda.make("quadruped_run", payload=share), np.random.default_rng(0)
    mirror = ElementImage(euda.symmetries(env.model).elements[1], turn_direction=False)
    states = visited_states(env, count, rng)
    trials = [Trial(state, rng.uniform(-1, 1, env.model.nu), [mirror]) for state in states]
    errors = Twin(env).compare(trials).energy
    rolled, posed = np.median(errors[: 2 * count // 3]), np.median(errors[2 * count // 3 :])
    assert rolled == pytest.approx(share, rel=0.2)
    assert posed < 0.9 * rolled


def test_marks_follow_the_error():
    """Of a load of 30 % about a tenth may be mirrored, of one of 3 % nearly all; none is clean."""
    shares = {}
    for near, payload in (("clean", 0.0), ("clean", 0.3), ("measured", 0.03), ("measured", 0.3)):
        config = resolve("quadruped_run", overrides={"group": "mirror", "near": near, "payload": payload})
        config = dataclasses.replace(config, elements=LEFT_RIGHT)
        env = make_environment(config)
        marker, rng, marks = Marker(config, elements_in_use(config, env)), np.random.default_rng(0), []
        env.reset(seed=0)
        for step in range(60):
            state, action = env.get_state(), rng.uniform(-1, 1, env.model.nu)
            _, reward, *_ = env.step(action)
            marks.append(marker(env, state, action, reward, step))
        shares[near, payload] = np.mean(marks)
    assert shares["clean", 0.0] == 1.0
    assert shares["clean", 0.3] == 0.0
    assert shares["measured", 0.03] > 0.8
    assert 0.03 < shares["measured", 0.3] < 0.3


# -- runs --------------------------------------------------------------------------------------------------

SMALL = {
    "group": "mirror", "near": "measured", "payload": 0.2, "episode_steps": 20, "mlp": {"hidden_size": 8},
    "evaluation": {"every": 60, "episodes": 1}, "replay": {"seed_steps": 20, "batch_size": 8}, "checkpoint_every": 20,
    "sac": {"actor_every": 1, "target_every": 1},  # one update to compile instead of two
}  # fmt: skip


def content(folder):
    found = run_folder.load(folder)
    newest, _ = found.newest_checkpoint()
    assert newest is not None
    arrays = {name: array.tobytes() for name, array in newest.arrays.items()}
    return arrays, {path.name: path.read_bytes() for path in found.replay.iterdir()}, found.policy.read_bytes()


def test_a_marked_run_that_goes_on_ends_in_the_same_bytes(tmp_path):
    for steps in (40, 60):
        euda.train("hopper3d_hop", "rotate", out=tmp_path / "twice", steps=steps, **SMALL)
    euda.train("hopper3d_hop", "rotate", out=tmp_path / "once", steps=60, **SMALL)
    once, twice = content(tmp_path / "once"), content(tmp_path / "twice")
    assert once[0] == twice[0]
    assert once[2] == twice[2]
    used = {name: once[1][name][:50] for name in once[1]}
    assert used == {name: twice[1][name][:50] for name in twice[1]}
    assert 0 < sum(once[1]["mark.bin"][:60]) < 60


def test_exact_takes_a_few_turns_and_the_plain_mirror_under_pyramids(tmp_path):
    robot = of_file(
        str(write(tmp_path, crawler("pyramidal"))), RobotFlags(reward="run", direction=(1, 0)), "limb", None
    )
    config = resolve(robot.task, robot=robot, overrides={"group": "all", "near": "exact"})
    said = []
    chosen = symmetry_choice.settled(config, said.append)
    assert (chosen.elements, chosen.yaws) == (("mirror front-back",), 2)
    assert chosen.identity == config.identity
    for what in ("yaws of", "yaws by 90° of"):
        assert any(sentence.startswith(f"left out: {what} robot are near, not exact") for sentence in said)
    env = make_environment(chosen)
    group, elements = drawn_elements(chosen, env)
    assert group == "mirror"
    assert len(elements) == 3
    states, (s, a, r, following) = rollout(env, 24)
    augment = make_augmentation(AugmentationConfig("rotate", 1.0), env.layout, group, elements)
    after = jax.jit(augment)(jax.random.key(0), Transition(s, a, r, np.ones_like(r), following))
    changed = [np.asarray(after[i]) for i in (0, 1, 2, 4)]
    identity = euda.symmetries(env.model).elements[0]
    kinds = assert_simulated(env, [identity, *elements], states, [s, a, r, following], changed, yaws=False)
    assert set(kinds) == {False, True}


def test_exact_leaves_out_what_is_near():
    config = resolve("hopper3d_hop", overrides={"group": "all", "near": "exact", "payload": 0.1})
    said = []
    chosen = symmetry_choice.settled(config, said.append)
    assert (chosen.elements, chosen.yaws) == ((), 0)
    assert any("yaws alone are used" in sentence and "mirror left-right is" in sentence for sentence in said)
    alone = resolve("hopper3d_hop", overrides={"group": "mirror", "near": "exact", "payload": 0.1})
    with pytest.raises(EudaError, match=r"to learn from: mirror left-right is .*another --near"):
        symmetry_choice.settled(alone, said.append)


def test_near_is_part_of_a_run_and_refused_where_it_means_nothing(tmp_path):
    plain = resolve("quadruped_run", overrides={"group": "mirror"})
    assert resolve("quadruped_run", overrides={"group": "mirror", "near": "use", "payload": 0.0}).identity == (
        plain.identity
    )
    other = resolve("quadruped_run", overrides={"group": "mirror", "near": "clean", "payload": 0.1})
    assert other.identity != plain.identity
    assert other.label == "swift rotate mirror clean payload 0.1 1"
    with pytest.raises(EudaError, match=r"unknown near 'clear'.*valid are use, exact, clean, measured"):
        resolve("quadruped_run", overrides={"near": "clear"})
    with pytest.raises(EudaError, match="near 'clean' changes nothing"):
        resolve("quadruped_run", "limb", overrides={"near": "clean"})
    with pytest.raises(EudaError, match="tries every transition in the simulator"):
        euda.train("Ant-v5", "rotate", robot={"direction": (1, 0)}, near="clean", out=tmp_path / "ant")
    robot = str(write(tmp_path, crawler()))
    with pytest.raises(EudaError, match=r"payload 0\.1 is for tasks"):
        euda.train(robot, "rotate", robot={"reward": "stand"}, payload=0.1, out=tmp_path / "crawler")
    assert not (tmp_path / "ant").exists()
