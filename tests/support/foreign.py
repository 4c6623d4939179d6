"""Small files in the formats of other tuners, made up for the tests."""

from __future__ import annotations

import contextlib
import gzip
import io
import itertools
import json
from pathlib import Path
from typing import Any

import pytest

from launchwise.importing.foreign_sweep import ForeignSweep
from launchwise.importing.formats import read_sweeps

X, Y, PAD = [16, 32, 64], [1, 2, 4], [0, 1]
REPEATS = 5


def read_one(path: Path, **options: Any) -> ForeignSweep:
    """The one sweep in a file."""
    (sweep,) = read_sweeps(path, **options)
    return sweep


def tuned(name: str, space: dict[str, Any], cache: Path, **how: Any) -> Any:
    """What Kernel Tuner evaluates when it is simulated with a cache of the made-up sweep."""
    kernel_tuner = pytest.importorskip("kernel_tuner")
    condition = "pad == 0 or block_size_x % 32 == 0"
    how |= {"restrictions": [condition], "simulation_mode": True, "lang": "CUDA", "quiet": True}
    code, size = "__global__ void k() {}", (4096, 2048)
    with contextlib.redirect_stdout(io.StringIO()):
        return kernel_tuner.tune_kernel(name, code, size, [], space, cache=str(cache), **how)[0]


def time_of(x: int, y: int, pad: int, scale: float = 1.0) -> float:
    """Made-up time of a configuration, ms: odd digits, so that a lost one shows."""
    return scale * (1.0 + 7.0 / x + 0.37 * y + 0.0123456789012345 * pad)


def repeats_of(time: float) -> list[float]:
    """Times whose mean is near ``time``."""
    return [time * (1 + 0.001 * (n - 2)) for n in range(REPEATS)]


def failed(x: int, y: int, pad: int) -> str:
    """Words of the failure of some configurations."""
    if (x, y) == (64, 4):
        return "CompilationFailedConfig" if pad else "RuntimeFailedConfig"
    return ""


def space() -> list[tuple[int, int, int]]:
    """Configurations of the made-up sweep: not a full product."""
    every = itertools.product(X, Y, PAD)
    return [(x, y, pad) for x, y, pad in every if not pad or x % 32 == 0]


def cache(device: str = "NVIDIA RTX A4000", scale: float = 1.0, **header: Any) -> dict[str, Any]:
    """Content of a Kernel Tuner cache."""
    entries: dict[str, Any] = {}
    for x, y, pad in space():
        time = repeats_of(time_of(x, y, pad, scale))
        words = failed(x, y, pad)
        entries[f"{x},{y},{pad}"] = {
            **{"block_size_x": x, "tile": y, "pad": pad},
            "time": words or sum(time) / len(time),
            "times": [] if words else time,
            "compile_time": 12.5,
            "GFLOP/s": 1.0,
            "timestamp": "2023-12-22 09:54:05.502007+00:00",
        }
    return {
        "device_name": device,
        "kernel_name": "blur_kernel",
        "problem_size": [4096, 2048],
        "tune_params_keys": ["block_size_x", "tile", "pad"],
        "tune_params": {"block_size_x": X, "tile": Y, "pad": PAD},
        "objective": "time",
        "cache": entries,
        **header,
    }


def t4(unit: str = "miliseconds", scale: float = 1.0, to_unit: float = 1.0) -> dict[str, Any]:
    """The same sweep as T4."""
    results = []
    for entry in cache(scale=scale)["cache"].values():
        names = ("block_size_x", "tile", "pad")
        time = entry["time"]
        words = time if isinstance(time, str) else ""
        kinds = {"CompilationFailedConfig": "compile", "RuntimeFailedConfig": "runtime"}
        times: dict[str, Any] = {"compilation": 12.5}
        if not words:
            times["runtimes"] = [each * to_unit for each in entry["times"]]
        value = words or time * to_unit
        results.append(
            {
                "timestamp": entry["timestamp"],
                "configuration": {name: entry[name] for name in names},
                "times": times,
                "invalidity": kinds.get(words, "correct"),
                "correctness": 0 if words else 1,
                "measurements": [{"name": "time", "value": value, "unit": ""}],
                "objectives": ["time"],
            }
        )
    return {"metadata": {"timeunit": unit}, "results": results, "schema_version": "1.0.0"}


def t1(condition: str = "pad == 0 or block_size_x % 32 == 0") -> dict[str, Any]:
    """The space as T1, with lists that only a Python would compute."""
    listed = {
        "block_size_x": "[16 * 2 ** i for i in range(0, 3)]",
        "tile": "[1] + [2 * i for i in range(1, 3)]",
        "pad": "[0, 1]",
    }
    parameters = [
        {"Name": name, "Type": "int", "Values": text, "Default": default}
        for (name, text), default in zip(listed.items(), (32, 2, 0), strict=True)
    ]
    conditions = [{"Expression": condition, "Parameters": ["pad", "block_size_x"]}]
    return {
        "ConfigurationSpace": {"TuningParameters": parameters, "Conditions": conditions},
        "KernelSpecification": {"KernelName": "blur_kernel", "ProblemSize": [4096, 2048]},
    }


def ktt(unit: str = "Microseconds") -> dict[str, Any]:
    """The same sweep as KTT writes it."""
    results: list[dict[str, Any]] = []
    for x, y, pad in space():
        words, time = failed(x, y, pad), 1e3 * time_of(x, y, pad)
        compiled = {"RegistersCount": 16 + y, "LocalMemorySize": 512, "PrivateMemorySize": 0}
        run = {"CompilationData": compiled, "Duration": time, "KernelFunction": "Blur"}
        results.append(
            {
                "KernelName": "Blur",
                "Status": "ComputationFailed" if words else "Ok",
                "TotalDuration": 0.0 if words else time,
                "ComputationResults": [] if words else [run],
                "Configuration": [
                    {"Name": name, "Value": value, "ValueType": "UnsignedInt"}
                    for name, value in (("block_size_x", x), ("tile", y), ("pad", pad))
                ],
            }
        )
    return {"Metadata": {"Device": "NVIDIA RTX A4000", "TimeUnit": unit}, "Results": results}


def write(path: Path, content: Any) -> Path:
    """Write a file as JSON, packed where its name says so."""
    text = content if isinstance(content, str) else json.dumps(content)
    path.write_bytes(gzip.compress(text.encode()) if path.suffix == ".gz" else text.encode())
    return path


def results() -> list[dict[str, Any]]:
    """The same sweep as ``tune_kernel`` of Kernel Tuner returns it."""
    return [dict(entry) for entry in cache()["cache"].values()]


def triton(key: list[Any], scale: float = 1.0) -> dict[str, Any]:
    """Timings of an autotuner of Triton: quantiles .5, .2 and .8, infinite where it failed."""
    timings: list[Any] = []
    for x, y, stages in itertools.product(X, Y, (2, 3)):
        config = {
            **{"kwargs": {"BLOCK_M": x, "BLOCK_N": 16 * y}, "num_warps": 4 if x < 64 else 8},
            **{"num_ctas": 1, "num_stages": stages, "maxnreg": None, "pre_hook": None},
        }
        time = time_of(x, y, 0, scale) + 0.01 * stages
        failed_one = (x, y, stages) == (64, 4, 3)
        timing = [float("inf")] * 3 if failed_one else [time, time * 0.99, time * 1.02]
        timings.append([config, timing])
    return {"key": key, "configs_timings": timings}
