"""``launchwise check --cpu``: which runs it makes; what it says of mistakes is in test_check.py."""

import json
import shutil

import pytest
import yaml
from mistakes import planted
from test_check import DATA, written

from launchwise.base.places import ROOT
from launchwise.cli.app import main
from launchwise.cli.check import Step, summary
from launchwise.cli.check.cases import MEMORY_BYTES, MOST_OF_MACROS, Cases
from launchwise.cli.check.checking import listed_problems
from launchwise.workloads.parts import UNKNOWN_GPU
from launchwise.workloads.spec import load_spec

pytestmark = pytest.mark.skipif(shutil.which("g++") is None, reason="g++ runs kernels on the CPU")


@pytest.fixture
def folder(tmp_path, without_nvcc):
    """A transpose in shared memory, with blocks of two dimensions and a barrier."""
    return written({"of": "turn"}, tmp_path)


@pytest.fixture
def sums(tmp_path, without_nvcc):
    """Sums of rows by blocks of eight warps."""
    return written({"of": "sums"}, tmp_path)


@pytest.mark.usefixtures("in_one_process")
def test_a_right_kernel_passes_at_odd_sizes(folder, capsys):
    assert main(["check", str(folder), "--cpu", "--json"]) == 0
    steps = json.loads(capsys.readouterr().out)
    runs = [step["said"] for step in steps if step["name"] == "cpu"]
    assert all(step["passed"] for step in steps if step["name"] == "cpu")
    assert [said.partition(": ")[0] for said in runs] == [
        "tiled tile=8 at rows=1, cols=1",
        "tiled tile=16 at rows=1, cols=1",
        "tiled tile=8 at rows=14, cols=27",
        "tiled tile=16 at rows=14, cols=27",
        # Two blocks of the largest tile along each side.
        "tiled tile=8 at rows=27, cols=29",
        "tiled tile=16 at rows=27, cols=29",
        # One size above the 256 threads of the largest block, each before further tiles.
        "tiled tile=8 at rows=301, cols=27",
        "tiled tile=8 at rows=14, cols=301",
        "tiled tile=16 at rows=301, cols=27",
        "tiled tile=16 at rows=14, cols=301",
    ]
    assert all("largest error 0, allowed 1e-05" in said for said in runs)


def test_small_problems_are_small():
    for folder in sorted((ROOT / "kernels").glob("*/spec.yaml")):
        spec = load_spec(folder.parent)
        cases = Cases(spec, UNKNOWN_GPU)
        cases.plan(listed_problems(folder.parent, spec))
        assert spec.value(spec.work.footprint_bytes, cases.runs[0].problem) <= MEMORY_BYTES


def test_without_a_compiler_it_says_so(folder, capsys, monkeypatch):
    monkeypatch.setenv("PATH", str(folder))
    assert main(["check", str(folder), "--cpu"]) == 2
    assert "check: --cpu: g++ is not on the PATH" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("problem", "wide"),
    [
        # Counts launches only; an exponent, whose largest value is too much work.
        ({"columns": (4, 4096), "rounds": (1, 4096)}, [{"columns": 1069, "rounds": 27}]),
        ({"rows": (1, 4096), "exponent": (3, 24)}, []),
        ({"rows": (1, 4096), "columns": (4, 700)}, [{"rows": 14, "columns": 700}]),
        ({"rows": (1, 4096), "columns": (2048, 4096)}, []),
    ],
    ids=["repetitions", "exponent", "largest below", "smallest above"],
)
def test_sizes_above_a_block_are_drawn_where_blocks_loop_over_them(sums, problem, wide):
    path = sums / "spec.yaml"
    raw = yaml.safe_load(path.read_text())
    raw["problem"] = {
        name: {"type": "integer", "minimum": low, "maximum": high}
        for name, (low, high) in problem.items()
    }
    rows, columns = "rows", "columns"
    if "rounds" in problem:
        rows = "7"
        raw["variants"]["plain"]["repeat"] = {"round": "rounds"}
    if "exponent" in problem:
        columns = "2 ** exponent"
    raw["arguments"]["total"]["shape"] = [rows]
    raw["arguments"]["input"]["shape"] = [rows, columns]
    raw["arguments"]["columns"]["value"] = columns
    raw["variants"]["plain"]["grid"] = [rows]
    path.write_text(yaml.safe_dump(raw, sort_keys=False))
    assert [one.problem for one in planned(load_spec(sums)).runs if one.wide] == wide


def test_reasons_are_counted_apart():
    told = [
        Step("cpu", "ok", "a at n=1: largest error 0, allowed 0"),
        Step("cpu", "left out", "a at n=9: did not finish within 5 s", "a"),
        *2 * [Step("cpu", "left out", "a at n=9: not tried: time limit", "a")],
    ]
    assert summary(told) == (
        "3 of 4 runs are left out: 2: not tried: time limit; 1: did not finish within 5 s"
    )


@pytest.fixture
def pair(tmp_path, in_one_process):
    """Two launches in a row, each with a size of its own."""
    return written({"of": "pair"}, tmp_path)


PAIR = yaml.safe_load(DATA["bases"]["pair"]["spec.yaml"])


def write(folder, **changes):
    """The spec of the two launches with some keys changed."""
    (folder / "spec.yaml").write_text(yaml.safe_dump({**PAIR, **changes}, sort_keys=False))
    return load_spec(folder)


def planned(spec):
    """Runs of a specification without a sweep."""
    cases = Cases(spec, UNKNOWN_GPU)
    cases.plan()
    return cases


def test_pairs_of_listed_values_run(pair):
    flags = {name: {"type": "integer", "values": [0, 1]} for name in ("negate", "twice")}
    cases = planned(write(pair, problem={**PAIR["problem"], **flags}))
    larger = [one.problem for one in cases.runs if one.problem["n"] != 1]
    assert {(one["negate"], one["twice"]) for one in larger} == {(0, 0), (0, 1), (1, 0), (1, 1)}


def test_a_configuration_that_small_sizes_alone_may_run_has_several_blocks(pair):
    variant = {**PAIR["variants"]["both"], "constraints": ["SIDE == 32 or rows <= 2 * SIDE"]}
    spec = write(
        pair,
        variants={"both": variant},
        tunables={"SIDE": {"kind": "build", "values": [512, 32]}},
        baseline={"variant": "both", "SIDE": 32},
    )
    rows = [int(each["rows"]) for each in planned(spec).drawn()]
    assert any(512 < each <= 1024 for each in rows)


def test_a_size_above_a_block_lies_off_the_border_of_a_constraint(pair):
    spec = write(pair, constraints=["n >= 2 * rows"])
    cases = Cases(spec, UNKNOWN_GPU)
    cases.add_wide([{"n": 2, "rows": 1, "negate": 0}])
    wide = max((one.problem for one in cases.runs), key=lambda each: int(each["rows"]))
    assert int(wide["rows"]) > 64
    assert int(wide["n"]) > 2 * int(wide["rows"])


def test_a_size_that_constraints_keep_below_a_block_runs_at_its_border(pair):
    baseline = {"variant": "both", "SIDE": 64}
    runs = planned(write(pair, constraints=["rows <= SIDE + 16"], baseline=baseline)).runs
    assert 48 in [one.problem["rows"] for one in runs if one.configuration["SIDE"] == 32]


def test_each_value_of_a_macro_that_is_a_condition_runs(pair, capsys):
    large = {"type": "integer", "minimum": 1, "maximum": 1 << 26}
    macros = {"EVEN": "1 if rows % SIDE == 0 else 0", "WHOLE": "1 - (n % 64 > 0)"}
    spec = write(pair, macros=macros, problem={**PAIR["problem"], "n": large})
    assert not any(int(each["rows"]) % 32 == 0 for each in planned(spec).drawn())
    planted(pair, "pair.cu", "numbers[i] = i;", "numbers[i] = i + EVEN * (i == 40);")
    assert main(["check", str(pair), "--cpu"]) == 2
    wrong = [line for line in capsys.readouterr().out.splitlines() if line.startswith("wrong")]
    # A loop over whole blocks has two steps.
    assert wrong
    assert all(int(line.split("rows=")[1].split(",")[0]) % 32 == 0 for line in wrong)


def test_conditions_cost_few_runs(pair):
    names = [f"n % {2**power} == 0" for power in range(8, 14)]
    spec = write(
        pair,
        macros={f"EVEN_{place}": text for place, text in enumerate(names)},
        constraints=["n % 256 == 0"],
    )
    cases = planned(spec)
    few = len(planned(write(pair, constraints=["n % 256 == 0"])).runs)
    assert 0 < len(cases.runs) - few <= MOST_OF_MACROS
    # Listed values have runs, or a line, of their own.
    plain = planned(write(pair))
    assert planned(write(pair, macros={"FLIP": "1 if negate else 0"})).runs == plain.runs
