"""A load: how often each problem of a workload is launched, read from a log and kept as a CSV file.

The file has a column ``workload``, one per parameter of the problem, and ``count``. Logs of others
have names of their own: :func:`read_load` is told which column, or name in a line, holds what."""

from __future__ import annotations

import csv
import io
import math
import random
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from launchwise.base.errors import UserError, unknown
from launchwise.base.literals import csv_cell, whole
from launchwise.base.names import assigned, named_values
from launchwise.base.storage import read_text, records_in, write_text
from launchwise.workloads.near_problems import distances
from launchwise.workloads.parts import Value
from launchwise.workloads.sources import cpu_limit
from launchwise.workloads.space import Problem
from launchwise.workloads.spec import Spec

if TYPE_CHECKING:
    # A log is read without it.
    import pandas as pd

COMMAND, LOADS = "load", Path("loads")
READING_S = 6.0  # Most CPU time that a log takes, s: patterns can take for ever
NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*")
COUNT, WORKLOAD = "count", "workload"
MOST_LISTED = 50  # Most problems outside of the range that are named
LONGEST = 100_000  # Characters of a first line that may be a header
Shape = tuple[Value, ...]  # Values of a problem, in the order of the parameters


@dataclass(frozen=True)
class Load:
    """Problems of a workload and their launches."""

    workload: str
    parameters: tuple[str, ...]
    counts: Mapping[Shape, int]  # those within the declared range, the most frequent first
    # Those outside of it: launches, and what the workload says of the problem.
    outside: Mapping[Shape, tuple[int, str]]
    # ``lines`` that were read; ``repeated``: those of a problem that an earlier line has, whose
    # counts were added; ``skipped``: those of a log that name no problem.
    read: Mapping[str, int] = field(default_factory=dict)

    def problem(self, shape: Shape) -> Problem:
        """A problem by the names of its parameters."""
        return dict(zip(self.parameters, shape, strict=True))

    def drawn(self, dice: random.Random) -> list[Problem]:
        """Every problem in a random order, frequent ones sooner."""
        # Efraimidis and Spirakis (2006): sorting by u ** (1 / weight) draws by weight.
        keys = {shape: dice.random() ** (1 / count) for shape, count in self.counts.items()}
        return [self.problem(shape) for shape in sorted(keys, key=keys.__getitem__, reverse=True)]

    def weights(self, problems: pd.DataFrame) -> np.ndarray:
        """Launches of each row's problem: those of the load's problems that are nearest to it among
        the rows. float64, shape (rows,); alike where none has the texts of one.

        ``problems``: a column per parameter.
        """
        columns = (problems[name].tolist() for name in self.parameters)
        rows = list(zip(*columns, strict=True))
        known = list(dict.fromkeys(rows))
        apart = distances(list(self.counts), known)
        launches = np.array(list(self.counts.values()), dtype=float)
        near = apart.min(axis=1, initial=math.inf) < math.inf
        if not near.any():
            return np.ones(len(rows))
        sums = np.bincount(apart[near].argmin(axis=1), launches[near], len(known))
        found = dict(zip(known, sums.tolist(), strict=True))
        return np.array([found[row] for row in rows])

    @property
    def said(self) -> list[str]:
        """What was read, in sentences; problems outside of the range by name."""
        lines, launches = self.read["lines"], sum(self.counts.values())
        found = [f"problems: {len(self.counts)}, launches: {launches}, lines: {lines}"]
        if repeated := self.read["repeated"]:
            found.append(f"lines that repeat a problem: {repeated}, their counts are added")
        if unlaunched := self.read["unlaunched"]:
            found.append(f"problems without a launch: {unlaunched}, left out")
        if skipped := self.read["skipped"]:
            found.append(f"lines that name no problem: {skipped}")
        if self.outside:
            launches = sum(count for count, _ in self.outside.values())
            found.append(f"outside of the range: {len(self.outside)}, launches: {launches}")
            listed = list(self.outside.items())[:MOST_LISTED]
            found += [f"  {assigned(self.problem(one))}: {why}" for one, (_, why) in listed]
            if more := len(self.outside) - len(listed):
                found.append(f"  and {more} more")
        return found


def taken_in(
    path: Path,
    name: str,
    spec: Spec,
    columns: Sequence[str],
    fixed: Sequence[str],
    pattern: str | None,
) -> tuple[Path, Load]:
    """Read a log and write its load. Parameters are those of
    :func:`launchwise.cli.answer_commands.load`. Returns the file that was written, and the load.
    Raises UserError when a name or a line is wrong."""
    if not NAME.fullmatch(name):
        message = f"{name!r} is no name of a load: letters, digits, _, - and ."
        raise UserError(COMMAND, "--as", message)
    given = named_values(columns, COMMAND, "--column"), named_values(fixed, COMMAND, "--set")
    with cpu_limit(path, READING_S):
        found = read_load(path, spec, *given, pattern)
    target = LOADS / f"{name}.csv"
    write_load(target, found)
    return target, found


def read_load(
    path: Path,
    spec: Spec,
    columns: Mapping[str, str] | None = None,
    fixed: Mapping[str, str] | None = None,
    pattern: str | None = None,
) -> Load:
    """Read launches of a workload from a CSV file, or from lines of a log.

    A file is CSV if its first line has a column of a parameter. Of a log, lines count that name
    every parameter, as in ``M=16, N: 4096``, each a launch unless they name a count, too.

    ``columns``: parameter, or ``count``, to the column or the name that holds it; its own by
        default.
    ``fixed``: parameter to its value in every line.
    ``pattern``: regular expression with a group for each name, which lines of a log hold.
    Raises UserError with the line where a value is no number of the workload's, and where no
    problem is within its range.
    """
    columns, fixed = columns or {}, fixed or {}
    names = {name: columns.get(name, name) for name in (*spec.problem, COUNT)}
    for name in (*columns, *fixed):
        if name not in names:
            raise UserError(path, name, unknown("problem parameter", name, names))
    wanted = {name: column for name, column in names.items() if name not in {COUNT, *fixed}}
    text = read_text(path)
    header = _fields(text.lstrip("\ufeff").splitlines()[0][:LONGEST]) if text.strip() else []
    is_csv = pattern is None and any(column in header for column in wanted.values())
    if twice := next((one for one in names.values() if is_csv and header.count(one) > 1), None):
        raise UserError(path, twice, "two columns have this name")
    said = _said([*wanted.values(), names[COUNT]], pattern)
    counts, read = Counter[Shape](), Counter[str]()
    for line, record in records_in(path, text)[1] if is_csv else _of_log(text, said):
        where, missing = f"{path}:{line}", [one for one in wanted.values() if one not in record]
        if is_csv and record.get(WORKLOAD, spec.workload) != spec.workload:
            message = f"is of {record[WORKLOAD]}, not of {spec.workload}"
            raise UserError(where, WORKLOAD, message)
        if is_csv and missing:
            message = "is missing: name the column by --column NAME=COLUMN"
            raise UserError(path, missing[0], f"{message} (columns: {', '.join(record)})")
        read["lines"] += 1
        read["skipped"] += bool(missing)
        if missing:
            continue
        shape = tuple(
            _value(spec, name, fixed.get(name) or record[names[name]], where)
            for name in spec.problem
        )
        read["repeated"] += shape in counts
        counts[shape] += _count(record.get(names[COUNT], "1"), where, names[COUNT])
    if not read["lines"]:
        raise UserError(path, "", "holds no line of a launch")
    if not counts:
        message = f"no line holds {', '.join(wanted.values())}: name its columns by --column"
        raise UserError(path, "", f"{message} NAME=COLUMN")
    return _within(path, spec, counts, read)


def _within(path: Path, spec: Spec, counts: Counter[Shape], read: Counter[str]) -> Load:
    """The load of what was counted; UserError where no problem is within the range."""
    inside, outside = dict[Shape, int](), dict[Shape, tuple[int, str]]()
    for shape, count in counts.most_common():
        if complaint := spec.check_problem(dict(zip(spec.problem, shape, strict=True))):
            outside[shape] = count, complaint
        elif count:
            inside[shape] = count
        else:
            read["unlaunched"] += 1
    if not inside:
        if not outside:
            raise UserError(path, COUNT, "is 0 in every line")
        first = next(iter(outside.values()))[1]
        message = f"none of its {len(outside)} problems is within the range of {spec.workload}"
        raise UserError(path, "", f"{message}: {first}")
    return Load(spec.workload, tuple(spec.problem), inside, outside, read)


def _fields(line: str) -> list[str]:
    return [field.strip() for field in next(csv.reader([line], skipinitialspace=True), [])]


def _said(names: Sequence[str], pattern: str | None) -> Callable[[str], dict[str, str]]:
    """Function that tells what a line says of each name: by the pattern, or as ``NAME=VALUE``,
    ``NAME: VALUE`` or ``'NAME': VALUE``, of several the last."""
    if pattern is None:
        listed = "|".join(map(re.escape, sorted(names, key=len, reverse=True)))
        named = re.compile(rf"(?<![\w.])({listed})[\"']?\s*[=:]\s*[\"']?([-\w.]+)")
        return lambda line: {each[1]: each[2] for each in named.finditer(line)}
    try:
        known = re.compile(pattern)
    except re.error as error:
        raise UserError(COMMAND, "--pattern", f"is no regular expression: {error}") from error

    def matched(line: str) -> dict[str, str]:
        found = known.search(line)
        return {} if found is None else {k: v for k, v in found.groupdict().items() if v}

    return matched


def _of_log(
    text: str, said: Callable[[str], dict[str, str]]
) -> Iterator[tuple[int, dict[str, str]]]:
    for number, line in enumerate(text.splitlines(), 1):
        if line.strip():
            yield number, said(line)


def _value(spec: Spec, name: str, text: str, where: str) -> Value:
    parameter = spec.problem[name]
    if parameter.type != "integer":
        # Libraries write torch.bfloat16.
        last = text.rpartition(".")[2]
        return last if last in (parameter.values or ()) else text
    value = whole(text)
    if value is None:
        raise UserError(where, name, f"{text!r} is no whole number")
    return value


def _count(text: str, where: str, column: str) -> int:
    count = whole(text)
    if count is None or count < 0:
        raise UserError(where, column, f"must be a whole number of at least 0, not {text!r}")
    return count


def write_load(path: Path, load: Load) -> None:
    """Write a load as CSV, the most frequent problem first."""
    lines = io.StringIO()
    writer = csv.writer(lines, lineterminator="\n")
    writer.writerow([WORKLOAD, *load.parameters, COUNT])
    for shape, count in load.counts.items():
        writer.writerow([load.workload, *map(csv_cell, shape), count])
    write_text(path, lines.getvalue())


def load_of(path: str | None, spec: Spec) -> Load | None:
    """The load that a study names, if it names one."""
    return None if path is None else read_load(Path(path), spec)
