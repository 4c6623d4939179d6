"""Products that somebody edited and sealed anew: an answer of the same kind, or one line."""

import copy
import random
import shutil

import pytest
from command_line import line_of
from products import STUDY, stencil_project

from launchwise.base.storage import read_sealed_json, write_sealed_json
from launchwise.cli.app import main

MEMBERS = "gaussian_process, knn, forest, lightgbm, xgboost, nearest_size"
ASKED = ["recommend", STUDY, "--gpu", "card.sm16", "dtype=float32", "order=8"]
# A second suggestion is the model's.
BETWEEN, MEASURED = [*ASKED, "n=400", "--top", "2"], [*ASKED, "n=256"]
STRANGE = (
    *(None, True, -1, 0.5, 1e308, 10**40, "x", "", "\n", [], {}, [[1]], [None], {"x": None}),
)
EDITS = 24


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    root = tmp_path_factory.mktemp("made")
    stencil_project(root, MEMBERS)
    return root


@pytest.fixture
def product(made, tmp_path, monkeypatch):
    """The product of a project that is the current folder."""
    root = tmp_path / "project"
    shutil.copytree(made, root)
    monkeypatch.chdir(root)
    return root / "results" / "final" / STUDY


def keys(content):
    """Ways to each key, to the first entries of each list and of each long mapping."""
    if not isinstance(content, dict | list):
        return
    every = list(content) if isinstance(content, dict) else list(range(len(content)))
    for key in every[: 2 if isinstance(content, list) or len(content) > 20 else None]:
        yield (key,)
        yield from ((key, *rest) for rest in keys(content[key]))


def edited(content, way, strange):
    """With another value at one key; without the key where the value is ``...``."""
    changed = copy.deepcopy(content)
    inside = changed
    for key in way[:-1]:
        inside = inside[key]
    if strange is ...:
        del inside[way[-1]]
    else:
        inside[way[-1]] = strange
    return changed


@pytest.mark.parametrize(
    ("name", "way", "strange", "said"),
    [
        ("", ("time_intervals",), [1], "time_intervals: must be"),
        ("", ("time_intervals",), {"problems": 30, "covered": 1, "stretch": 1e308}, "stretch: "),
        ("", ("gpus",), ["card.sm16"], "gpus: must be a mapping"),
        ("", ("gpus",), {"card.sm99": "x"}, "unknown GPU or card 'card.sm99'"),
        ("", ("kind",), "oracle", "kind: unknown kind of model 'oracle'"),
        ("", ("measurements", "card.sm16", "days"), 7, "measurements.card.sm16.days: must be"),
        ("recommender", ("parameters",), [], "parameters: must be a mapping"),
        ("recommender", ("state", "kinds", "knn"), "oracle", "unknown kind of model 'oracle'"),
        ("recommender", ("parameters", "caution"), -1, "parameters.caution: must be"),
        ("recommender", ("parameters", "folds"), 1, "parameters.folds: unknown key 'folds'"),
        ("recommender", ("state", "experience", "problems"), -1, "experience.problems: must be"),
        ("recommender", ("state", "experience", "gpus"), 7, "experience.gpus: must be"),
        ("recommender/lightgbm", ("state", "columns"), ["n"], "was fitted to"),
        ("recommender/xgboost", ("state", "columns"), ["n"], "was fitted to"),
        ("recommender/forest", ("state", "columns"), ["n"], "was fitted to"),
        ("recommender/knn", ("state", "columns"), ["n"], "was fitted to"),
        ("recommender/knn", ("state", "constant", "color"), 1.0, "'color' is no feature of"),
        ("recommender/knn", ("state", "levels", "levels"), [1.0], "other numbers of columns"),
        ("recommender/gaussian_process", ("state", "scales"), [1.0], "are not those of its points"),
        ("recommender/best_on_average", ("state", "columns"), ["color"], "'color' is no tunable"),
        ("recommender/best_on_average", ("state", "regrets"), {"x": 1.0}, "regrets.x: "),
    ],
)
def test_what_no_product_holds_is_named_with_its_file(
    product,
    capsys,
    name,
    way,
    strange,
    said,
):
    path = product / (f"{name}/recommender.json" if name else "final.json")
    write_sealed_json(path, edited(read_sealed_json(path), way, strange))
    line = line_of(capsys, *BETWEEN)
    assert str(path.relative_to(product)) in line
    assert said in line


@pytest.mark.parametrize(
    ("way", "strange", "said"),
    [
        (("workload",), "saxpy", "workload: is of saxpy, not of stencil"),
        (("parameters",), ["n"], "entries: are of other devices or parameters"),
        (("entries", 0, "device"), 7, "entries: are of other devices or parameters"),
        (("entries", 0, "choice"), 10**6, "configurations: some are missing"),
        (("entries", 0, "basis"), "guessed", "entries: 'guessed' is no basis"),
        (("entries", 0, "problem"), [-1, "float32", 8], "entries: are of another workload"),
        (("entries", 0, "scale"), 9, "entries: are of another workload"),
        (("configurations", 0, "variant"), "x", "configurations: are of another workload"),
        (("features", 0), ["color", "1"], "features: are of another workload"),
        (("features", 0), ["n / 2", "1"], "features: are of another workload"),
        (("devices", 1, "facts"), [1], "devices: card.sm72: needs"),
        (("devices", 1, "judge", "left"), [0], "devices: card.sm72: its trees have other nodes"),
        (("devices", 1, "judge", "left", 0), 0, "devices: card.sm72: its trees have other nodes"),
        (("devices", 1, "judge", "feature", 0), 99, "card.sm72: its trees have other nodes"),
    ],
)
def test_what_no_table_of_answers_holds_is_named_with_its_file(
    product,
    capsys,
    way,
    strange,
    said,
):
    path = table_of(product)
    write_sealed_json(path, edited(read_sealed_json(path), way, strange))
    line = line_of(capsys, *MEASURED)
    assert f"results/lookup/{STUDY}.json" in line
    assert said in line


def table_of(product):
    return product.parents[1] / "lookup" / f"{STUDY}.json"


def test_an_edit_that_is_sealed_anew_gives_no_traceback(product, capsys):
    # Facts of builds are a model's own file, which its recommender.json vouches for.
    files = sorted(path for path in product.rglob("*.json") if path.name != "builds.json")
    files += [table_of(product)] * (len(files) // 3)
    contents = {path: read_sealed_json(path) for path in {*files}}
    places = [(path, way) for path in files for way in keys(contents[path])]
    dice = random.Random(11)
    refused = 0
    for path, way in dice.sample(places, EDITS):
        strange = dice.choice([..., *STRANGE])
        write_sealed_json(path, edited(contents[path], way, strange))
        code = main(BETWEEN if dice.random() < 0.7 else MEASURED)
        said, where = capsys.readouterr(), (path.name, way, strange)
        if code:
            assert (code, said.out, said.err.count("\n")) == (2, "", 1), where
            refused += 1
        else:
            first, *_, last = said.out.splitlines()
            assert first.startswith("n="), where
            assert last.startswith("why: "), where
        write_sealed_json(path, contents[path])
    assert EDITS / 3 < refused < EDITS
