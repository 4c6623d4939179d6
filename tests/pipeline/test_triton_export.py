"""Answers of a study of a Triton kernel, for its launches and as configuration files."""

import json
from runpy import run_path

import pytest
import yaml
from command_line import complaint, launchwise
from guides import from_guide
from samples import copy_project, measurements

from launchwise.base.triton_answers import Answers
from launchwise.tables.files import write_table
from launchwise.tables.measurements import measurement_schema
from launchwise.workloads.spec import load_spec

SIZES = {"m": [64, 256, 1024], "n": [512], "k": [512]}
SPLIT = {"train": {"m": [64, 1024]}, "test": {"m": [256]}}
STUDY = {
    **{"title": "Product", "question": "Which blocks?", "models": ["knn"]},
    "splits": {"sizes": {"kind": "problems", "title": "sizes", **SPLIT}},
}
MAPPING = """\
file: "N={n},K={k},device_name={device}.json"
key: m
tunables: {BLOCK_M: BLOCK_SIZE_M, BLOCK_N: BLOCK_SIZE_N, BLOCK_K: BLOCK_SIZE_K}
"""


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    """The guide's workload with made-up rows of the GPU ``test``."""
    project = copy_project(tmp_path_factory.mktemp("own") / "project")
    mine = tmp_path_factory.mktemp("mine")
    folder = from_guide("triton", mine / "matmul")
    (folder / "sweep.yaml").write_text(yaml.safe_dump({"problems": [SIZES]}))
    study = folder / "studies" / "matmul_sizes"
    study.mkdir(parents=True)
    (study / "study.yaml").write_text(yaml.safe_dump(STUDY))
    spec = load_spec(folder)
    recorded = project.folder / "data" / "recorded" / "test" / "matmul.parquet"
    write_table(recorded, measurements(spec, [SIZES]), measurement_schema(spec))
    overlay = {"workloads": [str(mine)], "search": {"trials": 1, "folds": 2}}
    settings = project.folder / "config.yaml"
    settings.write_text(yaml.safe_dump({**yaml.safe_load(settings.read_text()), **overlay}))
    (project.folder / "map.yaml").write_text(MAPPING)
    return project


def exported(project, *words):
    """What ``launchwise export`` made."""
    given = ("--cores", "2", *words)
    done = launchwise("export", "matmul_sizes", *given, folder=project.folder)
    assert done.returncode == 0, done.stderr
    return project.folder / done.stdout.strip()


@pytest.fixture(scope="module")
def launches(project):
    """Answers for the launches of the kernel, as they are at first."""
    return exported(project, "--format", "triton")


def test_its_launches_get_what_is_recommended(project, launches):
    folder = launches
    assert folder.name == "matmul_sizes.triton"
    answers = Answers(folder / "matmul_sizes.json")
    content = json.loads((folder / "matmul_sizes.json").read_text())
    assert content["problem"] == {"m": "m", "n": "n", "k": "k"}
    assert content["tensors"] == {"c": "float32", "a": "float16", "b": "float16"}
    ((device, *_),) = run_path(str(folder / content["decision"]))["DEVICES"]
    for m in (64, 1024):
        words = ("matmul_sizes", "--gpu", "test", f"m={m}", "n=512", "k=512", "--json")
        done = launchwise("recommend", *words, folder=project.folder)
        answer = json.loads(done.stdout)
        first = answer["suggestions"][0]
        own = answers.answer(device, {"m": m, "n": 512, "k": 512})
        assert {"variant": "triton", **own["configuration"]} == first["configuration"]
        assert (own["basis"], own["time_ms"]) == (answer["basis"], first["expected_ms"])
        limits = own["interval_ms"] and [*own["interval_ms"]]
        assert (own["gain"], limits) == (first["gain"], first["interval_ms"])


def test_libraries_get_the_same_in_their_files(project, launches):
    folder = exported(project, "--format", "config-files", "--mapping", "map.yaml")
    (path,) = folder.glob("*.json")
    assert path.name.startswith("N=512,K=512,device_name=")
    content = json.loads(path.read_text())
    answers = Answers(launches / "matmul_sizes.json")
    assert {"64", "256", "1024"} < content.keys()
    for m, configuration in content.items():
        own = answers.answer("test", {"m": int(m), "n": 512, "k": 512})["configuration"]
        assert [*configuration.values()] == [*own.values()]


def test_a_format_that_needs_a_mapping_says_so(project):
    words = ("export", "matmul_sizes", "--format")
    said = "export: --mapping: says how config-files are named"
    done = launchwise(*words, "config-files", folder=project.folder)
    assert complaint(done).startswith(said)
    done = launchwise(*words, "triton", "--mapping", "map.yaml", folder=project.folder)
    assert complaint(done).startswith(said)


def test_every_gain_is_one_over_what_a_library_ships(project):
    shipped = {"num_warps": 8, "num_stages": 2, "BLOCK_SIZE_M": 128, "BLOCK_SIZE_N": 32}
    shipped["BLOCK_SIZE_K"] = 64
    path = project.folder / "N=512,K=512,device_name=made_up.json"
    path.write_text(json.dumps({"64": {**shipped, "num_warps": 4}, "1024": shipped}))
    folder = yaml.safe_load((project.folder / "config.yaml").read_text())["workloads"][0]
    words = ("import-shipped", f"{folder}/matmul", path.name, "--mapping", "map.yaml")
    done = launchwise(*words, folder=project.folder)
    assert done.stdout == f"{folder}/matmul/usual.yaml: 2 choices for made_up\n", done.stderr
    module = run_path(str(exported(project, "--format", "triton") / "matmul_sizes.py"))
    for m, warps in ((64, 4), (1024, 8)):
        usual = module["usual_choice"](m=m, n=512, k=512)
        blocks = {"BLOCK_M": 128, "BLOCK_N": 32, "BLOCK_K": 64}
        assert usual == {"variant": "triton", **blocks, "num_warps": warps, "num_stages": 2}
