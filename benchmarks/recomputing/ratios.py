"""How much faster one GPU is than another, computed a second time from the judged times."""

from __future__ import annotations

import csv
import itertools
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from scipy import stats

from launchwise.workloads.space import feasible, gpu_facts
from recomputing.comparing import Cell, Ledger, Table, Wanted
from recomputing.front import OVERVIEWS
from recomputing.material import Material, between_visits, records, unbeaten
from recomputing.pages import ShownPage, read_script

ALL = "all kernels"
FEWEST = 5  # problems, or kernels, of an interval; of one problem the errors of its times
DIGITS = 4  # significant digits that data scripts keep at least

Side = tuple[float, float | None]  # time (ms), its error


@dataclass(frozen=True)
class Ratio:
    """Time on the second GPU over time on the first; ``predicted``: by a datasheet's times."""

    count: int
    numbers: tuple[float, float | None, float | None]
    predicted: bool


Key = tuple[str, str, str]  # study, workload or ALL; the GPU, and the one that it is compared with


def _sides(one: Material) -> dict[str, dict[tuple[Any, ...], Side]]:
    """GPU to its problems: the time of the candidate whose time and 1.96 errors are the least, or
    the predicted one. Problems that a host's clock timed on any GPU are left out."""
    timed = pd.DataFrame(
        [row for _, own in one.timed.groupby(one.case) for row in unbeaten(records(own))]
    )
    upper = np.log(timed["time_ms"]) + 1.96 * timed["error"]
    surest = timed.loc[upper.sort_values(kind="stable").index].drop_duplicates(one.case)
    found: dict[str, dict[tuple[Any, ...], Side]] = {}
    of_hosts: set[tuple[Any, ...]] = set()
    for gpu in one.gpus:
        path = one.results / f"sweeps/{gpu}/{one.settings.workload}.parquet"
        timers = pd.read_parquet(path, columns=["timer"])["timer"].tolist()
        own = found.setdefault(gpu, {})
        for row in records(surest[surest["gpu"] == gpu]):
            problem = tuple(row[name] for name in one.problem)
            own[problem] = (row["time_ms"], between_visits(row))
            if timers[row["sweep_row"]] == "host":
                of_hosts.add(problem)
    for (gpu, *key), answer in one.answers.items():
        if gpu in one.described and answer["time_ms"] is not None:
            found.setdefault(gpu, {})[tuple(key)] = (answer["time_ms"], None)
    return {
        gpu: {problem: side for problem, side in own.items() if problem not in of_hosts}
        for gpu, own in found.items()
    }


def _is_whole(
    one: Material, sets: Mapping[Any, set[Any]], pair: Sequence[str], problem: Any
) -> bool:
    """Whether what either GPU lacks of the other's candidates is what it cannot run."""
    own, other = (sets[gpu, *problem] for gpu in pair)
    named = dict(zip(one.problem, problem, strict=True))
    for gpu, lacking in zip(pair, (other - own, own - other), strict=True):
        facts = gpu_facts(one.profiles[gpu].model_dump())
        for values in lacking:
            candidate = dict(zip(one.spec.tunable_columns, values, strict=True))
            if feasible(one.spec, named, candidate, facts):
                return False
    return True


def _pairs(one: Material) -> Iterator[tuple[str, str, tuple[Any, ...], Side, Side]]:
    sides = _sides(one)
    sets: dict[Any, set[Any]] = {}
    rows = one.judged[~one.judged["blind"]]
    values = rows[one.spec.tunable_columns].itertuples(index=False, name=None)
    for case, value in zip(rows[one.case].itertuples(index=False, name=None), values, strict=True):
        sets.setdefault(case, set()).add(value)
    order = [gpu for gpu in (*one.gpus, *one.described) if gpu in sides]
    for pair in itertools.combinations(order, 2):
        measured = all(gpu in one.gpus for gpu in pair)
        for problem in sorted(sides[pair[0]].keys() & sides[pair[1]].keys(), key=str):
            if not measured or _is_whole(one, sets, pair, problem):
                yield *pair, problem, sides[pair[0]][problem], sides[pair[1]][problem]


def _ratio(rows: Sequence[tuple[Side, Side]]) -> Ratio:
    predicted = any(side[1] is None for row in rows for side in row)
    logs = [math.log(other[0] / own[0]) for own, other in rows]
    errors = [math.hypot(own[1] or 0.0, other[1] or 0.0) for own, other in rows]
    return _of_logs(logs, errors, predicted)


def _of_logs(logs: Sequence[float], errors: Sequence[float], predicted: bool = False) -> Ratio:
    """Geometric mean and 95 % interval: Student's t, and the mean square of the errors."""
    count, middle = len(logs), float(np.mean(logs))
    if predicted or 1 < count < FEWEST:
        return Ratio(count, (math.exp(middle), None, None), predicted)
    apart = stats.t.ppf(0.975, count - 1) * stats.sem(logs) if count > 1 else 0.0
    reach = math.hypot(apart, 1.96 * np.linalg.norm(errors) / math.sqrt(count))
    return Ratio(
        count, (math.exp(middle), math.exp(middle - reach), math.exp(middle + reach)), False
    )


def ratios(materials: Sequence[Material]) -> dict[Key, Ratio]:
    """Of each study; of each workload, over the different problems of its studies, each with the
    fastest of any; and over all workloads, each of which counts once."""
    found: dict[Key, Ratio] = {}
    kernels: dict[str, dict[tuple[str, str], dict[Any, dict[str, tuple[Side, Side]]]]] = {}
    for one in materials:
        own: dict[tuple[str, str], list[tuple[Side, Side]]] = {}
        for gpu, other, problem, *sides in _pairs(one):
            own.setdefault((gpu, other), []).append((sides[0], sides[1]))
            if gpu in one.gpus and other in one.gpus:
                of = kernels.setdefault(one.spec.workload, {}).setdefault((gpu, other), {})
                of.setdefault(problem, {})[one.name] = (sides[0], sides[1])
        found |= {(one.name, *pair): _ratio(rows) for pair, rows in own.items()}
    every: dict[tuple[str, str], list[Ratio]] = {}
    for workload, pairs in kernels.items():
        for pair, problems in pairs.items():
            # Not those that only some of the studies measured which share others.
            best = [
                (min(row[0] for row in rows.values()), min(row[1] for row in rows.values()))
                for rows in problems.values()
                if not any(rows.keys() < others.keys() for others in problems.values())
            ]
            found[(workload, *pair)] = _ratio(best)
            every.setdefault(pair, []).append(found[(workload, *pair)])
    for pair, own_ratios in every.items():
        if len(own_ratios) > 1:
            logs = [math.log(one.numbers[0]) for one in own_ratios]
            found[(ALL, *pair)] = _of_logs(logs, [0.0] * len(logs))
    return found


def turned(found: Mapping[Key, Ratio], name: str, gpu: str, other: str) -> Ratio | None:
    """The ratio of two GPUs in either order."""
    if (name, gpu, other) in found:
        return found[name, gpu, other]
    one = found.get((name, other, gpu))
    if one is None:
        return None
    middle, low, high = (None if end is None else 1 / end for end in one.numbers)
    assert middle is not None
    return Ratio(one.count, (middle, high, low), one.predicted)


def compare_front(
    page: ShownPage, materials: Sequence[Material], found: Mapping[Key, Ratio], ledger: Ledger
) -> None:
    """Compare the ratios of the front page."""
    titles = {one.settings.title: one for one in materials}
    for shown in page.tables_of(OVERVIEWS):
        table = ledger.table(page.path, shown.caption)
        for title, record in shown.rows_by(["kernel"]).items():
            name = ALL if title == ALL else titles[title].name
            for column, shown_cell in record.items():
                if pair := re.match(r"(\S+) / (\S+) ", column):
                    one = found.get((name, pair[1], pair[2]))
                    ends = [end for end in one.numbers[1:] if end is not None] if one else None
                    wanted = Cell(one.numbers[0] if one else None, ends)
                    table.row(title, {column: shown_cell}, {column: wanted})


def compare_gpus(
    page: ShownPage,
    folder: Path,
    materials: Sequence[Material],
    found: Mapping[Key, Ratio],
    ledger: Ledger,
) -> None:
    """Compare the tables of whole cards, the file of all ratios, and the data of the script."""
    titles = {one.settings.title: one.name for one in materials} | {ALL: ALL}
    titles |= {f"{one.spec.title}, all studies": one.spec.workload for one in materials}
    for shown in page.tables_of(""):
        if pair := re.fullmatch(r"(\S+) over (\S+)", shown.caption):
            table = ledger.table(page.path, shown.caption)
            for title, row in shown.rows_by(["over"]).items():
                each = found[titles[title], pair[1], pair[2]]
                cells: dict[str, Wanted | Cell] = {
                    "ratio": each.numbers[0],
                    "95 % interval": each.numbers[1:],
                    "of": each.count,
                }
                table.row(title, row, cells)
    table = ledger.table(page.path, "data/card_ratios.csv")
    with open(folder / "data/card_ratios.csv", newline="", encoding="utf-8") as handle:
        listed = {(row["name"], row["gpu"], row["other"]): row for row in csv.DictReader(handle)}
    table.same("rows", sorted(listed), sorted(found))
    for key, line in listed.items():
        _numbers(table, " ".join(key), [line[name] or None for name in NUMBERS], found[key])
    for one in materials:
        path = f"data/{one.name}.gpus.js"
        data = read_script(folder / path)
        names = [each["name"] for each in data["gpus"]]
        for gpu, other, _, *numbers in data["ratios"]:
            ratio = turned(found, one.name, names[gpu], names[other])
            assert ratio is not None
            _numbers(ledger.table(page.path, path), f"{names[gpu]} {names[other]}", numbers, ratio)


NUMBERS = ("count", "ratio", "low", "high")


def _numbers(table: Table, place: str, shown: Sequence[Any], wanted: Ratio) -> None:
    given = [None if value is None else float(value) for value in shown]
    table.rounded(place, given, [wanted.count, *wanted.numbers], DIGITS)
