"""The learner's trees of arrays ↔ the few arrays that go into a compiled update and come out of it.

Every array that crosses takes JAX one to four microseconds, of an update of one or two milliseconds, and half of the
learner's arrays are biases and counters. So between two updates all vectors and scalars of one type are one vector.
Matrices stay arrays of their own: to cut them out of a vector is to copy them, which costs more than it saves.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np

Arrays = Sequence[Any] | Mapping[int, Any]
"""The arrays that cross, by their indices."""


class _Place(NamedTuple):
    """Where an array of a tree is."""

    array: int
    """Which of those that cross."""
    start: int | None
    """Where it begins in that vector; None: it is that array itself."""
    shape: tuple[int, ...]

    def of(self, array: Any) -> Any:
        if self.start is None:
            return array
        return array[self.start : self.start + int(np.prod(self.shape))].reshape(self.shape)


class _Tree(NamedTuple):
    structure: Any
    places: tuple[_Place, ...]


class Packing:
    """Which array of which tree is where; made for trees like those of `template`.

    The trees named in `apart` are not packed.
    """

    def __init__(self, template: Mapping[str, Any], apart: Collection[str]) -> None:
        self._count, self.trees = 0, dict[str, _Tree]()
        vectors, lengths = dict[np.dtype, int](), dict[np.dtype, int]()
        for name, tree in template.items():
            leaves, structure = jax.tree.flatten(tree)
            places = []
            for leaf in leaves:
                if name in apart or np.ndim(leaf) > 1:
                    places.append(_Place(self._new(), None, leaf.shape))
                    continue
                index = vectors[leaf.dtype] if leaf.dtype in vectors else vectors.setdefault(leaf.dtype, self._new())
                start = lengths.get(leaf.dtype, 0)
                places.append(_Place(index, start, leaf.shape))
                lengths[leaf.dtype] = start + leaf.size
            self.trees[name] = _Tree(structure, tuple(places))
        self.vectors = frozenset(vectors.values())
        self.arrays_of = {name: frozenset(place.array for place in tree.places) for name, tree in self.trees.items()}

    def _new(self) -> int:
        self._count += 1
        return self._count - 1

    def pack(self, xp: Any, state: Mapping[str, Any]) -> list[Any]:
        """The arrays of these trees, of NumPy or JAX."""
        parts: list[list[Any]] = [[] for _ in range(self._count)]
        packed: list[Any] = [None] * self._count
        for name, (_, places) in self.trees.items():
            for place, leaf in zip(places, jax.tree.leaves(state[name]), strict=True):
                if place.start is None:
                    packed[place.array] = leaf
                else:
                    parts[place.array].append(xp.reshape(leaf, -1))
        return [xp.concatenate(cut) if cut else whole for cut, whole in zip(parts, packed, strict=True)]

    def tree(self, name: str, arrays: Arrays) -> Any:
        """The tree of that name."""
        structure, places = self.trees[name]
        return jax.tree.unflatten(structure, [place.of(arrays[place.array]) for place in places])

    def unpack(self, arrays: Arrays) -> dict[str, Any]:
        """All trees by name."""
        return {name: self.tree(name, arrays) for name in self.trees}

    def holding(self, names: Collection[str]) -> list[int]:
        """The indices of the arrays in which something of these trees is."""
        return sorted(set().union(*(self.arrays_of[name] for name in names)))


@jax.tree_util.register_pytree_node_class
class Packed(Mapping[str, Any]):
    """The learner's trees by name, each taken out of the packed arrays when somebody asks for it."""

    def __init__(self, packing: Packing, arrays: Sequence[Any]) -> None:
        self.packing, self.arrays = packing, arrays

    @staticmethod
    def of(packing: Packing, state: Mapping[str, Any]) -> Packed:
        """These trees, packed; on the host, because compiling would take longer."""
        arrays = packing.pack(np, state)
        for index in packing.vectors:
            arrays[index] = jnp.array(arrays[index])
        return Packed(packing, arrays)

    def __getitem__(self, name: str) -> Any:
        indices = self.packing.arrays_of[name]
        # Vectors as copies: an update donates them, and a view would be of memory that is written again.
        return self.packing.tree(
            name, {i: np.array(self.arrays[i]) if i in self.packing.vectors else self.arrays[i] for i in indices}
        )

    def __iter__(self) -> Iterator[str]:
        return iter(self.packing.trees)

    def __len__(self) -> int:
        return len(self.packing.trees)

    def with_whole(self, name: str, arrays: Sequence[Any]) -> Packed:
        """The same with other arrays for a tree that is not packed."""
        changed = list(self.arrays)
        for place, array in zip(self.packing.trees[name].places, arrays, strict=True):
            changed[place.array] = array
        return Packed(self.packing, changed)

    def tree_flatten(self) -> tuple[Sequence[Any], Packing]:
        """For JAX."""
        return self.arrays, self.packing

    @classmethod
    def tree_unflatten(cls, packing: Packing, arrays: Sequence[Any]) -> Packed:
        """For JAX."""
        return cls(packing, list(arrays))
