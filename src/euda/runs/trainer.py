"""A run in memory: act, step, store, sample, update; and everything that the future depends on.

All of it is in `Trainer.checkpoint`, and all of it is exact: MuJoCo's integration state, the streams of random
numbers, the agent's arrays, the replay's counters (its arrays live in files), sums that are still open, the size
of the metrics file. So a run that was stopped anywhere and goes on ends in the same bytes as one that was never
stopped.
"""

from __future__ import annotations

import dataclasses
import math
import time
from typing import Any

import numpy as np

from euda.agents.agent import Agent
from euda.agents.noise import Noise
from euda.agents.program import Scalars, program
from euda.agents.settings import NOISES
from euda.errors import InstabilityError
from euda.lookup import loaded
from euda.replay.augmentation import make_augmentation
from euda.replay.buffer import ReplayBuffer
from euda.runs import checkpoint, evaluation, schedule, share_bandit
from euda.runs.checkpoint import Checkpoint
from euda.runs.config import RunConfig
from euda.runs.environments import hold
from euda.runs.marking import Marker
from euda.runs.run_folder import Run

_FEW, _SELDOM = 10, 0.1  # so many episodes, or such a share of all, may be cut because the simulation blew up


class Averages:
    """Means of the updates' scalars since the last record, summed in the order of the updates.

    Scalars stay on the device until they are needed, so that looking at them does not hold up the loop.
    """

    def __init__(self, sums: dict[str, list[float]] | None = None) -> None:
        self._sums: dict[str, list[float]] = {name: [float(s), int(n)] for name, (s, n) in (sums or {}).items()}
        if any(count < 1 for _, count in self._sums.values()):
            raise ValueError("averages of no updates")
        self._pending: list[Scalars] = []

    def add(self, metrics: Scalars) -> None:
        """Take the scalars of one update."""
        self._pending.append(metrics)

    def sums(self) -> dict[str, list[float]]:
        """Sum and count by name; reads everything that is pending."""
        for metrics in self._pending:
            for name, value in metrics.items():
                if name != "finite":
                    pair = self._sums.setdefault(name, [0.0, 0])
                    pair[0] += value
                    pair[1] += 1
        self._pending.clear()
        return self._sums

    def take(self) -> dict[str, float]:
        """The means, and a fresh start."""
        means = {name: total / count for name, (total, count) in sorted(self.sums().items())}
        self._sums = {}
        return means


def spare_slots(config: RunConfig) -> int:
    """How many observations the replay keeps beyond its capacity: two checkpoints back must stay readable.

    An episode's first observation takes a slot of its own.
    """
    episodes = config.checkpoint_every // (1 if config.ends_early else config.episode_steps)
    return 2 * (config.checkpoint_every + episodes + 2)


class Trainer:
    """A run in memory, between two steps."""

    def __init__(self, run_: Run, found: Checkpoint | None) -> None:
        config = run_.config
        self.run, self.config = run_, config
        self.environment = evaluation.make_environment(config)
        layout, actions = self.environment.layout, evaluation.action_count(self.environment)
        elements = evaluation.elements_in_use(config, self.environment)
        self._marker = Marker(config, elements) if config.marks_transitions else None
        self._algorithm, self._inputs = (
            evaluation.make_algorithm(config, layout, actions),
            evaluation.make_inputs(config, layout, elements),
        )
        make_noise = NOISES[config.learning.noise]
        self.noise: Noise | None = None if make_noise is None else loaded(make_noise)(actions)
        group, drawn = evaluation.drawn_elements(config, self.environment)
        shares = share_bandit.SHARES if config.augmentation.chooses_share else (config.augmentation.share,)
        self._augmentations = {
            share: make_augmentation(
                dataclasses.replace(config.augmentation, share=share), layout, group, drawn, config.marks_transitions
            )
            for share in shares
        }
        self._choose_share(found)
        self.evaluator = evaluation.Evaluator(config, config.evaluation.episodes)
        replay = config.replay
        self.buffer = ReplayBuffer(
            layout.dim,
            actions,
            replay.capacity,
            n_step=replay.n_step,
            discount=replay.discount,
            recency=replay.recency,
            marked=config.marks_transitions,
            slack=spare_slots(config),
            expected=2 * config.steps + 2,  # every step might begin an episode
            folder=run_.replay,
            state=None if found is None else checkpoint.without_prefix("replay", found.arrays),
        )
        self._restore(found) if found is not None else self._begin()
        self._started = time.perf_counter() - self._seconds_before

    def _begin(self) -> None:
        """The state before the first step. Each use of randomness has its own stream, all from the run's seed."""
        resets, exploring, sampling = np.random.SeedSequence(self.config.seed).spawn(3)
        self.step, self.episode, self.episode_return, self._seconds_before = 0, 0, 0.0, 0.0
        self.unstable = 0
        self.exploring, self.sampling = (
            np.random.Generator(np.random.PCG64(exploring)),
            np.random.Generator(np.random.PCG64(sampling)),
        )
        augment = self._augmentations[self.share]
        self.agent = Agent.initialise(self._algorithm, self.config.seed, augment, self._inputs)
        self.behind: Agent | None = None
        self.averages, self.metrics_size, self.saved_at = Averages(), 0, None
        self._start_episode(seed=int(resets.generate_state(1)[0]))

    def _restore(self, found: Checkpoint) -> None:
        """The state at a checkpoint."""
        values, arrays = found.values, found.arrays  # from a file: each is made what it must be, or refused here
        self.step, self.episode = found.step, int(values["episode"])
        self.episode_return, self._seconds_before = float(values["episode_return"]), float(values["seconds"])
        self.unstable = int(values.get("unstable", 0))
        self.exploring, self.sampling = _generator(values["exploring"]), _generator(values["sampling"])
        stored = checkpoint.without_prefix("agent", arrays)
        self.agent = Agent.from_state_dict(self._algorithm, stored, self._augmentations[self.share], self._inputs)
        behind = checkpoint.without_prefix("behind", arrays)
        self.behind = Agent.from_policy_arrays(self._algorithm, behind, self._inputs) if behind else None
        self.averages, self.metrics_size, self.saved_at = (
            Averages(values["averages"]),
            int(values["metrics_size"]),
            found.step,
        )
        self.environment.set_state(checkpoint.without_prefix("environment", arrays))
        self.observation = arrays["observation"]
        if self.observation.shape != (self.environment.layout.dim,) or self.observation.dtype != np.float32:
            raise ValueError(f"an observation of shape {self.observation.shape} and type {self.observation.dtype}")
        if self.noise is not None:
            memory = arrays["noise"]
            if (memory.shape, memory.dtype) != (self.noise.memory.shape, self.noise.memory.dtype):
                raise ValueError(f"noise that remembers an array of shape {memory.shape} and type {memory.dtype}")
            self.noise.memory = memory

    def _choose_share(self, found: Checkpoint | None) -> None:
        """The bandit of a run that chooses its share, as it was; the one share of any other."""
        config = self.config.augmentation
        self.bandit, self.share = None, config.share
        if config.chooses_share:
            state = None if found is None else found.values["bandit"]
            self.bandit = share_bandit.ShareBandit(config.settings.bonus, config.settings.window, state)
            self.share = self.bandit.share
        self.used_share = self.share

    @property
    def seconds(self) -> float:
        """Time spent on this run, over all sessions that reached a checkpoint."""
        return time.perf_counter() - self._started

    @property
    def actor(self) -> Agent:
        """Who acts: the newest agent; with `overlap` the one before the newest updates, which go on meanwhile.

        JAX computes an update in a thread of its own until somebody looks at its results. So nobody does before the
        next updates begin, and what is computed depends on no clock and on no number of cores.
        """
        return self.agent if self.behind is None else self.behind

    def advance(self) -> float | None:
        """One decision, the environment's steps that follow it, and the updates due; the return of an ended episode."""
        action = self.actor.explore(self.observation, self.exploring, self.step, self.noise)
        before = None if self._marker is None else self.environment.get_state()
        try:
            observation, reward, is_terminal, is_truncated = hold(self.environment, action, self.config.action_repeat)
        except InstabilityError as error:
            return self._cut(error)
        mark = (
            self._marker is None or before is None or self._marker(self.environment, before, action, reward, self.step)
        )
        self.buffer.step(action, reward, 0.0 if is_terminal else 1.0, observation, mark)
        self.observation, self.episode_return = observation, self.episode_return + reward
        self.agent = self.agent.observe(observation)
        learnt = schedule.updates_until(self.config.replay, self.step)
        self._count()
        due = schedule.updates_until(self.config.replay, self.step) - learnt
        if due and self.config.overlap:
            self.behind = self.agent
        for _ in range(due):
            batch = self.buffer.sample(self.sampling, self.config.replay.batch_size)
            self.agent, metrics = self.agent.update(batch, self.step)
            self.averages.add(metrics)
        return self._next_episode() if is_terminal or is_truncated else None

    def _count(self) -> None:
        """The steps of one decision are over; networks begin anew where that is due."""
        begun = schedule.beginnings_until(self.config.replay, self.step)
        self.step += self.config.action_repeat
        if (beginnings := schedule.beginnings_until(self.config.replay, self.step)) > begun:
            seed = np.random.SeedSequence([self.config.seed, beginnings]).generate_state(1)[0]
            self.agent = self.agent.anew(int(seed))

    def _cut(self, error: InstabilityError) -> float:
        """End an episode whose simulation blew up before the step that did it, of which nothing is learnt.

        A policy may find such a state once in a million steps, and the run would find it again whenever it goes
        on. A robot that blows up often has a fault that its owner must mend.
        """
        self._count()
        self.unstable += 1
        if self.unstable > _FEW and self.unstable > _SELDOM * (self.episode + 1):
            raise error
        return self._next_episode()

    def _next_episode(self) -> float:
        finished, self.episode_return = self.episode_return, 0.0
        self.episode += 1
        self.used_share = self.share
        if self.bandit is not None:
            self.bandit.end_episode(finished, self.step > self.config.replay.seed_steps)
            self.share = self.bandit.share
            # another program, compiled once, on the same arrays
            chosen = program(self._algorithm, self._augmentations[self.share], self._inputs)
            self.agent = dataclasses.replace(self.agent, program=chosen)
        self._start_episode()
        return finished

    def _start_episode(self, seed: int | None = None) -> None:
        self.observation, _ = self.environment.reset(seed=seed)
        self.buffer.start(self.observation)
        self.agent = self.agent.observe(self.observation)
        if self.noise is not None:
            self.noise.begin(self.exploring)

    def is_finite(self) -> bool:
        """Whether every loss so far was a number."""
        return bool(self.agent.state["finite"])

    def evaluate(self) -> dict[str, Any]:
        """The event of an evaluation at this step."""
        config = self.config.evaluation
        returns = self.evaluator(self.agent.act, evaluation.seeds(config.seed, self.step, config.episodes))
        unstable = {"unstable": self.evaluator.unstable} if self.evaluator.unstable else {}
        return self.event("eval", return_mean=math.fsum(returns) / len(returns), returns=returns, **unstable)

    def event(self, kind: str, **entries: Any) -> dict[str, Any]:
        """An event at this step."""
        return {"event": kind, "step": self.step, "seconds": round(self.seconds, 3), **entries}

    def checkpoint(self, metrics_size: int) -> Checkpoint:
        """Everything the future depends on."""
        arrays = {
            **checkpoint.with_prefix("agent", self.agent.state_dict()),
            **checkpoint.with_prefix("behind", {} if self.behind is None else self.behind.policy_arrays()),
            **checkpoint.with_prefix("environment", self.environment.get_state()),
            **checkpoint.with_prefix("replay", self.buffer.state()),
            "observation": self.observation,
            **({} if self.noise is None else {"noise": self.noise.memory}),
        }
        values = {
            "seconds": self.seconds,
            "episode": self.episode,
            "episode_return": self.episode_return,
            "exploring": self.exploring.bit_generator.state,
            "sampling": self.sampling.bit_generator.state,
            "averages": self.averages.sums(),
            "metrics_size": metrics_size,
            **({"unstable": self.unstable} if self.unstable else {}),
            **({} if self.bandit is None else {"bandit": self.bandit.state()}),
        }
        return Checkpoint(self.step, arrays, values)


def _generator(state: Any) -> np.random.Generator:
    bits = np.random.PCG64()
    bits.state = state
    return np.random.Generator(bits)
