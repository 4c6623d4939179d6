"""Predicted and measured gains of the answering model on the test problems."""

from __future__ import annotations

from launchwise.learning.evaluate import SHORT_LISTS
from launchwise.learning.summary import WORTH_PERCENT
from launchwise.report import wording
from launchwise.report.blind import AGAINST_USUAL, of_mean
from launchwise.report.blocks import MISSING, Block, Text
from launchwise.report.fields import field, grouped, percents, table_of
from launchwise.report.models import answering, splits_evaluated
from launchwise.report.study import StudyData

FIELDS = [
    field("split", "split"),
    field("problems", "problems", wording.count, "count"),
    *grouped(
        "fraction of the best",
        field("mean", "fraction_geometric_mean", wording.fixed, "geometric"),
        field("mean", lambda got: of_mean(got) or MISSING, unit="95 % interval", number=True),
    ),
    *grouped(
        "best measured",
        *(field(f"of {k}", name, wording.fixed, "geometric") for k, name in SHORT_LISTS.items()),
    ),
    *AGAINST_USUAL,
    *grouped(
        "90 % intervals of the gain",
        field("intervals", "intervals", wording.count, "count"),
        field("covered", "covered", percents(0), "%"),
    ),
]


def promises(study: StudyData) -> list[Block]:
    """Predicted and measured gains of the answering model, one row per split."""
    name = answering(study)
    rows = [
        {**parts[name], "split": split}
        for split in splits_evaluated(study)
        if name in (parts := study.facts["splits"][split]["all"]["models"])
    ]
    if not rows or name is None:
        return []
    title = study.title(name)
    note = (
        "Best measured: the fastest of the first 5 or 20 recommendations, if they are measured. "
        f"Kept: {title} answers with the usual choice. It leaves the choices of simple rules where "
        "the mean gain over them that its members expect exceeds the deviation of these gains "
        f"times {study.models[name]['caution']:g} / √(training problems). Missed: of the kept, "
        f"problems where the best is faster by more than {WORTH_PERCENT:g} %. Intervals: from the "
        "errors of answers to the test cases of other problems. Covered: answers whose measured "
        "gain lies in the interval."
    )
    return [table_of(f"Predicted and measured gains of {title}", FIELDS, rows), Text(note)]
