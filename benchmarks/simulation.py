"""Time per step of ``propagate`` beside its kernel alone, and its error beside the exact solution.

    python benchmarks/simulation.py benchmarks/results/simulation.json

Needs a GPU and CuPy. Per-step times are differences of two runs: what a call does once (memory,
preparation, traces back) is left out and stands beside them. The kernel alone goes on from what the
same shot holds at half the time, because numbers that differ take more power than zeros; both run
by turns, with the SM clock of each. `--smallest` runs small grids.
"""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
from harness.command_line import arguments, card_facts, write_result
from harness.needs import gpu_and_packages

from kernels.acoustic.simulation import propagate, stability_limit
from kernels.acoustic.simulation.opening import card_with, facts, spec
from kernels.acoustic.simulation.problem import Grid, choice
from kernels.acoustic.simulation.running import Wave, points_build, step_build
from launchwise.measuring.cards import cards
from launchwise.measuring.telemetry import Telemetry, nvml_source

RECEIVERS = 1000
SPACING = 10.0
ROUNDS = 3

Steps = Callable[[int], Any]  # runs a number of steps and waits for them


@dataclass(frozen=True)
class PerStep:
    """Steps by the difference of a long and a short run.

    ``step_ms``: milliseconds per step.
    ``once_ms``: what the shorter run takes beside its steps, ms.
    ``clock_mhz``: mean SM clock of the longer run; None where it is unknown.
    """

    step_ms: float
    once_ms: float
    clock_mhz: float | None


def by_turns(
    runs: dict[str, Steps], few: int, many: int, telemetry: Telemetry
) -> dict[str, PerStep]:
    """Medians of each run, one after the other in every round."""
    for run in runs.values():
        run(few)
    found: dict[str, list[PerStep]] = {name: [] for name in runs}
    for _ in range(ROUNDS):
        for name, run in runs.items():
            began = time.monotonic()
            run(few)
            between = time.monotonic()
            run(many)
            ended = time.monotonic()
            short, long = between - began, ended - between
            step = (long - short) / (many - few)
            clock = telemetry.during(between, ended)["sm_clock_mhz"]
            assert not isinstance(clock, str)
            found[name].append(PerStep(1e3 * step, 1e3 * (short - few * step), clock))
    return {name: _median(each) for name, each in found.items()}


def _median(rounds: list[PerStep]) -> PerStep:
    clocks = [each.clock_mhz for each in rounds if each.clock_mhz is not None]
    return PerStep(
        statistics.median(each.step_ms for each in rounds),
        statistics.median(each.once_ms for each in rounds),
        statistics.median(clocks) if clocks else None,
    )


@contextmanager
def kernel_alone(
    velocity: Any, grid: Grid, fields: tuple[Any, Any], time_step: float
) -> Iterator[Steps]:
    """The time step's kernel: no layer, source or receiver. ``fields``: u before and u."""
    import cupy

    chosen = choice(grid, spec(), facts(0))
    builds = [points_build(grid.dtype.name), step_build(grid, chosen, False, spec())]
    card = card_with(0, builds)
    room = card.allocate(grid.array_bytes)
    card.write(room, np.ascontiguousarray(cupy.asnumpy(velocity)), 0)
    wave = Wave(card, grid, room, 0, spec())
    try:
        wave.prepare(chosen, time_step, None, [], np.zeros((0, 1), grid.dtype), [])
        for buffer, field in zip(wave.fields, fields, strict=True):
            card.write(buffer, np.ascontiguousarray(cupy.asnumpy(field)), 0)
        both = (wave.fields, wave.fields[::-1])
        steps = [
            card.prepared([wave.step(chosen, new, other, None, time_step)], 0)
            for new, other in both
        ]

        def run(count: int) -> None:
            for number in range(count):
                steps[number % 2](())
            card.settle()

        yield run
    finally:
        wave.close()
        card.release(room)


def timed(
    n: int, dtype: str, order: int, few: int, many: int, telemetry: Telemetry
) -> dict[str, Any]:
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

    def shot(steps: int, snapshots: tuple[int, ...] = ()) -> Any:
        return propagate(
            velocity,
            (n // 2, n // 2, n // 2),
            steps,
            spacing=SPACING,
            frequency=20.0,
            time_step=time_step,
            order=order,
            receivers=receivers,
            snapshots=snapshots,
        )

    half = (few + many) // 2
    before, now = shot(half, (half - 1, half)).snapshots
    with kernel_alone(velocity, grid, (before, now), time_step) as kernel:
        del before, now
        found = by_turns({"step": shot, "kernel": kernel}, few, many, telemetry)
    step, alone = found["step"], found["kernel"]
    return {
        **{"n": n, "dtype": dtype, "order": order, "receivers": RECEIVERS, "absorbing": 20},
        **{"step_ms": step.step_ms, "kernel_ms": alone.step_ms},
        "ratio": step.step_ms / alone.step_ms,
        **{"step_clock_mhz": step.clock_mhz, "kernel_clock_mhz": alone.clock_mhz},
        "once_ms": step.once_ms,
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
    asked = arguments(__doc__).parse_args()
    with gpu_and_packages():
        import cupy

    n, few, many = (96, 20, 60) if asked.smallest else (512, 100, 600)
    found: dict[str, Any] = {**card_facts(), "grids": []}
    with Telemetry(nvml_source(cards()[0].uuid)) as telemetry:
        for dtype in ("float32", "float64"):
            for order in (2, 8, 16):
                found["grids"].append(timed(n, dtype, order, few, many, telemetry))
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
    write_result(asked.output, found, cupy=cupy.__version__)


if __name__ == "__main__":
    main()
