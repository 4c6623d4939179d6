"""The cap of rows per fit: which rows stay, whatever the rows."""

from collections import Counter

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from launchwise.base.errors import UserError
from launchwise.learning.features import Domain
from launchwise.learning.fitting import ALL_ROWS, FASTEST, FEWEST, RowCap, in_turn, quota
from launchwise.learning.splits import case_numbers
from tests.support.samples import measurements, profile

KEYS = st.lists(
    st.tuples(st.sampled_from("abcde"), st.integers(1, 12), st.sampled_from(["float32", "x"])),
    min_size=1,
    unique=True,
)
SEEDS = st.integers(0, 2**31 - 1)
GPUS = ("a", "b", "c")


@pytest.fixture(scope="module")
def domain(stencil_spec):
    return Domain(stencil_spec, {gpu: profile(gpu) for gpu in GPUS})


@pytest.fixture(scope="module")
def rows(domain):
    """Four problems on three GPUs, far more configurations of each than must stay."""
    blocks = [{"n": [100, 130], "dtype": ["float32", "float64"], "order": [2]}]
    table = measurements(domain.spec, blocks)
    table = table[table["status"] == "ok"]
    times = np.random.default_rng(1).lognormal(size=(len(GPUS), len(table)))
    named = [table.assign(gpu=gpu, time_ms=own) for gpu, own in zip(GPUS, times, strict=True)]
    return pd.concat(named, ignore_index=True)


def names(rows, spec):
    return set(rows[spec.key_columns].itertuples(index=False, name=None))


def test_at_most_as_many_rows_as_allowed_stay_as_they_are(domain, rows):
    assert ALL_ROWS.applied(rows, domain, "it") is rows
    assert RowCap(len(rows)).applied(rows, domain, "it") is rows


@settings(max_examples=10)
@given(share=st.floats(0.01, 0.99), seed=SEEDS, order=SEEDS)
def test_what_stays(domain, rows, share, seed, order):
    spec, cap = domain.spec, RowCap(max(3 * FEWEST, int(share * len(rows))), seed)
    kept = cap.applied(rows, domain, "it")
    shuffled = rows.sample(frac=1, random_state=order).reset_index(drop=True)
    assert names(cap.applied(shuffled, domain, "it"), spec) == names(kept, spec)
    cases = case_numbers(rows, spec)
    numbers = kept.merge(rows[spec.key_columns].assign(case=cases))["case"].to_numpy()
    sizes = np.bincount(cases)
    of_case = np.bincount(numbers, minlength=len(sizes))
    assert len(kept) <= cap.most
    if quota(sizes, cap.most) >= FEWEST:
        assert len(kept) == cap.most
        each = quota(sizes, cap.most)
        assert (of_case >= np.minimum(sizes, each)).all()
        assert (of_case <= each + 1).all()
    else:
        assert set(of_case) <= {0, FEWEST}
    assert set(kept["gpu"]) == set(GPUS)
    wanted = domain.is_usual(rows) | domain.is_baseline(rows)
    ranks = rows.groupby(cases)["time_ms"].rank(method="first")
    must = rows[(wanted | (ranks <= FASTEST)) & np.isin(cases, np.flatnonzero(of_case))]
    assert names(must, spec) <= names(kept, spec)


def test_fewer_rows_than_a_problem_of_each_gpu_has_are_refused_in_one_line(domain, rows):
    cap = RowCap(3 * FEWEST - 1, where="config/mine.yaml")
    with pytest.raises(UserError) as caught:
        cap.applied(rows, domain, "fold paper/all")
    assert str(caught.value) == (
        "config/mine.yaml: max_rows_per_fit: is 191, but fold paper/all needs at least 192 rows, "
        "of one problem of each of its 3 GPUs"
    )


def test_each_further_model_of_card_makes_room(domain, rows):
    cards = {
        gpu: one.model_copy(update={"device_name": gpu}) for gpu, one in domain.profiles.items()
    }
    own = Domain(domain.spec, cards)
    most = len(rows) // 2
    assert len(RowCap(most).applied(rows, domain, "it")) == most
    assert len(RowCap(most).applied(rows, own, "it")) == 3 * most // 2
    two = rows[rows["gpu"] != "c"].reset_index(drop=True)
    assert len(RowCap(most).applied(two, own, "it")) == most


@given(KEYS, SEEDS)
def test_gpus_take_turns(keys, seed):
    order, many = in_turn(keys, seed)
    assert sorted(order) == list(range(len(keys)))
    of_gpu = Counter(key[0] for key in keys)
    assert many == len(of_gpu)
    taken = Counter()
    for place in order:
        gpu = keys[place][0]
        # No GPU is ahead of one that still has problems.
        assert all(taken[other] >= taken[gpu] for other in of_gpu if taken[other] < of_gpu[other])
        taken[gpu] += 1


@pytest.mark.parametrize(("gpus", "problems"), [(4, 12), (5, 12), (12, 5), (3, 3)])
def test_gpus_of_the_same_problems_keep_different_ones(gpus, problems):
    keys = [(f"gpu{gpu:02d}", problem) for gpu in range(gpus) for problem in range(problems)]
    order, _ = in_turn(keys, 7)
    chosen = [keys[place] for place in order[: -(-problems // gpus) * gpus]]
    assert {problem for _, problem in chosen} == set(range(problems))
