import numpy as np


def softmax(pIn):
    powers = np.exp(pIn - pIn.max(axis=1, keepdims=True))
    return powers / powers.sum(axis=1, keepdims=True)
