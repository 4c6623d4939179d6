"""Answers as configuration files that kernel libraries look up by device and size."""

import json

import pytest
import yaml
from expert_files import VALUES, documented_mappings, grouped_spec, grouped_table, problem, theirs
from samples import ROOT

from launchwise.base.errors import UserError
from launchwise.base.typed import read_yaml
from launchwise.exporting.exports import write_config_files
from launchwise.importing.shipped import shipped_choices
from launchwise.workloads.usual import read_config_files, usual_configuration

CASES = read_yaml(ROOT / "tests/exporting/data/mistakes.yaml")


@pytest.fixture
def spec(tmp_path):
    return grouped_spec(tmp_path / "grouped")


def written(spec, folder, mapping, *listed):
    """Name of each file below ``folder`` to its content."""
    path = folder / "mapping.yaml"
    path.write_text(mapping)
    known = read_config_files(path, spec)
    files = write_config_files(folder / "out", grouped_table(*listed), spec, known, path)
    assert {*files} == {each for each in (folder / "out").rglob("*") if each.is_file()}
    plain = [each for each in files if each.suffix == ".json"]
    assert [each.suffix for each in files if each not in plain] == [".md"]
    return {str(each.relative_to(folder / "out")): json.loads(each.read_text()) for each in plain}


HALF = "bfloat16"


def test_files_of_vllm_have_its_names_and_keys(spec, tmp_path):
    listed = [
        ("big", problem(64, dtype=HALF), {"BLOCK_M": 64}),
        ("big", problem(4, dtype=HALF), {}),
        ("big", problem(4, dtype="float16"), {"num_stages": 2}),
        ("big", problem(4, dtype=HALF, k=64), {"num_stages": 2}),
        ("big", problem(4, dtype=HALF, n=512), {"num_warps": 8}),
        ("small", problem(4, dtype=HALF), {"GROUP_M": 8}),
    ]
    files = written(spec, tmp_path, documented_mappings()["vllm.yaml"], *listed)
    version = {"triton_version": "3.6.0"}
    big = "E=8,N=1024,device_name=Made-up_Big_80GB.json"
    assert files == {
        big: {**version, "4": theirs(), "64": theirs(BLOCK_M=64)},
        "E=8,N=256,device_name=Made-up_Big_80GB.json": {**version, "4": theirs(num_warps=8)},
        "E=8,N=1024,device_name=small.json": {**version, "4": theirs(GROUP_M=8)},
    }
    # As its reader takes them: without the version, by whole numbers, of the nearest one.
    content = dict(files[big])
    content.pop("triton_version")
    known = {int(key): value for key, value in content.items()}
    assert known[min(known, key=lambda key: abs(key - 40))]["BLOCK_SIZE_M"] == 64


def test_files_of_sglang_lie_below_a_release_and_hold_sizes_alone(spec, tmp_path):
    mapping = documented_mappings()["sglang.yaml"]
    files = written(spec, tmp_path, mapping, ("big", problem(4, dtype=HALF), {}))
    assert files == {"triton_3_6_0/E=8,N=1024,device_name=Made-up_Big_80GB.json": {"4": theirs()}}


def test_any_library_is_another_mapping(spec, tmp_path):
    mapping = """\
file: "{device}/rows-{tokens * experts}.json"
key: n // 16
tunables: {BLOCK_M: bm, GROUP_M: null}
constants: {SPLIT_K: 1}
devices: {big: gfx1}"""
    values = {name: value for name, value in VALUES.items() if name != "GROUP_M"}
    values["bm"] = values.pop("BLOCK_M")
    files = written(spec, tmp_path, mapping, ("big", problem(3), {}))
    assert files == {"gfx1/rows-24.json": {"128": {**values, "SPLIT_K": 1}}}


SELECTED = """\
file: "N={n},{device}{',dtype=bf16' if dtype == 'bfloat16' else ''}.json"
key: tokens
"""


def test_a_part_of_a_name_may_depend_on_the_problem(spec, tmp_path):
    listed = [("big", problem(4), {}), ("big", problem(4, dtype=HALF), {"num_warps": 8})]
    files = written(spec, tmp_path, SELECTED, *listed)
    name = "N=2048,Made-up_Big_80GB"
    assert files == {
        f"{name}.json": {"4": VALUES},
        f"{name},dtype=bf16.json": {"4": {**VALUES, "num_warps": 8}},
    }
    # The other way: each file is of its own problems.
    mapping = read_config_files(tmp_path / "mapping.yaml", spec)
    paths = sorted((tmp_path / "out").glob("*.json"))
    rules = shipped_choices(paths, spec, mapping).rules
    for dtype, warps in (("float16", 4), (HALF, 8)):
        found = usual_configuration(rules, problem(9, dtype=dtype), spec)
        assert found["num_warps"] == warps


def test_of_devices_with_one_name_the_first_has_the_file(spec, tmp_path):
    listed = [
        ("big", problem(4, dtype=HALF), {}),
        ("slice", problem(4, dtype=HALF), {"BLOCK_M": 64}),
    ]
    (content,) = written(spec, tmp_path, documented_mappings()["vllm.yaml"], *listed).values()
    assert content["4"] == theirs()


def test_answers_that_differ_in_what_the_file_lacks_are_refused(spec, tmp_path):
    mapping = 'file: "{device}.json"\nkey: tokens\n'
    listed = [("big", problem(4), {}), ("big", problem(4, k=64), {"BLOCK_M": 64})]
    with pytest.raises(UserError) as caught:
        written(spec, tmp_path, mapping, *listed)
    assert str(caught.value) == (
        f"{tmp_path / 'mapping.yaml'}: key: tokens=4, experts=8, n=2048, k=4096, dtype=float16 and "
        "tokens=4, experts=8, n=2048, k=64, dtype=float16 have the same file and key, but not the "
        "same answer: choose one by where"
    )
    assert written(spec, tmp_path, f"{mapping}where: k == 64\n", *listed)


@pytest.mark.parametrize(("mapping", "said"), CASES["mappings"])
def test_a_wrong_mapping_is_one_line(spec, tmp_path, mapping, said):
    with pytest.raises(UserError) as caught:
        written(spec, tmp_path, yaml.safe_dump(mapping), ("big", problem(4), {}))
    assert str(caught.value).startswith(f"{tmp_path / 'mapping.yaml'}: {said}")
