"""Fits that several recommenders share."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from launchwise.learning.features import Domain
from launchwise.learning.fits import ROW, Fits
from launchwise.learning.recommender import Recommender
from launchwise.learning.recommenders import recommender_class
from launchwise.workloads.spec import Spec
from tests.support.samples import measurements, profile


@pytest.fixture(scope="module")
def domain(stencil_spec: Spec) -> Domain:
    return Domain(stencil_spec, {"test": profile()})


@pytest.fixture(scope="module")
def rows(domain: Domain) -> pd.DataFrame:
    table = measurements(domain.spec, [{"n": [64, 100], "dtype": ["float32"], "order": [2]}])
    table = table[table["status"] == "ok"].reset_index(drop=True)
    return table.assign(**{ROW: np.arange(len(table))})


def tree(domain: Domain, **parameters: int) -> Recommender:
    return recommender_class("tree")(domain, **parameters)


def test_equal_ones_are_fitted_once(domain: Domain, rows: pd.DataFrame) -> None:
    fits = Fits()
    first, seconds = fits.fit(tree(domain), rows)
    assert fits.fit(tree(domain), rows) == (first, seconds)
    others = [
        fits.fit(tree(domain, max_depth=2), rows),
        fits.fit(tree(domain), rows[rows["n"] == 64]),
        fits.fit(recommender_class("knn")(domain), rows),
        # Nobody knows which rows these are.
        fits.fit(tree(domain), rows.drop(columns=ROW)),
    ]
    assert all(fitted is not first for fitted, _ in others)


def test_a_committee_is_fitted_for_what_it_will_be_asked(
    domain: Domain, rows: pd.DataFrame
) -> None:
    fits = Fits()
    one, other = (
        fits.fit(recommender_class("committee")(domain, members="tree"), rows)[0] for _ in range(2)
    )
    assert one is not other


def test_what_is_saved_twice_takes_its_space_once(
    domain: Domain, rows: pd.DataFrame, tmp_path: Path
) -> None:
    fits = Fits()
    fitted, _ = fits.fit(tree(domain), rows)
    for place in ("a", "b/c"):
        fits.save(fitted, tmp_path / place)
    files = sorted(path.name for path in (tmp_path / "a").iterdir())
    assert files == sorted(path.name for path in (tmp_path / "b" / "c").iterdir())
    for name in files:
        assert (tmp_path / "a" / name).samefile(tmp_path / "b" / "c" / name)
    again = type(fitted).load(tmp_path / "b" / "c", domain)
    pd.testing.assert_frame_equal(again.rank(rows), fitted.rank(rows))


def test_what_is_fitted_anew_is_written_anew(
    domain: Domain, rows: pd.DataFrame, tmp_path: Path
) -> None:
    fits = Fits()
    few = rows[rows["n"] == 64]
    for place, learnt in (("a", rows), ("b", few)):
        fitted, _ = fits.fit(tree(domain), learnt)
        fits.save(fitted, tmp_path / place)
    first, second = (tmp_path / place / "model.npz" for place in ("a", "b"))
    assert first.read_bytes() != second.read_bytes()
