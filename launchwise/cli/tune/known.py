"""Sweeps of other GPUs that ``launchwise tune`` starts from: the project's own, and those named."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from launchwise.base.errors import UserError
from launchwise.base.places import here_or_shipped, shipped
from launchwise.workloads.spec import Spec

OWN = {"kernels": "data/recorded", "data/public/workloads": "data/public/gpus"}
"""Folders of the project's workloads to those with their GPUs."""

LAYOUTS = ("{workload}.parquet", "*/{workload}.parquet", "results/sweeps/*/{workload}.parquet")
"""Where sweeps lie in a folder that is named: of a GPU, of several GPUs, of an earlier run."""


def known_sweeps(workload: Path, spec: Spec, gpu: str, named: Sequence[Path]) -> dict[str, Path]:
    """Name of each other GPU to its sweep.

    Parameters
    ----------
    workload
        The workload's folder.
    gpu
        GPU to be measured.
    named
        Files and folders of the command line; their GPUs come first.

    Raises
    ------
    UserError
        When there is no sweep in one of them, or a sweep is of another space.
    """
    found: dict[str, Path] = {}
    for path in named:
        for sweep in _sweeps_in(path, spec.workload):
            name = re.sub(r"[^A-Za-z0-9_.]", "_", sweep.parent.name).lstrip(".") or "known"
            found.setdefault(f"{name}_known" if name == gpu else name, sweep)
    for sweep in found.values():
        _insist_on_space(sweep, spec)
    for sweep in _own(workload, spec.workload):
        if sweep.parent.name != gpu:
            found.setdefault(sweep.parent.name, sweep)
    return found


def _sweeps_in(path: Path, workload: str) -> list[Path]:
    if path.is_file() and path.name == f"{workload}.parquet":
        return [path.resolve()]
    patterns = [pattern.format(workload=workload) for pattern in LAYOUTS]
    found = [each for pattern in patterns for each in sorted(path.glob(pattern))]
    if found:
        return [each.resolve() for each in found]
    if path.is_file():
        message = f"is not named {workload}.parquet, as a sweep of {workload} is"
        message += "; files of other tools come in by launchwise import"
        raise UserError(path, "", message)
    wanted = ", ".join(pattern.replace("*", "GPU") for pattern in patterns)
    raise UserError(path, "", f"holds no sweep of {workload}; expected one of: {wanted}")


def _own(workload: Path, name: str) -> Iterator[Path]:
    for folder, place in OWN.items():
        if workload.parent == shipped(folder):
            yield from sorted(here_or_shipped(place).resolve().glob(f"*/{name}.parquet"))


def _insist_on_space(sweep: Path, spec: Spec) -> None:
    """Check that a table has what its problems and variants need; what is newer it may lack."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        columns = set(pq.read_schema(sweep).names)
        names = ["variant"] if "variant" in columns else []
        found = pq.read_table(sweep, columns=names)
        measured = {name for each in found.columns for name in each.unique().to_pylist()}
    except (pa.ArrowException, OSError) as error:
        raise UserError(sweep, "", "is no Parquet file") from error
    own = [each for name, each in spec.variants.items() if name in measured]
    needed = ["variant", *(name for each in own for name in each.tunables)]
    for kind, names in (("tunable", needed), ("problem parameter", spec.problem_columns)):
        if missing := [name for name in dict.fromkeys(names) if name not in columns]:
            message = f"is of another space: {kind} {_listed(missing)} is missing"
            raise UserError(sweep, "", message)


def _listed(names: Iterable[str]) -> str:
    return ", ".join(map(repr, names))
