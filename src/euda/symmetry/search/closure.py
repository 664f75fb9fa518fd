"""Matches → a group: all products of the isometries that were found, made exact about one common centre.

An isometry read off rounded numbers is not quite of finite order: only the whole group says what it should have been.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from euda.errors import ModelError
from euda.symmetry.search.matching import Isometry, Match, Tree

_CLEAN = 1e-4  # share of the robot's size within which the centre is the root's origin
LARGEST = 120
"""More elements than any robot with finitely many symmetries has, the icosahedron's being 120."""


def _refuse_too_many(matches: list[Match]) -> None:
    if len(matches) > LARGEST:
        raise ModelError(
            f"the robot has more than {LARGEST} symmetries: probably it is round, so that turning it about its own axis"
            " changes nothing; give it a shape whose symmetries can be listed"
        )


def closed(tree: Tree, matches: list[Match]) -> list[Match]:
    """All products of the isometries found, made a group of exact isometries about one common centre."""
    matches = list(matches)
    _refuse_too_many(matches)
    for second, first in _pairs(matches):
        product = _compose(tree, second, first)
        if not any(product.is_same(known) for known in matches):
            matches.append(product)
            _refuse_too_many(matches)
    table = np.array([[_index(matches, _compose(tree, a, b)) for b in matches] for a in matches])
    matrices = np.stack([match.isometry.matrix for match in matches])
    for _ in range(4):  # averaging g h⁻¹ over the group makes a representation of what is nearly one
        mean = np.stack(
            [np.mean(matrices[table[g]] @ matrices.transpose(0, 2, 1), axis=0) for g in range(len(matches))]
        )
        left, _, right = np.linalg.svd(mean)
        matrices = left @ right
    matrices = np.where(np.abs(matrices - matrices.round()) < 1e-12, matrices.round() + 0.0, matrices)
    shifts = np.concatenate([match.isometry.shift for match in matches])
    centre = np.linalg.lstsq((np.eye(3) - matrices).reshape(-1, 3), shifts, rcond=1e-9)[0]
    if tree.is_free and np.abs((np.eye(3) - matrices) @ centre).max() <= _CLEAN * tree.size:
        centre = np.zeros(3)  # the root's origin: anchors that were written with few digits put it beside that
    isometries = [Isometry.about(matrix, centre) for matrix in matrices]
    return [tree.judge(isometry, match.bodies) for isometry, match in zip(isometries, matches, strict=True)]


def _pairs(matches: list[Match]) -> Iterator[tuple[Match, Match]]:
    """Pairs of matches, those included that are appended meanwhile."""
    done = 0
    while done < len(matches):
        for other in range(done + 1):
            yield matches[done], matches[other]
            yield matches[other], matches[done]
        done += 1


def _compose(tree: Tree, second: Match, first: Match) -> Match:
    bodies = {body: second.bodies[image] for body, image in first.bodies.items()}
    return tree.judge(second.isometry @ first.isometry, bodies)


def _index(matches: list[Match], match: Match) -> int:
    return next(i for i, known in enumerate(matches) if match.is_same(known))
