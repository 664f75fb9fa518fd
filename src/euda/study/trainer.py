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

from euda.agents.agent import Agent, Metrics, program
from euda.errors import InstabilityError
from euda.replay.augmentation import make_augmentation
from euda.replay.buffer import ReplayBuffer
from euda.study import bandit, checkpoint, evaluation
from euda.study.checkpoint import Checkpoint
from euda.study.run import Run

_FEW, _SELDOM = 10, 0.1  # so many episodes, or such a share of all, may be cut because the simulation blew up


class Averages:
    """Means of the updates' scalars since the last record, summed in the order of the updates.

    Scalars stay on the device until they are needed, so that looking at them does not hold up the loop.
    """

    def __init__(self, sums: dict[str, list[float]] | None = None) -> None:
        self._sums: dict[str, list[float]] = {name: list(pair) for name, pair in (sums or {}).items()}
        self._pending: list[Metrics] = []

    def add(self, metrics: Metrics) -> None:
        """Take the scalars of one update."""
        self._pending.append(metrics)

    def sums(self) -> dict[str, list[float]]:
        """Sum and count by name; reads everything that is pending."""
        for metrics in self._pending:
            for name, value in metrics.items():
                if name != "finite":
                    pair = self._sums.setdefault(name, [0.0, 0])
                    pair[0] += float(value)
                    pair[1] += 1
        self._pending.clear()
        return self._sums

    def take(self) -> dict[str, float]:
        """The means, and a fresh start."""
        means = {name: total / count for name, (total, count) in sorted(self.sums().items())}
        self._sums = {}
        return means


class Trainer:
    """A run in memory, between two steps."""

    def __init__(self, run_: Run, found: Checkpoint | None) -> None:
        config = run_.config
        self.run, self.config = run_, config
        self.environment = evaluation.make_environment(config)
        layout, actions = self.environment.layout, evaluation.action_count(self.environment)
        self._algorithm = evaluation.make_algorithm(config, layout, actions)
        shares = bandit.SHARES if config.augmentation.name == "rotate-auto" else (config.augmentation.share,)
        self._augmentations = {
            share: make_augmentation(dataclasses.replace(config.augmentation, share=share), layout) for share in shares
        }
        self._choose_share(found)
        self.evaluator = evaluation.Evaluator(config, config.evaluation.episodes)
        replay = config.replay
        # Two checkpoints back must stay readable; an episode's first observation takes a slot of its own.
        episodes = config.checkpoint_every // (1 if config.ends_early else config.episode_steps)
        slots = config.checkpoint_every + episodes + 2
        self.buffer = ReplayBuffer(
            layout.dim,
            actions,
            replay.capacity,
            n_step=replay.n_step,
            discount=replay.discount,
            slack=2 * slots,
            expected=2 * config.steps + 2,  # every step might begin an episode
            folder=run_.replay,
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
        self.agent = Agent.initialise(self._algorithm, self.config.seed, self._augmentations[self.share])
        self.averages, self.metrics_size, self.saved_at = Averages(), 0, None
        self.observation, _ = self.environment.reset(seed=int(resets.generate_state(1)[0]))
        self.buffer.start(self.observation)

    def _restore(self, found: Checkpoint) -> None:
        """The state at a checkpoint."""
        values, arrays = found.values, found.arrays
        self.step, self.episode, self.episode_return = found.step, values["episode"], values["episode_return"]
        self._seconds_before = values["seconds"]
        self.unstable = values.get("unstable", 0)
        self.exploring, self.sampling = _generator(values["exploring"]), _generator(values["sampling"])
        stored = checkpoint.without_prefix("agent", arrays)
        self.agent = Agent.from_state_dict(self._algorithm, stored, self._augmentations[self.share])
        self.averages, self.metrics_size, self.saved_at = (
            Averages(values["averages"]),
            values["metrics_size"],
            found.step,
        )
        self.environment.set_state(checkpoint.without_prefix("environment", arrays))
        self.observation = arrays["observation"]
        self.buffer.restore(checkpoint.without_prefix("replay", arrays))

    def _choose_share(self, found: Checkpoint | None) -> None:
        """The bandit of a run that chooses its share, as it was; the one share of any other."""
        config = self.config.augmentation
        self.bandit, self.share = None, config.share
        if config.name == "rotate-auto":
            state = None if found is None else found.values["bandit"]
            self.bandit = bandit.ShareBandit(config.bonus, config.window, state)
            self.share = self.bandit.share
        self.used_share = self.share

    @property
    def seconds(self) -> float:
        """Time spent on this run, over all sessions that reached a checkpoint."""
        return time.perf_counter() - self._started

    def advance(self) -> float | None:
        """One step of the environment and one update; the episode's return if it ended here."""
        action = self.agent.explore(self.observation, self.exploring, self.step)
        try:
            observation, reward, is_terminal, is_truncated, _ = self.environment.step(action)
        except InstabilityError as error:
            return self._cut(error)
        self.buffer.step(action, float(reward), 0.0 if is_terminal else 1.0, observation)
        self.observation, self.episode_return = observation, self.episode_return + float(reward)
        self.step += 1
        if self.step > self.config.replay.seed_steps:
            batch = self.buffer.sample(self.sampling, self.config.replay.batch_size)
            self.agent, metrics = self.agent.update(batch, self.step)
            self.averages.add(metrics)
        return self._next_episode() if is_terminal or is_truncated else None

    def _cut(self, error: InstabilityError) -> float:
        """End an episode whose simulation blew up before the step that did it, of which nothing is learnt.

        A policy may find such a state once in a million steps, and the run would find it again whenever it goes
        on. A robot that blows up often has a fault that its owner must mend.
        """
        self.step += 1
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
            chosen = program(self._algorithm, self._augmentations[self.share])
            self.agent = dataclasses.replace(self.agent, program=chosen)
        self.observation, _ = self.environment.reset()
        self.buffer.start(self.observation)
        return finished

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
            **checkpoint.with_prefix("environment", self.environment.get_state()),
            **checkpoint.with_prefix("replay", self.buffer.state()),
            "observation": self.observation,
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
