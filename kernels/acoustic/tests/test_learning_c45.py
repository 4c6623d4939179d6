"""C4.5 where Weka's recorded trees tell nothing (``tests/benchmarks``), and as a recommender."""

import json

import numpy as np
import pytest
from companions import domain as companions
from companions import measured
from hypothesis import given
from hypothesis import strategies as st
from recommending import Ground, RecommenderProtocol
from stencil import ASKED, FAR, TRAINED, cases, stencil_domain, training_rows

from kernels.acoustic.recommenders.c45 import C45Recommender
from kernels.acoustic.recommenders.c45.tree import C45Tree, added_errors
from launchwise.learning.features import Domain
from launchwise.learning.recommenders._trees import TreeRecommender
from launchwise.learning.search import best_of, held_out_time_error, search
from launchwise.learning.splits import case_numbers

examples = st.lists(
    st.tuples(
        st.tuples(st.integers(0, 4), st.integers(0, 4)), st.integers(0, 2), st.integers(1, 3)
    ),
    min_size=1,
    max_size=30,
)


def grown(rows, weights=None, **options):
    features = np.array([features for features, _ in rows], dtype=float)
    classes = np.array([number for _, number in rows])
    return C45Tree(**options).fit(
        features, classes, np.ones(len(rows)) if weights is None else np.array(weights)
    )


def leaves(node):
    if node.is_leaf:
        yield node
    for child in node.children:
        yield from leaves(child)


def test_the_threshold_is_that_of_largest_gain():
    rows = [((value,), int(value > 4)) for value in (1, 2, 3, 4, 5, 6, 7, 8)]
    tree = grown(rows)
    assert tree.leaves == 2
    # The largest value of the training set that is not above it, as Release 8 has it.
    assert tree.root.threshold == 4


@given(examples, st.sampled_from([0.1, 0.25, 1.0]))
def test_a_row_of_weight_two_equals_the_row_twice(drawn, confidence):
    # In quarters: where a row weighs more than 1, J48 counts rows and not weights, and so do we.
    rows = [(features, number) for features, number, _ in drawn]
    weights = [weight / 4 for _, _, weight in drawn]
    repeated = [(features, number) for features, number, weight in drawn for _ in range(weight)]
    options = {"confidence": confidence, "minimum": 0.5}
    quarters = grown(repeated, [0.25] * len(repeated), **options)
    assert grown(rows, weights, **options).plain() == quarters.plain()


def test_estimated_errors_are_those_of_quinlans_table():
    # U_25%(0, N) of the book's example: 6 x .206, 9 x .143, 1 x .750; U_25%(1, 16) = .157.
    assert added_errors(6, 0, 0.25) / 6 == pytest.approx(0.206, abs=5e-4)
    assert added_errors(9, 0, 0.25) / 9 == pytest.approx(0.143, abs=5e-4)
    assert added_errors(1, 0, 0.25) == pytest.approx(0.75)
    assert (1 + added_errors(16, 1, 0.25)) / 16 == pytest.approx(0.157, abs=3e-3)
    assert added_errors(16, 1, 0.6) == 0.0


@given(
    st.floats(1, 100), st.floats(0, 1), st.floats(0.02, 0.24), st.floats(0.26, 0.5)
)  # fmt: skip
def test_less_confidence_adds_more_errors(total, share, low, high):
    errors = share * total / 2
    assert added_errors(total, errors, low) >= added_errors(total, errors, high) - 1e-9
    assert added_errors(total, errors, high) >= -1e-9


def test_a_branch_that_takes_the_place_of_its_parent_is_pruned_again():
    # The root's larger branch takes its place; with all 13 examples it is not worth its split:
    # .1 less than the 6.715 estimated errors of one leaf would be too little.
    rows = [
        *[((0, 2, 0), 1), ((2, 0, 2), 0), ((0, 0, 2), 0), ((2, 1, 1), 0), ((1, 1, 1), 0)],
        *[((0, 0, 2), 1), ((1, 2, 0), 0), ((0, 0, 1), 1), ((0, 0, 0), 0), ((1, 0, 1), 1)],
        *[((0, 2, 1), 0), ((2, 1, 2), 0), ((1, 0, 1), 1)],
    ]
    assert 5 + added_errors(13, 5, 0.25) == pytest.approx(6.715, abs=1e-3)
    assert grown(rows).leaves == 1


def test_a_split_that_saves_no_error_is_collapsed():
    # 0 is the majority on both sides: the split gains bits and no correct answer.
    rows = [((0,), 0)] * 20 + [((1,), 0)] * 6 + [((1,), 1)] * 5
    assert grown(rows, confidence=1.0).leaves == 2
    assert grown(rows, confidence=0.6).leaves == 1


@given(examples, st.sampled_from([2.0, 3.5]))
def test_every_leaf_holds_the_minimum(drawn, minimum):
    rows = [(features, number) for features, number, _ in drawn]
    weights = [float(weight) for _, _, weight in drawn]
    tree = grown(rows, weights, minimum=minimum, confidence=1.0)
    held = [leaf.distribution.sum() for leaf in leaves(tree.root)]
    assert sum(held) == pytest.approx(sum(weights))
    assert len(held) == 1 or min(held) >= minimum - 1e-9


@given(examples)
def test_shares_are_those_of_the_examples_in_the_leaf(drawn):
    rows = [(features, number) for features, number, _ in drawn]
    tree = grown(rows, confidence=1.0)
    asked = np.array([features for features, _ in rows], dtype=float)
    found = tree.distributions(asked)
    classes = np.array([number for _, number in rows])
    for shares in np.unique(found, axis=0):
        # Unpruned leaves with the same shares: together they hold examples in those shares.
        there = classes[(found == shares).all(axis=1)]
        counted = np.bincount(there, minlength=len(shares)) / len(there)
        assert counted == pytest.approx(shares)


@given(examples)
def test_a_tree_comes_back_from_json(drawn):
    tree = grown([(features, number) for features, number, _ in drawn])
    again = C45Tree().restore(json.loads(json.dumps(tree.plain())))
    asked = np.array([[x, y] for x in np.arange(-1, 6, 0.5) for y in np.arange(-1, 6, 0.5)])
    assert again.distributions(asked).tolist() == tree.distributions(asked).tolist()
    assert again.leaves == tree.leaves


class TestC45(RecommenderProtocol):
    @pytest.fixture(scope="class")
    @classmethod
    def ground(cls, stencil_spec):
        domain = stencil_domain(stencil_spec)
        asked = (cases(TRAINED), cases(ASKED), FAR)
        return Ground(C45Recommender, domain, training_rows(stencil_spec), *asked, timed=False)


def test_a_classifier_is_searched_by_regret_all_the_same(domain, rows):
    options = {"fixed": {}, "trials": 2, "folds": 3, "max_rows": 10**6, "seed": 1}
    by_time = search(C45Recommender, domain, rows, objective="time_error", **options)
    first = search(C45Recommender, domain, rows, **{**options, "trials": 1})
    assert by_time.value <= first.value


def test_every_row_is_an_example_of_weight_one(domain, rows):
    every = C45Recommender(domain, examples="all").fit(rows).summary()
    near = C45Recommender(domain).fit(rows).summary()
    assert every["examples"] == len(rows) > near["examples"]
    tunables = domain.spec.tunable_columns
    assert every["classes"] == len(rows[tunables].drop_duplicates()) > near["classes"]


def test_classes_that_all_cases_have_alike_make_a_tree_of_one_leaf(domain, rows):
    # Each problem has one row per tile: knowing the problem says nothing of the tile.
    unpruned = {"examples": "all", "confidence": 1.0}
    assert C45Recommender(domain, **unpruned).fit(rows).summary()["leaves"] == 1
    # Where a filter took the small tiles of large grids away, it does.
    cut = rows[(rows["n"] < 512) | (rows["tx"] > 1)].reset_index(drop=True)
    assert C45Recommender(domain, **unpruned).fit(cut).summary()["leaves"] > 1


def test_without_times_their_error_is_unknown(domain, rows):
    assert np.isnan(held_out_time_error(C45Recommender(domain), rows, 3, 0)).all()


def test_it_counts_choices_not_their_companions():
    fitted = C45Recommender(companions("parts == m")).fit(measured(every=False))
    first = fitted.recommend("gpu", [{"m": 16}]).iloc[0]
    assert (first["width"], first["parts"]) == (4, 16)


FEATURES = ["tx", "n", "gpu_sms"]


def test_models_use_the_named_features_and_no_others(domain, rows):
    few = Domain(domain.spec, domain.profiles, only_features=FEATURES)
    assert set(few.features(rows)) == set(FEATURES)
    assert few.problem_features == ["n", "gpu_sms"]
    assert few.gpu_features == ["gpu_sms"]
    whole = domain.features(rows)
    assert few.features(rows).equals(whole[list(few.features(rows))])
    assert len(whole.columns) > 2 * len(FEATURES)
    # Beside rows that hold features of a search, too.
    assert set(few.features(few.keeping_features(rows))) == set(FEATURES)


def test_the_error_of_predicted_times_is_of_held_out_cases(domain, rows):
    class Constant(TreeRecommender):
        def fit_rows(self, features, target, weights):
            self.low = float(target.min())

        def predict_rows(self, features):
            return np.full(len(features), 2 * self.low)

    flat = rows.assign(time_ms=3.0)
    found = held_out_time_error(Constant(domain, target="time"), flat, 3, 0)
    assert found == pytest.approx(np.ones(case_numbers(rows, domain.spec).max() + 1))


def test_a_search_by_predicted_times_takes_the_best_trial(domain, rows):
    options = {"folds": 3, "max_rows": 10**6, "seed": 1, "objective": "time_error"}
    fixed = {"target": "time"}
    found, first = (
        search(TreeRecommender, domain, rows, fixed=fixed, trials=trials, **options)
        for trials in (6, 1)
    )
    assert found.value <= first.value
    chosen = TreeRecommender(domain, **{**found.parameters, **fixed, "seed": 1})
    assert found.value == pytest.approx(held_out_time_error(chosen, rows, 3, 1).mean())


def test_the_first_of_equal_trials_is_the_best():
    assert best_of([np.array([2.0, 2.0]), np.array([1.0, 2.0]), np.array([2.0, 1.0])]) == 1
