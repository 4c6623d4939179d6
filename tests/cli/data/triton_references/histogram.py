import numpy as np


def expected(data_ptr, num_bins, **others):
    return np.bincount(data_ptr % num_bins, minlength=num_bins).astype(np.int32)
