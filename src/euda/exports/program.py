"""A policy as a short list of array operations, which every format of file is written from.

Values have names: `observation`, a constant (`actor/0/weight`, `c3`), or the output of an earlier step. A shape in the
options of a step has -1 where the number of observations stands. All numbers are float32, indices int64.

| operation | options | what it gives |
|---|---|---|
| neg abs sign floor sqrt exp log sin cos tanh sigmoid not | | of each entry |
| add sub mul div max min pow fmod atan2 | | of two arrays that broadcast |
| less less_equal greater greater_equal equal not_equal and or | | likewise, true or false |
| where | | of (condition, where true, where false) |
| float | | 0 or 1 of false or true |
| matmul | | the product of [..., n] and [n, m] |
| einsum | equation | a sum of products of two arrays |
| sum amax | axes | over axes, which are gone then |
| take | axis | of (array, indices): entries along an axis |
| reshape expand | shape | the same entries in another shape; repeated to a shape |
| transpose | axes | axes in another order |
| concat | axis | of several arrays |
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

OBSERVATION = "observation"
BATCH = -1
"""In shapes: the number of observations."""


class Step(NamedTuple):
    """One operation."""

    operation: str
    inputs: tuple[str, ...]
    output: str
    options: Mapping[str, Any]
    """Plain JSON."""


@dataclasses.dataclass(frozen=True)
class Program:
    """Observations [B, dim] to actions [B, m] in [-1, 1]."""

    dim: int
    actions: int
    constants: Mapping[str, np.ndarray]
    steps: tuple[Step, ...]
    output: str
    """Which value the actions are."""
    about: Mapping[str, Any]
    """Plain JSON: which run, what each entry of an observation and of an action is."""
