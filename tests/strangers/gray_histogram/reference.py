import numpy as np


def histogram(d_image):
    return np.histogram(d_image, bins=256, range=(0, 256))[0]
