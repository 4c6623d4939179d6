"""The front page: lookup, gains, and links to the studies."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from operator import itemgetter
from types import MappingProxyType

from launchwise.gpus.prices import Price
from launchwise.report import blind, finder, health, kernels_by_gpu, tuning_gain, wording
from launchwise.report.blocks import Notice, Section, Table, Text
from launchwise.report.fields import field, table_of
from launchwise.report.missing import MissingStudy
from launchwise.report.study import StudyData


def sections(
    studies: Sequence[StudyData],
    missing: Sequence[MissingStudy] = (),
    notices: Sequence[Notice] = (),
    least_gain: float | None = None,
    prices: Mapping[str, Price] = MappingProxyType({}),
    settings_files: Sequence[str] = (),
) -> list[Section]:
    """Sections of the front page, the lookup first.

    Parameters
    ----------
    missing
        Studies that are not in the report.
    notices
        What the reader must know first.
    least_gain
        Gain that must be sure; None where the expected one decides.
    prices
        GPU to what it costs.
    """
    found: list[Section] = []
    unwell = health.notice(health.of_studies(studies))
    if (lookup := finder.block(studies, settings_files)) is not None:
        lead = Text(
            "Choose a kernel, a GPU and a problem: the lookup answers any size." + _care(least_gain)
        )
        strip = [*notices, *([] if unwell is None else [unwell])]
        found.append(Section("look-up", "Which configuration?", [*strip, lead, lookup]))
    elif notices:
        found.append(Section("not-here", "Missing from this report", notices))
    if (gains := tuning_gain.section(studies)) is not None:
        found.append(gains)
    if (compared := kernels_by_gpu.section(studies, prices)) is not None:
        found.append(compared)
    if (tested := blind.section(studies)) is not None:
        found.append(tested)
    found.append(Section("studies", "Studies", [_studies(studies, missing)]))
    return found


def _care(least_gain: float | None) -> str:
    if least_gain is None:
        return ""
    return f" Where a gain of {least_gain:g} is not sure, the answer is the usual choice."


MOST_NAMED = 14
"""GPUs that a line names; of more it says how many there are."""


def named_gpus(gpus: Sequence[str]) -> str:
    """``a, b and c``, or the first of many and their number."""
    if len(gpus) <= MOST_NAMED:
        return wording.listed(gpus)
    return f"{', '.join(gpus[:3])} and {wording.count(len(gpus) - 3)} more"


FIELDS = [
    field("study", "title", detail=itemgetter("name"), link=itemgetter("link")),
    field("question", "question"),
    field("GPUs", "gpus"),
    field("measured", "rows", unit="rows", number=True),
]


def _studies(studies: Sequence[StudyData], missing: Sequence[MissingStudy]) -> Table:
    rows = [
        {
            "name": study.name,
            "title": study.settings.title,
            "link": f"#{study.name}-answer",
            "question": study.settings.question,
            "gpus": named_gpus(study.gpus),
            "rows": wording.count(len(study.rows)),
        }
        for study in studies
    ]
    rows += [each.row for each in missing]
    return table_of("Studies of this report", FIELDS, rows)
