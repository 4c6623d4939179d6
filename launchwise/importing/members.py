"""Files of an import with what the user adds: GPUs, problems and names of one workload."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from launchwise.base.errors import LONGEST_NAME, UserError, unknown
from launchwise.base.names import GPU, assigned
from launchwise.gpus.datasheets import Datasheet, read_cards
from launchwise.importing.cards import card_of, gpu_name, read_device_names
from launchwise.importing.csv_mapping import Mapped
from launchwise.importing.files import MOST_BYTES
from launchwise.importing.naming import own_names, renamed, same_tunables, without_repeats
from launchwise.importing.reading import read_sweeps
from launchwise.importing.sweep import ForeignSweep
from launchwise.importing.t1 import Space
from launchwise.workloads.parts import Value
from launchwise.workloads.spec_checks import MOST_NAMES


@dataclass(frozen=True)
class Options:
    """Facts that the files lack or state wrongly.

    Parameters
    ----------
    space
        T1 of the kernel.
    columns
        Mapping of the columns of CSV files.
    devices
        File, as it was named, to the device's name.
    gpus
        File to the name of its GPU in settings; that of its card when left out.
    problem
        Problem parameters to their values, instead of what files state. A text where the size is
        not known: then nothing is computed of it.
    problem_names
        Names of the first problem parameters of the files, in their order.
    bytes, flop
        Least bytes and FLOP of the problem, expressions over its parameters.
    baseline
        Default configuration by the names of the files.
    title, source, licence
        For the report and the provenance.
    max_bytes
        Most bytes that a file unpacks to.
    """

    space: Space | None = None
    columns: Mapped | None = None
    devices: Mapping[str, str] = field(default_factory=dict)
    gpus: Mapping[str, str] = field(default_factory=dict)
    problem: Mapping[str, Value] = field(default_factory=dict)
    problem_names: Sequence[str] = ()
    bytes: str | None = None
    flop: str | None = None
    baseline: Mapping[str, Value] = field(default_factory=dict)
    title: str = ""
    source: str = ""
    licence: str = ""
    max_bytes: int = MOST_BYTES


@dataclass(frozen=True)
class Member:
    """A sweep with its GPU."""

    sweep: ForeignSweep
    gpu: str
    datasheet: Datasheet | None
    problem: dict[str, Value]


def _named(options: Mapping[str, str], path: str | Path) -> str | None:
    """Entry of a file, by its path or its name."""
    return options.get(str(path), options.get(Path(path).name))


def read_files(files: Sequence[str | Path], asked: Options, notes: list[str]) -> list[ForeignSweep]:
    """Sweeps of all files, with the devices that the user names."""
    known = {name for path in files for name in (str(path), Path(path).name)}
    for name in (*asked.devices, *asked.gpus):
        if name not in known:
            raise UserError("import", name, unknown("file", name, {Path(p).name for p in files}))
    found = []
    for path in files:
        for sweep in read_sweeps(path, asked.space, asked.columns, asked.max_bytes):
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
            once = without_repeats(replace(sweep, device_name=device))
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


def members_of(
    read: list[ForeignSweep], asked: Options, notes: list[str]
) -> tuple[list[Member], dict[str, str]]:
    """Sweeps with names of a spec, their GPUs and problems, and the files' names to ours."""
    tunables = same_tunables(read)
    if asked.space and set(asked.space.tunables) == set(tunables):
        tunables = list(asked.space.tunables)
    problems = _of_one_type([_problem(sweep, asked) for sweep in read])
    names = own_names(tunables, (key for problem in problems for key in problem))
    for theirs, ours in names.items():
        if theirs != ours:
            notes.append(f"{theirs} is called {ours}: its own name is taken, or is none")
    values = {name: {v for sweep in read for v in sweep.tunables[name]} for name in tunables}
    texts = [name for name in tunables if any(isinstance(each, str) for each in values[name])]
    cards, devices = read_cards(), read_device_names()
    members: list[Member] = []
    taken: dict[tuple[Any, ...], str] = {}
    for sweep, problem in zip(read, problems, strict=True):
        datasheet = card_of(sweep.device_name, cards, devices)
        gpu = _named(asked.gpus, sweep.source)
        gpu = gpu or (datasheet.name if datasheet else gpu_name(sweep.device_name))
        if not gpu:
            message = f"{sweep.device_name!r} makes no name of a GPU: give one, such as --gpu"
            raise UserError(
                sweep.source, "device_name", f"{message} {Path(sweep.source).name}=NAME"
            )
        if not re.fullmatch(GPU, gpu):
            message = f"must match {GPU}: it names a folder (got {gpu!r})"
            raise UserError("import", "--gpu", message)
        if len(gpu) > LONGEST_NAME:
            raise UserError("import", "--gpu", f"{gpu} is longer than {LONGEST_NAME} characters")
        key = (gpu, *problem.items())
        if key in taken:
            message = f"is of the same GPU and problem as {taken[key]}: leave one out, or name"
            raise UserError(sweep.source, "", f"{message} another GPU, such as --gpu FILE=NAME")
        taken[key] = sweep.source
        members.append(Member(renamed(sweep, names, texts), gpu, datasheet, problem))
    return members, names


def _problem(sweep: ForeignSweep, asked: Options) -> dict[str, Value]:
    """Problem of a sweep: what the user says, else what the file states.

    Raises
    ------
    UserError
        When neither states one, or it is no finite number.
    """
    # Named parameters replace the stated ones as a whole: another problem has other sizes.
    problem = dict(asked.problem) or _renamed(sweep, asked.problem_names)
    if not problem:
        message = "states no problem: name it, such as --problem n=4096"
        raise UserError(sweep.source, "problem_size", message)
    for name, value in problem.items():
        if isinstance(value, str) and _is_endless(value):
            raise UserError(sweep.source, name, f"{value} is no size of a problem")
    return dict(zip(own_names(problem).values(), problem.values(), strict=True))


def _is_endless(text: str) -> bool:
    """Whether a text is a number without a value: NaN, an infinity, or one too large."""
    try:
        return not math.isfinite(float(text))
    except ValueError:
        return False


def _renamed(sweep: ForeignSweep, names: Sequence[str]) -> dict[str, Value]:
    """Problem of a file with the user's names for its first parameters."""
    if len(names) > len(sweep.problem):
        told = assigned(sweep.problem) or "none"
        message = f"states {len(sweep.problem)} problem parameters ({told}), not {len(names)}"
        raise UserError(sweep.source, "--problem-names", message)
    rest = list(sweep.problem)[len(names) :]
    return dict(zip([*names, *rest], sweep.problem.values(), strict=True))


def _of_one_type(problems: list[dict[str, Value]]) -> list[dict[str, Value]]:
    """``problems`` with texts for each parameter that is no integer in one of them."""
    texts = {key for each in problems for key, value in each.items() if isinstance(value, str)}
    return [
        {key: str(value) if key in texts else value for key, value in each.items()}
        for each in problems
    ]
