"""Reads the timings that ``triton.autotune`` stores.

With ``TRITON_CACHE_AUTOTUNING=1``, or ``cache_results=True``, Triton writes a file
``<kernel>.autotune.json`` per key: ``key`` holds the values of the arguments that the autotuner's
``key`` names, without the names, then the types of all tensors; ``configs_timings`` pairs of a
configuration and its timing. A timing is in ms: a number, or the quantiles .5, .2 and .8. What did
not compile, or needs too much shared memory, is infinite.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from launchwise.base.errors import UserError
from launchwise.importing.sweep import ForeignSweep, Row, as_time, as_value
from launchwise.workloads.parts import Value

FORMAT = "Triton"

SUFFIX = ".autotune.json"

CONFIGS = "configs_timings"

ARGUMENTS = "kwargs"
"""Key of a configuration that holds the kernel's own tunables."""

HOOKS = ("pre_hook",)
"""Keys of a configuration that are no tunable."""

USUAL = {"num_ctas": 1}
"""Options of a launch that are left out where every configuration has the usual value."""

NO_LIMIT = {"maxnreg": 0}
"""Value of an option that a configuration does not set, where others set it."""

UNSET = "none"

FAILURE = "infinite time"

_TYPE = re.compile(r"(torch\.|jax\.|numpy\.)?(b?float|fp|u?int|bf|complex|bool|tf)[0-9]*[a-z0-9_]*")
"""A type of a tensor's elements, such as ``torch.float16``."""


def is_triton(content: object) -> bool:
    """Whether the content of a JSON file is the timings of an autotuner of Triton."""
    return isinstance(content, Mapping) and isinstance(content.get(CONFIGS), list)


def sweep_of_triton(content: Any, path: str | Path, cut: bool = False) -> ForeignSweep:
    """Sweep in a file of Triton: the configurations of one key. It states no device.

    Raises
    ------
    UserError
        When an entry is no pair of a configuration and its timing.
    """
    if not is_triton(content):
        raise UserError(path, CONFIGS, "is missing: not a file of Triton's autotuner")
    notes = ["the file was cut off: timings up to the last complete one were read"] if cut else []
    pairs = [_pair(each, number, path) for number, each in enumerate(content[CONFIGS])]
    names = _tunables([given for given, _ in pairs])
    for name in names:
        if name in NO_LIMIT and any(given.get(name) is None for given, _ in pairs):
            notes.append(f"{name} {NO_LIMIT[name]} stands for one that is not set")
    rows = [_row(given, timing, names) for given, timing in pairs]
    notes.append("one time per configuration: its repeats are not in the file")
    return ForeignSweep(
        source=str(path),
        format=FORMAT,
        device_name="",
        kernel_name=_kernel(path),
        problem=_problem(content.get("key")),
        tunables={name: list(dict.fromkeys(r.configuration[name] for r in rows)) for name in names},
        rows=rows,
        notes=notes,
    )


def _kernel(path: str | Path) -> str:
    name = Path(path).name
    return name.partition(SUFFIX)[0] if SUFFIX in name else ""


def _pair(entry: object, number: int, path: str | Path) -> tuple[dict[str, Any], Any]:
    """Tunables of one entry, and its timing."""
    key = f"{CONFIGS}.{number}"
    if not isinstance(entry, list) or len(entry) != 2:
        raise UserError(path, key, "must be a configuration and its timing")
    given, timing = entry
    if isinstance(given, str):
        # Some libraries store the text of a configuration.
        given = dict(part.partition(":")[::2] for part in given.split(",") if ":" in part)
        given = {name.strip(): _of_text(value.strip()) for name, value in given.items()}
    if not isinstance(given, Mapping) or not given:
        raise UserError(path, key, "must be a configuration and its timing")
    own = given.get(ARGUMENTS) or {}
    if not isinstance(own, Mapping):
        raise UserError(path, f"{key}.0.{ARGUMENTS}", "must map names to values")
    options = {k: v for k, v in given.items() if k not in (ARGUMENTS, *HOOKS)}
    return {str(name): value for name, value in {**options, **own, **options}.items()}, timing


def _of_text(value: str) -> Any:
    return {"None": None, "True": True, "False": False}.get(value, value)


def _tunables(given: Sequence[Mapping[str, Any]]) -> list[str]:
    """Names in the order of the file, the kernel's own first; without what nobody set."""
    names = dict.fromkeys(name for each in given for name in each)
    values = {name: {repr(each.get(name)) for each in given} for name in names}
    unset = [name for name in names if values[name] == {"None"}]
    usual = [name for name, value in USUAL.items() if values.get(name) == {repr(value)}]
    return [name for name in names if name not in (*unset, *usual)]


def _row(given: Mapping[str, Any], timing: object, names: Sequence[str]) -> Row:
    configuration: dict[str, Value] = {}
    for name in names:
        value = given.get(name)
        configuration[name] = NO_LIMIT.get(name, UNSET) if value is None else as_value(value)
    # The first quantile is the median.
    median = timing[0] if isinstance(timing, list) and timing else timing
    time = as_time(median)
    if time is None:
        words = median if isinstance(median, str) else FAILURE
        return Row(configuration, "failed", words, (), None)
    return Row(configuration, "ok", "", (), time)


def _problem(key: object) -> dict[str, Value]:
    """Problem parameters of a key: ``n``, or ``n1``, ``n2``, ... in its order, then ``dtype``.

    The key has no names: ``--problem-names`` gives them.
    """
    parts = list(key) if isinstance(key, list) else [] if key is None else [key]
    types: list[str] = []
    while parts and isinstance(parts[-1], str) and _TYPE.fullmatch(parts[-1]):
        types.insert(0, str(parts.pop()).rpartition(".")[2])
    names = ["n"] if len(parts) == 1 else [f"n{place}" for place in range(1, len(parts) + 1)]
    found = {name: _size(part) for name, part in zip(names, parts, strict=True)}
    if types:
        found["dtype"] = types[0] if len(set(types)) == 1 else "_".join(types)
    return found


def _size(part: object) -> Value:
    """A whole number as such; a flag or nothing as a text, since it is no size."""
    if isinstance(part, bool) or part is None:
        return str(part).lower()
    return as_value(part)
