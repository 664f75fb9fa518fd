"""The gate behind a steerable product: how scalars and higher orders pass through a nonlinearity."""

from __future__ import annotations

from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

SILU_GAIN, SIGMOID_GAIN = 1.676532470331092, 1.8462285453386058
"""Bring the second moment under a standard normal to one, as e3nn does for gates."""


def gate(x: Any, scalars: int, gates: int) -> Any:
    """[scalars | gates | values] → [SiLU(scalars) | sigmoid(gates) · values], each times its gain."""
    width = scalars + gates
    is_scalar = np.arange(width) < scalars
    gain = np.where(is_scalar, SILU_GAIN, SIGMOID_GAIN).astype(np.float32)
    values = jnp.where(is_scalar, x[:, :width], x[:, gates:]) if gates else x
    return jax.nn.sigmoid(x[:, :width]) * values * gain
