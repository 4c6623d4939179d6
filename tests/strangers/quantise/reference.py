import numpy as np


def quantised(x, inv_scale):
    return np.clip(np.rint(x.astype(np.float32) * inv_scale), -128, 127)
