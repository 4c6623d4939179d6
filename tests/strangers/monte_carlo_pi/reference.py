import numpy as np


def streams(seeds, npoints):
    hits = np.zeros(seeds.size, np.uint16)
    for _ in range(npoints):
        seeds = seeds * np.uint32(1664525) + np.uint32(1013904223)
        x = (seeds >> 8).astype(np.int64) >> 8
        seeds = seeds * np.uint32(1664525) + np.uint32(1013904223)
        y = (seeds >> 8).astype(np.int64) >> 8
        hits += x * x + y * y < 2**32
    return [seeds, hits]
