"""Trees of arrays ↔ flat dicts of named NumPy arrays, which is what checkpoints and stored policies hold.

A name is the path through the tree: `actor/0/weight`, `critics_optimiser/0/mu/0/1/bias`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
from jax.flatten_util import ravel_pytree

from euda.errors import UnfitError

Named = Mapping[str, np.ndarray]


def flatten(tree: Any) -> dict[str, np.ndarray]:
    """Every array of a tree under its name (copies)."""
    return {name: np.array(leaf) for name, leaf in _leaves(tree).items()}


def fill(template: Any, arrays: Named) -> Any:
    """The tree of the shape of `template` whose arrays are those of that name; refuses others."""
    wanted = {name: _kind(leaf) for name, leaf in _leaves(template).items()}
    found = {name: _kind(array) for name, array in arrays.items()}
    if wanted != found:
        wrong = sorted(name for name in wanted.keys() | found.keys() if wanted.get(name) != found.get(name))
        more = f" and {len(wrong) - 3} more" if len(wrong) > 3 else ""
        raise UnfitError(
            f"the stored agent does not fit: {', '.join(wrong[:3])}{more} missing, unknown, or of another shape or type"
        )
    leaves = [arrays[name] for name in wanted]
    return jax.tree.unflatten(jax.tree.structure(template), leaves)


def fill_flat(template: Any, flat: np.ndarray) -> Any:
    """The tree of the shape of `template` cut out of one vector, its arrays one after another."""
    vector, unravel = ravel_pytree(template)
    if _kind(flat) != _kind(vector):
        raise UnfitError(f"the stored agent does not fit: {flat.size} numbers instead of {vector.size}")
    return jax.tree.map(np.asarray, unravel(jnp.asarray(flat)))


def _leaves(tree: Any) -> dict[str, Any]:
    paths, _ = jax.tree_util.tree_flatten_with_path(tree)
    return {jax.tree_util.keystr(path, simple=True, separator="/"): leaf for path, leaf in paths}


def _kind(array: Any) -> tuple[tuple[int, ...], np.dtype]:
    return np.shape(array), np.asarray(array).dtype
