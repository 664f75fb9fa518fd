"""What a yaw does to an observation, said a second time and differently: by matrices, one element after another."""

import numpy as np

from euda import Kind, Layout


def turned_by_hand(layout: Layout, x: np.ndarray, yaw: float) -> np.ndarray:
    """One observation [dim] turned by `yaw`."""
    cosine, sine = np.cos(yaw), np.sin(yaw)
    about_z = np.array([[cosine, -sine, 0], [sine, cosine, 0], [0, 0, 1]])
    result = np.array(x, dtype=np.float64)
    for field in layout:
        elements = result[layout.slice(field.name)].reshape(field.count, field.kind.width)  # a view
        for element in elements:
            match field.kind:
                case Kind.VECTOR:
                    element[:] = about_z @ element
                case Kind.PLANAR:
                    element[:] = about_z[:2, :2] @ element
                case Kind.HEADING:
                    element[:] = np.angle(np.exp(1j * (element + yaw)))
                case Kind.QUATERNION:
                    element[:] = _product((np.cos(yaw / 2), 0, 0, np.sin(yaw / 2)), element)
                    element *= 1 if element[0] >= 0 else -1
    return result


def _product(a, b):
    scalar = a[0] * b[0] - np.dot(a[1:], b[1:])
    return [scalar, *(a[0] * np.asarray(b[1:]) + b[0] * np.asarray(a[1:]) + np.cross(a[1:], b[1:]))]


def yaw_between(layout: Layout, before: np.ndarray, after: np.ndarray) -> float:
    """The yaw from one observation [dim] to another, read off the longest horizontal vector."""
    pairs = []
    for field in layout:
        if field.kind in (Kind.VECTOR, Kind.PLANAR):
            where = layout.slice(field.name)
            planes = [array[where].reshape(field.count, -1)[:, :2] @ [1, 1j] for array in (before, after)]
            pairs += zip(*planes, strict=True)
    start, end = max(pairs, key=lambda pair: abs(pair[0]))
    return float(np.angle(end / start))


def assert_turned(layout: Layout, stored, sampled, share: float) -> np.ndarray:
    """`sampled` is `stored` (pairs of observation and next observation, [B, dim] each) with a share of rows turned.

    Returns the yaws. They are read off the arrays, so nothing is assumed about where they came from; each row is
    held against `Layout.rotate`, and against matrices written a second time.
    """
    stored, sampled = ([np.asarray(array, np.float64) for array in pair] for pair in (stored, sampled))
    moved = np.flatnonzero([not np.array_equal(a, b) for a, b in zip(stored[0], sampled[0], strict=True)])
    assert len(moved) == round(share * len(stored[0]))
    still = np.setdiff1d(np.arange(len(stored[0])), moved)
    for before, after in zip(stored, sampled, strict=True):
        assert np.array_equal(before[still], after[still])
    yaws = np.array([yaw_between(layout, stored[0][row], sampled[0][row]) for row in moved])
    for before, after in zip(stored, sampled, strict=True):
        tolerance = 1e-5 * max(1.0, np.abs(before).max())
        np.testing.assert_allclose(after[moved], layout.rotate(before[moved], yaws), atol=tolerance)
        by_hand = [turned_by_hand(layout, before[row], yaw) for row, yaw in zip(moved, yaws, strict=True)]
        np.testing.assert_allclose(after[moved], np.reshape(by_hand, after[moved].shape), atol=tolerance)
    return yaws


def assert_uniform(yaws: np.ndarray) -> None:
    """Yaws go all the way round: about as many in each quarter, and no mean direction."""
    assert len(yaws) >= 200
    quarters = np.bincount(np.floor(np.mod(yaws, 2 * np.pi) / (np.pi / 2)).astype(int) % 4, minlength=4)
    assert quarters.min() > len(yaws) / 8
    assert abs(np.exp(1j * yaws).mean()) < 4 / np.sqrt(len(yaws))
