import numpy as np


def matrix(generator, nrows):
    # Rows from empty to long, as in a graph.
    lengths = np.minimum(nrows, generator.geometric(0.08, nrows) - 1)
    row_ptr = np.concatenate([[0], np.cumsum(lengths)])
    nnz = int(row_ptr[-1])
    return {
        "row_ptr": row_ptr,
        "col_ind": generator.integers(0, nrows, nnz),
        "val": generator.standard_normal(nnz),
        "nnz": nnz,
    }
