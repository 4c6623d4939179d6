"""Benchmarks that need a GPU run at their smallest size. Run with -m gpu."""

from importlib.util import find_spec

import pytest
from benchmark_runs import ON_GPU, result_of
from gpu_runs import described
from samples import ROOT

from launchwise.workloads.space import configurations, gpu_facts
from launchwise.workloads.spec import load_spec

pytestmark = pytest.mark.gpu


def result_on_gpu(name, folder):
    """Result of a benchmark at its smallest size, where its package is installed."""
    if find_spec(ON_GPU[name]) is None:
        pytest.skip(f"{ON_GPU[name]} is not installed")
    result = result_of(name, folder)
    assert {"device", "driver"} <= result.keys()
    return result


def test_calls_of_both_solvers_are_timed(tmp_path):
    (row,) = result_on_gpu("solve_as_called", tmp_path)["results"]
    assert (row["n"], row["dtype"], row["calls_in_a_row"]) == (10_000, "float64", 100)
    assert row["largest_difference"] < 1e-10
    for side in ("launchwise", "cusparse"):
        assert row[side]["events_ms"] > 0
        assert row[side]["wall_ms"] > 0


def test_one_file_is_tuned_beside_kernel_tuner(tmp_path):
    (result,) = result_on_gpu("tune_own_kernel", tmp_path)["results"].values()
    assert result["space"] == result["ours"]["configurations"] == 8
    assert result["ours"]["statuses"].keys() <= {"ok", "slow"}
    assert result["kernel_tuner"]["configurations"] == 4
    assert result["our_best_over_theirs"] > 0
    assert len(result["pairs"]) == 5


def test_a_small_space_is_tuned_beside_kernel_tuner_as_whole_processes(tmp_path):
    result = result_on_gpu("tune_small_space", tmp_path)
    (one,) = result["rounds"]
    assert one["configurations"] == one["kernel_tuner_configurations"] == 2
    assert one["statuses"].keys() <= {"ok", "slow"}
    assert 0 < one["nothing_to_do_s"] < one["launchwise_s"]


def test_other_tools_answer_the_same_reviews_and_every_variant_classifies_them(tmp_path):
    pytest.importorskip("torch")
    from kernels.sentiment.host.eigen import NoEigen, library

    try:
        library()
    except NoEigen as missing:
        pytest.skip(str(missing))
    result = result_on_gpu("sentiment_peers", tmp_path)
    for name in ("eigen_one_core", "eigen_all_cores", "numpy", "torch"):
        assert min(result["cpu"][name][time] for time in ("total_s", "one_case_ms")) > 0
    assert result["pytorch"]["one_by_one"]["total_s"] > result["pytorch"]["at_once"]["total_s"]
    compared = result["held_out"]["variants"]
    assert set(compared) >= set(load_spec(ROOT / "kernels" / "sentiment").variants)
    assert all(each["logit_error"] < 0.04 for name, each in compared.items() if name != "float64")


def test_each_precision_has_its_modes(tmp_path):
    result = result_on_gpu("pytorch_modes", tmp_path)
    assert {precision.split()[0] for precision in result["pytorch"]} == {
        *("float32", "tf32", "bf16", "fp16")
    }
    for found in result["pytorch"].values():
        assert 0 < found["best_ms"] == found["modes"][found["best"]]
        assert found["logit_error"] < 0.05
    faster = result["times_faster"]
    assert {*faster} <= {*result["pytorch"]}
    assert {name.split()[0] for name in faster} >= {"float32", "bf16", "fp16"}
    assert min(faster.values()) > 0


def test_a_sweep_on_one_card_has_its_rate(tmp_path):
    (run,) = result_on_gpu("scaling", tmp_path)["runs"]
    assert (run["cards"], run["shards"], run["cards_seen"]) == (1, 1, 1)
    spec, problem = (
        load_spec(ROOT / "kernels" / "acoustic"),
        {"n": 256, "dtype": "float32", "order": 2},
    )
    every = configurations(spec, problem, gpu_facts(described(None).model_dump()))
    # A machine without Clang for GPUs has no rows of the program in OpenMP.
    nvcc_alone = [each for each in every if each["variant"] != "openmp"]
    assert run["rows"] in (len(nvcc_alone), len(every))
    assert run["rows_a_second_of_the_sweep"] > run["rows_a_second_of_the_command"] > 0


def test_triton_chooses_for_problems_of_a_blind_test(tmp_path):
    result = result_on_gpu("autotuned_blind", tmp_path)
    for mode in ("tutorial", "all"):
        (choice,) = result["choices"][mode]
        assert choice["configuration"].keys() >= {"BLOCK_M", "num_warps"}
        assert choice["seconds"] > 0
    assert result["choices"]["tutorial"][0]["problem"]["k"] >= 512


def test_a_shipped_configuration_is_timed_beside_a_swept_one(tmp_path):
    result = result_on_gpu("shipped_configurations", tmp_path)
    (case,) = result["results"]
    assert case["times_ms"].keys() == {"launchwise", "shipped", "default"}
    assert min(case["times_ms"].values()) > 0
    assert min(each["worst_time_over_fastest"] for each in result["figures"].values()) == 1


def test_devito_and_launchwise_step_the_same_equation(tmp_path):
    for row in result_on_gpu("against_devito", tmp_path)["results"]:
        assert row["devito"]["step_ms"] > 0
        assert row["ratio"] > 0
