"""A shot over layers with a body of salt: pictures of the wave and of what receivers hear.

    python -m kernels.acoustic.examples.shot shot.png

Needs a GPU. About 5 GB of its memory at the default of 600 points.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

SPACING_M = 10.0
FREQUENCY_HZ = 15.0
LAYERS_MS = ((0.0, 1500.0), (0.3, 2200.0), (0.5, 2900.0), (0.75, 3600.0))
"""Depth at which a layer begins, of the whole depth, and its velocity."""
SALT_MS = 4500.0


def absorbing(points: int) -> int:
    """Width of the absorbing layer, points."""
    return max(points // 20, 20)


def ground(points: int) -> np.ndarray:
    """Velocity of a cube of ``points``^3: float32, m/s, axes z, y, x."""
    depth = np.arange(points) / points
    velocity = np.empty((points,) * 3, np.float32)
    for begins, speed in LAYERS_MS:
        velocity[depth >= begins] = speed
    z, y, x = np.ogrid[:points, :points, :points]
    flat = ((z / points - 0.6) / 0.12) ** 2
    wide = ((y / points - 0.5) / 0.3) ** 2 + ((x / points - 0.65) / 0.2) ** 2
    velocity[flat + wide < 1] = SALT_MS
    return velocity


def shoot(points: int, propagate: Callable[..., Any]) -> tuple[np.ndarray, Any, list[int]]:
    """The ground, what ``propagate`` gives for a shot over it, and the steps of its snapshots.

    The shot ends when the wave has gone down and come up again.
    """
    velocity = ground(points)
    layer, middle = absorbing(points), points // 2
    depth = layer + points // 50
    # Below the limit of stability at order 8 in the salt.
    time_step = 0.4 * SPACING_M / SALT_MS
    steps = int(2.2 * points * SPACING_M / 2500.0 / time_step)
    kept = [steps // 4, steps * 2 // 5]
    shot = propagate(
        velocity,
        (depth, middle, middle),
        steps,
        spacing=SPACING_M,
        frequency=FREQUENCY_HZ,
        time_step=time_step,
        receivers=[(depth, middle, x) for x in range(layer, points - layer)],
        snapshots=kept,
        absorbing=layer,
        progress=True,
    )
    return velocity, shot, kept


def picture(path: Path, velocity: np.ndarray, shot: Any, kept: list[int]) -> None:
    """Write the wave in the plane of the source after some steps, and what receivers hear."""
    from matplotlib.figure import Figure

    points = len(velocity)
    margin = absorbing(points) * SPACING_M / 1e3
    side, seconds = points * SPACING_M / 1e3, len(shot.traces) * shot.time_step
    figure = Figure(figsize=(11, 3.9), layout="constrained")
    axes = figure.subplots(1, len(kept) + 1)
    for plot, step, field in zip(axes[:-1], kept, shot.snapshots, strict=True):
        plane = field[:, points // 2]
        plot.imshow(velocity[:, points // 2], extent=(0, side, side, 0), cmap="Greys", alpha=0.6)
        largest = np.quantile(np.abs(plane), 0.999)
        plot.imshow(
            plane,
            extent=(0, side, side, 0),
            cmap="RdBu",
            vmin=-largest,
            vmax=largest,
            alpha=np.clip(2 * np.abs(plane) / largest, 0, 1),
        )
        plot.set(title=f"after {step * shot.time_step:.2f} s", xlabel="x, km", ylabel="depth, km")
    loud = np.quantile(np.abs(shot.traces), 0.97)
    axes[-1].imshow(
        shot.traces,
        extent=(margin, side - margin, seconds, 0),
        aspect="auto",
        cmap="Greys",
        vmin=-loud,
        vmax=loud,
    )
    axes[-1].set(title="receivers", xlabel="x, km", ylabel="time, s")
    figure.savefig(path, dpi=100)


def main() -> None:
    """Shoot on the GPU."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("output", type=Path, help="the picture: .png, .svg or .pdf")
    parser.add_argument("--points", type=int, default=600, help="along every axis")
    given = parser.parse_args()
    from kernels.acoustic.simulation import propagate

    velocity, shot, kept = shoot(given.points, propagate)
    picture(given.output, velocity, shot, kept)
    print(f"{given.output}: {len(shot.traces)} steps with {dict(shot.configuration)}")


if __name__ == "__main__":
    main()
