"""Costs → who goes with whom, so that the sum is least."""

from __future__ import annotations

import numpy as np


def assign(costs: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Rows and their columns, each used once, with the least sum of costs [rows, columns]."""
    # loading SciPy's optimisers takes a third of a second, which every command would pay, and few seek symmetries
    from scipy.optimize import linear_sum_assignment

    return linear_sum_assignment(costs)
