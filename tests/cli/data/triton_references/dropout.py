import numpy as np


def same(found, x_ptr, p, counter_ptr):
    """Kept elements are scaled, about half of them, and counted."""
    out = found["out_ptr"]
    kept = out != 0
    if not np.allclose(out[kept], x_ptr[kept] / (1 - p), rtol=1e-5):
        return "a kept element is not scaled"
    if found["counter_ptr"][0] != counter_ptr[0] + kept.sum():
        return "the count is wrong"
    return bool(0.4 < kept.mean() < 0.6)
