"""The answer of a study: the lookup, the rule of few ranges, and how sure what it says is."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import Any

import numpy as np
import pandas as pd

from launchwise.report import wording
from launchwise.report.blocks import MISSING, Block, Section, Table, Text
from launchwise.report.fields import (
    answers_in,
    decimals,
    field,
    grouped,
    of_mean,
    percents,
    table_of,
)
from launchwise.report.numbers import (
    best_rule,
    configuration_names,
    first_split,
    first_split_is_transfer,
    fractions,
    leader,
    only_tested,
    score_of,
)
from launchwise.report.pages import finder
from launchwise.report.study_tables import StudyData, remembered
from launchwise.tables.rows import row_numbers

MOST_RANGES = 3
FEWEST = 2  # Fewest problems of a rule: of one the fastest configuration is none

WORTH_A_RANGE = 0.01
"""Least gain in the mean fraction of the best that another range of the parameter must bring."""

MOST_VALUES = 40  # Values of a parameter between which ranges may begin; of more an even sample


@dataclass(frozen=True)
class Range:
    """Problems that have one configuration in common; ``rows`` are its rows, with ``fraction``."""

    words: str  # ``n < 350``
    rows: pd.DataFrame

    @property
    def worst(self) -> Mapping[Any, Any]:
        """The row that loses most."""
        return {**self.rows.iloc[int(self.rows["fraction"].argmin())]}


@remembered
def rule_of(study: StudyData, gpu: str) -> list[Range]:
    """The ranges of a GPU, of the parameter with which they lose least in the mean. A
    configuration counts where it has a time that tells at every problem of its range. Empty where
    none has."""
    every = fractions(study)
    own = every[every["gpu"] == gpu]
    own = study.candidates(own).reset_index(drop=True)
    if len(own[study.problem_columns].drop_duplicates()) < FEWEST:
        return []
    logs = np.log(own["fraction"].to_numpy())
    numbers = row_numbers(own, study.spec.tunable_columns)
    problems = row_numbers(own, study.problem_columns)
    found: list[tuple[float, list[Range]]] = []
    for name in study.problem_columns:
        values, places = _values(own[name])
        if len(values) == 1 and found:
            continue
        for mean, cuts in _parts(values, places, numbers, problems, logs):
            of_ranges = [
                own[(places >= begin) & (places < end) & (numbers == configuration)]
                for begin, end, configuration in cuts
            ]
            found.append((mean, [*_ranges(study, name, of_ranges)]))
    return _simplest(found)


def _simplest(found: list[tuple[float, list[Range]]]) -> list[Range]:
    """Of rules with their mean fractions, the fewest ranges to which one more adds too little."""
    chosen: list[Range] = []
    reached = -np.inf
    for count in range(1, MOST_RANGES + 1):
        own = [one for one in found if len(one[1]) == count]
        best = max(own, key=lambda one: one[0], default=None)
        if best is not None and best[0] > reached + (WORTH_A_RANGE if chosen else 0.0):
            reached, chosen = best
    return chosen


def _values(column: pd.Series) -> tuple[list[Any], np.ndarray]:
    """Beginnings of groups of values, in order, and the group of each row."""
    known = sorted(column.unique())
    step = -(-len(known) // MOST_VALUES)
    firsts = known[::step]
    group = {value: place // step for place, value in enumerate(known)}
    return firsts, column.map(group).to_numpy(dtype=int)


Cuts = list[tuple[int, int, int]]  # first and last group of each range, and its configuration


def _parts(
    values: list[Any],
    places: np.ndarray,
    numbers: np.ndarray,
    problems: np.ndarray,
    logs: np.ndarray,
) -> Iterator[tuple[float, Cuts]]:
    """For each number of ranges the best mean fraction, and the ranges."""
    count = len(values)
    sums = np.zeros((count + 1, numbers.max() + 1))
    ran = np.zeros_like(sums)
    np.add.at(sums, (places + 1, numbers), logs)
    np.add.at(ran, (places + 1, numbers), 1)
    asked = np.zeros(count + 1)
    first = np.unique(problems, return_index=True)[1]
    np.add.at(asked, places[first] + 1, 1)
    sums, ran, asked = sums.cumsum(axis=0), ran.cumsum(axis=0), asked.cumsum()
    # The best configuration of groups begin to end, and the sum of its logarithms.
    best = np.full((count, count + 1), -np.inf)
    chosen = np.zeros((count, count + 1), dtype=int)
    for begin in range(count):
        whole = ran[begin + 1 :] - ran[begin] == (asked[begin + 1 :] - asked[begin])[:, None]
        part = np.where(whole, sums[begin + 1 :] - sums[begin], -np.inf)
        chosen[begin, begin + 1 :] = part.argmax(axis=1)
        best[begin, begin + 1 :] = part.max(axis=1)
    reached, ways = best[0], [[(0, end)] for end in range(count + 1)]
    for ranges in range(1, min(MOST_RANGES, count) + 1):
        if ranges > 1:
            sums_of = reached[:, None] + np.vstack([best, np.full((1, count + 1), -np.inf)])
            before = sums_of.argmax(axis=0)
            reached = sums_of.max(axis=0)
            ways = [[*ways[begin], (int(begin), end)] for end, begin in enumerate(before)]
        if np.isfinite(reached[count]):
            cuts = [(begin, end, int(chosen[begin, end])) for begin, end in ways[count]]
            yield float(np.exp(reached[count] / asked[count])), cuts


def _ranges(study: StudyData, name: str, parts: Sequence[pd.DataFrame]) -> Iterator[Range]:
    """Ranges of a parameter in order, without gaps between them."""
    listed = study.spec.problem[name].values is not None
    begins = [part[name].min() for part in parts]
    for place, part in enumerate(parts):
        # Of rows that lose as much, the first names the problem.
        rows = part.sort_values(study.problem_columns, ignore_index=True)
        inside = sorted(rows[name].unique())
        if len(parts) == 1:
            words = "every problem"
        elif isinstance(inside[0], str):
            words = wording.listed(inside)
        elif listed and len(inside) == 1:
            words = f"{name} = {wording.value(inside[0])}"
        elif place == len(parts) - 1:
            words = f"{name} ≥ {wording.value(inside[0])}"
        else:
            words = f"{name} < {wording.value(begins[place + 1])}"
            words = f"{wording.value(inside[0])} ≤ {words}" if place else words
        yield Range(words, rows)


FIELDS = [
    field("GPU", "gpu"),
    field("where", "words"),
    field("launch", "configuration"),
    field("problems", "problems", wording.count),
    field("of the best", "mean", percents(1), "%, geometric mean"),
    field("least", "least", percents(1), "%", detail=lambda row: f"at {row['at']}"),
    field("speed-up", "gain", decimals(2), "× usual, geometric"),
]

CAPTION = "Rule in few lines, chosen on these problems among configurations with sure times at each"

ENOUGH = 0.85  # Mean fraction of the best that a rule must reach to be shown


def reached(study: StudyData, gpu: str, rows: pd.DataFrame) -> tuple[float, float | None]:
    """Mean fraction of the best of a configuration's or a rule's rows, and mean speed relative to
    the usual choice; None where that was not measured."""
    every = fractions(study)
    usual = every[every["is_usual"] & (every["gpu"] == gpu)]
    both = rows.merge(usual, on=study.problem_columns, suffixes=("", "_usual"))
    both["gain"] = both["fraction"] / both["fraction_usual"]
    return study.mean(rows), study.mean(both, "gain") if len(both) else None


def table(study: StudyData) -> list[Block]:
    """What the rule of every whole card reaches, and the rules that are worth it."""
    rows, parts = list[Mapping[str, Any]](), list[str]()
    for gpu in study.whole:
        if not (ranges := rule_of(study, gpu)):
            continue
        mean, gain = reached(study, gpu, pd.concat([one.rows for one in ranges]))
        worth = mean >= ENOUGH and (gain is None or gain >= 1)
        speed = "" if gain is None else f" and {gain:.2f} times the usual choice's speed"
        remark = "" if worth else " (not shown: use the lookup)"
        parts.append(f"{wording.percent(mean)} % of the best{speed} on {gpu}{remark}")
        rows += _rows(study, gpu) if worth else ()
    said = f"In the geometric mean a rule of at most {MOST_RANGES} ranges reaches "
    said = f"{said}{wording.listed(parts)}. " if parts else ""
    if without := [gpu for gpu in study.whole if not rule_of(study, gpu)]:
        said += f"No rule on {wording.listed(without)}: no configuration has a sure time at every "
        said += "size of a range."
    return [Text(said.strip()), *([table_of(CAPTION, FIELDS, rows)] if rows else [])]


def _rows(study: StudyData, gpu: str) -> Iterator[Mapping[str, Any]]:
    for one in rule_of(study, gpu):
        mean, gain = reached(study, gpu, one.rows)
        yield {
            **{"gpu": gpu, "words": one.words, "problems": len(one.rows)},
            "configuration": configuration_names(one.rows.head(1), study.spec)[0],
            **{"mean": mean, "gain": gain},
            "least": one.worst["fraction"],
            "at": wording.problem(one.worst, study.problem_columns),
        }


def answer(study: StudyData, settings_files: Sequence[str] = ()) -> Section:
    """The lookup of one study, and its rule."""
    lookup = finder.block([study], settings_files)
    found = [*([lookup] if lookup else []), *table(study)]
    return Section(f"{study.name}-answer", "Answer", found)


def sure(study: StudyData) -> Section:
    """What answers reach where nothing was measured before, and how right results are."""
    checked = [Text(said, "note") for gpu in study.whole if (said := verified(study, gpu))]
    return Section(f"{study.name}-sure", "How sure", [_reached(study), *checked])


def verified(study: StudyData, gpu: str) -> str:
    """How far results of timed rows are from the workload's reference; empty where no row says."""
    rows = study.measured[study.measured["gpu"] == gpu]
    rows = rows.reindex(columns=[*rows, *({"max_error", "tolerance"} - {*rows})])
    shares = (rows["max_error"] / rows["tolerance"].where(rows["tolerance"] > 0)).dropna()
    if shares.empty:
        return ""
    limits = rows.loc[shares.index, "tolerance"]
    between = " to ".join(dict.fromkeys(f"{one:.1e}" for one in (limits.min(), limits.max())))
    return (
        f"{gpu}: results of {wording.count(len(shares))} of {wording.count(len(rows))} timed rows "
        "were compared with the workload's reference. The largest error is "
        f"{wording.number(shares.max(), 2)} of its tolerance; tolerances are {between}."
    )


def _least(row: Mapping[str, Any]) -> str:
    least = row.get("least_gain")
    return "" if wording.is_missing(least) else f"least {wording.fixed(least, 2)}"


REACHED = [
    field("GPU", "gpu"),
    field("answered by", "who"),
    field("mean", "fraction", wording.fixed, "of the best", detail=of_mean),
    field("speed-up", "gain", decimals(2), "× usual", detail=_least),
    field("problems", "problems", wording.count, "count"),
    field("gains", "covered_here", percents(0), "% in 90 % intervals", detail=answers_in("here")),
    *grouped(
        "best simple rule",
        field("name", "rule"),
        field("mean", "rule_fraction", wording.fixed, "of the best"),
        field("speed-up", "rule_gain", decimals(2), "× usual"),
    ),
    *grouped(
        "blind test",
        field("problems", "tested", wording.count, "count", detail=itemgetter("new")),
        field("mean", "blind", wording.fixed, "of the best", detail=itemgetter("blind_interval")),
        field(
            "gains", "covered", percents(0), "% in 90 % intervals", detail=answers_in("intervals")
        ),
        field(
            "times", "times_covered", percents(0), "% in 90 % intervals", detail=answers_in("times")
        ),
    ),
]
"""What answers reach; an interval (95 %) stands below its mean."""

UNKNOWN: dict[str, Any] = {
    **{str(one.value): None for one in REACHED if one.column.number},
    **{"fraction_interval": None, "rule": MISSING, "blind_interval": "", "new": ""},
}


def _reached(study: StudyData) -> Table:
    """A row per whole card, and per GPU that only a blind test measured."""
    transfer = first_split_is_transfer(study)
    asked = "trained without the GPU" if transfer else "on held-out sizes"
    gpus = [*study.whole, *only_tested([study])]
    rows = [{**UNKNOWN, **_of_split(study, gpu), **_of_blind_test(study, gpu)} for gpu in gpus]
    tested = study.blind or study.drawn
    fields = [one for one in REACHED if tested or one.column.group != "blind test"]
    return table_of(f"What answers reach, {asked}: geometric means", fields, rows)


def _of_split(study: StudyData, gpu: str) -> dict[str, Any]:
    split = first_split(study)
    name = leader(study, split, gpu)
    if name is None:
        return {"gpu": gpu, "who": MISSING}
    found: dict[str, Any] = {"gpu": gpu, "who": study.title(name)}
    if (simple := best_rule(study, split, gpu)) is not None:
        found |= {"rule": study.title(simple["model"])}
        found |= {f"rule_{each}": simple[each] for each in ("fraction", "gain")}
    facts = study.facts["splits"][split][gpu]["models"][name]
    found |= {"covered_here": facts.get("covered"), "here": facts.get("intervals")}
    return {**score_of(study, split, gpu, name), **found}


def _of_blind_test(study: StudyData, gpu: str) -> dict[str, Any]:
    if (got := study.blind.get(gpu, study.drawn.get(gpu))) is None:
        return {}
    new = "no row of this GPU read then" if got["new_gpu"] else ""
    tested = {"tested": got["problems"], "blind": got["fraction_geometric_mean"]}
    tested |= {name: got.get(name) for name in ("covered", "intervals", "times_covered", "times")}
    return {**tested, "new": new, "blind_interval": of_mean(got)}
