"""The averaged actor is exactly invariant under the elements it averages over, in every way of acting."""

import dataclasses
import functools

import jax
import numpy as np
import pytest
from symmetric_robots import star

import euda
from euda.agents.agent import Agent
from euda.agents.averaging import images
from euda.agents.ddpg import DDPG
from euda.agents.frames import own_frame
from euda.agents.inputs import Inputs
from euda.agents.network_settings import MLPConfig
from euda.agents.networks import mlp_networks
from euda.agents.normaliser import symmetric
from euda.agents.sac import SAC
from euda.runs import run_folder
from euda.runs.evaluation import load_agent, load_policy, make_environment
from euda.runs.resolution import resolve
from euda.runs.session import train

SHORT = {"evaluation": {"every": 60, "episodes": 1}, "mlp": {"hidden_size": 8}, "episode_steps": 30,
         "replay": {"capacity": 100, "batch_size": 4, "seed_steps": 30}, "checkpoint_every": 20,
         "inputs": {"normaliser": "symmetric"}, "sac": {"actor_every": 1, "target_every": 1}}  # fmt: skip


@functools.cache
def subject(name):
    env = euda.make(name, seed=0) if name in euda.TASKS else euda.ModelEnv(star(3), direction=(1, 0))
    rng, rows = np.random.default_rng(0), [env.reset(seed=0)[0]]
    rows += [env.step(rng.uniform(-1, 1, env.model.nu))[0] for _ in range(40)]
    return env, euda.symmetries(env.model), np.array(rows)


class Fixed:
    """Noise that is given."""

    def __init__(self, z):
        self.z = z

    def normal(self, generator):
        return self.z

    uniform = normal

    def instead(self, generator):
        return None


@pytest.mark.parametrize("rule", [DDPG, SAC])
@pytest.mark.parametrize("name", ["walker3d_run", "quadruped_run", "star"])
def test_acting_and_exploring_are_invariant(name, rule):
    env, group, observations = subject(name)
    layout, elements = env.layout, group.elements[1:]
    frame = own_frame(layout)
    seen = [frame.seen(element.on_observations(layout)) for element in elements]
    normaliser = symmetric(layout, 10.0, is_turned=True, maps=seen)
    plain = Inputs(frame, normaliser)
    algorithm = rule.make(layout.dim, env.model.nu, networks=mlp_networks(MLPConfig(hidden_size=16)))
    agents = [
        Agent.initialise(algorithm, 0, inputs=inputs)
        for inputs in (plain, dataclasses.replace(plain, images=images(layout, elements)))
    ]
    x, rng = observations[30], np.random.default_rng(1)
    z, late = rng.standard_normal(env.model.nu).astype(np.float32), 10**6
    apart = []
    for element in elements:
        image = layout.act(element, observations).astype(np.float32)
        for agent, gaps in zip(agents, (apart, None), strict=True):
            gap = np.abs(agent.act(image) - env.actions.act(element, agent.act(observations))).max()
            assert gaps is not None or gap < 2e-6
            apart.append(gap)
        averaged = agents[1]
        there = averaged.explore(image[30], rng, late, Fixed(env.actions.act(element, z)))
        here = averaged.explore(x, rng, late, Fixed(z))
        np.testing.assert_allclose(there, env.actions.act(element, here), atol=2e-5)
    assert max(apart) > 1e-3  # the network itself is not
    answer = jax.jit(averaged.answer)(averaged.acting, observations)
    np.testing.assert_allclose(answer, averaged.act(observations), atol=1e-5)


def test_a_run_that_averages_stores_it_and_its_policy_is_invariant(tmp_path):
    config = resolve("walker_run", "limb", steps=60, overrides={"average_actor": True, **SHORT})
    assert config.uses_elements
    assert not config.uses_yaw
    assert config.label == "swift limb averaged"
    assert config.identity != resolve("walker_run", "limb", steps=60, overrides=SHORT).identity
    train(config, tmp_path / "a")
    run = run_folder.load(tmp_path / "a")
    assert run.config.elements == ("mirror left-right",)
    env = make_environment(run.config)
    policy, _ = load_policy(run, env)
    mirror = euda.symmetries(env.model).elements[1]
    observation = env.reset(seed=0)[0]
    np.testing.assert_allclose(
        policy(env.layout.act(mirror, observation)), env.actions.act(mirror, policy(observation)), atol=1e-6
    )
    agent, _ = load_agent(run, env)
    assert len(agent.program.inputs.images) == 1
