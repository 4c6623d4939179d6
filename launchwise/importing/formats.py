"""Reads a file of any format that launchwise knows, by its content."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from launchwise.base.errors import UserError
from launchwise.importing.csv_mapping import Mapped, columns_in, read_csv, rows_of_tuner
from launchwise.importing.foreign_sweep import (
    ForeignSweep,
    is_overhead,
    is_time_name,
    time_among,
    unit_in_name,
)
from launchwise.importing.kernel_tuner import is_cache, rows_in, sweep_of_cache, sweep_of_rows
from launchwise.importing.opening import (
    MOST_BYTES,
    as_text,
    loaded,
    no_format,
    parse_json,
    read_members,
)
from launchwise.importing.other_tuners import is_ktt, is_triton, sweep_of_ktt, sweep_of_triton
from launchwise.importing.t1 import Space, is_t1
from launchwise.importing.t4 import is_t4, sweep_of_t4

READERS: list[tuple[Callable[[object], bool], Callable[[Any, str | Path], ForeignSweep]]] = [
    (is_cache, sweep_of_cache),
    (is_triton, sweep_of_triton),
    (is_ktt, sweep_of_ktt),
]
"""Test of a JSON file's content, and its reader."""

CUT = "the file was cut off: what stands before its last complete entry was read"

PACKED = (".gz", ".bz2", ".xz", ".zip")


def read_sweeps(
    path: str | Path,
    space: Space | None = None,
    columns: Mapped | None = None,
    most: int = MOST_BYTES,
) -> list[ForeignSweep]:
    """Sweeps in a file, or in the one file of a zip that is of a known format. ``space``: T1 of the
    kernel. ``columns``: mapping of the columns, for CSV. ``most``: most bytes that are unpacked.
    Raises UserError when the file cannot be read, or is of no known format."""
    found: dict[str, list[ForeignSweep]] = {}
    reasons: dict[str, UserError] = {}
    for name, content in read_members(path, most):
        try:
            text = as_text(content, path, most)
            found[name] = _sweeps_of(text, Path(name or path), path, space, columns)
        except UserError as error:
            reasons[name] = error
    if len(found) > 1:
        message = f"is a zip of several results ({', '.join(found)}): unpack it and name each"
        raise UserError(path, "", message)
    if not found and len(reasons) == 1:
        raise next(iter(reasons.values()))
    if not found:
        raise no_format(path, f"a zip of {', '.join(reasons) or 'nothing'}")
    return next(iter(found.values()))


def _sweeps_of(
    text: str, named: Path, path: str | Path, space: Space | None, columns: Mapped | None
) -> list[ForeignSweep]:
    """Sweeps in a text. ``named``: name that may tell the format. ``path``: file that messages
    name."""
    name = named.name.lower()
    while name.endswith(PACKED):
        name = name.rpartition(".")[0]
    plain = text.lstrip()
    if not plain:
        raise UserError(path, "", "is empty")
    is_json = plain.startswith(("{", "["))
    if columns is not None and (name.endswith((".csv", ".tsv")) or not is_json):
        return read_csv(path, columns, text)
    if name.endswith(".wisdom"):
        raise no_format(path, WISDOM)
    if not is_json:
        return [_of_table(text, path, space)]
    lines, cut = _json_lines(text, path)
    if lines:
        found = _of_lines(lines, path, space)
    else:
        content, cut = parse_json(text, path)
        found = _of_json(content, path, space)
    return [replace(found, notes=[CUT, *found.notes]) if cut else found]


WISDOM = "a wisdom file of Kernel Launcher, which holds the fastest configurations alone"


def _of_table(text: str, path: str | Path, space: Space | None) -> ForeignSweep:
    """Sweep of a table that Kernel Tuner's results were written to; others need a mapping."""
    if text.lstrip().startswith("<"):
        raise no_format(path, "HTML or XML")
    columns = columns_in(text)
    if not columns:
        raise no_format(path, "a text")
    rows = rows_of_tuner(text)
    if rows is not None:
        return sweep_of_rows(rows, {}, path, space)
    raise UserError(path, "", _ask_for_columns(columns))


def _ask_for_columns(columns: list[str]) -> str:
    time = time_among(columns)
    told = "" if time else "none of them is named as a time; "
    rest = [name for name in columns if not (is_time_name(name) or is_overhead(name))]
    return (
        f"is CSV: name a file that says what its columns hold (--columns), such as "
        f"{{tunables: [{', '.join(rest[:2])}], time: {time or 'TIME'}, "
        f"unit: {unit_in_name(time) or 'ms'}}}; {told}columns: {', '.join(columns)}"
    )


def _json_lines(text: str, path: str | Path) -> tuple[list[Any], bool]:
    """Objects of a text with one per line, and whether the last was cut off. None of them where it
    is one JSON text. Raises UserError with the line that is damaged, where those before it are
    complete."""
    lines = {n: line for n, line in enumerate(text.splitlines(), 1) if line.strip()}
    if len(lines) < 2 or not all(line.lstrip().startswith("{") for line in lines.values()):
        return [], False
    found = []
    for number, line in lines.items():
        try:
            found.append(loaded(line))
        except (ValueError, RecursionError) as error:
            # Only a text that spans several lines begins with an object that has no end.
            if not found and not isinstance(error, UnicodeEncodeError):
                return [], False
            # The last line of a run that was killed.
            if isinstance(error, UnicodeEncodeError) or number != max(lines):
                raise UserError(f"{path}:{number}", "", f"is not JSON: {error}") from error
    return found, len(found) < len(lines)


def _of_lines(lines: list[Any], path: str | Path, space: Space | None) -> ForeignSweep:
    if "tunable_parameters" in lines[0] or "kernel_launcher_version" in lines[0]:
        raise no_format(path, WISDOM)
    if all(isinstance(each.get("configuration"), Mapping) for each in lines):
        return sweep_of_t4({"results": lines}, path, space)
    if rows_in(lines) is None:
        raise no_format(path, f"lines of JSON without a time (keys: {', '.join(lines[0])})")
    return sweep_of_rows(lines, {}, path, space)


def _of_json(content: Any, path: str | Path, space: Space | None) -> ForeignSweep:
    for fits, reader in READERS:
        if fits(content):
            sweep = reader(content, path)
            strange = sorted(space.tunables.keys() ^ sweep.tunables.keys()) if space else []
            if sweep.rows and strange:
                message = f"and the space (T1) have different parameters: {', '.join(strange)}"
                raise UserError(path, "", message)
            return sweep
    if is_t4(content):
        return sweep_of_t4(content, path, space)
    if is_t1(content):
        raise UserError(path, "", "is T1, which holds a space and no times: name it as the space")
    if (listed := rows_in(content)) is not None:
        return sweep_of_rows(*listed, path, space)
    raise no_format(path, _what(content))


MOST_KEYS = 6  # Most keys of an unknown file that a message lists


def _what(content: object) -> str:
    """Words for the content of a JSON file that is of no known format."""
    if isinstance(content, Mapping):
        keys = [str(key) for key in content][:MOST_KEYS]
        return f"JSON with the keys {', '.join(keys)}" if keys else "an empty object of JSON"
    if isinstance(content, list) and content:
        if all(isinstance(each, Mapping) for each in content):
            keys = list(dict.fromkeys(str(key) for each in content for key in each))
            return f"a list of rows without a time (keys: {', '.join(keys[:MOST_KEYS])})"
        return "a list of JSON that holds no rows"
    return "an empty list of JSON" if isinstance(content, list) else "JSON of one value"
