import numpy as np


def product(row_ptr, col_ind, val, x, nnz):
    assert nnz == len(val)
    running = np.concatenate([[0.0], np.cumsum(val * x[col_ind])])
    return running[row_ptr[1:]] - running[row_ptr[:-1]]
