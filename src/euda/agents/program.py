"""An algorithm, the augmentation in front of it and what its networks see → one compiled update.

One update is one jitted call. Which parts run (the actor learns at every second update) is decided on the
host, so each combination is its own compiled function without branches. Arrays that an update replaces are
donated, except the actor, which the NumPy policy reads in place.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

import jax
import jax.numpy as jnp
import numpy as np
import numpy.typing as npt

from euda.agents.inputs import AS_THEY_ARE, Inputs
from euda.agents.networks import Network
from euda.agents.packing import Packed, Packing
from euda.agents.settings import LearningConfig
from euda.replay.augmentation import Augmentation, unchanged
from euda.replay.buffer import Batch, Transition

Floats = npt.NDArray[np.float32]
State = Mapping[str, Any]
"""The learner's arrays by name: trees of parameters, of their optimisers and of targets, and `finite`."""
Metrics = dict[str, jax.Array]
Due = tuple[bool, bool]
"""Which of the slower parts an update includes: (actor, targets)."""
ACTOR, STATISTICS = "actor", "statistics"
"""The trees that acting needs."""


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
        """The trees at the beginning; the parameters of the actor are called 'actor'."""
        ...

    def update(
        self, state: State, batch: Transition, key: jax.Array, step: Any, *, actor: bool, targets: bool
    ) -> tuple[dict[str, Any], Metrics]:
        """The trees that change, and scalars; `step` is the environment's."""
        ...

    def mode(self, outputs: Any) -> Any:
        """The action without noise [..., m] of the actor's outputs, for NumPy or JAX arrays."""
        ...

    def sample(self, outputs: Floats, z: Floats, step: int) -> Floats:
        """An exploring action [..., m], within [-1, 1], of the actor's outputs and numbers N(0, 1), in NumPy."""
        ...


class _Compiled(NamedTuple):
    """An update compiled, and which of the packed arrays it takes and gives back."""

    donated: list[int]
    kept: list[int]
    changed: list[int]
    names: tuple[str, ...]
    """Of the scalars."""
    run: Callable[..., Any]
    """(arrays donated, arrays kept, batch, key, clock) → (arrays changed, scalars as one vector)."""


class Scalars(Mapping[str, float]):
    """The scalars of one update by name: one vector that stays on the device until somebody looks at it.

    One array instead of six: each that comes out of a compiled update, and each that is read, takes microseconds.
    """

    def __init__(self, names: tuple[str, ...], vector: jax.Array) -> None:
        self._names, self._vector = names, vector

    @functools.cached_property
    def _values(self) -> dict[str, float]:
        return dict(zip(self._names, np.asarray(self._vector).tolist(), strict=True))

    def __getitem__(self, name: str) -> float:
        return self._values[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)


class Program:
    """An algorithm with an augmentation and inputs in front, compiled once for each combination of parts."""

    def __init__(self, algorithm: Algorithm, augment: Augmentation = unchanged, inputs: Inputs = AS_THEY_ARE) -> None:
        self.algorithm, self.augment, self.inputs = algorithm, augment, inputs
        self._compiled: dict[Due, _Compiled] = {}
        self._packing: Packing | None = None
        self.forward = jax.jit(algorithm.actor.apply)

    def learn(self, state: State, batch: Batch, key: jax.Array, clock: Any, *, due: Due) -> Any:
        """The whole update, a pure function; `clock` holds the environment's step and the number of updates before."""
        step, count = clock[0], clock[1]
        for_batch, for_loss = jax.random.split(jax.random.fold_in(key, count))
        seen = self.augment(for_batch, batch)
        s, following = (self.inputs(state.get(STATISTICS), x) for x in (seen.observation, seen.next_observation))
        seen = seen._replace(observation=s, next_observation=following)
        changes, metrics = self.algorithm.update(state, seen, for_loss, step, actor=due[0], targets=due[1])
        losses = [value for name, value in metrics.items() if name.endswith("loss")]
        finite = functools.reduce(jnp.logical_and, map(jnp.isfinite, losses))
        changes["finite"] = metrics["finite"] = jnp.logical_and(state["finite"], finite)
        return changes, metrics

    @functools.cached_property
    def in_numpy(self) -> bool:
        """Whether the actor has a NumPy form."""
        network, observation = self.algorithm.actor, np.zeros(self.algorithm.features, np.float32)
        return network.apply_numpy(network.initialise(jax.random.key(0)), observation) is not None

    def __call__(self, state: Packed, batch: Batch, key: jax.Array, clock: Any, due: Due) -> tuple[Packed, Scalars]:
        """The state after one update, and its scalars."""
        if due not in self._compiled:
            self._compiled[due] = self._compile(state, batch, key, clock, due)
        parts, arrays = self._compiled[due], list(state.arrays)
        donated, kept = [arrays[i] for i in parts.donated], [arrays[i] for i in parts.kept]
        changes, scalars = parts.run(donated, kept, batch, key, clock)
        for i, array in zip(parts.changed, changes, strict=True):
            arrays[i] = array
        return Packed(state.packing, arrays), Scalars(parts.names, scalars)

    def packed(self, state: State) -> Packed:
        """The state in the few arrays that an update takes."""
        if isinstance(state, Packed):
            return state
        if self._packing is None:
            self._packing = Packing(state, apart=(ACTOR, STATISTICS))
        return Packed.of(self._packing, state)

    def _compile(self, state: Packed, batch: Batch, key: jax.Array, clock: Any, due: Due) -> _Compiled:
        packing = state.packing
        learn = jax.jit(functools.partial(self.learn, due=due))  # traced once for both calls of it here
        changes, metrics = jax.eval_shape(
            lambda arrays, *rest: learn(packing.unpack(arrays), *rest), state.arrays, batch, key, clock
        )
        changed, names = packing.holding(changes), tuple(sorted(metrics))
        donated = [i for i in changed if i not in packing.holding([ACTOR])]
        kept = [i for i in range(len(state.arrays)) if i not in donated]

        def run(of_donated: Sequence[Any], of_kept: Sequence[Any], *rest: Any) -> Any:
            arrays = dict(zip((*donated, *kept), (*of_donated, *of_kept), strict=True))
            before = packing.unpack(arrays)
            changes, metrics = learn(before, *rest)
            after = packing.pack(jnp, {**before, **changes})
            return [after[i] for i in changed], jnp.stack([metrics[name].astype(jnp.float32) for name in names])

        return _Compiled(donated, kept, changed, names, jax.jit(run, donate_argnums=0))


@functools.lru_cache(maxsize=16)
def program(algorithm: Algorithm, augment: Augmentation = unchanged, inputs: Inputs = AS_THEY_ARE) -> Program:
    """The program of an algorithm, an augmentation and inputs; equal ones share what is compiled."""
    return Program(algorithm, augment, inputs)
