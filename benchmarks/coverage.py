"""How often intervals hold what they should hold, by simulation: why reports have the intervals they have.

    .venv/bin/python benchmarks/coverage.py

Studies of a few seeds are drawn from distributions of returns whose mean, median and probability of improvement are
known. Of the usual intervals of the mean (Student t, percentile bootstrap) and of ours of the median, and of the usual
interval of the probability of improvement (stratified bootstrap) and ours, the share of studies in which they hold the
truth is written to `results/benchmarks/coverage.json`. 95 % was asked for.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
from scipy import stats

from euda.reports import comparison, statistics
from euda.reports.statistics import Floats

OUT = Path(__file__).resolve().parents[1] / "results" / "benchmarks" / "coverage.json"
STUDIES, RESAMPLES, SEEDS = 2000, 1000, (2, 3, 4, 5, 6, 8, 10)
Draw = Callable[[np.random.Generator, tuple[int, int]], Floats]


def _solved(share: float) -> Draw:
    """Runs that solve the task with a probability and otherwise stay near nothing."""
    return lambda draw, shape: 900 * (draw.random(shape) < share) + draw.uniform(0, 50, shape)


RETURNS: dict[str, tuple[Draw, float, float]] = {
    "normal": (lambda draw, shape: draw.normal(size=shape), 0.0, 0.0),
    "skewed (lognormal)": (lambda draw, shape: draw.lognormal(size=shape), float(np.exp(0.5)), 1.0),
    "one seed in five fails": (_solved(0.8), 0.8 * 900 + 25, 900 + 50 * (0.5 - 0.2) / 0.8),
}
"""Distributions of returns over seeds, with mean and median."""
PAIRS: dict[str, tuple[Draw, Draw]] = {
    "no difference (normal)": (RETURNS["normal"][0], RETURNS["normal"][0]),
    "shifted by two deviations (normal)": (lambda draw, shape: draw.normal(2, size=shape), RETURNS["normal"][0]),
    "nine of ten seeds solve it, three of ten": (_solved(0.9), _solved(0.3)),
}
"""Returns of two methods."""


def of_mean(values: Floats, mean: float, draw: np.random.Generator) -> dict[str, float]:
    """Coverage of the usual intervals; values [seeds, studies]."""
    seeds = len(values)
    middle, error = values.mean(axis=0), values.std(axis=0, ddof=1) / np.sqrt(seeds)
    half = stats.t.ppf(0.975, seeds - 1) * error
    resampled = values[draw.integers(seeds, size=(RESAMPLES, seeds))].mean(axis=1)
    low, high = np.percentile(resampled, [2.5, 97.5], axis=0)
    return {
        "Student t": float(np.mean(np.abs(middle - mean) <= half)),
        "bootstrap": float(np.mean((low <= mean) & (mean <= high))),
    }


def of_median(values: Floats, median: float) -> dict[str, float | None]:
    """Coverage of ours."""
    band = statistics.median_band(values)
    held = (band.low <= median) & (median <= band.high)
    return {"median": float(held.mean()) if np.isfinite(band.low).all() else None}


def of_improvement(first: Floats, second: Floats, truth: float, draw: np.random.Generator) -> dict[str, float]:
    """Coverage of the stratified bootstrap and of ours; values [seeds, studies]."""
    seeds, studies = first.shape
    usual, ours = 0, 0
    for a, b in zip(first.T, second.T, strict=True):
        pair = [side[draw.integers(seeds, size=(RESAMPLES, seeds))] for side in (a, b)]
        shares = 0.5 + 0.5 * np.sign(pair[0][:, :, None] - pair[1][:, None, :]).mean(axis=(1, 2))
        low, high = np.percentile(shares, [2.5, 97.5])
        usual += low <= truth <= high
        found = comparison.improvement_interval([(a, b)])
        ours += found.low <= truth <= found.high
    return {"bootstrap": usual / studies, "ours": ours / studies}


def main() -> None:
    draw = np.random.default_rng(0)
    rows = []
    for name, (returns, mean, median) in RETURNS.items():
        for seeds in SEEDS:
            values = returns(draw, (seeds, STUDIES))
            rows.append({"returns": name, "seeds": seeds, **of_mean(values, mean, draw), **of_median(values, median)})
    pairs = []
    for name, (one, other) in PAIRS.items():
        truth = comparison.probability_of_improvement(one(draw, (1, 4000))[0], other(draw, (1, 4000))[0])
        for seeds in SEEDS:
            first, second = one(draw, (seeds, STUDIES)), other(draw, (seeds, STUDIES))
            pairs.append({"returns": name, "seeds": seeds, **of_improvement(first, second, truth, draw)})
    OUT.write_text(json.dumps({"studies": STUDIES, "one_method": rows, "two_methods": pairs}, indent=1) + "\n", "utf-8")


if __name__ == "__main__":
    main()
