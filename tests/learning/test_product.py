"""The fitted model of a product: fitted once, and never another one than its facts say."""

import shutil

import pytest
from studies import by_size, entry, study

from launchwise.base.errors import UserError
from launchwise.experiment.settings import Search
from launchwise.learning.final import MODEL_FOLDER
from launchwise.learning.fitting import ALL_ROWS
from launchwise.learning.learn import Asked, Learning
from launchwise.learning.product import fit_answering, learnt_from, write_product
from launchwise.learning.training_rows import TrainingRows
from launchwise.tables.times import judged_times

GPU = "test"


def fit(domain, sweep, folder, k=3):
    asked = study("knn", splits=by_size([64, 100], [130]))
    rows = learnt_from(asked, domain, {GPU: sweep})
    models = {"knn": Asked(entry("knn", k=k), f"k={k}")}
    known = TrainingRows(rows.training, ())
    learning = Learning(models, known, domain, Search(), 1, ALL_ROWS)
    fit_answering(learning, "knn", rows, {GPU: sweep}, folder, "rows")


def times_of(folder):
    return {str(path): path.stat().st_mtime_ns for path in folder.rglob("*") if path.is_file()}


def test_what_is_current_is_not_fitted_again(one_gpu, sweep, tmp_path):
    fit(one_gpu, sweep, tmp_path / "fitted")
    before = times_of(tmp_path / "fitted")
    fit(one_gpu, sweep, tmp_path / "fitted")
    assert times_of(tmp_path / "fitted") == before
    fit(one_gpu, sweep, tmp_path / "fitted", k=1)
    assert times_of(tmp_path / "fitted") != before


def test_models_of_an_interrupted_run_do_not_pass_as_those_of_the_facts(one_gpu, sweep, tmp_path):
    one, other = tmp_path / "one", tmp_path / "other"
    fit(one_gpu, sweep, one)
    fit(one_gpu, sweep, other, k=1)
    shutil.rmtree(one / MODEL_FOLDER)
    shutil.copytree(other / MODEL_FOLDER, one / MODEL_FOLDER)
    times = {GPU: judged_times(sweep, (), one_gpu.spec)}
    with pytest.raises(UserError, match="one: is damaged: delete it"):
        write_product(one, tmp_path / "product", times, [], {}, one_gpu)
    fit(one_gpu, sweep, one)
    found = write_product(one, tmp_path / "product", times, [], {}, one_gpu)
    assert found.recommender.parameters["k"] == 3
