"""What tuning is worth for the study's load, and what few builds reach."""

from __future__ import annotations

from collections.abc import Iterator

import pandas as pd

from launchwise.base.names import assigned
from launchwise.exporting.few import SIZES, Weighed
from launchwise.exporting.worth import Line, Worth, measuring_s, worth
from launchwise.learning.answers import BASES, MEASURED
from launchwise.report import wording
from launchwise.report.blocks import Block, Fold, Section, Text
from launchwise.report.fields import decimals, field, percents, significant, table_of
from launchwise.report.study import StudyData

MOST = 20  # Problems that the table shows, those of most time

FIELDS = [
    field("problem", lambda one: assigned(one.answer.problem)),
    field("time", "share", percents(1), "% of the load"),
    field("launches", "launches", wording.count),
    field("one takes", "time_ms", significant(3), "ms"),
    field("gain", "gain", decimals(2)),
    field("interval", "limits", lambda limits: wording.interval(limits, 2), number=True),
    field("basis", lambda one: BASES[one.answer.basis]),
]
BUILDS = [
    field("builds", "count", wording.count),
    field("of the best speed", "reached", decimals(3)),
    field("95 % interval", "interval", wording.interval, number=True),
]


def section(study: StudyData) -> Section | None:
    """The first whole GPU stands open; None where the study has no load."""
    if study.load is None or study.table is None:
        return None
    found: list[Block] = [*_of_gpu(study, study.whole[0])]
    if others := [block for gpu in study.whole[1:] for block in _of_gpu(study, gpu)]:
        found.append(Fold("Other GPUs", others))
    return Section(f"{study.name}-load", "Worth for the load", found)


def _of_gpu(study: StudyData, gpu: str) -> Iterator[Block]:
    assert study.load is not None
    assert study.table is not None
    known, place = study.load.counts, study.table.number(gpu)
    found = worth(study.table, gpu, known, measuring_s(study.sweeps[gpu]["measured_at"].tolist()))
    if place is None or not found.lines:
        return
    yield Text(f"{gpu}: {'. '.join(sentences(found))}.")
    yield table_of(f"{gpu}: problems of the load", FIELDS, found.lines[:MOST])
    judged = pd.concat([study.sweeps[gpu], study.tested.get(gpu, pd.DataFrame())])
    if steps := Weighed.of(study.table, [place], known, {place: judged}).steps(SIZES):
        yield table_of(f"{gpu}: what few builds reach", BUILDS, steps)


def sentences(found: Worth) -> list[str]:
    """What tuning is worth, what keeps the usual choice, and when it is paid."""
    limits = "limits not known"
    if found.interval is not None:
        limits = f"90 % interval {wording.interval(found.interval, 2)}"
    lines = [
        f"The whole load is {found.gain:.3g} times as fast as with the usual choices ({limits}): "
        f"{wording.number(found.tuned_s)} s, not {wording.number(found.usual_s)} s",
        _part(found, [one for one in found.lines if one.answer.basis == MEASURED], "measured"),
        _part(found, [one for one in found.lines if one.is_usual], "answered by the usual choice"),
    ]
    slower = [one for one in found.lines if one.is_slower]
    named = "; ".join(f"{assigned(one.answer.problem)} ({one.gain:.3g})" for one in slower)
    words = "slower than with the usual choice or the default"
    lines.append(f"{_part(found, slower, words)}{': ' if named else ''}{named}")
    if found.unanswered:
        lines.append(f"{len(found.unanswered)} problems have no answer with a time")
    if found.tuning_s is not None:
        paid = "never" if found.runs is None else f"after {wording.plural(found.runs, 'run')}"
        lines.append(f"The sweep took {wording.number(found.tuning_s)} s: paid {paid} of the load")
    return lines


def _part(found: Worth, some: list[Line], words: str) -> str:
    share = wording.percent(found.share(some))
    return f"{len(some)} of {len(found.lines)} problems, {share} % of the time, are {words}"
