"""Products that somebody edited and sealed anew: an answer of the same kind, or one line."""

import contextlib
import random
from pathlib import Path

import pytest
from command_line import line_of
from edits import with_value
from products import STUDY

from launchwise.base.errors import UserError
from launchwise.base.storage import read_sealed_json, write_sealed_json
from launchwise.base.typed import read_yaml
from launchwise.cli.app import main
from launchwise.cli.recommending import loaded
from launchwise.cli.words import read_experiment
from launchwise.learning.answering import answers

ASKED = ["recommend", STUDY, "--gpu", "card.sm16", "dtype=float32", "order=8"]
# A second suggestion is the model's.
BETWEEN, MEASURED = [*ASKED, "n=400", "--top", "2"], [*ASKED, "n=256"]
STRANGE = (
    *(None, True, -1, 0.5, 1e308, 10**40, "x", "", "\n", [], {}, [[1]], [None], {"x": None}),
)
EDITS = 24
RESEALED = read_yaml(Path(__file__).parent / "data" / "resealed.yaml")


@pytest.fixture
def product(project):
    return project / "results" / "final" / STUDY


def keys(content):
    """Ways to each key, to the first entries of each list and of each long mapping."""
    if not isinstance(content, dict | list):
        return
    every = list(content) if isinstance(content, dict) else list(range(len(content)))
    for key in every[: 2 if isinstance(content, list) or len(content) > 20 else None]:
        yield (key,)
        yield from ((key, *rest) for rest in keys(content[key]))


@pytest.mark.parametrize(("name", "way", "strange", "said"), RESEALED)
def test_what_no_product_holds_is_named_with_its_file(product, capsys, name, way, strange, said):
    path = table_of(product) if name == "lookup" else product / f"{name}.json"
    write_sealed_json(path, with_value(read_sealed_json(path), way, strange))
    if name.startswith("recommender") or way == ["kind"]:
        with pytest.raises(UserError) as caught:
            asked_of_the_model()
        line = str(caught.value)
    else:
        line = line_of(capsys, *(MEASURED if name == "lookup" else BETWEEN))
    assert (f"results/lookup/{STUDY}.json" if name == "lookup" else f"{name}.json") in line
    assert said in line


def test_an_edit_that_is_not_sealed_anew_is_told(product):
    for path in (product / "final.json", *product.glob("recommender/**/*.json")):
        text = path.read_text()
        path.write_text(text.replace("{", '{"x": [], ', 1))
        with pytest.raises(UserError, match=f"{path.relative_to(product)}: "):
            asked_of_the_model()
        path.write_text(text)


def asked_of_the_model():
    """What a search on a GPU starts from: the table of answers does not say it."""
    experiment = read_experiment([Path("config.yaml")], Path.cwd(), STUDY)
    case, final = loaded(STUDY, "card.sm16", ["dtype=float32", "order=8", "n=400"], experiment)
    return answers(final, [case], 2)


def table_of(product):
    return product.parents[1] / "lookup" / f"{STUDY}.json"


def test_an_edit_that_is_sealed_anew_gives_no_traceback(product, capsys):
    files = sorted(product.rglob("*.json"))
    files += [table_of(product)] * (len(files) // 3)
    contents = {path: read_sealed_json(path) for path in {*files}}
    places = [(path, way) for path in files for way in keys(contents[path])]
    dice = random.Random(11)
    refused = 0
    for path, way in dice.sample(places, EDITS):
        strange = dice.choice([..., *STRANGE])
        write_sealed_json(path, with_value(contents[path], way, strange))
        code = main(BETWEEN if dice.random() < 0.7 else MEASURED)
        said, where = capsys.readouterr(), (path.name, way, strange)
        with contextlib.suppress(UserError):
            asked_of_the_model()
            refused -= not code
        refused += not code
        if code:
            assert (code, said.out, said.err.count("\n")) == (2, "", 1), where
            refused += 1
        else:
            first, *_, last = said.out.splitlines()
            assert first.startswith("n="), where
            assert last.startswith("why: "), where
        write_sealed_json(path, contents[path])
    assert EDITS / 3 < refused < EDITS
