"""What no figure may contradict, whatever was measured: checked whenever a report is made.

A violation is a mistake of a stage or of a workload's own code, an error of a sensor, or of a
recorded file. It is told with its row, in the log and on the page of health; the front page counts
them, and all else stands.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from launchwise.report import wording
from launchwise.report.blocks import Block, Notice, Section, Text
from launchwise.report.fields import field, table_of
from launchwise.report.numbers import records
from launchwise.report.study_tables import StudyData, remembered
from launchwise.tables.times import PAIRS

log = logging.getLogger("launchwise")

ROUNDING = 1e-9

CAUSES = (
    "The cause may be an error of a sensor, a recorded file, a stage, or a workload's own code."
)

NONE = "All of this holds. Nothing else is checked."

MOST_SHOWN = 50  # Most violations of one report that are listed


@dataclass(frozen=True)
class Violation:
    """A figure that cannot be."""

    study: str
    rule: str  # what it contradicts
    row: str  # that holds it, in words


def _evaluated(study: StudyData) -> Iterator[Violation]:
    """No answer beats the fastest of its own set; shares lie between 0 and 1."""
    rows = study.evaluation
    shares = ("fraction", "best_of_5", "best_of_20", "improved_runs")
    for name in [each for each in shares if each in rows]:
        for row in records(rows[(rows[name] < -ROUNDING) | (rows[name] > 1 + ROUNDING)]):
            value = f"{name} {wording.number(row[name], 4)}"
            rule = "a share lies between 0 and 1, and nothing beats the fastest of its own set"
            yield _violation(study, rule, f"{row['model']}, {row['split']}: {value}", row)


def _curves(study: StudyData) -> Iterator[Violation]:
    """Measuring more reaches no less."""
    if study.curves is None:
        return
    key = ["split", "gpu", "model"]
    ordered = study.curves.sort_values([*key, "measured"], kind="stable")
    falls = ordered.groupby(key)["fraction"].diff() < -ROUNDING
    for row in records(ordered[falls]):
        rule = "after more measurements no less is reached"
        yield _violation(study, rule, f"{row['model']}, {row['split']}: {row['measured']}", row)


def _pairs(study: StudyData) -> Iterator[Violation]:
    """A ratio lies in its interval, and so does that of the times that are judged by it."""
    keys = study.spec.key_columns
    for gpu, pairs in study.pairs.items():
        ratios, sweep = [pairs["gain"]], study.sweeps.get(gpu)
        if sweep is not None and "basis" in sweep:
            judged = sweep.loc[sweep["basis"] == PAIRS, [*keys, "time_ms"]]
            times = pairs[keys].merge(judged, on=keys, how="left").set_index(pairs.index)["time_ms"]
            problems = [pairs[name] for name in study.problem_columns]
            usual_ms = times.where(pairs["gain"] == 1).groupby(problems).transform("first")
            ratios.append(usual_ms / times)
        low, high = pairs["gain_low"], pairs["gain_high"]
        for ratio in ratios:
            away = (low > ratio * (1 + ROUNDING)) | (ratio > high * (1 + ROUNDING))
            for row in records(pairs.assign(ratio=ratio)[away]):
                yield _violation(study, "a gain lies in its interval", f"gain {row['ratio']}", row)


def _answers(study: StudyData) -> Iterator[Violation]:
    """Intervals have their ends in order; what is called measured was."""
    key = ["gpu", *study.problem_columns]
    tables = [table[key].drop_duplicates() for table in (study.rows, *study.tested.values())]
    measured = {case for table in tables for case in table.itertuples(index=False, name=None)}
    for answer in study.answers:
        row = {"gpu": answer["gpu"], **answer["problem"]}
        for ends in (("time_low_ms", "time_high_ms"), ("gain_low", "gain_high")):
            low, high = (answer[end] for end in ends)
            if None not in (low, high) and low > high * (1 + ROUNDING):
                what = f"{ends[0]} {low}, {ends[1]} {high}"
                yield _violation(study, "an interval has its ends in order", what, row)
        if answer["basis"] == "measured" and tuple(row[name] for name in key) not in measured:
            yield _violation(study, "what is called measured was measured", "", row)


RULES = (_evaluated, _curves, _pairs, _answers)


def _violation(study: StudyData, rule: str, what: str, row: Mapping[str, Any]) -> Violation:
    where = f"{row['gpu']}: {wording.problem(row, study.problem_columns)}"
    if "variant" in row:
        where += f", {wording.configuration(row, study.spec)}"
    return Violation(study.name, rule, f"{where}{f': {what}' if what else ''}")


@remembered
def _of_study(study: StudyData) -> list[Violation]:
    return [each for rule in RULES for each in rule(study)]


def violations(studies: Sequence[StudyData]) -> list[Violation]:
    return [each for study in studies for each in _of_study(study)]


def notice(studies: Sequence[StudyData]) -> Notice | None:
    """What the front page says of violations; None where there are none."""
    count = len(violations(studies))
    if not count:
        return None
    said = wording.plural(count, "figure contradicts", "figures contradict")
    return Notice(f"{said} another.", "#invariants", "Which")


def section(studies: Sequence[StudyData]) -> Section:
    """What was checked, and what does not hold; each violation goes into the log, too."""
    found = violations(studies)
    for each in found[:MOST_SHOWN]:
        log.warning("%s: %s: %s", each.study, each.rule, each.row)
    named = [rule.__doc__ or "" for rule in RULES]
    blocks: list[Block] = [Text(f"Checked of every study: {' '.join(named)}", "note")]
    if not found:
        blocks.append(Text(NONE))
    else:
        said = wording.plural(len(found), "figure contradicts", "figures contradict")
        blocks.append(Text(f"{said} another. {CAUSES}"))
        fields = [field("study", "study"), field("what must hold", "rule"), field("row", "row")]
        blocks.append(table_of("Figures that contradict others", fields, found[:MOST_SHOWN]))
    return Section("invariants", "Contradictions", blocks)
