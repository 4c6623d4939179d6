import numpy as np


def same(found, a):
    right = np.sort(a[a > 0])
    count = int(found["counter"][0])
    return count == right.size and np.array_equal(np.sort(found["kept"][:count]), right)
