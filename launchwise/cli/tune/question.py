"""What ``launchwise tune`` is asked, and how it chooses what it measures.

Everything, or what a search proposes, which starts from sweeps of other GPUs: the project's own,
and those that are named.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from launchwise.base.errors import UserError
from launchwise.base.places import here_or_shipped, shipped
from launchwise.experiment.method import STATED_PERCENT, ProblemBlock
from launchwise.workflow.estimate import nominal_bandwidth_gbs, volume
from launchwise.workloads.spec import Spec

MOST_EVALUATIONS = 10_000
"""Rows per problem of a search that ends when it is sure."""

LONGEST_S = 60.0
"""Longest estimated time of measuring everything, s, where nothing says how to search."""


@dataclass(frozen=True)
class Question:
    """Arguments of the command; see :func:`launchwise.cli.tune.command.tune`."""

    workload: str
    problem: Sequence[str]
    cores: int
    gpu: str = "local"
    device: str | None = None
    known: Sequence[Path] = ()
    evaluations: int | None = None
    minutes: float | None = None
    within: float | None = None
    every: bool = False
    folder: Path | None = None
    dry_run: bool = False


def percent(text: str | None) -> float | None:
    """A number of percent, such as ``1%`` or ``0.5``.

    Raises
    ------
    UserError
        When it is none between 0 and 100.
    """
    if text is None:
        return None
    try:
        number = float(text.strip().removesuffix("%"))
    except ValueError:
        number = 0.0
    if not 0 < number < 100:
        raise UserError("--within", "", f"{text!r} is no percentage above 0 and below 100")
    return number


def is_search_asked(asked: Question) -> bool:
    """Whether an option says how to search.

    Raises
    ------
    UserError
        When another one says that all configurations shall be measured.
    """
    given = {
        "--known": asked.known or None,
        "--evaluations": asked.evaluations,
        "--minutes": asked.minutes,
        "--within": asked.within,
    }
    names = [name for name, value in given.items() if value is not None]
    if names and asked.every:
        raise UserError("--all", "", f"measures every configuration: leave {names[0]} out")
    return bool(names)


def strategy_of(
    asked: Question, spec: Spec, blocks: Iterable[ProblemBlock], arch: str
) -> tuple[dict[str, Any], str]:
    """Strategy of a sweep as settings have it, empty where everything is measured; and why a
    search was chosen, where nobody asked for one.

    Parameters
    ----------
    blocks
        Problems as settings have them.
    arch
        Architecture of the card, such as ``sm_90``; that of the slowest card where it is none.
    """
    if is_search_asked(asked):
        return _search(asked), ""
    if asked.every:
        return {}, ""
    try:
        found = volume(spec, blocks, None)
    except UserError:
        return _search(asked), "too many configurations to list"
    seconds = found.seconds(nominal_bandwidth_gbs(arch))
    if seconds <= LONGEST_S:
        return {}, ""
    words = f"all {found.rows} configurations would take about {seconds / 60:.0f} min"
    return _search(asked), words


def _search(asked: Question) -> dict[str, Any]:
    unlimited = asked.evaluations is None and asked.minutes is None
    within = STATED_PERCENT if unlimited and asked.within is None else asked.within
    limits = {
        "budget": MOST_EVALUATIONS if unlimited else asked.evaluations,
        "minutes": asked.minutes,
        "stop_below_percent": within,
    }
    return {"kind": "transfer", **{key: each for key, each in limits.items() if each is not None}}


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
