"""Trees of arrays predict what scikit-learn's predict."""

import subprocess
import sys
import zipfile

import numpy as np
import pytest
from sklearn.ensemble import RandomForestRegressor

from launchwise.base.arrays import write_arrays
from launchwise.base.errors import UserError
from launchwise.learning import trees as module
from launchwise.learning.trees import Grown, Trees


@pytest.fixture(scope="module")
def features():
    return np.random.default_rng(1).integers(0, 6, (900, 5)).astype(np.float32) / 3


@pytest.fixture(scope="module")
def forest(features):
    target = np.sin(features.sum(axis=1)) + features[:, 0] ** 2
    grown = RandomForestRegressor(17, max_depth=9, max_features=0.6, random_state=3)
    return grown.fit(features, target, sample_weight=np.linspace(0.1, 1, len(target)))


def test_predictions_are_equal_to_the_last_bit(forest, features, tmp_path, monkeypatch):
    grown = Grown.of(forest, forest.estimators_)
    grown.arrays().write(tmp_path / "model.npz")
    with zipfile.ZipFile(tmp_path / "model.npz") as archive:
        assert {one.date_time for one in archive.infolist()} == {(1980, 1, 1, 0, 0, 0)}
    asked = np.random.default_rng(2).uniform(-1, 3, (500, 5)).astype(np.float32)
    asked = np.concatenate([asked, features])
    monkeypatch.setattr(module, "PIECE", 300)
    for trees in (grown, Trees.read(tmp_path / "model.npz")):
        assert trees.predict(asked).tolist() == forest.predict(asked).tolist()


@pytest.mark.parametrize(
    "change",
    [
        {"children": np.zeros((2, 2), np.int64)},
        {"feature": np.array([99, -1, -1], np.int32)},
        {"children": np.array([[0, 1], [0, 0], [0, 0]])},
        {"starts": np.array([], np.int64)},
        {"nan_goes_left": np.array([True])},
        {"features": "many"},
        {"more": 1},
    ],
)
def test_trees_that_are_none_are_refused(tmp_path, change):
    split = np.array([0, -1, -1], np.int32), np.array([0.5, 0, 0])
    children = np.array([[1, 2], [0, 0], [0, 0]])
    trees = Trees(1, np.array([0]), *split, children, np.array([0.0, 1.0, 2.0]))
    path = tmp_path / "model.npz"
    trees.write(path)
    assert Trees.read(path).predict(np.array([[0.0], [1.0]])).tolist() == [1.0, 2.0]
    stored = {name: each for name, each in vars(trees).items() if each is not None}
    write_arrays(path, stored | change)
    with pytest.raises(UserError, match=r"model\.npz: cannot be read as a model"):
        Trees.read(path)


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
