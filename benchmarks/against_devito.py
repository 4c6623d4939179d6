"""The acoustic stencil beside a program that Devito generates for it, in float32, on one GPU.

Devito writes a time loop in C with OpenMP's ``target``; Clang compiles it as launchwise compiles
variants in C. Where the GPU's machine has no Clang, compile elsewhere and carry the folder:

    python benchmarks/against_devito.py FOLDER --compile sm_90      # Devito and Clang, no GPU
    python benchmarks/against_devito.py benchmarks/results/against_devito.json --compiled FOLDER

Both update u by the same equation: four arrays pass memory. Devito's time is its own, of the
section of the loop, over the steps of a call; ours is the workload's kernel alone, as ``propagate``
chooses it, by the difference of two runs. Rates count updated points. Devito's result is compared
with NumPy first. The compilers of NVIDIA's HPC SDK, for which it writes OpenACC, are not tried.
"""

from __future__ import annotations

import ctypes
import os
import statistics
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from harness.command_line import arguments, card_facts, write_result
from harness.needs import gpu_and_packages

from launchwise.base.storage import write_bytes, write_text
from launchwise.measuring.cards import cards
from launchwise.measuring.openmp import clang_for
from launchwise.workloads.builds import Build

ORDERS = (2, 8, 16)
SIZES = (256, 512)
SMALLEST = (48,)
STEPS, FEW_STEPS = 100, 20
ROUNDS = 3
FUNCTION = "step"
SPACING = 10.0


class DataObject(ctypes.Structure):
    """An array as Devito's programs take it."""

    _fields_ = [
        ("data", ctypes.c_void_p),
        ("size", ctypes.POINTER(ctypes.c_int)),
        ("nbytes", ctypes.c_ulong),
        ("npsize", ctypes.POINTER(ctypes.c_ulong)),
        ("dsize", ctypes.POINTER(ctypes.c_ulong)),
        ("hsize", ctypes.POINTER(ctypes.c_int)),
        ("hofs", ctypes.POINTER(ctypes.c_int)),
        ("oofs", ctypes.POINTER(ctypes.c_int)),
        ("dmap", ctypes.c_void_p),
    ]


def generated(order: int) -> str:
    """Devito's program for an order in space: C."""
    os.environ["DEVITO_LOGGING"] = "ERROR"
    from devito import Eq, Function, Grid, Operator, TimeFunction, configuration, solve

    configuration["platform"] = "nvidiaX"
    configuration["language"] = "openmp"
    configuration["compiler"] = "clang"
    grid = Grid(shape=(64, 64, 64), dtype=np.float32)
    u = TimeFunction(name="u", grid=grid, time_order=2, space_order=order)
    m = Function(name="m", grid=grid, space_order=order)
    update = Eq(u.forward, solve(m * u.dt2 - u.laplace, u.forward))
    return str(Operator([update], name=FUNCTION))


def build_of(order: int) -> Build:
    """What is compiled for an order."""
    return Build.of(f"order{order}.c", {}, [FUNCTION])


def compile_all(folder: Path, arch: str) -> None:
    """Write Devito's program for every order and its library."""
    clang = clang_for(arch)
    folder.mkdir(parents=True, exist_ok=True)
    for order in ORDERS:
        source, build = folder / f"order{order}.c", build_of(order)
        write_text(source, generated(order))
        library, _ = clang.library(build, folder)
        write_bytes(source.with_suffix(".so"), library)


@cache
def function(folder: Path, order: int) -> Any:
    """The function of a library."""
    library = ctypes.CDLL(str(folder / f"order{order}.so"))
    return getattr(library, build_of(order).symbol(FUNCTION))


def described(array: np.ndarray) -> DataObject:
    """An array for Devito's program, which keeps the content where NumPy has it."""
    sizes = (ctypes.c_int * array.ndim)(*array.shape)
    return DataObject(data=array.ctypes.data, size=sizes, nbytes=array.nbytes)


def steps(
    call: Any, order: int, u: np.ndarray, m: np.ndarray, time_step: float, count: int
) -> float:
    """Run steps in place; seconds of their section.

    ``u``: float32, (3, n + 2 order, ...): the field at three times, with a halo.
    ``m``: float32, (n + 2 order, ...): the squared slowness.
    """
    n = m.shape[0] - 2 * order
    seconds = ctypes.c_double(0.0)
    spacings = [ctypes.c_float(SPACING)] * 3
    limits = [ctypes.c_int(each) for each in (count, 1, *(n - 1, 0) * 3)]
    arrays = [ctypes.byref(described(each)) for each in (m, u)]
    failed = call(
        *arrays,
        *(ctypes.c_float(time_step), *spacings, *limits),
        *(ctypes.c_int(0), ctypes.c_int(1), ctypes.byref(seconds)),
    )
    if failed:
        raise RuntimeError(f"Devito's program returned {failed}")
    return seconds.value


def fields(n: int, order: int) -> tuple[np.ndarray, np.ndarray]:
    """A random field at two times, and a squared slowness."""
    rng = np.random.default_rng(1)
    side = n + 2 * order
    u = rng.random((3, side, side, side), dtype=np.float32)
    velocity = 1500 + 2000 * rng.random((side, side, side), dtype=np.float32)
    return u, 1 / velocity**2


def stepped(u: np.ndarray, m: np.ndarray, order: int, time_step: float) -> np.ndarray:
    """The field after one step by NumPy in float64, without its halo."""
    from kernels.acoustic.host.workload import laplacian

    inside, around = ((slice(halo, -halo),) * 3 for halo in (order, order // 2))
    now, before = u[1].astype(float), u[0].astype(float)
    speed = time_step**2 / m[inside].astype(float) / SPACING**2
    return 2 * now[inside] - before[inside] + speed * laplacian(now[around], order)


def insist_on_right(call: Any, order: int) -> None:
    """Compare one step of a small grid with NumPy."""
    n, time_step = 24, 1e-3
    u, m = fields(n, order)
    wanted = stepped(u, m, order, time_step)
    steps(call, order, u, m, time_step, 1)
    inside = (slice(order, -order),) * 3
    error = np.abs(u[2][inside] - wanted).max() / np.abs(wanted).max()
    if not error < 1e-4:
        raise RuntimeError(f"Devito's program of order {order} is off by {error:.2g}")


def ours(n: int, order: int, few: int, many: int) -> dict[str, Any]:
    """Milliseconds per step of the workload's kernel, and its configuration."""
    import cupy
    from simulation import by_turns, kernel_alone

    from kernels.acoustic.simulation import stability_limit
    from kernels.acoustic.simulation.opening import facts, spec
    from kernels.acoustic.simulation.problem import Grid, choice
    from launchwise.measuring.telemetry import Telemetry, nvml_source

    grid = Grid((n, n, n), np.dtype("float32"), order, SPACING)
    velocity = cupy.random.default_rng(1).random((n, n, n), dtype="float32") * 2000 + 1500
    u = [cupy.random.default_rng(2 + each).random((n, n, n), dtype="float32") for each in (0, 1)]
    time_step = 0.9 * stability_limit(order) * SPACING / 3500
    with (
        Telemetry(nvml_source(cards()[0].uuid)) as telemetry,
        kernel_alone(velocity, grid, (u[0], u[1]), time_step) as kernel,
    ):
        found = by_turns({"kernel": kernel}, few, many, telemetry)["kernel"]
    points = (n - order) ** 3
    return {
        "step_ms": found.step_ms,
        "gpoints_per_s": points / found.step_ms / 1e6,
        "configuration": choice(grid, spec(), facts(0)),
    }


def compared(folder: Path, n: int, order: int, count: int) -> dict[str, Any]:
    """Both sides of one grid."""
    call = function(folder, order)
    u, m = fields(n, order)
    few, many = max(2, count // 5), count
    seconds = [steps(call, order, u, m, 1e-4, many) / many for _ in range(ROUNDS + 1)][1:]
    step_ms = 1e3 * statistics.median(seconds)
    theirs = {"step_ms": step_ms, "gpoints_per_s": n**3 / step_ms / 1e6}
    own = ours(n, order, few, many)
    ratio = own["gpoints_per_s"] / theirs["gpoints_per_s"]
    return {"n": n, "order": order, "devito": theirs, "launchwise": own, "ratio": ratio}


def main() -> None:
    """Compile, or measure and write the result."""
    parser = arguments(__doc__)
    parser.add_argument("--compile", metavar="ARCH", help="compile only, into the folder OUTPUT")
    parser.add_argument("--compiled", type=Path, help="folder that --compile wrote")
    given = parser.parse_args()
    if given.compile:
        compile_all(given.output, given.compile)
        return
    with gpu_and_packages():
        import cupy
    folder = given.compiled or given.output.parent / "devito"
    if not given.compiled:
        compile_all(folder, cards()[0].arch)
    results = []
    for order in ORDERS:
        insist_on_right(function(folder, order), order)
        for n in SMALLEST if given.smallest else SIZES:
            results.append(compared(folder, n, order, FEW_STEPS if given.smallest else STEPS))
            print(results[-1], flush=True)
    write_result(given.output, {**card_facts(), "results": results}, cupy=cupy.__version__)


if __name__ == "__main__":
    main()
