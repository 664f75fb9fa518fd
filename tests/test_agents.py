"""Agents: losses against independent numbers, probe problems with known answers, determinism, storing, acting."""

from __future__ import annotations

import dataclasses
import functools
import itertools
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from euda.agents.agent import Agent, Algorithm, Program
from euda.agents.ddpg import DDPG
from euda.agents.networks import MLP, Networks, Params, mlp_networks, orthogonal, ravel, size, unravel
from euda.agents.optimiser import Adam, adam
from euda.agents.sac import SAC
from euda.config import DDPGConfig, LearningConfig, MLPConfig, ReplayConfig, SACConfig
from euda.errors import EudaError
from euda.replay.buffer import Transition

S, A, B = 3, 2, 5


@dataclasses.dataclass(frozen=True)
class Linear:
    """A network of one's own: linear in its inputs, without a NumPy form, with a slower last input."""

    inputs: tuple[int, ...]
    outputs: int
    slow: float | None = None

    @property
    def shapes(self) -> dict[str, tuple[int, ...]]:
        return {"w": (sum(self.inputs), self.outputs), "b": (self.outputs,)}

    def initialise(self, key: jax.Array) -> Params:
        return {"w": 0.5 * jax.random.normal(key, self.shapes["w"]), "b": jnp.full(self.outputs, 0.1)}

    def apply(self, params: Params, *inputs: Any) -> Any:
        return jnp.concatenate(inputs, axis=-1) @ params["w"] + params["b"]

    def apply_numpy(self, params: Params, observations: Any) -> None:
        return None

    def rates(self) -> np.ndarray | None:
        return None if self.slow is None else np.full(size(self), self.slow, np.float32)


LINEAR = Networks(
    lambda features, outputs: Linear((features,), outputs), lambda features, actions: Linear((features, actions), 1)
)
SMALL = mlp_networks(MLPConfig(hidden_size=32))
FAST: dict[str, Any] = {"learning_rate": 3e-3, "target_rate": 0.1}


def batch_of(seed: int = 0, count: int = B) -> Transition:
    draw = np.random.default_rng(seed)
    f = np.float32
    return Transition(
        draw.normal(size=(count, S)).astype(f),
        draw.uniform(-1, 1, (count, A)).astype(f),
        draw.normal(size=count).astype(f),
        draw.uniform(0.5, 1, count).astype(f),
        draw.normal(size=(count, S)).astype(f),
    )


def doubles(network: Any, flat: Any) -> dict[str, np.ndarray]:
    return {name: np.asarray(value, float) for name, value in unravel(network, np.asarray(flat)).items()}


def linear(params: dict[str, np.ndarray], *inputs: np.ndarray) -> np.ndarray:
    return np.concatenate(inputs, axis=-1) @ params["w"] + params["b"]


def first_adam_step(flat: np.ndarray, gradient: np.ndarray, rate: float) -> np.ndarray:
    """Adam's first step is a signed step: m / sqrt(v) = sign of the gradient, up to epsilon."""
    return flat - rate * gradient / (np.abs(gradient) + 1e-8)


# -- losses and updates against independent numbers ----------------------------------------------------


def test_ddpg_losses_by_hand() -> None:
    """One feature, one action, one row: numbers that can be checked on paper."""
    rule = DDPG.make(1, 1, networks=LINEAR)
    one = functools.partial(np.array, dtype=np.float32)
    batch = Transition(one([[2.0]]), one([[0.5]]), one([1.0]), one([0.9]), one([[-1.0]]))
    actor = {"w": one([[0.5]]), "b": one([0.0])}
    critic = {"w": one([[1.0], [3.0]]), "b": one([0.25])}
    y = rule.target(actor, critic, batch, one([[0.2]]))
    # π'(-1) = tanh(-0.5) = -0.462117; + 0.2 = -0.262117; Q' = -1 + 3 * -0.262117 + 0.25 = -1.536351
    np.testing.assert_allclose(y, [1 + 0.9 * -1.536351], atol=1e-5)
    loss, q = rule.critic_loss(critic, batch, y)  # Q = 2 + 1.5 + 0.25
    np.testing.assert_allclose([loss, q], [(3.75 + 0.382716) ** 2, 3.75], atol=1e-4)
    np.testing.assert_allclose(rule.actor_loss(actor, critic, batch), -(2 + 3 * np.tanh(1.0) + 0.25), atol=1e-5)
    clipped = rule.target(actor, critic, batch, one([[5.0]]))  # the smoothed action stays within [-1, 1]
    np.testing.assert_allclose(clipped, [1 + 0.9 * (-1 + 3 + 0.25)], atol=1e-5)


def test_ddpg_update_equals_numpy() -> None:
    """A whole update of linear networks, with gradients derived by hand, in float64."""
    rule = DDPG.make(S, A, DDPGConfig(smoothing_clip=0.0, learning_rate=1e-2, target_rate=0.2), LINEAR)
    agent, batch = Agent.initialise(rule, 0), batch_of()
    old = {name: np.asarray(value, float) for name, value in agent.state_dict().items()}
    actor, critic = doubles(rule.actor, old["actor"]), doubles(rule.critic, old["critic"])
    s, a, reward, discount, s2 = (np.asarray(x, float) for x in batch)
    y = reward + discount * linear(critic, s2, np.tanh(linear(actor, s2)))[:, 0]
    error = linear(critic, s, a)[:, 0] - y
    inputs = np.concatenate([s, a, np.ones((B, 1))], axis=1)
    new_critic = first_adam_step(old["critic"], 2 / B * inputs.T @ error, 1e-2)
    pi = np.tanh(linear(actor, s))
    slope = -(1 - pi**2) * doubles(rule.critic, new_critic)["w"][S:, 0] / B
    new_actor = first_adam_step(old["actor"], np.concatenate([(s.T @ slope).ravel(), slope.sum(axis=0)]), 1e-2)
    agent, metrics = agent.update(batch, step=0)
    new = agent.state_dict()
    np.testing.assert_allclose(metrics["critic_loss"], np.mean(error**2), rtol=1e-5)
    np.testing.assert_allclose(new["critic"], new_critic, atol=2e-6)
    np.testing.assert_allclose(new["actor"], new_actor, atol=2e-6)
    np.testing.assert_allclose(
        metrics["actor_loss"], -linear(doubles(rule.critic, new_critic), s, pi).mean(), rtol=1e-4
    )
    for name, moved in (("critic", new_critic), ("actor", new_actor)):
        np.testing.assert_allclose(new[f"{name}_target"], 0.8 * old[name] + 0.2 * moved, atol=2e-6)


def test_adam_equals_the_definition_over_many_steps() -> None:
    draw = np.random.default_rng(0)
    theta, mean, square = draw.normal(size=7), np.zeros(7), np.zeros(7)
    ours, state = jnp.asarray(theta, jnp.float32), Adam(jnp.zeros(7), jnp.zeros(7))
    for t in range(1, 30):
        g = draw.normal(size=7)
        mean, square = 0.9 * mean + 0.1 * g, 0.999 * square + 0.001 * g**2
        theta = theta - 1e-2 * (mean / (1 - 0.9**t)) / (np.sqrt(square / (1 - 0.999**t)) + 1e-8)
        ours, state = adam(ours, jnp.asarray(g, jnp.float32), state, t, 1e-2)
    np.testing.assert_allclose(ours, theta, atol=1e-5)


def test_only_what_is_due_changes() -> None:
    """Updates 0, 2, 4 move actor and targets; updates 1, 3 only the critic."""
    agent = Agent.initialise(DDPG.make(S, A, networks=LINEAR), 0)
    for i in range(4):
        before = agent.state_dict()
        agent, metrics = agent.update(batch_of(i), step=i)
        changed = {name for name, value in agent.state_dict().items() if not np.array_equal(value, before[name])}
        slow = {"actor", "actor_mean", "actor_square", "actor_target", "critic_target"}
        assert changed == {"critic", "critic_mean", "critic_square", "updates"} | (slow if i % 2 == 0 else set())
        assert ("actor_loss" in metrics) == (i % 2 == 0)


def test_smoothing_follows_the_schedule_and_the_clip() -> None:
    rule = DDPG.make(S, A)
    assert [rule.deviation(step) for step in (0, 500_000, 1_000_000, 5_000_000)] == pytest.approx([1.0, 0.55, 0.1, 0.1])
    late = np.asarray(rule.smoothing(jax.random.key(0), (5000, 2), jnp.array(2_000_000)))
    early = np.asarray(rule.smoothing(jax.random.key(0), (5000, 2), jnp.array(0)))
    assert np.abs(early).max() == np.float32(0.3)
    assert np.mean(np.abs(early) == np.float32(0.3)) == pytest.approx(0.764, abs=0.02)
    assert late.std() == pytest.approx(0.1, abs=0.004)


def sac_reference(rule: SAC, theta: Any, s: np.ndarray, z: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Action and log density from the change of variables, in float64."""
    outputs = linear(theta, s)
    low, high = rule.config.log_stddev_low, rule.config.log_stddev_high
    mu, sigma = outputs[:, :A], np.exp(low + (high - low) * (np.tanh(outputs[:, A:]) + 1) / 2)
    a = np.tanh(mu + sigma * z)
    density = np.exp(-((np.arctanh(a) - mu) ** 2) / (2 * sigma**2)) / np.sqrt(2 * np.pi * sigma**2) / (1 - a**2)
    return a, np.log(density).sum(axis=1)


def test_sac_losses_equal_numpy() -> None:
    rule = SAC.make(S, A, SACConfig(log_stddev_low=-2.0, log_stddev_high=0.0), LINEAR)
    state, batch = rule.initialise(jax.random.key(0)), batch_of(1)
    theta = doubles(rule.actor, state["actor"])
    phis = [doubles(rule.critic, state[name]) for name in ("critic_1", "critic_2")]
    assert not np.array_equal(phis[0]["w"], phis[1]["w"])
    z = np.random.default_rng(2).normal(size=(B, A)).astype(np.float32)
    s, a, reward, discount, s2 = (np.asarray(x, float) for x in batch)
    a2, log_pi = sac_reference(rule, theta, s2, z)
    y = reward + discount * (np.minimum(*(linear(phi, s2, a2)[:, 0] for phi in phis)) - 0.3 * log_pi)
    np.testing.assert_allclose(rule.target(theta, phis, 0.3, batch, z), y, rtol=1e-3, atol=1e-4)
    loss = sum(np.mean((linear(phi, s, a)[:, 0] - y) ** 2) for phi in phis)
    np.testing.assert_allclose(rule.critic_loss(phis, batch, y)[0], loss, rtol=1e-4)
    a1, log_pi = sac_reference(rule, theta, s, z)
    expected = np.mean(0.3 * log_pi - np.minimum(*(linear(phi, s, a1)[:, 0] for phi in phis)))
    np.testing.assert_allclose(
        rule.actor_loss(theta, phis, 0.3, batch, z), [expected, log_pi.mean()], rtol=1e-3, atol=1e-4
    )
    # α (mean log π + H): entropy 1 is above the target of -2, so α must fall; the derivative by log α is -α (-1 - 2)
    np.testing.assert_allclose(jax.grad(rule.temperature_loss)(jnp.log(0.5), jnp.array(-1.0)), 0.5 * 3, rtol=1e-5)


# -- probe problems ------------------------------------------------------------------------------------


def probe(agent: Agent, problem: Callable[[np.random.Generator, int], Transition], updates: int) -> Agent:
    """Train on fresh batches of 64 of a problem."""
    draw = np.random.default_rng(0)
    for i in range(updates):
        agent, _ = agent.update(problem(draw, 64), step=i)
    assert bool(agent.state["finite"])
    return agent


def columns(s: np.ndarray, a: np.ndarray, reward: np.ndarray, discount: np.ndarray, s2: np.ndarray) -> Transition:
    f = np.float32
    return Transition(
        s[:, None].astype(f), a[:, None].astype(f), reward.astype(f), discount.astype(f), s2[:, None].astype(f)
    )


def constant_reward(draw: np.random.Generator, n: int) -> Transition:
    return columns(np.zeros(n), draw.uniform(-1, 1, n), np.ones(n), np.zeros(n), np.zeros(n))


def reward_by_observation(draw: np.random.Generator, n: int) -> Transition:
    s = draw.choice([-1.0, 1.0], n)
    return columns(s, draw.uniform(-1, 1, n), s, np.zeros(n), s)


def reward_by_action(draw: np.random.Generator, n: int) -> Transition:
    s, a = draw.choice([-1.0, 1.0], n), draw.uniform(-1, 1, n)
    return columns(s, a, 1 - (a - 0.5 * s) ** 2, np.zeros(n), s)


def delayed_reward(draw: np.random.Generator, n: int) -> Transition:
    """State 0 leads to state 1 without reward, state 1 to the end with reward 1; the discount is 0.5."""
    s = draw.choice([0.0, 1.0], n)
    return columns(s, draw.uniform(-1, 1, n), s, 0.5 * (1 - s), np.ones(n))


def value(agent: Agent, s: float, a: float = 0.0) -> float:
    rule: Any = agent.program.algorithm
    name = "critic" if "critic" in agent.state else "critic_1"
    row = [np.array([[x]], np.float32) for x in (s, a)]
    return float(rule.q(unravel(rule.critic, agent.state[name]), *row)[0])


RULES: dict[str, Callable[[], Algorithm]] = {
    "ddpg": lambda: DDPG.make(1, 1, DDPGConfig(**FAST), SMALL),
    "sac": lambda: SAC.make(
        1, 1, SACConfig(temperature=1e-3, temperature_rate=1e-6, log_stddev_low=-5.0, **FAST), SMALL
    ),
}


@pytest.mark.parametrize("rule", RULES)
def test_probe_problems(rule: str) -> None:
    """Constant reward, reward by observation, by action, delayed: values and actions known beforehand."""
    fresh = functools.partial(Agent.initialise, RULES[rule](), 0)
    agent = probe(fresh(), constant_reward, 400)
    assert value(agent, 0) == pytest.approx(1, abs=0.05)
    agent = probe(fresh(), reward_by_observation, 400)
    assert [value(agent, -1), value(agent, 1)] == pytest.approx([-1, 1], abs=0.1)
    agent = probe(fresh(), reward_by_action, 1200)
    actions = agent.act(np.array([[-1], [1]], np.float32))[:, 0]
    assert actions == pytest.approx([-0.5, 0.5], abs=0.1)
    assert value(agent, 1, -0.5) == pytest.approx(0, abs=0.15)
    agent = probe(fresh(), delayed_reward, 800)
    assert [value(agent, 0), value(agent, 1)] == pytest.approx([0.5, 1], abs=0.06)


def test_sac_temperature_reaches_the_target_entropy() -> None:
    """Where the best action is worth something, the learned temperature still holds the entropy at its target."""
    config = SACConfig(temperature_rate=1e-2, target_entropy=-1.0, log_stddev_low=-5.0, **FAST)
    agent, draw = Agent.initialise(SAC.make(1, 1, config, SMALL), 0), np.random.default_rng(0)
    entropies = []
    for i in range(1500):
        agent, metrics = agent.update(reward_by_action(draw, 64), step=i)
        entropies += [metrics["entropy"]] if "entropy" in metrics else []
    assert np.mean(entropies[-150:]) == pytest.approx(-1.0, abs=0.15)
    assert float(entropies[0]) < -1.5 or float(entropies[0]) > -0.5


# -- determinism, storing, NaN -------------------------------------------------------------------------

AGENTS: dict[str, Callable[..., Algorithm]] = {"ddpg": DDPG.make, "sac": SAC.make}


def noisy(key: jax.Array, batch: Transition) -> Transition:
    """An augmentation with randomness, so that its key is tested too."""
    return batch._replace(observation=batch.observation + jax.random.normal(key, batch.observation.shape))


def trained(agent: Agent, start: int, stop: int) -> Agent:
    for i in range(start, stop):
        agent, _ = agent.update(batch_of(i), step=i)
    return agent


def same(one: Agent, other: Agent) -> bool:
    pairs = one.state_dict(), other.state_dict()
    return all(pairs[0][name].tobytes() == pairs[1][name].tobytes() for name in pairs[0] | pairs[1])


@pytest.mark.parametrize("name", AGENTS)
def test_same_seed_same_bytes_and_resume(name: str, tmp_path: Path) -> None:
    rule = AGENTS[name](S, A, networks=SMALL)
    whole = trained(Agent.initialise(rule, 7, noisy), 0, 9)
    half = trained(Agent.initialise(rule, 7, noisy), 0, 4)
    save_file(half.state_dict(), tmp_path / "agent.safetensors")
    resumed = Agent.from_state_dict(rule, load_file(tmp_path / "agent.safetensors"), noisy)
    assert resumed.updates == 4
    assert same(half, resumed)
    assert same(trained(resumed, 4, 9), whole)
    assert not same(trained(Agent.initialise(rule, 8, noisy), 0, 9), whole)


def test_the_augmentation_is_applied_before_learning() -> None:
    rule = DDPG.make(S, A, networks=LINEAR)
    shifted, _ = Agent.initialise(rule, 0, lambda key, batch: batch._replace(reward=batch.reward + 1)).update(
        batch_of(), 0
    )
    plain, _ = Agent.initialise(rule, 0).update(batch_of()._replace(reward=batch_of().reward + 1), 0)
    np.testing.assert_allclose(shifted.state["critic"], plain.state["critic"], atol=1e-7)


def test_an_agent_is_a_pytree_of_its_arrays() -> None:
    agent = Agent.initialise(DDPG.make(S, A, networks=LINEAR), 0)
    copy = jax.tree_util.tree_map(jnp.copy, agent)
    assert same(agent, copy)
    trained(copy, 0, 2)
    assert agent.state_dict()["updates"] == 0  # a copy may be updated without consuming the original


def test_a_stored_agent_of_another_shape_is_refused() -> None:
    arrays = Agent.initialise(DDPG.make(S, A, networks=LINEAR), 0).state_dict()
    with pytest.raises(EudaError, match=r"actor.*another shape"):
        Agent.from_state_dict(DDPG.make(S + 1, A, networks=LINEAR), arrays)
    with pytest.raises(EudaError, match="critic_mean"):
        Agent.from_state_dict(DDPG.make(S, A, networks=LINEAR), {k: v for k, v in arrays.items() if k != "critic_mean"})


@pytest.mark.parametrize("field", ["observation", "reward", "next_observation"])
def test_numbers_that_are_not_finite_are_flagged_for_good(field: str) -> None:
    agent, metrics = Agent.initialise(DDPG.make(S, A, networks=LINEAR), 0).update(batch_of(), step=0)
    first = metrics["finite"]
    bad = np.array(getattr(batch_of(), field))
    bad[0] = np.nan
    agent, metrics = agent.update(batch_of()._replace(**{field: bad}), step=1)
    second = metrics["finite"]
    state = agent.state_dict()
    agent, metrics = dataclasses.replace(
        agent, state={**agent.state, "critic": jnp.zeros_like(agent.state["critic"])}
    ).update(batch_of(), 2)
    assert [bool(first), bool(second), bool(metrics["finite"]), bool(state["finite"])] == [True, False, False, False]


# -- acting --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", AGENTS)
def test_numpy_policy_equals_the_network(name: str) -> None:
    rule = AGENTS[name](S, A)
    agent, observations = Agent.initialise(rule, 0), batch_of(count=10).observation
    expected = rule.mode(rule.actor.apply(unravel(rule.actor, agent.state["actor"]), observations))
    np.testing.assert_allclose(agent.act(observations), expected, atol=1e-5)
    np.testing.assert_allclose(agent.act(observations[0]), expected[0], atol=1e-5)
    assert agent.act(observations[0]).dtype == np.float32


def test_policies_follow_their_agent_and_outlive_donation() -> None:
    agent, s = Agent.initialise(DDPG.make(S, A, DDPGConfig(learning_rate=1e-2), SMALL), 0), batch_of().observation
    policies, outputs = [agent.policy], [agent.act(s)]
    for i in range(6):
        agent, _ = agent.update(batch_of(i), step=i)
        policies.append(agent.policy)
        outputs.append(agent.act(s))
    for policy, output in zip(policies, outputs, strict=True):
        assert np.array_equal(np.tanh(policy(s)), output)
    moved = [not np.array_equal(a, b) for a, b in itertools.pairwise(outputs)]
    assert moved == [True, False] * 3


def test_a_network_without_numpy_form_acts_through_jax() -> None:
    agent, s = Agent.initialise(DDPG.make(S, A, networks=LINEAR), 0), batch_of().observation
    expected = np.tanh(linear(doubles(agent.program.algorithm.actor, agent.state["actor"]), s))
    np.testing.assert_allclose(agent.act(s), expected, atol=1e-5)
    assert agent.act(s[0]).shape == (A,)


def test_exploration() -> None:
    agent, s = Agent.initialise(DDPG.make(S, A), 0), batch_of(count=4000).observation
    draw = np.random.default_rng
    early = agent.explore(s, draw(0), 1999)
    assert early.dtype == np.float32
    assert np.abs(early).max() <= 1
    assert early.std() == pytest.approx(1 / np.sqrt(3), abs=0.01)  # uniform
    late = agent.explore(s, draw(0), 3_000_000)
    assert (late - agent.act(s)).std() == pytest.approx(0.1, abs=0.01)
    assert np.abs(late).max() <= 1
    assert agent.explore(s[0], draw(0), 5000).shape == (A,)
    assert np.array_equal(agent.explore(s, draw(5), 5000), agent.explore(s, draw(5), 5000))
    soft = Agent.initialise(SAC.make(S, A), 0)
    assert np.abs(soft.explore(s, draw(0), 5000)).max() <= 1
    assert soft.explore(s[0], draw(0), 5000).dtype == np.float32


# -- networks ------------------------------------------------------------------------------------------


def test_gradients_of_our_own_are_those_of_jax() -> None:
    """The products with gradients of their own, against JAX's derivative of the plain formula, for every argument."""

    def plain(params: dict[str, Any], s: Any, a: Any) -> Any:
        x = jnp.maximum(jnp.concatenate([s, a], -1) @ params["w0"] + params["b0"], 0)
        x = jnp.maximum(x @ params["w1"] + params["b1"], 0)
        return x @ params["w2"] + params["b2"]

    network, draw = MLP((5, 3), 2, MLPConfig(hidden_size=16)), np.random.default_rng(0)
    params = {name: draw.normal(size=shape).astype(np.float32) for name, shape in network.shapes.items()}
    s, a, weight = (draw.normal(size=(7, n)).astype(np.float32) for n in (5, 3, 2))
    ours, jax_ones = (
        jax.grad(lambda *x, f=f: jnp.sum(weight * f(*x)), argnums=(0, 1, 2))(params, s, a)
        for f in (network.apply, plain)
    )
    for mine, other in zip(jax.tree.leaves(ours), jax.tree.leaves(jax_ones), strict=True):
        np.testing.assert_allclose(mine, other, rtol=1e-4, atol=1e-5)


def test_mlp_is_the_papers() -> None:
    network = MLP((17, 6), 1)
    assert network.shapes == {"w0": (23, 256), "b0": (256,), "w1": (256, 256), "b1": (256,), "w2": (256, 1), "b2": (1,)}
    params = network.initialise(jax.random.key(0))
    for i in range(3):
        w = params[f"w{i}"].astype(float)
        gram = w @ w.T if w.shape[0] < w.shape[1] else w.T @ w
        np.testing.assert_allclose(gram, 2 * np.eye(len(gram)), atol=1e-5)  # orthogonal with gain √2
        assert not params[f"b{i}"].any()
    s, a = np.random.default_rng(0).normal(size=(4, 17)), np.random.default_rng(1).normal(size=(4, 6))
    h = np.maximum(np.concatenate([s, a], axis=1) @ params["w0"], 0)
    expected = np.maximum(h @ params["w1"], 0) @ params["w2"]
    np.testing.assert_allclose(network.apply(params, s.astype(np.float32), a.astype(np.float32)), expected, atol=1e-5)


def test_flat_vectors_are_cut_where_they_were_joined() -> None:
    network = MLP((3,), 2, MLPConfig(hidden_size=4))
    params = network.initialise(jax.random.key(0))
    flat = ravel(network, params)
    assert flat.shape == (size(network),)
    for name, array in unravel(network, flat).items():
        assert np.array_equal(array, params[name])
    assert not np.array_equal(orthogonal(jax.random.key(0), (4, 4)), orthogonal(jax.random.key(1), (4, 4)))


def test_rates_scale_adam() -> None:
    moved = []
    for slow in (None, 0.5):
        networks = Networks(lambda f, o, slow=slow: Linear((f,), o, slow), LINEAR.critic)
        before = Agent.initialise(DDPG.make(S, A, networks=networks), 0)
        flat = np.asarray(before.state["actor"])
        after, _ = before.update(batch_of(), step=0)
        moved.append(np.asarray(after.state["actor"]) - flat)
    np.testing.assert_allclose(moved[1], 0.5 * moved[0], atol=1e-7)


# -- every field of the configuration does something ---------------------------------------------------


def fingerprint(rule: Any) -> bytes:
    """Three updates (uncompiled) and two exploring actions of an agent, as bytes."""
    agent = Agent.initialise(rule, 0)
    run, state, config = Program(rule), dict(agent.state), rule.config
    for i in range(3):
        due = (i % config.actor_every == 0, i % config.target_every == 0)
        changes, _ = run.learn({}, state, batch_of(i), agent.key, np.array((1000 * i, i), np.int32), due=due)
        state |= changes
    acting = dataclasses.replace(agent, state=state)
    actions = [
        acting.explore(batch_of().observation[0], np.random.default_rng(0), step) for step in (100, 2500, 2_000_000)
    ]
    return b"".join(np.asarray(x).tobytes() for x in [*state.values(), *actions])


def changed_configs(base: LearningConfig, **changes: Any) -> dict[str, Any]:
    assert set(changes) == {field.name for field in dataclasses.fields(base)}, "a field without a test"
    return {name: dataclasses.replace(base, **{name: value}) for name, value in changes.items()}


COMMON = {"learning_rate": 1e-3, "actor_every": 3, "target_every": 1, "target_rate": 0.5, "exploration_steps": 0}


def test_every_field_of_ddpg_does_something() -> None:
    noise = {"stddev_start": 0.05, "stddev_end": 0.3, "stddev_steps": 100_000, "smoothing_clip": 0.1}
    configs = changed_configs(DDPGConfig(), **COMMON, **noise)
    prints = {name: fingerprint(DDPG.make(S, A, config, LINEAR)) for name, config in configs.items()}
    assert fingerprint(DDPG.make(S, A, networks=LINEAR)) not in prints.values()
    assert len(set(prints.values())) == len(prints)


def test_every_field_of_sac_does_something() -> None:
    own = {
        "temperature": 0.5,
        "temperature_rate": 1e-2,
        "target_entropy": 3.0,
        "log_stddev_low": -3.0,
        "log_stddev_high": 1.0,
    }
    configs = changed_configs(SACConfig(), **COMMON, **own)
    prints = {
        name: fingerprint(SAC.make(S, A, config, LINEAR))
        for name, config in configs.items()
        if name != "target_entropy"
    }
    assert fingerprint(SAC.make(S, A, networks=LINEAR)) not in prints.values()
    assert len(set(prints.values())) == len(prints)
    assert (SAC.make(S, A).target_entropy, SAC.make(S, A, SACConfig(target_entropy=3.0)).target_entropy) == (-2.0, 3.0)


def test_every_field_of_the_perceptron_does_something() -> None:
    base = size(MLP((3,), 1))
    assert size(MLP((3,), 1, MLPConfig(hidden_size=8))) < base < size(MLP((3,), 1, MLPConfig(hidden_layers=3)))
    one, two = (MLP((3,), 1, MLPConfig(gain=gain)).initialise(jax.random.key(0))["w1"] for gain in (1.0, 2.0))
    np.testing.assert_allclose(two, 2 * one, rtol=1e-6)


BAD: list[tuple[Any, dict[str, float]]] = [
    (DDPGConfig, {"learning_rate": -1.0, "actor_every": 0, "target_rate": 1.5, "exploration_steps": -1}),
    (DDPGConfig, {"stddev_start": -1.0, "stddev_end": -1.0, "stddev_steps": 0, "smoothing_clip": -0.1}),
    (SACConfig, {"temperature": 0.0, "temperature_rate": 0.0, "target_every": 0, "log_stddev_low": 5.0}),
    (MLPConfig, {"hidden_size": 0, "hidden_layers": 0, "gain": float("nan")}),
    (ReplayConfig, {"capacity": 0, "batch_size": 0, "n_step": 0, "discount": 1.5, "seed_steps": -1}),
]


@pytest.mark.parametrize(("make", "field", "bad"), [(make, *pair) for make, pairs in BAD for pair in pairs.items()])
def test_bad_configuration_is_one_sentence(make: Any, field: str, bad: float) -> None:
    with pytest.raises(EudaError, match=f"{field} must be"):
        make(**{field: bad})
