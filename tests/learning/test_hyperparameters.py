"""Hyper-parameters are checked by what a kind declares, without importing it."""

from __future__ import annotations

import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import pytest
from optuna.trial import FixedTrial
from samples import ROOT, STENCIL

from launchwise.base.declarations import UNREADABLE, class_constant
from launchwise.learning.hyperparameters import complaint
from launchwise.learning.recommenders import kinds, recommender_class, source

OWNERS = sorted(folder.parent for folder in ROOT.glob("kernels/*/recommenders"))
"""Workloads with kinds of their own."""


EVERY = [
    *((kind, STENCIL) for kind in kinds()),
    *((kind, owner) for owner in OWNERS for kind in kinds(owner) if kind not in kinds()),
]


@pytest.mark.parametrize(("kind", "workload"), EVERY)
def test_what_is_read_is_what_the_class_has(kind: str, workload: Path) -> None:
    own = recommender_class(kind, workload=workload)
    path = source(kind, workload)
    assert class_constant(path, "Recommender", "allowed") == own.allowed
    read = class_constant(path, "Recommender", "defaults")
    assert read.keys() == own.defaults.keys() >= own.allowed.keys()
    assert all(value in (UNREADABLE, own.defaults[name]) for name, value in read.items())
    # What a model has by default is allowed.
    assert complaint(kind, own.defaults, workload) is None


@pytest.mark.parametrize(("kind", "workload"), EVERY)
def test_the_search_may_propose_the_defaults(kind: str, workload: Path) -> None:
    own = recommender_class(kind, workload=workload)
    with warnings.catch_warnings():
        # A value out of the range of its parameter is a warning.
        warnings.simplefilter("error", UserWarning)
        found = own.suggest(FixedTrial(dict(own.defaults)))
    assert found == {name: own.defaults[name] for name in found}


@pytest.mark.parametrize(
    ("kind", "parameters", "said"),
    [
        ("forest", {"max_deph": 3}, "unknown parameter 'max_deph', did you mean 'max_depth'?"),
        ("forest", {"n_estimators": "many"}, "must be an integer of at least 1, not 'many'"),
        ("forest", {"n_estimators": 2.5}, "must be an integer of at least 1, not 2.5"),
        ("forest", {"n_estimators": True}, "must be an integer of at least 1, not True"),
        ("forest", {"max_depth": 0}, "must be an integer of at least 1 or null, not 0"),
        ("forest", {"max_features": 1.5}, "must be a number above 0 and of at most 1.0, not 1.5"),
        (
            "xgboost",
            {"seed": -1},
            "must be an integer of at least 0 and of at most 4294967295, not -1",
        ),
        ("knn", {"weights": "distanc"}, "unknown value 'distanc', did you mean 'distance'?"),
        ("committee", {"caution": -0.5}, "must be a number of at least 0, not -0.5"),
        ("committee", {"xgboost.rounds": 9}, "unknown parameter 'xgboost.rounds' (allowed: "),
    ],
)
def test_a_misfit_is_told(kind: str, parameters: dict[str, Any], said: str) -> None:
    found = complaint(kind, parameters, STENCIL)
    assert found is not None
    assert found[0] == next(iter(parameters))
    assert found[1].startswith(said)


@pytest.mark.parametrize(
    ("kind", "parameters"),
    [
        ("forest", {"rows_per_tree": 0, "max_depth": None, "max_features": 1, "focus": 3}),
        ("knn", {"problems": None, "weights": "uniform"}),
        ("committee", {"members": "knn, nearest_size", "caution": 0}),
    ],
)
def test_what_fits_is_no_matter(kind: str, parameters: dict[str, Any]) -> None:
    assert complaint(kind, parameters, STENCIL) is None


OWN = """
from launchwise.learning.regression import TimeRegressor

def made():
    return {"depth": 3, "shape": "round", "smooth": True}

class Mine(TimeRegressor):
    defaults = {**TimeRegressor.defaults, **made()}
"""


def test_a_class_that_computes_its_declaration_is_imported(tmp_path: Path) -> None:
    (tmp_path / "recommenders").mkdir()
    (tmp_path / "recommenders" / "mine.py").write_text(OWN)
    assert complaint("mine", {"depth": 4, "shape": "flat"}, tmp_path) is None
    told = ("smooth", "must be true or false, not 1")
    assert complaint("mine", {"smooth": 1}, tmp_path) == told
    assert complaint("mine", {"depth": "deep"}, tmp_path) == (
        "depth", "must be an integer, not 'deep'"
    )  # fmt: skip


def test_no_library_is_imported_for_it() -> None:
    code = (
        "import sys\n"
        "from launchwise.learning.hyperparameters import complaint\n"
        "assert complaint('xgboost', {'rounds': 0}) and complaint('learnt', {'l2': -1})\n"
        "print({'pandas', 'sklearn', 'xgboost', 'lightgbm', 'optuna'} & sys.modules.keys())\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "set()\n"
