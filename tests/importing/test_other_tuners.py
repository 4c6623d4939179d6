"""Lists of results, Triton's timings, and packed files."""

import bz2
import json
import lzma
import zipfile

import foreign
import pandas as pd
import pytest
from samples import ROOT

from launchwise.base.errors import UserError
from launchwise.base.typed import read_yaml
from launchwise.importing.command import import_sweeps, told
from launchwise.importing.t1 import read_t1
from launchwise.tables.files import read_table
from launchwise.tables.measurements import measurement_schema
from launchwise.workloads.spec import load_spec

CASES = read_yaml(ROOT / "tests/importing/data/formats.yaml")

DEVICE = "NVIDIA RTX A4000"


@pytest.fixture
def exact(tmp_path):
    """The sweep as a cache of Kernel Tuner holds it."""
    return foreign.read_one(foreign.write(tmp_path / "exact.json", foreign.cache()))


@pytest.mark.parametrize("environment", [None, {"device_name": DEVICE, "iterations": 7}])
def test_a_list_of_results_is_the_cache(tmp_path, exact, environment):
    listed = foreign.results()
    content = listed if environment is None else [listed, environment]
    found = foreign.read_one(foreign.write(tmp_path / "results.json", content))
    assert found.rows == exact.rows
    assert list(found.tunables) == list(exact.tunables)
    assert found.device_name == ("" if environment is None else DEVICE)
    assert "tunables: block_size_x, tile, pad" in " ".join(found.notes)
    assert "not taken over: GFLOP/s, compile_time" in found.notes


def test_results_as_json_lines_and_as_a_table_of_pandas(tmp_path, exact):
    rows = foreign.results()
    lines = "\n".join(map(json.dumps, rows))
    assert foreign.read_one(foreign.write(tmp_path / "rows.jsonl", lines)).rows == exact.rows
    cut = foreign.read_one(foreign.write(tmp_path / "cut.jsonl", lines[:-20]))
    assert (cut.rows, "cut off" in cut.notes[0]) == (exact.rows[:-1], True)
    pd.DataFrame(rows).to_csv(tmp_path / "rows.csv")
    found = foreign.read_one(tmp_path / "rows.csv")
    assert list(found.tunables) == list(exact.tunables)
    assert [(row.status, row.reason, row.times_ms) for row in found.rows] == [
        (row.status, row.reason, row.times_ms) for row in exact.rows
    ]


def test_results_of_another_objective_and_of_observers(tmp_path):
    rows = [
        {"x": 16, "nvml_energy": 2.5, "time": 1.5, "times": [1.0, 2.0], "GFLOP/s": 3.5, "ratio": 7},
        {"x": 32, "nvml_energy": 2.25, "time": 1.25, "times": [], "GFLOP/s": 3.0, "ratio": 8},
        {"x": 64, "GFLOP/s": "CompilationFailedConfig"},
        {"x": 128, "time": float("inf"), "times": []},
        {"x": 256, "__error__": "RuntimeFailedConfig"},
        {"x": 512, "time": 1e20},
    ]
    found = foreign.read_one(foreign.write(tmp_path / "results.json", rows))
    assert list(found.tunables) == ["x"]
    assert [(row.time_ms, row.reason) for row in found.rows] == [
        *((1.5, ""), (1.25, ""), (None, "CompilationFailedConfig"), (None, "no time")),
        *((None, "RuntimeFailedConfig"), (None, "no time")),
    ]


def test_rows_of_other_programs(tmp_path):
    # The time first, named by its unit; the device in every row.
    rows = [{"us": 1500.0, "gpu": DEVICE, "x": x, "mode": "a"} for x in (16, 32)]
    found = foreign.read_one(foreign.write(tmp_path / "rows.json", rows))
    assert (found.device_name, list(found.tunables)) == (DEVICE, ["x", "mode"])
    assert [row.time_ms for row in found.rows] == [1.5, 1.5]
    # In alphabetical order, a tunable stands behind the time.
    rows = [{"block": 32, "time": 1.0 * x, "unroll": x} for x in (1, 2)]
    found = foreign.read_one(foreign.write(tmp_path / "sorted.json", rows))
    assert list(found.tunables) == ["block", "unroll"]


def test_a_space_names_the_tunables_of_rows(tmp_path, exact):
    space = read_t1(foreign.write(tmp_path / "t1.json", foreign.t1()))
    found = foreign.read_one(
        foreign.write(tmp_path / "results.json", foreign.results()), space=space
    )
    assert (found.rows, found.problem) == (exact.rows, {"w": 4096, "h": 2048})
    rows = [{**row, "pad": None} for row in foreign.results()]
    for row in rows:
        del row["pad"]
    with pytest.raises(UserError, match=r"0\.pad: is missing"):
        foreign.read_one(foreign.write(tmp_path / "results.json", rows), space=space)


def test_timings_of_triton_become_rows(tmp_path):
    key = [512, 1024, True, "torch.float16", "torch.float16", "torch.float16"]
    path = foreign.write(tmp_path / "matmul_kernel.autotune.json", foreign.triton(key))
    found = foreign.read_one(path)
    assert found.kernel_name == "matmul_kernel"
    assert found.problem == {"n1": 512, "n2": 1024, "n3": "true", "dtype": "float16"}
    assert found.tunables == {
        **{"BLOCK_M": [16, 32, 64], "BLOCK_N": [16, 32, 64]},
        **{"num_warps": [4, 8], "num_stages": [2, 3]},
    }
    assert len(found.rows) == 18
    row = found.rows[0]
    # The median, not the mean of the quantiles, and no repeats.
    assert (row.time_ms, row.times_ms) == (foreign.time_of(16, 1, 0) + 0.02, ())
    assert [(each.status, each.reason) for each in found.rows if each.time_ms is None] == [
        ("failed", "infinite time")
    ]


@pytest.mark.parametrize(("key", "problem"), CASES["triton_keys"])
def test_keys_of_triton(tmp_path, key, problem):
    path = foreign.write(tmp_path / "k.autotune.json", foreign.triton(key))
    assert foreign.read_one(path).problem == problem


def test_configurations_of_triton_in_other_shapes(tmp_path):
    timings = [
        [{"kwargs": {"B": 32}, "num_warps": 4, "maxnreg": None, "flag": True}, 0.5],
        [{"kwargs": {"B": 64}, "num_warps": 4, "maxnreg": 128, "flag": False}, [0.25]],
        ["B: 128, num_warps: 8, num_ctas: 1, flag: True, maxnreg: None", [0.125, 0.1, 0.2]],
    ]
    found = foreign.read_one(
        foreign.write(tmp_path / "k.json", {"key": [1], "configs_timings": timings})
    )
    assert found.tunables == {
        **{"num_warps": [4, 8], "maxnreg": [0, 128], "flag": [1, 0], "B": [32, 64, 128]},
        "num_ctas": ["none", 1],
    }
    assert [row.time_ms for row in found.rows] == [0.5, 0.25, 0.125]
    assert [row.configuration["flag"] for row in found.rows] == [1, 0, 1]
    assert "maxnreg 0 stands for one that is not set" in found.notes


def test_files_of_one_kernel_of_triton_make_a_study_of_sizes(tmp_path):
    files = []
    for place, size in enumerate((256, 512, 1024, 2048)):
        (tmp_path / str(place)).mkdir()
        path = tmp_path / str(place) / "mm.autotune.json"
        content = foreign.triton([size, 64, "torch.float16"], scale=size / 256)
        files.append(foreign.write(path, content))
    devices = [f"mm.autotune.json={DEVICE}"]
    options = {"devices": devices, "problem_names": "M,K"}
    places = (tmp_path / "w", tmp_path / "r")
    found = import_sweeps(files, "mm", *places, **options)
    spec = load_spec(found.folder)
    assert list(spec.problem) == ["M", "K", "dtype"]
    rows = read_table(tmp_path / "r" / "a4000" / "mm.parquet", measurement_schema(spec))
    assert sorted(rows["M"].unique()) == [256, 512, 1024, 2048]
    study = (found.folder / "studies" / "mm_sizes" / "study.yaml").read_text()
    assert "models: [chosen, knn" in study
    assert "interpolation" in study
    lines = told(found)
    assert any(line.startswith("fastest on a4000, M=256, K=64, dtype=float16: ") for line in lines)
    refused = {"a,b,c,d": r"--problem-names: states 3 .*not 4", "a,,": "must be different names"}
    for names, said in refused.items():
        with pytest.raises(UserError, match=said):
            import_sweeps(files, "mm", *places, **{**options, "problem_names": names})


def test_packed_files_are_read(tmp_path, exact):
    text = json.dumps(foreign.cache()).encode()
    (tmp_path / "a.json.bz2").write_bytes(bz2.compress(text))
    (tmp_path / "a.json.xz").write_bytes(lzma.compress(text))
    (tmp_path / "wide.json").write_bytes(text.decode().encode("utf-16"))
    with zipfile.ZipFile(tmp_path / "a.zip", "w", zipfile.ZIP_DEFLATED) as packed:
        packed.writestr("results/cache.json", text)
        packed.writestr("results/metadata.json", '{"metadata": {"hardware": {}}}')
        packed.writestr("README.md", "a text")
    for name in ("a.json.bz2", "a.json.xz", "wide.json", "a.zip"):
        assert foreign.read_one(tmp_path / name).rows == exact.rows
    with zipfile.ZipFile(tmp_path / "a.zip", "a") as packed:
        packed.writestr("again.json", text)
    with pytest.raises(UserError, match=r"several results \(results/cache.json, again.json\)"):
        foreign.read_one(tmp_path / "a.zip")


def test_whole_numbers_behind_the_times_are_no_tunables_unless_they_tell_rows_apart(tmp_path):
    rows = [{"x": x, "time": 1.5 + x, "compile_time": 9.5, "trials": x % 3} for x in (16, 32, 64)]
    found = foreign.read_one(foreign.write(tmp_path / "rows.json", rows))
    assert list(found.tunables) == ["x"]
    rows = [{**each, "x": 16} for each in rows]
    rows = [{**each, "trials": place} for place, each in enumerate(rows)]
    found = foreign.read_one(foreign.write(tmp_path / "again.json", rows))
    assert "trials" in found.tunables


def test_results_of_two_devices_are_refused(tmp_path):
    rows = [{**each, "device_name": DEVICE} for each in foreign.results()]
    rows[1]["device_name"] = "NVIDIA A100"
    with pytest.raises(UserError, match="rows are of several devices"):
        foreign.read_one(foreign.write(tmp_path / "rows.json", rows))


def test_a_summary_lists_the_fastest_of_five_problems_and_counts_the_rest(tmp_path):
    rows = [f"{n},{block},{n / block}" for n in range(1, 9) for block in (32, 64)]
    (tmp_path / "rows.csv").write_text("\n".join(["n,block,ms", *rows]))
    (tmp_path / "columns.yaml").write_text("{tunables: [block], problem: [n], time: ms, unit: ms}")
    path, places = tmp_path / "rows.csv", (tmp_path / "k", tmp_path / "r")
    devices = [f"{path}=NVIDIA RTX A4000"]
    columns = tmp_path / "columns.yaml"
    lines = told(import_sweeps([path], "x", *places, devices=devices, columns=columns))
    listed = [line for line in lines if line.startswith("fastest on ")]
    assert len(listed) == 6
    assert all(": block=64 (" in line for line in listed[:-1])
    assert listed[-1] == "fastest on a4000: 3 more with --json"
