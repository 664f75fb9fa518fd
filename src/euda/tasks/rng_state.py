"""A stream of random numbers as an array, so that it can be saved without pickle and go on exactly."""

from __future__ import annotations

import numpy as np

from euda.errors import EudaError

_MASK = 2**64 - 1


def stream_to_array(generator: np.random.Generator) -> np.ndarray:
    """The state of a PCG64 stream, which is what Gymnasium uses, as six whole numbers (uint64)."""
    state = generator.bit_generator.state
    if state["bit_generator"] != "PCG64":
        raise EudaError(f"only a PCG64 stream of random numbers can be saved, not {state['bit_generator']}")
    inner = state["state"]
    words = [inner["state"] & _MASK, inner["state"] >> 64, inner["inc"] & _MASK, inner["inc"] >> 64]
    return np.array([*words, state["has_uint32"], state["uinteger"]], np.uint64)


def stream_from_array(array: np.ndarray) -> np.random.Generator:
    """The stream that goes on where the saved one was."""
    low, high, low_inc, high_inc, has_uint32, uinteger = (int(word) for word in array)
    bits = np.random.PCG64()
    bits.state = {
        "bit_generator": "PCG64",
        "state": {"state": high << 64 | low, "inc": high_inc << 64 | low_inc},
        "has_uint32": has_uint32,
        "uinteger": uinteger,
    }
    return np.random.Generator(bits)
