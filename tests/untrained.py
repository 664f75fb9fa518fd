"""Runs with a policy that was never trained, made without training: for exports and viewers."""

import functools

import jax
import numpy as np

import euda
from euda.agents.agent import Agent
from euda.agents.named_arrays import flatten
from euda.runs import evaluation, run_folder
from euda.runs.environments import action_count
from euda.runs.resolution import resolve


@functools.cache
def environment_of(task, features="limb"):
    """An environment of a task, made once."""
    return euda.make(task, features)


def observations(environment, count=24, seed=0):
    """Observations [count, dim] along an episode of random actions."""
    draw = np.random.default_rng(seed)
    seen = [environment.reset(seed=seed)[0]]
    while len(seen) < count:
        seen.append(environment.step(draw.uniform(-1, 1, environment.action_space.shape).astype(np.float32))[0])
    return np.stack(seen)


def run(folder, task, method="limb", base="paper", **overrides):
    """A run as if it had been trained: its normaliser has seen an episode, its policy is the first."""
    config = resolve(task, method, base, steps=1000, overrides=overrides)
    environment = environment_of(task, config.features)
    inputs = evaluation.make_inputs(config, environment.layout)
    algorithm = evaluation.make_algorithm(config, environment.layout, action_count(environment))
    arrays, moments = {"actor": algorithm.actor.initialise(jax.random.key(3))}, inputs.begin()
    if moments is not None:
        for observation in observations(environment, 8, seed=1):
            moments = inputs.observe(moments, observation)
        arrays["statistics"] = inputs.statistics(moments)
    agent = Agent.from_policy_arrays(algorithm, flatten(arrays), inputs)
    folder.mkdir(parents=True, exist_ok=True)
    made = run_folder.Run(folder, config)
    made.write_config()
    evaluation.save_policy(made, agent)
    return made


INPUTS = [
    ("limb", {}),
    ("limb", {"inputs": {"normaliser": "full"}, "agent": "sac"}),
    ("limb", {"inputs": {"normaliser": "symmetric"}, "network": "residual", "agent": "td3"}),
    ("canonical", {"inputs": {"normaliser": "symmetric"}, "mlp": {"layer_norm": True}}),
    ("ddpg", {"inputs": {"normaliser": "symmetric"}}),  # joint features: headings, quaternions
]
"""Methods and overrides: every normaliser, frame, agent and plain network, and both kinds of features."""
SMALL = {"mlp": {"hidden_size": 32}, "residual": {"hidden_size": 16}}


def small(overrides):
    """The same with small networks."""
    network = overrides.get("network", "mlp")
    return overrides | {network: SMALL[network] | overrides.get(network, {})}


def possible(task, method):
    """The method, or another where a robot in a plane has no frame of its own."""
    return "limb" if method == "canonical" and task in ("cheetah_run", "hopper_hop", "walker_run") else method
