"""Intervals are stretched by what blind tests measured, and by nothing else."""

import itertools
from dataclasses import asdict, replace

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from stencil import slice_of_card, sweep
from studies import by_size, entry, fit_product

from launchwise.learning.answers import Offsets
from launchwise.learning.conformal import FEWEST, limits_around, stretched
from launchwise.learning.features import Domain
from launchwise.learning.final import calibrate
from launchwise.learning.splits import cases_in
from launchwise.tables.times import judged_times

GPU = "card"
SWEPT = (192, 200, 230, 256, 300, 333, 370, 400, 450, 512)
DRAWN = [n for n in range(202, 500, 9) if n not in SWEPT]


OFFSETS = Offsets(40, (-1.0, 1.0), (-0.05, 0.05))


@pytest.fixture(scope="module")
def swept(stencil_spec):
    """As many cases as intervals need."""
    alike = itertools.product(("float32", "float64"), (2, 8))
    sweeps = [sweep(stencil_spec, SWEPT, GPU, dtype, order) for dtype, order in alike]
    return pd.concat(sweeps, ignore_index=True)


@pytest.fixture(scope="module")
def times(stencil_spec, swept):
    """Judged times with a blind test."""
    blind = sweep(stencil_spec, DRAWN, GPU)
    judged = [judged_times(swept, (), stencil_spec)]
    judged.append(judged_times(blind, (), stencil_spec, blind=True))
    return pd.concat(judged, ignore_index=True)


@pytest.fixture(scope="module")
def product(stencil_spec, swept, times, tmp_path_factory):
    """A committee of few members, whose intervals of times are 5 % wide on either side."""
    domain = Domain(stencil_spec, {GPU: slice_of_card(GPU)})
    chosen = entry("committee", members="knn, lightgbm, nearest_size")
    folder = tmp_path_factory.mktemp("product") / "study"
    splits = by_size(SWEPT[::2], SWEPT[1::2])
    made = fit_product(folder, domain, {GPU: swept}, chosen, {GPU: times}, splits=splits)
    return replace(made, facts={**made.facts, "intervals": {"within": asdict(OFFSETS)}})


def test_intervals_hold_as_many_blind_times_as_they_say(product, times):
    made, of_gains = calibrate(product, {GPU: times})
    for one in (made, of_gains):
        assert FEWEST <= one.problems <= len(DRAWN)
        assert 0 < one.covered <= 1
    blind, domain = times[times["blind"]], product.domain
    choices = domain.choices(cases_in(blind, domain.spec))
    ranking = product.recommender.ranking(domain.keeping_features(choices))
    first = ranking.first(1)
    rows = choices.iloc[first].reset_index(drop=True)
    situations = product.swept.situations(rows)
    limits = limits_around(ranking.predicted_ms[first], situations, product.intervals)
    keys = domain.spec.key_columns

    def measured(rows):
        return rows[keys].merge(blind[[*keys, "time_ms"]], on=keys, how="left")["time_ms"]

    def inside(limits, values):
        known = values.notna().to_numpy() & np.isfinite(limits).all(axis=1)
        held = (values >= limits[:, 0]) & (values <= limits[:, 1])
        return float(held[known].mean())

    assert inside(limits, measured(rows)) == pytest.approx(made.covered)
    assert 0.9 <= inside(stretched(limits, made.stretch), measured(rows)) <= 0.97

    usual = choices[domain.is_usual(choices)].reset_index(drop=True)
    problem = domain.spec.problem_columns
    assert usual[problem].equals(rows[problem])
    gains = measured(usual) / measured(rows)
    expected, spread = ranking.gains[first].T
    limits = limits_around(expected, situations, product.intervals, spread)
    limits[domain.is_usual(rows)] = np.nan
    assert inside(limits, gains) == pytest.approx(of_gains.covered)
    assert 0.9 <= inside(stretched(limits, of_gains.stretch), gains) <= 0.97


def test_slower_cards_than_expected_stretch_more(product, times):
    slow = times.assign(time_ms=times["time_ms"] * 1.5)
    (made, gains), (more, same) = (calibrate(product, {GPU: each}) for each in (times, slow))
    assert more.stretch > made.stretch
    # A gain is a ratio of two times.
    assert same.stretch == pytest.approx(gains.stretch)
    # Beyond what was swept intervals are not those that a test holds.
    far = judged_times(sweep(product.spec, [700], GPU), (), product.spec, blind=True)
    every = pd.concat([times, far.assign(time_ms=9 * far["time_ms"])], ignore_index=True)
    wide = {**product.facts, "intervals": dict.fromkeys(("within", "beyond"), asdict(OFFSETS))}
    assert calibrate(replace(product, facts=wide), {GPU: every}) == (made, gains)


def test_what_was_swept_and_what_is_few_says_nothing(product, times):
    blind = times[times["blind"]]
    assert calibrate(product, {GPU: times[~times["blind"]]}) == (None, None)
    without = replace(product, facts={**product.facts, "intervals": {}})
    assert calibrate(without, {GPU: times}) == (None, None)
    columns = product.spec.problem_columns
    few = blind[columns].drop_duplicates().iloc[: FEWEST - 1]
    assert calibrate(product, {GPU: blind.merge(few, on=columns)}) == (None, None)


@given(st.floats(1e-3, 1e3), st.floats(1.0001, 10), st.floats(0.1, 4), st.floats(0.1, 4))
def test_stretching_keeps_the_middle(low, ratio, one, two):
    limits = np.array([[low, low * ratio]])
    wide = stretched(limits, one)
    assert np.sqrt(wide.prod()) == pytest.approx(np.sqrt(limits.prod()))
    assert stretched(limits, 1.0) == pytest.approx(limits)
    assert stretched(wide, two) == pytest.approx(stretched(limits, one * two))
