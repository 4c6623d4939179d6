"""Exported answers with Triton itself: its interpreter launches them, its autotuner finds them."""

import json

import pytest
import triton_examples
from samples import ROOT
from triton_examples import KERNEL, TUNED, scaled_answers

from launchwise.base.typed import read_yaml
from launchwise.importing.formats import read_sweeps

pytestmark = pytest.mark.triton

LAUNCHED, HERE, WARMED, FOUND = read_yaml(ROOT / "tests/exporting/data/triton.yaml").values()


def ran(program, folder, *arguments, **variables):
    """What a Python process in ``folder`` prints."""
    done = triton_examples.ran(program, folder, *arguments, **variables)
    if "0-dimensional arrays can be converted" in done.stderr:
        pytest.skip("the interpreter of this Triton is too old for this NumPy")
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_the_interpreter_launches_a_decorated_kernel(tmp_path):
    scaled_answers(tmp_path)
    (tmp_path / "plain.py").write_text(KERNEL)
    ran(LAUNCHED, tmp_path, TRITON_INTERPRET="1")


def test_the_autotuner_finds_answers_in_its_cache_and_times_nothing(tmp_path):
    _, path = scaled_answers(tmp_path)
    (tmp_path / "tuned.py").write_text(TUNED)
    assert ran(HERE + WARMED, tmp_path, str(path)) == "4\n"
    wanted = [[128, 1], [256, 4], [256, 1]]
    assert json.loads(ran(HERE + FOUND, tmp_path, TRITON_CACHE_AUTOTUNING="1")) == [wanted, []]
    # What a second call finds stays; another text of the kernel has another place.
    before = {each: each.stat().st_mtime_ns for each in (tmp_path / "kept").rglob("*.json")}
    assert len(before) == 4
    assert ran(HERE + WARMED, tmp_path, str(path)) == "4\n"
    assert {each: each.stat().st_mtime_ns for each in (tmp_path / "kept").rglob("*.json")} == before
    (tmp_path / "tuned.py").write_text(TUNED.replace("factor *", "factor +"))
    _, timed = json.loads(ran(HERE + FOUND, tmp_path, TRITON_CACHE_AUTOTUNING="1"))
    assert len(timed) == 3 * 6


def test_an_import_reads_what_was_written(tmp_path):
    _, path = scaled_answers(tmp_path)
    (tmp_path / "tuned.py").write_text(TUNED)
    ran(HERE + WARMED, tmp_path, str(path))
    sweeps = [one for each in (tmp_path / "kept").rglob("*.json") for one in read_sweeps(each)]
    by_time = {one.rows[0].time_ms: one for one in sweeps}
    assert {*by_time} == {None, 0.25, 0.5, 0.75}
    problem = {"n1": 16, "n2": 1000, "dtype": "float16"}
    assert by_time[0.5].problem == problem
    assert by_time[0.5].rows[0].configuration["BLOCK"] == 256


WRONG = {
    "one configuration": (
        TUNED.replace("(64, 128, 256)", "(64,)").replace("(1, 4)", "(1,)"),
        "the @triton.autotune of scaled has one configuration, which it takes for every problem",
    ),
    "pruned": (
        TUNED.replace("key=[", 'prune_configs_by={"top_k": 1, "perf_model": len}, key=['),
        "the @triton.autotune of scaled prunes its configurations",
    ),
    "an argument of unknown value": (
        TUNED.replace('key=["rows"', 'key=["factor", "rows"'),
        "factor of the key is no parameter of the problem: give it by values=",
    ),
    "no autotuner": (KERNEL, "the kernel has no @triton.autotune"),
}  # fmt: skip


@pytest.mark.parametrize("case", WRONG)
def test_what_the_cache_cannot_hold_is_one_line(tmp_path, case):
    text, said = WRONG[case]
    _, path = scaled_answers(tmp_path)
    (tmp_path / "tuned.py").write_text(text)
    program = WARMED.replace("print(", "try:\n    ").replace('80GB"))', '80GB")') + (
        "except ValueError as error:\n    print(error)\n"
    )
    assert ran(HERE + program, tmp_path, str(path)).startswith(f"{path}: {said}")


IMPORTS = "import triton\nfrom launchwise_triton import autotuned\n"
DECORATED = 'autotuned("out/scaled_sizes.json")'
HALF = 'triton.heuristics({"HALF": lambda given: given["BLOCK"] // 2})'
TUNE = 'triton.autotune([triton.Config({"BLOCK": 64})], key=["n"])'


@pytest.mark.parametrize(
    ("order", "said"),
    [
        ((HALF, DECORATED), "autotuned is the first decorator"),
        ((TUNE, DECORATED), "autotuned is the first decorator"),
        ((DECORATED, TUNE), "remove @triton.autotune"),
        ((DECORATED, HALF, TUNE), "remove @triton.autotune"),
        ((DECORATED, DECORATED), "remove @triton.autotune"),
        ((DECORATED, HALF), "fine"),
    ],
)
def test_a_wrong_order_of_decorators_is_told_at_import(tmp_path, order, said):
    scaled_answers(tmp_path)
    stack = "\n".join(f"@{each}" for each in (*order, "triton.jit"))
    text = KERNEL.replace("@triton.jit", stack).replace("import triton\n", IMPORTS, 1)
    (tmp_path / "stacked.py").write_text(text)
    program = "try:\n    import stacked\n    print('fine')\nexcept ValueError as error:\n"
    assert said in ran(f"{program}    print(error)\n", tmp_path, TRITON_INTERPRET="0")


@pytest.mark.parametrize(
    ("device", "said"),
    [
        ("", "PyTorch finds no GPU: call this where the kernel runs"),
        (', device="big"', "Triton finds no GPU ("),
    ],
)
def test_a_machine_without_a_gpu_is_told_in_one_line(tmp_path, device, said):
    _, path = scaled_answers(tmp_path)
    (tmp_path / "tuned.py").write_text(TUNED)
    program = (
        "import sys, launchwise\nfrom tuned import scaled\ntry:\n"
        f"    launchwise.warm_autotune_cache(scaled, sys.argv[1]{device})\n"
        "except ValueError as error:\n    print(error)\n"
    )
    out = ran(program, tmp_path, str(path), CUDA_VISIBLE_DEVICES="")
    assert out.startswith(f"{path}: {said}")
    assert out.count("\n") == 1


def test_a_device_without_answers_is_warned_of(tmp_path):
    _, path = scaled_answers(tmp_path)
    (tmp_path / "tuned.py").write_text(TUNED)
    program = WARMED.replace("Made-up Big 80GB", "other card")
    told = f"import warnings\nwarnings.showwarning = lambda text, *more: print(text)\n{program}"
    said = f"{path}: no answer for other card: Triton times scaled as before\n0\n"
    assert ran(HERE + told, tmp_path, str(path)) == said
