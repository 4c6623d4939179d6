"""Choosing without the test: situations, plans, and answers that keep to what is usual."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from launchwise.learning.choosing.plans import (
    HeldOut,
    centre_and_spread,
    chosen_plan,
    conformal_offsets,
)
from launchwise.learning.choosing.situations import Known, drawn, validation_folds
from samples import profile
from spaces import made

from launchwise.base.errors import UserError
from launchwise.learning.baselines import BestOnAverage, NearestSize
from launchwise.learning.features import Domain
from launchwise.learning.recommender import Tried
from launchwise.learning.recommenders import recommender_class
from launchwise.learning.splits import Case, case_numbers

WIDTHS = [1, 2, 4, 8, 16]
SPEC = made({"width": WIDTHS}, {"plain": (["width"], [])}, width=1)
GPUS = ("one", "two", "three")
SIZES = [2**power for power in range(4, 16)]
PROFILES = {gpu: profile(gpu, sms=10 * (place + 1)) for place, gpu in enumerate((*GPUS, "new"))}


def domain(usual: int = 4) -> Domain:
    rule = {"reason": "r", "configuration": {"variant": "plain", "width": usual}}
    return Domain(SPEC, PROFILES, usual=[rule])


def measured(best: Any, gpus: tuple[str, ...] = GPUS, noise: float = 0.0) -> pd.DataFrame:
    """Times of all widths; ``best`` gives the best width of a size."""
    random = np.random.default_rng(0)
    rows = [
        {
            **{"gpu": gpu, "m": m, "variant": "plain", "width": width, "status": "ok"},
            "time_ms": m
            * (1 + 0.3 * abs(np.log2(width / best(m))))
            * float(np.exp(noise * random.standard_normal())),
        }
        for gpu in gpus
        for m in SIZES
        for width in WIDTHS
    ]
    return pd.DataFrame(rows).astype({"gpu": object, "variant": object})


def fitted(rows: pd.DataFrame, usual: int = 4, members: str = "knn, tree, nearest_size") -> Any:
    committee = recommender_class("committee")(domain(usual), members=members)
    return committee.fit(rows)


# Situations


def test_a_question_is_within_beyond_or_of_a_new_gpu() -> None:
    known = Known.of(measured(lambda m: 4), SPEC)
    asked = pd.DataFrame(
        {"gpu": ["one", "one", "one", "new", "new"], "m": [20, 8, 2**15 + 1, 20, 8]}
    )
    found = known.situations(asked).tolist()
    assert found == ["within", "beyond", "beyond", "new_gpu", "new_gpu"]


@pytest.mark.parametrize("situation", ["within", "beyond", "new_gpu"])
def test_held_out_cases_lie_to_the_rest_as_the_question_to_all(situation: Any) -> None:
    rows = measured(lambda m: 4)
    folds = validation_folds(rows, SPEC, situation, 3, 0)
    for train, held in folds:
        one, other = rows.iloc[train], rows.iloc[held]
        if situation == "new_gpu":
            assert not set(one["gpu"]) & set(other["gpu"])
        else:
            assert not set(one["m"]) & set(other["m"])
            assert set(one["gpu"]) == set(other["gpu"])
        if situation == "beyond":
            assert one["m"].max() < other["m"].min()
    held_out = np.concatenate([held for _, held in folds])
    assert len(set(held_out.tolist())) == len(held_out)
    assert situation == "beyond" or len(held_out) == len(rows)


def test_drawn_rows_are_whole_cases_of_every_gpu() -> None:
    rows = measured(lambda m: 4)
    few = drawn(rows, SPEC, 40, 0)
    assert set(few["gpu"]) == set(GPUS)
    assert len(few) <= 40 or few.groupby("gpu").size().max() == len(WIDTHS)
    assert (few.groupby(["gpu", "m"]).size() == len(WIDTHS)).all()


# Plans


def held_out(losses: dict[str, list[list[float]]], times: list[list[float]]) -> HeldOut:
    """Cases of three candidates, the first of them usual."""
    return HeldOut(
        cases=np.repeat(np.arange(len(times)), 3),
        losses={name: np.ravel(each).astype(float) for name, each in losses.items()},
        times_ms=np.ravel(times).astype(float),
        usual=np.tile([True, False, False], len(times)),
    )


def test_the_best_three_answer_where_they_are_clearly_better() -> None:
    times = [[1.0, 2.0, 0.5]] * 10
    right, wrong = [[0.0, 0.7, -0.7]] * 10, [[0.0, -2.0, 0.5]] * 10
    losses = {"a": wrong, "b": right, "c": right, "d": right, "e": wrong}
    plan = chosen_plan(held_out(losses, times), list(losses))
    assert plan.members == ("b", "c", "d")
    assert (plan.loss, plan.harmed, plan.abstained) == (0.0, 0, 0)


def test_cases_that_were_held_out_together_are_no_independent_evidence() -> None:
    # Three members are right in eight cases of one size, and lose in one case each of three others:
    # by cases they are clearly better, by sizes they are not.
    times = [[1.0, 2.0, 0.5]] * 8 + [[1.0, 1.2, 1.0]] * 3
    bold = [[0.0, 0.7, -0.7]] * 8 + [[0.0, -0.3, 0.7]] * 3
    losses = {**dict.fromkeys("abc", bold), **dict.fromkeys("defg", [[0.0, 0.7, 0.6]] * 11)}
    alone = held_out(losses, times)
    together = dataclasses.replace(alone, units=np.repeat([0, 1, 2, 3], [24, 3, 3, 3]))
    assert chosen_plan(alone, list(losses)).members == ("a", "b", "c")
    assert chosen_plan(together, list(losses)).members == tuple(losses)
    assert together.by_unit(np.arange(11.0)).tolist() == [3.5, 8.0, 9.0, 10.0]


def test_where_nothing_tells_plans_apart_all_members_answer() -> None:
    losses = {name: [[0.0, 0.7, -0.7]] * 10 for name in "abcde"}
    plan = chosen_plan(held_out(losses, [[1.0, 2.0, 0.5]] * 10), list(losses))
    assert plan.members == tuple("abcde")


@pytest.mark.parametrize(
    ("cases", "wrong", "members"), [(7, 1.0, ("b",)), (7, -1.0, ("a", "b")), (9, 1.0, ("a", "b"))]
)
def test_few_cases_choose_between_all_members_and_one(
    cases: int, wrong: float, members: tuple[str, ...]
) -> None:
    # In one case of all, the mean of both is wrong, or the cautious member alone; that is less than
    # one standard error.
    usual = [[0.0, 0.7, -0.7]] * (cases - 1)
    bold = [*usual, [0.0, -wrong, 0.1]]
    careful = [*usual, [0.0, 0.3 * wrong, 0.1]]
    held = held_out({"a": bold, "b": careful}, [[1.0, 2.0, 0.5]] * (cases - 1) + [[1.0, 1.5, 1.1]])
    assert chosen_plan(held, ["a", "b"], "b").members == members


def test_where_members_disagree_the_usual_choice_stays() -> None:
    losses = {"a": np.array([0.0, -0.5, 0.1]), "b": np.array([0.0, 0.4, 0.1])}
    centre, spread = centre_and_spread(losses, ["a", "b"])
    assert centre.tolist() == pytest.approx([0.0, -0.05, 0.1])
    assert (centre + 0.5 * spread).argmin() == 0


def test_losses_against_the_usual_choice_weigh_more_than_missed_gains() -> None:
    # Half of the time the bold member finds 10 %, half of the time it loses as much.
    times = [[1.0, 0.9, 2.0], [1.0, 1.1, 2.0]] * 10
    bold, shy = [[0.0, -0.1, 1.0]] * 20, [[0.0, 0.1, 1.0]] * 20
    plan = chosen_plan(held_out({"bold": bold, "shy": shy}, times), ["bold", "shy"])
    assert plan.harmed == 0
    assert plan.abstained == 20


def test_a_loss_that_sweeps_cannot_resolve_does_not_count_as_one() -> None:
    # One time in ten the bold member finds 25 %, else it loses 1.5 %: more than it finds, if three
    # times as much counted.
    times = [[1.0, 0.8, 2.0], *[[1.0, 1.015, 2.0]] * 9] * 20
    bold, shy = [[0.0, -0.2, 1.0]] * 200, [[0.0, 0.1, 1.0]] * 200
    plan = chosen_plan(held_out({"bold": bold, "shy": shy}, times), ["bold", "shy"])
    assert (plan.caution, plan.harmed, plan.abstained) == (0.0, 0, 0)


def test_the_interval_is_that_of_cases_that_were_not_answered_by_the_usual_choice() -> None:
    # Times are off their prediction by -19 to 19 %; as many cases keep the usual choice.
    off = np.arange(-19, 20) / 100
    answered = [[1.0, 2.0, float(np.exp(-0.7 - each))] for each in off]
    losses = [[0.0, 0.7, -0.7]] * 39 + [[0.0, 0.5, 0.5]] * 39
    plan = chosen_plan(held_out({"a": losses}, answered + [[1.0, 2.0, 2.0]] * 39), ["a"])
    assert plan.abstained == 39
    # The second smallest and the second largest of 39, over the least spread, 1 %.
    assert plan.offsets == pytest.approx((-18, 18))


@given(st.integers(19, 400), st.integers(0, 10_000))
def test_offsets_hold_about_nine_of_ten_of_the_next_errors(count: int, seed: int) -> None:
    errors = np.random.default_rng(seed).uniform(size=count)
    found = conformal_offsets(errors)
    assert found is not None
    low, high = found
    assert 0 <= low < high <= 1
    # Of uniform errors the share inside is the width: exact on average, Beta around it.
    assert high - low == pytest.approx(0.9, abs=4 * (0.1 / count) ** 0.5)


def test_few_errors_give_no_interval() -> None:
    assert conformal_offsets(np.arange(18.0)) is None


# The committee


def test_it_finds_what_changes_with_the_size_and_says_what_it_expects() -> None:
    committee = fitted(measured(lambda m: 16 if m >= 256 else 1, noise=0.01))
    found = committee.recommend("one", [{"m": 3000}, {"m": 24}])
    assert found[found["rank"] == 1]["width"].tolist() == [16, 1]
    ranking = committee.ranking(committee.domain.choices([Case("one", {"m": 3000})]))
    expected, least, most = ranking.gains[ranking.order[0]]
    assert least < expected < most
    assert least < 1.6 < most


def test_members_have_hyper_parameters_of_their_own(tmp_path: Path) -> None:
    asked = {"members": "knn, tree", "tree.max_depth": 1, "tree.seed": 5}
    committee = recommender_class("committee")(domain(), **asked)
    committee.fit(measured(lambda m: 4)).save(tmp_path)
    again = recommender_class("committee").load(tmp_path, domain())
    assert again.get_params()["tree.max_depth"] == 1
    written = {path.parent.name: path for path in tmp_path.glob("*/recommender.json")}
    of = {name: json.loads(path.read_text())["parameters"] for name, path in written.items()}
    assert (of["tree"]["max_depth"], of["tree"]["seed"]) == (1, 5)
    assert of["tree"].keys() == recommender_class("tree").defaults.keys()
    assert of["knn"] == recommender_class("knn").defaults
    with pytest.raises(UserError, match=r"models\.parameters\.forest\.seed: unknown member"):
        recommender_class("committee")(domain(), members="knn", **{"forest.seed": 3})


def test_beyond_the_sizes_it_learnt_from_it_states_no_interval() -> None:
    committee = recommender_class("committee")(domain(usual=1), members="knn, tree")
    # The plan for sizes within answers beyond them, too.
    committee.expect([Case("one", {"m": 100})])
    committee.fit(measured(lambda m: 8, noise=0.01))
    assert set(committee.summary()["plans"]) == {"within"}
    for m, known in ((SIZES[-1] - 1, True), (SIZES[-1] + 1, False), (SIZES[0] - 1, False)):
        ranking = committee.ranking(committee.domain.choices([Case("one", {"m": m})]))
        expected, *interval = ranking.gains[ranking.order[0]]
        assert expected > 1.2
        assert np.isfinite(interval).all() == np.isfinite(interval).any() == known


def test_where_nothing_beats_it_the_usual_choice_is_the_answer() -> None:
    committee = fitted(measured(lambda m: 4, noise=0.05), usual=4)
    found = committee.recommend("one", [{"m": m + 3} for m in SIZES[2:-2]])
    assert (found[found["rank"] == 1]["width"] == 4).all()
    ranking = committee.ranking(committee.domain.choices([Case("one", {"m": 3000})]))
    assert ranking.gains[ranking.order[0]].tolist() == [1.0, 1.0, 1.0]


def test_a_new_gpu_is_answered_by_a_plan_of_its_own() -> None:
    committee = fitted(measured(lambda m: 8))
    assert set(committee.summary()["plans"]) == {"within", "beyond", "new_gpu"}
    found = committee.recommend("new", [{"m": 100}])
    assert found["width"].iloc[0] == 8


def test_a_new_gpu_is_answered_by_all_members_where_nothing_could_be_held_out() -> None:
    rows = measured(lambda m: 8, GPUS[:1])
    rows = rows[rows["m"] == SIZES[3]].reset_index(drop=True)
    committee = fitted(rows)
    asked = rows.assign(gpu="new")
    members = [recommender_class("knn"), recommender_class("tree"), NearestSize, BestOnAverage]
    losses = np.array([kind(domain()).fit(rows).losses(asked) for kind in members])
    mean = (losses - losses[:, [WIDTHS.index(4)]]).mean(axis=0)
    assert committee.judge(asked).gains[:, 0] == pytest.approx(np.exp(-mean))
    # Of a known GPU the best on average alone: sizes beyond the only one say nothing of models.
    assert committee.judge(rows.assign(m=SIZES[4])).gains[2, 0] == 1


def test_another_card_than_the_one_that_was_sliced_has_no_interval() -> None:
    cards = {gpu: profile(gpu, device_name="one card", sms=10 * n) for n, gpu in enumerate(GPUS, 1)}
    cards["slice"] = profile("slice", device_name="one card", sms=5)
    cards["other"] = profile("other", device_name="another card", sms=50)
    rule = {"reason": "r", "configuration": {"variant": "plain", "width": 1}}
    of_card = Domain(SPEC, cards, usual=[rule])
    committee = recommender_class("committee")(of_card, members="knn, tree")
    committee.fit(measured(lambda m: 8, noise=0.01))
    for gpu, known in (("slice", True), ("other", False)):
        rows = of_card.choices([Case(gpu, {"m": 100})])
        ranking = committee.ranking(rows)
        first = ranking.order[:1]
        assert np.isfinite(ranking.gains[first, 0]).all()
        assert np.isfinite(ranking.gains[first, 1:]).all() == known
        times = committee.time_interval(rows.iloc[first], ranking.predicted_ms[first])
        assert np.isfinite(times).all() == known


def committee_of_cards() -> Any:
    """A committee that knows each GPU as a card of its own."""
    cards = {gpu: profile(gpu, device_name=gpu, sms=one.sms) for gpu, one in PROFILES.items()}
    rule = {"reason": "r", "configuration": {"variant": "plain", "width": 4}}
    return recommender_class("committee")(Domain(SPEC, cards, usual=[rule]), members="knn, tree")


def saved(folder: Path, rows: pd.DataFrame, test: list[Case]) -> Path:
    """A committee that was fitted to a fold, in a folder."""
    committee = committee_of_cards()
    committee.expect(test)
    committee.fit(rows).save(folder)
    return folder


def test_fitted_to_all_it_takes_over_what_folds_chose(tmp_path: Path) -> None:
    rows = measured(lambda m: 8 if m > 300 else 2, noise=0.02)
    sizes, of_three = rows["m"] != 64, rows["gpu"] == "three"
    within = saved(tmp_path / "sizes", rows[sizes], [Case("one", {"m": 64})])
    without = saved(tmp_path / "three", rows[~of_three], [Case("three", {"m": 64})])
    final = committee_of_cards()
    final.inherit([Tried(within, rows[~sizes]), Tried(without, rows[of_three])])
    final.fit(rows)
    plans = final.summary()["plans"]
    chosen = json.loads((within / "recommender.json").read_text())["state"]["plans"]
    assert plans["within"] == chosen["within"]
    # What a fold did not learn from, and not its own held-out cases: of the GPU that it left out.
    assert plans["new_gpu"]["cases"] == len(SIZES)
    # No fold was asked beyond its sizes.
    assert plans["beyond"]["cases"] > 0


def test_cases_of_several_left_out_gpus_are_told_apart(tmp_path: Path) -> None:
    rows = measured(lambda m: 8, noise=0.02)
    tried = []
    for gpu in ("two", "three"):
        held = rows["gpu"] == gpu
        without = saved(tmp_path / gpu, rows[~held], [Case(gpu, {"m": 64})])
        tried.append(Tried(without, rows[held]))
    final = committee_of_cards()
    final.inherit(tried)
    assert final.fit(rows).summary()["plans"]["new_gpu"]["cases"] == 2 * len(SIZES)


def test_what_a_left_out_gpu_says_decides_the_plan_for_new_ones(tmp_path: Path) -> None:
    rows = measured(lambda m: 8, noise=0.02)
    held = rows["gpu"] == "three"
    without = saved(tmp_path / "three", rows[~held], [Case("three", {"m": 64})])
    losses = []
    for best in (8, 1):
        final = committee_of_cards()
        final.inherit([Tried(without, measured(lambda m, best=best: best, ("three",)))])
        losses.append(final.fit(rows).summary()["plans"]["new_gpu"]["loss"])
    assert losses[0] < 0.05 < losses[1]


def test_of_one_card_it_validates_by_itself(tmp_path: Path) -> None:
    cards = {gpu: profile(gpu, device_name="one card", sms=10 * n) for n, gpu in enumerate(GPUS, 1)}
    rule = {"reason": "r", "configuration": {"variant": "plain", "width": 1}}
    rows = measured(lambda m: 8, noise=0.02)
    plans = []
    for tried in ([Tried(tmp_path / "never read", rows)], []):
        committee = recommender_class("committee")(Domain(SPEC, cards, usual=[rule]), members="knn")
        committee.inherit(tried)
        plans.append(committee.fit(rows).summary()["plans"])
    assert plans[0] == plans[1]
    assert set(plans[0]) == {"within", "beyond", "new_gpu"}


def test_only_what_will_be_asked_is_validated() -> None:
    committee = recommender_class("committee")(domain(), members="knn, tree")
    committee.expect([Case("new", {"m": 100})])
    committee.fit(measured(lambda m: 8))
    assert set(committee.summary()["plans"]) == {"new_gpu"}


def test_no_figure_of_a_test_case_reaches_the_choice() -> None:
    rows = measured(lambda m: 16 if m >= 256 else 1, noise=0.02)
    codes = case_numbers(rows, SPEC)
    train = rows[codes % 2 == 0].reset_index(drop=True)
    asked = [Case("one", {"m": m}) for m in (24, 3000)]
    first = recommender_class("committee")(domain(), members="knn, tree")
    first.expect(asked)
    other = recommender_class("committee")(domain(), members="knn, tree")
    other.expect(asked)
    # Whatever else lies beside the training rows: the state is the same.
    assert first.fit(train).state() == other.fit(train.assign(registers=3)).state()


def test_one_training_case_leaves_its_best_to_answer() -> None:
    rows = measured(lambda m: 16, gpus=("one",))
    committee = fitted(rows[rows["m"] == 16].reset_index(drop=True))
    assert committee.summary()["plans"] == {}
    assert committee.recommend("new", [{"m": 16}])["width"].iloc[0] == 16


def test_without_a_time_of_what_is_usual_the_best_on_average_answers() -> None:
    rows = measured(lambda m: 16)
    committee = fitted(rows[rows["width"] != 4].reset_index(drop=True))
    assert committee.summary()["plans"] == {}
    assert committee.recommend("new", [{"m": 100}])["width"].iloc[0] == 16


@pytest.mark.parametrize(
    ("members", "said"),
    [("forrest", "unknown kind of model 'forrest'"), ("committee", "a committee is no member")],
)
def test_a_wrong_member_is_a_user_error(members: str, said: str) -> None:
    with pytest.raises(Exception, match=said):
        fitted(measured(lambda m: 4), members=members)
