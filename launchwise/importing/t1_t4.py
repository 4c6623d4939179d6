"""Reads T1 (spaces) and T4 (results) of the Auto-Tuning Association, and writes T4.

T1 states tunables whose values are a *text* with a Python list, and conditions that are Python
expressions; both are read without executing anything. T4 states results but no device, no kernel
and no problem: a T1 beside it, or the user, does.
"""

from __future__ import annotations

import ast
import json
import math
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from launchwise.base.errors import UserError
from launchwise.base.expressions import evaluate, names_in
from launchwise.base.storage import write_text
from launchwise.importing.files import parse_json, read_text
from launchwise.importing.sweep import (
    SPELLED,
    TO_MS,
    ForeignSweep,
    Row,
    as_time,
    as_times,
    as_value,
    failure_status,
    problem_of,
    time_unit,
)
from launchwise.workloads.parts import Value

FORMAT = "T4"
SCHEMA_VERSION = "1.0.0"

STATUS_OF = {
    "correct": "ok",
    "": "ok",
    "timeout": "timeout",
    "correctness": "wrong",
    "compile": "failed",
    "runtime": "failed",
    "constraints": "failed",
}
"""``invalidity`` of a T4 result to our status."""

WORDS_OF = {
    "compile": "CompilationFailedConfig",
    "runtime": "RuntimeFailedConfig",
    "constraints": "InvalidConfig",
    "correctness": "correctness",
    "timeout": "timeout",
}
"""``invalidity`` of a T4 result to the words of its failure: those of Kernel Tuner where it has
any."""


def is_t4(content: object) -> bool:
    """Whether the content of a JSON file is T4."""
    return isinstance(content, Mapping) and isinstance(content.get("results"), list)


def is_t1(content: object) -> bool:
    """Whether the content of a JSON file is T1."""
    return isinstance(content, Mapping) and "ConfigurationSpace" in content


class Space:
    """Space of a T1 file.

    Attributes
    ----------
    tunables
        Tunable to its values, in the order of the file.
    constraints
        Conditions that launchwise can evaluate.
    unread
        Conditions that it cannot: the space is then that of the listed configurations.
    defaults
        Default of some tunables.
    problem
        Problem of the kernel's specification; empty where there is none.
    """

    def __init__(self, content: Mapping[str, Any], path: str | Path) -> None:
        space = content.get("ConfigurationSpace") or {}
        kernel = content.get("KernelSpecification") or {}
        self.kernel_name = str(kernel.get("KernelName") or "").strip()
        self.problem = problem_of(kernel.get("ProblemSize"))
        self.tunables: dict[str, list[Value]] = {}
        self.defaults: dict[str, Value] = {}
        for number, entry in enumerate(space.get("TuningParameters") or []):
            key = f"ConfigurationSpace.TuningParameters.{number}"
            if not isinstance(entry, Mapping) or not entry.get("Name"):
                raise UserError(path, f"{key}.Name", "is missing")
            name = str(entry["Name"])
            self.tunables[name] = _listed_values(entry.get("Values"), path, f"{key}.Values")
            if entry.get("Default") is not None:
                self.defaults[name] = as_value(entry["Default"])
        self.constraints: list[str] = []
        self.unread: list[str] = []
        for entry in space.get("Conditions") or []:
            text = str(entry.get("Expression", "") if isinstance(entry, Mapping) else entry)
            readable = readable_condition(text, self.tunables)
            if readable is None:
                self.unread.append(text)
            else:
                self.constraints.append(readable)


def read_t1(path: str | Path) -> Space:
    """Space in a T1 file.

    Raises
    ------
    UserError
        When it is no T1, or a list of values is none that can be read.
    """
    content, _ = parse_json(read_text(path), path)
    if not is_t1(content):
        raise UserError(path, "ConfigurationSpace", "is missing: not a T1 file")
    return Space(content, path)


def readable_condition(text: str, tunables: Mapping[str, Any]) -> str | None:
    """``text`` as an expression of launchwise over ``tunables``; None where it is none."""
    plain = re.sub(r"\s+", " ", text.replace("&&", " and ").replace("||", " or ")).strip()
    try:
        names = names_in(plain)
        evaluate(plain, dict.fromkeys(names, 1))
    except ValueError as error:
        # A value of 1 may divide by zero where real ones do not.
        if "cannot be evaluated" not in str(error):
            return None
    return plain if names <= set(tunables) else None


def _listed_values(values: object, path: str | Path, key: str) -> list[Value]:
    """Values of a tunable: a list, or a text with a Python list."""
    listed = values
    if isinstance(values, str):
        listed = _evaluated(values)
        if listed is None:
            message = f"{values!r} is no list of values that can be read without running it"
            raise UserError(path, key, message)
    if not isinstance(listed, list | tuple) or not listed:
        raise UserError(path, key, "must be a list of values")
    return list(dict.fromkeys(as_value(value) for value in listed))


def _evaluated(text: str) -> list[Any] | None:
    """List that a Python expression of literals, sums of lists and comprehensions over ranges is.

    Nothing is executed: literals are read, and a comprehension is one formula over whole numbers.
    """
    try:
        tree = ast.parse(text.strip(), mode="eval").body
        return _list_of(tree)
    except (ValueError, SyntaxError, RecursionError, MemoryError, TypeError):
        return None


MOST_VALUES = 100_000
"""Most values of a range: a file must not fill the memory."""


def _list_of(node: ast.expr) -> list[Any]:
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        return [*_list_of(node.left), *_list_of(node.right)]
    if isinstance(node, ast.Call):
        name = node.func.id if isinstance(node.func, ast.Name) else ""
        if name in ("list", "tuple", "sorted") and len(node.args) == 1 and not node.keywords:
            return _list_of(node.args[0])
        return list(_range_of(node))
    if isinstance(node, ast.ListComp) and len(node.generators) == 1:
        loop = node.generators[0]
        if not isinstance(loop.target, ast.Name) or loop.is_async:
            raise ValueError("not a plain comprehension")
        formula = ast.unparse(node.elt)
        conditions = [ast.unparse(condition) for condition in loop.ifs]
        return [
            evaluate(formula, {loop.target.id: value})
            for value in _list_of(loop.iter)
            if all(evaluate(condition, {loop.target.id: value}) for condition in conditions)
        ]
    return list(ast.literal_eval(node))


def _range_of(node: ast.Call) -> range:
    if not isinstance(node.func, ast.Name) or node.func.id != "range" or node.keywords:
        raise ValueError("calls something else than range")
    numbers = range(*(int(evaluate(ast.unparse(argument), {})) for argument in node.args))
    if len(numbers) > MOST_VALUES:
        raise ValueError("too many values")
    return numbers


def read_t4(path: str | Path, space: Space | None = None) -> ForeignSweep:
    """Sweep in a T4 file.

    Parameters
    ----------
    space
        T1 of the same kernel: its order of tunables, problem and kernel name.

    Raises
    ------
    UserError
        When it is no T4, or a result lacks its configuration.
    """
    content, cut = parse_json(read_text(path), path)
    return sweep_of_t4(content, path, space, cut)


def sweep_of_t4(
    content: object, path: str | Path, space: Space | None = None, cut: bool = False
) -> ForeignSweep:
    """Sweep in the content of a T4 file (see :func:`read_t4`)."""
    if not isinstance(content, Mapping) or not isinstance(content.get("results"), list):
        raise UserError(path, "results", "is missing: not a T4 file")
    notes = ["the file was cut off: results up to its last complete one were read"] if cut else []
    metadata = content.get("metadata")
    metadata = metadata if isinstance(metadata, Mapping) else {}
    stated = metadata.get("timeunit") or metadata.get("time_unit")
    unit = time_unit(stated) if stated else None
    if stated and unit is None:
        raise UserError(path, "metadata.timeunit", f"{stated!r} is no unit of time")
    if unit is None and (unit := _own_unit(content["results"])):
        notes.append(f"states the unit of its measurements alone: {SPELLED[unit]}, repeats too")
    elif unit is None:
        unit = "ms"
        notes.append("states no unit of time: milliseconds, as the T4 schema has it")
    elif unit != "ms":
        notes.append(f"converted from {SPELLED[unit]} to milliseconds")
    rows = [_result(each, n, TO_MS[unit], path) for n, each in enumerate(content["results"])]
    if not rows:
        notes.append("the file holds no result")
    names = list(space.tunables) if space else list(rows[0].configuration) if rows else []
    for number, row in enumerate(rows):
        if others := [name for name in row.configuration if name not in names]:
            known = "the space (T1)" if space else "the first result"
            message = f"has the parameter {others[0]}, which {known} has not"
            raise UserError(path, f"results.{number}.configuration", message)
        if lacking := [name for name in names if name not in row.configuration]:
            raise UserError(path, "results", f"a configuration lacks {lacking[0]}")
    values: dict[str, list[Value]] = {}
    for name in names:
        listed = space.tunables[name] if space else []
        values[name] = list(dict.fromkeys([*listed, *(row.configuration[name] for row in rows)]))
    return ForeignSweep(
        source=str(path),
        format=FORMAT,
        device_name=str(metadata.get("device_name") or metadata.get("device") or "").strip(),
        kernel_name=space.kernel_name if space else str(metadata.get("kernel_name") or ""),
        problem=problem_of(metadata.get("problem_size")) or (dict(space.problem) if space else {}),
        tunables=values,
        rows=rows,
        notes=notes,
    )


def _own_unit(results: Sequence[object]) -> str | None:
    """Unit of all measured times, where each states the same."""
    units = {
        time_unit(each.get("unit") or "")
        for entry in results
        if isinstance(entry, Mapping)
        for each in entry.get("measurements") or []
        if isinstance(each, Mapping) and _is_time(str(each.get("name")))
    }
    return units.pop() if len(units) == 1 else None


def _is_time(name: str) -> bool:
    """Whether a measurement of this name is a time: ``time``, ``runtime``, ``duration``."""
    return any(word in name.lower() for word in ("time", "duration"))


def _result(entry: object, number: int, to_ms: float, path: str | Path) -> Row:
    if not isinstance(entry, Mapping) or not isinstance(entry.get("configuration"), Mapping):
        raise UserError(path, f"results.{number}.configuration", "is missing")
    configuration = {str(name): as_value(value) for name, value in entry["configuration"].items()}
    times = entry.get("times")
    runtimes = as_times(times.get("runtimes") if isinstance(times, Mapping) else times, to_ms)
    stated, words = _stated(entry, to_ms)
    invalidity = str(entry.get("invalidity") or "").strip().lower()
    status = STATUS_OF.get(invalidity, failure_status(invalidity))
    extra = {"measured_at": entry["timestamp"]} if isinstance(entry.get("timestamp"), str) else {}
    if status == "ok":
        if stated is None and runtimes and not words:
            stated = math.fsum(runtimes) / len(runtimes)
        if stated is not None and not words:
            return Row(configuration, "ok", "", runtimes, stated, extra)
        status = failure_status(words or "no time")
    known = "" if STATUS_OF.get(invalidity) == "ok" else WORDS_OF.get(invalidity, invalidity)
    reason = words or known or "no time"
    return Row(configuration, status, reason, runtimes, None, extra)


def _stated(entry: Mapping[str, Any], to_ms: float) -> tuple[float | None, str]:
    """Time that a result states, ms, and the words that stand in its place."""
    objectives = entry.get("objectives")
    named = objectives if isinstance(objectives, list) else []
    wanted = [*(str(name) for name in named), "time"]
    measured = entry.get("measurements")
    listed = [each for each in measured or [] if isinstance(each, Mapping)]
    found: dict[str, Mapping[str, Any]] = {str(each.get("name")): each for each in listed}
    words = ""
    for name in dict.fromkeys(wanted):
        if name not in found:
            continue
        value, own = found[name].get("value"), time_unit(found[name].get("unit") or "")
        time = as_time(value)
        if time is None:
            words = words or (value if isinstance(value, str) else "")
        elif _is_time(name) or own is not None:
            factor = TO_MS[own] if own else to_ms
            return (time if factor == 1.0 else time * factor), words
    return None, words


def write_t4(path: str | Path, sweep: ForeignSweep) -> None:
    """Write ``sweep`` as T4, schema 1.0.0."""
    results = [_written(row, list(sweep.tunables)) for row in sweep.rows]
    content = {
        "schema_version": SCHEMA_VERSION,
        "metadata": {
            "timeunit": "milliseconds",
            "device_name": sweep.device_name,
            "kernel_name": sweep.kernel_name,
            "problem_size": list(sweep.problem.values()),
        },
        "results": results,
    }
    write_text(path, json.dumps(content, allow_nan=False))


def _written(row: Row, names: Sequence[str]) -> dict[str, Any]:
    result: dict[str, Any] = {}
    if "measured_at" in row.extra:
        result["timestamp"] = row.extra["measured_at"]
    value: Any = row.time_ms if row.status == "ok" else row.reason
    return {
        **result,
        "configuration": {name: row.configuration[name] for name in names},
        "times": {"runtimes": list(row.times_ms)},
        "invalidity": invalidity_of(row),
        "correctness": 1.0 if row.status == "ok" else 0.0,
        "measurements": [{"name": "time", "value": value, "unit": "milliseconds"}],
        "objectives": ["time"],
    }


def invalidity_of(row: Row) -> str:
    """``invalidity`` of a row in T4."""
    if row.status in ("ok", "timeout", "wrong"):
        return {"ok": "correct", "timeout": "timeout", "wrong": "correctness"}[row.status]
    words = row.reason.lower()
    if "compil" in words:
        return "compile"
    return "constraints" if "invalid" in words or "constraint" in words else "runtime"
