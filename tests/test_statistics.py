"""Statistics on hand-made numbers and against SciPy."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from euda.errors import EudaError
from euda.study import statistics as s

NAN = np.nan


def generator():
    return np.random.default_rng(0)


def test_student_band_by_hand_and_with_unequal_lengths():
    values = np.array([[0.0, 1.0, 5.0], [2.0, 3.0, NAN], [4.0, NAN, NAN]])
    band = s.student_band(values)
    assert band.mean.tolist() == [2.0, 2.0, 5.0]
    assert band.count.tolist() == [3, 2, 1]
    # 4.303 and 12.706 are t(0.975) with 2 and 1 degrees of freedom; standard errors 2/sqrt(3) and sqrt(2)/sqrt(2)
    np.testing.assert_allclose(band.high[:2] - band.mean[:2], [4.30265 * 2 / 3**0.5, 12.7062], rtol=1e-5)
    np.testing.assert_allclose(band.mean - band.low, band.high - band.mean)
    assert np.isnan(band.low[2])


def test_an_evaluation_that_no_run_has_is_not_a_number():
    band = s.student_band(np.array([[1.0, NAN], [2.0, NAN]]))
    assert band.count.tolist() == [2, 0]
    assert np.isnan(band.mean[1])


@given(st.lists(st.floats(-1e3, 1e3), min_size=2, max_size=9).filter(lambda x: np.std(x) > 1e-3))
def test_student_interval_is_scipys(scores):
    found = s.student_interval(scores)
    low, high = stats.t.interval(0.95, len(scores) - 1, loc=np.mean(scores), scale=stats.sem(scores))
    np.testing.assert_allclose([found.value, found.low, found.high], [np.mean(scores), low, high], atol=1e-6)


def test_bootstrap_interval_is_scipys():
    scores = np.array([3.0, 7.0, 7.5, 9.0, 20.0])
    found = s.bootstrap_interval(scores, generator(), resamples=20_000)
    there = stats.bootstrap(
        (scores,), np.mean, method="percentile", n_resamples=20_000, rng=np.random.default_rng(1)
    ).confidence_interval
    assert found.value == scores.mean()
    np.testing.assert_allclose([found.low, found.high], [there.low, there.high], atol=0.2)


def test_one_run_has_no_interval_and_none_has_no_value():
    for found in (s.student_interval([5.0]), s.bootstrap_interval([5.0, NAN], generator())):
        assert (found.value, found.count, found.is_known) == (5.0, 1, False)
    assert s.bootstrap_interval([NAN], generator()).count == 0


def test_interquartile_mean_by_hand_and_against_scipy():
    assert s.interquartile_mean([[0.0, 1.0, 2.0, 100.0]]) == 1.5
    assert s.interquartile_mean([[0.0, 1.0], [2.0, 100.0]]) == 1.5
    draws = generator().normal(size=(3, 8))
    assert s.interquartile_mean(list(draws)) == pytest.approx(stats.trim_mean(draws.ravel(), 0.25))
    assert np.isnan(s.interquartile_mean([]))


def test_stratified_bootstrap_keeps_tasks_apart():
    """Without variation inside the tasks there is no uncertainty, however much the tasks differ."""
    found = s.interquartile_interval([[1.0, 1.0], [9.0, 9.0]], generator())
    assert (found.value, found.low, found.high, found.count) == (5.0, 5.0, 5.0, 4)
    noisy = s.interquartile_interval([[0.0, 2.0], [8.0, 10.0]], generator())
    assert noisy.low < 5.0 < noisy.high
    assert not s.interquartile_interval([[1.0], [9.0, 9.0]], generator()).is_known


def test_probability_of_improvement_by_hand_and_against_scipy():
    assert s.probability_of_improvement([1, 2], [0, 0]) == 1.0
    assert s.probability_of_improvement([0, 2], [1, 1]) == 0.5
    assert s.probability_of_improvement([1, 1], [1, 1]) == 0.5
    a, b = generator().normal(size=7), generator().normal(0.3, size=5)
    expected = stats.mannwhitneyu(a, b).statistic / 35
    assert s.probability_of_improvement(a, b) == pytest.approx(expected)
    assert np.isnan(s.probability_of_improvement([], [1]))


def test_improvement_over_tasks_is_their_mean():
    pairs = [([3, 4], [1, 2]), ([0, 0], [1, 1])]
    found = s.improvement_interval(pairs, generator())
    assert (found.value, found.low, found.high) == (0.5, 0.5, 0.5)
    assert np.isnan(s.improvement_interval([], generator()).value)


def test_area_under_curve_by_hand():
    values = np.array([[0.0, 10.0, 10.0], [0.0, 0.0, 4.0], [2.0, 2.0, NAN]])
    np.testing.assert_allclose(s.area_under_curve([0, 10, 20], values), [7.5, 1.0, NAN])
    np.testing.assert_allclose(s.area_under_curve([0, 10, 20], values, until=10), [5.0, 0.0, 2.0])
    np.testing.assert_allclose(s.area_under_curve([0, 10, 100], values)[:1], [(50 + 900) / 100])
    assert np.isnan(s.area_under_curve([0, 10], values[:, :2], until=5)).all()


def test_steps_to_reach_by_hand():
    values = np.array([[0.0, 5.0, 3.0], [0.0, 1.0, 2.0], [NAN, NAN, 9.0]])
    np.testing.assert_allclose(s.steps_to_reach([0, 10, 20], values, 5.0), [10, NAN, 20])


def test_unequal_lengths():
    values = np.array([[0.0, 5.0, 3.0], [0.0, 1.0, NAN]])
    assert s.common_evaluations(values) == 2
    assert s.last_common(values) == 1
    assert s.common_evaluations(values[:1]) == 3
    assert s.last_common(np.full((2, 2), NAN)) is None


def test_best_share_and_who_may_be_as_good():
    scores = {0.0: [1, 2, 1.5], 0.25: [90, 91, 92], 0.5: [89, 91, 92.5], 1.0: [50, 51, 50]}
    assert s.best_share(scores) == (0.25, [0.5])
    assert s.best_share({0.5: [3.0], 0.25: [3.0]}) == (0.25, [0.5])
    with pytest.raises(EudaError, match="no scores"):
        s.best_share({0.5: []})


def test_smooth_by_hand():
    assert s.smooth([1, 2, 6, NAN, 4], 3).tolist() == [1.5, 3.0, 4.0, 5.0, 4.0]
    assert s.smooth([1.0, 2.0], 1).tolist() == [1.0, 2.0]


def test_wrong_shapes_are_refused():
    with pytest.raises(EudaError, match="runs, evaluations"):
        s.student_band(np.zeros(3))
