"""Every kind of recommender, and baselines, mostly on made-up times."""

import numpy as np
import pandas as pd
import pytest
from recommending import Ground, RecommenderProtocol, chosen
from stencil import ASKED, FAR, GPUS, TRAINED, cases, slice_of_card, sweep

from launchwise.base.errors import UserError
from launchwise.learning.baselines import BASELINES
from launchwise.learning.features import Domain
from launchwise.learning.recommenders import kinds, recommender_class, source
from launchwise.learning.recommenders.committee import CommitteeRecommender
from launchwise.learning.row_arrays import configuration_codes, regrets
from launchwise.learning.splits import among

KINDS = kinds()

TARGETED = ("forest", "knn", "lightgbm", "tree", "xgboost")
"""Kinds that learn a target that somebody chooses."""
UNTARGETED = ("best_tree", "committee", "gaussian_process", "learnt")
UNTIMED = ("best_tree",)
"""Kinds that predict no times."""
UNTAUGHT = ("analytical", "roofline")
"""Kinds that learn nothing."""


def committee(domain, **parameters):
    """A committee that is not fitted, of members that are named as their kinds."""
    members = ("knn", "tree", "nearest_size")
    made = CommitteeRecommender(domain, members=", ".join(members), **parameters)
    own = {name: (BASELINES.get(name) or recommender_class(name))(domain) for name in members}
    return made.of(own, {name: name for name in members})


class TestEveryKind(RecommenderProtocol):
    """Every kind of the library, on made-up times."""

    @pytest.fixture(scope="class", params=KINDS)
    @classmethod
    def ground(cls, request, domain, rows):
        kind = request.param
        return Ground(
            committee if kind == "committee" else recommender_class(kind),
            domain,
            rows,
            cases(TRAINED),
            cases(ASKED),
            FAR,
            taught=kind not in UNTAUGHT,
            timed=kind not in UNTIMED,
            # The usual choice comes first where members disagree.
            cautious=kind == "committee",
        )


def test_every_kind_is_found_and_a_strange_one_is_not():
    assert set(KINDS) == {*TARGETED, *UNTARGETED, *UNTAUGHT}
    with pytest.raises(UserError, match="did you mean 'xgboost'") as caught:
        recommender_class("xgbost", "models.mine")
    assert caught.value.key == "models.mine.kind"


def test_a_workload_has_kinds_of_its_own(tmp_path):
    workload = tmp_path / "mine"
    (workload / "recommenders").mkdir(parents=True)
    (workload / "recommenders" / "own.py").write_text(
        "from launchwise.learning.recommenders._trees import TreeRecommender\n"
        "class Own(TreeRecommender):\n    pass\n"
    )
    assert kinds(workload) == sorted([*KINDS, "own"])
    assert recommender_class("own", workload=workload).__name__ == "Own"
    assert source("own", workload).is_relative_to(workload)
    assert source("tree", workload) == source("tree")
    with pytest.raises(UserError, match="unknown kind of model 'own'"):
        recommender_class("own", workload=tmp_path)


def test_a_tree_of_the_best_knows_what_was_fastest_of_training_problems(domain, rows):
    columns = domain.spec.problem_columns
    gpu = str(rows["gpu"].iloc[0])
    own = rows[rows["gpu"] == gpu]
    best = own.loc[own.groupby(columns, sort=False)["time_ms"].idxmin()]
    tree = recommender_class("best_tree")(domain).fit(rows)
    found = chosen(tree.recommend(gpu, best[columns].to_dict("records")))
    names = domain.choice_columns
    assert found[names].to_numpy().tolist() == best[names].to_numpy().tolist()


# Baselines


def baseline_ranks(name, domain, rows, asked):
    return chosen(BASELINES[name](domain).fit(rows).rank(domain.choices(asked)))


def best_of(rows, case, domain):
    mine = rows[among(rows, [case], domain.spec)]
    return mine.loc[mine["time_ms"].idxmin(), domain.spec.tunable_columns].tolist()


def test_baselines_answer_what_their_names_say(domain, rows):
    columns = domain.spec.tunable_columns
    spec = domain.spec
    assert set(baseline_ranks("untuned", domain, rows, cases(ASKED))["variant"]) == {"linear"}
    # 310 is next to 300 on the same GPU.
    asked = cases((310,))
    found = baseline_ranks("nearest_size", domain, rows, asked)
    expected = [best_of(rows, case, domain) for case in cases((300,))]
    assert found[columns].to_numpy().tolist() == expected
    # Not that of another GPU that is nearer.
    own = rows[(rows["gpu"] != asked[0].gpu) | (rows["n"] != 300)]
    found = baseline_ranks("nearest_size", domain, own, asked[:1])
    (nearest,) = (best_of(rows, case, domain) for case in cases((256,))[:1])
    assert found[columns].to_numpy().tolist() == [nearest]
    # What the nearest problem lacks comes behind the slowest of what it has.
    apart = rows.assign(time_ms=rows["time_ms"] ** 9).drop(index=rows.index[::7])
    found = BASELINES["nearest_size"](domain).fit(apart).rank(domain.choices(cases((300,))[:1]))
    known = [pd.MultiIndex.from_frame(each[spec.key_columns]) for each in (found, apart)]
    lacking = ~known[0].isin(known[1])
    assert 0 < lacking.sum() < len(lacking)
    assert lacking[-lacking.sum() :].all()
    # The nearest other GPU is the other one; there the same problem.
    found = baseline_ranks("nearest_gpu", domain, rows, cases((300,)))
    assert found[columns].to_numpy().tolist() == expected[::-1]
    # Of three GPUs the nearest one, though it has another problem only.
    gpu, other = "card.sm70", sweep(spec, (512,), "card.sm70")
    three = Domain(spec, {name: slice_of_card(name) for name in (*GPUS, gpu)})
    known = pd.concat([rows[rows["gpu"] == GPUS[0]], other[rows.columns]], ignore_index=True)
    found = baseline_ranks("nearest_gpu", three, known, cases((300,), GPUS[1:]))
    (nearest,) = (best_of(known, case, three) for case in cases((512,), (gpu,)))
    assert found[columns].to_numpy().tolist() == [nearest] != expected[:1]
    regret = regrets(rows, spec)
    # Fewest rows of the sweep are padded; 300 x 4 bytes is no multiple of 128, 256 x 4 is.
    codes = configuration_codes(rows, columns, spec)
    totals = pd.Series(regret).groupby(codes).agg(["sum", "size"])
    missing = 6 - totals["size"]
    least = (totals["sum"] + missing * np.log(3)).idxmin()
    found = baseline_ranks("best_on_average", domain, rows, cases((300,)))
    assert set(configuration_codes(found, columns, spec)) == {least}
    wins = pd.Series(codes[regret == 0]).value_counts()
    found = baseline_ranks("most_frequent_best", domain, rows, cases((300,)))
    assert set(configuration_codes(found, columns, spec)) <= set(wins[wins == wins.max()].index)
