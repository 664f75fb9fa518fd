"""Statistics on hand-made numbers, against SciPy, and by simulation: intervals must hold in 95 of 100 studies."""

import functools
import itertools

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from euda.errors import EudaError
from euda.reports import comparison, statistics

NAN = np.nan
STUDIES = 4000
SLACK = 4 * np.sqrt(0.95 * 0.05 / STUDIES)  # four standard errors of a simulated share of 0.95
SEEDS = (2, 3, 4, 5, 6, 7, 8, 9, 10, 15)


def generator():
    return np.random.default_rng(0)


def solved(share):
    """Runs that solve the task with a probability, or else stay near nothing: what seeds of the reacher look like."""
    return lambda draw, size: 900 * (draw.random(size) < share) + draw.uniform(0, 50, size)


RETURNS = {
    "normal": (lambda draw, size: draw.normal(size=size), 0.0),
    "skewed": (lambda draw, size: draw.lognormal(size=size), 1.0),
    "heavy": (lambda draw, size: draw.standard_t(2, size=size), 0.0),
    "one in five fails": (solved(0.8), 900 + 50 * (0.5 - 0.2) / 0.8),
    "few values": (lambda draw, size: draw.integers(0, 3, size=size).astype(float), 1.0),
    "always the same": (lambda draw, size: np.zeros(size), 0.0),
}
"""Distributions of returns over seeds, with their medians."""


# -- one method ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("runs", [n for n in SEEDS if n >= statistics.ENOUGH])
@pytest.mark.parametrize("name", RETURNS)
def test_an_interval_of_the_median_holds_it_in_95_of_100_studies(name, runs):
    draw, median = RETURNS[name]
    band = statistics.median_band(draw(generator(), (runs, STUDIES)))
    assert np.mean((band.low <= median) & (median <= band.high)) > 0.95 - SLACK
    if name == "normal":  # no wider than it must be: one run fewer at each end would be too narrow
        outside = 1 + (statistics.cut(runs) or 0)
        inner = np.sort(draw(generator(), (runs, STUDIES)), axis=0)[outside : runs - outside]
        assert np.mean((inner[0] <= median) & (median <= inner[-1])) < 0.95


def test_fewer_than_six_runs_have_no_interval_because_their_range_is_not_one():
    assert statistics.ENOUGH == 6
    for runs in range(1, 6):
        values = generator().normal(size=(runs, STUDIES))
        assert np.isnan(statistics.median_band(values).low).all()
        assert np.mean((values.min(axis=0) <= 0) & (values.max(axis=0) >= 0)) < 0.95


def test_median_band_by_hand_and_with_unequal_lengths():
    values = np.array([[0.0, 1.0, 5.0], [2.0, 4.0, NAN], [4.0, NAN, NAN]])
    band = statistics.median_band(values)
    assert band.median.tolist() == [2.0, 2.5, 5.0]
    assert band.count.tolist() == [3, 2, 1]
    nine = np.array([[9.0, 1, 8, 2, 7, 3, 6, 4, 5]]).T
    nine = np.concatenate([nine, np.where(nine < 4, NAN, nine)], axis=1)
    band = statistics.median_band(nine)
    assert (band.low.tolist(), band.high.tolist(), band.count.tolist()) == ([2.0, 4.0], [8.0, 9.0], [9, 6])


def test_the_interval_of_the_median_is_scipys_quantile_test():
    scores = generator().normal(size=13)
    found = statistics.median_interval(scores)
    there = stats.quantile_test(scores, q=0, p=0.5).confidence_interval(0.95)
    assert (found.low, found.high) == (there.low, there.high)
    assert (found.value, found.count) == (np.median(scores), 13)


def test_what_no_run_has_is_not_a_number():
    band = statistics.median_band(np.array([[1.0, NAN], [2.0, NAN]]))
    assert band.count.tolist() == [2, 0]
    assert np.isnan(band.median[1])
    alone = statistics.median_interval([5.0, NAN])
    assert (alone.value, alone.count, alone.is_known) == (5.0, 1, False)


def test_interquartile_mean_by_hand_and_against_scipy():
    assert statistics.interquartile_mean([[0.0, 1.0, 2.0, 100.0]]) == 1.5
    assert statistics.interquartile_mean([[0.0, 1.0], [2.0, 100.0]]) == 1.5
    draws = generator().normal(size=(3, 8))
    assert statistics.interquartile_mean(list(draws)) == pytest.approx(stats.trim_mean(draws.ravel(), 0.25))
    assert np.isnan(statistics.interquartile_mean([]))


def test_area_under_curve_by_hand():
    values = np.array([[0.0, 10.0, 10.0], [0.0, 0.0, 4.0], [2.0, 2.0, NAN]])
    area = statistics.area_under_curve
    np.testing.assert_allclose(area([0, 10, 20], values), [7.5, 1.0, NAN])
    np.testing.assert_allclose(area([0, 10, 20], values, until=10), [5.0, 0.0, 2.0])
    np.testing.assert_allclose(area([0, 10, 100], values)[:1], [(50 + 900) / 100])
    assert np.isnan(area([0, 10], values[:, :2], until=5)).all()


def test_steps_to_reach_by_hand():
    values = np.array([[0.0, 5.0, 3.0], [0.0, 1.0, 2.0], [NAN, NAN, 9.0]])
    np.testing.assert_allclose(statistics.steps_to_reach([0, 10, 20], values, 5.0), [10, NAN, 20])
    np.testing.assert_allclose(statistics.steps_to_reach([0, 10, 20], values - 10, -8.0), [10, 20, 20])


def test_unequal_lengths():
    values = np.array([[0.0, 5.0, 3.0], [0.0, 1.0, NAN]])
    assert statistics.last_common(values) == 1
    assert statistics.last_common(values[:1]) == 2
    assert statistics.last_common(np.full((2, 2), NAN)) is None


def test_smooth_by_hand():
    assert statistics.smooth([1, 2, 6, NAN, 4], 3).tolist() == [1.5, 3.0, 4.0, 5.0, 4.0]
    assert statistics.smooth([1.0, 2.0], 1).tolist() == [1.0, 2.0]


def test_wrong_shapes_are_refused():
    with pytest.raises(EudaError, match="runs, evaluations"):
        statistics.median_band(np.zeros(3))


# -- two methods ---------------------------------------------------------------------------------------------


def test_probability_of_improvement_by_hand_and_against_scipy():
    probability = comparison.probability_of_improvement
    assert probability([1, 2], [0, 0]) == 1.0
    assert probability([0, 2], [1, 1]) == 0.5
    assert probability([1, 1], [1, 1]) == 0.5
    a, b = generator().normal(size=7), generator().normal(0.3, size=5)
    assert probability(a, b) == pytest.approx(stats.mannwhitneyu(a, b).statistic / 35)
    assert np.isnan(probability([], [1]))


def shifted(name, by):
    draw, _ = RETURNS[name]
    scale = 300 if name == "one in five fails" else 1
    return lambda source, size: draw(source, size) + by * scale


PAIRS = {
    **{f"{name}, no difference": (RETURNS[name][0], RETURNS[name][0]) for name in RETURNS},
    **{f"{name}, shifted": (shifted(name, 1.0), RETURNS[name][0]) for name in RETURNS},
    "one scatters five times as much": (lambda draw, size: 5 * draw.normal(size=size), RETURNS["normal"][0]),
    "one never changes": (lambda draw, size: np.full(size, 0.7), RETURNS["normal"][0]),
    "solved by nine of ten, by three of ten": (solved(0.9), solved(0.3)),
    "nearly always better": (lambda draw, size: draw.normal(2.5, size=size), RETURNS["normal"][0]),
}
"""Returns of two methods: the same, one better by a shift, and different in more than that."""


def truth(pair):
    """The probability that a run of the first beats one of the second, from many runs."""
    draw = np.random.default_rng(1)
    a, b = (side(draw, 400_000) for side in pair)
    return 0.5 + 0.5 * np.sign(a - b).mean()


@pytest.mark.parametrize("name", PAIRS)
def test_an_interval_of_the_probability_of_improvement_holds_it_in_95_of_100_studies(name):
    """For 2 to 10 seeds and 15, equal numbers or not; a bootstrap's held it in 69 of 100 studies with two each."""
    pair, draw = PAIRS[name], generator()
    expected = truth(pair)
    for m, n in [*((n, n) for n in SEEDS), (2, 10), (10, 2), (5, 3), (1, 1)]:
        a, b = pair[0](draw, (STUDIES, m)), pair[1](draw, (STUDIES, n))
        shares = (0.5 + 0.5 * np.sign(a[:, :, None] - b[:, None, :]).mean(axis=(1, 2))).round(9)
        values, counts = np.unique(shares, return_counts=True)  # the interval depends on the share and the seeds alone
        holds = [low - 1e-3 <= expected <= high + 1e-3 for low, high in (bounds(share, m, n) for share in values)]
        assert np.average(holds, weights=counts) > 0.95 - SLACK, (m, n)


@functools.cache
def bounds(share, m, n):
    """The interval of m against n runs with this share of wins."""
    doubled = round(2 * share * m * n)  # a tie is half a win
    wins = [min(2 * n, max(0, doubled - 2 * n * run)) / 2 for run in range(m)]
    found = comparison.improvement_interval([(np.array(wins) - 0.5, np.arange(n))])
    assert found.value == pytest.approx(share, abs=1e-6)
    return found.low, found.high


def test_improvement_over_tasks_holds_too():
    """Mean over three tasks, one of them with other numbers of seeds."""
    draw = generator()
    pairs = [PAIRS["normal, shifted"], PAIRS["solved by nine of ten, by three of ten"], PAIRS["skewed, no difference"]]
    expected = np.mean([truth(pair) for pair in pairs])
    sizes = [(2, 2), (3, 2), (5, 4)]
    holds = []
    for _ in range(600):
        drawn = [(p[0](draw, m), p[1](draw, n)) for p, (m, n) in zip(pairs, sizes, strict=True)]
        found = comparison.improvement_interval(drawn)
        holds.append(found.low <= expected <= found.high)
    assert np.mean(holds) > 0.95


def test_the_interval_of_improvement_is_that_of_independent_pairs():
    """All wins of two against two: 0.025 ** (1 / 2), as for two coins that both show heads; never a single point."""
    found = comparison.improvement_interval([([3, 4], [1, 2])])
    assert (found.value, found.high, found.count) == (1.0, 1.0, 4)
    assert found.low == pytest.approx(0.025**0.5)
    for heads in range(1, 6):  # Clopper and Pearson's, or a little wider
        exact = stats.binomtest(heads, 5).proportion_ci(0.95).low
        assert exact - 0.01 < comparison._lower_bound(heads / 5, 5) <= exact + 1e-9
    both = comparison.improvement_interval([([3, 4], [1, 2]), ([0, 0], [1, 1])])
    assert both.value == 0.5
    assert both.low == pytest.approx(1 - both.high)
    assert both.low < 0.1
    assert np.isnan(comparison.improvement_interval([]).value)
    assert not comparison.improvement_interval([([1.0], [NAN])]).is_known


@given(
    st.lists(st.floats(-1e3, 1e3), min_size=1, max_size=8, unique=True),
    st.lists(st.floats(-1e3, 1e3), min_size=1, max_size=8, unique=True),
)
def test_the_exact_test_is_scipys_where_nothing_is_tied(a, b):
    if set(a) & set(b):
        return
    expected = stats.mannwhitneyu(a, b, method="exact").pvalue
    assert comparison.mann_whitney(a, b) == pytest.approx(expected)
    assert comparison.mann_whitney(b, a) == pytest.approx(expected)


def test_the_exact_test_with_ties_by_going_through_all_assignments():
    """SciPy's exact method is for scores without ties: it says 0.2 for the last pair, where nothing can be said."""
    for a, b in (([0, 0, 1], [0, 2, 2, 0]), ([1, 1, 1, 5], [1, 0, 0]), ([0, 0, 0], [0, 0, 0])):
        scores = stats.rankdata([*a, *b])
        sums = [sum(chosen) for chosen in itertools.combinations(scores, len(a))]
        here = sum(scores[: len(a)])
        shares = [np.mean([total <= here + 1e-9 for total in sums]), np.mean([total >= here - 1e-9 for total in sums])]
        assert comparison.mann_whitney(a, b) == pytest.approx(min(1, 2 * min(shares)))
    assert comparison.mann_whitney([0, 0, 0], [0, 0, 0]) == 1.0
    assert np.isnan(comparison.mann_whitney([], [1.0]))


@pytest.mark.parametrize("name", ["normal", "one in five fails", "few values"])
def test_the_exact_test_errs_in_at_most_5_of_100_studies_without_a_difference(name):
    draw = generator()
    for runs in (4, 5, 8):
        scores = RETURNS[name][0](draw, (1000, 2 * runs))
        wrong = np.mean([comparison.mann_whitney(row[:runs], row[runs:]) < 0.05 for row in scores])
        assert wrong < 0.05 + 4 * np.sqrt(0.05 * 0.95 / 1000)


def test_holm_by_hand():
    assert comparison.holm([0.01, 0.04, 0.03]) == pytest.approx([0.03, 0.06, 0.06])
    assert comparison.holm([0.5, 0.9]) == [1.0, 1.0]
    assert comparison.holm([0.02]) == [0.02]
    adjusted = comparison.holm([0.01, NAN, 0.02])
    assert adjusted[::2] == pytest.approx([0.02, 0.02])
    assert np.isnan(adjusted[1])


def test_holm_errs_on_no_claim_in_95_of_100_studies():
    """Four methods that are all the same, each against the same reference."""
    draw = generator()
    wrong = 0
    for _ in range(1000):
        reference, *others = draw.normal(size=(5, 6))
        wrong += min(comparison.holm([comparison.mann_whitney(other, reference) for other in others])) < 0.05
    assert wrong / 1000 < 0.05


def test_the_seeds_that_decide_do_decide_in_four_of_five_studies():
    """Judged by SciPy on fresh draws from the distributions that the scores came from."""
    draw = generator()
    a, b = draw.normal(1.3, size=400), draw.normal(size=400)
    seeds = comparison.seeds_to_decide(a, b, generator())

    def power(n):
        fresh = np.random.default_rng(5)
        first, second = fresh.normal(1.3, size=(2000, n)), fresh.normal(size=(2000, n))
        return np.mean(stats.mannwhitneyu(first, second, axis=1, method="exact").pvalue < 0.05)

    assert seeds is not None
    assert power(seeds) > 0.76
    assert power(seeds - 2) < 0.80
    stricter = comparison.seeds_to_decide(a, b, generator(), level=0.01)
    assert stricter is not None
    assert stricter > seeds


def test_seeds_that_decide_where_all_is_clear_and_where_nothing_is():
    assert comparison.seeds_to_decide([5, 6, 7], [1, 2, 3], generator()) == 4  # the least that can have p below 0.05
    assert comparison.seeds_to_decide([5, 6, 7], [1, 2, 3], generator(), level=0.01) == 5
    assert comparison.seeds_to_decide([1, 2, 3], [1, 2, 3], generator()) is None
    assert comparison.seeds_to_decide([], [1.0], generator()) is None


def test_the_best_of_several_and_who_cannot_be_told_from_it():
    few = {0.0: [1, 2, 1.5], 0.25: [90, 91, 92], 1.0: [50, 51, 50]}
    assert comparison.best(few) == (0.25, [0.0, 1.0])  # three against three decide nothing: the smallest p is 0.1
    many = {0.0: np.arange(6), 0.25: 90 + np.arange(6), 0.5: 89.5 + np.arange(6)}
    assert comparison.best(many) == (0.25, [0.5])
    assert comparison.best({0.5: [3.0], 0.25: [3.0]}) == (0.25, [0.5])
    with pytest.raises(EudaError, match="no scores"):
        comparison.best({0.5: []})
