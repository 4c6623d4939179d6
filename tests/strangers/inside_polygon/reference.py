import numpy as np


def inside(px, py, vertices):
    # The same products in the same precision: no point may change sides by rounding.
    px, py, corners = (each.astype(np.float32) for each in (px, py, vertices))
    found = np.zeros(px.size, bool)
    for (x0, y0), (x1, y1) in zip(corners, np.roll(corners, 1, axis=0), strict=True):
        crosses = (y0 > py) != (y1 > py)
        slope = np.float32(x1 - x0) / np.float32(y1 - y0)
        found ^= crosses & (px < slope * (py - y0) + x0)
    return found
