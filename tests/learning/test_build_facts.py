"""What the compiler said of builds: known by code alone, and learnt from."""

import numpy as np
import pandas as pd
import pytest

from launchwise.base.errors import UserError
from launchwise.learning.analytical import PARTS
from launchwise.learning.features import Domain
from launchwise.learning.predicting import learnable_rows
from launchwise.learning.recommenders import recommender_class
from launchwise.learning.row_arrays import FACTS
from launchwise.workloads import space
from tests.support.samples import profile

SIZES = (64, 96, 128, 160, 192, 224)


@pytest.fixture
def domain(stencil_spec):
    gpus = {"a": profile("a"), "b": profile("b"), "old": profile("old")}
    gpus["old"] = gpus["old"].model_copy(update={"arch": "sm_75"})
    return Domain(stencil_spec, gpus)


def rows(domain, gpu, sizes, **changed):
    """The baseline at several sizes."""
    known = {"dtype": "float32", "order": 8, **space.baseline(domain.spec), **changed}
    return pd.DataFrame([{"gpu": gpu, "n": n, **known} for n in sizes])


def test_a_build_is_known_by_its_code_whatever_its_size_launch_or_card(domain):
    sweep = rows(domain, "a", (64, 96, 128)).assign(registers=[40, 40, 255], spill_bytes=8)
    learnt = recommender_class("learnt")(domain).fit(sweep.assign(time_ms=1.0))
    asked = pd.concat(
        [
            rows(domain, "a", (640,)),
            rows(domain, "b", (64,), bx=1024),
            rows(domain, "b", (64,), order=2),
            rows(domain, "b", (64,), dtype="float64"),
            rows(domain, "b", (64,), row_padding=1 - space.baseline(domain.spec)["row_padding"]),
            rows(domain, "old", (64,)),
        ]
    )
    found = learnt.facts_beside(asked)
    assert found[:2].tolist() == [[40, 8], [40, 8]]
    assert np.isnan(found[2:]).all()


@pytest.mark.parametrize("name", FACTS)
def test_rows_without_a_fact_are_refused_and_not_filled(domain, name):
    sweep = rows(domain, "a", SIZES).assign(registers=40, spill_bytes=0, time_ms=1.0)
    with pytest.raises(UserError, match=f"{name}: is missing"):
        recommender_class("learnt")(domain).fit(sweep.drop(columns=name))


def test_the_command_line_and_the_rule_predict_with_the_model_that_is_evaluated(domain):
    sweep = rows(domain, "a", SIZES).assign(
        status=["ok"] * (len(SIZES) - 1) + ["slow"], time_ms=1.0, registers=40, spill_bytes=8
    )
    learnable = learnable_rows(domain, [sweep, sweep.assign(gpu="old")])
    assert list(learnable) == [*domain.spec.key_columns, "time_ms", *FACTS]
    assert len(learnable) == 2 * (len(SIZES) - 1)
    predictor = recommender_class("learnt")(domain).fit(learnable)
    assert predictor.summary()["features"][-len(PARTS) - 3 :][:2] == list(FACTS)
    assert predictor.facts_beside(sweep[:1]).tolist() == [[40, 8]]


def test_the_learnt_model_learns_from_the_build(domain):
    # Builds that spill take four times as long: no feature of a configuration tells which.
    spilling = {("a", 2): 0, ("a", 4): 64, ("a", 8): 0, ("old", 2): 64, ("old", 4): 0}
    spilling["old", 8] = 64
    pieces = []
    for (gpu, order), spills in spilling.items():
        made = rows(domain, gpu, SIZES, order=order).assign(registers=40, spill_bytes=spills)
        pieces.append(made.assign(time_ms=(made["n"] / 100.0) ** 3 * (4 if spills else 1)))
    known = pd.concat(pieces, ignore_index=True)
    # One cut for one tree: it takes whatever tells most.
    parameters = {"feature_fraction": 1.0, "bagging_fraction": 1.0, "rounds": 1, "num_leaves": 2}
    learnt = recommender_class("learnt")(domain, **parameters, learning_rate=1.0)

    def cuts(table):
        """By what factor the tree changes the cost model's times, row by row."""
        asked = table.drop(columns=["time_ms", *FACTS])
        analytical = recommender_class("analytical")(domain).fit(table).judge(asked).predicted_ms
        return np.round(learnt.fit(table).judge(asked).predicted_ms / analytical, 9)

    spills = known["spill_bytes"].to_numpy() > 0
    with_facts = cuts(known)
    assert len(set(with_facts[spills])) == len(set(with_facts[~spills])) == 1
    assert with_facts[spills][0] > 2 * with_facts[~spills][0]
    without = cuts(known.assign(registers=40, spill_bytes=0))
    assert len(set(without[spills])) + len(set(without[~spills])) > 2
