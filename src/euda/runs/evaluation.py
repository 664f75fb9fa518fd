"""Agent → returns: the mean return of episodes in environments of their own, without exploration noise.

The episodes of an evaluation are stepped together and the policy is asked once for all of them. Their
starts depend on the evaluation's seed and the training step only, so every run is judged on the same ones.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import safetensors.numpy

from euda.agents.agent import Agent
from euda.agents.averaging import images
from euda.agents.input_settings import FRAMES, NORMALISERS
from euda.agents.inputs import Inputs
from euda.agents.network_settings import NETWORKS
from euda.agents.networks import Networks
from euda.agents.program import Algorithm, Floats
from euda.agents.settings import AGENTS
from euda.body.layout import Layout
from euda.errors import EudaError, InstabilityError, unknown
from euda.lookup import loaded
from euda.replay.settings import FINITE, GROUPS
from euda.runs import atomic_files, checkpoint, run_folder
from euda.runs.config import RunConfig
from euda.runs.environments import Environment, action_count, hold, make_environment
from euda.runs.run_folder import Run
from euda.symmetry.discovery import symmetries
from euda.symmetry.element import Element

TOGETHER = 10
"""Episodes that are stepped at the same time."""
_LOG = logging.getLogger("euda")
Policy = Callable[[Floats], Floats]
"""Observations [B, dim] to actions [B, m]."""


def seeds(seed: int, step: int, episodes: int) -> list[int]:
    """The seeds of the episodes that judge every run at a training step."""
    return np.random.SeedSequence([seed, step]).generate_state(episodes).tolist()


Begin = Callable[[Any, int], np.ndarray]
"""(environment, seed) → the first observation of an episode."""


def reset(environment: Environment, seed: int) -> np.ndarray:
    """Begin the episode of a seed as it is."""
    return environment.reset(seed=seed)[0]


class Evaluator:
    """Environments of its own, made once and used for every evaluation."""

    def __init__(self, config: RunConfig, episodes: int) -> None:
        self.environments = [make_environment(config) for _ in range(episodes)]
        self._decisions, self._repeat = config.episode_steps // config.action_repeat, config.action_repeat
        self.unstable = 0
        """How many of the last episodes ended early because the simulation blew up; what they had counts."""

    def __call__(self, policy: Policy, episode_seeds: Sequence[int], begin: Begin = reset) -> list[float]:
        """The return of one episode for each seed."""
        environments = self.environments[: len(episode_seeds)]
        observations = np.stack([begin(e, seed) for e, seed in zip(environments, episode_seeds, strict=True)])
        returns, under_way, self.unstable = [0.0] * len(environments), set(range(len(environments))), 0
        for _ in range(self._decisions):
            actions = policy(observations)  # of all, so that no return depends on how long the others go on
            for i in sorted(under_way):
                try:
                    observations[i], reward, *ended = hold(environments[i], actions[i], self._repeat)
                except InstabilityError:
                    self.unstable += 1
                    under_way.remove(i)
                    continue
                returns[i] += reward
                if any(ended):
                    under_way.remove(i)
            if not under_way:
                break
        return returns


def make_networks(config: RunConfig, layout: Layout) -> Networks:
    """The makers of actor and critic of a run."""
    return loaded(NETWORKS[config.network].make)(config.architecture, layout, config.target)


def make_algorithm(config: RunConfig, layout: Layout, actions: int) -> Algorithm:
    """The learning rule of a run for observations of a layout and so many actions."""
    networks = make_networks(config, layout)
    return loaded(AGENTS[config.agent].rule).make(layout.dim, actions, config.learning, networks)


def elements_in_use(config: RunConfig, environment: Any) -> tuple[Element, ...]:
    """The elements of the robot's finite group that a run names."""
    if not config.elements:
        return ()
    found = {element.name: element for element in symmetries(environment.model)}
    for name in config.elements:
        if name not in found:
            raise unknown(f"symmetry of {config.task}", name, found)
    return tuple(found[name] for name in config.elements)


def drawn_elements(config: RunConfig, environment: Any) -> tuple[str, tuple[Element, ...]]:
    """The group that an augmentation draws from, and its elements: with the few yaws in use, where not all are."""
    elements = elements_in_use(config, environment)
    if not config.yaws or not GROUPS[config.group].turns:
        return config.group, elements
    angles = [2 * np.pi * k / config.yaws for k in range(config.yaws)]
    identity = symmetries(environment.model).elements[0]
    turned = [element.turned(angle) if angle else element for element in (identity, *elements) for angle in angles]
    return FINITE, tuple(turned[1:])


def make_inputs(config: RunConfig, layout: Layout, elements: Sequence[Element] = ()) -> Inputs:
    """What the networks of a run see of observations of a layout; normalised alike for all elements in use."""
    make_frame, make_normaliser = FRAMES[config.frame].make, NORMALISERS[config.inputs.normaliser]
    frame = None if make_frame is None else loaded(make_frame)(layout, config.target)
    normaliser = None
    if make_normaliser is not None:
        maps = [element.on_observations(layout) for element in elements]
        seen = maps if frame is None else [frame.seen(one) for one in maps]
        normaliser = loaded(make_normaliser)(layout, config.inputs.clip, is_turned=frame is not None, maps=seen)
    return Inputs(frame, normaliser, images(layout, elements) if config.average_actor else ())


def refuse_unfit(config: RunConfig) -> None:
    """Refuse what only the observations themselves can tell, before anything of a run is written."""
    if FRAMES[config.frame].make is not None or config.direction is not None:
        make_inputs(config, make_environment(config).layout)


def save_policy(run: Run, agent: Agent) -> None:
    """Store what acting needs, beside the configuration."""
    atomic_files.write_atomically(run.policy, safetensors.numpy.save(agent.policy_arrays()))


def load_policy(run: Run, environment: Environment) -> tuple[Policy, int]:
    """The policy of a run without noise, and the step it is from; says which files are damaged if others are used."""
    agent, step = load_agent(run, environment)
    return _checked(agent.act, environment.layout.dim), step


def load_agent(run: Run, environment: Environment) -> tuple[Agent, int]:
    """The newest agent of a run, which can only act, and the step it is from."""
    arrays, step = _newest_policy(run)
    layout = environment.layout
    algorithm = make_algorithm(run.config, layout, action_count(environment))
    try:
        inputs = make_inputs(run.config, layout, elements_in_use(run.config, environment))
        return Agent.from_policy_arrays(algorithm, arrays, inputs), step
    except EudaError as error:
        raise EudaError(f"the policy in {str(run.folder)!r} does not fit its configuration: {error}") from None


def _checked(act: Policy, dim: int) -> Policy:
    """A policy that says what is wrong with an observation instead of answering it with nonsense."""

    def policy(observations: Floats) -> Floats:
        array = np.asarray(observations)
        if array.dtype.kind not in "fiu" or array.ndim not in (1, 2) or array.shape[-1] != dim:
            raise EudaError(
                f"this policy takes observations of {dim} numbers, [{dim}] or [B, {dim}],"
                f" not an array of shape {list(array.shape)} and type {array.dtype}"
            )
        if not np.isfinite(array).all():
            wrong = sorted({int(entry) for entry in np.argwhere(~np.isfinite(array))[:, -1]})
            named = ", ".join([*map(str, wrong[:5]), *(["…"] if len(wrong) > 5 else [])])
            raise EudaError(f"this policy takes finite observations: not finite are the entries {named} of {dim}")
        return act(array.astype(np.float32, copy=False))

    return policy


def _newest_policy(run: Run) -> tuple[dict[str, np.ndarray], int]:
    """What is stored of the newest policy, and its step: in the newest checkpoint, or in the file of a finished run."""
    is_kept = run.policy.is_file()
    try:
        found, damaged = run.newest_checkpoint()
    except EudaError:
        if not is_kept or not run_folder.status(run).is_finished:
            raise
        found, damaged = None, []  # nothing goes on from its checkpoints, but the run has come to its end
    arrays, reason = _stored_policy(run) if is_kept else ({}, None)
    if found is None and not is_kept:
        raise EudaError(f"the run {str(run.folder)!r} has no checkpoint yet: train it a little longer")
    if found is None and reason:
        raise EudaError(reason)
    for sentence in damaged:
        _LOG.warning("%s", sentence)
    if found is None:
        return arrays, run.config.steps
    if reason:
        _LOG.warning("%s", f"{reason}; the checkpoint of step {found.step} is used instead")
    return checkpoint.without_prefix("agent", found.arrays), found.step


def _stored_policy(run: Run) -> tuple[dict[str, np.ndarray], str | None]:
    """The arrays in the policy file of a finished run; or, if it is damaged, a sentence that says so."""
    try:
        return checkpoint.arrays_of(run.policy, atomic_files.read_bytes(run.policy)), None
    except atomic_files.StorageError as error:
        return {}, str(error)


def evaluate(run: Run, episodes: int, seed: int | None = None) -> tuple[int, list[float]]:
    """The step of a run's newest policy and its returns; without a seed on the episodes of training's evaluation."""
    if episodes < 1:
        raise EudaError(f"episodes must be at least 1, not {episodes}")
    evaluator = Evaluator(run.config, min(episodes, TOGETHER))
    policy, step = load_policy(run, evaluator.environments[0])
    return step, returns_of(evaluator, policy, run_seeds(run, seed, step, episodes))


def run_seeds(run: Run, seed: int | None, step: int, episodes: int) -> list[int]:
    """The seeds of the episodes that judge a run's policy of a step; of training's own evaluation without a seed."""
    return seeds(run.config.evaluation.seed if seed is None else seed, step, episodes)


def returns_of(evaluator: Evaluator, policy: Policy, chosen: Sequence[int], begin: Begin = reset) -> list[float]:
    """The return of an episode for each seed, as many at once as there are environments."""
    returns, unstable, together = list[float](), 0, len(evaluator.environments)
    for i in range(0, len(chosen), together):
        returns += evaluator(policy, chosen[i : i + together], begin)
        unstable += evaluator.unstable
    warn_of_unstable(unstable, len(chosen))
    return returns


def warn_of_unstable(count: int, episodes: int) -> None:
    """Say in how many episodes the simulation blew up, if in any."""
    if count:
        said = "in %d of %d episodes the simulation blew up: they ended there, and what they had counts"
        _LOG.warning(said, count, episodes)
