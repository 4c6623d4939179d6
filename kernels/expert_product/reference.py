"""What the products of experts must be."""

import itertools

import numpy as np


def product(
    x: np.ndarray, weights: np.ndarray, bias: np.ndarray, scale: np.ndarray, first: np.ndarray
) -> np.ndarray:
    """scale * silu(x w^T + bias) of each expert's rows, float32 of (rows, n)."""
    found = np.empty((len(x), weights.shape[1]), np.float32)
    for expert, (begin, end) in enumerate(itertools.pairwise(first)):
        if begin < end:
            w = weights[expert].astype(np.float32)
            found[begin:end] = x[begin:end].astype(np.float32) @ w.T + bias[expert]
    with np.errstate(over="ignore"):
        return found / (1 + np.exp(-found)) * scale[:, None]
