"""Files of an import with what the user adds: GPUs, problems and names; their rows as a table."""

from __future__ import annotations

import keyword
import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from launchwise.base.errors import LONGEST_NAME, UserError, unknown
from launchwise.base.literals import real
from launchwise.base.names import GPU, assigned
from launchwise.gpus.datasheets import Datasheet, read_cards
from launchwise.importing.csv_mapping import Mapped
from launchwise.importing.device_names import card_of, gpu_name, read_device_names
from launchwise.importing.foreign_sweep import ForeignSweep
from launchwise.importing.formats import read_sweeps
from launchwise.importing.opening import MEMORY, MOST_BYTES, memory_limit
from launchwise.importing.t1 import Space
from launchwise.tables.measurements import measured_table
from launchwise.tables.rows import IMPORTED
from launchwise.workloads.checks.spec_checks import MOST_NAMES, RESERVED
from launchwise.workloads.parts import Value
from launchwise.workloads.spec import Spec

STATED = "stated_ms"
"""Column with the time that a file states; ``time_ms`` is the median of the repeats, as in every
sweep."""


@dataclass(frozen=True)
class Options:
    """Facts that the files lack or state wrongly."""

    space: Space | None = None  # T1 of the kernel
    columns: Mapped | None = None  # mapping of the columns of CSV files
    # File, as it was named, to its device's name, and to the name of its GPU in settings.
    devices: Mapping[str, str] = field(default_factory=dict)
    gpus: Mapping[str, str] = field(default_factory=dict)
    # Instead of what files state. A text where the size is not known: nothing is computed of it.
    problem: Mapping[str, Value] = field(default_factory=dict)
    # Names of the first problem parameters of the files, in their order.
    problem_names: Sequence[str] = ()
    bytes: str | None = None  # least bytes of the problem: an expression over its parameters
    flop: str | None = None  # FLOP of the problem, likewise
    # Default configuration by the names of the files.
    baseline: Mapping[str, Value] = field(default_factory=dict)
    # For the report and the provenance.
    title: str = ""
    source: str = ""
    licence: str = ""
    max_bytes: int = MOST_BYTES  # most bytes that a file unpacks to


@dataclass(frozen=True)
class Member:
    sweep: ForeignSweep
    gpu: str
    datasheet: Datasheet | None
    problem: dict[str, Value]


@dataclass
class Batch:
    """Sweeps of one import, what the user adds to them, and what is said of them."""

    members: list[Member]
    names: dict[str, str]  # tunables of the files to those of the spec
    asked: Options
    # What was converted, repaired, left out or chosen, one sentence each; every step adds its own.
    notes: list[str]


def _named(options: Mapping[str, str], path: str | Path) -> str | None:
    return options.get(str(path), options.get(Path(path).name))


def _read_files(
    files: Sequence[str | Path], asked: Options, notes: list[str]
) -> list[ForeignSweep]:
    known = {name for path in files for name in (str(path), Path(path).name)}
    for name in (*asked.devices, *asked.gpus):
        if name not in known:
            raise UserError("import", name, unknown("file", name, {Path(p).name for p in files}))
    found = []
    for path in files:
        with memory_limit(path, MEMORY * asked.max_bytes):
            sweeps = read_sweeps(path, asked.space, asked.columns, asked.max_bytes)
        for sweep in sweeps:
            device = _named(asked.devices, path) or sweep.device_name
            if not device:
                message = f"states no device: name it, such as --device {Path(path).name}=NAME"
                raise UserError(path, "device_name", message)
            if len(device) > LONGEST_NAME:
                message = f"is longer than {LONGEST_NAME} characters"
                raise UserError(path, "device_name", message)
            _insist_on_few_names(sweep, path)
            if not sweep.rows:
                raise UserError(path, "", "holds no configuration")
            once = _without_repeats(replace(sweep, device_name=device))
            notes += [f"{Path(path).name}: {note}" for note in once.notes]
            found.append(once)
    if not found:
        raise UserError("import", "", "no file is named")
    return found


def _insist_on_few_names(sweep: ForeignSweep, path: str | Path) -> None:
    for what, named in (("tunables", sweep.tunables), ("problem", sweep.problem)):
        if len(named) > MOST_NAMES:
            raise UserError(path, what, f"are {len(named):,} names, more than {MOST_NAMES:,}")
        if long := [name for name in named if len(name) > LONGEST_NAME]:
            raise UserError(path, what, f"{long[0]} is longer than {LONGEST_NAME} characters")


def _without_repeats(sweep: ForeignSweep) -> ForeignSweep:
    """``sweep`` with one row per configuration: the last, as a resumed run writes it anew."""
    rows = {row.key: row for row in sweep.rows}
    notes, again = [*sweep.notes], Counter(row.key for row in sweep.rows).most_common(1)
    if left := len(sweep.rows) - len(rows):
        where = assigned({**sweep.problem, **dict(again[0][0])})
        notes.append(f"{left} rows repeat a configuration ({where}): the last of each is kept")
    return replace(sweep, rows=list(rows.values()), notes=notes)


def batch_of(files: Sequence[str | Path], asked: Options) -> Batch:
    """Sweeps of all files with names of a spec, their GPUs and problems. Raises UserError when a
    file cannot be read, lacks what nothing else states, or does not fit the others."""
    notes: list[str] = []
    read = _read_files(files, asked, notes)
    tunables = _same_tunables(read)
    if asked.space and set(asked.space.tunables) == set(tunables):
        tunables = list(asked.space.tunables)
    problems = _of_one_type([_problem(sweep, asked) for sweep in read])
    names = own_names(tunables, (key for problem in problems for key in problem))
    for theirs, ours in names.items():
        if theirs != ours:
            notes.append(f"{theirs} is called {ours}: names have letters, digits and _, each once")
    texts = {
        name
        for name in tunables
        if any(isinstance(value, str) for sweep in read for value in sweep.tunables[name])
    }
    cards, devices = read_cards(), read_device_names()
    members: list[Member] = []
    taken: dict[tuple[Any, ...], str] = {}
    for sweep, problem in zip(read, problems, strict=True):
        datasheet = card_of(sweep.device_name, cards, devices)
        gpu = _gpu(sweep, datasheet, asked)
        key = (gpu, *problem.items())
        if key in taken:
            message = f"is of the same GPU and problem as {taken[key]}: leave one out, or name"
            raise UserError(sweep.source, "", f"{message} another GPU, such as --gpu FILE=NAME")
        taken[key] = sweep.source
        members.append(Member(_renamed(sweep, names, texts), gpu, datasheet, problem))
    return Batch(members, names, asked, notes)


def _gpu(sweep: ForeignSweep, datasheet: Datasheet | None, asked: Options) -> str:
    """Name of a sweep's GPU in settings: the user's, else that of its card or its device."""
    gpu = _named(asked.gpus, sweep.source)
    gpu = gpu or (datasheet.name if datasheet else gpu_name(sweep.device_name))
    if not gpu:
        message = f"{sweep.device_name!r} makes no name of a GPU: give one, such as --gpu"
        raise UserError(sweep.source, "device_name", f"{message} {Path(sweep.source).name}=NAME")
    if not re.fullmatch(GPU, gpu):
        raise UserError("import", "--gpu", f"must match {GPU}: it names a folder (got {gpu!r})")
    if len(gpu) > LONGEST_NAME:
        raise UserError("import", "--gpu", f"{gpu} is longer than {LONGEST_NAME} characters")
    return gpu


def _same_tunables(sweeps: Iterable[ForeignSweep]) -> list[str]:
    """Tunables of all sweeps, in the order of the first. Raises UserError when a file has
    others."""
    first, *rest = sweeps
    for other in rest:
        if difference := sorted(first.tunables.keys() ^ other.tunables.keys()):
            message = f"has other parameters than {first.source}: {', '.join(difference)}"
            raise UserError(other.source, "", message)
    return list(first.tunables)


def own_names(names: Iterable[str], taken: Iterable[str] = ()) -> dict[str, str]:
    """Names of a file to names that a spec may have, no two alike."""
    used, found = {*RESERVED, *keyword.kwlist, STATED, *taken}, {}
    for name in names:
        plain = re.sub(r"[^A-Za-z0-9_]", "_", name)
        if not re.match(r"[A-Za-z]", plain):
            plain = f"p{plain}"
        while plain in used:
            plain += "_"
        used.add(plain)
        found[name] = plain
    return found


def _renamed(sweep: ForeignSweep, names: Mapping[str, str], texts: set[str]) -> ForeignSweep:
    """``sweep`` with its tunables in the order and with the names of ``names``. ``texts``: tunables
    whose values become texts, because some of them are no integers."""

    def value(name: str, given: Value) -> Value:
        return str(given) if name in texts else given

    def own(configuration: Mapping[str, Value]) -> dict[str, Value]:
        return {ours: value(name, configuration[name]) for name, ours in names.items()}

    return replace(
        sweep,
        tunables={
            ours: [value(name, each) for each in sweep.tunables[name]]
            for name, ours in names.items()
        },
        rows=[replace(row, configuration=own(row.configuration)) for row in sweep.rows],
    )


def _problem(sweep: ForeignSweep, asked: Options) -> dict[str, Value]:
    """Problem of a sweep: what the user says, else what the file states, with the user's names.
    Raises UserError when neither states one, it has fewer parameters than names, or one is no
    finite number."""
    names = asked.problem_names
    if not asked.problem and len(names) > len(sweep.problem):
        told = assigned(sweep.problem) or "none"
        message = f"states {len(sweep.problem)} problem parameters ({told}), not {len(names)}"
        raise UserError(sweep.source, "--problem-names", message)
    stated = dict(
        zip([*names, *list(sweep.problem)[len(names) :]], sweep.problem.values(), strict=False)
    )
    # Named parameters replace the stated ones as a whole: another problem has other sizes.
    problem = dict(asked.problem) or stated
    if not problem:
        message = "states no problem: name it, such as --problem n=4096"
        raise UserError(sweep.source, "problem_size", message)
    for name, value in problem.items():
        # NaN, an infinity, or a number that is too large.
        number = real(value) if isinstance(value, str) else None
        if number is not None and not math.isfinite(number):
            raise UserError(sweep.source, name, f"{value} is no size of a problem")
    return dict(zip(own_names(problem).values(), problem.values(), strict=True))


def _of_one_type(problems: list[dict[str, Value]]) -> list[dict[str, Value]]:
    """``problems`` with texts for each parameter that is no integer in one of them."""
    texts = {key for each in problems for key, value in each.items() if isinstance(value, str)}
    return [
        {key: str(value) if key in texts else value for key, value in each.items()}
        for each in problems
    ]


FORMAT_KEY = "foreign"
"""Key of a table's facts: the names that the files have for what the columns hold."""


def table_of(
    sweeps: Sequence[ForeignSweep], gpu: str, spec: Spec, problems: Sequence[Mapping[str, Value]]
) -> pd.DataFrame:
    """Measurements of one GPU (:func:`launchwise.tables.measurements.measurement_schema`). What a
    file lacks is empty: driver, toolkit, card, clocks, verification. ``sweeps``, ``problems``: one
    per problem, with names and values of ``spec``."""
    variant = next(iter(spec.variants))
    rows = [
        {
            "gpu": gpu,
            "workload": spec.workload,
            **problem,
            "variant": variant,
            **{name: row.configuration[name] for name in spec.tunables},
            "status": row.status,
            "reason": row.reason,
            "times_ms": row.times_ms,
            "time_ms": np.median(row.times_ms or (row.time_ms or math.nan,)),
            STATED: row.time_ms,
            "backend": IMPORTED,
            **row.extra,
        }
        for sweep, problem in zip(sweeps, problems, strict=True)
        for row in sweep.rows
    ]
    # A spec that an import made has 1 byte and no FLOP where they are unknown.
    return measured_table(rows, spec, {}, least_work=1)
