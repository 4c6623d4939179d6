"""Hyper-parameters are checked by what a kind declares."""

import warnings

import pytest
from optuna.trial import FixedTrial
from samples import ROOT, STENCIL

from launchwise.base.typed import read_yaml
from launchwise.learning.recommenders import kinds, recommender_class

OWNERS = sorted(folder.parent for folder in ROOT.glob("kernels/*/recommenders"))
"""Workloads with kinds of their own."""


EVERY = [
    *((kind, STENCIL) for kind in kinds()),
    *((kind, owner) for owner in OWNERS for kind in kinds(owner) if kind not in kinds()),
]


@pytest.mark.parametrize(("kind", "workload"), EVERY)
def test_the_search_may_propose_the_defaults(kind, workload):
    own = recommender_class(kind, workload=workload)
    with warnings.catch_warnings():
        # A value out of the range of its parameter is a warning.
        warnings.simplefilter("error", UserWarning)
        defaults = own.Parameters().model_dump()
        found = own.Parameters.suggested(FixedTrial(defaults))
    assert found == {name: defaults[name] for name in found}


@pytest.mark.parametrize(
    ("kind", "parameters", "said"), read_yaml(ROOT / "tests/learning/data/misfits.yaml")
)
def test_a_misfit_is_told(kind, parameters, said):
    found = recommender_class(kind).Parameters.misfit(parameters)
    assert found[0] == next(iter(parameters))
    assert found[1].startswith(said)
