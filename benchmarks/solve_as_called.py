"""The solver as a caller sees it, beside cuSPARSE's gtsv2_nopivot, on one GPU, in one run.

For every size and type both solve the same row-dominant system of CuPy arrays, in turns: CUDA
events around one call, and the wall time of calls in a row with one wait at their end. `solve` is
called as the documents show it: default choice, the solution made by the call. cuSPARSE is called
from C with everything packed and its buffer allocated before; it overwrites its right-hand side,
of which calls in a row have copies. Beside them stand calls that check the solution, and the
replay of a CUDA graph of one call, which no caller has to build. The result is written after every
size, and no size is begun after the budget is spent.

    python benchmarks/solve_as_called.py benchmarks/results/solve_as_called.json
"""

from __future__ import annotations

import itertools
import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from harness.command_line import arguments, card_facts, provenance
from harness.needs import gpu_and_packages

from kernels.calling.driver import Memory
from kernels.tridiagonal.host.cusparse import Cusparse
from kernels.tridiagonal.host.launches import Arrays
from kernels.tridiagonal.solver import Check, clear_plans, solve
from launchwise.base.storage import write_json

with gpu_and_packages():
    import cupy

SIZES = [factor * 10**power for power in range(3, 9) for factor in (1, 3)]
BUDGET_S = 85.0  # time after which no further size begins, seconds
ROUND_S = 0.8  # time after which no further round of a size begins, seconds

MOST_ROUNDS = 9
EVENTS_A_ROUND = 7  # calls per round that are timed by events, of each side

CALLS = 100
CALLS_OF_LARGE = 20
LARGE = 10**8  # rows from which fewer calls stand in a row: there the GPU's time is all that counts

ALLOWED_DIFFERENCE = 1000
"""Largest difference of the two solutions, in units of eps times the largest value of x."""

COPIES_BYTES = 8e9  # memory for copies of the right-hand side
GRAPH_ROWS = 10**6  # rows up to which the replay of a graph is timed


@dataclass
class Side:
    """Times of one side, ms: of single calls by events, and per call of calls in a row."""

    events_ms: list[float]
    wall_ms: list[float]

    def facts(self) -> dict[str, Any]:
        """Medians, and all times of calls in a row."""
        return {
            "events_ms": statistics.median(self.events_ms),
            "wall_ms": statistics.median(self.wall_ms),
            "all_wall_ms": self.wall_ms,
        }


class Packed:
    """Device memory of CuPy for cuSPARSE's buffer; it goes back to CuPy when this is dropped."""

    def __init__(self) -> None:
        self._kept: list[Any] = []

    def take(self, nbytes: int) -> Memory:
        """A buffer that lives as long as this."""
        self._kept.append(cupy.empty(nbytes, np.uint8))
        return memory_of(self._kept[-1])


def memory_of(array: Any) -> Memory:
    """Where an array of CuPy lies."""
    return Memory(array.data.ptr, array.nbytes)


def system(n: int, dtype: np.dtype[Any]) -> list[Any]:
    """A row-dominant system on the device."""
    random = cupy.random.default_rng(n)
    a, c, d, sign = (random.uniform(-1, 1, n).astype(dtype) for _ in range(4))
    a[0] = c[-1] = 0
    b = cupy.abs(a) + cupy.abs(c)
    b *= dtype.type(1.1)
    b += dtype.type(0.1)
    b *= cupy.sign(sign)
    return [a, b, c, d]


def event_ms(call: Callable[[], Any]) -> float:
    """Milliseconds between events before and after a call, which begins on an idle GPU."""
    begin, end = cupy.cuda.Event(), cupy.cuda.Event()
    cupy.cuda.Device().synchronize()
    begin.record()
    call()
    end.record()
    end.synchronize()
    return float(cupy.cuda.get_elapsed_time(begin, end))


def wall_ms(calls: Sequence[Callable[[], Any]]) -> float:
    """Milliseconds of wall time per call of calls in a row, their end on the GPU included."""
    cupy.cuda.Device().synchronize()
    begin = time.perf_counter()
    for call in calls:
        call()
    cupy.cuda.Device().synchronize()
    return 1e3 * (time.perf_counter() - begin) / len(calls)


class Peer:
    """cuSPARSE on copies of the right-hand side; nothing where it is not there."""

    def __init__(self, arrays: list[Any], n: int, dtype: np.dtype[Any], calls: int) -> None:
        self._d = arrays[3]
        copies = int(min(calls, max(1, COPIES_BYTES // (n * dtype.itemsize))))
        self._copies = [cupy.empty(n, dtype) for _ in range(copies)]
        first = memory_of(self._copies[0])
        packed: Any = Packed()
        self._packed = packed
        given = Arrays(*map(memory_of, arrays))
        self._cusparse = Cusparse(packed, given, first, n, 1, dtype.itemsize)
        self.version = self._cusparse.version
        own = [self._cusparse.packed(memory_of(each)) for each in self._copies]
        self.calls = list(itertools.islice(itertools.cycle(own), calls))

    def restore(self, copies: int | None = None) -> None:
        """Write the right-hand side anew."""
        for each in self._copies[:copies]:
            cupy.copyto(each, self._d)

    def solution(self) -> Any:
        """x of one call."""
        self.restore(1)
        if status := self.calls[0]():
            raise SystemExit(f"cuSPARSE returned {status}")
        return self._copies[0]

    def close(self) -> None:
        """Release cuSPARSE's own memory."""
        self._cusparse.close()


def measured(n: int, dtype: np.dtype[Any], rounds: int) -> dict[str, Any]:
    """Both sides of one size and type."""
    arrays = system(n, dtype)
    calls = CALLS if n < LARGE else CALLS_OF_LARGE
    peer = Peer(arrays, n, dtype, calls)

    a, b, c, d = arrays

    def call() -> Any:
        return solve(a, b, c, d)

    x = solve(a, b, c, d, check=True)
    largest = float(cupy.abs(x - peer.solution()).max() / cupy.abs(x).max())
    if not largest <= ALLOWED_DIFFERENCE * np.finfo(dtype).eps:
        raise SystemExit(f"{dtype} {n}: the solutions differ by {largest:.3g} of the largest value")
    ours, theirs = Side([], []), Side([], [])
    begin = time.perf_counter()
    for number in range(rounds):
        if number and time.perf_counter() - begin > ROUND_S:
            break
        for _ in range(EVENTS_A_ROUND):
            ours.events_ms.append(event_ms(call))
            peer.restore(1)
            theirs.events_ms.append(event_ms(peer.calls[0]))
        ours.wall_ms.append(wall_ms([call] * calls))
        peer.restore()
        theirs.wall_ms.append(wall_ms(peer.calls))
    peer.close()
    found = {
        **{"n": n, "dtype": dtype.name, "rounds": len(ours.wall_ms), "calls_in_a_row": calls},
        **{"launchwise": ours.facts(), "cusparse": theirs.facts()},
        "largest_difference": largest,
        **alternatives(arrays, x, calls),
    }
    for clock in ("events_ms", "wall_ms"):
        found[f"times_faster_{clock.removesuffix('_ms')}"] = (
            found["cusparse"][clock] / found["launchwise"][clock]
        )
    return {**found, "cusparse_version": peer.version}


def alternatives(arrays: list[Any], x: Any, calls: int) -> dict[str, Any]:
    """Other ways to call, ms: into an array of the caller's, and with checks of the solution."""
    a, b, c, d = arrays

    def into(check: Check = False) -> None:
        solve(a, b, c, d, x, check=check)

    found: dict[str, Any] = {
        "into_x_wall_ms": statistics.median(wall_ms([into] * calls) for _ in range(3))
    }
    ways: dict[str, Check] = {"into_x": False, "sampled_check": "sample"}
    for name, check in ways.items():
        way = partial(into, check)
        way()
        found[f"{name}_events_ms"] = statistics.median(event_ms(way) for _ in range(9))
    return found


def graph_times(n: int, dtype: np.dtype[Any]) -> dict[str, Any]:
    """Replays of one call that CuPy captured, ms of wall time each; why, where it could not."""
    a, b, c, d = system(n, dtype)
    x, stream = cupy.empty_like(b), cupy.cuda.Stream(non_blocking=True)
    cupy.cuda.Device().synchronize()
    try:
        solve(a, b, c, d, x, stream=stream)
        stream.synchronize()
        with stream:
            stream.begin_capture()
            solve(a, b, c, d, x, stream=stream)
            graph = stream.end_capture()
        replays = [partial(graph.launch, stream)] * CALLS
        return {"graph_wall_ms": statistics.median([wall_ms(replays) for _ in range(4)][1:])}
    except Exception as error:
        return {"graph_wall_ms": None, "graph_refused": " ".join(str(error).split())}


def cases(smallest: bool) -> Iterator[tuple[int, np.dtype[Any]]]:
    """Sizes with types, the smallest first: both types of a size follow each other."""
    sizes, types = ([10**4], ["float64"]) if smallest else (SIZES, ["float64", "float32"])
    for n, dtype in itertools.product(sizes, map(np.dtype, types)):
        free, _ = cupy.cuda.runtime.memGetInfo()
        # The system, its solutions, copies, buffers, and what CuPy needs to make them.
        if 12 * n * dtype.itemsize < free:
            yield n, dtype


def main() -> None:
    """Measure and write the result."""
    given = arguments(__doc__).parse_args()
    begin = time.perf_counter()
    facts = {**provenance(cupy=cupy.__version__), **card_facts()}
    results: list[dict[str, Any]] = []
    for n, dtype in cases(given.smallest):
        if time.perf_counter() - begin > BUDGET_S:
            break
        results.append(measured(n, dtype, 1 if given.smallest else MOST_ROUNDS))
        write_json(given.output, {**facts, "results": results})
        row = results[-1]
        print(
            f"{dtype.name} {n:.0e}: events {row['launchwise']['events_ms']:.4f} ms, "
            f"wall {row['launchwise']['wall_ms']:.4f} ms; cuSPARSE "
            f"{row['cusparse']['events_ms']:.4f} and {row['cusparse']['wall_ms']:.4f} ms",
            flush=True,
        )
        clear_plans()
        cupy.get_default_memory_pool().free_all_blocks()
    # Last: a capture that breaks off may leave the device unusable.
    for row in results:
        if row["n"] <= GRAPH_ROWS and time.perf_counter() - begin < BUDGET_S:
            row |= graph_times(row["n"], np.dtype(row["dtype"]))
            write_json(given.output, {**facts, "results": results})


if __name__ == "__main__":
    main()
