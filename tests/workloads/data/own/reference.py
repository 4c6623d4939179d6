import numpy as np


def expected(values, weight, threads, entries, n):
    padded = np.zeros(-(-n // threads) * threads)
    padded[:entries] = values * weight[:entries]
    return {"total": [entries], "sums": padded.reshape(-1, threads).sum(axis=1)}
