"""Specs: what ``spec.yaml`` may hold, and the one line for what it may not."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from launchwise.base.errors import UserError
from launchwise.experiment.discovery import find_workloads
from launchwise.tables.measurements import measurement_schema
from launchwise.workloads.parts import MEASURED_COLUMNS
from launchwise.workloads.spec import Spec, load_spec
from tests.support.samples import STENCIL

Change = Callable[[dict[str, Any]], Any]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A copy of the stencil to break."""
    copy = tmp_path / "kernels" / "stencil"
    shutil.copytree(STENCIL, copy, ignore=shutil.ignore_patterns("__pycache__"))
    return copy


def put(*path: str, value: Any) -> Change:
    """A change that sets the value at ``path``."""

    def change(spec: dict[str, Any]) -> None:
        for part in path[:-1]:
            spec = spec[part]
        spec[path[-1]] = value

    return change


def drop(*path: str) -> Change:
    """A change that removes the key at ``path``."""

    def change(spec: dict[str, Any]) -> None:
        for part in path[:-1]:
            spec = spec[part]
        del spec[path[-1]]

    return change


def complaint_of(folder: Path, change: Change) -> str:
    """The line that ``change`` gives."""
    path = folder / "spec.yaml"
    spec = yaml.safe_load(path.read_text())
    change(spec)
    path.write_text(yaml.safe_dump(spec, sort_keys=False))
    with pytest.raises(UserError) as caught:
        load_spec(folder)
    line = str(caught.value)
    assert line.startswith(f"{path}: ")
    assert "\n" not in line
    return line.removeprefix(f"{path}: ")


PROBLEM = {"type": "integer", "description": "x"}
TUNABLE = {"kind": "launch", "values": [1, 2], "neutral": 1, "description": "x"}
BAD: dict[str, tuple[Any, ...]] = {
    "a key that does not exist": (put("problms", value={}), "problms: unknown key", "did you mean"),
    "a nested key that does not exist": (
        put("tunables", "bx", "vals", value=[1]),
        "tunables.bx.vals: unknown key",
        "values",
    ),
    "a missing key": (drop("baseline"), "baseline: is missing"),
    "a missing nested key": (drop("work", "flop"), "work.flop: is missing"),
    "a required key that is misspelt": (
        lambda spec: spec.update(base_line=spec.pop("baseline")),
        "base_line: unknown key 'base_line', did you mean 'baseline'?",
    ),
    "a wrong type": (put("problem", "n", "minimum", value="x"), "problem.n.minimum: must", "'x'"),
    "an unknown kind": (
        put("tunables", "bx", "kind", value="run"),
        "tunables.bx.kind: must be 'build' or 'launch' (got 'run')",
    ),
    "no values": (put("tunables", "bx", "values", value=[]), "tunables.bx.values: ", "at least 1"),
    "a value given twice": (
        put("tunables", "bx", "values", value=[8, 8]),
        "tunables.bx.values: a value is given twice",
    ),
    "numbers and texts mixed": (
        put("tunables", "bx", "values", value=[8, "x"]),
        "tunables.bx: its values mix numbers and texts",
    ),
    "a category without values": (
        put("problem", "dtype", value={"type": "category", "description": "x"}),
        "problem.dtype: a category needs values",
    ),
    "a category of numbers": (
        put("problem", "dtype", "values", value=[4]),
        "problem.dtype: values: 4 is not of type category",
    ),
    "bounds in the wrong order": (
        put("problem", "n", "maximum", value=3),
        "problem.n: minimum 20 is above maximum 3",
    ),
    "an unknown name in a constraint": (
        put("constraints", value=["bw > 3"]),
        "constraints: unknown name 'bw'",
        "in 'bw > 3'",
    ),
    "an unknown name in a variant's constraint": (
        put("variants", "block3d", "constraints", value=["thread >= 64"]),
        "variants.block3d.constraints: unknown name 'thread', did you mean 'threads'?",
    ),
    "an unknown name in a grid": (
        put("variants", "linear", "grid", value=["blocks", "1", "1"]),
        "variants.linear.grid: unknown name 'blocks'",
    ),
    "a fact of the GPU among the features": (
        put("features", value={"memory": "gpu_memory_bytes"}),
        "features.memory: unknown name 'gpu_memory_bytes'",
    ),
    "a derived name used before it is derived": (
        lambda spec: spec["derived"].update(a="b + 1", b="n"),
        "derived.a: unknown name 'b'",
    ),
    "no expression": (put("work", "bytes", value="4 *"), "work.bytes: '4 *' is not an expression"),
    "an unsafe expression": (
        put("constraints", value=["n.real > 1"]),
        "constraints: 'n.real > 1' uses more than",
    ),
    "a function that does not exist": (
        put("work", "flop", value="sqrt(n)"),
        "work.flop: 'sqrt(n)' calls 'sqrt' (allowed: abs, ceil_div, log2, max, min, "
        "next_power_of_2, round_up)",
    ),
    "work that depends on a tunable": (put("work", "flop", value="bx"), "work.flop: unknown name"),
    "work that depends on a tunable through a derived name": (
        put("work", "flop", value="threads * n"),
        "work.flop: 'threads * n' reads bx; it may read problem parameters only",
    ),
    "a variant with an unknown tunable": (
        put("variants", "column", "tunables", value=["tw"]),
        "variants.column.tunables: unknown tunable 'tw'",
    ),
    "an unknown baseline": (
        put("baseline", value={"variant": "lnear"}),
        "baseline: unknown variant 'lnear', did you mean 'linear'?",
    ),
    "a baseline with an unknown tunable": (
        put("baseline", "bw", value=1),
        "baseline: unknown tunable 'bw'",
    ),
    "a baseline with an impossible value": (
        put("baseline", value={"variant": "block3d", "bx": 7}),
        "baseline.bx: 7 is not a value of this tunable",
    ),
    "a baseline that is not verified": (
        put("variants", "linear", "verified", value=False),
        "baseline: variant 'linear' is not verified: nothing can be compared with it",
    ),
    "no variant that is verified": (
        lambda spec: [variant.update(verified=False) for variant in spec["variants"].values()],
        "variants: none is verified, so none could be recommended",
    ),
    "a missing source": (
        put("variants", "linear", "source", value="lin.cu"),
        "variants.linear.source: no file 'lin.cu'",
    ),
    "a missing header": (put("headers", value=["x.cuh"]), "headers: no file 'x.cuh'"),
    "another folder's name": (
        put("workload", value="saxpy"),
        "workload: is 'saxpy' but the folder is 'stencil'",
    ),
    "a parameter named as a column": (
        put("problem", "status", value=PROBLEM),
        "problem.status: status is already a name that every sweep has",
    ),
    "a tunable named as a column of a later table": (
        put("tunables", "rank", value=TUNABLE),
        "tunables.rank: rank is already a column of later tables",
    ),
    "a tunable named as a problem parameter": (
        put("tunables", "n", value=TUNABLE),
        "tunables.n: n is already in problem",
    ),
    "a derived name that hides a tunable": (
        put("derived", "bx", value="8"),
        "derived.bx: bx is already in tunables",
    ),
    "a tunable named as a function": (
        put("tunables", "min", value=TUNABLE),
        "tunables.min: min is already a function",
    ),
    "a name that no expression can say": (
        put("tunables", "b-x", value=TUNABLE),
        "tunables.b-x: its name must match pattern",
    ),
}


@pytest.mark.parametrize("what", BAD)
def test_a_bad_spec_is_one_line_with_file_key_and_reason(folder: Path, what: str) -> None:
    change, start, *parts = BAD[what]
    line = complaint_of(folder, change)
    assert line.startswith(start)
    assert all(part in line for part in parts)


def test_features_stand_in_one_file_and_are_checked_there(folder: Path) -> None:
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


@pytest.mark.parametrize(
    ("content", "said"),
    [
        ("a: 1\nb: 2\na: 3\n", "line 3: 'a' is given twice"),
        ("problem:\n  n: {type: integer}\n  n: {}\n", "line 3: 'n' is given twice"),
        ("a: [1\n", "line 2: not valid YAML: did not find expected ',' or ']'"),
        ("a: \x07\n", "not valid YAML: unacceptable character"),
        ("? [a, b]\n: 1\n", "line 1: a key must be a name"),
        ("", "must be a mapping"),
        ("- 1\n", "must be a mapping"),
        ("text\n", "must be a mapping"),
    ],
)
def test_a_file_that_is_no_mapping_is_one_line(folder: Path, content: str, said: str) -> None:
    (folder / "spec.yaml").write_text(content)
    with pytest.raises(UserError) as caught:
        load_spec(folder)
    line = str(caught.value)
    assert line.startswith(f"{folder / 'spec.yaml'}: ")
    assert said in line
    assert "\n" not in line


def test_a_file_that_is_no_text_or_not_there_is_one_line(folder: Path) -> None:
    (folder / "spec.yaml").write_bytes(b"workload: \xff\n")
    with pytest.raises(UserError, match="is not UTF-8 text"):
        load_spec(folder)
    (folder / "spec.yaml").unlink()
    with pytest.raises(UserError, match="cannot be read: No such file"):
        load_spec(folder)


def test_merged_keys_may_be_overridden_and_anchors_used(folder: Path) -> None:
    path = folder / "spec.yaml"
    text = path.read_text()
    head, middle = "  by:\n    kind: launch\n", "    description: block size along y\n"
    assert head in text
    assert middle in text
    text = text.replace("  bx:\n", "  bx: &b\n").replace(head, "  by:\n    <<: *b\n")
    path.write_text(text)
    assert load_spec(folder).tunables["by"].kind == "launch"
    assert load_spec(folder).tunables["by"].description == "block size along y"


def test_workloads_are_found_by_folder_and_names_are_unique(folder: Path, tmp_path: Path) -> None:
    (folder.parent / "no_workload").mkdir()
    assert find_workloads([folder.parent]) == {"stencil": folder}
    other = tmp_path / "other" / "stencil"
    shutil.copytree(folder, other)
    with pytest.raises(UserError, match="workload 'stencil' is also in") as caught:
        find_workloads([folder.parent, other.parent])
    assert str(caught.value).startswith(str(other / "spec.yaml"))


def test_no_parameter_can_have_the_name_of_a_measured_column(stencil_spec: Spec) -> None:
    own = {*stencil_spec.problem_columns, *stencil_spec.tunable_columns}
    assert set(MEASURED_COLUMNS) == set(measurement_schema(stencil_spec).columns) - own


def test_what_may_be_recommended_is_what_is_verified(folder: Path) -> None:
    spec = load_spec(folder)
    assert spec.recommendable is spec
    path = folder / "spec.yaml"
    content = yaml.safe_load(path.read_text())
    content["variants"]["column"]["verified"] = False
    path.write_text(yaml.safe_dump(content, sort_keys=False))
    spec = load_spec(folder)
    assert list(spec.recommendable.variants) == [each for each in spec.variants if each != "column"]
    assert spec.recommendable.tunables == spec.tunables
    # What was narrowed afterwards has not kept the other's.
    narrowed = spec.narrowed({"variant": ["linear", "column"]})
    assert list(narrowed.recommendable.variants) == ["linear"]


@pytest.mark.parametrize(
    ("problem", "said"),
    [
        ({"n": 64, "dtype": "float32", "order": 2}, None),
        ({"n": 64, "dtype": "float32"}, "order is missing"),
        ({"n": 64, "dtype": "float32", "order": 2, "m": 1}, "unknown problem parameter 'm'"),
        ({"n": 19, "dtype": "float32", "order": 2}, "n: 19 is below the minimum 20"),
        ({"n": 2049, "dtype": "float32", "order": 2}, "n: 2049 is above the maximum 2048"),
        ({"n": 64, "dtype": "float16", "order": 2}, "dtype: 'float16' is not among"),
        ({"n": 64, "dtype": "float32", "order": 4}, "order: 4 is not among 2, 8, 16"),
        ({"n": "64", "dtype": "float32", "order": 2}, "n: must be of type integer"),
        ({"n": True, "dtype": "float32", "order": 2}, "n: must be of type integer"),
        ({"n": 64.0, "dtype": "float32", "order": 2}, "n: must be of type integer"),
        ({"n": 64, "dtype": 4, "order": 2}, "dtype: must be of type category"),
    ],
)
def test_a_problem_is_checked_parameter_by_parameter(
    stencil_spec: Spec, problem: dict[str, Any], said: str | None
) -> None:
    found = stencil_spec.check_problem(problem)
    assert found is None if said is None else said in str(found)
