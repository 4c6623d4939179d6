"""Every benchmark runs at its smallest size, or says in one line what the machine lacks.

Those that take more than three core-seconds have the mark ``slow``."""

import shutil

import pytest
from benchmark_runs import ANYWHERE, FOLDER, ON_GPU, WITH_JAVA, result_of, start

from launchwise.base.storage import read_json
from launchwise.learning.evaluation import HEURISTICS


def test_every_benchmark_is_started_by_a_test():
    # Two are held against a finished run, the budget in test_budget.py.
    known = {*ANYWHERE, *ON_GPU, *WITH_JAVA, "any_size", "routings", "budget"}
    assert {path.stem for path in FOLDER.glob("*.py")} == known


@pytest.mark.slow
def test_dag_plans_every_stage_and_then_nothing(tmp_path):
    result = result_of("dag", tmp_path)
    assert result["studies"] == 1
    (row,) = result["rows"]
    assert row["gpus"] == 1
    # From a check of the GPU to the report.
    assert row["jobs"] > row["submitted"] > 5
    assert row["plan"]["seconds"] > 0
    assert row["nothing_to_do"]["memory_mb"] > 50


@pytest.mark.slow
def test_a_study_of_simulated_gpus_runs_from_nothing_to_the_report(tmp_path):
    result = result_of("growth", tmp_path)
    (row,) = result["rows"]
    assert row["gpus"] == 1
    assert row["rows"] > 10_000
    jobs = row["jobs_core_s"]
    assert set(jobs) == {"data", "learn", "report"}
    assert 0 < sum(jobs.values()) < row["core_s"]
    assert row["memory_mb"] > 100


@pytest.mark.slow
def test_one_build_more_reaches_more(tmp_path):
    for gpu in result_of("few_builds", tmp_path)["gpus"].values():
        reached = [one["fraction"] for one in gpu["measured"]]
        assert reached == sorted(reached)
        by_chance, thrice = gpu["noise"]["1"], gpu["noise"]["3"]
        assert by_chance["stale"] / by_chance["answers"] < thrice["stale"] / thrice["answers"]


@pytest.mark.slow
def test_ablations_compare_the_same_test_problems(tmp_path):
    result = result_of("ablations", tmp_path)
    tables = [result[name] for name in ("filter", "gpu_features", "training_size")]
    for row in [row for table in tables for row in table]:
        low, high = row["interval"]
        assert 0 < low <= row["quality"] <= high <= 1
        assert row["test_cases"] > 0
    filters = {(row["model"], row["filter"]): row for row in result["filter"]}
    for model in result["models"]:
        off, problem = filters[model, "off"], filters[model, "problem"]
        assert off["removed_rows"] == 0 < problem["removed_rows"]
        assert off["training_rows"] == problem["training_rows"] + problem["removed_rows"]
        assert problem["over_reference"] == 1
    few, every = (
        {row["sampled"]: row for row in result["training_size"] if row["percent"] == percent}
        for percent in (10, 100)
    )
    # A share of the rows keeps every problem, a share of the problems keeps every row of theirs.
    assert few["rows"]["training_problems"] == every["rows"]["training_problems"]
    assert few["rows"]["training_rows"] < every["rows"]["training_rows"] / 5
    assert few["problems"]["training_problems"] < every["problems"]["training_problems"] / 5
    assert every["rows"]["quality"] == every["problems"]["quality"]


@pytest.mark.slow
def test_searches_on_a_new_gpu_are_counted(tmp_path):
    result = result_of("search_on_a_new_gpu", tmp_path)
    assert {card["workload"] for card in result["cards"]} == {
        "convolution", "pnpoly", "pnpoly_turing"
    }  # fmt: skip
    for card in result["cards"]:
        for own in card["known"].values():
            assert 0 < own["best_of_1"] <= own["best_of_5"] <= own["best_of_20"] <= 1
        assert 0 < card["within_5_percent_of_the_best"] < card["configurations"]
    means = result["means"]
    assert means["alone"]["best_of_5"] < means["winners"]["best_of_5"]


def test_rows_of_other_problems_help_a_search(tmp_path):
    rows = {row["known"]: row for row in result_of("known_rows", tmp_path)["searches"]}
    assert set(rows) == {"alone", "other_gpus", "other_problems", "both"}
    for row in rows.values():
        assert 1 <= row["within_5_percent"] <= row["within_1_percent"] <= 150
        assert 0 < row["best_of_1"] <= row["best_of_5"] <= row["best_of_20"] <= 1
    assert rows["other_problems"]["within_5_percent"] < rows["alone"]["within_5_percent"]


@pytest.mark.slow
def test_a_search_is_held_to_what_it_was_sure_of(tmp_path):
    result = result_of("stopping", tmp_path)
    assert len(result["coefficients"]) == 4
    assert 0 <= result["right_held_out"]["with_others"] <= 1
    cards = result["held_out"]["tridiagonal"]["alone"]
    assert cards["h100"]["searches"] + cards["h200"]["searches"] == 2


@pytest.mark.slow
def test_answers_are_counted_over_studies(tmp_path):
    result = result_of("answers", tmp_path)
    row, other = result["studies"]
    assert {each["study"] for each in (row, other)} == {"tridiagonal_streams"}
    assert (row["split"], other["split"]) == ("interpolation", "transfer")
    assert 0 < row["fraction_p5"] <= row["fraction_geometric_mean"] <= row["best_of_20"] <= 1
    assert 0 <= row["harmed_twice"] <= row["harmed"] <= row["problems"] == 32
    assert row["missed"] <= min(row["worthwhile"], row["kept_usual"])
    # One variant alone: all that is lost is lost within it.
    assert row["same_variant"] == 1
    predicted = result["predictions"]
    assert predicted.pop("studies") == 1
    trees, cost, roofline = (
        predicted[name]["median_percent"]["max"]
        for name in ("learnt, problems", "analytical", "roofline")
    )
    assert 0 < trees < cost < roofline
    assert all(-1 <= each["spearman"]["min"] <= 1 for each in predicted.values())
    *cards, mean = result["between"]
    assert {one["gpu"] for one in cards} == {"h100", "h200"}
    assert mean["problems"] == sum(one["problems"] for one in cards)
    fractions = [one["fraction"] for one in cards]
    assert 0.5 < min(fractions) <= mean["fraction"] <= max(fractions) < 1
    assert row["fraction_same_variant"] == pytest.approx(row["fraction_geometric_mean"])
    # The more is asked for, the fewer are slower and the more gains are missed.
    careful = row["careful"]
    assert [each["least_gain"] for each in careful] == sorted({0.9, 0.95, 0.98, 1.0})
    for name, order in (("harmed", -1), ("missed", 1)):
        counts = [row[name], *(each[name] for each in careful)]
        assert counts == sorted(counts, key=lambda count: order * count)
    assert careful[-1]["missed"] > row["missed"]
    # Fair heuristics alone stand beside it: no draws, no oracle, no model.
    assert row["best_heuristic"]["name"] in HEURISTICS
    for name in ("problems", "harmed", "below_baseline", "missed", "kept_usual"):
        assert result["all"][name] == row[name] + other[name]


def test_rivals_of_a_blind_test_are_judged_by_the_same_rows(tmp_path):
    (row,) = result_of("blind_rivals", tmp_path)["tests"]
    assert (row["gpu"], row["study"], row["problems"]) == ("h200", "tridiagonal_streams", 40)
    assert not row["new_gpu"]
    assert row["methods"].keys() == {*HEURISTICS, "answers"}
    for method in row["methods"].values():
        low, high = method["fraction_interval"]
        assert 0 < low <= method["fraction_geometric_mean"] <= high <= 1
    # Nothing is slower than itself.
    assert row["methods"]["usual"]["harmed"] == 0
    assert row["methods"]["answers"]["answers_slower"] == 0
    assert row["methods"]["answers"]["answers_least"] == 1
    assert any(each["answers_least"] < 1 for each in row["methods"].values())
    best, answers = row["beside_best_heuristic"], row["methods"]["answers"]
    others = [row["methods"][name]["fraction_geometric_mean"] for name in HEURISTICS]
    assert best["fraction_geometric_mean"] == max(others)
    assert best["ratio"] == pytest.approx(answers["fraction_geometric_mean"] / max(others))


@pytest.mark.slow
def test_the_published_recipe_runs_with_the_overlay(tmp_path):
    result = result_of("paper_recipe", tmp_path)
    (run,) = result["runs"].values()
    assert run["commit"] == result["commit"]
    assert run["fences"] == {"scope": "global", "factor": 1.5, "sides": "both"}
    counts = run["training"]
    assert counts["training"] == counts["measured"] - counts["removed"]["global"]["rows"]
    assert run["models"]["knn_printed"]["parameters"]["k"] == 2
    assert run["models"]["knn_printed"]["parameters"]["target"] == "time"
    # Every training row is an example of J48, and no tile beats the oracle.
    assert run["models"]["c45"]["examples"] == counts["training"]
    for figures in run["gpus"].values():
        best = figures["oracle"]["improvement_coefficient"]
        assert all(0 < each["improvement_coefficient"] <= best for each in figures.values())
        for each in figures.values():
            assert each["worst_speed_up"] <= each["improvement_coefficient"]
            assert each["percent_slower"] + each["percent_improved"] <= 100 + 1e-9


@pytest.mark.slow
def test_a_fault_in_a_small_module_is_noticed(tmp_path):
    result = result_of("mutants", tmp_path)
    assert (result["mutants"], result["noticed"], result["unexplained"]) == (1, 1, 0)
    (row,) = result["rows"]
    assert row["file"] == "launchwise/base/robust.py"
    assert row["old"] in row["text"]
    assert row["by"].startswith("tests/learning/test_learning_clean.py::")


def test_c45_and_weka_learn_the_same_tree(tmp_path):
    if start("against_weka", tmp_path / "result.json").returncode == 2:
        pytest.skip("Java or Weka is not installed")
    result = result_of("against_weka", tmp_path)
    for table in result["compared"]:
        assert table["ours"]["leaves"] == table["weka"]["leaves"]
        assert set(table["percent_same"].values()) == {100}
    assert result["made"]["least_percent_same"] == 100


def test_our_trees_are_those_that_weka_made():
    import against_weka

    recorded = read_json(FOLDER / "results" / "weka.json")["made"]["leaves_of_weka"]
    tables = [against_weka.made(seed)[0] for seed in range(12)]
    assert [against_weka.own_tree(each).leaves for each in tables] == recorded[:12]


@pytest.mark.parametrize(
    ("path", "options", "said"),
    [
        ("", (), "against_weka.py needs Java: apt-get install default-jre-headless"),
        (None, ("--jar", "none.jar"), "against_weka.py needs Weka's weka.jar (none.jar): apt-get"),
    ],
)
def test_a_machine_without_weka_says_what_to_install(tmp_path, path, options, said):
    if path is None and shutil.which("java") is None:
        pytest.skip("Java is not installed")
    more = {} if path is None else {"PATH": path}
    done = start("against_weka", tmp_path / "result.json", *options, **more)
    assert done.returncode == 2
    assert done.stderr.startswith(said)
    assert len(done.stderr.splitlines()) == 1


@pytest.mark.parametrize("name", ON_GPU)
def test_without_a_gpu_it_says_so_in_one_line(name, tmp_path):
    done = start(name, tmp_path / "result.json", CUDA_VISIBLE_DEVICES="")
    assert done.returncode == 2
    assert done.stderr.startswith(f"{name}.py needs a GPU")
    assert done.stderr.count("\n") == 1
    assert not (tmp_path / "result.json").exists()


def test_a_missing_package_is_named_in_one_line(monkeypatch, capsys):
    from harness import needs

    monkeypatch.setattr(needs, "cards", lambda: ["a card"])
    with pytest.raises(SystemExit) as ended, needs.gpu_and_packages():
        import no_such_package  # noqa: F401
    assert ended.value.code == 2
    said = capsys.readouterr().err
    assert "needs the package no_such_package" in said
    assert said.count("\n") == 1


@pytest.mark.slow
def test_orders_of_measurement_are_compared_after_the_same_rows(tmp_path):
    result = result_of("next_problems", tmp_path)
    (study,) = result["studies"]
    assert (study["problems"], study["held_out"]) == (22, 18)
    assert set(study["orders"]) == {"plan", "sweep", "largest_gap", "random"}
    for one in study["orders"].values():
        assert len(one["qualities"]) == len(result["shares"])
        assert 0.5 < one["mean_to_a_third"] < 1.1
    assert [each["share"] for each in study["expected"]] == [0.1, 0.2, 1 / 3, 0.5]
    assert all(each["expected_percent"] > 0 for each in study["expected"])
