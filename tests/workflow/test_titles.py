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
CHANGES = [
    ("A vector", "Vectors", False),
    ("Adds.", "Adds numbers.", False),
    ("description: size", "description: length", False),
    ("description: threads", "description: threads per block", False),
    ("title: plain", "title: simple", False),
    ("description: input", "description: what is added", False),
    ("title: A vector\n", "# A comment\n\ntitle: A vector\n", False),
    (", description: size", "", False),
    ("[1, 2]", "[1, 3]", True),
    ("[1, 2]", "[2, 1]", True),
    ("[1, 2]", "[1, 2.0]", True),
    ("n > 0", "n > 1", True),
    ("plain.cu", "other.cu", True),
    ("{plain: ", "{description: ", True),
    (
        "{n: {values: [1, 2], description: size}, dtype: {values: [float32]}}",
        "{dtype: {values: [float32]}, n: {values: [1, 2], description: size}}",
        True,
    ),
    ("block: {", "title: {", True),
]
"""A passage of the spec, another in its place, and whether that counts."""


@pytest.mark.parametrize(("old", "new", "counts"), CHANGES)
def test_texts_of_a_spec_do_not_count_and_everything_else_does(tmp_path, old, new, counts):
    assert old in SPEC
    path, digests = tmp_path / "spec.yaml", set()
    for text in (SPEC, SPEC.replace(old, new)):
        path.write_text(text)
        digests.add(spec_digest(path))
    assert len(digests) == 1 + counts


def test_a_hyper_parameter_with_the_name_of_a_text_counts():
    mine = {"kind": "tree", "title": "Mine", "parameters": {"title": 3}}
    asked = {"workload": "w", "title": "One", "question": "Which?", "models": ["mine"]}
    splits = {"s": {"kind": "leave_one_gpu_out", "title": "GPUs"}}
    study = Study.model_validate({**asked, "own_models": {"mine": mine}, "splits": splits})
    assert untitled_study(study)["own_models"]["mine"]["parameters"] == {"title": 3}
