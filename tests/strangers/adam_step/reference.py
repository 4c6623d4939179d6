import numpy as np


def adam(param, grad, m, v, t):
    m = 0.9 * m + 0.1 * grad
    v = 0.999 * v + 0.001 * grad**2
    fixed = m / (1 - 0.9**t) / (np.sqrt(v / (1 - 0.999**t)) + 1e-8)
    return {"v": v, "m": m, "param": param - 0.001 * fixed}
