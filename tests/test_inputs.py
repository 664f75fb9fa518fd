"""What the networks see: frames and normalisers that commute with the symmetries they are for."""

from __future__ import annotations

import dataclasses
import functools
import math

import jax
import numpy as np
import pytest

import euda
from euda.agents.agent import Agent
from euda.agents.ddpg import DDPG
from euda.agents.frames import own_frame, root_frame
from euda.agents.inputs import Inputs
from euda.agents.network_settings import MLPConfig
from euda.agents.networks import mlp_networks
from euda.agents.normaliser import Normaliser, Statistics, full, symmetric
from euda.agents.settings import DDPGConfig
from euda.body.entry_map import EntryMap
from euda.body.layout import Field, Kind, Layout
from euda.errors import EudaError
from euda.replay.augmentation import unchanged
from euda.replay.buffer import Transition
from euda.tasks import table

YAWS = (0.3, math.pi / 2, 2.0, -2.9)
CLIP = 10.0


@functools.cache
def experience(task: str, features: str = "limb", steps: int = 60) -> tuple[Layout, np.ndarray]:
    """A layout and observations of random actions, from several starts."""
    env, rng = euda.make(task, features), np.random.default_rng(0)
    rows = []
    for seed in range(3):
        rows.append(env.reset(seed=seed)[0])
        rows += [env.step(rng.uniform(-1, 1, env.action_space.shape))[0] for _ in range(steps // 3)]
    return env.layout, np.array(rows)


def learnt(normaliser: Normaliser, observations: np.ndarray) -> Statistics:
    moments = normaliser.begin()
    for observation in observations:
        moments = normaliser.observe(moments, observation)
    return normaliser.statistics(moments)


def target_of(task: str) -> str | None:
    target = table.find(task).target
    return None if target is None else target.limb


# -- the normaliser --------------------------------------------------------------------------------------


@pytest.mark.parametrize("features", ["limb", "limb-paper", "joint"])
@pytest.mark.parametrize("task", table.TASKS)
def test_normalising_commutes_with_every_yaw(task: str, features: str) -> None:
    layout, observations = experience(task, features)
    normaliser = symmetric(layout, CLIP, is_turned=False)
    statistics = learnt(normaliser, observations)
    seen = functools.partial(normaliser, np, statistics)
    x = observations[::7].astype(np.float64)
    assert np.abs(seen(x) - x).max() > 0.1  # it does something
    for yaw in YAWS:
        np.testing.assert_allclose(seen(layout.rotate(x, yaw)), layout.rotate(seen(x), yaw), atol=1e-4)


def test_entries_have_the_statistics_that_their_kind_allows() -> None:
    layout = Layout(
        (
            Field("velocity", Kind.VECTOR, 2),
            Field("height", Kind.SCALAR, 2),
            Field("aim", Kind.PLANAR),
            Field("facing", Kind.HEADING),
            Field("pose", Kind.QUATERNION),
        )
    )
    draw = np.random.default_rng(0)
    x = (draw.normal(size=(4000, layout.dim)) * draw.uniform(0.5, 3, layout.dim) + draw.normal(size=layout.dim)).astype(
        np.float32
    )
    x[:, 7] = 2.5  # a scalar that never changes
    normaliser = symmetric(layout, CLIP, is_turned=False)
    shift, scale = learnt(normaliser, x)
    mean, deviation = x.mean(axis=0), x.std(axis=0)
    own, pairs, left = [2, 5, 6], [(0, 1), (3, 4), (8, 9)], range(10, 15)
    np.testing.assert_allclose(shift[own], mean[own], atol=1e-4)
    np.testing.assert_allclose(scale[own], 1 / deviation[own], rtol=1e-3)
    for i, j in pairs:
        together = np.sqrt((np.square(x[:, i]) + np.square(x[:, j])).mean() / 2)
        np.testing.assert_allclose(scale[[i, j]], 1 / together, rtol=1e-3)
        assert not shift[[i, j]].any()
    assert not shift[left].any()
    assert (scale[left] == 1).all()
    seen = normaliser(np, Statistics(shift, scale), 100 * x)
    assert np.abs(seen[:, [2, 5, 6, 7]]).max() <= CLIP < np.abs(seen[:, 0]).max()
    np.testing.assert_allclose(normaliser(np, Statistics(shift, scale), x)[:, 7], 0, atol=1e-3)


def test_nothing_is_changed_before_the_first_observation() -> None:
    layout, observations = experience("hopper3d_hop")
    normaliser = symmetric(layout, CLIP, is_turned=False)
    first = normaliser.statistics(normaliser.begin())
    np.testing.assert_allclose(normaliser(np, first, observations), np.clip(observations, -CLIP, CLIP), atol=0)


def mirror_of_five() -> np.ndarray:
    """Entries 0 and 1 change place and sign, 2 flips, 3 stays, 4 stays."""
    matrix = np.eye(5)
    matrix[:3, :3] = [[0, -1, 0], [-1, 0, 0], [0, 0, -1]]
    return matrix


def test_entries_that_a_symmetry_exchanges_share_statistics() -> None:
    layout = Layout((Field("angles", Kind.SCALAR, 5),))
    normaliser = symmetric(layout, CLIP, is_turned=True, maps=[EntryMap.of_matrix(mirror_of_five(), np.zeros(5))])
    assert normaliser.signs == (1, -1, 0, 1, 1)
    assert normaliser.classes == (0, 0, 1, 2, 3)
    x = np.random.default_rng(0).normal(size=(500, 5)) * [1, 2, 3, 4, 5] + [1, 2, 3, 4, 5]
    shift, scale = statistics = learnt(normaliser, x)
    flipped = x @ mirror_of_five().T
    both = np.concatenate([x, flipped])  # as if every observation had been seen mirrored too
    np.testing.assert_allclose(shift, both.mean(axis=0), atol=1e-4)
    np.testing.assert_allclose(scale, 1 / both.std(axis=0), rtol=1e-4)
    seen = normaliser(np, statistics, x)
    np.testing.assert_allclose(normaliser(np, statistics, flipped), seen @ mirror_of_five().T, atol=1e-4)


def test_entries_that_a_symmetry_mixes_have_one_scale_and_no_mean() -> None:
    layout = Layout((Field("columns", Kind.SCALAR, 3), Field("height", Kind.SCALAR)))
    third, matrix = 2 * math.pi / 3, np.eye(4)
    matrix[:2, :2] = [[math.cos(third), -math.sin(third)], [math.sin(third), math.cos(third)]]
    normaliser = symmetric(layout, CLIP, is_turned=True, maps=[EntryMap.of_matrix(matrix, np.zeros(4))])
    assert (normaliser.classes, normaliser.signs) == ((0, 0, 1, 2), (0, 0, 1, 1))
    with pytest.raises(EudaError, match="have 4 entries, but a symmetry maps 3"):
        symmetric(layout, CLIP, is_turned=True, maps=[EntryMap.of_matrix(np.eye(3), np.zeros(3))])


# -- the robot's own frame ---------------------------------------------------------------------------------


@pytest.mark.parametrize("frame", [own_frame, root_frame])
@pytest.mark.parametrize("task", table.TASKS)
def test_what_the_networks_see_in_a_frame_of_the_robot_is_the_same_for_every_yaw(task: str, frame) -> None:
    layout, observations = experience(task)
    normaliser = full(layout, CLIP)
    inputs = Inputs(frame(layout, target_of(task)), normaliser)
    moments = inputs.begin()
    for observation in observations:
        moments = inputs.observe(moments, observation)
    statistics = inputs.statistics(moments)
    x = observations[::7].astype(np.float64)
    seen = inputs(statistics, x)
    for yaw in YAWS:
        np.testing.assert_allclose(inputs(statistics, layout.rotate(x, yaw)), seen, atol=2e-3)
    in_jax = jax.jit(lambda x: inputs(statistics, x))(x.astype(np.float32))
    np.testing.assert_allclose(in_jax, seen, atol=2e-2)


def test_the_heading_is_that_of_the_root() -> None:
    """A yaw of the upright root is its heading; a pitch or roll of less than half a turn changes nothing."""
    layout = Layout((Field("root_rotation", Kind.VECTOR, 3), Field("direction", Kind.VECTOR)))
    frame, draw = own_frame(layout), np.random.default_rng(0)
    for yaw, tilt in draw.uniform(-3, 3, (20, 2)):
        axis = draw.uniform(-math.pi, math.pi)
        turn, lean = rotation(yaw, [0, 0, 1]), rotation(tilt, [math.cos(axis), math.sin(axis), 0])
        columns = (turn @ lean).T.ravel()
        x = np.concatenate([columns, turn @ [1.0, 0, 0]])
        assert frame.heading(np, x) == pytest.approx(yaw, abs=1e-9)
        np.testing.assert_allclose(frame(np, x), np.concatenate([lean.T.ravel(), [1, 0, 0]]), atol=1e-9)
    upside_down = np.concatenate([np.diag([1.0, -1, -1]).ravel(), [1, 0, 0]])
    assert np.array_equal(frame(np, upside_down), upside_down)


def test_the_frame_of_the_root_holds_gravity_and_every_vector_as_the_root_sees_it() -> None:
    layout = Layout(
        (Field("height", Kind.SCALAR), Field("root_rotation", Kind.VECTOR, 3), Field("way", Kind.VECTOR, 2))
    )
    frame, draw = root_frame(layout), np.random.default_rng(0)
    for tilt in (0.4, 2.0, math.pi):  # the last one is upside down, where no heading is defined
        root = rotation(draw.uniform(-3, 3), [0, 0, 1]) @ rotation(tilt, [0.6, 0.8, 0])
        ways = draw.standard_normal((2, 3))
        x = np.concatenate([[0.7], root.T.ravel(), ways.ravel()])
        seen = np.concatenate([[0.7], root.T @ [0, 0, 1], np.zeros(6), (root.T @ ways[0]), (root.T @ ways[1])])
        np.testing.assert_allclose(frame(np, x), seen, atol=1e-12)
        np.testing.assert_allclose(frame(np, layout.rotate(x, 1.3)), seen, atol=1e-12)


def test_without_a_rotation_of_the_root_its_frame_is_that_of_the_arm() -> None:
    layout = euda.make("reacher_hard").layout
    assert root_frame(layout, "finger") == own_frame(layout, "finger")


def rotation(angle: float, axis: list[float]) -> np.ndarray:
    """Rodrigues' formula."""
    x, y, z = axis
    k = np.array([[0, -z, y], [z, 0, -x], [-y, x, 0]])
    return np.eye(3) + math.sin(angle) * k + (1 - math.cos(angle)) * k @ k


def test_the_frame_of_an_arm_points_from_its_base_to_the_target() -> None:
    layout, observations = experience("reacher_hard")
    seen = own_frame(layout, "finger")(np, observations)
    place = seen[:, layout.slice("position")].reshape(-1, 3, 3)[:, 2] + seen[:, layout.slice("to_target")]
    np.testing.assert_allclose(place[:, 1], 0, atol=1e-6)
    assert (place[:, 0] > 0.04).all()


@pytest.mark.parametrize(("task", "features"), [("reacher_hard", "joint"), ("humanoid_run", "joint")])
def test_observations_without_a_frame_are_refused_in_one_sentence(task: str, features: str) -> None:
    with pytest.raises(EudaError, match=r"no frame of its own.*use features limb") as caught:
        own_frame(euda.make(task, features).layout, target_of(task))
    assert "\n" not in str(caught.value)


# -- as part of an agent -----------------------------------------------------------------------------------


def batch_of(layout: Layout, observations: np.ndarray, seed: int, actions: int = 2, size: int = 16) -> Transition:
    draw = np.random.default_rng(seed)
    first, last = draw.integers(0, len(observations), (2, size))
    reward, discount = draw.random((2, size)).astype(np.float32)
    action = draw.uniform(-1, 1, (size, actions)).astype(np.float32)
    return Transition(observations[first], action, reward, discount, observations[last])


def taught(agent: Agent, layout: Layout, observations: np.ndarray, start: int, stop: int) -> Agent:
    """Observations and updates in turns."""
    for i in range(start, stop):
        agent = agent.observe(observations[i])
        agent, _ = agent.update(batch_of(layout, observations, i), step=i)
    return agent


SMALL = mlp_networks(MLPConfig(hidden_size=16))


@pytest.fixture(scope="module")
def canonical() -> tuple[Layout, np.ndarray, DDPG, Inputs]:
    layout, observations = experience("hopper3d_hop")
    rule = DDPG.make(layout.dim, 2, DDPGConfig(learning_rate=1e-2), SMALL)
    return layout, observations, rule, Inputs(own_frame(layout), full(layout, CLIP))


def test_an_agent_with_inputs_goes_on_in_the_same_bytes_and_its_policy_is_kept_with_its_statistics(canonical) -> None:
    layout, observations, rule, inputs = canonical
    whole = taught(Agent.initialise(rule, 7, unchanged, inputs), layout, observations, 0, 8)
    half = taught(Agent.initialise(rule, 7, unchanged, inputs), layout, observations, 0, 3).observe(observations[50])
    again = Agent.from_state_dict(rule, half.state_dict(), unchanged, inputs)
    assert half.state_dict()["moments/total"].dtype == np.float64
    expected, found = (taught(agent, layout, observations, 3, 8).state_dict() for agent in (half, again))
    assert all(np.array_equal(found[name], expected[name]) for name in expected)
    assert not np.array_equal(found["moments/total"], whole.state_dict()["moments/total"])
    kept = Agent.from_policy_arrays(rule, whole.policy_arrays(), inputs)
    assert np.array_equal(kept.act(observations), whole.act(observations))
    plain = Agent.from_policy_arrays(rule, whole.policy_arrays())
    assert np.abs(plain.act(observations) - whole.act(observations)).max() > 0.05


def test_statistics_change_with_updates_and_not_with_acting(canonical) -> None:
    layout, observations, rule, inputs = canonical
    agent = taught(Agent.initialise(rule, 0, unchanged, inputs), layout, observations, 0, 4)
    action = agent.act(observations[0])
    for observation in observations[20:30]:
        agent.act(observation)
        agent.explore(observation, np.random.default_rng(0), 5000)
        agent = agent.observe(observation)
    assert np.array_equal(agent.act(observations[0]), action)
    later, _ = agent.update(batch_of(layout, observations, 5), step=5)  # an update that leaves the actor alone
    later, _ = later.update(batch_of(layout, observations, 5), step=5)
    assert later.updates == 6
    np.testing.assert_allclose(later.state["statistics"].shift, learnt_shift(inputs, observations, agent), atol=1e-6)


def learnt_shift(inputs: Inputs, observations: np.ndarray, agent: Agent) -> np.ndarray:
    """The mean of the observations that the agent was shown, in the own frame."""
    assert inputs.frame is not None
    shown = np.concatenate([observations[:4], observations[20:30]])
    assert agent.moments is not None
    assert agent.moments.number == len(shown)
    return inputs.frame(np, shown).mean(axis=0)


@pytest.mark.parametrize("task", table.TASKS)
def test_a_policy_in_the_own_frame_acts_the_same_in_a_turned_world(task: str) -> None:
    layout, observations = experience(task)
    inputs = Inputs(own_frame(layout, target_of(task)), full(layout, CLIP))
    agent = Agent.initialise(DDPG.make(layout.dim, 2, networks=SMALL), 0, unchanged, inputs)
    for observation in observations:
        agent = agent.observe(observation)
    state = {**agent.state, "statistics": inputs.statistics(agent.moments)}
    agent = dataclasses.replace(agent, state=state)
    actions = agent.act(observations)
    assert np.ptp(actions, axis=0).min() > 0.05
    for yaw in YAWS:
        turned = layout.rotate(observations.astype(np.float64), yaw).astype(np.float32)
        np.testing.assert_allclose(agent.act(turned), actions, atol=5e-3)


def test_what_learning_sees_is_what_acting_sees(canonical) -> None:
    """The critic's loss is that of a plain agent on observations that went through the inputs by hand."""
    layout, observations, rule, inputs = canonical
    agent = Agent.initialise(rule, 0, unchanged, inputs)
    for observation in observations:
        agent = agent.observe(observation)
    batch, statistics = batch_of(layout, observations, 0), inputs.statistics(agent.moments)
    seen = batch._replace(
        observation=inputs(statistics, batch.observation), next_observation=inputs(statistics, batch.next_observation)
    )
    _, metrics = agent.update(batch, step=0)
    _, expected = Agent.initialise(rule, 0).update(seen, step=0)
    _, other = Agent.initialise(rule, 0).update(batch, step=0)
    assert float(metrics["critic_loss"]) == pytest.approx(float(expected["critic_loss"]), rel=1e-4)
    assert float(other["critic_loss"]) != pytest.approx(float(expected["critic_loss"]), rel=1e-2)
