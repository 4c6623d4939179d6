"""Splits and grouped folds: what trains, what tests, and that nothing does both."""

import numpy as np
import pandas as pd
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from launchwise.base.errors import UserError
from launchwise.base.storage import write_json
from launchwise.experiment.study import ProblemSplit, Study, TransferSplit
from launchwise.learning.search import grouped_folds
from launchwise.learning.splits import (
    ALL,
    MOST_TRANSFER_FOLDS,
    among,
    asked_about,
    case_codes,
    cases_in,
    left_out_together,
    make_splits,
    read_folds,
)
from launchwise.workloads import space
from tests.support.samples import profile

SIZES, GPUS = (64, 100, 128, 200), ("a", "b", "c")

problems = st.builds(
    lambda n, dtype, order: (n, dtype, order),
    st.sampled_from(SIZES),
    st.sampled_from(["float32", "float64"]),
    st.sampled_from([2, 8]),
)
SMALL, LARGE = (64, "float32", 2), (200, "float32", 2)
# GPU to its measured problems, each with whether its baseline was measured too.
studies = st.dictionaries(
    st.sampled_from(GPUS), st.dictionaries(problems, st.booleans(), max_size=5), min_size=1
)


def sweep(spec, gpu, measured):
    """Two rows a problem: a baseline, measured or failed, and a block that was measured."""
    first = space.baseline(spec)
    other = {**first, "variant": "block3d", "bx": 64}
    rows = []
    for (n, dtype, order), with_baseline in measured.items():
        key = {"gpu": gpu, "n": n, "dtype": dtype, "order": order}
        status = "ok" if with_baseline else "failed"
        rows.append({**key, **first, "status": status, "time_ms": 2.0 if with_baseline else np.nan})
        rows.append({**key, **other, "status": "slow", "time_ms": 1.0})
    columns = [*spec.key_columns, "status", "time_ms"]
    return pd.DataFrame(rows, columns=columns)


def made(spec, study, split, **cards):
    """The only split, ``it``, of a study ``s``."""
    sweeps = {gpu: sweep(spec, gpu, measured) for gpu, measured in study.items()}
    profiles = {gpu: profile(gpu, device_name=cards.get(gpu, gpu)) for gpu in study}
    return make_splits("s", {"it": split}, spec, sweeps, profiles)["splits"]["it"]


def keys(cases):
    return [(case["gpu"], *(case["problem"][name] for name in ("n", "dtype", "order")))
            for case in cases]  # fmt: skip


def by_sizes(train, test):
    parts = {"train": {"n": sorted(train)}, "test": {"n": sorted(test)}}
    return ProblemSplit(kind="problems", title="x", **parts)


TRANSFER = TransferSplit(kind="leave_one_gpu_out", title="x")


@settings(max_examples=50)
@given(studies, st.sets(st.sampled_from(SIZES), min_size=1, max_size=3))
@example({"a": {SMALL: True, LARGE: True}, "b": {LARGE: True}, "c": {SMALL: True}, "d": {}}, {64})
def test_problem_split_is_disjoint_and_complete(stencil_spec, study, train):
    test = set(SIZES) - train
    learnt = {gpu: {p for p in measured if p[0] in train} for gpu, measured in study.items()}
    asked = {
        gpu: {p for p, baseline in measured.items() if p[0] in test and baseline}
        for gpu, measured in study.items()
    }
    # A GPU without test problems is learnt from; one without training problems is left out.
    used = [gpu for gpu in study if learnt[gpu] and asked[gpu]]
    if not used:
        with pytest.raises(UserError) as caught:
            made(stencil_spec, study, by_sizes(train, test))
        assert caught.value.key in ("studies.s.splits.it.train", "studies.s.splits.it.test")
        assert caught.value.key.endswith("train") or any(learnt.values())
        return
    found = made(stencil_spec, study, by_sizes(train, test))
    assert list(found["folds"]) == [ALL]
    fold = found["folds"][ALL]
    both = {part: keys(fold[part]) for part in ("train", "test")}
    assert not set(both["train"]) & set(both["test"])
    assert all(len(set(listed)) == len(listed) for listed in both.values())
    assert set(both["train"]) == {(gpu, *p) for gpu in study for p in learnt[gpu]}
    assert set(both["test"]) == {(gpu, *p) for gpu in used for p in asked[gpu]}
    assert set(found["skipped"]) == set(study) - set(used)
    for gpu, why in found["skipped"].items():
        # Nobody asks about the others: that nothing was learnt on one of them is not why.
        assert f"no {'training' if asked[gpu] else 'test'} problem" in why


@settings(max_examples=50)
@given(studies)
def test_leaving_a_gpu_out_is_disjoint_and_complete(stencil_spec, study):
    tested = [gpu for gpu, measured in study.items() if any(measured.values())]
    others = {gpu: {(g, *p) for g in study if g != gpu for p in study[g]} for gpu in tested}
    if len(study) < 2 or not tested or not all(others.values()):
        with pytest.raises(UserError, match=r"studies\.s\.splits\.it"):
            made(stencil_spec, study, TRANSFER)
        return
    found = made(stencil_spec, study, TRANSFER)
    assert list(found["folds"]) == tested
    assert set(found["skipped"]) == set(study) - set(tested)
    for gpu, fold in found["folds"].items():
        assert gpu not in {case["gpu"] for case in fold["train"]}
        assert set(keys(fold["train"])) == others[gpu]
        assert set(keys(fold["test"])) == {(gpu, *p) for p, base in study[gpu].items() if base}
        assert len(set(keys(fold["train"]))) == len(fold["train"])


def test_a_transfer_may_be_about_some_problems_only(stencil_spec):
    problems = {(n, "float32", 2): True for n in (100, 200, 300)}
    study = {"a": problems, "b": problems}
    some = TransferSplit(kind="leave_one_gpu_out", title="x", among={"n": [100, 300]})
    found = made(stencil_spec, study, some)
    for fold in found["folds"].values():
        assert {case["problem"]["n"] for case in fold["train"]} == {100, 300}
        assert {case["problem"]["n"] for case in fold["test"]} == {100, 300}
    named = {"workload": "stencil", "title": "x", "question": "x", "models": ["m"]}
    asked = Study.model_validate({**named, "splits": {"it": some}})
    rows = pd.concat([sweep(stencil_spec, gpu, measured) for gpu, measured in study.items()])
    assert set(rows[asked_about(asked, rows)]["n"]) == {100, 300}
    sizes = ProblemSplit(kind="problems", title="x", train={"n": [100]}, test={"n": [300]})
    both = asked.model_copy(update={"splits": {"it": sizes}})
    assert set(rows[asked_about(both, rows)]["n"]) == {100, 300}
    every = asked.model_copy(update={"splits": {"it": TRANSFER}})
    assert asked_about(every, rows).all()
    left = every.model_copy(update={"leave_out": {"a": {"n": [100]}, "c": {"n": [200]}}})
    kept = rows[asked_about(left, rows)]
    assert set(kept.loc[kept["gpu"] == "a", "n"]) == {200, 300}
    assert set(kept.loc[kept["gpu"] == "b", "n"]) == {100, 200, 300}
    nothing = TransferSplit(kind="leave_one_gpu_out", title="x", among={"n": [7]})
    with pytest.raises(UserError, match=r"studies\.s\.splits\.it"):
        made(stencil_spec, study, nothing)


def test_problems_left_out_of_a_gpu_take_no_part_on_it_alone(stencil_spec):
    measured = {(n, "float32", 2): True for n in (100, 200, 300)}
    sweeps = {gpu: sweep(stencil_spec, gpu, measured) for gpu in ("a", "b")}
    profiles = {gpu: profile(gpu, device_name=gpu) for gpu in sweeps}
    splits = {"sizes": by_sizes({100}, {200, 300}), "transfer": TRANSFER}
    content = make_splits("s", splits, stencil_spec, sweeps, profiles, None, {"b": {"n": [200]}})
    ((sizes,), transfer) = (content["splits"][name]["folds"].values() for name in splits)
    assert {(gpu, n) for gpu, n, *_ in keys(sizes["test"])} == {("a", 200), ("a", 300), ("b", 300)}
    for fold in transfer:
        for part in ("train", "test"):
            assert ("b", 200) not in {(gpu, n) for gpu, n, *_ in keys(fold[part])}


def test_a_problem_on_both_sides_is_an_error_of_one_line(stencil_spec):
    study = {"a": {(64, "float32", 2): True, (100, "float32", 2): True}}
    with pytest.raises(UserError) as caught:
        made(stencil_spec, study, by_sizes({64, 100}, {100}))
    message = str(caught.value)
    assert "studies.s.splits.it" in message
    assert "1 problems are in both training and test; the first is n=100" in message
    assert "on a" in message


def test_failed_and_wrong_rows_make_no_case(stencil_spec):
    rows = sweep(stencil_spec, "a", {(64, "float32", 2): True, (100, "float32", 2): True})
    rows = pd.concat([rows, rows.iloc[:1]], ignore_index=True)
    rows.loc[rows["n"] == 64, "status"] = ["failed", "wrong", "unverified"]
    sweeps = {"a": rows}
    with pytest.raises(UserError, match=r"splits\.it\.train"):
        make_splits("s", {"it": by_sizes({64}, {100})}, stencil_spec, sweeps, {"a": profile("a")})
    # The file that holds the split is blamed.
    asked = ({"it": by_sizes({64}, {100})}, stencil_spec, sweeps, {"a": profile("a")})
    with pytest.raises(UserError, match=r"^mine/study\.yaml: splits\.it\.train: no problem"):
        make_splits("s", *asked, {"it": ["mine/study.yaml", "splits.it"]})


def test_a_transfer_of_which_one_gpu_is_left_names_it(stencil_spec):
    measured = {(n, "float32", 2): True for n in (100, 200)}
    sweeps = {gpu: sweep(stencil_spec, gpu, measured) for gpu in ("a", "b.sm16", "b.sm32")}
    profiles = {gpu: profile(gpu, device_name=gpu[0]) for gpu in sweeps}
    asked = ({"it": TRANSFER}, stencil_spec, sweeps, profiles, None)
    with pytest.raises(UserError) as caught:
        make_splits("s", *asked, {gpu: {"n": [100, 200]} for gpu in ("b.sm16", "b.sm32")})
    assert "at least 2 GPUs, the sweeps hold only those of a" in str(caught.value)
    # Slices of the only card that is left are left out one by one.
    found = make_splits("s", *asked, {"a": {"n": [100, 200]}})["splits"]["it"]
    assert list(found["folds"]) == ["b.sm16", "b.sm32"]
    assert found["skipped"] == {"a": "no problem of the split was measured"}


@pytest.mark.parametrize(
    ("cards", "unseen"), [({}, 3), ({"a": "x", "b": "x"}, 2), ({"a": "x", "b": "x", "c": "x"}, 0)]
)
def test_only_folds_on_cards_of_their_own_count_as_unseen(stencil_spec, cards, unseen):
    study = {gpu: {(64, "float32", 2): True} for gpu in GPUS}
    assert made(stencil_spec, study, TRANSFER, **cards)["folds_on_unseen_cards"] == unseen


@pytest.mark.parametrize(
    ("cards", "groups"),
    [
        ({"a": "x", "b": "y"}, [["a"], ["b"]]),
        # A slice is no card: it must not be told by its own card.
        ({"a": "x", "a.sm72": "x", "b": "y"}, [["a", "a.sm72"], ["b"]]),
        # Nothing else is there to learn from.
        ({"a": "x", "a.sm72": "x"}, [["a"], ["a.sm72"]]),
        ({gpu: gpu for gpu in "abcdefgh"}, [["a", "g"], ["b", "h"], ["c"], ["d"], ["e"], ["f"]]),
    ],
)
def test_cards_are_left_out_whole(cards, groups):
    assert left_out_together(cards) == groups


@given(st.dictionaries(st.text("abcdefg", min_size=1), st.sampled_from("vwxyz"), min_size=2))
def test_every_gpu_is_left_out_once_in_few_folds(cards):
    groups = left_out_together(cards)
    assert sorted(gpu for group in groups for gpu in group) == sorted(cards)
    assert 2 <= len(groups) <= MOST_TRANSFER_FOLDS
    if len(set(cards.values())) > 1:
        places = [{cards[gpu] for gpu in group} for group in groups]
        assert sum(map(len, places)) == len(set(cards.values()))


def test_a_card_is_tested_with_its_slices_and_trained_without(stencil_spec):
    # One of them has no measured baseline to be tested against.
    study = {gpu: {(64, "float32", 2): gpu != "d"} for gpu in "abcd"}
    folds = made(stencil_spec, study, TRANSFER, a="x", b="x", d="x")["folds"]
    assert list(folds) == ["a", "c"]
    assert [one["gpu"] for one in folds["a"]["test"]] == ["a", "b"]
    assert [one["gpu"] for one in folds["a"]["train"]] == ["c"]


def test_folds_come_back_from_their_file(stencil_spec, tmp_path):
    study = {gpu: {(64, "float32", 2): True, (100, "float64", 8): True} for gpu in ("a", "b")}
    sweeps = {gpu: sweep(stencil_spec, gpu, measured) for gpu, measured in study.items()}
    splits = {"sizes": by_sizes({64}, {100}), "gpus": TRANSFER}
    profiles = {gpu: profile(gpu) for gpu in study}
    content = make_splits("s", splits, stencil_spec, sweeps, profiles)
    write_json(tmp_path / "splits.json", content)
    folds = read_folds(tmp_path / "splits.json")
    # Keys of JSON files are sorted; splits come back as the settings order them.
    named = [(fold.split, fold.fold) for fold in folds]
    assert named == [("sizes", ALL), ("gpus", "a"), ("gpus", "b")]
    assert [fold.fold for fold in read_folds(tmp_path / "splits.json", "sizes")] == [ALL]
    fold = next(fold for fold in folds if fold.fold == "b")
    assert {case.key for case in fold.train} == {("a", "float32", 64, 2), ("a", "float64", 100, 8)}
    assert {case.key for case in fold.test} == {("b", "float32", 64, 2), ("b", "float64", 100, 8)}


def test_a_file_whose_fold_tests_what_it_trains_or_of_something_else_is_refused(tmp_path):
    case = {"gpu": "a", "problem": {"n": 64, "dtype": "float32", "order": 2}}
    folds = {ALL: {"train": [case], "test": [case]}}
    write_json(tmp_path / "splits.json", {"order": ["it"], "splits": {"it": {"folds": folds}}})
    with pytest.raises(UserError, match="in both training and test"):
        read_folds(tmp_path / "splits.json")
    write_json(tmp_path / "splits.json", {"other": 1})
    with pytest.raises(UserError, match="not a file of splits"):
        read_folds(tmp_path / "splits.json")


@settings(max_examples=50)
@given(st.lists(st.tuples(st.sampled_from(GPUS), problems), max_size=25), st.data())
def test_rows_are_numbered_and_found_by_their_case(stencil_spec, named, data):
    rows = pd.DataFrame(
        [(gpu, *problem) for gpu, problem in named], columns=["gpu", "n", "dtype", "order"]
    )
    expected = [(gpu, dtype, n, order) for gpu, (n, dtype, order) in named]
    codes, found = case_codes(rows, stencil_spec)
    assert [found[code] for code in codes] == expected
    assert found == list(dict.fromkeys(expected))
    cases = cases_in(rows, stencil_spec)
    assert [case.key for case in cases] == found
    chosen = [case for case in cases if data.draw(st.booleans())]
    wanted = [key in {case.key for case in chosen} for key in expected]
    assert among(rows, chosen, stencil_spec).tolist() == wanted


@settings(max_examples=50)
@given(
    st.integers(2, 12).flatmap(
        lambda count: st.lists(st.integers(0, count - 1), max_size=40).flatmap(
            lambda more: st.permutations([*range(count), *more])
        )
    ),
    st.integers(2, 8),
    st.integers(0, 1000),
)
def test_grouped_folds_part_no_group_and_hold_each_out_once(listed, folds, seed):
    groups = np.array(listed)
    held_out = []
    sizes = []
    for train, held in grouped_folds(groups, folds, seed):
        assert sorted([*train, *held]) == list(range(len(groups)))
        assert not set(groups[train]) & set(groups[held])
        held_out += sorted(set(groups[held].tolist()))
        sizes.append(len(set(groups[held].tolist())))
    assert sorted(held_out) == list(range(max(listed) + 1))
    assert len(sizes) == min(folds, max(listed) + 1)
    assert max(sizes) - min(sizes) <= 1


@pytest.mark.parametrize("groups", [[], [0, 0, 0]])
def test_grouped_folds_of_one_group_are_refused(groups):
    with pytest.raises(ValueError, match="at least 2 groups"):
        list(grouped_folds(np.array(groups, dtype=np.int64), 3, 0))
