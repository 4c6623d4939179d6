"""The published tables: each held to itself, to the others, and to what the papers say of them.

The tables come from texts that lost most problem sizes; a size that is not known is empty, and
tables of the same sizes are compared row by row.
"""

from fractions import Fraction

import numpy as np
import pytest
from published_tables import facts, table

from kernels.tridiagonal.recommenders.stream_law.laws import (
    PUBLISHED_OVERHEAD,
    PUBLISHED_SUM,
    predicted_gains,
    predicted_streams,
)
from launchwise.experiment.published import read_run_times
from launchwise.gpus.datasheets import CARDS_FILE, read_cards
from launchwise.workloads.spec import load_spec
from tests.support.samples import ROOT

STREAMS = np.array([1, 2, 4, 8, 16, 32])

KNOWN_SIZES = [*(n * 10**i for i in (5, 6, 7) for n in (1, 2, 4, 5, 8) if n * 10**i > 10**5), 10**8]


@pytest.fixture(scope="module")
def float64():
    return table("tridiagonal_subsystem", "optima_float64")


@pytest.fixture(scope="module")
def float32():
    return table("tridiagonal_subsystem", "optima_float32")


@pytest.fixture(scope="module")
def cards():
    """Optima on three cards, and what the heuristic of the first loses on the others."""
    return table("tridiagonal_subsystem", "transfer")


SERIES = [int(m * 10**i) for i in (2, 3, 4) for m in (1, 2, 2.5, 4, 5, 7.5, 8)]
SERIES.append(100_000)
"""Sizes of the paper's series below those that follow from other columns, one for each row."""


# Sub-system size


def test_sizes_are_those_of_the_paper_and_restored_ones_say_so(float64, float32, cards):
    assert list(float64["n"]) == [*SERIES, *KNOWN_SIZES]
    assert cards["n"].equals(float64["n"])
    # Row 20 of single precision stands in the place of 75 000; nothing says the sizes of 26 to 28.
    known = float32.dropna(subset="n")
    assert list(known["row"]) == [*range(1, 20), *range(21, 26), *range(29, 41)]
    assert list(known["n"]) == [*(n for n in SERIES if n != 75_000), *KNOWN_SIZES]
    for rows in (float64, float32, cards):
        assert (rows["source"].str.contains("n restored") == rows["n"].notna()).all()


def test_corrections_are_those_that_the_paper_counts_at_the_cost_of_their_times(float64, float32):
    given = facts("tridiagonal_subsystem")
    corrected = float64["m_corrected"] != float64["m_observed"]
    assert corrected.sum() == int(given["corrected_optima"])
    ranks = [int(given[f"corrected_to_{rank}_best"]) for rank in ("second", "third", "fourth")]
    assert sum(ranks) == corrected.sum()
    assert (float64["time_corrected_ms"].notna() == corrected).all()
    rows = float64[corrected]
    difference = rows["time_observed_ms"] - rows["time_corrected_ms"]
    assert np.allclose(difference, rows["difference_ms"], rtol=0, atol=1e-9)
    for precision in (float64, float32):
        moved = precision["m_corrected"] != precision["m_observed"]
        assert (precision["difference_ms"].notna() == moved).all()
        assert precision["m_corrected"].is_monotonic_increasing


def test_cards_are_compared_on_the_optima_of_the_first_table(float64, cards):
    assert cards["m_rtx2080ti"].equals(float64["m_observed"])
    assert cards["m_heuristic"].equals(float64["m_corrected"])
    # A misprint in one of the tables, kept as it is.
    assert list(float64.loc[cards["streams"] != float64["streams"], "n"]) == [400_000]
    for card in ("a5000", "rtx4080"):
        printed, percent = cards[f"loss_{card}"], cards[f"loss_{card}_percent"]
        # The heuristic costs nothing just where the optima agree.
        agree = cards[f"m_{card}"] == cards["m_heuristic"]
        assert printed.isin(["none", "lost"]).equals(agree)
        assert (printed == "given").equals(percent.notna())
        assert percent.max() == float(facts("tridiagonal_subsystem")[f"worst_loss_{card}_percent"])


def test_single_precision_repeats_the_optima_of_double_precision(float64, float32):
    known = float32.dropna(subset="n")
    double = float64.set_index("n").loc[known["n"]]
    assert list(known["streams"]) == list(double["streams"])
    printed = known["m_observed_float64"].astype(object).fillna(known["m_observed"]).astype(int)
    assert list(printed) == list(double["m_observed"])


def conflicts(study):
    """What the report says of each subject on which the paper contradicts itself."""
    told = table(study, "contradictions").dropna(subset="conflict")
    columns = told[["here", "there", "conflict"]].agg("; ".join, axis=1)
    return dict(zip(told["subject"], columns.str.replace("\u202f", ""), strict=True))


def test_contradictions_on_sub_systems_have_the_figures_of_the_tables(float64, float32, cards):
    said = conflicts("tridiagonal_subsystem")
    assert len(said) == 10
    falls = -100 * float64["time_observed_ms"].pct_change()
    falls = falls[falls > 0]
    costs = 100 * (float64["time_corrected_ms"] / float64["time_observed_ms"] - 1).dropna()
    assert (
        f"at {len(falls)} steps of table I, by up to {falls.max():.2f} %"
        in (said["precision of times"])
    )
    assert (
        f"{(costs < falls.max()).sum()} of 8 corrections cost less, {costs.min():.2f} %"
        in (said["precision of times"])
    )
    cut = float64[float64["streams"] > 1]
    (odd,) = cut.loc[cut["m_observed"] % 32 > 0, ["m_observed", "n"]].to_numpy(int).tolist()
    assert (
        f"1 of {len(cut)} rows with several streams: m = {odd[0]} at n = {odd[1]}"
        in (said["alignment"])
    )
    asked = {int(n): predicted_streams(n, PUBLISHED_SUM, PUBLISHED_OVERHEAD) for n in float64["n"]}
    other = zip(float64["n"], float64["streams"], strict=True)
    listed = [f"{asked[n]}, not {s}, at n = {int(n)}" for n, s in other if asked[n] != s]
    assert " and ".join(listed) in said["streams by the earlier rule"]
    least = (float64["m_observed"] == float64["m_observed"].min()).sum()
    assert f"the fastest in {least} of 37 rows" in said["largest number of blocks"]
    differ = (cards["m_a5000"] != cards["m_rtx4080"]).sum()
    assert f"differ in {differ} of 37 rows" in said["one rule for both cards"]
    shared = float32[float32["n"].isin(float64["n"])].merge(float64, on="n")
    same = (shared["m_observed_x"] == shared["m_observed_y"]).sum()
    assert f"the same m in {same} of {len(shared)} rows" in said["float32 and float64"]
    percents = cards[["loss_a5000_percent", "loss_rtx4080_percent"]].to_numpy().ravel()
    small = " and ".join(f"{one:.2f} %" for one in percents[percents <= 2.5])
    assert f"{small} are printed" in said["limit of a small loss"]


def test_contradictions_on_streams_have_the_figures_of_the_slides():
    said = conflicts("tridiagonal_streams")
    assert set(said) == {"sizes", "line of the sum", "overhead of one stream"}
    stages = table("tridiagonal_streams", "stages")
    error = PUBLISHED_SUM.predict(stages["n"]) / stages["sum_ms"] - 1
    for n, off in zip(stages["n"][:3], error[:3], strict=True):
        assert f"{100 * off:.0f} % at n = {n}" in said["line of the sum"]
    sizes = table("tridiagonal_streams", "optima")["n"].to_numpy()
    alone = PUBLISHED_OVERHEAD.predict(sizes, 1)
    assert f"{alone.min():.3g} to {alone.max():.3g} ms" in said["overhead of one stream"]
    gains = predicted_gains(8e4, PUBLISHED_SUM, PUBLISHED_OVERHEAD, STREAMS[1:])
    assert (gains.max() > 0, STREAMS[1:][gains.argmax()]) == (True, 2)


# Streams


def test_laws_have_the_printed_coefficients():
    given = {name: float(Fraction(text)) for name, text in facts("tridiagonal_streams").items()
             if name.startswith(("sum_", "overhead_"))}  # fmt: skip
    coefficients = [*vars(PUBLISHED_SUM).values(), *vars(PUBLISHED_OVERHEAD).values()]
    names = (
        *("sum_per_unknown_ms", "sum_constant_ms", "overhead_small_per_unknown_ms"),
        *("overhead_small_per_log10_streams_ms", "overhead_small_constant_ms"),
        *("overhead_big_per_unknown_and_log2_ms", "overhead_big_per_log2_ms"),
        "overhead_big_constant_ms",
    )
    assert coefficients == [given[name] for name in names]
    assert PUBLISHED_OVERHEAD.border == given["overhead_largest_small_n"]


def test_metrics_of_the_laws_agree():
    models = table("tridiagonal_streams", "models")
    both = models.dropna(subset=["mse_ms2", "rmse_ms"])
    assert len(both) == 4
    assert np.allclose(both["mse_ms2"] ** 0.5, both["rmse_ms"], rtol=1e-9)


def test_sizes_that_are_restored_have_their_times():
    study = ROOT / "kernels/tridiagonal/studies/tridiagonal_subsystem"
    found = read_run_times(study, load_spec(study.parents[1]), read_cards(ROOT / CARDS_FILE))
    best, _ = found.series
    times = [one for one in found.times if one.series == best.title]
    assert (len(times), found.skipped[best.title]) == (37, 0)
    assert (times[-1].problem["n"], times[-1].time_ms) == (10**8, 643.11)
