"""What the kernel must compute, in NumPy."""

import numpy as np


def expected(input, **others):
    """Mean of each point and its four neighbours; outside the image is zero."""
    around = np.pad(input, 1)
    beside = around[1:-1, :-2] + around[1:-1, 2:] + around[:-2, 1:-1] + around[2:, 1:-1]
    return 0.2 * (input + beside)
