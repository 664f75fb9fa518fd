"""Yaws and other angles (rad): checked, and wrapped."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from euda.errors import LayoutError


def checked_yaw(yaw: Any, batch: tuple[int, ...]) -> Any:
    """The yaw or yaws for a batch of that shape."""
    if not hasattr(yaw, "shape") or isinstance(yaw, np.generic):
        try:
            yaw = np.asarray(yaw, dtype=np.float64)
        except (TypeError, ValueError):
            raise LayoutError(f"a yaw is a number of radians, not {yaw!r}") from None
    shape = tuple(yaw.shape)
    if len(shape) > len(batch) or any(a not in (1, b) for a, b in zip(shape[::-1], batch[::-1], strict=False)):
        raise LayoutError(f"yaws of shape {shape} do not fit a batch of shape {batch}: give one yaw, or one per row")
    # Only NumPy's numbers are looked at: JAX's may be tracers, and what is on a device would have to be waited for.
    if isinstance(yaw, np.ndarray) and not np.isfinite(yaw).all():
        raise LayoutError(f"yaws must be finite, not {yaw[~np.isfinite(yaw)].ravel()[0]}")
    return yaw


def wrap(xp: Any, angle: Any) -> Any:
    """Angles (rad) in [-π, π); those that lie there already keep their bits."""
    is_inside = (angle >= -math.pi) & (angle < math.pi)
    turned = xp.remainder(angle + math.pi, 2 * math.pi) - math.pi  # rounding may give π itself
    return xp.where(is_inside, angle, xp.where(turned < math.pi, turned, turned - 2 * math.pi))
