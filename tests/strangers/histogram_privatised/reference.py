import numpy as np


def counts(values):
    return np.bincount(values, minlength=64)
