"""The training loop: act, step, store, sample, update; evaluate, record, save.

Everything the future depends on is in `Trainer.checkpoint`, and all of it is exact: MuJoCo's integration
state, the streams of random numbers, the agent's arrays, the replay's counters (its arrays live in files),
sums that are still open, the size of the metrics file. So a run that was stopped anywhere and goes on ends
in the same bytes as one that was never stopped.
"""

from __future__ import annotations

import contextlib
import dataclasses
import math
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from euda.agents.agent import Agent, Metrics, program
from euda.errors import EudaError
from euda.replay.augmentation import make_augmentation
from euda.replay.buffer import ReplayBuffer
from euda.study import bandit, checkpoint, evaluation, run, storage
from euda.study.checkpoint import Checkpoint
from euda.study.display import Display, Silent
from euda.study.metrics import JsonLines, Sink
from euda.study.run import Run
from euda.study.settings import RunConfig
from euda.study.stopping import Stop

SinkMaker = Callable[[Run, int], Sink]
"""(run, step it goes on from) → where its events go too."""


class DivergenceError(EudaError):
    """Losses or observations that are not numbers; the last checkpoint is from before."""


@dataclasses.dataclass(frozen=True)
class Outcome:
    """How a session ended."""

    folder: Path
    step: int
    is_finished: bool
    signal: int | None = None
    """The signal that stopped it, if one did."""


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
        observation, reward, is_terminal, is_truncated, _ = self.environment.step(action)
        self.buffer.step(action, float(reward), 0.0 if is_terminal else 1.0, observation)
        self.observation, self.episode_return = observation, self.episode_return + float(reward)
        self.step += 1
        if self.step > self.config.replay.seed_steps:
            batch = self.buffer.sample(self.sampling, self.config.replay.batch_size)
            self.agent, metrics = self.agent.update(batch, self.step)
            self.averages.add(metrics)
        return self._next_episode() if is_terminal or is_truncated else None

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
        return self.event("eval", return_mean=math.fsum(returns) / len(returns), returns=returns)

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
            **({} if self.bandit is None else {"bandit": self.bandit.state()}),
        }
        return Checkpoint(self.step, arrays, values)


class Session:
    """One process working on a run: drives the trainer and writes what it says."""

    def __init__(self, trainer: Trainer, display: Display, sinks: list[Sink]) -> None:
        self.trainer, self.run, self._display = trainer, trainer.run, display
        self._lines = JsonLines(self.run.metrics_path, trainer.metrics_size)
        self._sinks: list[Sink] = [self._lines, *sinks]

    def go(self, stop: Stop) -> Outcome:
        """Train until the steps are reached or somebody asks to stop."""
        trainer, config = self.trainer, self.run.config
        if trainer.step == 0:
            self._write(trainer.evaluate())
        while trainer.step < config.steps and not stop:
            self._step()
        self.save()
        if trainer.step >= config.steps:
            self._finish()
            return Outcome(self.run.folder, trainer.step, True)
        return Outcome(self.run.folder, trainer.step, False, stop.signal)

    def _step(self) -> None:
        trainer, config = self.trainer, self.run.config
        with self._explained():
            finished = trainer.advance()
        self._display.step(trainer.step)
        if finished is not None:
            self._refuse_nan()
            chosen = {} if trainer.bandit is None else {"share": trainer.used_share}
            numbers = {"return": finished, **trainer.averages.take(), **chosen}
            self._write(trainer.event("train", episode=trainer.episode, **numbers))
        if trainer.step % config.evaluation.every == 0:
            self._refuse_nan()
            self._write(trainer.evaluate())
        if trainer.step % config.checkpoint_every == 0:
            self.save()

    def save(self) -> None:
        """Write a checkpoint, unless the last one is of this very step."""
        trainer = self.trainer
        if trainer.saved_at == trainer.step or trainer.step == 0:
            return
        self._refuse_nan()
        self._lines.sync()
        checkpoint.save(self.run.checkpoints, trainer.checkpoint(self._lines.size))
        trainer.saved_at = trainer.step

    def _finish(self) -> None:
        """Say that the run is complete.

        This comes after the last checkpoint, so a run that is given more steps later cuts it off again and is
        the same as one that had them from the start.
        """
        trainer = self.trainer
        if trainer.step % self.run.config.evaluation.every:
            self._write(trainer.evaluate())
        evaluation.save_policy(self.run, trainer.agent)
        self._write(trainer.event("end"))

    def close(self) -> None:
        """Close what is open."""
        for sink in self._sinks:
            sink.close()

    def _write(self, event: dict[str, Any]) -> None:
        for sink in self._sinks:
            sink.write(event)
        self._display.event(event)

    @contextlib.contextmanager
    def _explained(self) -> Iterator[None]:
        """Say of numbers that are not finite where they come from: a diverged agent makes the simulation fail too."""
        try:
            yield
        except EudaError as error:
            self._refuse_nan()
            raise DivergenceError(f"{error}; {self._last_good()}") from None

    def _refuse_nan(self) -> None:
        if not self.trainer.is_finite():
            raise DivergenceError(
                f"a loss is not a number at step {self.trainer.step}: lower the learning rate, or look at the losses in"
                f" {str(self.run.metrics_path)!r}; {self._last_good()}"
            )

    def _last_good(self) -> str:
        saved = self.trainer.saved_at
        return f"the checkpoint of step {saved} is intact" if saved else "there was no checkpoint yet"


def train(
    config: RunConfig,
    folder: Path,
    *,
    display: Display | None = None,
    sinks: tuple[SinkMaker, ...] = (),
    stop: Stop | None = None,
) -> Outcome:
    """Begin or go on with the run of `config` in `folder`, to its end or until `stop` is set."""
    stop, display = Stop() if stop is None else stop, display or Silent()
    with run.opened(folder, config) as run_, stop.on_signals(second_interrupts=True):
        if run.status(run_).is_finished:
            return Outcome(folder, config.steps, True)
        trainer = _trainer(run_, display)
        if changed := run_.record_session(trainer.step):
            display.say(f"the run goes on, but not to the last bit as before: {'; '.join(changed)}")
        with contextlib.ExitStack() as stack:
            session = Session(trainer, display, [make(run_, trainer.step) for make in sinks])
            stack.callback(session.close)
            stack.enter_context(display.shown(run_.config, trainer.step))
            return session.go(stop)


def _trainer(run_: Run, display: Display) -> Trainer:
    """The trainer of a run at its newest whole checkpoint, or at the beginning."""
    found, damaged = run_.newest_checkpoint()
    for sentence in damaged:
        display.say(sentence)
    if found is None:
        run_.clear()
    else:
        checkpoint.discard_after(run_.checkpoints, found.step)
    with storage.readable_errors(run_.replay):
        return Trainer(run_, found)


def _generator(state: Any) -> np.random.Generator:
    bits = np.random.PCG64()
    bits.state = state
    return np.random.Generator(bits)
