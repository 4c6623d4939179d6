import numpy as np


def expected(x_ptr):
    scale = np.maximum(np.abs(x_ptr).max(1) / np.float32(127.0), np.float32(1e-10))
    return {
        "q_ptr": np.floor(x_ptr / scale[:, None] + np.float32(0.5)).astype(np.int8),
        "scale_ptr": scale,
    }
