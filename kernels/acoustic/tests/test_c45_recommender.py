"""C4.5 as a recommender: what every kind has to do, and its examples."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from companions import domain as companions
from companions import measured
from recommending import Ground, RecommenderProtocol
from stencil import ASKED, FAR, TRAINED, cases, stencil_domain, training_rows

from kernels.acoustic.recommenders.c45 import C45Recommender
from launchwise.base.errors import UserError
from launchwise.learning.features import Domain
from launchwise.learning.search import held_out_time_error, search
from launchwise.workloads.spec import Spec


class TestC45(RecommenderProtocol):
    @pytest.fixture(scope="class")
    @classmethod
    def ground(cls, stencil_spec: Spec) -> Ground:
        domain = stencil_domain(stencil_spec)
        asked = (cases(TRAINED), cases(ASKED), FAR)
        return Ground(C45Recommender, domain, training_rows(stencil_spec), *asked, timed=False)


def test_a_classifier_is_searched_by_regret_all_the_same(
    domain: Domain, rows: pd.DataFrame
) -> None:
    options: dict[str, Any] = {"fixed": {}, "trials": 2, "folds": 3, "max_rows": 10**6, "seed": 1}
    by_time = search(C45Recommender, domain, rows, objective="time_error", **options)
    first = search(C45Recommender, domain, rows, **{**options, "trials": 1})
    assert by_time.value is not None
    assert first.value is not None
    assert by_time.value <= first.value


def test_every_row_is_an_example_of_weight_one(domain: Domain, rows: pd.DataFrame) -> None:
    every = C45Recommender(domain, examples="all").fit(rows).summary()
    near = C45Recommender(domain).fit(rows).summary()
    assert every["examples"] == len(rows) > near["examples"]
    tunables = domain.spec.tunable_columns
    assert every["classes"] == len(rows[tunables].drop_duplicates()) > near["classes"]


def test_classes_that_all_cases_have_alike_make_a_tree_of_one_leaf(
    domain: Domain, rows: pd.DataFrame
) -> None:
    # Each problem has one row per tile: knowing the problem says nothing of the tile.
    unpruned: dict[str, Any] = {"examples": "all", "confidence": 1.0}
    assert C45Recommender(domain, **unpruned).fit(rows).summary()["leaves"] == 1
    # Where a filter took the small tiles of large grids away, it does.
    cut = rows[(rows["n"] < 512) | (rows["tx"] > 1)].reset_index(drop=True)
    assert C45Recommender(domain, **unpruned).fit(cut).summary()["leaves"] > 1


def test_unknown_examples_are_refused(domain: Domain) -> None:
    with pytest.raises(UserError, match="unknown value 'some'"):
        C45Recommender(domain, examples="some")


def test_without_times_their_error_is_unknown(domain: Domain, rows: pd.DataFrame) -> None:
    assert np.isnan(held_out_time_error(C45Recommender(domain), rows, 3, 0)).all()


def test_it_counts_choices_not_their_companions() -> None:
    fitted = C45Recommender(companions("parts == m")).fit(measured(every=False))
    first = fitted.recommend("gpu", [{"m": 16}]).iloc[0]
    assert (first["width"], first["parts"]) == (4, 16)
