"""Titles and descriptions are no reason to rerun a stage; everything else of a spec is."""

import pytest

from launchwise.experiment.study import Study
from launchwise.workflow.studies import spec_digest, untitled_study

SPEC = """
title: A vector
description: Adds.
problem: {n: {values: [1, 2], description: size}, dtype: {values: [float32]}}
tunables: {block: {values: [32, 64], description: threads}}
constraints: [n > 0]
variants: {plain: {source: plain.cu, title: plain}}
arguments: {x: {type: float, description: input}}
"""
TEXTS = [
    ("A vector", "Vectors"),
    ("Adds.", "Adds numbers."),
    ("description: size", "description: length"),
    ("description: threads", "description: threads per block"),
    ("title: plain", "title: simple"),
    ("description: input", "description: what is added"),
    ("title: A vector\n", "# A comment\n\ntitle: A vector\n"),
    (", description: size", ""),
]
CHANGES = [
    ("[1, 2]", "[1, 3]"),
    ("[1, 2]", "[2, 1]"),
    ("[1, 2]", "[1, 2.0]"),
    ("n > 0", "n > 1"),
    ("plain.cu", "other.cu"),
    ("{plain: ", "{description: "),
    (
        "{n: {values: [1, 2], description: size}, dtype: {values: [float32]}}",
        "{dtype: {values: [float32]}, n: {values: [1, 2], description: size}}",
    ),
    ("block: {", "title: {"),
]


def digest(path, text):
    path.write_text(text)
    return spec_digest(path)


@pytest.mark.parametrize(("old", "new"), TEXTS)
def test_texts_of_a_spec_do_not_count(tmp_path, old, new):
    assert old in SPEC
    path = tmp_path / "spec.yaml"
    assert digest(path, SPEC.replace(old, new)) == digest(path, SPEC)


@pytest.mark.parametrize(("old", "new"), CHANGES)
def test_everything_else_of_a_spec_counts(tmp_path, old, new):
    assert old in SPEC
    path = tmp_path / "spec.yaml"
    assert digest(path, SPEC.replace(old, new)) != digest(path, SPEC)


def test_a_study_without_titles_is_a_study_and_asks_the_same():
    study = Study.model_validate(
        {
            "workload": "w",
            "title": "One",
            "question": "Which?",
            "models": ["tree", "mine"],
            "own_models": {"mine": {"kind": "tree", "title": "Mine", "parameters": {"title": 3}}},
            "splits": {"s": {"kind": "leave_one_gpu_out", "title": "GPUs"}},
        }
    )
    plain = untitled_study(study)
    assert Study.model_validate(plain).models == study.models
    assert plain["own_models"]["mine"]["parameters"] == {"title": 3}
    texts = [plain["title"], plain["question"], plain["splits"]["s"]["title"]]
    assert [*texts, plain["own_models"]["mine"]["title"]] == [""] * 4
    assert {**plain, "title": "", "question": ""} == untitled_study(
        study.model_copy(update={"title": "Two", "question": "What?"})
    )
