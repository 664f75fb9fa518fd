"""Replay: windows against a brute-force reference, uniform sampling, exact resume, honest allocation."""

from __future__ import annotations

import errno
import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import euda
from euda.errors import EudaError
from euda.replay.buffer import ReplayBuffer, Transition
from euda.runs.config import RunConfig
from euda.runs.trainer import spare_slots

DIM, ACTIONS = 3, 2


class Source:
    """Numbers that name themselves: every observation and action is unique, so a sample tells where it came from."""

    def __init__(self, seed: int = 0) -> None:
        self.count = 0
        self.generator = np.random.default_rng(seed)

    def observation(self) -> np.ndarray:
        self.count += 1
        return np.array([self.count, self.count + 0.25, -self.count], np.float32)

    def step(self, terminal: bool = False) -> tuple[np.ndarray, float, float, np.ndarray]:
        next_observation = self.observation()
        discount = 0.0 if terminal else float(self.generator.choice([1.0, 0.5]))
        return np.array([self.count, -1], np.float32), float(self.generator.normal()), discount, next_observation


Episode = tuple[list[np.ndarray], list[tuple[np.ndarray, float, float]]]


def fill(buffer: ReplayBuffer, lengths: list[int], source: Source, terminal: bool = False) -> list[Episode]:
    """Insert whole episodes and return them as plain lists."""
    episodes = []
    for length in lengths:
        observations: list[np.ndarray] = [source.observation()]
        steps: list[tuple[np.ndarray, float, float]] = []
        buffer.start(observations[0])
        for i in range(length):
            action, reward, discount, following = source.step(terminal and i == length - 1)
            buffer.step(action, reward, discount, following)
            observations.append(following)
            steps.append((action, reward, discount))
        episodes.append((observations, steps))
    return episodes


def brute_force(episodes: list[Episode], n: int, gamma: float) -> dict[int, tuple[Any, ...]]:
    """Every transition by the number of its start observation, from the definition."""
    table = {}
    for observations, steps in episodes:
        for i in range(len(steps)):
            reward, discount, k = 0.0, 1.0, 0
            while k < n and i + k < len(steps):
                reward += discount * steps[i + k][1]
                discount *= gamma * steps[i + k][2]
                k += 1
            table[int(observations[i][0])] = (observations[i], steps[i][0], reward, discount, observations[i + k])
    return table


def assert_equals(sample: Transition, table: dict[int, tuple[Any, ...]]) -> set[int]:
    """Each row is the reference's; returns which starts were seen."""
    names = [int(observation[0]) for observation in sample.observation]
    columns = zip(*(table[name] for name in names), strict=True)
    for values, expected in zip(sample, columns, strict=True):
        np.testing.assert_allclose(values, np.array(expected), rtol=1e-5, atol=1e-6)
    return set(names)


def last_live(episodes: list[Episode], capacity: int) -> set[int]:
    """Numbers of the start observations among the last `capacity` observations."""
    flat = [(int(o[0]), i < len(steps)) for observations, steps in episodes for i, o in enumerate(observations)]
    return {name for name, is_start in flat[-capacity:] if is_start}


@settings(max_examples=40, deadline=None)
@given(
    lengths=st.lists(st.integers(0, 9), min_size=1, max_size=8).filter(any),
    n=st.integers(1, 5),
    capacity=st.integers(2, 40),
    slack=st.integers(0, 5),
    terminal=st.booleans(),
)
def test_windows_equal_the_definition_and_cover_all_live_starts(
    lengths: list[int], n: int, capacity: int, slack: int, terminal: bool
) -> None:
    buffer = ReplayBuffer(DIM, ACTIONS, capacity, n_step=n, discount=0.9, slack=slack)
    episodes = fill(buffer, lengths, Source(), terminal)
    live = last_live(episodes, capacity)
    assert len(buffer) == len(live)
    if live:
        sample = buffer.sample(np.random.default_rng(0), 40 * len(live) + 100)
        assert assert_equals(sample, brute_force(episodes, n, 0.9)) == live


def test_time_limit_bootstraps_and_terminal_does_not() -> None:
    for end_discount, expected in ((1.0, 0.5**2), (0.0, 0.0)):
        buffer = ReplayBuffer(1, 1, 10, n_step=3, discount=0.5)
        buffer.start([0.0])
        buffer.step([0.0], 1.0, 1.0, [1.0])
        buffer.step([0.0], 1.0, end_discount, [2.0])
        buffer.start([9.0])
        sample = buffer.sample(np.random.default_rng(0), 64)
        first = sample.observation[:, 0] == 0
        assert first.any()
        assert (sample.discount[first] == expected).all()
        assert (sample.reward[first] == 1.5).all()
        assert (sample.next_observation[first] == 2).all()
        assert not (sample.next_observation == 9).any()


def test_sampling_is_uniform_over_stored_actions() -> None:
    buffer = ReplayBuffer(DIM, ACTIONS, 100)
    fill(buffer, [3, 1, 6], Source())
    names, counts = np.unique(buffer.sample(np.random.default_rng(1), 20_000).observation[:, 0], return_counts=True)
    assert len(names) == 10
    assert np.sum((counts - 2000) ** 2 / 2000) < 30  # chi squared with 9 degrees of freedom: p < 0.0005


@pytest.mark.parametrize("capacity", [1000, 300])  # all are there, or the first have been forgotten
@pytest.mark.parametrize("recency", [1.0, 2.0, 3.0])
def test_ages_are_drawn_as_recency_says(recency: float, capacity: int) -> None:
    buffer = ReplayBuffer(DIM, ACTIONS, capacity, recency=recency)
    fill(buffer, [100] * 5, Source())
    number, draws = len(buffer), 40_000
    live = np.unique(ReplayBuffer.sample(buffer, np.random.default_rng(0), 200_000).observation[:, 0])
    assert len(live) == number  # the oldest too
    names = buffer.sample(np.random.default_rng(1), draws).observation[:, 0]
    ages = len(live) - 1 - np.searchsorted(live, names)
    for share in (0.125, 0.5, 0.75):
        expected = (round(share * number) / number) ** (1 / recency)
        assert np.mean(ages < round(share * number)) == pytest.approx(expected, abs=4 * np.sqrt(0.25 / draws))


def test_without_recency_draws_are_what_they_were_before_it() -> None:
    buffer = ReplayBuffer(DIM, ACTIONS, 100)
    fill(buffer, [7, 20], Source())
    one = buffer.sample(np.random.default_rng(5), 50).observation[:, 0]
    chosen = np.random.default_rng(5).integers(0, 27, size=50)
    starts = np.unique(buffer.sample(np.random.default_rng(0), 5000).observation[:, 0])
    np.testing.assert_array_equal(one, starts[chosen])


def test_samples_are_fresh_contiguous_float32() -> None:
    buffer = ReplayBuffer(DIM, ACTIONS, 100)
    fill(buffer, [20], Source())
    generator = np.random.default_rng(0)
    first = buffer.sample(generator, 16)
    kept = [array.copy() for array in first]
    second = buffer.sample(generator, 16)
    for array, copy, other in zip(first, kept, second, strict=True):
        assert array.dtype == np.float32
        assert array.flags.c_contiguous
        assert not np.shares_memory(array, other)
        assert np.array_equal(array, copy)
    assert not np.array_equal(first.observation, second.observation)


def test_generator_state_survives_json() -> None:
    buffer = ReplayBuffer(DIM, ACTIONS, 100)
    fill(buffer, [20], Source())
    generator = np.random.default_rng(3)
    buffer.sample(generator, 7)
    stored = json.dumps(generator.bit_generator.state)
    expected = buffer.sample(generator, 32)
    again = np.random.default_rng()
    again.bit_generator.state = json.loads(stored)
    assert all(np.array_equal(a, b) for a, b in zip(expected, buffer.sample(again, 32), strict=True))


# -- resume --------------------------------------------------------------------------------------------

EVENTS = st.lists(st.sampled_from(["step"] * 6 + ["start", "checkpoint", "crash"]), min_size=5, max_size=120)


def play(buffer: ReplayBuffer, log: list[tuple[str, Any]]) -> None:
    for kind, values in log:
        buffer.start(values) if kind == "start" else buffer.step(*values)


@settings(max_examples=80, deadline=None)
@given(events=EVENTS, capacity=st.integers(2, 25), generation=st.integers(0, 1), n=st.integers(1, 4))
def test_resumed_equals_uninterrupted(
    tmp_path_factory: Any, events: list[str], capacity: int, generation: int, n: int
) -> None:
    """Crash at any moment, reopen the files, restore either of the last two checkpoints, go on: the same samples."""
    slack, interval = 16, 8
    folder = tmp_path_factory.mktemp("replay")

    def make(where: Path | None, state: Any = None) -> ReplayBuffer:
        return ReplayBuffer(DIM, ACTIONS, capacity, n_step=n, slack=slack, folder=where, state=state)

    source, buffer = Source(), make(folder)
    log: list[tuple[str, Any]] = [("start", source.observation())]
    play(buffer, log)
    checkpoints = [(buffer.state(), len(log))]
    for event in events:
        if event in ("step", "start"):
            log.append(("start", source.observation()) if event == "start" else ("step", source.step()))
            play(buffer, log[-1:])
        if event == "checkpoint" or len(log) - checkpoints[-1][1] == interval:
            checkpoints = [*checkpoints[-1:], (buffer.state(), len(log))]
        if event == "crash":
            state, length = checkpoints[-1 - min(generation, len(checkpoints) - 1)]
            buffer = make(folder, state)
            log, checkpoints = log[:length], [(state, length)]
            source = Source(len(log))
            source.count = 1000 * len(log)
        reference = make(None)
        play(reference, log)
        assert len(buffer) == len(reference)
        if len(reference):
            pair = [b.sample(np.random.default_rng(len(log)), 30) for b in (buffer, reference)]
            assert all(np.array_equal(a, b) for a, b in zip(*pair, strict=True))


def test_without_slack_the_old_contents_would_be_lost(tmp_path: Path) -> None:
    """The trap that the slack is for is real: this is what the test above would miss if it could not fail."""
    samples = {}
    for slack in (0, 10):
        buffer = ReplayBuffer(DIM, ACTIONS, 10, slack=slack, folder=tmp_path / str(slack))
        source = Source()
        fill(buffer, [30], source)
        state, before = buffer.state(), buffer.sample(np.random.default_rng(0), 64)
        for _ in range(10):
            buffer.step(*source.step())
        again = ReplayBuffer(DIM, ACTIONS, 10, slack=slack, folder=tmp_path / str(slack), state=state)
        after = again.sample(np.random.default_rng(0), 64)
        samples[slack] = all(np.array_equal(a, b) for a, b in zip(before, after, strict=True))
    assert samples == {0: False, 10: True}


def test_state_is_small_arrays_and_checked() -> None:
    buffer = ReplayBuffer(DIM, ACTIONS, 100)
    fill(buffer, [20], Source())
    state = buffer.state()
    assert all(isinstance(value, np.ndarray) and value.dtype == np.int64 for value in state.values())
    assert sum(value.nbytes for value in state.values()) < 100
    with pytest.raises(EudaError, match="sizes"):
        ReplayBuffer(DIM, ACTIONS, 99, state=state)
    with pytest.raises(EudaError, match="in memory cannot resume from a state with 21 observations"):
        ReplayBuffer(DIM, ACTIONS, 100, state=state)


# -- files ---------------------------------------------------------------------------------------------


def test_files_are_really_allocated_and_reopened(tmp_path: Path) -> None:
    buffer = ReplayBuffer(50, 5, 10_000, slack=10, folder=tmp_path)
    files = list(tmp_path.iterdir())
    assert sum(file.stat().st_size for file in files) == buffer.nbytes
    assert sum(file.stat().st_blocks * 512 for file in files) >= buffer.nbytes
    buffer.start(np.ones(50))
    buffer.step(np.ones(5), 1.0, 1.0, np.full(50, 2.0))
    buffer.flush()
    again = ReplayBuffer(50, 5, 10_000, slack=10, folder=tmp_path, state=buffer.state())
    assert (again.sample(np.random.default_rng(0), 4).next_observation == 2).all()
    with pytest.raises(EudaError, match="sizes"):
        ReplayBuffer(51, 5, 10_000, slack=10, folder=tmp_path, state=buffer.state())


def test_no_more_room_than_expected_and_files_that_grow(tmp_path: Path) -> None:
    """A short run takes little of the disk; given more steps it is the buffer that had room from the start."""
    small = ReplayBuffer(DIM, ACTIONS, 1000, slack=20, expected=50, folder=tmp_path)
    whole = ReplayBuffer(DIM, ACTIONS, 1000, slack=20)
    sources = Source(), Source()
    fill(small, [20, 20], sources[0])
    fill(whole, [20, 20], sources[1])
    assert small.nbytes < 0.06 * whole.nbytes
    with pytest.raises(EudaError, match="made for 50 observations"):
        fill(small, [20], Source())
    grown = ReplayBuffer(DIM, ACTIONS, 1000, slack=20, expected=90, folder=tmp_path, state=whole.state())
    for buffer, source in zip((grown, whole), sources, strict=True):
        fill(buffer, [30], source)
    for a, b in zip(grown.sample(np.random.default_rng(0)), whole.sample(np.random.default_rng(0)), strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("name", ["observation", "action", "outcome", "start"])
@pytest.mark.parametrize("damage", ["delete", "truncate", "empty"])
def test_a_file_that_is_gone_or_too_short_is_refused_and_nothing_made(tmp_path: Path, name: str, damage: str) -> None:
    """Also the second time: refusing must not make the file that is missing."""

    def make(state: Any = None) -> ReplayBuffer:
        return ReplayBuffer(DIM, ACTIONS, 1000, slack=20, expected=50, folder=tmp_path, state=state)

    buffer = make()
    fill(buffer, [20, 20], Source())
    path = tmp_path / f"{name}.bin"
    content, row = path.read_bytes(), len(path.read_bytes()) // 50
    used = row * (40 if name == "start" else 42)
    if damage == "delete":
        path.unlink()
    else:
        path.write_bytes(content[: used - 1 if damage == "truncate" else 0])
    before = {file.name: file.read_bytes() for file in tmp_path.iterdir()}
    for _ in range(2):
        with pytest.raises(EudaError, match=rf"{name}.bin' (is gone|has {len(content[:used]) - 1} of|has 0 of)"):
            make(buffer.state())
        assert {file.name: file.read_bytes() for file in tmp_path.iterdir()} == before
    path.write_bytes(content[:used])  # all that counts
    for a, b in zip(*(b.sample(np.random.default_rng(0)) for b in (make(buffer.state()), buffer)), strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize(
    "counters", [[1, 2], [5, 6, 0], [5, 4, 5], [5, 4, -1], [-5, 0, 0], [3000, 2000, 0], [[1, 1, 0]]]
)
def test_counters_that_cannot_be_are_refused(tmp_path: Path, counters: list[int]) -> None:
    buffer = ReplayBuffer(DIM, ACTIONS, 100, folder=tmp_path)
    with pytest.raises(EudaError, match="its counters are"):
        ReplayBuffer(DIM, ACTIONS, 100, folder=tmp_path, state=buffer.state() | {"counters": np.array(counters)})


def test_a_full_disk_is_one_sentence_and_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = os.posix_fallocate

    def full(descriptor: int, offset: int, length: int) -> None:
        if length > 1000:
            raise OSError(errno.ENOSPC, "No space left on device")
        real(descriptor, offset, length)

    monkeypatch.setattr(os, "posix_fallocate", full)
    with pytest.raises(EudaError, match=r"needs .* GB in .*too little space"):
        ReplayBuffer(50, 5, 1000, folder=tmp_path)
    assert not list(tmp_path.iterdir())


def test_a_million_humanoid_observations_take_what_the_documents_say() -> None:
    """Raw means observation, action, reward and discount once per step."""
    env, config = euda.make("humanoid_run"), RunConfig("humanoid_run")
    features, actions = env.layout.dim, env.action_space.shape[0]
    sizes = [ReplayBuffer(features, actions, 100 * k, slack=10 * k).nbytes for k in (1, 2)]
    per_slot = (sizes[1] - sizes[0]) / 110
    assert sizes[0] == 110 * per_slot
    room = per_slot * (config.replay.capacity + spare_slots(config))
    raw = 4 * (features + actions + 2) * config.replay.capacity
    text = (Path(__file__).parents[1] / "docs" / "runs.md").read_text("utf-8")
    assert f"({features} numbers, {actions} actions) take {room / 1e9:.2f} GB with spare slots" in text
    assert f"{room / raw:.2f} times the raw size" in text


def test_bad_input() -> None:
    buffer = ReplayBuffer(DIM, ACTIONS, 100)
    with pytest.raises(EudaError, match="empty"):
        buffer.sample(np.random.default_rng(0))
    with pytest.raises(EudaError, match="start"):
        buffer.step([0, 0], 0.0, 1.0, [0, 0, 0])
    buffer.start([0, 0, 0])
    for reward, observation in ((np.nan, [0, 0, 0]), (0.0, [0, np.inf, 0])):
        with pytest.raises(EudaError, match="finite"):
            buffer.step([0, 0], reward, 1.0, observation)
    assert len(buffer) == 0
    with pytest.raises(EudaError, match=r"recency must be at least 1.*not 0\.5"):
        ReplayBuffer(DIM, ACTIONS, 100, recency=0.5)
    for sizes in ((0, 1, 10), (1, 0, 10), (1, 1, 1)):
        with pytest.raises(EudaError, match="sizes"):
            ReplayBuffer(*sizes)
