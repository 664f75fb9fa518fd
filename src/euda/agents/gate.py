"""The gate behind a steerable product, with a backward pass of its own that reuses what the forward pass has."""

from __future__ import annotations

import functools
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

SILU_GAIN, SIGMOID_GAIN = 1.676532470331092, 1.8462285453386058
"""Bring the second moment under a standard normal to one, as e3nn does for gates."""


@functools.partial(jax.custom_vjp, nondiff_argnums=(1, 2))
def gate(x: Any, scalars: int, gates: int) -> Any:
    """[scalars | gates | values] → [SiLU(scalars) | sigmoid(gates) · values], each times its gain."""
    return _gate_forward(x, scalars, gates)[0]


def _gate_forward(x: Any, scalars: int, gates: int) -> tuple[Any, tuple[Any, Any]]:
    width = scalars + gates
    is_scalar = np.arange(width) < scalars
    gain = np.where(is_scalar, SILU_GAIN, SIGMOID_GAIN).astype(np.float32)
    opening = jax.nn.sigmoid(x[:, :width])
    values = jnp.where(is_scalar, x[:, :width], x[:, gates:]) if gates else x
    return opening * values * gain, (opening, values)


def _gate_backward(scalars: int, gates: int, saved: tuple[Any, Any], cotangent: Any) -> tuple[Any]:
    opening, values = saved
    is_scalar = np.arange(scalars + gates) < scalars
    gain = np.where(is_scalar, SILU_GAIN, SIGMOID_GAIN).astype(np.float32)
    through = cotangent * opening * gain
    inside = through * (values * (1 - opening) + is_scalar.astype(np.float32))
    return (jnp.concatenate([inside, through[:, scalars:]], 1) if gates else inside,)


gate.defvjp(_gate_forward, _gate_backward)
