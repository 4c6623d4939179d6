"""Where the paper's text and tables contradict each other: computed from its published values."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import pairwise

from launchwise.experiment.published import Records, facts_of
from launchwise.report import wording
from launchwise.report.blocks import Block

from ...recommenders.stream_law.laws import (
    PUBLISHED_OVERHEAD,
    PUBLISHED_SUM,
    predicted_streams,
)
from ..checks import Check, blocks_of
from .predicted import CARDS

NOT_MEASURED = "not measured"
"""What table IV says of float64 at a size that float64 does not have."""


def contradictions(published: Mapping[str, Records]) -> Iterator[Block]:
    """A table of what does not agree, and a sentence on what does; nothing without tables."""
    if not all(published.get(name) for name in ("optima_float64", "optima_float32", "transfer")):
        return
    yield from blocks_of(list(checks(published)))


def checks(published: Mapping[str, Records]) -> Iterator[Check]:
    """Everything that is compared, in the order of the paper."""
    facts = facts_of(published)
    double, single = published["optima_float64"], published["optima_float32"]
    cards = published["transfer"]
    yield _sizes(facts, double)
    yield from _corrections(facts, double)
    yield _times(facts, double)
    yield _alignment(facts, double)
    yield _streams(double)
    yield _most_blocks(double)
    yield from _tables(double, single, cards)
    yield from _losses(facts, cards)
    yield _one_rule(cards)
    yield _precisions(double, single)


def _counted(rows: Records, of: Records) -> str:
    return f"{len(rows)} of {wording.plural(len(of), 'row')}"


def _differ(rows: Records, one: str, other: str) -> Records:
    return [row for row in rows if row[one] != row[other]]


def _percent(row: Mapping[str, str]) -> float:
    return 100 * (float(row["time_corrected_ms"]) / float(row["time_observed_ms"]) - 1)


def _sizes(facts: Mapping[str, str], double: Records) -> Check:
    said = facts["sizes"]
    return Check(
        "number of sizes",
        f"{said} (section 2)",
        f"{len(double)} (table I)",
        int(said) == len(double),
        f"{abs(int(said) - len(double))} apart",
    )


def _corrections(facts: Mapping[str, str], double: Records) -> Iterator[Check]:
    moved = _differ(double, "m_observed", "m_corrected")
    said = facts["corrected_optima"]
    ranks = [int(facts[f"corrected_to_{one}_best"]) for one in ("second", "third", "fourth")]
    groups = [int(facts[f"corrections_of_{one}_cost"]) for one in ("small", "larger")]
    counts = {int(said), sum(ranks), sum(groups), len(moved)}
    yield Check(
        "number of corrected optima",
        f"{said} (section 2.5), by rank {wording.listed(map(str, ranks))}, by cost "
        f"{wording.listed(map(str, groups))}",
        f"{len(moved)} (table I)",
        len(counts) == 1,
        "the counts differ",
    )
    wrong = [
        row
        for row in moved
        if abs(
            float(row["time_observed_ms"])
            - float(row["time_corrected_ms"])
            - float(row["difference_ms"])
        )
        > 1e-6
    ]
    yield Check(
        "differences of corrected times",
        "column (1) - (2) of table I",
        f"other than the two times beside it in {_counted(wrong, moved)}",
        not wrong,
        "no difference of the printed times",
    )


def _times(facts: Mapping[str, str], double: Records) -> Check:
    """Whether larger systems take longer: else times are not as precise as corrections are."""
    times = [float(row["time_observed_ms"]) for row in double]
    falls = [100 * (1 - after / before) for before, after in pairwise(times)]
    falls = [one for one in falls if one > 0]
    moved = _differ(double, "m_observed", "m_corrected")
    below = [row for row in moved if _percent(row) < max(falls, default=0.0)]
    return Check(
        "precision of times",
        f"a larger system is faster at {wording.plural(len(falls), 'step')} of table I, by up to "
        f"{wording.fixed(max(falls, default=0.0), 2)} %",
        f"{len(below)} of {facts['corrected_optima']} corrections cost less, "
        f"{wording.fixed(min(map(_percent, moved), default=0.0), 2)} % the least (table I)",
        not below,
        "these optima and their corrections do not differ by more than times do by chance",
    )


def _alignment(facts: Mapping[str, str], double: Records) -> Check:
    step = int(facts["aligned_m_float64"])
    cut = [row for row in double if int(row["streams"]) > 1]
    odd = [row for row in cut if int(row["m_observed"]) % step]
    listed = wording.listed(
        f"m = {row['m_observed']} at n = {wording.count(int(row['n']))}" if row["n"] else "a row"
        for row in odd
    )
    return Check(
        "alignment",
        f"with streams m is a multiple of {step} (section 2.6)",
        f"not the fastest m of {_counted(odd, cut)} with several streams"
        + (f": {listed} (table I)" if odd else ""),
        not odd,
        "it holds for corrected optima alone",
    )


def _streams(double: Records) -> Check:
    """Streams of table I beside what the laws of the authors' paper on streams ask for."""
    known = {int(row["n"]): int(row["streams"]) for row in double if row["n"]}
    asked = {n: predicted_streams(n, PUBLISHED_SUM, PUBLISHED_OVERHEAD) for n in known}
    other = [n for n in known if asked[n] != known[n]]
    said = wording.listed(f"{asked[n]}, not {known[n]}, at n = {wording.count(n)}" for n in other)
    return Check(
        "streams by the earlier rule",
        "numbers of streams follow from the heuristic of reference 5 (section 2)",
        f"its laws ask for {said} (table I)" if said else "so they do (table I)",
        not other,
        "the rule was fitted for m = 10, and these numbers are not the rule's",
    )


def _most_blocks(double: Records) -> Check:
    smallest = min(int(row["m_observed"]) for row in double)
    own = [row for row in double if int(row["m_observed"]) == smallest]
    return Check(
        "largest number of blocks",
        "does not give the fastest m (section 5)",
        f"the smallest m of table I, {smallest}, is the fastest in {_counted(own, double)}",
        not own,
        "true if a smaller m was tried there, which the text does not say",
    )


def _tables(double: Records, single: Records, cards: Records) -> Iterator[Check]:
    first = {row["n"]: row for row in double if row["n"]}
    shared = [(row, first[row["n"]]) for row in cards if row["n"] in first]
    yield Check(
        "optima of the RTX 2080 Ti",
        "table I",
        "table III",
        all(
            (row["m_rtx2080ti"], row["m_heuristic"]) == (own["m_observed"], own["m_corrected"])
            for row, own in shared
        ),
        "other m",
    )
    other = [(row, own) for row, own in shared if row["streams"] != own["streams"]]
    said = wording.listed(
        f"{row['streams']} at n = {wording.count(int(row['n']))}" for row, _ in other
    )
    yield Check(
        "number of streams",
        f"{said} (table III)",
        f"{wording.listed(own['streams'] for _, own in other)} (table I)",
        not other,
        "a misprint in one of the two",
    )
    again = [(row, first[row["n"]]) for row in single if row["n"] in first]
    yield Check(
        "optima of float64 beside those of float32",
        "table I",
        "table IV",
        all(
            (row["m_observed_float64"] or row["m_observed"]) == own["m_observed"]
            for row, own in again
        ),
        "other m",
    )
    new = [row for row in single if row["m_observed_float64"] == NOT_MEASURED]
    missing = [size for size in first if size not in {row["n"] for row in single}]
    listed = wording.listed(wording.count(int(size)) for size in missing)
    yield Check(
        "sizes of float64 and float32",
        f"{_counted(new, single)} were not measured in float64 (table IV)",
        f"n = {listed}, of {wording.plural(len(double), 'size')} of table I: no row (table IV)",
        not missing,
        "one of the rows without float64 stands where that size would",
    )


def _losses(facts: Mapping[str, str], cards: Records) -> Iterator[Check]:
    limit = float(facts["significant_loss_percent"])
    for card, name in CARDS.items():
        column = f"loss_{card}_percent"
        printed = [row for row in cards if row[column]]
        most = max(float(row[column]) for row in printed)
        said = facts[f"worst_loss_{card}_percent"]
        yield Check(
            f"largest loss on the {name}",
            f"{said} % (section 4.1)",
            f"{most:g} % (table III)",
            float(said) == most,
            "the text and the table differ",
        )
    column = "loss_rtx4080_percent"
    large = [row for row in cards if row[column] and float(row[column]) > limit]
    said = facts["significant_losses_rtx4080"]
    yield Check(
        "losses that are significant",
        f"{said} on the RTX 4080, above {limit:g} % (section 4.1)",
        f"{len(large)} (table III)",
        int(said) == len(large),
        "the text and the table differ",
    )
    alike = [row for row in large if row["m_rtx4080"] == row["m_a5000"]]
    said = facts["significant_losses_rtx4080_with_optimum_of_a5000"]
    yield Check(
        "significant losses with the A5000's optimum",
        f"{said} of {len(large)} (section 4.1)",
        f"{len(alike)} of {len(large)} (table III)",
        int(said) == len(alike),
        "the text counts fewer than its table",
    )
    below = [
        row[f"loss_{card}_percent"]
        for card in CARDS
        for row in cards
        if row[f"loss_{card}_percent"] and float(row[f"loss_{card}_percent"]) <= limit
    ]
    yield Check(
        "limit of a small loss",
        f"above {limit:g} % is significant (section 4.1)",
        f"{wording.listed(f'{one} %' for one in below)} are printed, others are called small "
        "(table III)",
        not below,
        "the limit of what is printed is another",
    )


def _one_rule(cards: Records) -> Check:
    first, second = CARDS
    other = _differ(cards, f"m_{first}", f"m_{second}")
    return Check(
        "one rule for both cards",
        f"no loss on the {CARDS[first]} and the {CARDS[second]} (section 4.1)",
        f"their optima differ in {_counted(other, cards)} (table III)",
        not other,
        "one of the two cards loses there; by how much is not printed",
    )


def _precisions(double: Records, single: Records) -> Check:
    first = {row["n"]: row["m_observed"] for row in double if row["n"]}
    shared = [row for row in single if row["n"] in first]
    alike = [row for row in shared if row["m_observed"] == first[row["n"]]]
    return Check(
        "float32 and float64",
        "no connection between their optima (section 4.2)",
        f"the same m in {_counted(alike, shared)} (tables I and IV)",
        2 * len(alike) <= len(shared),
        "most optima are the same",
    )
