"""``launchwise check --cpu``: blocks of every launch, listed values, sizes off the borders."""

import shutil

import pytest
import yaml
from mistakes import planted

from launchwise.cli.app import main
from launchwise.cli.check.cases import MOST_OF_MACROS, Cases
from launchwise.workloads.parts import UNKNOWN_GPU
from launchwise.workloads.spec import load_spec

pytestmark = pytest.mark.skipif(shutil.which("g++") is None, reason="g++ runs kernels on the CPU")

KERNELS = """\
__global__ void scale(float *out, const float *in, int n, int negate)
{
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) out[i] = negate ? -in[i] : 2 * in[i];
}
__global__ void count(int *numbers, int rows)
{
    int i = blockIdx.x * SIDE + threadIdx.x;
    if (i < rows) numbers[i] = i;
}
"""
SPEC = {
    "workload": "pair",
    "title": "two launches",
    "problem": {
        "n": {"type": "integer", "minimum": 1, "maximum": 65536},
        "rows": {"type": "integer", "minimum": 1, "maximum": 65536},
        "negate": {"type": "integer", "values": [0, 1]},
    },
    "tunables": {"SIDE": {"kind": "build", "values": [32, 64]}},
    "arguments": {
        "out": {"type": "float32", "shape": ["n"], "role": "output"},
        "numbers": {"type": "int32", "shape": ["rows"], "role": "output"},
        "values": {"type": "float32", "shape": ["n"]},
        "n": {"type": "int32", "value": "n"},
        "rows": {"type": "int32", "value": "rows"},
        "negate": {"type": "int32", "value": "negate"},
    },
    "reference": {"file": "right.py:expected"},
    "variants": {
        "both": {
            "source": "pair.cu",
            "tunables": ["SIDE"],
            "kernels": [
                {
                    "kernel": "scale",
                    "main": True,
                    "arguments": ["out", "values", "n", "negate"],
                    "block": [64],
                    "grid": ["ceil_div(n, 64)"],
                },
                {
                    "kernel": "count",
                    "arguments": ["numbers", "rows"],
                    "block": ["SIDE"],
                    "grid": ["ceil_div(rows, SIDE)"],
                },
            ],
        }
    },
    "baseline": {"variant": "both", "SIDE": 32},
}


@pytest.fixture
def folder(tmp_path, in_one_process):
    """Two launches in a row, each with a size of its own."""
    path = tmp_path / "pair"
    path.mkdir()
    (path / "pair.cu").write_text(KERNELS)
    (path / "right.py").write_text(
        "import numpy as np\n\n\n"
        "def expected(values, n, rows, negate):\n"
        "    out = -values if negate else 2 * values\n"
        "    return {'out': out, 'numbers': np.arange(rows)}\n"
    )
    return path


def write(folder, **changes):
    """The spec with some keys changed."""
    (folder / "spec.yaml").write_text(yaml.safe_dump({**SPEC, **changes}, sort_keys=False))
    return load_spec(folder)


def planned(spec):
    """Runs of a specification without a sweep."""
    cases = Cases(spec, UNKNOWN_GPU)
    cases.plan()
    return cases


def drawn(spec):
    """Small problems of a specification."""
    return planned(spec).drawn()


def wrong_runs(folder, capsys, old, new):
    """Lines of wrong runs with a mistake in the kernels; without it, none is wrong."""
    assert main(["check", str(folder), "--cpu"]) == 0, capsys.readouterr().err
    capsys.readouterr()
    planted(folder, "pair.cu", old, new)
    assert main(["check", str(folder), "--cpu"]) == 2
    return [line for line in capsys.readouterr().out.splitlines() if line.startswith("wrong")]


def test_every_launch_has_several_blocks(folder, capsys):
    spec = write(folder)
    assert any(each["n"] > 64 and each["rows"] > 64 for each in drawn(spec))
    wrong = wrong_runs(folder, capsys, "blockIdx.x * SIDE", "blockIdx.x * 32")
    assert all("SIDE=64" in line for line in wrong)
    assert wrong


def test_each_listed_value_runs_beyond_the_smallest_size(folder, capsys):
    write(folder)
    wrong = wrong_runs(folder, capsys, "2 * in[i]", "2 * in[i % 64]")
    assert any("negate=0" in line for line in wrong)


def test_pairs_of_listed_values_run(folder):
    flags = {name: {"type": "integer", "values": [0, 1]} for name in ("negate", "twice")}
    spec = write(folder, problem={**SPEC["problem"], **flags})
    cases = planned(spec)
    larger = [one.problem for one in cases.runs if one.problem["n"] != 1]
    assert {(one["negate"], one["twice"]) for one in larger} == {(0, 0), (0, 1), (1, 0), (1, 1)}


def test_a_configuration_that_small_sizes_alone_may_run_has_several_blocks(folder):
    variant = {**SPEC["variants"]["both"], "constraints": ["SIDE == 32 or rows <= 2 * SIDE"]}
    spec = write(
        folder,
        variants={"both": variant},
        tunables={"SIDE": {"kind": "build", "values": [512, 32]}},
        baseline={"variant": "both", "SIDE": 32},
    )
    rows = [int(each["rows"]) for each in drawn(spec)]
    assert any(512 < each <= 1024 for each in rows)


def test_a_size_above_a_block_lies_off_the_border_of_a_constraint(folder):
    spec = write(folder, constraints=["n >= 2 * rows"])
    cases = Cases(spec, UNKNOWN_GPU)
    cases.add_wide([{"n": 2, "rows": 1, "negate": 0}])
    wide = next(one.problem for one in cases.runs if one.problem["rows"] != 1)
    assert int(wide["rows"]) > 64
    assert int(wide["n"]) > 2 * int(wide["rows"])


def test_each_value_of_a_macro_that_is_a_condition_runs(folder, capsys):
    large = {"type": "integer", "minimum": 1, "maximum": 1 << 26}
    macros = {"EVEN": "1 if rows % SIDE == 0 else 0", "WHOLE": "1 - (n % 64 > 0)"}
    spec = write(folder, macros=macros, problem={**SPEC["problem"], "n": large})
    assert not any(int(each["rows"]) % 32 == 0 for each in drawn(spec))
    wrong = wrong_runs(folder, capsys, "numbers[i] = i;", "numbers[i] = i + EVEN * (i == 40);")
    # A loop over whole blocks has two steps.
    assert all(int(line.split("rows=")[1].split(",")[0]) % 32 == 0 for line in wrong)
    assert wrong


def test_conditions_cost_few_runs(folder):
    names = [f"n % {2**power} == 0" for power in range(8, 14)]
    spec = write(
        folder,
        macros={f"EVEN_{place}": text for place, text in enumerate(names)},
        constraints=["n % 256 == 0"],
    )
    cases = planned(spec)
    few = len([one for one in planned(write(folder, constraints=["n % 256 == 0"])).runs])
    assert 0 < len(cases.runs) - few <= MOST_OF_MACROS
    # Listed values have runs, or a line, of their own.
    plain = planned(write(folder))
    assert planned(write(folder, macros={"FLIP": "1 if negate else 0"})).runs == plain.runs
