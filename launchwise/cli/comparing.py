"""Compares what the command line names; a comparison as text for a terminal, as JSON, as CSV."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict
from functools import cache
from pathlib import Path
from typing import Any

import pandas as pd

from launchwise.base.errors import UserError, unknown
from launchwise.base.literals import csv_table
from launchwise.base.names import named_values
from launchwise.base.places import shipped
from launchwise.comparing.matching import CONDITIONS, Difference, Rule
from launchwise.comparing.sides import opened
from launchwise.comparing.sweep_comparison import (
    COMMAND,
    NONE,
    SHIFT_PERCENTILES,
    Comparison,
    SweepComparison,
    compared,
)
from launchwise.experiment.discovery import find_workloads
from launchwise.learning.row_arrays import records_of
from launchwise.report import wording
from launchwise.workloads.space import label, used
from launchwise.workloads.spec import Spec, load_spec

KNOWN_WORKLOADS = ("kernels", "data/public/workloads")
"""Folders of the repository whose workloads need no option."""

NOTHING = "none"
USUAL_COMPLAINTS = ["slower", "stopped", "broken"]


def compared_as_named(
    old: str,
    new: str,
    rule: Rule,
    gpus: Sequence[str],
    only: Sequence[str],
    workloads: Sequence[Path],
) -> Comparison:
    """Comparison of what the command line names: :func:`launchwise.cli.sweep_commands.compare`.
    Raises UserError when a side, a name or a file is wrong."""
    spec_of, folder = _specs(workloads), Path.cwd()
    with opened(old, folder) as before, opened(new, folder) as after:
        return compared(before, after, spec_of, rule, _gpus(gpus), only)


def _gpus(words: Sequence[str]) -> dict[str, str]:
    found = named_values(words, COMMAND, "--gpu")
    if twice := [new for new, count in Counter(found.values()).items() if count > 1]:
        raise UserError(COMMAND, "--gpu", f"{twice[0]} is given twice")
    return found


def wanted_complaints(words: Sequence[str] | None) -> list[str]:
    if words is None:
        return USUAL_COMPLAINTS
    if NOTHING in words and len(words) > 1:
        raise UserError(COMMAND, "--fail-on", f"{NOTHING} excludes all others")
    return [word for word in words if word != NOTHING]


def _specs(folders: Sequence[Path]) -> Callable[[str], Spec]:
    """Workload to its spec: of ``folders`` first, then of the repository."""
    for folder in folders:
        if not folder.is_dir():
            raise UserError(COMMAND, "--workloads", f"no folder {str(folder)!r}")
    known = find_workloads(shipped(name) for name in KNOWN_WORKLOADS if shipped(name).is_dir())
    known |= find_workloads(folders)

    @cache
    def spec_of(workload: str) -> Spec:
        if workload not in known:
            message = f"{unknown('workload', workload, known)}; --workloads names its folder"
            raise UserError(COMMAND, "", message)
        return load_spec(known[workload])

    return spec_of


WIDTH = 11  # Of the words before the lines of a sweep
MOST_LABELS = 3  # Most labels of a condition that are listed

COMMIT_DIGITS = 7
CARD_DIGITS = 8

TITLES = {
    "card": "cards",
    "sm_clock_mhz": "SM clock",
    "throttle": "throttling",
    "timer": "timers",
    "l2": "L2",
    "commit": "commits",
}


def as_text(comparison: Comparison, worse: Sequence[str], top: int) -> list[str]:
    """Lines: each sweep with what changed, then what was compared how, then what got worse.
    ``worse``: from :func:`launchwise.comparing.sweep_comparison.complaints`. ``top``: most rows or
    problems in a list."""
    lines = [f"OLD {comparison.old}", f"NEW {comparison.new}"]
    for one in comparison.sweeps:
        lines += ["", *_sweep(one, comparison, top)]
    lines.append("")
    for side, keys in (("OLD", comparison.only_old), ("NEW", comparison.only_new)):
        if keys:
            named = ", ".join(f"{workload} on {gpu}" for gpu, workload in keys)
            lines.append(f"only in {side}: {named}")
    rule = comparison.rule
    lines.append(
        f"faster, slower: medians differ by more than {100 * rule.threshold:g} %, and the "
        f"{100 * rule.confidence:g} % interval of new / old excludes 1"
    )
    lines += [f"worse: {line}" for line in worse] or ["nothing is worse"]
    return lines


def _sweep(one: SweepComparison, comparison: Comparison, top: int) -> Iterator[str]:
    gpu = one.gpu if one.gpu == one.new_gpu else f"{one.gpu} and {one.new_gpu}"
    again = f", {one.carried} of them the same measurement" if one.carried else ""
    yield f"{one.spec.workload} on {gpu}: {one.matched} rows in both{again}"
    counts = [f"{count} {outcome}" for outcome, count in one.outcomes.items() if count]
    yield _line("rows", ", ".join(counts))
    number, shift = one.shift
    if shift is not None:
        low, middle, high = (f"{each:.3f}" for each in shift)
        # A report compares the fastest configurations of two GPUs, which are others mostly.
        same = "" if one.gpu == one.new_gpu else ", each with the same configuration"
        said = f"median {middle}, 5 to 95 % of rows {low} to {high} ({number} rows{same})"
        yield _line("new / old", said)
    for each in one.differences:
        yield _line(TITLES.get(each.what, each.what), _difference(each))
    interval = f"{100 * comparison.rule.confidence:g} %"
    for outcome, best_first in (("slower", False), ("faster", True)):
        rows = one.rows[one.rows["outcome"] == outcome].sort_values("ratio", ascending=best_first)
        yield from _list(outcome, rows, top, lambda row: _timed(row, one.spec, interval))
    for outcome in ("stopped", "broken", "mended"):
        rows = one.rows[one.rows["outcome"] == outcome]
        yield from _list(outcome, rows, top, lambda row: _restated(row, one.spec))
    yield from _answers(one, top, interval)


def _line(title: str, text: str) -> str:
    return f"  {title:{WIDTH}}{text}"


def _list(
    title: str, rows: pd.DataFrame, top: int, line: Callable[[Mapping[Any, Any]], str]
) -> Iterator[str]:
    for place, row in enumerate(rows.head(top).to_dict("records")):
        yield _line("" if place else title, line(row))
    if len(rows) > top > 0:
        yield _line("", f"... and {len(rows) - top} more (--top, --csv)")


def _timed(row: Mapping[Any, Any], spec: Spec, interval: str) -> str:
    return f"{_ratio(row, interval)}  {_key(row, spec)}"


def _ratio(row: Mapping[Any, Any], interval: str) -> str:
    limits = f"{row['ratio_low']:.3f} to {row['ratio_high']:.3f}"
    return f"{row['ratio']:.3f} ({interval} interval {limits})"


def _restated(row: Mapping[Any, Any], spec: Spec) -> str:
    said = f" ({row['new_reason']})" if row["new_reason"] else ""
    return f"{row['old_status']} -> {row['new_status']}  {_key(row, spec)}{said}"


def _key(row: Mapping[Any, Any], spec: Spec) -> str:
    return f"{wording.problem(row, spec.problem_columns, plain=True)}  {label(row, spec)}"


def _answers(one: SweepComparison, top: int, interval: str) -> Iterator[str]:
    counts = ", ".join(f"{count} {verdict}" for verdict, count in one.verdicts.items() if count)
    if counts:
        yield _line("best", f"of {wording.plural(len(one.answers), 'problem')}: {counts}")
    stale = one.answers[one.answers["verdict"] == "stale"]
    stale = stale.sort_values("ratio", ascending=False, na_position="first")
    yield from _list("stale", stale, top, lambda row: _stale(row, one, interval))


def _stale(answer: Mapping[Any, Any], one: SweepComparison, interval: str) -> str:
    old = one.rows.iloc[answer["old_best"]]
    where = wording.problem(answer, one.spec.problem_columns, plain=True)
    said = f"{where}  {label(old, one.spec)}"
    if pd.isna(answer["ratio"]):
        said += f" is now {old['new_status']}"
    else:
        said += f" takes {_ratio(answer, interval)} times as long as the fastest"
    if answer["new_best"] == NONE:
        return f"{said}; nothing is ok"
    return f"{said}; take {label(one.rows.iloc[answer['new_best']], one.spec)}"


def _difference(one: Difference) -> str:
    """``580.1 -> 590.2 (690 of 690 rows)``."""
    rows = f"{one.rows} of {one.of} rows"
    if one.what == "sm_clock_mhz":
        return f"{rows} at another clock; median {one.old[0]} MHz -> {one.new[0]} MHz"
    digits = {"commit": COMMIT_DIGITS, "card": CARD_DIGITS}.get(one.what)
    old, new = (_labels(each, digits) for each in (one.old, one.new))
    return f"{rows} differ" if old == new else f"{rows} differ; {old} -> {new}"


def _labels(labels: Sequence[str], digits: int | None) -> str:
    shown = ", ".join(each[:digits] for each in labels[:MOST_LABELS])
    more = len(labels) - MOST_LABELS
    return f"{shown} and {more} more" if more > 0 else shown or "none"


VERSION = 1  # Of the JSON document

_RATIO = ["ratio", "ratio_low", "ratio_high"]


def as_json(comparison: Comparison, complaints: Sequence[str]) -> dict[str, Any]:
    """Everything of a comparison, JSON-able; docs/how-to/compare_sweeps.md describes it.
    ``complaints``: from :func:`launchwise.comparing.sweep_comparison.complaints`."""
    return {
        "version": VERSION,
        "old": comparison.old,
        "new": comparison.new,
        "threshold": comparison.rule.threshold,
        "confidence": comparison.rule.confidence,
        "complaints": list(complaints),
        "outcomes": comparison.outcomes,
        "verdicts": comparison.verdicts,
        "only_old": [{"gpu": gpu, "workload": workload} for gpu, workload in comparison.only_old],
        "only_new": [{"gpu": gpu, "workload": workload} for gpu, workload in comparison.only_new],
        "sweeps": [_sweep_files(one) for one in comparison.sweeps],
    }


def _sweep_files(one: SweepComparison) -> dict[str, Any]:
    remeasured, shift = one.shift
    return {
        "workload": one.spec.workload,
        "gpu": one.gpu,
        "new_gpu": one.new_gpu,
        "matched": one.matched,
        "same_measurement": one.carried,
        "outcomes": one.outcomes,
        "verdicts": one.verdicts,
        "remeasured": remeasured,
        "ratio_percentiles": shift
        and {str(name): value for name, value in zip(SHIFT_PERCENTILES, shift, strict=True)},
        "differences": [asdict(each) for each in one.differences],
        "answers": _answers_files(one),
        "rows": [
            {"problem": problem, "configuration": configuration, **facts}
            for problem, configuration, facts in zip(
                _problems(one.rows, one.spec),
                _configurations(one.rows, one.spec),
                _records(_facts(one.rows)),
                strict=True,
            )
        ],
    }


def _answers_files(one: SweepComparison) -> list[dict[str, Any]]:
    every = _configurations(one.rows, one.spec)
    best = [
        {f"{side}_best": None if answer[f"{side}_best"] == NONE else every[answer[f"{side}_best"]]
         for side in ("old", "new")}
        for answer in records_of(one.answers)
    ]  # fmt: skip
    facts = _records(one.answers[["verdict", *_RATIO]])
    parts = zip(_problems(one.answers, one.spec), best, facts, strict=True)
    return [{"problem": problem, **own, **each} for problem, own, each in parts]


def csv_text(comparison: Comparison) -> str:
    """One line per row of every sweep, with a head. Problem and configuration are texts such as
    ``n=512 dtype=float32`` and ``tiled bx=32 by=8``."""
    tables = []
    for one in comparison.sweeps:
        keys = {
            "workload": one.spec.workload,
            "gpu": one.gpu,
            "new_gpu": one.new_gpu,
            "problem": [
                " ".join(f"{name}={value}" for name, value in each.items())
                for each in _problems(one.rows, one.spec)
            ],
            "configuration": [label(row, one.spec) for row in records_of(one.rows)],
        }
        facts = _facts(one.rows)
        tables.append(pd.concat([pd.DataFrame(keys, index=facts.index), facts], axis=1))
    found = csv_table(pd.concat(tables, ignore_index=True))
    return found.to_csv(index=False, lineterminator="\n")


def _problems(rows: pd.DataFrame, spec: Spec) -> list[dict[str, Any]]:
    return records_of(rows[spec.problem_columns])


def _configurations(rows: pd.DataFrame, spec: Spec) -> list[dict[str, Any]]:
    """Configuration of each row, without the tunables that its variant does not have."""
    return [used(each, spec) for each in records_of(rows[spec.tunable_columns])]


def _facts(rows: pd.DataFrame) -> pd.DataFrame:
    """Values of each row besides its key: repeats by their number."""
    found = {"outcome": rows["outcome"]}
    for name in ("status", "time_ms"):
        found |= {f"{side}_{name}": rows[f"{side}_{name}"] for side in ("old", "new")}
    for side in ("old", "new"):
        counts = rows[f"{side}_times_ms"].map(len, na_action="ignore")
        found[f"{side}_repeats"] = counts.astype("Int64")
    found |= {name: rows[name] for name in _RATIO}
    for name in ("reason", *CONDITIONS):
        found |= {f"{side}_{name}": rows[f"{side}_{name}"] for side in ("old", "new")}
    return pd.DataFrame(found)


def _records(table: pd.DataFrame) -> list[dict[str, Any]]:
    """Rows with None where there is no value: JSON has no NaN."""
    objects = table.astype(object)
    return records_of(objects.where(objects.notna(), None))
