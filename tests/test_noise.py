"""Exploration noise: every number N(0, 1) by itself, with the correlation in time that its name promises."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from euda.agents.noise import Bursts, Held, HeldAtFirst, Noise, Pink

KINDS = {"pink": Pink, "held": Held}
ACTIONS = 2


def series(noise: Noise, steps: int, seed: int = 0, *, uniform: bool = False) -> np.ndarray:
    draw = np.random.default_rng(seed)
    noise.begin(draw)
    return np.array([noise.uniform(draw) if uniform else noise.normal(draw) for _ in range(steps)])


@pytest.fixture(scope="module", params=KINDS)
def sample(request) -> tuple[str, np.ndarray]:
    """400 episodes of 64 steps: [episode, step, action]."""
    return request.param, np.array([series(KINDS[request.param](ACTIONS), 64, seed) for seed in range(400)])


def test_every_number_is_standard_normal_at_every_step(sample: tuple[str, np.ndarray]) -> None:
    _, x = sample
    assert x.dtype == np.float32
    for step in (0, 1, 30):
        assert x[:, step].mean() == pytest.approx(0, abs=0.13)
        assert x[:, step].std() == pytest.approx(1, abs=0.1)
    assert np.corrcoef(x[:, 5].T)[0, 1] == pytest.approx(0, abs=0.2)  # actions are independent of each other


def correlation(x: np.ndarray, lag: int) -> float:
    return float((x[:, lag:] * x[:, : x.shape[1] - lag]).mean())


def test_numbers_depend_on_those_before_as_the_name_says(sample: tuple[str, np.ndarray]) -> None:
    name, x = sample
    near, far = correlation(x, 1), correlation(x, 32)
    if name == "pink":  # the mean of exp(-lag / time) over the ten times
        expected = [np.exp(-lag / 2.0 ** np.arange(10)).mean() for lag in (1, 32)]
        assert [near, far] == pytest.approx(expected, abs=0.06)
    else:
        assert near > 0.35
        assert far == pytest.approx(0, abs=0.05)
        assert (x[:, 1:] == x[:, :-1]).mean() > 0.35


def test_noise_that_is_held_at_first_is_held_only_while_actions_are_random() -> None:
    random, later = (series(HeldAtFirst(ACTIONS), 400, uniform=uniform) for uniform in (True, False))
    np.testing.assert_array_equal(random, series(Held(ACTIONS), 400, uniform=True))
    assert (later[1:] != later[:-1]).all()
    assert later.std() == pytest.approx(1, abs=0.1)


def interruptions(noise: Noise, steps: int, draw: np.random.Generator) -> list[np.ndarray | None]:
    return [noise.instead(draw) for _ in range(steps)]


def test_only_bursts_interrupt_the_policy() -> None:
    for kind in (Pink, Held, HeldAtFirst):
        assert set(interruptions(kind(ACTIONS), 500, np.random.default_rng(0))) == {None}


def test_bursts_are_a_tenth_of_all_steps_each_one_random_action_held_for_1_to_32() -> None:
    noise, draw = Bursts(ACTIONS), np.random.default_rng(0)
    noise.begin(draw)
    taken = interruptions(noise, 400_000, draw)
    assert np.mean([action is not None for action in taken]) == pytest.approx(0.1, abs=0.004)
    held = [(action, len(list(same))) for action, same in itertools.groupby(taken, lambda a: a if a is None else (*a,))]
    lengths = np.array([length for action, length in held if action is not None])
    assert (lengths.min(), lengths.max()) == (1, 32)
    assert np.bincount(lengths, minlength=33)[1:] / len(lengths) == pytest.approx(np.full(32, 1 / 32), abs=0.012)
    actions = np.array([action for action, _ in held if action is not None])
    counts, _ = np.histogram(actions, bins=5, range=(-1, 1))
    assert counts / actions.size == pytest.approx(np.full(5, 0.2), abs=0.02)


def test_bursts_begin_anew_with_an_episode_and_go_on_from_their_memory() -> None:
    noise, draw = Bursts(ACTIONS), np.random.default_rng(1)
    noise.begin(draw)
    while noise.instead(draw) is None or noise.memory[-1] < 5:
        pass
    other, copy = Bursts(ACTIONS), np.random.default_rng()
    other.memory, copy.bit_generator.state = noise.memory.copy(), draw.bit_generator.state
    for one, two in zip(interruptions(noise, 2000, draw), interruptions(other, 2000, copy), strict=True):
        assert one is two is None or np.array_equal(one, two)
    noise.memory[-1] = 7
    noise.begin(draw)
    assert noise.memory[-1] == 0


def test_an_action_that_is_held_when_the_policys_turn_comes_goes_on_as_a_burst() -> None:
    noise, draw = Bursts(ACTIONS), np.random.default_rng(2)
    noise.begin(draw)
    np.testing.assert_array_equal(series(Bursts(ACTIONS), 400, uniform=True), series(Held(ACTIONS), 400, uniform=True))
    went_on = 0
    for _ in range(2000):
        last = noise.uniform(draw)
        if noise.memory[-1] > 0:
            np.testing.assert_array_equal(noise.instead(draw), last)
            went_on += 1
        assert np.abs(last).max() <= 1
    assert went_on > 100


def test_the_spectrum_of_pink_noise_falls_as_one_over_the_frequency() -> None:
    window = np.hanning(512)[:, None]  # without it slow parts leak into all frequencies
    episodes = [window * series(Pink(8), 512, seed) for seed in range(12)]
    power = np.mean([np.abs(np.fft.rfft(x, axis=0)) ** 2 for x in episodes], axis=(0, 2))[4:128]
    slope = np.polyfit(np.log(np.arange(4, 128)), np.log(power), 1)[0]
    assert slope == pytest.approx(-1, abs=0.2)


@pytest.mark.parametrize("name", KINDS)
def test_uniform_numbers_fill_the_range(name: str) -> None:
    x = np.concatenate([series(KINDS[name](4), 50, seed, uniform=True) for seed in range(80)])
    assert np.abs(x).max() <= 1
    counts, _ = np.histogram(x, bins=5, range=(-1, 1))
    assert counts / x.size == pytest.approx(np.full(5, 0.2), abs=0.04)


@pytest.mark.parametrize("name", KINDS)
def test_a_process_goes_on_from_its_memory(name: str) -> None:
    draw, one = np.random.default_rng(3), KINDS[name](ACTIONS)
    one.begin(draw)
    for _ in range(7):
        one.normal(draw)
    other, copy = KINDS[name](ACTIONS), np.random.default_rng()
    assert other.memory.shape == one.memory.shape
    other.memory, copy.bit_generator.state = one.memory.copy(), draw.bit_generator.state
    for _ in range(40):
        assert np.array_equal(one.normal(draw), other.normal(copy))
