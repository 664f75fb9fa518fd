"""Transition → Agent: an immutable value with six verbs: initialise, observe, explore, act, update, anew.

What distinguishes DDPG from SAC is an `Algorithm`: pure functions on a dict of trees of arrays, compiled by a
`Program`. Everything else is here once: acting, what the networks see of an observation, the NumPy copy of the actor,
storing.

After `new, metrics = agent.update(...)` only `new` may learn on, because the arrays that an update replaces are
donated. The actor is not donated: the NumPy policy reads it in place, without a copy, and stays valid as long as it is
held.

All randomness of an update comes from (seed, number of updates), so nothing of it needs storing. Where observations
are normalised, `observe` adds one to the statistics, and the next update is the first that sees it.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import numpy.typing as npt

from euda.agents.inputs import AS_THEY_ARE, Inputs
from euda.agents.named_arrays import fill, fill_flat, flatten
from euda.agents.noise import Noise
from euda.agents.normaliser import Moments
from euda.agents.program import ACTOR, STATISTICS, Algorithm, Floats, Program, Scalars, State, program
from euda.replay.augmentation import Augmentation, unchanged
from euda.replay.buffer import Batch

_MOMENTS = "moments"


@dataclasses.dataclass(frozen=True)
class Agent:
    """The learner's arrays and what is needed to go on; see the module's text."""

    program: Program
    state: State
    key: jax.Array
    """From the seed; folded with the number of updates at each of them."""
    updates: int = 0
    moments: Moments | None = None
    """Sums over the observations so far, on the host; None where they are not normalised."""

    @staticmethod
    def initialise(
        algorithm: Algorithm, seed: int, augment: Augmentation = unchanged, inputs: Inputs = AS_THEY_ARE
    ) -> Agent:
        """A fresh agent; the same seed gives the same bytes."""
        first, key = jax.random.split(jax.random.key(seed))
        state = _on_device(_fresh(algorithm, inputs, first))
        return Agent(program(algorithm, augment, inputs), state, key, 0, inputs.begin())

    # -- acting ----------------------------------------------------------------------------------------

    @functools.cached_property
    def policy(self) -> Callable[[Floats], Floats]:
        """What the networks see, [dim] or [B, dim], to the actor's outputs, in NumPy if the network has such a form."""
        network, params = self.program.algorithm.actor, self.state[ACTOR]
        if not self.program.in_numpy:
            return functools.partial(_forward, self.program.forward, params)
        return functools.partial(network.apply_numpy, jax.tree.map(np.asarray, params))  # type: ignore[return-value]

    def act(self, observations: Floats) -> Floats:
        """The best actions known, [m] for one observation [dim], [B, m] for many [B, dim]."""
        return self.program.algorithm.mode(self._outputs(observations))

    def explore(
        self, observation: Floats, generator: np.random.Generator, step: int, noise: Noise | None = None
    ) -> Floats:
        """An action to learn from at the environment's step `step`, within [-1, 1]: random at first, then noisy.

        Without a `noise` actions are independent of each other, and there may be many observations [B, dim].
        """
        algorithm = self.program.algorithm
        shape = (*observation.shape[:-1], algorithm.actions)
        if step < algorithm.config.exploration_steps:
            return noise.uniform(generator) if noise else generator.uniform(-1.0, 1.0, shape).astype(np.float32)
        if noise and (interruption := noise.instead(generator)) is not None:
            return interruption
        z = noise.normal(generator) if noise else generator.standard_normal(shape, np.float32)
        return algorithm.sample(self._outputs(observation), z, step)

    def _outputs(self, observations: Floats) -> Floats:
        return self.program.inputs.ask(self.state.get(STATISTICS), self.policy, observations)

    @property
    def acting(self) -> dict[str, Any]:
        """The trees of arrays that acting alone needs."""
        return {name: self.state[name] for name in (ACTOR, STATISTICS) if name in self.state}

    def answer(self, arrays: State, observations: Any) -> Any:
        """`act` as a pure function of the arrays in `acting` and of JAX's observations [B, dim]: what exports trace."""
        algorithm = self.program.algorithm
        actor = functools.partial(algorithm.actor.apply, arrays[ACTOR])
        return algorithm.mode(self.program.inputs.ask(arrays.get(STATISTICS), actor, observations))

    # -- learning --------------------------------------------------------------------------------------

    def observe(self, observation: Floats) -> Agent:
        """The agent that has seen one more observation [dim] of the environment; nothing else changes."""
        if self.moments is None:
            return self
        moments = self.program.inputs.observe(self.moments, observation)
        return self._with_policy(Agent(self.program, self.state, self.key, self.updates, moments))

    def anew(self, seed: int) -> Agent:
        """Fresh networks and optimisers; what is known of observations and the number of updates stay.

        What networks learn from their first data they may never unlearn (Nikishin et al., 2022, the primacy bias).
        """
        kept = {name: self.state[name] for name in (STATISTICS, "finite") if name in self.state}
        fresh = Agent.initialise(self.program.algorithm, seed, inputs=self.program.inputs)
        return Agent(self.program, {**fresh.state, **kept}, fresh.key, self.updates, self.moments)

    def update(self, batch: Batch, step: int) -> tuple[Agent, Scalars]:
        """The agent after learning from `batch` at the environment's step `step`, and scalars that stay on the device.

        `metrics["finite"]` is 0 from the first loss on that is not a number; check it now and then.
        """
        config = self.program.algorithm.config
        due = (self.updates % config.actor_every == 0, self.updates % config.target_every == 0)
        clock = np.array((step, self.updates), np.int32)
        state = self.program.packed(self.state)
        if (statistics := self.program.inputs.statistics(self.moments)) is not None:
            state = state.with_whole(STATISTICS, statistics)
        state, metrics = self.program(state, batch, self.key, clock, due)
        agent = Agent(self.program, state, self.key, self.updates + 1, self.moments)
        return (agent if due[0] else self._with_policy(agent)), metrics

    def _with_policy(self, other: Agent) -> Agent:
        """The other agent, which has the same actor, with the copy of it that was made for this one."""
        if "policy" in self.__dict__:
            other.__dict__["policy"] = self.__dict__["policy"]
        return other

    # -- storing ---------------------------------------------------------------------------------------

    def state_dict(self) -> dict[str, npt.NDArray]:
        """Everything that a checkpoint needs, as named arrays (copies)."""
        return flatten({**self.state, **_stored(self.key, self.updates, self.moments)})

    @staticmethod
    def from_state_dict(
        algorithm: Algorithm,
        arrays: Mapping[str, npt.NDArray],
        augment: Augmentation = unchanged,
        inputs: Inputs = AS_THEY_ARE,
    ) -> Agent:
        """The agent that `state_dict` described; names, shapes and types must be those of `algorithm` and `inputs`."""
        key = jax.random.key(0)
        state = fill({**_fresh(algorithm, inputs, key), **_stored(key, 0, inputs.begin())}, arrays)
        key, updates = jax.random.wrap_key_data(jnp.array(state.pop("key"))), int(state.pop("updates"))
        moments = state.pop(_MOMENTS, None)
        return Agent(program(algorithm, augment, inputs), _on_device(state), key, updates, moments)

    def policy_arrays(self) -> dict[str, npt.NDArray]:
        """What acting alone needs of it, as named arrays (copies)."""
        return flatten(self.acting)

    @staticmethod
    def from_policy_arrays(
        algorithm: Algorithm, arrays: Mapping[str, npt.NDArray], inputs: Inputs = AS_THEY_ARE
    ) -> Agent:
        """An agent that can only act, from `policy_arrays` or from more; also from the one vector of older runs."""
        actor = algorithm.actor.initialise(jax.random.key(0))
        state = {ACTOR: actor, **_statistics(inputs, inputs.begin())}
        names = flatten(state).keys()
        if ACTOR in arrays.keys() - names:
            state = {ACTOR: fill_flat(actor, arrays[ACTOR])}
        else:
            state = fill(state, {name: arrays[name] for name in names & arrays.keys()})
        return Agent(program(algorithm, unchanged, inputs), _on_device(state), jax.random.key(0))


jax.tree_util.register_dataclass(Agent, data_fields=["state", "key", "moments"], meta_fields=["program", "updates"])


def _fresh(algorithm: Algorithm, inputs: Inputs, key: jax.Array) -> dict[str, Any]:
    return {**algorithm.initialise(key), **_statistics(inputs, inputs.begin()), "finite": np.array(True)}


def _statistics(inputs: Inputs, moments: Moments | None) -> dict[str, Any]:
    statistics = inputs.statistics(moments)
    return {} if statistics is None else {STATISTICS: statistics}


def _stored(key: jax.Array, updates: int, moments: Moments | None) -> dict[str, Any]:
    """What a checkpoint has beside the state."""
    sums = {} if moments is None else {_MOMENTS: moments}
    return {"key": jax.random.key_data(key), "updates": np.array(updates, np.int64), **sums}


def _on_device(state: Mapping[str, Any]) -> dict[str, Any]:
    """Copies of all arrays: parameters and their targets begin as the same ones, and an update donates both.

    Statistics stay on the host, where every action needs them.
    """
    return {name: tree if name == STATISTICS else jax.tree.map(jnp.array, tree) for name, tree in state.items()}


def _forward(forward: Callable[..., Any], params: Any, observations: Floats) -> Floats:
    """The actor's outputs through a jitted call, for networks without a NumPy form."""
    outputs = np.asarray(forward(params, np.atleast_2d(observations)))
    return outputs if observations.ndim > 1 else outputs[0]
