"""What every variant must compute, in NumPy."""

import numpy as np


def expected(grid, source, weight, n, radius, **others):
    """Source plus weight times the mean of the neighbours, inside the grid; float64."""
    inner = slice(radius, n - radius)
    values = grid[:, :, :n].astype(float)
    steps = [step for step in range(-radius, radius + 1) if step]
    neighbours = [
        np.roll(values, step, axis)[inner, inner, inner] for axis in range(3) for step in steps
    ]
    return source + weight * np.mean(neighbours, axis=0)
