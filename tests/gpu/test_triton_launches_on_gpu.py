"""Exported answers where Triton kernels are launched on a real GPU. Run with -m gpu."""

import json
from dataclasses import replace

import pytest
import triton_examples
from agreeing import changed
from benchmark_runs import result_of
from triton_examples import DEVICES, KERNEL, TUNED, plain, scaled_spec, scaled_table

from launchwise.exporting.languages import python_module
from launchwise.exporting.triton import write_triton

pytestmark = pytest.mark.gpu

SIZES = "((16, 1000, torch.float32), (16, 1000, torch.float16), (500, 1000, torch.float32))"

LAUNCHED = f"""
import json, sys, warnings
import torch, triton
import launchwise_triton
from plain import scaled

warnings.simplefilter("error")
decorated = launchwise_triton.autotuned(sys.argv[1])(scaled)
blocks = []

def grid(meta):
    blocks.append(meta["BLOCK"])
    return meta["rows"], triton.cdiv(meta["n"], meta["BLOCK"])

for rows, n, kind in (*{SIZES}, *{SIZES}):
    x = torch.rand(rows, n, device="cuda", dtype=kind)
    y = torch.zeros_like(x)
    decorated[grid](y, x, rows, n, 2.0)
    assert torch.equal(y, 2 * x)
assert "launchwise" not in sys.modules
print(json.dumps(blocks))
"""
WARMED = """
import sys
import launchwise
from tuned import scaled
print(launchwise.warm_autotune_cache(scaled, sys.argv[1]))
"""
FOUND = f"""
import json
import torch, triton
from tuned import scaled

def timed(call, quantiles):
    raise AssertionError("the autotuner times")

scaled._do_bench = timed
found = []
for rows, n, kind in {SIZES}:
    x = torch.rand(rows, n, device="cuda", dtype=kind)
    y = torch.zeros_like(x)
    scaled[lambda meta: (meta["rows"], triton.cdiv(meta["n"], meta["BLOCK"]))](y, x, rows, n, 2.0)
    assert torch.equal(y, 2 * x)
    found.append([scaled.best_config.kwargs["BLOCK"], scaled.best_config.num_warps])
print(json.dumps(found))
"""


@pytest.fixture
def folder(tmp_path):
    """Answers whose first device is this machine's, and both kernels."""
    torch = pytest.importorskip("torch")
    pytest.importorskip("triton")
    spec = scaled_spec(tmp_path / "scaled")
    here = replace(DEVICES[0], cuda_names=(torch.cuda.get_device_name(),))
    table = changed(scaled_table(spec), devices=(here, *DEVICES[1:]))
    write_triton(tmp_path / "out", plain(table), spec, python_module(table))
    (tmp_path / "plain.py").write_text(KERNEL)
    (tmp_path / "tuned.py").write_text(TUNED)
    return tmp_path


def ran(program, folder, **variables):
    """What a process prints that has the answers as its argument."""
    answers = str(folder / "out" / "scaled_sizes.json")
    done = triton_examples.ran(program, folder, answers, **variables)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_decorated_kernel_launches_the_answers_of_this_gpu(folder):
    assert json.loads(ran(LAUNCHED, folder)) == [128, 256, 256] * 2


def test_the_autotuner_launches_answers_of_its_cache_and_times_nothing(folder):
    assert ran(WARMED, folder) == "4\n"
    found = json.loads(ran(FOUND, folder, TRITON_CACHE_AUTOTUNING="1"))
    assert found == [[128, 1], [256, 4], [256, 1]]


def test_a_launch_through_the_decorator_is_timed_beside_others(tmp_path):
    pytest.importorskip("torch")
    result = result_of("triton_decorator", tmp_path)
    assert {"device", "driver"} <= result.keys()
    assert len(result["results"]) == 4
    for case in result["results"].values():
        assert case["median_us"].keys() == {"fixed", "launchwise", "triton"}
        assert min(case["median_us"].values()) > 0
