"""What an element of a symmetry group does to a row of numbers: few inputs per output, a factor each, an offset."""

from __future__ import annotations

import dataclasses
import functools
from typing import Any, Protocol

import array_api_compat
import numpy as np


@dataclasses.dataclass(frozen=True, eq=False)
class EntryMap:
    """y[i] = Σ_k weight[k, i] x[index[k, i]] + offset[i]. Usually one term: entries change place and sign."""

    index: np.ndarray
    """[terms, dim] whole numbers."""
    weight: np.ndarray
    """[terms, dim]"""
    offset: np.ndarray
    """[dim]"""

    @staticmethod
    def of_matrix(matrix: np.ndarray, offset: np.ndarray) -> EntryMap:
        """The map x → matrix @ x + offset, with as few terms as it has."""
        used = np.abs(matrix) > 1e-12
        terms = max(1, int(used.sum(axis=1).max(initial=0)))
        index = np.argsort(~used, axis=1, kind="stable")[:, :terms].T
        weight = np.take_along_axis(np.where(used, matrix, 0.0), index.T, axis=1).T
        near = np.abs(weight - weight.round()) < 1e-12
        return EntryMap(index, np.where(near, weight.round() + 0.0, weight), offset)

    @property
    def matrix(self) -> np.ndarray:
        """The same as a whole matrix [dim, dim]."""
        result = np.zeros((len(self.offset), len(self.offset)))
        for index, weight in zip(self.index, self.weight, strict=True):
            result[np.arange(len(self.offset)), index] += weight
        return result

    @functools.cached_property
    def is_signed_permutation(self) -> bool:
        """Whether entries only change place and sign."""
        return len(self.index) == 1 and bool((np.abs(self.weight) == 1).all()) and not self.offset.any()

    def __call__(self, x: Any) -> Any:
        """The image of `x` [..., dim], a NumPy, JAX or PyTorch array."""
        xp = array_api_compat.array_namespace(x)
        device = array_api_compat.device(x)
        like: dict[str, Any] = {"dtype": x.dtype, "device": device}
        result = None
        for index, weight in zip(self.index, self.weight, strict=True):
            part = xp.take(x, xp.asarray(index, device=device), axis=-1) * xp.asarray(weight, **like)
            result = part if result is None else result + part
        return result + xp.asarray(self.offset, **like) if self.offset.any() else result


class Acting(Protocol):
    """An element of a symmetry group, as far as observations and actions are concerned."""

    def on_observations(self, layout: Any) -> EntryMap:
        """What it does to observations of a layout."""
        ...

    def on_actions(self) -> EntryMap:
        """What it does to actions in [-1, 1]."""
        ...
