"""Items that change place, each of its numbers going through an affine map: what symmetries do to bodies and joints."""

from __future__ import annotations

import dataclasses

import numpy as np

NOWHERE = -1
"""The image of an item that has none."""


@dataclasses.dataclass(frozen=True, eq=False)
class Images:
    """Item i becomes item `image[i]`, and its k numbers x become `matrix[i] @ x + offset[i]`."""

    image: np.ndarray
    """[n] whole numbers; a permutation, but for items without an image (`NOWHERE`)."""
    matrix: np.ndarray
    """[n, k, k]; orthogonal."""
    offset: np.ndarray
    """[n, k]"""

    @staticmethod
    def identity(count: int, size: int) -> Images:
        """Everything stays."""
        return Images(np.arange(count), np.tile(np.eye(size), (count, 1, 1)), np.zeros((count, size)))

    @staticmethod
    def signed(image: np.ndarray, sign: np.ndarray, offset: np.ndarray | None = None) -> Images:
        """Items of one number each."""
        zero = np.zeros(len(image)) if offset is None else offset
        return Images(np.asarray(image, int), np.asarray(sign, float)[:, None, None], np.asarray(zero, float)[:, None])

    @property
    def signs(self) -> np.ndarray:
        """[n] of items with one number: the factor of each."""
        return self.matrix[:, 0, 0]

    def __call__(self, values: np.ndarray) -> np.ndarray:
        """New numbers [..., n, k] of all items; items that are the image of none are zero."""
        known = self.image != NOWHERE
        result = np.zeros_like(values)
        moved = np.einsum("nij,...nj->...ni", self.matrix, values) + self.offset
        result[..., self.image[known], :] = moved[..., known, :]
        return result

    def numbers(self, values: np.ndarray, *, rates: bool = False) -> np.ndarray:
        """As `__call__` for items of one number, [..., n]; rates have no offset."""
        result = np.zeros_like(values)
        moved = self.signs * values + (0.0 if rates else self.offset[:, 0])
        known = self.image != NOWHERE
        result[..., self.image[known]] = moved[..., known]
        return result

    def __matmul__(self, first: Images) -> Images:
        """`first`, then this."""
        known = first.image != NOWHERE
        middle = np.where(known, first.image, 0)
        image = np.where(known, self.image[middle] if len(self.image) else middle, NOWHERE)
        matrix, offset = self.matrix[middle], self.offset[middle]
        return Images(image, matrix @ first.matrix, np.einsum("nij,nj->ni", matrix, first.offset) + offset)

    def inverse(self) -> Images:
        """What undoes this."""
        known = np.flatnonzero(self.image != NOWHERE)
        result = Images(np.full(len(self.image), NOWHERE), np.zeros_like(self.matrix), np.zeros_like(self.offset))
        matrix = self.matrix[known].transpose(0, 2, 1)
        result.image[self.image[known]] = known
        result.matrix[self.image[known]] = matrix
        result.offset[self.image[known]] = -np.einsum("nij,nj->ni", matrix, self.offset[known])
        return result

    def is_close(self, other: Images, tolerance: float) -> bool:
        """Whether both do the same, up to rounding, to all items whose image both know."""
        known = (self.image != NOWHERE) & (other.image != NOWHERE)
        return (
            bool((self.image == other.image)[known].all())
            and np.allclose(self.matrix[known], other.matrix[known], rtol=0, atol=tolerance)
            and np.allclose(self.offset[known], other.offset[known], rtol=0, atol=tolerance)
        )

    @property
    def is_identity(self) -> bool:
        """Whether nothing changes."""
        return self.is_close(Images.identity(*self.offset.shape), 1e-9)
