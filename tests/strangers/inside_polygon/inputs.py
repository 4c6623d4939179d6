import numpy as np


def star(generator):
    angle = np.linspace(0, 2 * np.pi, 24, endpoint=False)
    radius = np.where(np.arange(24) % 2, 0.3, 0.9) * generator.uniform(0.9, 1.0, 24)
    corners = np.stack([radius * np.cos(angle), radius * np.sin(angle)], axis=1)
    return {"vertices": corners.astype(np.float32)}
