"""FLOP and bytes of one thread of the published kernel, counted again from its loops."""

from __future__ import annotations

from collections.abc import Mapping

from launchwise.report import wording
from launchwise.report.blocks import Table
from launchwise.report.fields import field, table_of

from .formula import Facts


def flop_counted(facts: Facts) -> dict[str, int]:
    """Operations of each step, 2 per multiply-add; names as those of ``facts.csv``."""
    rows, cols = facts.rows, facts.cols
    pairs = cols * (cols - 1) // 2
    # A length is a product of a column with itself and a root; scaling is one division and `rows`
    # multiplications. A pair of columns is a product and a subtraction.
    norms = cols * (2 * rows + 1 + 1 + rows)
    gram_schmidt = norms + pairs * 4 * rows
    r = cols * cols * 2 * rows
    # Q^T y; a multiply-add per pair of the substitution, and its divisions.
    b = cols * 2 * rows + 2 * pairs + cols
    return {
        "flop_norms": norms,
        "flop_gram_schmidt": gram_schmidt,
        "flop_r": r,
        "flop_b": b,
        "flop_solve": r + b,
        "flop_a_thread": gram_schmidt + r + b,
    }


STEPS = {
    "flop_norms": "lengths of columns, and scaling by them",
    "flop_gram_schmidt": "Gram-Schmidt with them",
    "flop_r": "R = Q^T X",
    "flop_b": "Q^T y and substitution",
    "flop_solve": "both",
    "flop_a_thread": "all of a thread",
}


def recounted(facts: Facts, printed: Mapping[str, str]) -> Table:
    """Operations and bytes of one thread: as printed, counted again, and how far apart.

    Parameters
    ----------
    printed
        Facts of the source, by name; a step that the source does not print has no row.
    """
    rows = [
        (f"FLOP: {STEPS[name]}", float(printed[name]), count)
        for name, count in flop_counted(facts).items()
        if name in printed
    ]
    titles = ("X to Q, intercepts", "Gram-Schmidt", "R, Q^T y and substitution")
    parts = zip(titles, facts.parts, facts.parts_counted, strict=True)
    rows += [(f"bytes: {name}", said, count) for name, said, count in parts]
    rows.append(("bytes: all of a thread", sum(facts.parts), sum(facts.parts_counted)))
    caption = (
        f"Counts of one thread, {facts.rows} rows by {facts.cols} columns: the source's, and those "
        "of the kernel's loops"
    )
    return table_of(caption, FIELDS, rows)


FIELDS = [
    field("count", lambda row: row[0]),
    field("printed", lambda row: round(row[1]), wording.count),
    field("counted again", lambda row: row[2], wording.count),
    field("printed is off by", lambda row: wording.percent(row[1] / row[2] - 1, 2), str, "%", True),
]
