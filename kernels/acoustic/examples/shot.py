"""A shot over layers with a body of salt: pictures of the wave and of what receivers hear.

    python -m kernels.acoustic.examples.shot shot.html

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
    """The ground, what ``propagate`` gives for a shot over it, and the steps of its snapshots. The
    shot ends when the wave has gone down and come up again."""
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
    from plotly.subplots import make_subplots

    points = len(velocity)
    middle, layer = points // 2, absorbing(points)
    km = np.arange(points) * SPACING_M / 1e3
    titles = [f"after {step * shot.time_step:.2f} s" for step in kept]
    figure = make_subplots(1, len(kept) + 1, subplot_titles=[*titles, "receivers"])

    def drawn(column: int, x: np.ndarray, y: np.ndarray, values: np.ndarray, **how: Any) -> None:
        figure.add_heatmap(x=x, y=y, z=values, showscale=False, row=1, col=column, **how)

    for column, field in enumerate(shot.snapshots, start=1):
        plane = field[:, middle]
        largest = float(np.quantile(np.abs(plane), 0.999))
        drawn(column, km, km, velocity[:, middle], colorscale="Greys")
        colours = {"colorscale": "RdBu", "zmin": -largest, "zmax": largest}
        drawn(column, km, km, plane, opacity=0.7, **colours)
    loud = float(np.quantile(np.abs(shot.traces), 0.97))
    seconds = np.arange(len(shot.traces)) * shot.time_step
    heard = {"colorscale": "Greys", "zmin": -loud, "zmax": loud}
    drawn(len(kept) + 1, km[layer : points - layer], seconds, shot.traces, **heard)
    figure.update_xaxes(title="x, km")
    figure.update_yaxes(title="depth, km", autorange="reversed")
    figure.update_yaxes(title="time, s", col=len(kept) + 1)
    figure.write_html(path)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("output", type=Path, help="the picture, a page for a browser")
    parser.add_argument("--points", type=int, default=600, help="along every axis")
    given = parser.parse_args()
    from kernels.acoustic.simulation import propagate

    velocity, shot, kept = shoot(given.points, propagate)
    picture(given.output, velocity, shot, kept)
    print(f"{given.output}: {len(shot.traces)} steps with {dict(shot.configuration)}")


if __name__ == "__main__":
    main()
