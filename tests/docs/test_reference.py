"""The reference: descriptions, JSON schemas and pages that come from the typed models."""

import re
import shutil
from functools import cache
from pathlib import Path

import pytest
from edits import with_value
from jsonschema import Draft202012Validator
from pydantic import ValidationError
from samples import ROOT

from docs.generator import generating, markdown
from docs.generator.__main__ import main
from docs.generator.expression_page import FUNCTION_DESCRIPTIONS
from docs.generator.generating import PAGES, generated, stale_files
from docs.generator.markdown import capital, escaped
from docs.generator.pages import MODEL_PAGES
from docs.generator.schemas import FEATURES, MODELS, Generator, nested_models, schemas
from launchwise.base.arithmetic import FUNCTIONS
from launchwise.base.typed import read_yaml
from launchwise.experiment.loading import load_experiment
from launchwise.experiment.method import Method
from launchwise.experiment.study import Study

CASES = read_yaml(ROOT / "tests/docs/data/wrong_keys.yaml")

every_schema = cache(schemas)
EXAMPLES = ROOT / generating.EXAMPLES
WORKLOADS = [*sorted(ROOT.glob("kernels/*/")), ROOT / "docs" / "tutorial" / "example" / "saxpy"]
FILES = [
    (ROOT / "config.yaml", "config"),
    (ROOT / "docs" / "tutorial" / "example" / "config.yaml", "config"),
    *(
        (folder / f"{name}.yaml", name)
        for folder in WORKLOADS
        for name in ("sweep", "spec", "cost", FEATURES)
        if (folder / f"{name}.yaml").is_file()
    ),
    *(
        (path, "study")
        for folder in WORKLOADS
        for path in sorted(folder.glob("studies/*/study.yaml"))
    ),
]
OWN_FILES = [(path, name) for path, name in FILES if "docs" not in path.relative_to(ROOT).parts]
EVERY_MODEL = list(
    dict.fromkeys(
        each for model in (*MODELS.values(), Method, Study) for each in nested_models(model)
    )
)


def name_of(path):
    """A file of the project, for the names of tests."""
    return path.relative_to(ROOT).as_posix() if isinstance(path, Path) else str(path)


@cache
def validator(name):
    """Of the JSON schema of a file, which is valid itself."""
    schema = every_schema()[name]
    Draft202012Validator.check_schema(schema)
    return Draft202012Validator(schema)


def errors(name, value):
    """What the JSON schema of a file finds wrong with ``value``."""
    return [error.message for error in validator(name).iter_errors(value)]


# Descriptions


@cache
def described(model):
    """Keys of a model to what its JSON schema says of them."""
    properties = model.model_json_schema(schema_generator=Generator)["properties"]
    return {name: properties[name].get("description", "") for name in model.model_fields}


@pytest.mark.parametrize("model", EVERY_MODEL, ids=lambda model: model.__name__)
def test_every_field_is_described_and_every_model_has_a_title(model):
    assert model.__dict__["__doc__"], "a docstring of its own"
    assert "title" in model.model_config
    bare = [name for name, description in described(model).items() if not description]
    assert not bare, f"{model.__name__}: no description of {', '.join(bare)}"


def test_every_function_is_described():
    assert set(FUNCTION_DESCRIPTIONS) == set(FUNCTIONS)
    for name, (example, text) in FUNCTION_DESCRIPTIONS.items():
        assert example.startswith(f"{name}(")
        assert text


# Generated files


@pytest.fixture(scope="module")
def files():
    return generated(ROOT)


def test_schemas_and_pages_are_not_stale(files):
    stale = stale_files(files)
    assert not stale, f"stale: {', '.join(map(name_of, stale))}: run `make reference`"


def test_no_schema_is_left_over(files):
    there = {path for path in (ROOT / markdown.SCHEMAS).iterdir()}
    assert there == {path for path in files if path.suffix == ".json"}


def test_the_command_writes_files_and_names_stale_ones(tmp_path, monkeypatch, capsys):
    shutil.copytree(EXAMPLES, tmp_path / generating.EXAMPLES)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(generating, "schemas", every_schema)
    assert main(["--check"]) == 1
    assert not (tmp_path / "schemas").exists()
    assert main([]) == 0
    capsys.readouterr()
    # One is named: all others are as they were written.
    page = PAGES / "sweep.md"
    page.write_text(page.read_text().replace("ms", "s"))
    assert main(["--check"]) == 1
    said = capsys.readouterr().err.splitlines()
    assert len(said) == 1
    assert "sweep.md" in said[0]
    assert "make reference" in said[0]
    (tmp_path / generating.EXAMPLES / "cost.yaml").unlink()
    assert main([]) == 1
    assert "cost.yaml: cannot be read" in capsys.readouterr().err


# Files of the project


@pytest.mark.parametrize(("path", "name"), FILES, ids=name_of)
def test_files_of_the_project_fit_their_schema(path, name):
    assert errors(name, read_yaml(path)) == []


@pytest.mark.parametrize(("name", "place", "new"), CASES["files"])
def test_a_wrong_key_or_value_is_refused_deep_in_a_file(name, place, new):
    example = read_yaml(EXAMPLES / f"{name}.yaml")
    assert errors(name, example) == []
    assert errors(name, with_value(example, place, new))


def places(value, above=()):
    """Every key of nested mappings."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield (*above, key)
            yield from places(inner, (*above, key))
    elif isinstance(value, list):
        for number, inner in enumerate(value):
            yield from places(inner, (*above, number))


@pytest.mark.parametrize("name", MODELS)
def test_schema_and_model_agree_on_which_keys_are_required(name):
    example = read_yaml(EXAMPLES / f"{name}.yaml")
    missing = 0
    for place in places(example):
        value = with_value(example, place, ...)
        try:
            MODELS[name].model_validate(value)
            refused = False
        except ValidationError as error:
            # Other mistakes (an unknown name in an expression) are beyond a schema.
            kinds = {problem["type"] for problem in error.errors()}
            refused = bool(kinds - {"value_error"})
        assert bool(errors(name, value)) == refused, place
        missing += refused
    assert missing


@pytest.mark.parametrize(("path", "name"), OWN_FILES, ids=name_of)
def test_editors_find_the_schema_of_a_file(path, name):
    first = path.read_text().splitlines()[0]
    if name == "spec":
        # Its bytes are part of the sweeps' fingerprints.
        assert "schema" not in first
        return
    found = re.fullmatch(r"# yaml-language-server: \$schema=(\S+)", first)
    assert found, first
    assert (path.parent / found[1]).resolve() == ROOT / f"schemas/{name}.schema.json"


# Overrides in config.yaml


OVERRIDDEN = {"study": "studies", "sweep": "sweeps"}
"""File to the key of the settings that overrides keys of it."""


def overriding(part, name, changes):
    """Settings that override keys of a file."""
    return {"gpus": {"local": {"source": "live"}}, part: {name: changes}}


@pytest.mark.parametrize(
    ("path", "part"),
    [(path, OVERRIDDEN[name]) for path, name in FILES if name in OVERRIDDEN],
    ids=name_of,
)
def test_any_part_of_a_study_or_sweep_may_be_overridden_or_removed(path, part):
    value = read_yaml(path)
    assert errors("config", overriding(part, "one", value)) == []
    for place in places(value):
        if any(isinstance(key, int) for key in place):
            continue  # A list is replaced whole.
        inner = value
        for key in place:
            inner = inner[key]
        for new in (inner, None):
            for key in reversed(place):
                new = {key: new}
            assert errors("config", overriding(part, "one", new)) == [], place


@pytest.mark.parametrize(("part", "changes"), CASES["overrides"])
def test_wrong_overrides_are_refused(part, changes):
    assert errors("config", overriding(part, "one", {})) == []
    assert errors("config", overriding(part, "one", None)) == []
    assert errors("config", overriding(part, "one", changes))


# Pages and examples


def test_every_key_of_every_model_is_on_its_page():
    for page in MODEL_PAGES:
        text = (ROOT / PAGES / f"{page.name}.md").read_text()
        for model in page.models:
            title = capital(str(model.model_config["title"]))
            heading = "Keys" if model is page.model else title
            section = text.partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
            for key, description in described(model).items():
                row = next(line for line in section.splitlines() if line.startswith(f"| `{key}` |"))
                assert escaped(description) in row
    on_pages = {model for page in MODEL_PAGES for model in page.models}
    assert on_pages == set(EVERY_MODEL) - {Method, Study}


def test_examples_together_are_an_experiment(tmp_path):
    workload = tmp_path / "kernels" / "matmul"
    study = workload / "studies" / "matmul_tile"
    study.mkdir(parents=True)
    for name in ("spec", FEATURES, "cost", "sweep"):
        shutil.copy(EXAMPLES / f"{name}.yaml", workload)
    shutil.copy(EXAMPLES / "study.yaml", study)
    (workload / "tiled.cu").touch()
    config = EXAMPLES / "config.yaml"
    experiment = load_experiment(read_yaml(config), [config], tmp_path)
    assert list(experiment.studies) == ["matmul_tile"]
    assert len(experiment.problems_of("local", "matmul")) == 6
