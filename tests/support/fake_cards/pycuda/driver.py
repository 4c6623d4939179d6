"""A driver that answers where there is a card."""

from made_up import present


def init():
    """Fails where there is no card."""
    if not present():
        raise RuntimeError("cuInit failed: no CUDA-capable device is detected")
