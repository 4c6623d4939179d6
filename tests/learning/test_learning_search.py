"""The search for parameters of models, mostly on made-up times."""

from __future__ import annotations

from typing import Any, ClassVar, Literal

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from launchwise.learning.recommender import Hyperparameters, Judgement, Recommender, tried
from launchwise.learning.row_arrays import regrets
from launchwise.learning.search import choose, held_out_regret, search, thinned
from launchwise.learning.splits import case_codes


class Favourite(Recommender):
    """Recommends blocks of one size along x: cheap, deterministic, and counts its fits."""

    class Parameters(Hyperparameters):
        """A size, and something that changes nothing."""

        bx: Literal[8, 32, 64, 128, 1024] = tried(1024)
        shift: float = tried(0.0, 0.0, 1.0)

    fits: ClassVar[list[dict[str, Any]]] = []

    def fit(self, measurements):
        """Nothing to learn."""
        self.fits.append({name: self.parameters[name] for name in ("bx", "shift")})
        return self

    def judge(self, rows):
        """The nearest size first."""
        return Judgement.without_times(np.abs(np.log2(rows["bx"] / self.parameters["bx"])))


def searched(domain, rows, trials, journal=None, **options):
    """Outcome, and the parameters of every fit."""
    Favourite.fits.clear()
    usual = {"fixed": {}, "folds": 2, "max_rows": 10000, "seed": 5}
    found = search(Favourite, domain, rows, trials=trials, journal=journal, **(usual | options))
    return found, list(Favourite.fits)


def test_the_first_trial_is_the_defaults_and_more_find_better(domain, rows):
    first, fits = searched(domain, rows, 1)
    assert first.parameters == {}
    assert fits == [{"bx": 1024, "shift": 0.0}] * 2
    found, _ = searched(domain, rows, 12)
    assert found.value < first.value
    recommender = Favourite(domain, **found.parameters, seed=5)
    assert found.value == pytest.approx(held_out_regret(recommender, rows, 2, 5).mean())


def test_a_resumed_search_goes_on_from_its_trials_as_its_seed_says(domain, rows, tmp_path):
    journal = tmp_path / "trials"
    _, first = searched(domain, rows, 3, journal)
    found, more = searched(domain, rows, 5, journal)
    assert (len(first), len(more)) == (3 * 2, 2 * 2)
    assert found.trials == 5
    assert not [fit for fit in more if fit in first]
    # Stopping and going on changes nothing: the same trials as in one go.
    whole, all_fits = searched(domain, rows, 5)
    assert first + more == all_fits
    assert searched(domain, rows, 5, seed=6)[1] != all_fits
    assert (found.parameters, found.value) == (whole.parameters, whole.value)
    # A shorter search takes the first of those trials, and is what it would have been alone.
    shorter, none = searched(domain, rows, 3, journal)
    alone, _ = searched(domain, rows, 3)
    assert none == []
    assert (shorter.parameters, shorter.value) == (alone.parameters, alone.value)


def test_a_file_of_something_else_starts_a_search_anew(domain, rows, tmp_path):
    searched(domain, rows, 2, tmp_path)
    (kept,) = tmp_path.iterdir()
    whole = kept.read_bytes()
    kept.write_bytes(whole[:-9])
    found, fits = searched(domain, rows, 2, tmp_path)
    assert (found.trials, len(fits)) == (2, 4)
    assert kept.read_bytes() == whole


@pytest.mark.parametrize("change", ["time", "row", "fixed", "folds", "seed", "name"])
def test_what_a_trial_depends_on_starts_a_search_anew(domain, rows, tmp_path, change):
    journal = tmp_path / "trials"
    searched(domain, rows, 2, journal)
    changed, options = rows.copy(), {}
    if change == "time":
        changed.loc[3, "time_ms"] *= 1 + 1e-9
    elif change == "row":
        changed = rows.iloc[:-1]
    else:
        values = {"fixed": {"shift": 0.5}, "folds": 3, "seed": 6, "name": "other"}
        options = {change: values[change]}
    _, fits = searched(domain, changed, 2, journal, **options)
    assert len(fits) == 2 * (3 if change == "folds" else 2)


def test_fixed_parameters_are_held_and_what_changes_nothing_leaves_the_defaults(domain, rows):
    found, fits = searched(domain, rows, 12, fixed={"shift": 0.5})
    assert {fit["shift"] for fit in fits} == {0.5}
    assert set(found.parameters) == {"bx"}
    found, fits = searched(domain, rows, 4, fixed={"bx": 32})
    assert len({fit["shift"] for fit in fits}) == 4
    assert found.parameters == {}


@settings(max_examples=30)
@given(st.integers(0, 2**32 - 1), st.integers(2, 60), st.integers(2, 12))
def test_only_a_clear_gain_beats_the_defaults(seed, problems, trials):
    random = np.random.default_rng(seed)
    noise = [random.exponential(0.05, problems) for _ in range(trials)]
    chosen = choose(noise)
    gain = noise[0] - noise[chosen]
    assert chosen == 0 or gain.mean() > gain.std(ddof=1) / np.sqrt(problems)
    assert chosen in (0, min(range(trials), key=lambda number: noise[number].mean()))
    # Better by the same on every problem is clear, however little; the first among equals stays.
    assert choose([noise[0], noise[0] - 1e-3]) == 1
    assert choose([noise[0], noise[0].copy()]) == 0
    # Much better on one problem alone is luck.
    lucky = noise[0].copy()
    lucky[:2] += [-1.0, 0.1]
    assert choose([noise[0], lucky]) == 0


def test_thinning_takes_whole_cases(domain, rows):
    codes, keys = case_codes(rows, domain.spec)
    sizes = dict(zip(keys, np.bincount(codes).tolist(), strict=True))
    for most in (1, 500, len(rows)):
        few = thinned(rows, domain, most, 3)
        mine, named = case_codes(few, domain.spec)
        counted = dict(zip(named, np.bincount(mine).tolist(), strict=True))
        assert counted.items() <= sizes.items()
        assert len(few) <= most or len(named) == 2
    assert len(few) == len(rows)


def test_held_out_regret_judges_the_first_recommendations_of_each_case(domain, rows):
    recommender = Favourite(domain, bx=64)
    found = held_out_regret(recommender, rows, 3, 0, judged=2)
    ranked = recommender.rank(rows.assign(regret=regrets(rows, domain.spec)))
    first = ranked[ranked["rank"] <= 2]
    expected = first.groupby(["gpu", "n"])["regret"].mean()
    assert sorted(found) == pytest.approx(sorted(expected))
