"""Predictions for datasheet-only GPUs."""

import numpy as np
import pytest
from stencil import copying_stencil

from launchwise.base.errors import UserError
from launchwise.learning.features import Domain
from launchwise.learning.predicting import (
    learnable_rows,
    predict_times,
    predictors_of,
    problems_left_out,
)
from launchwise.learning.recommender import Judgement, Recommender
from launchwise.learning.recommenders import recommender_class
from launchwise.learning.splits import Case
from launchwise.tables.learning import unmeasured_schema
from launchwise.workloads.spec import load_spec
from tests.support.described_gpus import described_gpus, gpus_in_hosts
from tests.support.report_study import sweep
from tests.support.samples import profile

PROBLEMS = [{"n": n, "dtype": "float32", "order": 2} for n in (102, 202)]


@pytest.fixture(scope="module")
def domain(stencil_spec):
    known = described_gpus("a100", "t4")
    return Domain(stencil_spec, {**known, "big": profile("big")})


@pytest.fixture(scope="module")
def table(domain):
    rows = learnable_rows(domain, [sweep(domain.spec, "big").assign(registers=32, spill_bytes=0)])
    learnt = recommender_class("learnt")(domain).fit(rows)
    predictors = predictors_of(domain, learnt)
    return predict_times(domain, ["a100", "t4"], PROBLEMS, predictors, top=3)


def test_every_predictor_names_its_best_for_every_problem_and_gpu(table, domain):
    unmeasured_schema(domain.spec).insist("table", table)
    counts = table.groupby(["predictor", "gpu", "n"]).size()
    assert len(counts) == 2 * 2 * 2
    assert set(counts) == {3}
    ordered = table.sort_values(["predictor", "gpu", "n", "rank"])
    steps = ordered.groupby(["predictor", "gpu", "n"])["predicted_ms"].diff().dropna()
    assert (steps >= 0).all()


def test_what_is_named_is_the_best_of_all_candidates(table, domain):
    model = recommender_class("analytical")(domain)
    every = model.rank(domain.choices([Case("t4", PROBLEMS[0])]))
    own = table.query("predictor == 'analytical' and gpu == 't4' and n == 102 and rank == 1")
    assert own["predicted_ms"].iloc[0] == every["predicted_ms"].min()
    start = every.loc[domain.is_baseline(every), "predicted_ms"].iloc[0]
    assert own["baseline_ms"].iloc[0] == start


def test_limits_are_those_of_the_card(table, domain):
    least = 16 * 200**3 / domain.profiles["t4"].ceilings.copy_bandwidth_gbs / 1e6
    own = table.query("gpu == 't4' and n == 202")
    assert own["bytes_ms"].tolist() == pytest.approx([least] * len(own))
    # Of 128 MB, 4 MiB may still lie in the card's L2 cache; a launch takes 1.8 us in a graph.
    # Reads may come faster than a copy, as fast as the bus.
    outside = (16 * 200**3 - 4 * 2**20) / domain.profiles["t4"].memory_bandwidth_gbs / 1e6
    assert own["shortest_ms"].tolist() == pytest.approx([outside + 0.0018] * len(own))


class Boaster(Recommender):
    """Says that every run takes a nanosecond."""

    def fit(self, measurements):
        return self

    def judge(self, rows):
        return Judgement.by_time(np.full(len(rows), 1e-6), self.domain.is_baseline(rows))


def test_no_time_is_below_the_roofline_beside_it(domain):
    table = predict_times(domain, ["a100", "t4"], PROBLEMS, {"learnt": Boaster(domain)})
    assert table["predicted_ms"].tolist() == table["shortest_ms"].tolist()
    assert table["baseline_ms"].tolist() == table["shortest_ms"].tolist()
    schema = unmeasured_schema(domain.spec)
    schema.insist("predictions", table)
    with pytest.raises(UserError, match="predicted_ms: must not be below shortest_ms"):
        schema.insist("predictions", table.assign(predicted_ms=0.9 * table["shortest_ms"]))


def test_runs_that_copy_are_predicted_for_known_host_links_alone(tmp_path):
    spec = load_spec(copying_stencil(tmp_path))
    links = {"unknown": None, "slow": 12.0, "fast": 25.0}
    known = gpus_in_hosts({gpu: ("a100", rate) for gpu, rate in links.items()})
    wanted = {"variant": ["block3d"], "row_padding": [0], "by": [8], "bz": [1], "bx": [32, 64]}
    domain = Domain(spec, known, wanted)
    problems = [
        {"n": 100, "dtype": "float64", "order": 2, "memory": memory}
        for memory in ("pinned", "device")
    ]
    model = recommender_class("analytical")(domain)
    table = predict_times(domain, list(known), problems, {"analytical": model})
    assert problems_left_out(table, spec, known, problems) == {"unknown": 1}
    copied = table[table["memory"] == "pinned"].set_index("gpu")["predicted_ms"]
    assert list(copied.index) == ["slow", "fast"]
    assert copied["fast"] < copied["slow"]
    inside = table[table["memory"] == "device"].set_index("gpu")
    assert inside["predicted_ms"]["unknown"] == pytest.approx(inside["predicted_ms"]["fast"])
    # The baseline copies to the host even so.
    assert np.isnan(inside["baseline_ms"]["unknown"])
    assert inside["baseline_ms"]["fast"] < inside["baseline_ms"]["slow"]
    unmeasured_schema(spec).insist("table", table)
