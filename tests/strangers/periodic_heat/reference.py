import numpy as np


def heat(u, nsteps, r):
    for _ in range(nsteps):
        u = u + float(r) * (np.roll(u, 1) - 2 * u + np.roll(u, -1))
    return u
