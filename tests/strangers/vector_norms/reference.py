import numpy as np


def unit(v):
    return v / np.linalg.norm(v, axis=1, keepdims=True)
