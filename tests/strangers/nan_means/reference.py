import numpy as np


def means(reading, valid, bias, rank):
    with np.errstate(invalid="ignore"):
        mean = (reading * valid).sum(axis=1) / valid.sum(axis=1)
    return (mean + bias)[rank]
