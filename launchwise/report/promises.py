"""Predicted and measured gains of the answering model on the test problems."""

from __future__ import annotations

from launchwise.learning.evaluate import SHORT_LISTS
from launchwise.learning.summary import WORTH_PERCENT
from launchwise.report import wording
from launchwise.report.blind import AGAINST_USUAL, against_usual, covered
from launchwise.report.blocks import Block, Column, Text, table
from launchwise.report.models import answering, splits_evaluated
from launchwise.report.study import StudyData


def promises(study: StudyData) -> list[Block]:
    """Predicted and measured gains of the answering model, one row per split."""
    name = answering(study)
    rows = []
    for split in splits_evaluated(study):
        parts = study.facts["splits"][split]["all"]["models"]
        if name not in parts:
            continue
        got = parts[name]
        low, high = got["fraction_interval"] or (float("nan"), float("nan"))
        rows.append(
            [
                split,
                wording.count(got["problems"]),
                wording.fixed(got["fraction_geometric_mean"]),
                wording.interval((low, high)) if got["fraction_interval"] else "–",
                *(wording.fixed(got[name]) for name in SHORT_LISTS.values()),
                *against_usual(got),
                wording.count(got["intervals"]),
                covered(got["covered"]),
            ]
        )
    if not rows or name is None:
        return []
    columns = [
        Column("split", number=False),
        Column("problems", "count"),
        Column("mean", "geometric", group="fraction of the best"),
        Column("mean", "95 % interval", group="fraction of the best"),
        *(Column(f"of {count}", "geometric", group="best measured") for count in SHORT_LISTS),
        *AGAINST_USUAL,
        Column("intervals", "count", group="90 % intervals of the gain"),
        Column("covered", "%", group="90 % intervals of the gain"),
    ]
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
    return [table(f"Predicted and measured gains of {title}", columns, rows), Text(note)]
