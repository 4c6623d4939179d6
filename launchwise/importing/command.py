"""Imports sweeps of others by plain arguments, and says what it did."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from launchwise.base.errors import LONGEST_NAME, UserError, one_line
from launchwise.base.names import named_values
from launchwise.base.places import SHIPPED, shipped
from launchwise.experiment.discovery import NAME
from launchwise.experiment.experiment import RECORDED
from launchwise.importing.as_workload import Imported, write_workload
from launchwise.importing.csv_mapping import read_mapping
from launchwise.importing.foreign_sweep import ForeignSweep, as_mapping, as_value, row_of
from launchwise.importing.foreign_sweep import sweep_of as own_sweep
from launchwise.importing.kernel_tuner import write_cache
from launchwise.importing.members import FORMAT_KEY, STATED, Options
from launchwise.importing.opening import MEGABYTE, MOST_BYTES
from launchwise.importing.t1 import read_t1
from launchwise.importing.t4 import write_t4
from launchwise.tables.files import read_facts, read_table
from launchwise.tables.measurements import measurement_schema
from launchwise.workloads.parts import Value
from launchwise.workloads.spec import Spec, load_spec

WRITERS = {"kernel-tuner": write_cache, "t4": write_t4}  # Format of an export to its writer


def import_sweeps(
    files: Sequence[str | Path],
    name: str,
    folder: str | Path = "kernels",
    recorded: str | Path = RECORDED,
    *,
    space: str | Path | None = None,
    columns: str | Path | None = None,
    devices: Iterable[str] = (),
    gpus: Iterable[str] = (),
    problem: Iterable[str] = (),
    baseline: Iterable[str] = (),
    problem_names: str = "",
    bytes_: str | None = None,
    max_mb: int = MOST_BYTES // MEGABYTE,
    **others: Any,
) -> Imported:
    """Import sweeps measured elsewhere as a workload without a kernel, ``<folder>/<name>``.

    ``files``: of a format of :data:`launchwise.importing.opening.KNOWN`; one GPU each.
    ``recorded``: folder of recorded GPUs. ``space``, ``columns``: T1 of the kernel, and YAML that
    says what the columns of CSV files hold. ``devices``, ``gpus``, ``problem``, ``baseline``:
    ``FILE=NAME`` or ``NAME=VALUE`` each. ``problem_names``: with commas between them. ``max_mb``:
    most megabytes that a file unpacks to. ``others``: ``flop``, ``title``, ``source``, ``licence``;
    for these and those above see :class:`launchwise.importing.members.Options`. Raises UserError,
    one line: the file or argument, and what is wrong."""
    if not NAME.fullmatch(name):
        raise UserError("import", "--as", f"must match {NAME.pattern} (got {name!r})")
    if len(name) > LONGEST_NAME:
        raise UserError("import", "--as", f"is longer than {LONGEST_NAME} characters")
    options = Options(
        space=read_t1(space, max_mb * MEGABYTE) if space else None,
        columns=read_mapping(columns) if columns else None,
        devices=named_values(devices, "import", "--device", str.rpartition),
        gpus=named_values(gpus, "import", "--gpu", str.rpartition),
        problem=_values(problem, "--problem"),
        baseline=_values(baseline, "--baseline"),
        problem_names=_names_in(problem_names, "--problem-names"),
        bytes=bytes_,
        max_bytes=max_mb * MEGABYTE,
        **others,
    )
    return write_workload(files, name, folder, options, recorded)


def export_sweep(
    table: str | Path,
    folder: str | Path,
    output: str | Path,
    format_: str,
    problem: Iterable[str] = (),
) -> None:
    """Write the rows of a sweep in the format of another tuner. ``table``: Parquet file of a sweep.
    ``format_``: one of :data:`WRITERS`. ``problem``: ``NAME=VALUE`` each; needed where the sweep
    has more than one problem. Raises UserError when the problem is not in the sweep, or is not
    named and there are several."""
    spec = load_spec(Path(folder))
    rows = read_table(table, measurement_schema(spec))
    known = rows[spec.problem_columns].drop_duplicates().to_dict("records")
    wanted = _values(problem, "--problem")
    fit = [each for each in known if all(each.get(key) == value for key, value in wanted.items())]
    if len(fit) != 1:
        example = " ".join(f"--problem {name}={value}" for name, value in known[0].items())
        message = f"{len(fit)} of {len(known)} problems fit: name one, such as {example}"
        raise UserError(table, "--problem", message)
    chosen = {str(key): value for key, value in fit[0].items()}
    WRITERS[format_](output, sweep_of(rows, spec, read_facts(table), chosen))


def sweep_of(
    table: pd.DataFrame, spec: Spec, facts: Mapping[str, Any], problem: Mapping[str, Value]
) -> ForeignSweep:
    """Foreign sweep of one problem in a table: the way back, for the writers. Of several variants,
    ``variant`` is a tunable: rows that differ in nothing else stay apart. ``facts``: of the table:
    names of device, kernel, and of the parameters in the file."""
    foreign = as_mapping(facts.get(FORMAT_KEY))
    values = {name: list(each.values) for name, each in spec.tunables.items()}
    if len(spec.variants) > 1:
        values = {"variant": list(spec.variants), **values}
    own = {name: str(as_mapping(foreign.get("tunables")).get(name, name)) for name in values}
    chosen = np.ones(len(table), dtype=bool)
    for name, value in problem.items():
        chosen &= (table[name] == value).to_numpy()
    stated = STATED in table
    # Kernel Tuner reads no cache whose kernel has no name.
    kernel = next(
        (name for each in spec.variants.values() for name in each.kernel_names), spec.workload
    )
    rows = []
    for record in table[chosen].to_dict("records"):
        ok = record["status"] in ("ok", "slow", "unverified")
        one = row_of(
            {told: record[name] for name, told in own.items()},
            float(record[STATED] if stated else record["time_ms"]) if ok else None,
            [float(each) for each in record["times_ms"]],
            "" if ok else record["reason"],
            "" if ok else record["status"],
            {"registers": int(record["registers"])} if record["registers"] else None,
            record["measured_at"] or None,
        )
        rows.append(one)
    device, kernel = foreign.get("device"), foreign.get("kernel") or kernel
    listed = {told: values[name] for name, told in own.items()}
    return own_sweep("", "", rows, "{}", listed, listed, device, kernel, problem)


def _values(texts: Iterable[str], flag: str) -> dict[str, Value]:
    return {name: as_value(text) for name, text in named_values(texts, "import", flag).items()}


def _names_in(text: str, flag: str) -> list[str]:
    names = [name.strip() for name in text.split(",")] if text.strip() else []
    if not all(names) or len(set(names)) < len(names):
        raise UserError("import", flag, f"must be different names, such as M,N,K (got {text!r})")
    return names


def told(found: Imported) -> list[str]:
    """Lines that say what an import did, flags first."""
    lines = [f"FLAGGED {gpu}: {'; '.join(why)}" for gpu, why in found.flagged.items()]
    if lines:
        lines.append(
            "Flagged rows are stored and kept out of every study. If they are right, set "
            "gpus.<name>.trusted: true; if they are of another problem, import them with "
            "--problem; if one is wrong, correct or delete it in the file, and import that again."
        )
    for gpu, counts in found.rows.items():
        rows = ", ".join(f"{count} {status}" for status, count in sorted(counts.items()))
        lines.append(f"{gpu}: {rows}")
    for gpu, fastest in found.fastest.items():
        lines += [f"fastest on {gpu}, {line}" for line in fastest[:MOST_FASTEST]]
        if len(fastest) > MOST_FASTEST:
            lines.append(f"fastest on {gpu}: {len(fastest) - MOST_FASTEST} more with --json")
    lines += [f"note: {note}" for note in dict.fromkeys(found.notes)]
    lines.append(f"workload: {found.folder}")
    if found.settings is not None and found.studied:
        where = [] if Path.cwd() == SHIPPED else ["--snakefile", str(shipped("Snakefile"))]
        line = ["snakemake", *where, "--cores", "2", "--configfile", str(found.settings)]
        lines.append(f"run: {shlex.join(line)}")
    return list(map(one_line, lines))


MOST_FASTEST = 5  # Most problems of a GPU whose fastest configuration is printed


def as_facts(found: Imported) -> dict[str, Any]:
    names = ("rows", "flagged", "fastest", "notes")
    facts = {name: getattr(found, name) for name in names}
    settings = None if found.settings is None else str(found.settings)
    return {"workload": str(found.folder), **facts, "settings": settings}
