"""Time per step of ``propagate`` beside its kernel alone, and its error beside the exact solution.

    python benchmarks/simulation.py benchmarks/results/simulation.json

Needs a GPU and CuPy. Per-step times are differences of two runs: what a call does once (memory,
preparation, traces back) is left out and stands beside them. `--smallest` runs small grids.
"""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from harness.command_line import arguments, provenance
from harness.needs import gpu_and_packages

from kernels.acoustic.simulation import propagate, stability_limit
from kernels.acoustic.simulation.choices import choice
from kernels.acoustic.simulation.opening import card_with, facts, spec
from kernels.acoustic.simulation.problem import Grid
from kernels.acoustic.simulation.wave import Wave, points_build, step_build
from launchwise.base.storage import write_json

RECEIVERS = 1000
SPACING = 10.0


def wall_s(call: Callable[[], Any]) -> float:
    """Seconds until ``call`` is done."""
    began = time.perf_counter()
    call()
    return time.perf_counter() - began


def per_step_ms(run: Callable[[int], Any], few: int, many: int) -> tuple[float, float]:
    """Milliseconds per step from two lengths of a run, and of the shorter one beside its steps."""
    run(few)
    pairs = [(wall_s(lambda: run(few)), wall_s(lambda: run(many))) for _ in range(3)]
    step = statistics.median((long - short) / (many - few) for short, long in pairs)
    once = statistics.median(short - few * step for short, _ in pairs)
    return 1e3 * step, 1e3 * once


def kernel_alone(velocity: Any, grid: Grid, few: int, many: int) -> float:
    """Milliseconds per step of the time step's kernel: no layer, source or receiver.

    u is zero, as it is nearly everywhere in the run beside it.
    """
    import cupy

    chosen = choice(grid, spec(), facts(0))
    builds = [points_build(grid.dtype.name), step_build(grid, chosen, False, spec())]
    card = card_with(0, builds)
    room = card.allocate(grid.array_bytes)
    card.write(room, np.ascontiguousarray(cupy.asnumpy(velocity)), 0)
    wave = Wave(card, grid, room, 0, spec())
    try:
        wave.prepare(chosen, 1e-9, None, [], np.zeros((0, 1), grid.dtype), [])
        both = (wave.fields, wave.fields[::-1])
        steps = [
            card.prepared([wave.step(chosen, new, other, None, 1e-9)], 0) for new, other in both
        ]

        def run(count: int) -> None:
            for number in range(count):
                steps[number % 2](())
            card.settle()

        return per_step_ms(run, few, many)[0]
    finally:
        wave.close()
        card.release(room)


def timed(n: int, dtype: str, order: int, few: int, many: int) -> dict[str, Any]:
    """Figures of one grid."""
    import cupy

    grid = Grid((n, n, n), np.dtype(dtype), order, SPACING)
    if grid.pitch != n:
        raise ValueError(f"n must be a multiple of {128 // grid.dtype.itemsize}")
    velocity = cupy.random.default_rng(1).random((n, n, n), dtype=dtype)
    velocity *= 2000
    velocity += 1500
    rng = np.random.default_rng(2)
    receivers = rng.integers(30, n - 30, (RECEIVERS, 3)).tolist()
    time_step = 0.9 * stability_limit(order) * SPACING / 3500

    def run(steps: int) -> None:
        propagate(
            velocity,
            (n // 2, n // 2, n // 2),
            steps,
            spacing=SPACING,
            frequency=20.0,
            time_step=time_step,
            order=order,
            receivers=receivers,
        )

    kernel_ms = kernel_alone(velocity, grid, few, many)
    step_ms, once_ms = per_step_ms(run, few, many)
    again_ms = kernel_alone(velocity, grid, few, many)
    points = (n - order) ** 3
    return {
        **{"n": n, "dtype": dtype, "order": order, "receivers": RECEIVERS, "absorbing": 20},
        **{"step_ms": step_ms, "kernel_ms": kernel_ms, "kernel_again_ms": again_ms},
        "ratio": step_ms / statistics.mean((kernel_ms, again_ms)),
        "once_ms": once_ms,
        "step_gpoints_per_s": points / step_ms / 1e6,
        "kernel_gpoints_per_s": points / kernel_ms / 1e6,
        "configuration": choice(grid, spec(), facts(0)),
    }


def error(n: int, order: int, away: int, spacing: float, time_step: float) -> float:
    """Largest deviation from the exact solution at a receiver, relative to its largest value."""
    import cupy

    speed, frequency, centre = 2000.0, 15.0, n // 2
    distance = away * spacing
    steps = round((distance / speed + 2.4 / frequency) / time_step)
    shot = propagate(
        cupy.full((n, n, n), speed, "float64"),
        (centre, centre, centre),
        steps,
        spacing=spacing,
        frequency=frequency,
        time_step=time_step,
        order=order,
        receivers=[(centre, centre, centre + away)],
    )
    times = (np.arange(steps) + 1) * time_step - distance / speed
    a = (math.pi * frequency * (times - 1.2 / frequency)) ** 2
    exact = (1 - 2 * a) * np.exp(-a) / (4 * math.pi * distance)
    found = cupy.asnumpy(shot.traces)[:, 0]
    return float(np.abs(found - exact).max() / np.abs(exact).max())


def main() -> None:
    """Write the figures."""
    asked = arguments(__doc__ or "").parse_args()
    with gpu_and_packages():
        import cupy

    n, few, many = (96, 20, 60) if asked.smallest else (512, 100, 600)
    device = cupy.cuda.runtime.getDeviceProperties(0)["name"].decode()
    found: dict[str, Any] = {**provenance(cupy=cupy.__version__), "device": device, "grids": []}
    for dtype in ("float32", "float64"):
        for order in (2, 8, 16):
            found["grids"].append(timed(n, dtype, order, few, many))
            cupy.get_default_memory_pool().free_all_blocks()
    # Half the spacing, a quarter of the step: what is left is the error in space.
    side = 81 if asked.smallest else 161
    found["errors"] = [
        {
            **{"order": order, "spacing_m": spacing, "points": side},
            "error": error(side, order, round(300 / spacing), spacing, 2e-4 * (spacing / 10) ** 2),
        }
        for order in (2, 8)
        for spacing in (20.0, 10.0)
    ]
    write_json(asked.output, found)


if __name__ == "__main__":
    main()
