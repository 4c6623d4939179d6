"""Reads the results of CLBlast's tuners: ``clblast_<kernel>_<precision>.json``.

The head names the device and the problem (``arg_m``, ``arg_n``, ...), ``results`` holds a kernel,
its time in ms with three decimals, and the parameters. Configurations that failed are not listed.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from launchwise.base.errors import UserError
from launchwise.importing.sweep import ForeignSweep, Row, as_time, as_value
from launchwise.workloads.parts import Value

FORMAT = "CLBlast"

HEAD = ("kernel_family", "clblast_device_name", "clblast_device_vendor", "clblast_device_type")
"""Keys of which a file has at least one."""

ARGUMENT = "arg_"

NOT_SIZES = {"alpha", "beta", "fraction", "num_runs", "runs"}
"""Arguments of a tuner that are no size of the problem."""


def is_clblast(content: object) -> bool:
    """Whether the content of a JSON file is that of a tuner of CLBlast."""
    return (
        isinstance(content, Mapping)
        and isinstance(content.get("results"), list)
        and any(key in content for key in HEAD)
    )


def sweep_of_clblast(content: Any, path: str | Path, cut: bool = False) -> ForeignSweep:
    """Sweep in the results of one tuner of CLBlast.

    Raises
    ------
    UserError
        When a result lacks its parameters, or results are of several kernels.
    """
    if not is_clblast(content):
        raise UserError(path, "results", "is missing: not a file of CLBlast's tuners")
    notes = ["the file was cut off: results up to its last complete one were read"] if cut else []
    results = content["results"]
    rows = [_row(each, number, path) for number, each in enumerate(results)]
    names = list(rows[0].configuration) if rows else []
    for number, row in enumerate(rows):
        if set(row.configuration) != set(names):
            message = "has other parameters than the first result"
            raise UserError(path, f"results.{number}.parameters", message)
    kernels = sorted({str(each["kernel"]) for each in results if each.get("kernel")})
    if len(kernels) > 1:
        message = f"are of several kernels ({', '.join(kernels)}): leave one in the file"
        raise UserError(path, "results", message)
    if rows:
        notes.append("one time per configuration, with three decimals; failures are not listed")
    else:
        notes.append("the file holds no result")
    return ForeignSweep(
        source=str(path),
        format=FORMAT,
        device_name=str(content.get("device") or content.get("clblast_device_name") or "").strip(),
        kernel_name=kernels[0] if kernels else str(content.get("kernel_family") or ""),
        problem=_problem(content),
        tunables={name: list(dict.fromkeys(r.configuration[name] for r in rows)) for name in names},
        rows=rows,
        notes=notes,
    )


def _row(entry: object, number: int, path: str | Path) -> Row:
    if not isinstance(entry, Mapping) or not isinstance(entry.get("parameters"), Mapping):
        raise UserError(path, f"results.{number}.parameters", "is missing")
    configuration = {str(name): as_value(value) for name, value in entry["parameters"].items()}
    time = as_time(entry.get("time"))
    if time is None:
        return Row(configuration, "failed", "no time", (), None)
    return Row(configuration, "ok", "", (), time)


def _problem(content: Mapping[str, Any]) -> dict[str, Value]:
    sizes = {
        str(key).removeprefix(ARGUMENT): as_value(value)
        for key, value in content.items()
        if str(key).startswith(ARGUMENT)
    }
    return {
        name: size
        for name, size in sizes.items()
        if name and name not in NOT_SIZES and isinstance(size, int)
    }
