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
