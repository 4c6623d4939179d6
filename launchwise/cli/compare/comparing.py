"""Compares what the command line names; a comparison as lines for a terminal."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import pandas as pd

from launchwise.base.errors import UserError, unknown
from launchwise.base.places import shipped
from launchwise.comparing.rows import Difference, Rule
from launchwise.comparing.sides import opened
from launchwise.comparing.sweep_comparison import (
    COMMAND,
    DEFAULT,
    NONE,
    Comparison,
    Complaint,
    SweepComparison,
    compared,
)
from launchwise.experiment.discovery import find_workloads
from launchwise.report import wording
from launchwise.workloads.space import label
from launchwise.workloads.spec import Spec, load_spec

KNOWN_WORKLOADS = ("kernels", "data/public/workloads")
"""Folders of the repository whose workloads need no option."""

NOTHING = "none"


def compared_as_named(
    old: str,
    new: str,
    rule: Rule,
    gpus: Sequence[str],
    only: Sequence[str],
    workloads: Sequence[Path],
) -> Comparison:
    """Comparison of what the command line names: :func:`launchwise.cli.compare.command.compare`.
    Raises UserError when a side, a name or a file is wrong."""
    spec_of, folder = _specs(workloads), Path.cwd()
    with opened(old, folder) as before, opened(new, folder) as after:
        return compared(before, after, spec_of, rule, _gpus(gpus), only)


def _gpus(words: Sequence[str]) -> dict[str, str]:
    found: dict[str, str] = {}
    for word in words:
        old, sign, new = word.partition("=")
        if not (old and sign and new):
            raise UserError(COMMAND, "--gpu", f"{word!r} is not OLD=NEW")
        if old in found or new in found.values():
            raise UserError(COMMAND, "--gpu", f"{word!r} names a GPU twice")
        found[old] = new
    return found


def wanted_complaints(words: Sequence[str] | None) -> list[Complaint]:
    """Complaints of ``--fail-on``; the usual ones without it."""
    if words is None:
        return list(DEFAULT)
    if NOTHING in words and len(words) > 1:
        raise UserError(COMMAND, "--fail-on", f"{NOTHING} excludes all others")
    return [Complaint(word) for word in words if word != NOTHING]


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

    ``worse``: from :func:`launchwise.comparing.sweep_comparison.complaints`.
    ``top``: most rows or problems in a list.
    """
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
        yield _line(
            "new / old", f"median {middle}, 5 to 95 % of rows {low} to {high} ({number} rows)"
        )
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
    return f"{wording.problem(row, spec.problem_columns)}  {label(row, spec)}"


def _answers(one: SweepComparison, top: int, interval: str) -> Iterator[str]:
    counts = ", ".join(f"{count} {verdict}" for verdict, count in one.verdicts.items() if count)
    if counts:
        yield _line("best", f"of {wording.plural(len(one.answers), 'problem')}: {counts}")
    stale = one.answers[one.answers["verdict"] == "stale"]
    stale = stale.sort_values("ratio", ascending=False, na_position="first")
    yield from _list("stale", stale, top, lambda row: _stale(row, one, interval))


def _stale(answer: Mapping[Any, Any], one: SweepComparison, interval: str) -> str:
    old = one.rows.iloc[answer["old_best"]]
    said = f"{wording.problem(answer, one.spec.problem_columns)}  {label(old, one.spec)}"
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
