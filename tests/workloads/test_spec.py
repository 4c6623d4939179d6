"""Specs: what ``spec.yaml`` may hold, and the one line for what it may not."""

import shutil

import pytest

from launchwise.base.errors import UserError
from launchwise.base.typed import read_yaml
from launchwise.tables.measurements import measurement_schema
from launchwise.workloads.parts import MEASURED_COLUMNS
from launchwise.workloads.spec import load_spec
from tests.support.samples import ROOT, STENCIL
from tests.support.spec_changes import MISTAKES, changed

FILES = read_yaml(ROOT / "tests" / "workloads" / "data" / "files.yaml")


@pytest.fixture
def folder(tmp_path):
    """A copy of the stencil to break."""
    copy = tmp_path / "kernels" / "stencil"
    shutil.copytree(STENCIL, copy, ignore=shutil.ignore_patterns("__pycache__"))
    return copy


@pytest.mark.parametrize("what", MISTAKES["spec"])
def test_a_bad_spec_is_one_line_with_file_key_and_reason(folder, what):
    changes, start, *parts = MISTAKES["spec"][what]
    with pytest.raises(UserError) as caught:
        load_spec(changed(folder, changes))
    line = str(caught.value)
    assert line.startswith(f"{folder / 'spec.yaml'}: {start}")
    assert all(part in line for part in parts)


def test_features_stand_in_one_file_and_are_checked_there(folder):
    path, spec = folder / "features.yaml", folder / "spec.yaml"
    path.write_text("size: n\nfits: n * gpu_l3_bytes\n")
    with pytest.raises(UserError) as caught:
        load_spec(folder)
    assert str(caught.value).startswith(f"{path}: features.fits: unknown name 'gpu_l3_bytes'")
    path.write_text("size: n\nfits: n * gpu_l2_bytes\n")
    assert load_spec(folder).features == {"size": "n", "fits": "n * gpu_l2_bytes"}
    spec.write_text(spec.read_text() + "features: {size: n}\n")
    with pytest.raises(UserError, match=r"also given in .*: keep one of them"):
        load_spec(folder)


@pytest.mark.parametrize(("content", "said"), FILES["no mapping"])
def test_a_file_that_is_no_mapping_is_one_line(folder, content, said):
    (folder / "spec.yaml").unlink()
    if content is not None:
        (folder / "spec.yaml").write_bytes(content.encode("latin-1"))
    with pytest.raises(UserError) as caught:
        load_spec(folder)
    line = str(caught.value)
    assert line.startswith(f"{folder / 'spec.yaml'}: ")
    assert said in line


def test_merged_keys_may_be_overridden_and_anchors_used(folder):
    path = folder / "spec.yaml"
    text = path.read_text()
    head, middle = "  by:\n    kind: launch\n", "    description: block size along y\n"
    assert head in text
    assert middle in text
    text = text.replace("  bx:\n", "  bx: &b\n").replace(head, "  by:\n    <<: *b\n")
    path.write_text(text)
    assert load_spec(folder).tunables["by"].kind == "launch"
    assert load_spec(folder).tunables["by"].description == "block size along y"


def test_no_parameter_can_have_the_name_of_a_measured_column(stencil_spec):
    own = {*stencil_spec.problem_columns, *stencil_spec.tunable_columns}
    assert set(MEASURED_COLUMNS) == set(measurement_schema(stencil_spec).columns) - own


def test_what_may_be_recommended_is_what_is_verified(folder):
    spec = load_spec(folder)
    assert spec.recommendable is spec
    spec = load_spec(changed(folder, {"variants.column.verified": False}))
    assert list(spec.recommendable.variants) == [each for each in spec.variants if each != "column"]
    assert spec.recommendable.tunables == spec.tunables
    # What was narrowed afterwards has not kept the other's.
    narrowed = spec.narrowed({"variant": ["linear", "column"]})
    assert list(narrowed.recommendable.variants) == ["linear"]


@pytest.mark.parametrize(("problem", "said"), FILES["problem"])
def test_a_problem_is_checked_parameter_by_parameter(stencil_spec, problem, said):
    found = stencil_spec.check_problem(problem)
    assert found is None if said is None else said in str(found)
