"""A run that is killed again and again ends in the same bytes as one that is left alone.

One helper process imports everything, compiles the model and forks a child per attempt (before JAX has started), so
that a kill costs a second. The child sends the signal to itself: at a random step, or inside a random call that
writes, synchronises, renames or removes a file, which hits the checkpoint's writer at every stage.
"""

import json
import os
import pty
import random
import signal
import subprocess
import sys
import textwrap
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import pytest

from euda.runs import run_folder

HELPER = """
    import dataclasses, json, os, signal, sys
    from pathlib import Path
    import compiled_once
    compiled_once.install()
    from euda.runs import machine
    machine.use_one_thread()
    import jax
    from euda.agents.network_settings import MLPConfig
    from euda.agents.settings import DDPGConfig
    from euda.replay.settings import AugmentationConfig, ReplayConfig
    from euda.runs import session
    from euda.runs.display import Silent
    from euda.runs.config import RunConfig
    from euda.runs.environments import make_environment
    from euda.runs.settings import EvaluationConfig

    signal.signal(signal.SIGHUP, signal.SIG_DFL)  # a suite started by nohup ignores it
    jax.config.update("jax_compilation_cache_dir", sys.argv[1])
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0)
    CONFIG = RunConfig(
        "cheetah_run", augmentation=AugmentationConfig("rotate", 0.5), architecture=MLPConfig(hidden_size=16),
        replay=ReplayConfig(capacity=120, batch_size=8, seed_steps=30),
        learning=DDPGConfig(exploration_steps=20, actor_every=1, target_every=1),  # a child traces one update, not two
        evaluation=EvaluationConfig(every=60, episodes=2), steps=260, episode_steps=45, checkpoint_every=40,
    )

    class Killer(Silent):
        \"\"\"Sends a signal at the n-th call of something.\"\"\"

        def __init__(self, at, count, number):
            super().__init__()
            self.at, self.left, self.number = at, count, number
            if at not in ("step", "never"):
                original = getattr(os, at)
                def patched(*args, **kwargs):
                    self.count()
                    return original(*args, **kwargs)
                setattr(os, at, patched)

        def count(self):
            self.left -= 1
            if self.left == 0:
                os.kill(os.getpid(), self.number)

        def step(self, step):
            if self.at == "step":
                self.count()

    make_environment(CONFIG)
    for line in sys.stdin:
        folder, at, count, number, changes = json.loads(line)
        child = os.fork()
        if child == 0:
            config, display = dataclasses.replace(CONFIG, **changes), Killer(at, count, number)
            outcome = session.train(config, Path(folder), display=display)
            os._exit(0 if outcome.signal is None else 128 + outcome.signal)
        _, status = os.waitpid(child, 0)
        print(os.waitstatus_to_exitcode(status), flush=True)
"""


Job = tuple[Path, str, int, int]
"""Folder, what to count, how many of it, signal."""


class Attempt(Protocol):
    """Exit codes of one child per job, with changed settings."""

    def __call__(self, jobs: Sequence[Job], **changes: object) -> list[int]: ...


@pytest.fixture(scope="module")
def attempt(tmp_path_factory) -> Iterator[Attempt]:
    command = [sys.executable, "-W", "ignore", "-c", textwrap.dedent(HELPER), str(tmp_path_factory.mktemp("cache"))]
    paths = os.pathsep.join([str(Path(__file__).parent), *filter(None, [os.environ.get("PYTHONPATH")])])
    pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with subprocess.Popen(command, env=os.environ | {"PYTHONPATH": paths}, **pipes) as helper:

        def tell(jobs: Sequence[Job], **changes: object) -> list[int]:
            codes = []
            for folder, *rest in jobs:
                print(json.dumps([str(folder), *rest, changes]), file=helper.stdin, flush=True)
                codes.append(int(helper.stdout.readline()))
            return codes

        yield tell


def content(folder: Path) -> dict:
    """Everything that must not depend on interruptions."""
    found = run_folder.load(folder)
    newest, damaged = found.newest_checkpoint()
    assert newest is not None
    assert damaged == []
    return {
        "metrics": [{key: value for key, value in event.items() if key != "seconds"} for event in found.events()],
        "values": {key: value for key, value in newest.values.items() if key not in ("seconds", "metrics_size")},
        "arrays": {name: (array.dtype, array.shape, array.tobytes()) for name, array in newest.arrays.items()},
        "replay": {path.name: path.read_bytes() for path in found.replay.iterdir()},
        "policy": found.policy.read_bytes(),
    }


@pytest.fixture(scope="module")
def undisturbed(tmp_path_factory, attempt):
    folder = tmp_path_factory.mktemp("undisturbed") / "run"
    assert attempt([(folder, "never", 0, 0)]) == [0]
    return content(folder)


def test_the_undisturbed_run_is_worth_comparing_with(undisturbed):
    returns = [event["return_mean"] for event in undisturbed["metrics"] if event["event"] == "eval"]
    assert len(returns) == 6
    assert len(set(returns)) == 6
    assert undisturbed["metrics"][-1] == {"event": "end", "step": 260}
    assert np.frombuffer(undisturbed["arrays"]["replay/counters"][2], np.int64)[0] > 120  # the ring has gone round


def test_a_run_killed_at_random_moments_ends_in_the_same_bytes(tmp_path, attempt, undisturbed):
    chance = random.Random(0)
    ranges = {"step": 40, "write": 9, "fsync": 7, "replace": 4, "unlink": 3}
    kinds = [*ranges, *(chance.choice(list(ranges)) for _ in range(3))]
    jobs = [(tmp_path / "run", kind, chance.randint(1, ranges[kind]), signal.SIGKILL) for kind in kinds]
    codes = attempt([*jobs, (tmp_path / "run", "never", 0, 0), (tmp_path / "run", "never", 0, 0)])
    assert codes[-2:] == [0, 0]  # the second finds it finished
    assert codes[:-2].count(-signal.SIGKILL) >= 6, codes
    assert content(tmp_path / "run") == undisturbed


@pytest.fixture
def hangups_end():
    """A suite started by nohup ignores SIGHUP, and so would every program it starts: not here."""
    before = signal.signal(signal.SIGHUP, signal.SIG_DFL)
    yield
    signal.signal(signal.SIGHUP, before)


def test_a_run_asked_to_stop_saves_and_goes_on_exactly(tmp_path, attempt, undisturbed):
    folder = tmp_path / "run"
    asked = [
        (folder, "step", 57, signal.SIGINT),
        (folder, "step", 60, signal.SIGTERM),
        (folder, "step", 40, signal.SIGHUP),
    ]
    assert attempt(asked) == [130, 143, 129]
    newest, _ = run_folder.load(folder).newest_checkpoint()
    assert newest is not None
    assert newest.step == 157
    assert attempt([(folder, "never", 0, 0)]) == [0]
    assert content(folder) == undisturbed


def test_a_damaged_checkpoint_is_said_and_the_run_ends_in_the_same_bytes(tmp_path, attempt, undisturbed):
    folder = tmp_path / "run"
    assert attempt([(folder, "step", 210, signal.SIGKILL)]) == [-signal.SIGKILL]
    (arrays,) = (folder / "checkpoints").glob("*200-*.safetensors")
    arrays.write_bytes(arrays.read_bytes()[:-100])
    found, (sentence,) = run_folder.load(folder).newest_checkpoint()
    assert found is not None
    assert found.step == 160
    assert "checksum" in sentence
    assert attempt([(folder, "never", 0, 0)]) == [0]
    assert content(folder) == undisturbed


MARKED = {
    "clean": {"near": "clean"},  # yaws, which pyramidal cones break wherever something touches
    "measured": {"task": "hopper3d_hop", "cone": "elliptic", "group": "mirror", "near": "measured", "payload": 0.2},
}


@pytest.mark.parametrize("near", MARKED)
def test_a_run_with_marked_transitions_that_is_killed_ends_in_the_same_bytes(tmp_path, attempt, near):
    short = {"steps": 130, "episode_steps": 25, "checkpoint_every": 30, **MARKED[near]}
    undisturbed, killed = tmp_path / "undisturbed", tmp_path / "killed"
    # In the middle of an episode, and inside a checkpoint's own writing; then to the end.
    jobs = [(killed, "step", 47, signal.SIGKILL), (killed, "fsync", 3, signal.SIGKILL), (killed, "never", 0, 0)]
    assert attempt([(undisturbed, "never", 0, 0), *jobs], **short) == [0, -9, -9, 0]
    expected = content(undisturbed)
    marks = expected["replay"]["mark.bin"]
    assert 0 < sum(marks[:120]) < 120, "marks that are all alike would hide a lost one"
    assert content(killed) == expected


TERMINAL = """
    import fcntl, os, sys, termios
    os.setsid()
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)
    os.execv(sys.argv[1], sys.argv[1:])
"""


@pytest.mark.usefixtures("hangups_end")
def test_a_run_whose_terminal_is_closed_saves(tmp_path):
    """The real program on a terminal of its own, which is closed while the program draws its progress there."""
    sizes = (
        "--episode-steps 20 --mlp.hidden-size 8 --replay.seed-steps 10 --replay.batch-size 4 --evaluation.episodes 1"
    )
    command = [sys.executable, "-m", "euda.terminal.cli", "train", "reacher_hard", "--out", str(tmp_path / "run")]
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(TERMINAL), *command, *sizes.split(), "--checkpoint-every", "100000"],
        stdin=theirs, stdout=theirs, stderr=theirs,
    )  # fmt: skip
    os.close(theirs)
    shown = b""
    while b"steps/s" not in shown:
        shown += os.read(ours, 10_000)
    os.close(ours)
    assert process.wait(timeout=60) == 129
    newest, _ = run_folder.load(tmp_path / "run").newest_checkpoint()
    assert newest is not None
    assert newest.step > 0
    assert b" core" in shown


SUM = """
    import hashlib, os, sys
    if sys.argv[1] == "pinned":
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    from euda.runs import machine
    machine.use_one_thread()
    import jax
    import numpy as np
    from euda.agents.agent import Agent
    from euda.agents.ddpg import DDPG
    from euda.agents.settings import DDPGConfig
    from euda.replay.buffer import Transition
    draw = np.random.default_rng(0)
    shapes = [(256, 66), (256, 6), 256, 256, (256, 66)]
    batch = Transition(*(draw.normal(size=shape).astype(np.float32) for shape in shapes))
    agent = Agent.initialise(DDPG.make(66, 6, DDPGConfig(actor_every=1, target_every=1)), 0)
    for step in range(6):
        agent, _ = agent.update(batch, step)
    actions = agent.act(np.asarray(batch.observation)), agent.act(batch.observation[0])
    leaves = [*jax.tree.leaves(agent.state), *actions]
    print(hashlib.sha256(b"".join(np.asarray(x).tobytes() for x in leaves)).hexdigest())
"""


def test_numbers_do_not_depend_on_the_number_of_cores():
    """A run may begin on two cores and go on pinned to one."""
    commands = [[sys.executable, "-c", textwrap.dedent(SUM), how] for how in ("pinned", "free")]
    flags = {"XLA_FLAGS": ""}  # compiled as for users
    sums = {
        subprocess.run(command, capture_output=True, text=True, check=True, env=os.environ | flags).stdout
        for command in commands
    }
    assert len(sums) == 1
