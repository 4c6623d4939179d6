"""What an absorbing layer leaves of a wave."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np


def left_by_layer(propagate: Callable[..., Any], points: int, steps: int, width: int) -> float:
    """Largest value in a cube after a shot from its middle, with a layer of ``width`` points."""
    velocity = np.full((points,) * 3, 2000.0, np.float32)
    shot = propagate(
        velocity,
        (points // 2,) * 3,
        steps,
        spacing=10.0,
        frequency=25.0,
        absorbing=width,
        snapshots=[steps],
    )
    return float(np.abs(shot.snapshots[0]).max())
