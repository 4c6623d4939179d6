"""Variants that are not verified: timed and shown; nothing learns from them or recommends them."""

import dataclasses
import re

import numpy as np
import pandas as pd
import pytest

from launchwise.base.errors import UserError
from launchwise.learning.features import Domain
from launchwise.learning.splits import Case
from launchwise.learning.truth import NOT_MEASURED, Truth
from launchwise.measuring.explore import RandomDraws, TransferExplorer
from launchwise.report import wording
from launchwise.report.numbers import winners
from launchwise.tables.files import write_table
from launchwise.tables.measurements import measurement_schema
from launchwise.workloads import space
from launchwise.workloads.metrics import MEASURED, UNVERIFIED
from tests.support.report_pages import page_of, visible
from tests.support.report_study import study
from tests.support.samples import measurements, profile
from tests.support.spaces import PROBLEM, driven, made

RACING = "column"
"""The variant that is not verified here, and the fastest of all."""

TRAIN, TEST = {"n": 64, "dtype": "float32", "order": 2}, {"n": 100, "dtype": "float32", "order": 2}


def racing(spec, *names):
    """The same workload with variants that are not verified."""
    variants = {
        name: variant.model_copy(update={"verified": name not in names})
        for name, variant in spec.variants.items()
    }
    return spec.model_copy(update={"variants": variants})


@pytest.fixture(scope="module")
def spec(stencil_spec):
    """The tests' workload, a variant not verified."""
    return racing(stencil_spec, RACING)


@pytest.fixture(scope="module")
def sweep(spec):
    """A valid sweep in which what is not verified is always the fastest, with a large error."""
    table = measurements(spec)
    own = table["variant"] == RACING
    assert 0 < own.sum() < len(table)
    for column in ("time_ms", "times_ms"):
        table.loc[own, column] = table.loc[own, column] / 1000
    table.loc[own, ["status", "reason", "max_error"]] = [UNVERIFIED, "not verified", 0.3]
    return table


@pytest.fixture(scope="module")
def domain(spec):
    """Candidates that name no variant."""
    return Domain(spec, {"test": profile()})


# Tables


@pytest.mark.parametrize(
    ("variant", "changes", "said"),
    [
        (RACING, {"time_ms": np.nan}, "time_ms: must be given exactly where status is ok, slow or"),
        (RACING, {"status": "ok"}, "status: must be unverified (never ok, slow or wrong) exactly"),
        (RACING, {"status": "slow"}, "status: must be unverified (never ok, slow or wrong)"),
        (RACING, {"status": "wrong", "time_ms": np.nan}, "status: must be unverified (never ok,"),
        ("block3d", {"status": UNVERIFIED}, "status: must be unverified (never ok, slow or wrong)"),
    ],
)
def test_a_status_that_does_not_fit_its_variant_is_refused(
    spec, sweep, tmp_path, variant, changes, said
):
    table = sweep.copy()
    row = table.index[table["variant"] == variant][0]
    for name, value in changes.items():
        table.loc[row, name] = value
    path = tmp_path / "x.parquet"
    with pytest.raises(UserError) as caught:
        write_table(path, table, measurement_schema(spec))
    line = str(caught.value)
    assert line.startswith(f"{path}: {said}")
    assert f"violated in 1 row, first in row {row}" in line


@pytest.mark.parametrize("status", ["failed", "timeout", "out_of_memory"])
def test_it_may_fail_as_any_other(spec, sweep, tmp_path, status):
    table = sweep.copy()
    row = table.index[table["variant"] == RACING][0]
    table.loc[row, ["status", "time_ms"]] = [status, np.nan]
    write_table(tmp_path / "x.parquet", table, measurement_schema(spec))


# Learning


def test_it_is_no_candidate(spec, sweep, domain):
    # Named or not: settings are checked before, but a domain can be made of anything.
    for asked in (domain, Domain(spec, domain.profiles, {"variant": [RACING, "block3d"]})):
        choices = asked.choices([Case("test", TEST)])
        assert RACING not in set(choices["variant"])
        assert {"linear", "block3d"} <= set(choices["variant"])
        assert not asked.is_candidate(sweep)[sweep["variant"] == RACING].any()
    assert domain.is_candidate(sweep)[sweep["variant"] != RACING].all()
    everything = Domain(racing(spec), domain.profiles)
    assert RACING in set(everything.choices([Case("test", TEST)])["variant"])
    assert everything.is_candidate(sweep).all()


def test_it_is_never_the_best_of_a_problem(sweep, domain):
    truth = Truth({"test": sweep}, domain)
    for case in (TRAIN, TEST):
        of_case = (sweep[list(case)] == pd.Series(case)).all(axis=1)
        (number,) = truth.numbers([Case("test", case).key])
        best = truth.best(np.array([number])).iloc[0]
        believed = sweep.loc[of_case & sweep["status"].isin(MEASURED), "time_ms"]
        assert best["variant"] != RACING
        assert best["time_ms"] == believed.min() > sweep.loc[of_case, "time_ms"].min()
        assert truth.draws(number, 1)[0] == pytest.approx(believed.mean())
    # Whoever recommends it all the same gets no time for it.
    planted = sweep[(sweep["variant"] == RACING) & (sweep["n"] == 100)].iloc[:1]
    key = [*domain.spec.key_columns]
    assert truth.beside(planted[key])["status"].tolist() == [NOT_MEASURED]


@pytest.mark.parametrize("kind", [RandomDraws, TransferExplorer])
def test_no_explorer_spends_a_row_on_it(kind):
    values = [1, 2, 4, 8]
    shapes = {"plain": ([], []), "tiled": (["a"], []), "racing": (["a"], [])}
    spec = racing(made({"a": values}, shapes), "racing")
    planted = [{"variant": "racing", "a": value} for value in values]
    explorer = kind(spec, PROBLEM, None, 50, 1, planted, [(each, 1e-6) for each in planted])
    found = [each for each, _ in driven(explorer)]
    assert found[0] == space.baseline(spec)
    assert sorted((str(each["variant"]), each["a"]) for each in found) == [
        ("plain", 1), *(("tiled", value) for value in values)
    ]  # fmt: skip
    # Rows of it that are there already are none of the budget.
    few = kind(spec, PROBLEM, None, 3, 1, (), [(each, 1e-6) for each in planted])
    assert len(driven(few)) == 3


# The report


@pytest.fixture
def shown():
    """The small study with a row of a variant that is not verified, the fastest of each problem."""
    one = study()
    sweeps = {}
    for gpu, rows in one.sweeps.items():
        own = rows[rows["variant"] == "linear"].assign(
            variant=RACING, status=UNVERIFIED, time_ms=0.5, max_error=0.25, tolerance=1e-5
        )
        sweeps[gpu] = pd.concat([rows, own], ignore_index=True)
    return dataclasses.replace(one, spec=racing(one.spec, RACING), sweeps=sweeps)


def test_the_report_shows_it_beside_what_may_be_chosen(shown):
    pd.testing.assert_frame_equal(winners(shown), winners(study()))
    assert RACING not in set(shown.rows["variant"])
    assert set(shown.unverified["variant"]) == {RACING}
    page = visible(page_of(shown))
    assert re.search(rf"Not among them, at [^:]+: {RACING}", page)
    assert "It took 0.125 times as long as the best, with an error of 0.25" in page
    meaning = dict(wording.configuration_key(shown.spec))
    (said,) = [text for form, text in meaning.items() if form.startswith(RACING)]
    assert said.endswith(f"({wording.NEVER_CHOSEN})")
    assert sum(wording.NEVER_CHOSEN in text for text in meaning.values()) == 1


def test_an_error_that_is_no_number_has_words(shown):
    for rows in shown.sweeps.values():
        rows["max_error"] = np.nan
    assert "with results that are NaN, where" in visible(page_of(shown))


def test_without_such_a_variant_the_report_says_nothing_of_it():
    assert study().unverified.empty
    assert "Not among them" not in visible(page_of(study()))
