"""One process working on a run: go on from the newest checkpoint; train, evaluate, record, save; say how it ended."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from euda import operating_system
from euda.errors import EudaError, UnfitError
from euda.runs import atomic_files, checkpoint, evaluation, run_folder, symmetry_choice
from euda.runs.checkpoint import Checkpoint
from euda.runs.config import RunConfig
from euda.runs.display import Display, Silent
from euda.runs.metrics import JsonLines, Sink
from euda.runs.run_folder import Run
from euda.runs.signals import Stop
from euda.runs.trainer import Trainer

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


class Session:
    """One process working on a run: drives the trainer and writes what it says."""

    def __init__(self, trainer: Trainer, display: Display, sinks: list[Sink], stop: Stop) -> None:
        self.trainer, self.run, self._display, self._stop = trainer, trainer.run, display, stop
        self._has_learned = False
        self._lines = JsonLines(self.run.metrics_path, trainer.metrics_size)
        self._sinks: list[Sink] = [self._lines, *sinks]

    def go(self) -> Outcome:
        """Train until the steps are reached or somebody asks to stop."""
        trainer, config = self.trainer, self.run.config
        if trainer.step == 0:
            self._show(self._display.doing, "evaluating the untrained policy")
            self._evaluate()
        while trainer.step < config.steps and not self._stop:
            self._step()
        self.save()
        if trainer.step >= config.steps:
            self._finish()
            return Outcome(self.run.folder, trainer.step, True)
        return Outcome(self.run.folder, trainer.step, False, self._stop.signal)

    def _step(self) -> None:
        trainer, config = self.trainer, self.run.config
        unstable_before = trainer.unstable
        if not self._has_learned and trainer.step >= config.replay.seed_steps:
            self._has_learned = True
            self._show(self._display.doing, "compiling the update")
        with self._explained():
            finished = trainer.advance()
        is_cut = trainer.unstable > unstable_before
        if is_cut and not unstable_before:
            blown_up = f"the simulation blew up at step {trainer.step}: its episode ended there, the run continues"
            self._show(self._display.say, blown_up)
        self._show(self._display.step, trainer.step)
        if finished is not None:
            self._refuse_nan()
            chosen = {} if trainer.bandit is None else {"share": trainer.used_share}
            cut = {"unstable": 1} if is_cut else {}
            numbers = {"return": finished, **trainer.averages.take(), **chosen, **cut}
            self._write(trainer.event("train", episode=trainer.episode, **numbers))
        if trainer.step % config.evaluation.every == 0:
            self._refuse_nan()
            self._evaluate()
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
            self._evaluate()
        evaluation.save_policy(self.run, trainer.agent)
        self._write(trainer.event("end"))

    def _evaluate(self) -> None:
        with self._explained():
            event = self.trainer.evaluate()
        self._write(event)

    def close(self) -> None:
        """Close what is open."""
        for sink in self._sinks:
            sink.close()

    def _write(self, event: dict[str, Any]) -> None:
        for sink in self._sinks:
            sink.write(event)
        self._show(self._display.event, event)

    def _show(self, show: Callable[[Any], None], what: Any) -> None:
        """Tell the display; a terminal that was closed, or a pipe that nobody reads, is a request to stop."""
        try:
            show(what)
        except OSError:
            self._stop.request(operating_system.UNREAD)

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
    config = _begun(config, folder, display)
    with run_folder.opened(folder, config) as run_, stop.on_signals(second_interrupts=True):
        if run_folder.status(run_).is_finished:
            return Outcome(folder, config.steps, True)
        display.doing("making the environments")
        trainer = _trainer(run_, display)
        run_.write_config()
        if trainer.step:
            display.doing(f"resuming from step {trainer.step}")
        if changed := run_.record_session(trainer.step):
            display.say(f"the run resumes, but its last bits may differ: {'; '.join(changed)}")
        with contextlib.ExitStack() as stack:
            session = Session(trainer, display, [make(run_, trainer.step) for make in sinks], stop)
            stack.callback(session.close)
            stack.enter_context(display.shown(run_.config, trainer.step))
            outcome = session.go()
            with contextlib.suppress(OSError):  # of a display that nobody reads; all is saved
                stack.close()
        return outcome


def _begun(config: RunConfig, folder: Path, display: Display) -> RunConfig:
    """The configuration with the symmetries in use: those that the run has, or that a new one may have."""
    if run_folder.is_run(folder):
        stored = run_folder.load(folder).config
        return dataclasses.replace(config, elements=stored.elements, yaws=stored.yaws)
    evaluation.refuse_unfit(config)
    if config.uses_symmetry:
        display.doing("testing the symmetry in the simulator")
    return symmetry_choice.settled(config, display.say)


def _trainer(run_: Run, display: Display) -> Trainer:
    """The trainer of a run at its newest whole checkpoint, or at the beginning."""
    found, damaged = run_.newest_checkpoint()
    for sentence in damaged:
        display.say(sentence)
    if found is None:
        run_.clear()
    with atomic_files.readable_errors(run_.replay), _of_this_run(run_, found):
        trainer = Trainer(run_, found)
    if found is not None:
        checkpoint.discard_after(run_.checkpoints, found.step)
    return trainer


@contextlib.contextmanager
def _of_this_run(run_: Run, found: Checkpoint | None) -> Iterator[None]:
    """Say in one sentence that what a checkpoint holds does not fit: its checksum shows damage, not who wrote it."""
    try:
        yield
    except UnfitError as error:
        if found is None:
            raise
        raise EudaError(
            f"the checkpoint of step {found.step} in {str(run_.checkpoints)!r} does not fit this run ({error}): it is"
            " of another base, method or robot; start elsewhere with --out"
        ) from None
    except EudaError:
        raise
    except (LookupError, TypeError, ValueError, ArithmeticError, AttributeError) as error:
        if found is None:
            raise
        said = " ".join(f"{type(error).__name__}: {error}".split())
        raise EudaError(
            f"the checkpoint of step {found.step} in {str(run_.checkpoints)!r} does not fit this run ({said}):"
            " another program or version wrote it; start elsewhere with --out"
        ) from error
