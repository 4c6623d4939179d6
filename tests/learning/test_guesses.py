"""Guesses: what a fitted model recommends first, where it is found, and what may be measured."""

import json
import math
import random
import shutil

import numpy as np
import pandas as pd
import pytest

from launchwise.base.errors import UserError
from launchwise.base.storage import write_sealed_json
from launchwise.learning.features import Domain
from launchwise.learning.final import (
    FACTS_FILE,
    MEASURED_FILE,
    MODEL_FOLDER,
    read_final,
    recommended_guesses,
)
from launchwise.learning.product import fastest_measured
from launchwise.learning.recommenders import recommender_class
from launchwise.tables.files import write_table
from launchwise.tables.learning import fastest_measured_schema
from launchwise.tables.times import JUDGED
from launchwise.workloads import space
from launchwise.workloads.sampling import Draws
from tests.support.samples import measurements, profile
from tests.support.spaces import LARGE, PROBLEM, large, made
from tests.support.studies import by_size, entry, fit_product

GPU = "test"
ASKED = {"n": 200, "dtype": "float32", "order": 2}
PRODUCTS = {"few": [64], "many": [72, 100, 130]}
"""Sizes that each product learns from."""


@pytest.fixture(scope="module")
def domain(stencil_spec):
    few_threads = profile("small", max_threads_per_block=128)
    return Domain(stencil_spec, {GPU: profile(), "small": few_threads})


@pytest.fixture(scope="module", params=["tree", "knn"])
def fitted(request, domain, tmp_path_factory):
    """A folder of two products; for the one of few rows another variant is good."""
    folder = tmp_path_factory.mktemp("fitted")
    for name, sizes in PRODUCTS.items():
        sweep = measurements(domain.spec, [{"n": sizes, "dtype": ["float32"], "order": [2]}])
        good = "column" if name == "few" else "block3d"
        sweep.loc[sweep["variant"] == good, "time_ms"] /= 10
        model, splits = entry(request.param), by_size(sizes, [200])
        fit_product(folder / name, domain, {GPU: sweep}, model, seed=7, splits=splits)
    return folder


def first(folder, domain, gpu=GPU):
    """Every recommendation of one fit, as its own protocol gives them."""
    ranked = read_final(folder, domain).recommender.recommend(gpu, [ASKED])
    rows = ranked[domain.spec.tunable_columns].to_dict("records")
    return [{str(name): value for name, value in row.items()} for row in rows]


@pytest.mark.parametrize("name", PRODUCTS)
@pytest.mark.parametrize("count", [1, 5, 10_000])
def test_guesses_are_the_first_recommendations(fitted, domain, name, count):
    found = recommended_guesses(fitted / name, domain, GPU, ASKED, count)
    assert found == first(fitted / name, domain)[:count]
    assert found[0]["variant"] == {"few": "column", "many": "block3d"}[name]
    assert json.loads(json.dumps(found)) == found
    gpu = space.gpu_facts(profile().model_dump())
    assert len(found) == min(count, len(space.configurations(domain.spec, ASKED, gpu)))


def test_guesses_are_allowed_on_the_gpu(fitted, domain):
    facts = space.gpu_facts(domain.profiles["small"].model_dump())
    found = recommended_guesses(fitted / "many", domain, "small", ASKED, 8)
    assert len(found) == 8
    assert all(space.feasible(domain.spec, ASKED, each, facts) for each in found)
    assert any(each not in found for each in first(fitted / "many", domain)[:8])
    # Whoever sweeps a new GPU has no profile of those that the model learnt from.
    alone = Domain(domain.spec, {"small": domain.profiles["small"]})
    assert recommended_guesses(fitted / "many", alone, "small", ASKED, 8) == found


def test_a_baseline_that_the_constraints_refuse_is_no_guess(fitted, domain):
    spec = domain.spec.model_copy(update={"constraints": ["variant != 'linear'"]})
    strict = Domain(spec, domain.profiles)
    ranked = first(fitted / "many", strict)
    assert space.baseline(spec) in ranked
    found = recommended_guesses(fitted / "many", strict, GPU, ASKED, 10_000)
    assert found == [each for each in ranked if each != space.baseline(spec)]


def test_candidates_of_the_study_are_kept_to(fitted, domain):
    narrow = Domain(domain.spec, domain.profiles, {"variant": ["column"]})
    found = recommended_guesses(fitted / "many", narrow, GPU, ASKED, 10_000)
    assert {each["variant"] for each in found} == {"column", "linear"}


def test_what_is_no_fitted_model_is_one_line(fitted, domain, tmp_path):
    copied = shutil.copytree(fitted / "many", tmp_path / "copied")
    for folder in (tmp_path / "gone", copied / MODEL_FOLDER, tmp_path):
        with pytest.raises(UserError, match=f"{folder.name}: is missing: make it"):
            recommended_guesses(folder, domain, GPU, ASKED, 1)
    shutil.rmtree(copied / MODEL_FOLDER)
    with pytest.raises(UserError, match=r"recommender\.json: "):
        recommended_guesses(copied, domain, GPU, ASKED, 1)


def test_a_model_of_another_workload_is_one_line(fitted, domain):
    other = Domain(made({"a": [1, 2]}, {"plain": ([], []), "x": (["a"], [])}), domain.profiles)
    with pytest.raises(UserError, match="workload: is of stencil, not of made"):
        recommended_guesses(fitted / "many", other, GPU, PROBLEM, 1)


# Spaces too large to be listed


def time_ms(configuration):
    """Shorter the larger ``a`` and the smaller ``b`` is; a plain one takes longest."""
    if configuration["variant"] == "plain":
        return 100.0
    return 20.0 - math.log2(int(configuration["a"])) + math.log2(int(configuration["b"]))


@pytest.fixture(scope="module")
def measured(tmp_path_factory):
    """A model of a few hundred rows of millions."""
    spec = large(["a * b <= 256"])
    rows = Draws(spec, PROBLEM, None, 0).sample(random.Random(1), 400)
    table = pd.DataFrame([space.baseline(spec), *rows]).assign(gpu=GPU, **PROBLEM)
    table["time_ms"] = [time_ms(each) for each in [space.baseline(spec), *rows]]
    folder = tmp_path_factory.mktemp("large")
    domain = Domain(spec, {GPU: profile()})
    tree = recommender_class("tree")(domain)
    tree.fit(table).save(folder / MODEL_FOLDER)
    facts = {
        **{"study": "s", "workload": spec.workload, "model": "tree", "kind": "tree"},
        **{"gpus": {GPU: "a card"}, "measurements": {}, "commits": [], "rows": len(table)},
        **{"rows_left_out": 0, "cases": 1, "seed": 1, "sweeps": "", "versions": {}},
        **{"intervals": {}, "time_intervals": None, "gain_intervals": None},
    }
    write_sealed_json(folder / FACTS_FILE, facts)
    told = {"status": "ok", "basis": "sweep", "blind": False, "error": 0.005}
    unknown = dict.fromkeys({*JUDGED} - {*table, *told}, np.nan)
    judged = table.assign(**told, **unknown)
    fastest = fastest_measured({GPU: judged}, domain)
    write_table(folder / MEASURED_FILE, fastest, fastest_measured_schema(spec))
    return spec, folder


def test_the_best_of_a_sample_is_guessed_where_the_space_is_too_large_to_be_listed(measured):
    spec, folder = measured
    domain = Domain(spec, {GPU: profile()})
    found = recommended_guesses(folder, domain, GPU, PROBLEM, 5)
    assert found == recommended_guesses(folder, domain, GPU, PROBLEM, 5)
    assert len({tuple(each.values()) for each in found}) == 5
    assert all(space.feasible(spec, PROBLEM, each) for each in found)
    # 13 is the shortest there is, one configuration in 64.
    assert np.mean([time_ms(each) for each in found]) < 13.5
    with pytest.raises(UserError, match="m is missing"):
        recommended_guesses(folder, domain, GPU, {}, 5)


def test_few_candidates_are_found_among_millions(measured):
    spec, folder = measured
    wanted = {name: [1, 2] for name in LARGE}
    domain = Domain(spec, {GPU: profile()}, wanted)
    found = recommended_guesses(folder, domain, GPU, PROBLEM, 1000)
    assert len(found) == 2**7 + 1  # All of them, and the baseline.
    assert all(each[name] in (1, 2) for each in found for name in LARGE)
    assert (found[0]["a"], found[0]["b"]) == (2, 1)
