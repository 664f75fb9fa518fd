"""Transition → Agent: an immutable value with four verbs: initialise, explore, act, update.

What distinguishes DDPG from SAC is an `Algorithm`: pure functions on a dict of flat arrays. Everything else
is here once: compiling, the augmentation in front of the update, the NumPy copy of the actor, storing.

One update is one jitted call. Which parts run (the actor learns at every second update) is decided on the
host, so each combination is its own compiled function without branches. Arrays that an update replaces are
donated: after `new, metrics = agent.update(...)` only `new` may learn on. The actor is not donated: the
NumPy policy reads it in place, without a copy, and stays valid as long as it is held.

All randomness of an update comes from (seed, number of updates), so nothing of it needs storing.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Mapping
from typing import Any, Protocol

import jax
import jax.numpy as jnp
import numpy as np
import numpy.typing as npt

from euda.agents.networks import Network, size, unravel
from euda.config import LearningConfig
from euda.errors import EudaError
from euda.replay.augmentation import Augmentation, unchanged
from euda.replay.buffer import Transition

Floats = npt.NDArray[np.float32]
State = Mapping[str, Any]
"""The learner's arrays by name: flat parameter vectors, Adam's moments, targets, and `finite`."""
Metrics = dict[str, jax.Array]
Due = tuple[bool, bool]
"""Which of the slower parts an update includes: (actor, targets)."""
_ACTOR = "actor"


class Algorithm(Protocol):
    """A learning rule: pure functions of arrays, hashable."""

    @property
    def config(self) -> LearningConfig: ...
    @property
    def actor(self) -> Network: ...
    @property
    def features(self) -> int: ...
    @property
    def actions(self) -> int: ...

    def initialise(self, key: jax.Array) -> dict[str, Any]:
        """The arrays at the beginning; one of them is called 'actor'."""
        ...

    def update(
        self, state: State, batch: Transition, key: jax.Array, step: Any, count: Any, *, actor: bool, targets: bool
    ) -> tuple[dict[str, Any], Metrics]:
        """The arrays that change, and scalars; `step` is the environment's, `count` the updates before this one."""
        ...

    def mode(self, outputs: Any) -> Any:
        """The action without noise [..., m] of the actor's outputs, for NumPy or JAX arrays."""
        ...

    def sample(self, outputs: Floats, generator: np.random.Generator, step: int) -> Floats:
        """An exploring action [..., m], within [-1, 1], of the actor's outputs, in NumPy."""
        ...


class Program:
    """An algorithm with an augmentation in front, compiled once for each combination of parts."""

    def __init__(self, algorithm: Algorithm, augment: Augmentation = unchanged) -> None:
        self.algorithm, self.augment = algorithm, augment
        self._compiled: dict[Due, tuple[tuple[str, ...], Callable[..., Any]]] = {}
        actor = algorithm.actor
        self.forward = jax.jit(lambda flat, observations: actor.apply(unravel(actor, flat), observations))

    def learn(self, donated: State, kept: State, batch: Transition, key: jax.Array, clock: Any, *, due: Due) -> Any:
        """The whole update, a pure function; `clock` holds the environment's step and the number of updates before."""
        state = {**donated, **kept}
        step, count = clock[0], clock[1]
        for_batch, for_loss = jax.random.split(jax.random.fold_in(key, count))
        batch = self.augment(for_batch, batch)
        changes, metrics = self.algorithm.update(state, batch, for_loss, step, count, actor=due[0], targets=due[1])
        losses = [value for name, value in metrics.items() if name.endswith("loss")]
        finite = functools.reduce(jnp.logical_and, map(jnp.isfinite, losses))
        changes["finite"] = metrics["finite"] = jnp.logical_and(state["finite"], finite)
        return changes, metrics

    @functools.cached_property
    def in_numpy(self) -> bool:
        """Whether the actor has a NumPy form."""
        network, observation = self.algorithm.actor, np.zeros(self.algorithm.features, np.float32)
        return network.apply_numpy(unravel(network, np.zeros(size(network), np.float32)), observation) is not None

    def __call__(
        self, state: State, batch: Transition, key: jax.Array, clock: Any, due: Due
    ) -> tuple[dict[str, Any], Metrics]:
        """The state after one update, and its scalars."""
        if due not in self._compiled:
            self._compiled[due] = self._compile(state, batch, key, clock, due)
        donate, compiled = self._compiled[due]
        donated = {name: state[name] for name in donate}
        kept = {name: value for name, value in state.items() if name not in donated}
        changes, metrics = compiled(donated, kept, batch, key, clock)
        return {**state, **changes}, metrics

    def _compile(
        self, state: State, batch: Transition, key: jax.Array, clock: Any, due: Due
    ) -> tuple[tuple[str, ...], Callable[..., Any]]:
        learn = functools.partial(self.learn, due=due)
        changes, _ = jax.eval_shape(learn, {}, state, batch, key, clock)
        return tuple(sorted(set(changes) - {_ACTOR})), jax.jit(learn, donate_argnums=0)


@functools.lru_cache(maxsize=16)
def program(algorithm: Algorithm, augment: Augmentation = unchanged) -> Program:
    """The program of an algorithm and an augmentation; equal ones share what is compiled."""
    return Program(algorithm, augment)


@dataclasses.dataclass(frozen=True)
class Agent:
    """The learner's arrays and what is needed to go on; see the module's text."""

    program: Program
    state: State
    key: jax.Array
    """From the seed; folded with the number of updates at each of them."""
    updates: int = 0

    @staticmethod
    def initialise(algorithm: Algorithm, seed: int, augment: Augmentation = unchanged) -> Agent:
        """A fresh agent; the same seed gives the same bytes."""
        first, key = jax.random.split(jax.random.key(seed))
        state = {name: jnp.array(value) for name, value in algorithm.initialise(first).items()}
        return Agent(program(algorithm, augment), {**state, "finite": jnp.array(True)}, key)

    # -- acting ----------------------------------------------------------------------------------------

    @functools.cached_property
    def policy(self) -> Callable[[Floats], Floats]:
        """Observations [dim] or [B, dim] to the actor's outputs, in NumPy if the network has such a form."""
        network, flat = self.program.algorithm.actor, self.state[_ACTOR]
        if not self.program.in_numpy:
            return functools.partial(_forward, self.program.forward, flat)
        return functools.partial(network.apply_numpy, unravel(network, np.asarray(flat)))  # type: ignore[return-value]

    def act(self, observations: Floats) -> Floats:
        """The best actions known, [m] for one observation [dim], [B, m] for many [B, dim]."""
        return self.program.algorithm.mode(self.policy(observations))

    def explore(self, observation: Floats, generator: np.random.Generator, step: int) -> Floats:
        """An action to learn from at the environment's step `step`, within [-1, 1]: random at first, then noisy."""
        algorithm = self.program.algorithm
        if step < algorithm.config.exploration_steps:
            shape = (*observation.shape[:-1], algorithm.actions)
            return generator.uniform(-1.0, 1.0, shape).astype(np.float32)
        return algorithm.sample(self.policy(observation), generator, step)

    # -- learning --------------------------------------------------------------------------------------

    def update(self, batch: Transition, step: int) -> tuple[Agent, Metrics]:
        """The agent after learning from `batch` at the environment's step `step`, and scalars that stay on the device.

        `metrics["finite"]` is false from the first loss on that is not a number; check it now and then.
        """
        config = self.program.algorithm.config
        due = (self.updates % config.actor_every == 0, self.updates % config.target_every == 0)
        clock = np.array((step, self.updates), np.int32)
        state, metrics = self.program(self.state, batch, self.key, clock, due)
        agent = Agent(self.program, state, self.key, self.updates + 1)
        if not due[0] and "policy" in self.__dict__:
            agent.__dict__["policy"] = self.__dict__["policy"]
        return agent, metrics

    # -- storing ---------------------------------------------------------------------------------------

    def state_dict(self) -> dict[str, npt.NDArray]:
        """Everything that a checkpoint needs, as flat named arrays (copies)."""
        arrays = {name: np.array(value) for name, value in self.state.items()}
        return {**arrays, "key": np.array(jax.random.key_data(self.key)), "updates": np.array(self.updates, np.int64)}

    @staticmethod
    def from_state_dict(
        algorithm: Algorithm, arrays: Mapping[str, npt.NDArray], augment: Augmentation = unchanged
    ) -> Agent:
        """The agent that `state_dict` described; names and shapes must be those of `algorithm`."""
        fresh = {**algorithm.initialise(jax.random.key(0)), "finite": np.array(True)}
        wanted = {**{name: np.shape(value) for name, value in fresh.items()}, "key": (2,), "updates": ()}
        found = {name: np.shape(value) for name, value in arrays.items()}
        if wanted != found:
            wrong = sorted(name for name in wanted.keys() | found.keys() if wanted.get(name) != found.get(name))
            raise EudaError(f"the stored agent does not fit: {', '.join(wrong)} missing, unknown or of another shape")
        state = {name: jnp.array(arrays[name]) for name in fresh}
        key = jax.random.wrap_key_data(jnp.array(arrays["key"]))
        return Agent(program(algorithm, augment), state, key, int(arrays["updates"]))


jax.tree_util.register_dataclass(Agent, data_fields=["state", "key"], meta_fields=["program", "updates"])


def _forward(forward: Callable[..., Any], flat: Any, observations: Floats) -> Floats:
    """The actor's outputs through a jitted call, for networks without a NumPy form."""
    outputs = np.asarray(forward(flat, np.atleast_2d(observations)))
    return outputs if observations.ndim > 1 else outputs[0]
