"""Workloads and studies that folders hold; sweep and study of a workload that brings none."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from launchwise.base.errors import UserError
from launchwise.base.names import SPEC_FILE
from launchwise.experiment.method import ProblemBlock, Sweep
from launchwise.experiment.study import ProblemSplit, Study
from launchwise.workloads.checks.corners import nothing_fits
from launchwise.workloads.checks.fitting_sizes import nearest_problem, nearest_problems
from launchwise.workloads.cost import COST_FILE
from launchwise.workloads.near_problems import sortable
from launchwise.workloads.parts import ProblemParameter, Value
from launchwise.workloads.space import MOST_PROBLEMS, baseline
from launchwise.workloads.spec import FEATURES_FILE, Spec

SWEEP_FILE = "sweep.yaml"
STUDY_FILE = "study.yaml"
STUDIES = "studies"  # Folder of a workload that holds one folder per study
COMMON = "common"  # Folder beside the workloads: device code that they share

WORKLOAD_FILES = (SWEEP_FILE, FEATURES_FILE, COST_FILE, STUDIES, "host", "*.cu")
"""Files and folders that mark the folder of a workload."""

NAME = re.compile(r"[a-z][a-z0-9_]*")


def find_workloads(folders: Iterable[Path]) -> dict[str, Path]:
    """Folders of every workload: name -> folder with a ``spec.yaml``.

    ``folders``: workloads themselves, or folders that hold some.
    Raises UserError when a folder is missing or holds no workload, a workload's folder lacks its
    spec, or two workloads share a name.
    """
    found: dict[str, Path] = {}
    for folder in folders:
        if not folder.is_dir():
            raise UserError("config.yaml", "workloads", f"no folder {str(folder)!r}")
        if (folder / SPEC_FILE).is_file():
            own = {folder.resolve().name: folder.resolve()}
        else:
            own = {path.name: path for path in sorted(folder.iterdir()) if _is_workload(path)}
        if not own:
            message = f"{str(folder)!r} holds no workload (a folder with {SPEC_FILE})"
            raise UserError("config.yaml", "workloads", message)
        for name, path in own.items():
            if not (path / SPEC_FILE).is_file():
                raise UserError(path / SPEC_FILE, "", "is missing: every workload has one")
            if name in found:
                message = f"workload {name!r} is also in {found[name].parent}"
                raise UserError(path / SPEC_FILE, "", message)
            found[name] = path
    return found


def _is_workload(path: Path) -> bool:
    if not path.is_dir() or path.name == COMMON or path.name.startswith("."):
        return False
    return any(any(path.glob(mark)) for mark in (SPEC_FILE, *WORKLOAD_FILES))


def find_studies(workloads: Mapping[str, Path]) -> dict[str, Path]:
    """Folders of every study of ``workloads`` (name -> folder), in order of workload and name.
    Raises UserError when a study's folder lacks ``study.yaml`` or has a name that is none, or two
    studies share a name."""
    found: dict[str, Path] = {}
    for folder in workloads.values():
        for path in sorted((folder / STUDIES).glob("*/")):
            # A folder that git left behind holds nothing but compiled files.
            if path.name.startswith((".", "_")) or not set(path.iterdir()) - {path / "__pycache__"}:
                continue
            if not (path / STUDY_FILE).is_file():
                raise UserError(path / STUDY_FILE, "", "is missing: every study has one")
            if not NAME.fullmatch(path.name):
                message = f"the folder's name must match {NAME.pattern}: it names the study"
                raise UserError(path / STUDY_FILE, "", message)
            if path.name in found:
                message = f"study {path.name!r} is also in {found[path.name]}"
                raise UserError(path / STUDY_FILE, "", message)
            found[path.name] = path
    return found


SIZES = 5  # Sizes per integer parameter, evenly spread on a log scale
MOST_CROSSED = 2  # Most integer parameters whose sizes are crossed; more than that grow together
HELD_OUT_EVERY = 3  # One of so many sizes is tested and not trained on

MODELS = ["learnt", "lightgbm", "forest"]


def derived_sweep(spec: Spec) -> Sweep:
    """Problems of a workload without ``sweep.yaml``.

    Five sizes of each integer, evenly spread between its limits on a log scale; every value of each
    category. Up to two integers are crossed; more grow together. Sizes that break a constraint of
    the problem, or at which the baseline is infeasible, are moved to the nearest that fit. Raises
    ValueError when an integer has no maximum to spread sizes up to, or no size fits.
    """
    integers = {name: one for name, one in spec.problem.items() if one.type == "integer"}
    for name, parameter in integers.items():
        if parameter.values is None and parameter.maximum is None:
            raise ValueError(f"problem.{name}: give a maximum, or list sizes in sweep.yaml")
    low, high = _ends(spec)
    sizes = {
        name: _sizes(parameter, low.get(name, 1), high.get(name, 1))
        for name, parameter in integers.items()
    }
    rest = {
        name: list(parameter.values or [])
        for name, parameter in spec.problem.items()
        if name not in sizes
    }
    if len(sizes) <= MOST_CROSSED:
        return Sweep(problems=_fitting(spec, [{**sizes, **rest}]))
    longest = max(map(len, sizes.values()))
    together = [
        {name: [values[place * len(values) // longest]] for name, values in sizes.items()}
        for place in range(longest)
    ]
    return Sweep(problems=_fitting(spec, [{**each, **rest} for each in together]))


def _fitting(spec: Spec, blocks: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The same blocks where the baseline may run all their problems; else others near them. Raises
    ValueError when no problem fits."""
    blocks = [{name: each[name] for name in spec.problem} for each in blocks]
    wanted = problems_in(blocks)
    # Where the baseline may run none, any problems.
    near = nearest_problems(spec, wanted, [baseline(spec)]) or nearest_problems(spec, wanted)
    found = {tuple(each[name] for name in spec.problem) for each in near}
    if not found:
        raise ValueError(f"constraints: {nothing_fits(spec)}")
    if found == {tuple(each.values()) for each in wanted}:
        return blocks
    return [dict(zip(spec.problem, map(list, each), strict=True)) for each in crossed(found)]


Crossed = tuple[tuple[Value, ...], ...]
"""Values of each column: their products are the rows that an entry names."""


def crossed(keys: Collection[Sequence[Value]]) -> list[Crossed]:
    """Few entries that name the rows or problems of ``keys`` and no others. Entries that differ in
    one column alone become one, column by column, those first in which most rows differ."""

    def order(entry: Crossed) -> list[Any]:
        return [*map(sortable, entry)]

    entries: list[Crossed] = sorted({tuple((value,) for value in key) for key in keys}, key=order)
    if not entries:
        return []
    distinct = [len({entry[place] for entry in entries}) for place in range(len(entries[0]))]
    for place in sorted(range(len(distinct)), key=lambda place: -distinct[place]):
        groups: dict[Crossed, list[Value]] = {}
        for entry in entries:
            groups.setdefault((*entry[:place], *entry[place + 1 :]), []).extend(entry[place])
        entries = [
            (*rest[:place], tuple(sorted(values, key=lambda one: sortable([one]))), *rest[place:])
            for rest, values in groups.items()
        ]
    return sorted(entries, key=order)


def _ends(spec: Spec) -> tuple[dict[str, int], dict[str, int]]:
    """Smallest and largest size of each integer that is not listed: limits that fit."""
    ends = []
    texts = {name: one.values[0] for name, one in spec.problem.items() if one.values is not None}
    ranges = {name: one for name, one in spec.problem.items() if one.values is None}
    limits = [
        {name: max(1, one.minimum or 1) for name, one in ranges.items()},
        {name: one.maximum or 1 for name, one in ranges.items()},
    ]
    for sizes in limits:
        wanted = {name: {**texts, **sizes}[name] for name in spec.problem}
        nearest = nearest_problem(spec, wanted, [baseline(spec)]) or wanted
        ends.append({name: int(nearest[name]) for name in ranges})
    for name in ranges:
        if ends[0][name] >= ends[1][name]:
            ends[0][name], ends[1][name] = (each[name] for each in limits)
    return ends[0], ends[1]


def _sizes(parameter: ProblemParameter, low: int, high: int) -> list[Value]:
    if parameter.values is not None:
        listed = sorted(value for value in parameter.values if isinstance(value, int))
        count = min(SIZES, len(listed))
        places = [round(i * (len(listed) - 1) / max(1, count - 1)) for i in range(count)]
        return [listed[place] for place in dict.fromkeys(places)]
    steps = [math.log(low) + math.log(high / low) * i / (SIZES - 1) for i in range(SIZES)]
    return list(dict.fromkeys(min(high, max(low, round(math.exp(step)))) for step in steps))


def derived_study(spec: Spec, problems: Sequence[Mapping[str, Any]]) -> Study | None:
    """Study of a workload without one: every third size held out, two kinds of trees and a model.

    ``problems``: problems that GPUs measure.
    Returns None where no parameter has three sizes: then nothing can be held out between others.
    """
    for name, parameter in spec.problem.items():
        sizes = sorted({problem[name] for problem in problems}) if problems else []
        if parameter.type != "integer" or len(sizes) < HELD_OUT_EVERY:
            continue
        test = sizes[1:-1:HELD_OUT_EVERY]
        split = ProblemSplit(
            kind="problems",
            title="held-out sizes between measured ones",
            train={name: [size for size in sizes if size not in test]},
            test={name: test},
        )
        tunables = ", ".join(spec.tunables)
        return Study(
            workload=spec.workload,
            title=spec.title,
            question=f"Which {tunables} should {spec.title} use?",
            splits={"interpolation": split},
            models=MODELS,
        )
    return None


def problems_in(blocks: Iterable[ProblemBlock]) -> list[dict[str, Any]]:
    """Values of each problem of blocks of a sweep."""
    found = []
    for block in blocks:
        names = [name for name in block if name not in ("only", "constraints")]
        values = [block[name] for name in names]
        # A block of more is refused when it is checked.
        some = itertools.islice(itertools.product(*values), MOST_PROBLEMS)
        found += [dict(zip(names, each, strict=True)) for each in some]
    return found
