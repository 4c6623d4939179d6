import numpy as np


def abstand(punkte, winkel):
    return np.abs(punkte[:, 0] * np.sin(winkel) - punkte[:, 1] * np.cos(winkel))
