"""Predicted and measured gains of the answering model on the test problems."""

from __future__ import annotations

from launchwise.learning.evaluate import SHORT_LISTS
from launchwise.learning.summary import WORTH_PERCENT
from launchwise.report import against_usual, wording
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
                *against_usual.cells(got),
                wording.count(got["intervals"]),
                against_usual.covered(got["covered"]),
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
        *against_usual.COLUMNS,
        Column("intervals", "count", group="90 % intervals of the gain"),
        Column("covered", "%", group="90 % intervals of the gain"),
    ]
    title = study.title(name)
    note = (
        "Best measured: the fastest of the first 5 or 20 recommendations, if they are measured. "
        f"Kept: {title} answers with the usual choice, because the expected gain is smaller than "
        "the disagreement of its members. Missed: of these, problems where the best is faster by "
        f"more than {WORTH_PERCENT:g} %. Covered: answers whose measured gain lies in the "
        "predicted interval."
    )
    return [table(f"Predicted and measured gains of {title}", columns, rows), Text(note)]
