import numpy as np


def potential(atom_x, atom_y, atom_q, gridsize):
    at = np.arange(gridsize)
    V = np.zeros((gridsize, gridsize))
    for x, y, q in zip(atom_x, atom_y, atom_q, strict=True):
        V += q / np.sqrt((at[None, :] - x) ** 2 + (at[:, None] - y) ** 2 + 0.25)
    return V
