"""Tridiagonal systems on the device against cuSPARSE's gtsv2_nopivot, on one GPU, in one run.

For every size and type both solve the same row-dominant system in device memory. cuSPARSE
overwrites its right-hand side, which is restored outside the clock; its buffer is allocated before.
Of launchwise every combination of layout, sizes and threads below is tried, and
each solution is checked (backward error at most 10 eps) before it is timed. Times are medians of
CUDA events around one solution; behind them stands what the fastest moves against the device's
copy, and the extra memory by the input's.

    python benchmarks/against_cusparse.py benchmarks/results/cusparse.json
"""

from __future__ import annotations

import itertools
import statistics
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from harness.command_line import arguments, provenance
from harness.needs import gpu_and_packages

from kernels.calling.driver import Memory
from kernels.tridiagonal.host.accuracy import allowed_error, backward_error
from kernels.tridiagonal.host.cusparse import Cusparse
from kernels.tridiagonal.host.launches import Arrays
from kernels.tridiagonal.host.plan import Choice, remaining_rows
from kernels.tridiagonal.solver import solve
from kernels.tridiagonal.solver.checks import Shape
from launchwise.base.storage import write_json
from launchwise.measuring.cards import cards
from launchwise.workloads.device import Allocations
from launchwise.workloads.launches import LaunchSequence

with gpu_and_packages():
    import cupy

    from kernels.tridiagonal.solver.from_host import open_host_solver

SIZES = [10**4, 10**5, 10**6, 10**7, 10**8]
REPEATS = 9
NAMED = 5
"""Fastest combinations that the result names."""
ALONE = 20_000
"""Rows up to which one block may solve the system alone."""
CHECKED = 10**6
"""Rows up to which every combination is checked on the host; above, the fastest alone."""


@dataclass(frozen=True)
class Tried:
    """Values whose combinations are tried.

    Attributes
    ----------
    m, inner_m
        Rows of a sub-system: of the outermost level, of every level below.
    """

    layouts: tuple[str, ...] = ("strided", "staged", "blockwise")
    m: tuple[int, ...] = (8, 10, 16, 20, 32, 40)
    inner_m: tuple[int, ...] = (16, 32)
    threads: tuple[int, ...] = (32, 64, 128)
    last_m: tuple[int, ...] = (0, 4, 8)


SMALLEST = Tried(("strided", "blockwise"), (10,), (16,), (64,), (0,))


def times_ms(run: Callable[[], None], before: Callable[[], None] = lambda: None) -> list[float]:
    """Milliseconds of each run by CUDA events, the first two left out."""
    begin, end = cupy.cuda.Event(), cupy.cuda.Event()
    times = []
    for _ in range(REPEATS + 2):
        before()
        begin.record()
        run()
        end.record()
        end.synchronize()
        times.append(float(cupy.cuda.get_elapsed_time(begin, end)))
    return times[2:]


def system(n: int, dtype: np.dtype[Any]) -> list[Any]:
    """A row-dominant system on the device."""
    random = cupy.random.default_rng(n)
    a, c, d = (random.uniform(-1, 1, n).astype(dtype) for _ in range(3))
    a[0] = c[-1] = 0
    b = 1.1 * (cupy.abs(a) + cupy.abs(c)) + dtype.type(0.1)
    return [a, b * cupy.where(random.uniform(-1, 1, n) < 0, -1, 1).astype(dtype), c, d]


def memory_of(array: Any) -> Memory:
    """Where an array of CuPy lies."""
    return Memory(array.data.ptr, array.nbytes)


def ours(
    solver: Any, arrays: list[Any], n: int, dtype: np.dtype[Any], tried: Tried
) -> list[dict[str, Any]]:
    """Every combination that fits the device: time, memory, error."""
    device, x = solver.device, cupy.empty(n, dtype)
    each = [memory_of(array) for array in (*arrays, x)]
    shape = Shape(n, 1, dtype, interleaved=False)
    found = []
    for choice in choices(n, tried):
        try:
            solution = solver.solution(shape, choice)
        except ValueError:
            continue  # Its blocks need more than this device gives.
        work = LaunchSequence(tuple(solution.launches(Arrays(*each[:4]), each[4])))
        x.fill(cupy.nan)
        device.timed(work, 1, flush=False)
        error = backward_error([array.get() for array in arrays], x.get()) if n <= CHECKED else None
        if error is not None and not error <= allowed_error(dtype):
            raise SystemExit(f"{choice} n={n}: error {error}")
        found.append(
            {
                "choice": choice,
                "time_ms": statistics.median(device.timed(work, REPEATS + 2, flush=False)[2:]),
                "backward_error": error,
                "extra_memory_percent": 100 * solution.extra_bytes / (4 * n * dtype.itemsize),
            }
        )
    best = min(found, key=lambda row: row["time_ms"])
    a, b, c, d = arrays
    solve(a, b, c, d, x, **asdict(best["choice"]))
    best["backward_error"] = backward_error([array.get() for array in arrays], x.get())
    if not best["backward_error"] <= allowed_error(dtype):
        raise SystemExit(f"n={n}: {best}")
    rows = [{**row, "choice": asdict(row["choice"])} for row in found]
    return sorted(rows, key=lambda row: row["time_ms"])


def choices(n: int, tried: Tried) -> Iterator[Choice]:
    """Combinations tried for a size; layout, m and threads are moot where one block solves it."""
    if n <= ALONE:
        yield from (Choice(sizes=(), last_m=last_m) for last_m in tried.last_m)
    found = set()
    for layout, m, inner in itertools.product(tried.layouts, tried.m, tried.inner_m):
        for threads, last_m in itertools.product(tried.threads, tried.last_m):
            choice, most = Choice(layout, (m,), last_m, threads), 1024 * last_m or 2048
            while remaining_rows(n, choice.levels(n)) > most:
                choice = replace(choice, sizes=(*choice.sizes, inner))
            found.add(choice)
    yield from sorted(found, key=str)


def main() -> None:
    """Run both and write the result."""
    parser = arguments(__doc__)
    parser.add_argument("--rows", type=int, nargs="+", default=SIZES)
    given = parser.parse_args()
    types, sizes, tried = ["float64", "float32"], given.rows, Tried()
    if given.smallest:
        types, sizes, tried = types[:1], SIZES[:1], SMALLEST
    solver = open_host_solver()
    results = []
    for dtype, n in itertools.product(map(np.dtype, types), sizes):
        arrays = system(n, dtype)
        x = cupy.empty(n, dtype)
        shape = (n, 1, dtype.itemsize)
        with Allocations(solver.device) as memory:
            peer = Cusparse(memory, Arrays(*map(memory_of, arrays)), memory_of(x), *shape)
            theirs = statistics.median(times_ms(partial(peer.queue, None), peer.restore))
            buffer_bytes = peer.buffer_bytes
            peer.close()
        rows = ours(solver, arrays, n, dtype, tried)
        best = rows[0]
        small = [row for row in rows if row["extra_memory_percent"] < 10]
        frugal = small[0] if small else None
        results.append(
            {
                **{"n": n, "dtype": dtype.name, "cusparse_ms": theirs},
                "cusparse_buffer_percent": 100 * buffer_bytes / (4 * n * dtype.itemsize),
                "times_faster": theirs / best["time_ms"],
                "rows_per_ns": n / best["time_ms"] / 1e6,
                "configurations": len(rows),
                "best_below_10_percent": frugal,
                "best": rows[:NAMED],
            }
        )
        line = f"{dtype.name} {n:.0e}: cuSPARSE {theirs:.4f} ms, {best['time_ms']:.4f} ms"
        print(f"{line}, {theirs / best['time_ms']:.2f} times, {best}", flush=True)
        if frugal:
            print(f"    below 10 %: {theirs / frugal['time_ms']:.2f} times, {frugal}", flush=True)
    card = cards()[0]
    facts = provenance(cupy=cupy.__version__)
    device = {"device": card.device_name, "driver": card.driver}
    write_json(given.output, {**facts, **device, "repeats": REPEATS, "results": results})


if __name__ == "__main__":
    main()
