"""Agent → returns: the mean return of episodes in environments of their own, without exploration noise.

The episodes of an evaluation are stepped together and the policy is asked once for all of them. Their
starts depend on the evaluation's seed and the training step only, so every run is judged on the same ones.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence

import jax
import jax.numpy as jnp
import numpy as np
import safetensors
import safetensors.numpy

from euda.agents.agent import Agent, Algorithm, Floats, Program
from euda.agents.graph import OnePoint, TwoPoints
from euda.agents.networks import Networks, mlp_networks
from euda.agents.segnn import segnn_networks
from euda.body import tasks
from euda.body.layout import Layout
from euda.config import AGENTS, named
from euda.errors import EudaError, InstabilityError
from euda.study import storage
from euda.study.environments import Environment, action_count, make_environment
from euda.study.run import Run
from euda.study.settings import RunConfig

Policy = Callable[[Floats], Floats]
"""Observations [B, dim] to actions [B, m]."""


def seeds(seed: int, step: int, episodes: int) -> list[int]:
    """The seeds of the episodes that judge every run at a training step."""
    return np.random.SeedSequence([seed, step]).generate_state(episodes).tolist()


class Evaluator:
    """Environments of its own, made once and used for every evaluation."""

    def __init__(self, config: RunConfig, episodes: int) -> None:
        self._environments = [make_environment(config) for _ in range(episodes)]
        self._steps = config.episode_steps
        self.unstable = 0
        """How many of the last episodes ended early because the simulation blew up; what they had counts."""

    def __call__(self, policy: Policy, episode_seeds: Sequence[int]) -> list[float]:
        """The return of one episode for each seed."""
        environments = self._environments[: len(episode_seeds)]
        observations = np.stack([e.reset(seed=seed)[0] for e, seed in zip(environments, episode_seeds, strict=True)])
        returns, under_way, self.unstable = [0.0] * len(environments), set(range(len(environments))), 0
        for _ in range(self._steps):
            actions = policy(observations)  # of all, so that no return depends on how long the others go on
            for i in sorted(under_way):
                try:
                    observations[i], reward, is_terminal, is_truncated, _ = environments[i].step(actions[i])
                except InstabilityError:
                    self.unstable += 1
                    under_way.remove(i)
                    continue
                returns[i] += float(reward)
                if is_terminal or is_truncated:
                    under_way.remove(i)
            if not under_way:
                break
        return returns


def make_networks(config: RunConfig, layout: Layout) -> Networks:
    """The makers of actor and critic of a run."""
    target = None if config.robot is not None else tasks.find(config.task).target
    if config.network == "segnn" and target is not None:
        return segnn_networks(TwoPoints(layout, target.limb), config.segnn)
    if config.network == "segnn-single":
        return segnn_networks(OnePoint(layout), config.segnn)
    return mlp_networks(config.mlp)


def make_algorithm(config: RunConfig, layout: Layout, actions: int) -> Algorithm:
    """The learning rule of a run for observations of a layout and so many actions."""
    networks = make_networks(config, layout)
    return named(AGENTS[config.agent].rule).make(layout.dim, actions, config.learning, networks)


def save_policy(run: Run, agent: Agent) -> None:
    """Store the actor alone, beside the configuration."""
    content = safetensors.numpy.save({"actor": np.array(agent.state["actor"])})
    storage.write_atomically(run.policy, content)


def load_policy(run: Run, environment: Environment) -> tuple[Policy, int]:
    """The policy of a run without noise, and the step it is from."""
    found, _ = run.newest_checkpoint()
    if found is not None:
        actor, step = found.arrays.get("agent/actor"), found.step
    elif run.policy.is_file():
        actor, step = _stored_actor(run), run.config.steps
    else:
        raise EudaError(f"the run {str(run.folder)!r} has no checkpoint yet: train it a little longer")
    algorithm = make_algorithm(run.config, environment.layout, action_count(environment))
    expected = sum(int(np.prod(shape)) for shape in algorithm.actor.shapes.values())
    if actor is None or actor.shape != (expected,) or actor.dtype != np.float32:
        raise EudaError(f"the policy in {str(run.folder)!r} does not fit its configuration")
    return Agent(Program(algorithm), {"actor": jnp.asarray(actor)}, jax.random.key(0)).act, step


def _stored_actor(run: Run) -> np.ndarray | None:
    with storage.readable_errors(run.policy, "read"):
        content = run.policy.read_bytes()
    try:
        return safetensors.numpy.load(content).get("actor")
    except safetensors.SafetensorError as error:
        raise EudaError(f"{str(run.policy)!r} is damaged: {error}") from None


def evaluate(run: Run, episodes: int, seed: int | None = None) -> tuple[int, list[float]]:
    """The step of a run's newest policy and its returns; without a seed on the episodes of training's evaluation."""
    if episodes < 1:
        raise EudaError(f"episodes must be at least 1, not {episodes}")
    config = run.config
    evaluator = Evaluator(config, min(episodes, 10))
    policy, step = load_policy(run, evaluator._environments[0])
    chosen = seeds(config.evaluation.seed if seed is None else seed, step, episodes)
    groups = [chosen[i : i + 10] for i in range(0, episodes, 10)]
    returns, unstable = [], 0
    for group in groups:
        returns += evaluator(policy, group)
        unstable += evaluator.unstable
    warn_of_unstable(unstable, episodes)
    return step, returns


def warn_of_unstable(count: int, episodes: int) -> None:
    """Say in how many episodes the simulation blew up, if in any."""
    if count:
        said = "in %d of %d episodes the simulation blew up: they ended there, and what they had counts"
        logging.getLogger("euda").warning(said, count, episodes)
