import numpy as np


def expected(a_ptr, b_ptr):
    return a_ptr.astype(np.float32) @ b_ptr.astype(np.float32)
