"""Input values that the device and NumPy compute alike, bit by bit."""

from __future__ import annotations

import numpy as np


def uniform(count: int, seed: int, low: float = -1.0, high: float = 1.0) -> np.ndarray:
    """The first elements of the uniform sequence of ``seed``, as in ``common/uniform.cuh``.

    Element i is output i + 1 of SplitMix64 (Steele, Lea, Flood 2014), its upper 53 bits as a
    fraction.

    Returns
    -------
    float64, shape (count,), in [low, high).
    """
    with np.errstate(over="ignore"):
        bits = np.arange(1, count + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
        bits += np.uint64(seed)
        bits = (bits ^ (bits >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        bits = (bits ^ (bits >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        bits ^= bits >> np.uint64(31)
    return low + (high - low) * ((bits >> np.uint64(11)).astype(float) * 2.0**-53)
