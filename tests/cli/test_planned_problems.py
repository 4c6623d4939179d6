"""``launchwise plan``: what is measured next, the overlay that measures it, and mistakes."""

import json
import shutil
from datetime import UTC, datetime, timedelta
from pathlib import Path

import numpy as np
import pytest
import yaml
from command_line import complaint, launchwise
from forks import at_home, forked, run_snakemake
from samples import ROOT, SAXPY, measurements, profile
from spec_changes import with_changes

from launchwise.base.typed import laid_over, read_yaml
from launchwise.cli.app import main
from launchwise.experiment.loading import load_experiment
from launchwise.gpus.profile import write_profile
from launchwise.tables.files import write_table
from launchwise.tables.measurements import measurement_schema
from launchwise.workloads.spec import load_spec

STUDY = "saxpy_block"
MEASURED = [4096, 65536, 16777216]


@pytest.fixture
def here(tmp_path, monkeypatch):
    """A project whose live GPU has measured three sizes of a study."""
    workload = tmp_path / "kernels" / "saxpy"
    shutil.copytree(SAXPY, workload)
    settings = {"workloads": ["kernels"], "gpus": {"local": {"source": "live", "arch": "sm_90"}}}
    (tmp_path / "config.yaml").write_text(yaml.safe_dump(settings))
    write_profile(tmp_path / "results" / "gpus" / "local.json", profile("local"))
    measured(tmp_path, MEASURED, ["float32"], drift=1 / 3)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def measured(here, sizes, types, drift):
    """Write a sweep whose best number of threads grows with the size; see :func:`seconds_of`."""
    spec = load_spec(here / "kernels" / "saxpy")
    rows = measurements(spec, [{"n": sizes, "dtype": types}], "local")
    apart = np.log2(rows["threads"]) - 5 - drift * (np.log2(rows["n"]) - 12)
    rows["time_ms"] = rows["n"] * 1e-6 * (1 + 0.1 * apart**2 + 0.01 * rows["items"])
    rows["times_ms"] = [np.full(3, each) for each in rows["time_ms"]]
    start = datetime(2026, 1, 1, tzinfo=UTC)
    passed = np.cumsum(list(map(seconds_of, rows["n"], rows["dtype"])))
    rows["measured_at"] = [(start + timedelta(seconds=each)).isoformat() for each in passed]
    path = here / "results" / "sweeps" / "local" / "saxpy.parquet"
    write_table(path, rows, measurement_schema(spec))


def seconds_of(n, dtype):
    """What a row takes: a second, and another for so many bytes."""
    return 1 + n * (2 if dtype == "float64" else 1) * 1e-7


def planned(capsys, *words):
    """The plan as JSON."""
    assert main(["plan", STUDY, "--json", *words]) == 0
    return json.loads(capsys.readouterr().out)


def test_the_overlay_measures_the_plan_behind_what_is_measured_today(here, capsys):
    found = planned(capsys, "--minutes", "4")
    minutes = [each["minutes"] for each in found["problems"]]
    assert len(minutes) > 1
    assert sum(minutes) <= 4
    expected = [each["expected_percent_over_best"] for each in (found, *found["problems"])]
    assert expected == sorted(expected, reverse=True)
    overlay = Path(found["overlay"])
    assert overlay == Path("plan_saxpy_block.yaml")
    files = [Path("config.yaml"), overlay]
    merged = laid_over(read_yaml(files[0]), read_yaml(overlay))
    experiment = load_experiment(merged, files, here)
    swept = [each["n"] for each in read_yaml(here / "kernels/saxpy/sweep.yaml")["problems"]]
    asked = [each["problem"] for each in found["problems"]]
    problems = experiment.problems_of("local", "saxpy")
    listed = [each for each in problems if each in asked]
    assert len(listed) == len(asked)
    assert {each["n"] for each in problems} == {n for ns in swept for n in ns} | {
        each["n"] for each in asked
    }
    # The study learns from the new sizes, and tests what it tested.
    split = experiment.studies[STUDY].splits["interpolation"]
    before = read_yaml(here / "kernels/saxpy/studies/saxpy_block/study.yaml")["splits"]
    assert split.test == before["interpolation"]["test"]
    assert {each["n"] for each in asked} <= {*split.train["n"], *split.test["n"]}
    seconds = [each["rows"] * seconds_of(**each["problem"]) for each in found["problems"]]
    assert minutes == pytest.approx([each / 60 for each in seconds], rel=0.1)
    assert max(seconds) > 1.2 * min(seconds)


def test_ten_problems_are_printed_and_why_there_are_no_more(here, capsys):
    found = planned(capsys, "--minutes", "4")
    count = len(found["problems"])
    assert found["ended"] == "budget"
    assert main(["plan", STUDY, "--minutes", "4", "--top", "1"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line for line in lines if line[:2] in ("1.", "2.")] == [lines[2]]
    assert lines[3:5] == [
        f"and {count - 1} more (--top {count})",
        "no more: no further problem fits into the time",
    ]
    (here / "results" / "gpus" / "local.json").unlink()
    said = complaint(launchwise("plan", STUDY, "--minutes", "4", folder=here))
    assert said.startswith(
        "plan: local: is live and has no profile yet: run snakemake -c1 describe_local"
    )


def test_snakemake_plans_what_the_command_says(here, capsys):
    assert main(["plan", STUDY, "--minutes", "2"]) == 0
    *_, line = capsys.readouterr().out.splitlines()
    _, _, command = line.partition("run: snakemake ")
    assert command == (
        "--cores all --configfile config.yaml plan_saxpy_block.yaml -- final_saxpy_block"
    )
    words = ["--snakefile", str(ROOT / "Snakefile"), "-n", "--cores", "1", *command.split()[2:]]
    done = forked(run_snakemake, words, here, at_home(here), seconds=100)
    assert done.returncode == 0, done.stderr[-2000:]
    assert "rule sweep:" in done.stdout + done.stderr


def test_more_time_gains_more_and_nothing_is_measured_twice(here, capsys):
    few, many = (planned(capsys, "--minutes", minutes) for minutes in ("1", "10"))
    assert (
        few["problems"][-1]["expected_percent_over_best"]
        > (many["problems"][-1]["expected_percent_over_best"])
    )
    sizes = [(one["problem"]["n"], one["problem"]["dtype"]) for one in many["problems"]]
    assert len(set(sizes)) == len(sizes)
    assert not {(size, "float32") for size in MEASURED} & set(sizes)


def test_what_other_studies_measured_changes_no_plan(here, capsys):
    alone = planned(capsys, "--minutes", "2")
    measured(here, [*MEASURED, 5_000_000], ["float32"], drift=1 / 3)
    assert planned(capsys, "--minutes", "2") == alone


def test_a_gpu_that_measured_nothing_yet_is_planned_for(here, capsys):
    (here / "results" / "sweeps" / "local" / "saxpy.parquet").unlink()
    found = planned(capsys, "--minutes", "1", "--gpu", "local")
    assert found["problems"]
    # Without a sweep the time follows from the bandwidth: 5 ms per row at least.
    assert all(each["minutes"] >= each["rows"] * 0.005 / 60 for each in found["problems"])


def test_two_gpus_share_the_time(here, capsys):
    settings = read_yaml(here / "config.yaml")
    settings["gpus"]["other"] = {"source": "live", "arch": "sm_90"}
    (here / "config.yaml").write_text(yaml.safe_dump(settings))
    write_profile(here / "results" / "gpus" / "other.json", profile("other"))
    found = planned(capsys, "--minutes", "1")
    assert {each["gpu"] for each in found["problems"]} >= {"other"}
    assert sum(each["minutes"] for each in found["problems"]) <= 1


def test_a_search_measures_its_budget_of_each_problem(here, capsys):
    changed("kernels/saxpy/sweep.yaml", strategy={"kind": "random", "budget": 7})(here)
    found = planned(capsys, "--minutes", "1")
    assert {each["rows"] for each in found["problems"]} == {7}
    changed("kernels/saxpy/sweep.yaml", strategy={"kind": "random", "minutes": 7})(here)
    said = complaint(launchwise("plan", STUDY, "--minutes", "1", folder=here))
    assert "kernels/saxpy/sweep.yaml: strategy: give a budget" in said


def changed(path, **changes):
    """An edit of a YAML file of the project: keys, ``__`` in place of dots, to values."""

    def edit(here):
        dotted = {key.replace("__", "."): value for key, value in changes.items()}
        content = with_changes(read_yaml(here / path), dotted)
        (here / path).write_text(yaml.safe_dump(content, sort_keys=False))

    return edit


@pytest.mark.parametrize("case", read_yaml(ROOT / "tests/cli/data/plans.yaml"))
def test_what_cannot_be_planned_is_one_line(here, case):
    (here / "data" / "local").mkdir(parents=True)
    shutil.copy(here / "results/sweeps/local/saxpy.parquet", here / "data" / "local")
    for path, changes in case.get("edit", {}).items():
        changed(path, **changes)(here)
    words = [STUDY, "--minutes", case.get("minutes", "5"), *case.get("words", ())]
    assert case["said"] in complaint(launchwise("plan", *words, folder=here))
    assert not list(here.glob("plan_*.yaml"))


@pytest.mark.parametrize(
    "words",
    [
        ["plan", "convolution_transfer", "--minutes", "5"],
        ["recheck", "convolution_transfer"],
        ["recommend", "convolution_transfer", "w=4096", "h=4096", "--measure", "3"],
    ],
)
def test_what_has_no_kernel_is_not_measured(words):
    said = complaint(launchwise(*words))
    assert said.startswith(f"{words[0]}: convolution_transfer: convolution has no kernel")


def test_where_nothing_is_left_to_gain_it_says_so(here):
    measured(here, [4**power for power in range(6, 13)], ["float32", "float64"], drift=0.0)
    ranges = {"n": {"minimum": 4190000, "maximum": 4200000}, "dtype": ["float32", "float64"]}
    changed("kernels/saxpy/studies/saxpy_block/study.yaml", blind={"parameters": ranges})(here)
    said = complaint(launchwise("plan", STUDY, "--minutes", "30", folder=here))
    assert said.startswith("plan: --minutes: nothing is left to gain: answers in the declared")
