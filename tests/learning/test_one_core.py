"""Models run on one core each."""

import os
import shutil
import subprocess
import sys

import pytest
from samples import ROOT, STENCIL, measurements, profile
from threadpoolctl import threadpool_limits

from launchwise.base.errors import UserError
from launchwise.base.typed import read_yaml
from launchwise.base.work import VARIABLES, one_thread
from launchwise.experiment.settings import Search
from launchwise.experiment.study import ModelEntry
from launchwise.learning.features import Domain
from launchwise.learning.fitting import fitted_to
from launchwise.learning.splits import Case, Fold
from launchwise.workloads.spec import load_spec

KINDS = read_yaml(ROOT / "tests/learning/data/kinds.yaml")
"""Name to the module of a kind of models."""


@pytest.fixture
def domain(tmp_path):
    """The tests' workload with kinds of a user's own."""
    folder = tmp_path / "kernels" / "stencil"
    shutil.copytree(STENCIL, folder, ignore=shutil.ignore_patterns("__pycache__"))
    own = folder / "recommenders"
    own.mkdir(exist_ok=True)
    for name, text in KINDS.items():
        (own / f"{name}.py").write_text(text)
    return Domain(load_spec(folder), {"test": profile()})


def fit(domain, kind, blamed=(), **parameters):
    """A model of a kind, named "mine", that is fitted to two sizes, and the facts of its fit."""
    blocks = [{"n": [64, 100], "dtype": ["float32"], "order": [2]}]
    cases = [Case("test", {"n": n, "dtype": "float32", "order": 2}) for n in (64, 100)]
    fold = Fold("it", "all", tuple(cases), ())
    rows = measurements(domain.spec, blocks)
    rows = rows[rows["time_ms"].notna()].reset_index(drop=True)
    entry = ModelEntry(kind=kind, title=kind, trials=0, parameters=parameters)
    known = domain.keeping_features(rows)
    return fitted_to(known, fold, "mine", entry, domain, Search(), 1, None, blamed)


def test_an_own_model_fits_and_predicts_on_one_thread(domain, tmp_path):
    outside = {name: os.environ.get(name) for name in VARIABLES}
    # Whatever the environment of the tests says.
    with threadpool_limits(2):
        fitted, facts = fit(domain, "modest")
    assert set(facts["limits"][0]) == {1}
    assert {name: os.environ.get(name) for name in VARIABLES} == outside
    fitted.save(tmp_path / "saved")
    model = type(fitted).load(tmp_path / "saved", domain)
    model._seen = []
    model.judge(domain.choices([Case("test", {"n": 64, "dtype": "float32", "order": 2})]))
    assert set(model._seen[0]) == {1}


def test_limits_within_limits_and_after_an_error_end():
    before = os.environ.get("OMP_NUM_THREADS")
    with one_thread():
        with pytest.raises(ZeroDivisionError), one_thread():
            1 / 0  # noqa: B018
        assert os.environ["OMP_NUM_THREADS"] == "1"
    assert os.environ.get("OMP_NUM_THREADS") == before


def test_a_model_that_cannot_be_fitted_blames_its_settings(domain):
    with pytest.raises(UserError, match="too deep") as caught:
        fit(domain, "broken", ("o.yaml", "a.parameters"), depth=4)
    assert str(caught.value) == "o.yaml: a.parameters: depth 4 is too deep"


def test_libraries_that_come_later_are_limited_too():
    code = (
        "import sys, time\n"
        "from launchwise.base.work import one_thread\n"
        "import numpy as np\n"
        "with one_thread():\n    pass\n"
        # Loaded outside: it takes as many threads as it likes, until the next block.
        "import sklearn.ensemble, threadpoolctl\n"
        "with one_thread():\n"
        "    pools = threadpoolctl.threadpool_info()\n"
        "print(sorted({each['num_threads'] for each in pools}), len(pools) > 1)\n"
    )
    environment = {**os.environ, **dict.fromkeys(VARIABLES, "3")}
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True
    )
    assert done.stdout == "[1] True\n"
