"""Trees of arrays predict what scikit-learn's predict."""

import subprocess
import sys
import zipfile

import numpy as np
import pytest
from sklearn.ensemble import RandomForestRegressor

from launchwise.learning import trees as module
from launchwise.learning.trees import Trees


@pytest.fixture(scope="module")
def features():
    return np.random.default_rng(1).integers(0, 6, (900, 5)).astype(np.float32) / 3


@pytest.fixture(scope="module")
def forest(features):
    target = np.sin(features.sum(axis=1)) + features[:, 0] ** 2
    grown = RandomForestRegressor(17, max_depth=9, max_features=0.6, random_state=3)
    return grown.fit(features, target, sample_weight=np.linspace(0.1, 1, len(target)))


@pytest.mark.parametrize("kept", [True, False])
def test_predictions_are_equal_to_the_last_bit(forest, features, kept, tmp_path, monkeypatch):
    trees = Trees.of(forest.estimators_, forest)
    if not kept:
        trees.write(tmp_path / "model.npz")
        trees = Trees.read(tmp_path / "model.npz")
        with zipfile.ZipFile(tmp_path / "model.npz") as archive:
            assert {one.date_time for one in archive.infolist()} == {(1980, 1, 1, 0, 0, 0)}
    asked = np.random.default_rng(2).uniform(-1, 3, (500, 5)).astype(np.float32)
    asked = np.concatenate([asked, features])
    monkeypatch.setattr(module, "PIECE", 300)
    assert (trees.grown is None) != kept
    assert trees.predict(asked).tolist() == forest.predict(asked).tolist()


def test_few_rows_need_no_scikit_learn(forest, tmp_path):
    path = tmp_path / "model.npz"
    Trees.of(forest.estimators_).write(path)
    code = (
        "import sys\nimport numpy as np\nfrom pathlib import Path\n"
        "from launchwise.learning.trees import Trees\n"
        f"found = Trees.read(Path({str(path)!r})).predict(np.ones((3, 5), dtype=np.float32))\n"
        "print(found.tolist(), 'sklearn' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    expected = forest.predict(np.ones((3, 5), dtype=np.float32)).tolist()
    assert done.stdout == f"{expected} False\n"


def test_nan_is_refused(forest):
    with pytest.raises(ValueError, match="a feature is NaN"):
        Trees.of(forest.estimators_).predict(np.full((1, 5), np.nan, dtype=np.float32))
