"""The nearest optimum: against optima.py and scikit-learn on the same rows."""

import numpy as np
import pandas as pd
import pytest
from sklearn.neighbors import KNeighborsClassifier
from streams import CANDIDATES, PROBLEM, PROFILES, first, row

from kernels.tridiagonal.learning.optima import corrected_optima, observed_optima
from kernels.tridiagonal.recommenders.nearest_optimum import NearestOptimumRecommender as Nearest
from launchwise.base.errors import UserError
from launchwise.learning.features import Domain
from launchwise.learning.search import search
from launchwise.learning.splits import Case
from launchwise.workloads import space

SIZES = [200, 500, 1300, 4000, 9000, 30_000, 80_000, 300_000]
CHOICES = [4, 10, 20, 32, 64]


@pytest.fixture(scope="module")
def domain(tridiagonal_spec):
    return Domain(tridiagonal_spec, PROFILES, {**CANDIDATES, "streams": [1]})


def sweep(spec, gpu="large", noise=0.2, growth=6.0, problem=None, seed=3):
    """Times whose best m grows like n^(1/4) but for noise; 128 threads suit an odd draw."""
    rng = np.random.default_rng(seed)
    rows = []
    for n in SIZES:
        for m in CHOICES:
            for threads in (128, 256):
                best = n**0.25 * growth / 4
                time_ms = 1e-4 * n * (1 + np.log(m / best) ** 2) * np.exp(noise * rng.normal())
                named = {**(problem or {}), "n": n}
                rows.append(row(spec, gpu, named, m=m, threads=threads, time_ms=time_ms))
    return pd.DataFrame(rows)


def sized(spec, best, **values):
    """A sweep where each size has one best m and one that is half as fast."""
    rows = []
    for n, m in best.items():
        for choice in {m, 4}:
            time_ms = 1.0 if choice == m else 2.0
            rows.append(row(spec, "large", {"n": n}, m=choice, time_ms=time_ms, **values))
    return pd.DataFrame(rows)


@pytest.mark.parametrize("corrected", [True, False])
def test_training_sizes_get_the_optima_of_the_method(domain, corrected):
    rows = sweep(domain.spec)
    expected = (corrected_optima if corrected else observed_optima)(rows)
    # The two methods differ on these rows, and neither has one answer for all.
    assert corrected_optima(rows)["m"].tolist() != observed_optima(rows)["m"].tolist()
    assert expected["m"].nunique() > 2
    # Whatever the order of the rows.
    shuffled = rows.sample(frac=1, random_state=0, ignore_index=True)
    found = first(Nearest(domain, corrected=corrected).fit(shuffled), "large", SIZES)
    assert found["m"].tolist() == expected["m"].tolist()
    # The other tunables are those of the fastest row of that size and choice.
    taken = rows.merge(expected[["n", "m"]], on=["n", "m"])
    fastest = taken.loc[taken.groupby("n")["time_ms"].idxmin(), "threads"].tolist()
    assert found["threads"].tolist() == fastest
    assert set(fastest) == {128, 256}


@pytest.mark.parametrize("neighbours", [1, 2, 3, 4, 5, 50])
def test_unseen_sizes_get_what_their_neighbours_vote_for(domain, neighbours):
    rows = sweep(domain.spec, noise=0.4)
    optima = observed_optima(rows)
    voters = KNeighborsClassifier(min(neighbours, len(SIZES)))
    voters.fit(np.log(optima[["n"]].to_numpy()), optima["m"])
    asked = np.unique(np.geomspace(150, 500_000, 60).astype(int)).tolist()
    recommender = Nearest(domain, corrected=False, neighbours=neighbours).fit(rows)
    found = first(recommender, "large", asked)
    assert found["m"].tolist() == voters.predict(np.log(np.array(asked))[:, None]).tolist()
    # As a whole it is a configuration of the nearest training size with that choice.
    taken = optima.merge(rows, on=["n", "m", "time_ms"])
    for n, m, threads in found[["n", "m", "threads"]].itertuples(index=False, name=None):
        same = taken[taken["m"] == m]
        nearest = (np.log(same["n"] / n)).abs().idxmin()
        assert threads == same.loc[nearest, "threads"]


def test_each_series_has_its_own_optima(domain):
    spec = domain.spec
    settings = [{"batch": 1}, {"batch": 64}, {"dtype": "float32"}]
    growths = {("large", 0): 2, ("large", 1): 6, ("large", 2): 18, ("small", 0): 12}
    parts = {
        (gpu, which): sweep(spec, gpu, growth=growth, problem=settings[which])
        for (gpu, which), growth in growths.items()
    }
    recommender = Nearest(domain).fit(pd.concat(parts.values(), ignore_index=True))
    expected = {key: corrected_optima(part)["m"].tolist() for key, part in parts.items()}
    assert len({tuple(one) for one in expected.values()}) == len(expected)
    for (gpu, which), optima in expected.items():
        assert first(recommender, gpu, SIZES, **settings[which])["m"].tolist() == optima
    # An unseen batch by its ratio; an unseen combination by what has most in common.
    assert first(recommender, "large", SIZES, batch=7)["m"].tolist() == expected["large", 0]
    assert first(recommender, "large", SIZES, batch=9)["m"].tolist() == expected["large", 1]
    found = first(recommender, "large", SIZES, dtype="float32", memory="device")
    assert found["m"].tolist() == expected["large", 2]
    # The GPU itself, whatever else differs, before another one.
    found = first(recommender, "small", SIZES, batch=64)
    assert found["m"].tolist() == expected["small", 0]


def test_an_unseen_gpu_gets_the_optima_of_the_nearest_one(domain):
    parts = {gpu: sweep(domain.spec, gpu, growth=g) for gpu, g in (("large", 2), ("small", 12))}
    expected = {gpu: corrected_optima(part)["m"].tolist() for gpu, part in parts.items()}
    assert expected["large"] != expected["small"]
    recommender = Nearest(domain).fit(pd.concat(parts.values(), ignore_index=True))
    assert first(recommender, "unseen", SIZES)["m"].tolist() == expected["small"]


def test_what_is_not_feasible_falls_to_the_next_size_and_then_to_the_baseline(domain):
    spec = domain.spec
    rows = sized(spec, {100: 64, 300: 32, 1000: 20}, threads=128)
    recommender = Nearest(domain, corrected=False).fit(rows)
    found = first(recommender, "large", [70, 40, 25, 15])
    # Of 40 rows no sub-system has 64, of 25 none has 32; of 15 nothing in training is feasible.
    assert found["m"].tolist() == [64, 32, 20, 10]
    assert found["threads"].tolist() == [128, 128, 128, 256]
    last = found[spec.tunable_columns].iloc[-1].to_dict()
    assert last == space.baseline(spec)
    # Whatever the order of the rows that are ranked.
    choices = domain.choices([Case("large", {**PROBLEM, "n": 70})]).iloc[::-1]
    ranked = recommender.rank(choices.reset_index(drop=True))
    others = ranked[["m", "threads"]].drop_duplicates("m").head(4)
    assert others.to_numpy().tolist() == [[64, 128], [32, 128], [20, 128], [10, 256]]


def test_a_choice_is_kept_where_the_rest_of_the_configuration_is_not_feasible(tridiagonal_spec):
    # Each size may have one number of streams only, as in the published sweeps.
    by_size = ["streams == (1 if n <= 1000 else 4)"]
    domain = Domain(tridiagonal_spec, PROFILES, CANDIDATES, by_size)
    rows = sized(tridiagonal_spec, {300: 32, 1000: 64}, threads=128, streams=1)
    recommender = Nearest(domain, corrected=False).fit(rows)
    found = first(recommender, "large", [900, 1100, 4000])
    assert found["m"].tolist() == [64, 64, 64]
    assert found["streams"].tolist() == [1, 4, 4]
    assert found["threads"].tolist() == [128, 128, 128]


def test_optima_are_candidates(tridiagonal_spec):
    slow = row(tridiagonal_spec, "large", {"n": 100}, m=20, time_ms=3.0)
    rows = pd.concat([sized(tridiagonal_spec, {100: 64, 300: 20}), pd.DataFrame([slow])])
    narrow = Domain(tridiagonal_spec, PROFILES, {**CANDIDATES, "m": [4, 20], "streams": [1]})
    found = first(Nearest(narrow, corrected=False).fit(rows), "large", [100, 300])
    assert found["m"].tolist() == [4, 20]
    none = Domain(tridiagonal_spec, PROFILES, {**CANDIDATES, "m": [32], "streams": [1]})
    with pytest.raises(UserError, match="hold no candidate"):
        Nearest(none).fit(rows)


def test_size_and_choice_may_be_named(domain):
    rows = []
    for batch, best in ((1, 128), (100, 256)):
        for threads in (128, 256):
            time_ms = 1.0 if threads == best else 1.5
            rows.append(
                row(domain.spec, "large", {"batch": batch}, threads=threads, time_ms=time_ms)
            )
    recommender = Nearest(domain, size="batch", choice="threads").fit(pd.DataFrame(rows))
    found = [first(recommender, "large", [1000], batch=b)["threads"].item() for b in (3, 40)]
    assert found == [128, 256]
    summary = recommender.summary()
    assert (summary["size"], summary["choice"], summary["optima"]) == ("batch", "threads", 2)


def test_a_size_with_one_choice_has_no_say(domain):
    rows = sized(domain.spec, {1000: 32, 100_000: 64})
    alone = row(domain.spec, "large", {"n": 10_000}, m=4, time_ms=1.0)
    recommender = Nearest(domain).fit(pd.concat([rows, pd.DataFrame([alone])]))
    assert first(recommender, "large", [1000, 10_000, 100_000])["m"].tolist() == [32, 32, 64]


def test_a_choice_may_be_derived_from_tunables(tridiagonal_spec):
    domain = Domain(tridiagonal_spec, PROFILES, {**CANDIDATES, "m1": [0, 8], "m2": [0, 8]})
    depths = {1000: (0, 0), 10_000: (0, 0), 10**6: (8, 0), 10**7: (8, 8), 10**8: (8, 8)}
    rows = []
    for n, best in depths.items():
        for m1, m2 in ((0, 0), (8, 0), (8, 8)):
            time_ms = 1.0 if (m1, m2) == best else 2.0
            rows.append(row(domain.spec, "large", {"n": n}, m1=m1, m2=m2, time_ms=time_ms))
    recommender = Nearest(domain, choice="depth", neighbours=1).fit(pd.DataFrame(rows))
    found = first(recommender, "large", [2000, 900_000, 20_000_000])
    assert found[["m1", "m2"]].to_numpy().tolist() == [[0, 0], [8, 0], [8, 8]]
    # Three neighbours of 10^6 vote: none, one and two recursions, and the fewest win.
    voted = Nearest(domain, choice="depth", neighbours=3).fit(pd.DataFrame(rows))
    assert first(voted, "large", [10**6])[["m1", "m2"]].to_numpy().tolist() == [[0, 0]]
    for wrong in ("rows", "subsystems", "itemsize"):
        with pytest.raises(UserError, match="derived from tunables"):
            Nearest(domain, choice=wrong)


def test_no_trend_is_one_line_that_says_what_to_do(domain):
    spec = domain.spec
    rows = pd.DataFrame(
        [row(spec, "large", {"n": n}, m=m, time_ms=1.0) for n, m in ((100, 64), (1000, 4))]
    )
    with pytest.raises(UserError, match=r"size 1000 is as large.*corrected: false") as caught:
        Nearest(domain).fit(rows)
    assert "large, dtype=float64, memory=pinned, batch=1" in str(caught.value)
    found = first(Nearest(domain, corrected=False).fit(rows), "large", [100, 1000])
    assert found["m"].tolist() == [64, 4]


def test_the_search_tries_neighbours_and_corrections(domain):
    rows = sweep(domain.spec)
    options = {"trials": 3, "folds": 2, "max_rows": 1000, "seed": 1}
    found = search(Nearest, domain, rows, fixed={}, **options)
    assert found.trials == 3
    assert found.parameters.keys() <= {"corrected", "neighbours"}
    held = search(Nearest, domain, rows, fixed={"corrected": False}, **options)
    assert held.parameters.keys() <= {"neighbours"}


def test_no_cases_have_no_recommendation(domain):
    recommender = Nearest(domain).fit(sweep(domain.spec))
    assert recommender.rank(domain.choices([])).empty
    one = Case("large", {**PROBLEM, "n": 500})
    assert not recommender.rank(domain.choices([one])).empty
