"""Products of experts on the CPU: by the kernels' own sources, held against NumPy."""

import dataclasses
import json
import re
import shlex
import shutil
import statistics
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from expert_files import documented_mappings
from samples import ROOT

from kernels.expert_product.studies.expert_product_tile.section import SHIPPED, languages, sections
from launchwise.base.storage import read_json
from launchwise.base.typed import read_yaml, validated
from launchwise.cli.app import main
from launchwise.tables.files import read_table
from launchwise.tables.measurements import measurement_schema, pairs_schema
from launchwise.tables.times import judged_times
from launchwise.workloads.declared.content import Source
from launchwise.workloads.declared.declared_workload import load_workload
from launchwise.workloads.space import LENIENT_GPU, baseline, feasible
from launchwise.workloads.spec import load_spec
from launchwise.workloads.usual import UsualChoices, usual_configuration
from tests.support.mistakes import mistakes, planted
from tests.support.report_study import known_spec, swept_study
from tests.support.shown import notes, tables, texts
from tests.support.slow_cases import first_of

FOLDER = Path(__file__).resolve().parents[1]
LAYERS = {
    "dense": ["rows=37", "experts=1", "n=48", "k=80"],
    "few rows": ["rows=3", "experts=9", "n=32", "k=32"],
    "uneven": ["rows=130", "experts=5", "n=272", "k=144"],
}
"""More experts than rows, a single one, and tiles that are part empty."""

needs_gxx = pytest.mark.skipif(shutil.which("g++") is None, reason="g++ runs kernels on the CPU")


@pytest.fixture(autouse=True)
def without_nvcc(monkeypatch):
    monkeypatch.setenv("PATH", "/usr/bin:/bin")


@pytest.fixture
def folder(tmp_path):
    wanted = shutil.ignore_patterns("tests", "studies", "__pycache__")
    return Path(shutil.copytree(FOLDER, tmp_path / "expert_product", ignore=wanted))


def runs(capsys, folder, *problem):
    """Status of each run of ``launchwise check --cpu``, by variant."""
    capsys.readouterr()
    main(["check", str(folder), *problem, "dtype=float16", "--cpu"])
    found = {}
    for line in capsys.readouterr().out.splitlines():
        status, marked, said = line.partition(" cpu: ")
        if marked and " at rows=" in said:
            found.setdefault(said.split()[0], []).append(status.strip())
    return found


@needs_gxx
@pytest.mark.parametrize("layer", LAYERS)
def test_few_rows_is_right_whatever_the_routing(capsys, layer):
    found = runs(capsys, FOLDER, *LAYERS[layer])
    assert set(found["few_rows"]) == {"ok"}


@pytest.mark.triton
@pytest.mark.parametrize("layer", LAYERS)
def test_the_function_in_triton_is_right_whatever_the_routing(capsys, layer):
    found = runs(capsys, FOLDER, *LAYERS[layer])
    assert set(found["triton"]) == {"ok"}


@needs_gxx
@pytest.mark.parametrize("mistake", first_of(mistakes(FOLDER)), ids=str)
def test_a_planted_mistake_is_found(folder, capsys, mistake):
    planted(folder, mistake.file, mistake.right, mistake.wrong)
    found = runs(capsys, folder, *LAYERS["uneven"])
    assert {"wrong", "failed"} & set(found["few_rows"])


def test_routing_gives_every_row_to_one_expert():
    spec = load_spec(FOLDER)
    for rows, experts in ((1, 1), (5, 64), (1000, 8)):
        problem = {"rows": rows, "experts": experts, "n": 16, "k": 16, "dtype": "float16"}
        first = Source(FOLDER, spec).content(problem, problem, seed=1).arrays["first"]
        assert first.dtype == np.int32
        assert first[0] == 0
        assert first[-1] == rows
        assert (np.diff(first) >= 0).all()


def test_the_usual_choice_is_feasible_for_every_layer():
    spec = load_spec(FOLDER)
    rules = validated(UsualChoices, read_yaml(FOLDER / "usual.yaml"), "usual.yaml").choices
    for rows in (1, 2, 7, 16, 17, 64, 4096):
        for experts in (1, 8, 128):
            problem = {"rows": rows, "experts": experts, "n": 512, "k": 1024}
            problem["dtype"] = "bfloat16"
            chosen = usual_configuration(rules, problem, spec)
            assert feasible(spec, problem, chosen, LENIENT_GPU)


def test_pytorch_takes_part():
    assert load_workload(FOLDER, load_spec(FOLDER)).peers == ("pytorch", "pytorch_compiled")


def test_the_documented_import_of_shipped_files_fits(folder, tmp_path, monkeypatch):
    text = (ROOT / "docs" / "how-to" / "config_files.md").read_text(encoding="utf-8")
    command = re.search(r"^launchwise (import-shipped .*\\\n.*)$", text, re.MULTILINE)
    key = re.search(r"`(key: rows[^`]*)`", text)
    assert command
    assert key
    mapping = documented_mappings()["vllm.yaml"].replace("key: tokens", key[1])
    (tmp_path / "vllm.yaml").write_text(mapping)
    words = shlex.split(command[1].replace("\\\n", " "))
    blocks = {"BLOCK_SIZE_M": 16, "BLOCK_SIZE_N": 64, "BLOCK_SIZE_K": 64, "GROUP_SIZE_M": 1}
    shipped = {"8": {**blocks, "num_warps": 4, "num_stages": 4}}
    (tmp_path / words[2]).write_text(json.dumps(shipped))
    monkeypatch.chdir(tmp_path)
    assert main([words[0], str(folder), *words[2:]]) == 0
    spec = load_spec(folder)
    problem = {"rows": 16, "experts": 8, "n": 2048, "k": 4096, "dtype": "bfloat16"}
    usual = usual_configuration(spec.usual, problem, spec)
    assert (usual["variant"], usual["BLOCK_N"], usual["num_stages"]) == ("triton", 64, 4)


SPEC = known_spec(FOLDER)
LAYER = {"experts": 8, "n": 512, "k": 1024, "dtype": "float16"}
USUAL = {"BLOCK_M": 64, "BLOCK_N": 64, "BLOCK_K": 32, "GROUP_M": 8}


def row(rows, variant, time_ms, **values):
    known = {"rows": rows, **LAYER, **baseline(SPEC), "variant": variant, "time_ms": time_ms}
    known |= {"status": "ok", "reason": "", "repeats": 5, "relative_error": 0.002}
    build = {"registers": 56, "spill_bytes": 0, "occupancy": 0.5}
    return {**known, **build, "max_error": 1e-6, "tolerance": 3e-5, "gpu": "one", **values}


SWEEP = (
    row(16, "few_rows", 0.010, BLOCK_M=1, BLOCK_N=4),
    row(16, "tensor_tiles", 0.040),
    row(16, "triton", 0.020, BLOCK_M=16),
    row(4096, "tensor_tiles", 0.600),
    row(4096, "triton", 0.200, BLOCK_M=128),
    row(4096, "triton", 0.500, **USUAL),
    row(4096, "triton", 0.100, status="wrong", BLOCK_M=32),
)


def made(*rows):
    sizes, sweeps = ({"rows": [16]}, {"rows": [4096]}), {"one": pd.DataFrame(list(rows))}
    return swept_study(FOLDER, "expert_product_tile", *sizes, sweeps, title="Tiles")


def test_languages_are_compared_by_their_fastest_right_configurations():
    found = languages(made(*SWEEP), "one").set_index("rows")
    assert found["first"].to_dict() == {16: "CUDA", 4096: "Triton"}
    assert found["ratio"].to_dict() == pytest.approx({16: 2.0, 4096: 3.0})
    assert found["rows_per_expert"].to_dict() == {16: 2.0, 4096: 512.0}


def test_languages_are_compared_by_the_sweep_alone():
    """Pairs hold few configurations: with their times two languages would be measured twofold."""
    judged = [
        {**each, "sweep_ms": each["time_ms"], "error": 0.002, "basis": "sweep"} for each in SWEEP
    ]
    judged[0] |= {"time_ms": 0.030, "basis": "pairs"}
    ends = {"time_low_ms": 0.99, "time_high_ms": 1.01}
    rows = [
        {**each, **{name: part * each["time_ms"] for name, part in ends.items()}} for each in judged
    ]
    found = languages(made(*rows), "one").set_index("rows")
    assert found.loc[16, "CUDA"] == pytest.approx(0.010)
    assert found.loc[16, "first"] == "CUDA"


def test_the_section_says_where_which_language_is_fastest():
    (section,) = sections(made(*SWEEP), {})
    rule = notes(section)[0]
    assert "on all GPUs: above 1, up to 16: 1 of 1 problem; above 16: 0 of 1 problem." in rule
    table, *_ = tables(section.blocks)
    assert texts(table) == [
        ["one", "above 1, up to 16", "CUDA", "1 of 1", "2.00", "2.00"],
        ["one", "above 16", "Triton", "1 of 1", "3.00", "3.00"],
    ]


def test_one_language_alone_is_said_to_be_the_fastest():
    (section,) = sections(made(*SWEEP[3:]), {})
    (found,) = texts(tables(section.blocks)[0])
    assert found[2:] == ["Triton", "1 of 1", "3.00", "3.00"]


STUDY = FOLDER / "studies" / "expert_product_tile"


def with_files(*rows):
    return dataclasses.replace(made(*rows), folder=STUDY)


def test_the_usual_choice_is_told_as_the_fallback_that_it_is():
    """Beside the library's files: as the benchmark measured them, for none of these layers."""
    recorded = read_json(STUDY / SHIPPED)["layers"]
    (section,) = sections(with_files(*SWEEP), {})
    (said,) = [each for each in notes(section) if "fallback" in each]
    assert "are 0 of the 2 problems here" in said
    known = read_json(ROOT / "benchmarks" / "results" / "shipped_configurations.json")
    for row in recorded:
        shape = {name: row[name] for name in ("experts", "n", "k", "dtype")}
        times = [
            each["times_ms"] for each in known["results"] if shape.items() <= each["shape"].items()
        ]
        for column, side in (("file_over_fastest", "shipped"), ("usual_over_fastest", "default")):
            mean = statistics.geometric_mean(each[side] / min(each.values()) for each in times)
            assert row[column] == pytest.approx(mean, abs=0.005)
            assert f"{mean:.2f}" in said
    (section,) = sections(with_files(*[{**each, "n": 3584, "k": 4096} for each in SWEEP]), {})
    assert "are 2 of the 2 problems here" in " ".join(notes(section))


def judged(gpu):
    """Recorded pairs, and times judged by them of the problems that they have."""
    spec, folder = load_spec(FOLDER), ROOT / "data" / "recorded" / gpu
    pairs = read_table(folder / "expert_product_tile.pairs.parquet", pairs_schema(spec))
    sweep = read_table(folder / "expert_product.parquet", measurement_schema(spec))
    sweep = sweep.merge(pairs[spec.problem_columns].drop_duplicates())
    return spec, pairs, lambda others: judged_times(sweep, [pairs], spec, others=others)


def test_limits_of_times_are_by_one_timer():
    """Pairs beside PyTorch are timed by events, which count what graphs of the sweep do not. Where
    few problems tell of graphs, those of the other GPU count, too: other visits lie within."""
    other = judged("h100")[2]([])
    spec, pairs, of = judged("h200")
    times = of([other])
    both = pairs.merge(times, on=spec.key_columns, suffixes=("", "_swept"))
    apart = both["timer"] != both["timer_swept"]
    assert 80 < apart.sum() < 120
    assert both["paired_ms"].isna().equals(apart)
    reach = np.log(times["time_high_ms"] / times["time_ms"]).groupby(times["timer"]).median()
    assert reach["graph"] < 0.08
    assert times["error"].groupby(times["timer"]).median()["graph"] < 0.05
    held, blind = [], ROOT / "data" / "recorded" / "h200" / "blind"
    for folder in (blind, blind / "drawn", blind / "drawn_third"):
        sweep = read_table(folder / "expert_product_tile.sweep.parquet", measurement_schema(spec))
        ran = read_table(folder / "expert_product_tile.pairs.parquet", pairs_schema(spec))
        found = judged_times(sweep, [], spec, blind=True, others=[times, other])
        known = ran.merge(found, on=[*spec.key_columns, "timer"], suffixes=("", "_swept"))
        known = known[known["time_ms"].notna()]
        held += known["time_ms"].between(known["time_low_ms"], known["time_high_ms"]).tolist()
    assert len(held) > 500
    assert 0.93 < np.mean(held) < 0.97


def test_no_recorded_layer_has_a_shipped_file():
    """Else the fallback is no library's choice there: the file's configuration is."""
    keys = ["experts", "n"]
    shipped = pd.read_csv(ROOT / "data" / "public" / "shipped" / "vllm_fused_moe_h100.csv")
    recorded = pd.read_parquet(
        ROOT / "data" / "recorded" / "h100" / "expert_product.parquet", columns=[*keys, "k"]
    ).drop_duplicates()
    assert len(recorded) > 50
    assert recorded.merge(shipped[keys].drop_duplicates(), on=keys).empty
    told = read_json(STUDY / SHIPPED)
    assert {(one["experts"], one["n"]) for one in told["layers"]} == set(
        shipped[keys].itertuples(index=False, name=None)
    )
    tunables = load_spec(FOLDER).tunables
    listed = [shipped[name].isin(one.values) for name, one in tunables.items() if name in shipped]
    assert len(listed) == 6
    assert told["unlisted"] == (~np.logical_and.reduce(listed)).sum()
    assert told["configurations"] == len(shipped)
