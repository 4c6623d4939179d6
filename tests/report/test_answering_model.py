"""What pages say of the answering method: how it answers, what it is made of, what it took."""

import dataclasses

from launchwise.report.numbers import answering, leader
from tests.support.report_study import study


def answered():
    """The small study, whose second model answers; its members are the first and a simple rule."""
    made = study()
    committee = {"kind": "committee", "members": ["knn", "nearest_size"], "caution": 6.0}
    return dataclasses.replace(made, models={**made.models, "tree": committee})


def test_it_leads_though_another_model_is_better_on_a_gpu():
    made = answered()
    assert [leader(study(), "sizes", gpu) for gpu in made.gpus] == ["knn", "tree"]
    assert answering(made) == "tree"
    assert [leader(made, "sizes", gpu) for gpu in made.gpus] == ["tree", "tree"]
