"""Datasheet-only GPUs in the comparison: the lookup's answers, and how far they may be off."""

import dataclasses

import numpy as np
import pandas as pd
import pytest

from launchwise.learning.features import Domain
from launchwise.report.gpus.gpu_attributes import spread, within
from launchwise.report.gpus.gpu_comparison import entries
from tests.support.described_gpus import described_gpus
from tests.support.named_tables import named_table
from tests.support.report_study import study

TIMES = {("t4", 102): 5.0, ("t4", 202): 30.0, ("a100", 102): 0.5, ("a100", 202): 3.0}


def answer(gpu, n, time_ms, made):
    row = made.evaluation[made.evaluation["model"] == "knn"].iloc[0]
    return {
        "gpu": gpu,
        "problem": {"n": n, "dtype": "float32", "order": 2},
        "configuration": {name: row[name] for name in made.spec.tunable_columns},
        "time_ms": time_ms,
        "improvement": None if time_ms is None else 2.0,
    }


def with_answers(**changes):
    known = described_gpus("t4", "a100")
    made = study()
    found = [answer(gpu, n, time, made) for (gpu, n), time in TIMES.items()]
    found.append(answer("big", 102, 1.0, made))
    table = named_table(found, Domain(made.spec, {**made.profiles, **known}), made.name)
    return dataclasses.replace(made, **{"described": known, "table": table, **changes})


def test_the_gpu_comparison_has_the_times_of_the_lookup():
    found = {
        (each.gpu, each.problem[0]): (each.best_ms, each.baseline_ms)
        for each in entries(with_answers())
        if each.basis == "predicted"
    }
    assert found == {case: (time, 2 * time) for case, time in TIMES.items()}


def published(ratios, **changes):
    """Published times of 2 ms that the trees predict with these ratios."""
    named = {"predictor": "learnt", "gpu": "t4", "phases": "", "runs": 1, "published_ms": 2.0}
    return pd.DataFrame({**named, "predicted_ms": 2 * np.array(ratios), **changes})


def test_intervals_rest_on_published_times():
    known = published([1.0] * 8 + [2.0, 0.5, 4.0])
    others = [published([99.0] * 20, **other) for other in (
        {"runs": 0}, {"phases": "stage 1"}, {"predictor": "roofline"}
    )]  # fmt: skip
    made = with_answers(published_times=pd.concat([known, *others], ignore_index=True))
    apart = spread([made])
    # Of eleven ratios the tenth is the 90th percentile.
    assert (apart.factor, apart.times, apart.gpus) == (pytest.approx(2.0), 11, ("t4",))
    assert "11 published" in apart.words
    assert within(apart) == "within 2.0 times"
    assert within(None) == "error unknown"
    few = with_answers(published_times=known.iloc[:9])
    assert spread([few]) is None
