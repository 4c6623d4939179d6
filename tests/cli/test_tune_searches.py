"""``launchwise tune`` that searches: its budget, where it starts, how sure it is."""

from __future__ import annotations

import json

import pytest
from compared import write_sweep
from fake_cluster import CARD
from samples import SAXPY, measurements
from test_check import EXAMPLES

from launchwise.cli.tuning import known_sweeps
from launchwise.workloads.spec import load_spec


def test_limited_time_tries_what_it_can_and_goes_on_with_more(tune, workload, tmp_path):
    cards = tmp_path / "slow.json"
    cards.write_text(json.dumps({"h200": [{**CARD, "pause_s": 0.2}]}))
    first = tune.ok(workload, "w=32", "h=16", "--minutes", "0.03", "--json", cards=cards)
    assert tune.settings()["sweeps"]["convolution"]["strategy"] == {
        "kind": "transfer",
        "minutes": 0.03,
    }
    tried = sum(json.loads(first.stdout)["answers"][0]["statuses"].values())
    assert 1 <= tried < 8
    # All that is left.
    second = tune.ok(workload, "w=32", "h=16", "--minutes", "5", "--json")
    assert sum(json.loads(second.stdout)["answers"][0]["statuses"].values()) == 8


@pytest.mark.workloads
def test_recorded_gpus_are_where_a_search_starts(tune):
    words = ["acoustic", "n=512", "dtype=float32", "order=8", "--within", "2%", "--dry-run"]
    done = tune.ok(*words)
    # Slices were measured before some variants were there: what they lack has its neutral value.
    known = {"h100", "h200", "h200.sm16"}
    (line,) = (each for each in done.stderr.splitlines() if "starts from rows of" in each)
    assert known <= set(line.partition(" of ")[2].split(", "))
    assert known <= {*tune.settings("tuned/acoustic")["sweeps"]["acoustic"]["strategy"]["known"]}
    assert "prior" in done.stdout + done.stderr


def test_an_earlier_sweep_of_the_same_gpu_has_a_name_of_its_own(tmp_path):
    spec = load_spec(SAXPY)
    path = write_sweep(
        tmp_path, measurements(spec, [{"n": [64], "dtype": ["float32"]}], "local"), spec
    )
    for gpu, name in (("local", "local_known"), ("other", "local")):
        assert known_sweeps(SAXPY, spec, gpu, [tmp_path]) == {name: path}


@pytest.mark.slow
def test_a_search_starts_from_an_earlier_run_and_says_how_sure_it_is(
    tune, snakemake, workload, tmp_path
):
    tune.ok(workload, "w=32", "h=16", "--gpu", "elsewhere", "--folder", "earlier")
    asked = [workload, "w=32", "h=16", "--known", "earlier", "--evaluations", "4"]
    done = tune.ok(*asked, "--within", "1%", "--json")
    assert "launchwise: starts from rows of elsewhere" in done.stderr
    (line,) = [each for each in done.stderr.splitlines() if each.startswith("snakemake ")]
    (answer,) = json.loads(done.stdout)["answers"]
    # The baseline, then what was fastest elsewhere.
    assert 1 < sum(answer["statuses"].values()) <= 4
    assert answer["search"]["within_percent"] == 1
    assert 0 < answer["search"]["chance_left"] < 1
    assert answer["search"]["seconds_per_row"] > 0
    assert answer["search"]["started_from"] == 1
    # Its stages are those of Snakemake's rules.
    assert "Nothing to be done" in snakemake(line).stdout
    again = tune(*asked, "--within", "1%")
    assert "Nothing to be done" in again.stderr
    assert "measured by no other GPU" not in done.stderr
    other = tune(workload, "w=40", "h=16", "--known", "earlier", "--evaluations", "2")
    assert "1 of 1 problems were measured by no other GPU: rows of the nearest one" in other.stderr
    more = tune(workload, "w=32", "h=16", "--known", "earlier", "--evaluations", "6")
    assert "chance that another is faster by more than 2 %" in more.stdout
    # With --within alone a search goes on until it is sure, or nothing is left.
    sure = tune(workload, "w=32", "h=16", "--known", "earlier", "--within", "50%", "--json")
    (answer,) = json.loads(sure.stdout)["answers"]
    assert answer["search"]["chance_left"] <= 0.1


def test_everything_is_measured_where_that_takes_less_than_a_minute(tune):
    def planned(*words):
        done = tune.ok(EXAMPLES / "convolution", *words, "--dry-run")
        sweep = tune.settings()["sweeps"]["convolution"]
        return sweep.get("strategy", {}), done.stderr

    large = "w=16384,20000,24000", "h=16384,20000,24000"
    searched, said = planned(*large)
    assert searched == {"kind": "transfer", "budget": 10_000, "stop_below_percent": 2.0}
    assert "launchwise: searches, since all 2106 configurations would take about 3 min" in said
    assert said.count("--all measures all") == 1
    assert planned(*large, "--all")[0] == {}
    # What is asked for is not explained.
    asked, said = planned(*large, "--evaluations", "20")
    assert asked == {"kind": "transfer", "budget": 20}
    assert "launchwise: searches" not in said
