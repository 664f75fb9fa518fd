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

from euda.agents.agent import Agent
from euda.agents.critics import Categorical, Critics, Scalar
from euda.agents.ddpg import DDPG
from euda.agents.named_arrays import flatten
from euda.agents.network_settings import MLPConfig, ResidualConfig
from euda.agents.networks import MLP, Networks, Params, mlp_networks, orthogonal, size
from euda.agents.optimiser import begin, descend, make_optimiser
from euda.agents.program import Algorithm, Program
from euda.agents.residual import ResidualNetwork, residual_networks
from euda.agents.sac import SAC
from euda.agents.settings import NOISES, DDPGConfig, SACConfig, TD3Config
from euda.agents.td3 import TD3
from euda.errors import EudaError
from euda.lookup import loaded
from euda.replay.buffer import Transition
from euda.replay.settings import ReplayConfig

S, A, B = 3, 2, 5


@dataclasses.dataclass(frozen=True)
class Linear:
    """A network of one's own: linear in its inputs, without a NumPy form, with a slower last input."""

    inputs: tuple[int, ...]
    outputs: int
    slow: float | None = None

    def initialise(self, key: jax.Array) -> Params:
        shape = (sum(self.inputs), self.outputs)
        return {"w": 0.5 * jax.random.normal(key, shape), "b": jnp.full(self.outputs, 0.1)}

    def apply(self, params: Params, *inputs: Any) -> Any:
        return jnp.concatenate(inputs, axis=-1) @ params["w"] + params["b"]

    def apply_numpy(self, params: Params, observations: Any) -> None:
        return None

    def rates(self) -> Params | None:
        return None if self.slow is None else {"w": np.float32(self.slow), "b": np.float32(1)}


LINEAR = Networks(
    lambda features, outputs: Linear((features,), outputs),
    lambda features, actions, outputs: Linear((features, actions), outputs),
)
SMALL = mlp_networks(MLPConfig(hidden_size=32))
TINY = ResidualConfig(hidden_size=16, blocks=1)
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


def doubles(params: Any) -> Any:
    return jax.tree.map(lambda array: np.asarray(array, float), params)


def linear(params: dict[str, np.ndarray], *inputs: np.ndarray) -> np.ndarray:
    return np.concatenate(inputs, axis=-1) @ params["w"] + params["b"]


def first_adam_step(params: Any, gradient: Any, rate: float) -> Any:
    """Adam's first step is a signed step: m / sqrt(v) = sign of the gradient, up to epsilon."""
    return jax.tree.map(lambda theta, g: theta - rate * g / (np.abs(g) + 1e-8), params, gradient)


def assert_close(found: Any, expected: Any, tolerance: float = 2e-6) -> None:
    for one, other in zip(jax.tree.leaves(found), jax.tree.leaves(expected), strict=True):
        np.testing.assert_allclose(one, other, atol=tolerance)


# -- losses and updates against independent numbers ----------------------------------------------------


def test_ddpg_losses_by_hand() -> None:
    """One feature, one action, one row: numbers that can be checked on paper."""
    rule = DDPG.make(1, 1, networks=LINEAR)
    one = functools.partial(np.array, dtype=np.float32)
    batch = Transition(one([[2.0]]), one([[0.5]]), one([1.0]), one([0.9]), one([[-1.0]]))
    actor = {"w": one([[0.5]]), "b": one([0.0])}
    critic = {"w": one([[1.0], [3.0]]), "b": one([0.25])}
    y = rule.target(actor, [critic], batch, one([[0.2]]))
    # π'(-1) = tanh(-0.5) = -0.462117; + 0.2 = -0.262117; Q' = -1 + 3 * -0.262117 + 0.25 = -1.536351
    np.testing.assert_allclose(y, [1 + 0.9 * -1.536351], atol=1e-5)
    loss, q = rule.critics.loss([critic], batch, y)  # Q = 2 + 1.5 + 0.25
    np.testing.assert_allclose([loss, q], [(3.75 + 0.382716) ** 2, 3.75], atol=1e-4)
    np.testing.assert_allclose(rule.actor_loss(actor, [critic], batch), -(2 + 3 * np.tanh(1.0) + 0.25), atol=1e-5)
    clipped = rule.target(actor, [critic], batch, one([[5.0]]))  # the smoothed action stays within [-1, 1]
    np.testing.assert_allclose(clipped, [1 + 0.9 * (-1 + 3 + 0.25)], atol=1e-5)


def test_ddpg_update_equals_numpy() -> None:
    """A whole update of linear networks, with gradients derived by hand, in float64."""
    rule = DDPG.make(S, A, DDPGConfig(smoothing_clip=0.0, learning_rate=1e-2, target_rate=0.2), LINEAR)
    agent, batch = Agent.initialise(rule, 0), batch_of()
    actor, (critic,) = doubles(agent.state["actor"]), doubles(agent.state["critics"])
    s, a, reward, discount, s2 = (np.asarray(x, float) for x in batch)
    y = reward + discount * linear(critic, s2, np.tanh(linear(actor, s2)))[:, 0]
    error = linear(critic, s, a)[:, 0] - y
    slope = {"w": 2 / B * np.concatenate([s, a], axis=1).T @ error[:, None], "b": 2 / B * error.sum(keepdims=True)}
    new_critic = first_adam_step(critic, slope, 1e-2)
    pi = np.tanh(linear(actor, s))
    back = -(1 - pi**2) * new_critic["w"][S:, 0] / B
    new_actor = first_adam_step(actor, {"w": s.T @ back, "b": back.sum(axis=0)}, 1e-2)
    agent, metrics = agent.update(batch, step=0)
    np.testing.assert_allclose(metrics["critic_loss"], np.mean(error**2), rtol=1e-5)
    np.testing.assert_allclose(metrics["actor_loss"], -linear(new_critic, s, pi).mean(), rtol=1e-4)
    assert_close(agent.state["critics"], (new_critic,))
    assert_close(agent.state["actor"], new_actor)
    for name, old, new in (("critics", (critic,), (new_critic,)), ("actor", actor, new_actor)):
        assert_close(agent.state[f"{name}_target"], jax.tree.map(lambda x, y: 0.8 * x + 0.2 * y, old, new))


def test_adam_equals_the_definition_over_many_steps() -> None:
    """With the paper's settings; and with AdamW's decay and a clipped gradient."""
    decay, clip = 0.1, 1.5
    for more in ({}, {"weight_decay": decay, "gradient_clip": clip}):
        draw, optimiser = np.random.default_rng(0), make_optimiser(DDPGConfig(learning_rate=1e-2, **more))
        theta, mean, square = draw.normal(size=7), np.zeros(7), np.zeros(7)
        state = begin("theta", jnp.asarray(theta, jnp.float32), optimiser)
        for t in range(1, 30):
            g = draw.normal(size=7)
            state = descend("theta", state, jnp.asarray(g, jnp.float32), optimiser)
            g = g * min(1, clip / np.linalg.norm(g)) if more else g
            mean, square = 0.9 * mean + 0.1 * g, 0.999 * square + 0.001 * g**2
            step = (mean / (1 - 0.9**t)) / (np.sqrt(square / (1 - 0.999**t)) + 1e-8)
            theta = theta - 1e-2 * (step + decay * theta if more else step)
        np.testing.assert_allclose(state["theta"], theta, atol=1e-5)


def changed_names(before: Agent, after: Agent) -> set[str]:
    """The trees of the state that differ."""
    old, new = before.state_dict(), after.state_dict()
    return {name.partition("/")[0] for name, value in new.items() if not np.array_equal(value, old[name])}


def test_only_what_is_due_changes() -> None:
    """Updates 0, 2, 4 move actor and targets; updates 1, 3 only the critic."""
    agent = Agent.initialise(DDPG.make(S, A, networks=LINEAR), 0)
    for i in range(4):
        before = jax.tree.map(jnp.copy, agent)
        agent, metrics = agent.update(batch_of(i), step=i)
        slow = {"actor", "actor_optimiser", "actor_target", "critics_target"} if i % 2 == 0 else set()
        assert changed_names(before, agent) == {"critics", "critics_optimiser", "updates"} | slow
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
    theta, phis = doubles(state["actor"]), doubles(state["critics"])
    assert not np.array_equal(phis[0]["w"], phis[1]["w"])
    z = np.random.default_rng(2).normal(size=(B, A)).astype(np.float32)
    s, a, reward, discount, s2 = (np.asarray(x, float) for x in batch)
    a2, log_pi = sac_reference(rule, theta, s2, z)
    y = reward + discount * (np.minimum(*(linear(phi, s2, a2)[:, 0] for phi in phis)) - 0.3 * log_pi)
    np.testing.assert_allclose(rule.target(theta, phis, 0.3, batch, z), y, rtol=1e-3, atol=1e-4)
    loss = sum(np.mean((linear(phi, s, a)[:, 0] - y) ** 2) for phi in phis)
    np.testing.assert_allclose(rule.critics.loss(phis, batch, y)[0], loss, rtol=1e-4)
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
    row = [np.array([[x]], np.float32) for x in (s, a)]
    return float(rule.critics.q(agent.state["critics"][0], *row)[0])


RULES: dict[str, Callable[[], Algorithm]] = {
    "ddpg": lambda: DDPG.make(1, 1, DDPGConfig(**FAST), SMALL),
    "td3, residual": lambda: TD3.make(1, 1, TD3Config(**FAST), residual_networks(TINY)),
    "sac": lambda: SAC.make(
        1, 1, SACConfig(temperature=1e-3, temperature_rate=1e-6, log_stddev_low=-5.0, **FAST), SMALL
    ),
}


@pytest.mark.parametrize("rule", RULES)
def test_probe_problems(rule: str) -> None:
    """Constant reward, reward by observation, by action, delayed: values and actions known beforehand."""
    fresh = functools.partial(Agent.initialise, RULES[rule](), 0)
    agent = probe(fresh(), constant_reward, 200)
    assert value(agent, 0) == pytest.approx(1, abs=0.05)
    agent = probe(fresh(), reward_by_observation, 200)
    assert [value(agent, -1), value(agent, 1)] == pytest.approx([-1, 1], abs=0.1)
    agent = probe(fresh(), reward_by_action, 700)
    actions = agent.act(np.array([[-1], [1]], np.float32))[:, 0]
    assert actions == pytest.approx([-0.5, 0.5], abs=0.1)
    assert value(agent, 1, -0.5) == pytest.approx(0, abs=0.15)
    agent = probe(fresh(), delayed_reward, 400)
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
    assert_close(shifted.state["critics"], plain.state["critics"], 1e-7)


def test_an_agent_is_a_pytree_of_its_arrays() -> None:
    agent = Agent.initialise(DDPG.make(S, A, networks=LINEAR), 0)
    copy = jax.tree_util.tree_map(jnp.copy, agent)
    assert same(agent, copy)
    trained(copy, 0, 2)
    assert agent.state_dict()["updates"] == 0  # a copy may be updated without consuming the original


def test_a_stored_agent_of_another_shape_is_refused() -> None:
    arrays = Agent.initialise(DDPG.make(S, A, networks=LINEAR), 0).state_dict()
    with pytest.raises(EudaError, match=r"actor/w.*another shape"):
        Agent.from_state_dict(DDPG.make(S + 1, A, networks=LINEAR), arrays)
    part = "critics_target/0/w"
    with pytest.raises(EudaError, match=f"fit: {part} missing"):
        Agent.from_state_dict(DDPG.make(S, A, networks=LINEAR), {k: v for k, v in arrays.items() if k != part})
    with pytest.raises(EudaError, match=f"fit: {part} missing, unknown, or of another shape or type"):
        Agent.from_state_dict(DDPG.make(S, A, networks=LINEAR), {**arrays, part: arrays[part].astype(float)})


@pytest.mark.parametrize("field", ["observation", "reward", "next_observation"])
def test_numbers_that_are_not_finite_are_flagged_for_good(field: str) -> None:
    agent, metrics = Agent.initialise(DDPG.make(S, A, networks=LINEAR), 0).update(batch_of(), step=0)
    first = metrics["finite"]
    bad = np.array(getattr(batch_of(), field))
    bad[0] = np.nan
    agent, metrics = agent.update(batch_of()._replace(**{field: bad}), step=1)
    second = metrics["finite"]
    state = agent.state_dict()
    mended = {**agent.state, "critics": jax.tree.map(jnp.zeros_like, agent.state["critics"])}
    agent, metrics = dataclasses.replace(agent, state=mended).update(batch_of(), 2)
    assert [bool(first), bool(second), bool(metrics["finite"]), bool(state["finite"])] == [True, False, False, False]


# -- acting --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", AGENTS)
def test_numpy_policy_equals_the_network(name: str) -> None:
    rule = AGENTS[name](S, A)
    agent, observations = Agent.initialise(rule, 0), batch_of(count=10).observation
    expected = rule.mode(rule.actor.apply(agent.state["actor"], observations))
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
    expected = np.tanh(linear(doubles(agent.state["actor"]), s))
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


def test_mlp_is_the_papers() -> None:
    params = MLP((17, 6), 1).initialise(jax.random.key(0))
    assert [(w.shape, b.shape) for w, b in params] == [((23, 256), (256,)), ((256, 256), (256,)), ((256, 1), (1,))]
    for layer in params:
        w = layer.weight.astype(float)
        gram = w @ w.T if w.shape[0] < w.shape[1] else w.T @ w
        np.testing.assert_allclose(gram, 2 * np.eye(len(gram)), atol=1e-5)  # orthogonal with gain √2
        assert not layer.bias.any()
    s, a = np.random.default_rng(0).normal(size=(4, 17)), np.random.default_rng(1).normal(size=(4, 6))
    h = np.maximum(np.concatenate([s, a], axis=1) @ params[0].weight, 0)
    expected = np.maximum(h @ params[1].weight, 0) @ params[2].weight
    found = MLP((17, 6), 1).apply(params, s.astype(np.float32), a.astype(np.float32))
    np.testing.assert_allclose(found, expected, atol=1e-5)
    assert not np.array_equal(orthogonal(jax.random.key(0), (4, 4)), orthogonal(jax.random.key(1), (4, 4)))


@pytest.mark.parametrize("shape", [(7, 3), (3, 90), (40, 30)])
def test_weights_are_those_of_jax_s_own_normal_numbers(shape: tuple[int, int]) -> None:
    """They are drawn in a few sizes, which must not show: seeds would begin elsewhere after an update of JAX."""
    tall = (max(shape), min(shape))
    q, r = np.linalg.qr(np.asarray(jax.random.normal(jax.random.key(5), tall)))
    expected = q * np.sign(np.diag(r))
    np.testing.assert_array_equal(orthogonal(jax.random.key(5), shape), expected if shape == tall else expected.T)


def test_a_policy_of_one_vector_is_cut_where_it_was_joined() -> None:
    """As the runs of older versions stored it: weights and biases layer by layer."""
    rule = DDPG.make(S, A, networks=SMALL)
    agent, s = trained(Agent.initialise(rule, 0), 0, 3), batch_of().observation
    params = agent.policy_arrays()
    names = [f"actor/{layer}/{part}" for layer in range(3) for part in ("weight", "bias")]
    assert set(params) == set(names)
    flat = np.concatenate([params[name].ravel() for name in names])
    for stored in (params, agent.state_dict(), {"actor": flat}):
        assert np.array_equal(Agent.from_policy_arrays(rule, stored).act(s), agent.act(s))
    with pytest.raises(EudaError, match=f"{flat.size - 1} numbers instead of {flat.size}"):
        Agent.from_policy_arrays(rule, {"actor": flat[1:]})
    with pytest.raises(EudaError, match="actor/0/bias"):
        Agent.from_policy_arrays(rule, {})


def test_rates_scale_adam() -> None:
    moved = []
    for slow in (None, 0.5):
        networks = Networks(lambda f, o, slow=slow: Linear((f,), o, slow), LINEAR.critic)
        before = Agent.initialise(DDPG.make(S, A, networks=networks), 0)
        old = doubles(before.state["actor"])
        after, _ = before.update(batch_of(), step=0)
        moved.append(jax.tree.map(lambda x, y: np.asarray(y) - x, old, after.state["actor"]))
    np.testing.assert_allclose(moved[1]["w"], 0.5 * moved[0]["w"], atol=1e-7)
    np.testing.assert_allclose(moved[1]["b"], moved[0]["b"], atol=1e-7)


# -- critics ---------------------------------------------------------------------------------------------


def test_the_histogram_of_a_target_is_that_of_a_gaussian() -> None:
    """Bins of width 1 around 0.5, 1.5, …: the mass between two edges, from the normal distribution's table."""
    head = Categorical(10, 0.0, 10.0, spread=1.0)
    (mass,) = np.asarray(head.histogram(jnp.array([5.0])))
    np.testing.assert_allclose(mass[3:7], [0.135905, 0.341345, 0.341345, 0.135905], atol=1e-4)
    np.testing.assert_allclose(mass.sum(), 1, atol=1e-6)
    logits = np.full((1, 10), -30.0, np.float32)
    logits[0, 2], logits[0, 6] = np.log(0.25), np.log(0.75)
    np.testing.assert_allclose(head.value(logits), [0.25 * 2.5 + 0.75 * 6.5], atol=1e-4)
    (low,), (high,) = np.asarray(head.histogram(jnp.array([-50.0]))), np.asarray(head.histogram(jnp.array([1e9])))
    assert np.isfinite([low, high]).all()
    assert (low.argmax(), high.argmax()) == (0, 9)


def test_a_head_is_lowest_in_loss_where_its_value_is_the_target() -> None:
    y = np.array([2.0, 31.0, 77.5, 99.0], np.float32)
    head = Categorical(101, 0.0, 100.0)
    best = jnp.log(head.histogram(y) + 1e-12)
    np.testing.assert_allclose(head.value(best), y, atol=0.5)  # half a bin
    losses = [float(head.loss(best, y + shift)) for shift in (-3, -1, 0, 1, 3)]
    assert np.argmin(losses) == 2
    assert losses == [pytest.approx(float(loss)) for loss in losses]
    np.testing.assert_allclose(Scalar().loss(y[:, None] + 2, y), 4, rtol=1e-5)


@pytest.mark.parametrize(("make", "count"), [(DDPG, 3), (SAC, 1)], ids=["ddpg", "sac"])
def test_any_number_of_critics_with_a_histogram_learn_a_delayed_reward(make: Any, count: int) -> None:
    soft = {} if make is DDPG else {"temperature": 1e-3, "temperature_rate": 1e-6, "log_stddev_low": -5.0}
    bins = {"head": "categorical", "bins": 41, "value_low": -1.0, "value_high": 2.0}
    config = make.settings(critics=count, **bins, **FAST, **soft)
    agent = probe(Agent.initialise(make.make(1, 1, config, SMALL), 0), delayed_reward, 500)
    assert len(agent.state["critics"]) == count
    assert [value(agent, 0), value(agent, 1)] == pytest.approx([0.5, 1], abs=0.08)


def test_several_critics_give_the_lowest_target_and_differ_from_each_other() -> None:
    critics = Critics.make(S, A, DDPGConfig(critics=3), LINEAR)
    phis = critics.initialise(jax.random.split(jax.random.key(0), 3))
    s, a = batch_of().observation, batch_of().action
    values = np.array([critics.q(phi, s, a) for phi in phis])
    assert len({value.tobytes() for value in values}) == 3
    np.testing.assert_allclose(critics.together(phis, s, a), values.min(axis=0))
    for pessimism in (0.0, 0.25):
        expected = pessimism * values.min(axis=0) + (1 - pessimism) * values.mean(axis=0)
        given = dataclasses.replace(critics, pessimism=pessimism).together(phis, s, a)
        np.testing.assert_allclose(given, expected, rtol=1e-6)


# -- every field of the configuration does something ---------------------------------------------------


def fingerprint(rule: Any, updates: int) -> bytes:
    """An agent after so many updates (uncompiled), and three exploring actions of it, as bytes."""
    agent = Agent.initialise(rule, 0)
    run, state, config = Program(rule), dict(agent.state), rule.config
    for i in range(updates):
        due = (i % config.actor_every == 0, i % config.target_every == 0)
        changes, _ = run.learn(state, batch_of(i), agent.key, np.array((1000 * i, i), np.int32), due=due)
        state |= changes
    acting = dataclasses.replace(agent, state=state)
    make_noise = NOISES[config.noise]
    noise = None if make_noise is None else loaded(make_noise)(A)
    actions = [
        acting.explore(batch_of().observation[0], np.random.default_rng(0), step, noise)
        for step in (100, 2500, 2_000_000)
    ]
    return b"".join(x.tobytes() for x in [*flatten(state).values(), *actions])


COMMON = {
    "learning_rate": 1e-3, "weight_decay": 0.1, "gradient_clip": 0.01, "critics": 4, "head": "categorical",
    "actor_every": 1, "target_every": 1, "target_rate": 0.5, "exploration_steps": 0, "noise": "pink",
}  # fmt: skip
BINS = {"bins": 7, "value_low": -3.0, "value_high": 50.0}
NOISE = {"stddev_start": 0.05, "stddev_end": 0.3, "stddev_steps": 100_000, "smoothing_clip": 0.1}
SOFT = {
    "temperature": 0.5, "temperature_rate": 1e-2, "log_stddev_low": -3.0, "log_stddev_high": 1.0,
    "log_stddev_start": -0.5,
}  # fmt: skip
AIMS = {"target_entropy": 3.0, "entropy_per_action": -0.5}
"""Adam's first steps follow only the sign of the entropy's error, so these are looked at by themselves."""


@pytest.mark.parametrize(("make", "own"), [(DDPG, NOISE), (SAC, SOFT)], ids=["ddpg", "sac"])
def test_every_field_of_an_agent_does_something(make: Any, own: dict[str, Any]) -> None:
    @functools.cache
    def first(**changes: Any) -> bytes:
        return fingerprint(make.make(S, A, make.settings(**changes), LINEAR), updates=0)

    @functools.cache
    def seen(**changes: Any) -> bytes:
        """Updated only where nothing can be seen before: updates take most of the time here."""
        head = {key: value for key, value in changes.items() if key == "head"}
        if changes != head and first(**changes) != first(**head):
            return first(**changes)
        return fingerprint(make.make(S, A, make.settings(**changes), LINEAR), updates=2)

    aims = AIMS if make is SAC else {}
    assert {*COMMON, *BINS, *own, *aims, "pessimism"} == {field.name for field in dataclasses.fields(make.settings)}
    prints = {name: seen(**{name: value}) for name, value in (COMMON | own).items()}
    prints |= {name: seen(**{name: value, "head": "categorical"}) for name, value in BINS.items()}
    assert len({seen(), *prints.values()}) == len(prints) + 1
    two = [make.make(S, A, make.settings(critics=2, pessimism=pessimism), LINEAR) for pessimism in (0.0, 1.0)]
    assert fingerprint(two[0], updates=2) != fingerprint(two[1], updates=2)


def test_the_entropy_that_sac_aims_at() -> None:
    def aim(**changes: Any) -> float:
        return SAC.make(S, A, SACConfig(**changes)).target_entropy

    assert [aim(), aim(target_entropy=3.0), aim(entropy_per_action=-0.5)] == [-2.0, 3.0, -1.0]


def test_every_field_of_the_perceptron_does_something() -> None:
    def fresh(**changes: Any) -> Any:
        return MLP((3,), 1, MLPConfig(**changes)).initialise(jax.random.key(0))

    assert size(fresh(hidden_size=8)) < size(fresh()) < size(fresh(hidden_layers=3))
    np.testing.assert_allclose(fresh(gain=2.0)[1].weight, 2 * fresh(gain=1.0)[1].weight, rtol=1e-6)
    small = fresh(last_gain=0.1, gain=2.0)
    np.testing.assert_allclose(
        [np.linalg.norm(small[2].weight), np.linalg.norm(small[1].weight, 2)], [0.1, 2.0], rtol=1e-5
    )


def test_layer_norm_makes_hidden_units_independent_of_the_size_of_the_input() -> None:
    network, s = MLP((S,), A, MLPConfig(hidden_size=16, layer_norm=True)), batch_of().observation
    first, *rest = network.initialise(jax.random.key(0))
    expected = s @ first.weight
    expected = (expected - expected.mean(axis=1, keepdims=True)) / expected.std(axis=1, keepdims=True)
    expected = np.maximum(expected, 0) @ rest[0].weight
    expected = (expected - expected.mean(axis=1, keepdims=True)) / expected.std(axis=1, keepdims=True)
    expected = np.maximum(expected, 0) @ rest[1].weight
    for scale in (1.0, 1000.0):
        np.testing.assert_allclose(network.apply((first, *rest), scale * s), expected, atol=2e-3)
        np.testing.assert_allclose(network.apply_numpy((first, *rest), np.float32(scale) * s), expected, atol=2e-3)


def test_every_field_of_residual_networks_does_something() -> None:
    def fresh(**changes: Any) -> Any:
        return ResidualNetwork((3,), 1, ResidualConfig(**changes)).initialise(jax.random.key(0))

    sizes = [size(fresh(**change)) for change in ({"hidden_size": 8}, {"expansion": 1}, {}, {"blocks": 3})]
    assert sizes == sorted(set(sizes))
    np.testing.assert_allclose(fresh(last_gain=0.1).last.weight, 0.1 * fresh().last.weight, rtol=1e-5)


def test_a_residual_network_is_its_formula_and_begins_near_its_first_layer() -> None:
    network, s = ResidualNetwork((S,), A, TINY), batch_of().observation

    def norm(x: np.ndarray) -> np.ndarray:
        return (x - x.mean(axis=1, keepdims=True)) / np.sqrt(x.var(axis=1, keepdims=True) + 1e-5)

    params = network.initialise(jax.random.key(0))
    (inner, outer), x = params.blocks[0], s @ params.first.weight
    x = x + np.maximum(norm(x) @ inner.weight, 0) @ outer.weight
    expected = norm(x) @ params.last.weight
    np.testing.assert_allclose(network.apply(params, s), expected, atol=1e-5)
    np.testing.assert_allclose(network.apply_numpy(params, s), expected, atol=1e-5)
    np.testing.assert_allclose(network.apply_numpy(params, s[0]), expected[0], atol=1e-5)


def test_sac_begins_with_the_deviation_it_is_told() -> None:
    for start, expected in ((None, -2.0), (-0.5, -0.5)):
        rule = SAC.make(S, A, SACConfig(log_stddev_low=-5.0, log_stddev_high=1.0, log_stddev_start=start))
        for zeros in (np.zeros((3, 2 * A), np.float32), jnp.zeros((3, 2 * A))):
            np.testing.assert_allclose(rule.split(zeros)[1], expected, atol=1e-6)


def test_the_target_noise_of_td3_does_not_follow_the_schedule() -> None:
    rule = TD3.make(S, A)
    one, other = (np.asarray(rule.smoothing(jax.random.key(0), (4000, 2), step)) for step in (0, 2_000_000))
    assert np.array_equal(one, other)
    assert one.std() == pytest.approx(0.2, abs=0.01)
    assert np.abs(one).max() <= 0.5
    assert rule.critics.count == 2


BAD: list[tuple[Any, dict[str, float]]] = [
    (DDPGConfig, {"learning_rate": -1.0, "actor_every": 0, "target_rate": 1.5, "exploration_steps": -1}),
    (DDPGConfig, {"stddev_start": -1.0, "stddev_end": -1.0, "stddev_steps": 0, "smoothing_clip": -0.1}),
    (DDPGConfig, {"weight_decay": -1.0, "gradient_clip": float("inf"), "critics": 0, "bins": 1, "value_low": 100.0}),
    (DDPGConfig, {"pessimism": 1.5}),
    (SACConfig, {"temperature": 0.0, "temperature_rate": 0.0, "target_every": 0, "log_stddev_low": 5.0}),
    (SACConfig, {"log_stddev_start": 2.0}),
    (TD3Config, {"smoothing_stddev": -0.1}),
    (MLPConfig, {"hidden_size": 0, "hidden_layers": 0, "gain": float("nan"), "last_gain": 0.0}),
    (ResidualConfig, {"hidden_size": 0, "blocks": 0, "expansion": 0, "last_gain": 0.0}),
    (
        ReplayConfig,
        {"capacity": 0, "batch_size": 0, "n_step": 0, "discount": 1.5, "seed_steps": -1},
    ),
]


@pytest.mark.parametrize(("make", "field", "bad"), [(make, *pair) for make, pairs in BAD for pair in pairs.items()])
def test_bad_configuration_is_one_sentence(make: Any, field: str, bad: float) -> None:
    with pytest.raises(EudaError, match=f"{field} must be"):
        make(**{field: bad})


def test_an_unknown_head_is_one_sentence() -> None:
    with pytest.raises(EudaError, match=r"unknown head 'gaus'.*scalar"):
        DDPGConfig(head="gaus")
