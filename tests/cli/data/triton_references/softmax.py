import numpy as np


def expected(input_ptr):
    powers = np.exp(input_ptr - input_ptr.max(1, keepdims=True))
    return powers / powers.sum(1, keepdims=True)
