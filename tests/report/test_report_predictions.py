"""The sections on predicted times, against values set by hand."""

import dataclasses

from launchwise.experiment.study import ModelEntry
from launchwise.report.answer.predicted_times import predictions
from tests.support.report_study import study
from tests.support.shown import tables, texts

ENTRIES = {
    "knn": ModelEntry(kind="knn", title="kNN"),
    "roofline": ModelEntry(kind="roofline", title="the roofline"),
    "analytical": ModelEntry(kind="analytical", title="the cost model"),
    "learnt": ModelEntry(kind="learnt", title="the trees"),
}


def entry(model, median, **more):
    named = {"split": "sizes", "model": model, "gpu": "all", "by": "", "value": ""}
    figures = {
        "rows": 1200,
        "median_percent": median,
        "mape_percent": 2 * median,
        "p90_percent": 4 * median,
        "ratio": 0.5,
        "spearman": 0.9,
        "spearman_within": None,
    }
    return {**named, **figures, **more}


def test_models_stand_by_their_median_error():
    # Four models; GPUs one by one of one of them, and one part of two.
    found = [
        entry("knn", 6.5),
        entry("roofline", 70.0),
        entry("analytical", 20.0),
        entry("learnt", 3.3),
        entry("learnt", 2.0, gpu="big"),
        entry("learnt", 4.0, gpu="big.sm4"),
        entry("analytical", 33.0, by="variant", value="linear", ratio=1.4),
        entry("learnt", 1.5, by="variant", value="linear"),
        entry("learnt", 9.0, by="bound by", value="l2"),
        entry("learnt", 5.0, split="other"),
    ]
    made = study()
    made = dataclasses.replace(made, entries=ENTRIES, facts={**made.facts, "predictions": found})
    rows = texts(tables(predictions(made), folded=True)[0])
    assert [row[0] for row in rows] == ["the trees", "kNN", "the cost model", "the roofline"]
    assert rows[0][1:] == ["1\u202f200", "3.3", "6.6", "13.2", "0.50", "0.900", "–"]


def test_nothing_is_said_where_nothing_is_predicted():
    made = study()
    bare = dataclasses.replace(made, facts={**made.facts, "predictions": []})
    assert predictions(bare) is None
    assert predictions(made) is not None
