"""Errors of a published prediction: its counts beside those of its launch."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

import pandas as pd

from launchwise.gpus.profile import GpuProfile
from launchwise.report import wording
from launchwise.report.blocks import Column, Table, table
from launchwise.report.fields import field, table_of

from .formula import Counts, Facts, Source

Gpus = Mapping[str, GpuProfile]
"""Profiles of GPUs of the source, as far as they are known."""

EQUAL = 1.0005
"""Ratio up to which two counts are the same."""

COLUMNS = (
    Column("what", number=False),
    Column("in the source"),
    Column("by the launch"),
    Column("off by"),
    Column("by its counts", "× printed", group="prediction"),
    Column("by the launch", "× printed", group="prediction"),
)


def size(count: float) -> str:
    """Bytes to four digits."""
    unit, factor = ("MB", 1e6) if count >= 1e6 else ("kB", 1e3)
    return f"{wording.number(count / factor, 4)} {unit}"


def span(values: Sequence[float] | pd.Series, places: int = 2) -> str:
    """Least to most of some numbers."""
    if not len(values):
        return "–"
    ends = [wording.fixed(value, places) for value in (min(values), max(values))]
    return ends[0] if ends[0] == ends[1] else " to ".join(ends)


def errors(source: Source, gpus: Gpus) -> Table:
    """Each count in the source and by its launch, and the prediction by each."""
    rows = [*_bytes(source), *_launch(source, gpus)]
    return table("Counts of the source, and counts of its launch", COLUMNS, rows)


def _prediction(source: Source, counts: Counts, shares: Mapping[str, float] | None = None) -> str:
    """Prediction with these counts over the printed one, least to most of the source's GPUs.

    Parameters
    ----------
    shares
        GPU to the part of its peak that can be had; all of it on all GPUs when left out.
    """
    found = []
    for one in source.printed:
        if shares is None or one.gpu in shares:
            part = 1.0 if shares is None else shares[one.gpu]
            found.append(one.rates.times(counts, source.facts, part).total / one.times.total)
    return span(found)


def _said(what: str, said: float, follows: float, show: Callable[[float], str]) -> list[str]:
    much, little = max(said, follows), min(said, follows)
    way = "too many" if said > follows else "too few"
    digits = 4 if much < 1.1 * little else 3
    off = f"{wording.number(much / little, digits)} × {way}" if much > EQUAL * little else "equal"
    return [what, show(said), show(follows), off]


def _bytes(source: Source) -> Iterator[list[str]]:
    facts, counts = source.facts, source.facts.counts
    again = sum(facts.parts_counted) * facts.threads
    behind = sum(source.bytes_implied()) / 2
    for what, said, follows, threads in (
        ("bytes per thread: the sum of its parts", facts.bytes_a_thread, sum(facts.parts), True),
        ("bytes of all threads", facts.bytes_total, counts.bytes, False),
        ("bytes behind its times: loads and stores counted again", behind, again, False),
    ):
        factor = facts.threads if threads else 1
        yield [
            *_said(what, said, follows, size),
            _prediction(source, Counts(counts.flop, factor * said)),
            _prediction(source, Counts(counts.flop, factor * follows)),
        ]


def _launch(source: Source, gpus: Gpus) -> Iterator[list[str]]:
    """Effect of the launch on the counts: copies, caches, lanes without work."""
    facts, counts = source.facts, source.facts.counts
    copies, once = facts.threads_at_work / facts.threads, facts.arrays * facts.county
    named = [one.gpu for one in source.printed if one.gpu in gpus]
    shares = {gpu: facts.lanes_share(gpus[gpu].sms) for gpu in named}
    as_taken = _prediction(source, counts)
    yield [
        *_said("threads that work", facts.threads, facts.threads_at_work, wording.count),
        as_taken,
        _prediction(source, Counts(copies * counts.flop, copies * counts.bytes)),
    ]
    yield [
        *_said("bytes from device memory: each array once", counts.bytes, once, size),
        as_taken,
        _prediction(source, Counts(counts.flop, once)),
    ]
    if shares:
        yield [
            "lanes that work, of the whole GPU",
            "100 %",
            f"{span([100 * share for share in shares.values()], 1)} %",
            f"{span([1 / share for share in shares.values()], 0)} × too many",
            as_taken,
            _prediction(source, counts, shares),
        ]
        all_of_it = Counts(copies * counts.flop, once)
        last = _prediction(source, all_of_it, shares)
        yield ["threads, arrays and lanes at once", "–", "–", "–", as_taken, last]


def reasons(source: Source, gpus: Gpus) -> Iterator[tuple[str, str]]:
    """Why, in words: bytes, copies, caches, race."""
    facts = source.facts
    yield "Bytes:", " ".join(_of_bytes(source))
    yield (
        "Copies:",
        f"only blockIdx.x and threadIdx.x tell regressions apart. So all {facts.block_y} rows of a "
        f"block do the same ones, which the source counts, and so do the {facts.grid_y} blocks of "
        f"a column of the grid, which it does not. {facts.threads_at_work} threads have work, in "
        f"{facts.warps_at_work} warps of {facts.blocks_at_work} blocks, where "
        f"{facts.grid_x * facts.grid_y} blocks are launched.",
    )
    caches = (
        "every load and store counts as one from device memory. But all copies of a regression "
        f"share its X, y, Q, R and b: {size(facts.arrays)}, {size(facts.arrays * facts.county)} of "
        "all regressions."
    )
    least = min((gpus[one.gpu].l2_bytes for one in source.printed if one.gpu in gpus), default=0)
    if least:
        caches += f" The smallest L2 of these GPUs holds {size(least)}."
    yield "Caches:", caches
    copies = facts.threads_at_work / facts.county
    yield (
        "Race:",
        f"{copies:g} copies of a regression write one Q and do not wait for each other. That "
        "changes the answer, not the prediction.",
    )


def _of_bytes(source: Source) -> Iterator[str]:
    facts = source.facts
    parts = " + ".join(f"{part / 1e3:g}" for part in facts.parts)
    yield f"{parts} kB are {size(sum(facts.parts))}; the sum as printed is"
    yield f"{size(facts.bytes_a_thread)}. In all it prints {size(facts.bytes_total)} and, next to"
    yield f"that, {facts.megabytes_total:g} MB."
    least, most = source.bytes_implied()
    if least <= most:
        ends = [wording.number(count / 1e6, 5) for count in (least, most)]
        hidden = 1e3 * facts.rounding_kilobytes * facts.threads
        near = facts.counts.bytes - hidden <= most and least <= facts.counts.bytes + hidden
        said = "can" if near else "cannot"
        yield f"Its times belong to {ends[0]} to {ends[1]} MB, which rounding of the parts {said}"
        yield "explain."
    else:
        yield "No one number of bytes gives all of its times."
    again = " + ".join(f"{part / 1e3:g}" for part in facts.parts_counted)
    off = 100 * (2 * sum(facts.parts_counted) * facts.threads / (least + most) - 1)
    yield f"Loads and stores counted again, {again} kB a thread, are {off:+.2f} % off that."


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
