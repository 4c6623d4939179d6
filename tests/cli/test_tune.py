"""``launchwise tune`` on a made-up card: settings, the line, the answers, another run."""

from __future__ import annotations

import json
import shutil
import signal
import time
from pathlib import Path

import pandas as pd
import pytest
import yaml
from fake_cluster import CARD
from mistakes import planted
from samples import ROOT

from launchwise.cli.app import main
from launchwise.cli.tuning import HEADER
from launchwise.measuring.journal import read_journal


def test_one_problem_from_an_empty_folder_to_the_answer(tune, snakemake, workload, tmp_path):
    here = tmp_path / "here"
    done = tune.ok(workload, "w=32", "h=16", "--json")
    line, *_ = done.stderr.splitlines()
    assert line.startswith(f"snakemake --snakefile {ROOT / 'Snakefile'} --directory tuned/")

    found = json.loads(done.stdout)
    (answer,) = found["answers"]
    assert "strategy" not in tune.settings()["sweeps"]["convolution"]
    sweep = pd.read_parquet(here / "tuned/convolution/results/sweeps/local/convolution.parquet")
    ok = sweep[sweep["status"] == "ok"]
    best = ok.loc[ok["time_ms"].idxmin()]
    assert answer["problem"] == {"w": 32, "h": 16}
    assert answer["time_ms"] == best["time_ms"]
    for name, value in answer["configuration"].items():
        assert best[name] == value
    assert sum(answer["statuses"].values()) == len(sweep) == 8
    default = sweep.query("block_size_x == 16 and block_size_y == 8")
    default = default.query("tile_size_x == 1 and tile_size_y == 1")["time_ms"].item()
    assert (answer["baseline_ms"], answer["speedup"]) == (default, default / best["time_ms"])
    assert answer["block"] == [best["block_size_x"], best["block_size_y"], 1]
    assert [Path(path).name for path in found["pages"]] == ["convolution.html"]
    page = (here / found["pages"][0]).read_text()
    assert "Fastest configuration of each problem" in page
    # Rows name the commit of the project, wherever Snakemake runs.
    assert len(set(sweep["commit"])) == 1

    # What was made here is what Snakemake would make.
    planned = snakemake(line)
    assert planned.returncode == 0, planned.stderr[-3000:]
    assert "Nothing to be done" in planned.stdout

    again = tune.ok(workload, "w=32", "h=16")
    assert "Nothing to be done" in again.stderr
    assert f"  fastest  {answer['time_ms']:.4g} ms  tiled block_size_x=" in again.stdout
    assert "  macros   -Dblock_size_x=" in again.stdout
    assert "page: tuned/convolution/results/answers/local/convolution.html" in again.stdout
    # A problem more keeps the rows that are there.
    more = tune.ok(workload, "w=32,40", "h=16", "--json")
    assert [each["problem"]["w"] for each in json.loads(more.stdout)["answers"]] == [32, 40]
    both = pd.read_parquet(here / "tuned/convolution/results/sweeps/local/convolution.parquet")
    old = both[both["w"] == 32].sort_values("time_ms")["measured_at"].tolist()
    assert old == sweep.sort_values("time_ms")["measured_at"].tolist()


@pytest.mark.triton
def test_a_draft_of_a_triton_file_is_tuned_recommended_and_exported(tune, tmp_path):
    folder = tmp_path / "mine" / "vector_add"
    data = ROOT / "tests" / "cli" / "data"
    assert main(["new", str(folder), "--from", str(data / "triton" / "vector_add.py")]) == 0
    shutil.copy(data / "triton_references" / "vector_add.py", folder / "reference.py")
    narrowed(folder, BLOCK_SIZE=[512, 1024], num_warps=[2, 4])
    done = tune.ok(folder, "n_elements=1500,3000,6000")
    assert done.stdout.count("  rows     4 ok") == 3
    assert "  launch   block 64x1x1, grid " in done.stdout
    assert "  keywords BLOCK_SIZE=1024, num_warps=2\n" in done.stdout
    inside = "tuned/vector_add"
    asked = ("vector_add", "n_elements=2000", "--gpu", "local")
    found = tune.command("recommend", *asked, inside=inside)
    assert found.returncode == 0, found.stderr[-3000:]
    assert "   launch add_kernel: block 64 x 1 x 1, grid 2 x 1 x 1" in found.stdout
    module = tmp_path / "answers.py"
    asked = ("vector_add", "--format", "python", "--output", str(module))
    found = tune.command("export", *asked, "--cores", "1", inside=inside)
    assert found.returncode == 0, found.stderr[-3000:]
    names = {}
    exec(compile(module.read_text(), module, "exec"), names)
    answer = names["recommend"]("Made-up h200", n_elements=1500)
    (launch,) = answer["launches"]
    blocks = -(-1500 // answer["BLOCK_SIZE"])
    assert (launch["kernel"], launch["grid"]) == ("add_kernel", [blocks, 1, 1])


def narrowed(workload, **values):
    """Fewer configurations: each is compiled for the CPU."""
    path = workload / "spec.yaml"
    raw = yaml.safe_load(path.read_text())
    for name, listed in values.items():
        raw["tunables"][name]["values"] = listed
    path.write_text(yaml.safe_dump(raw, sort_keys=False))


def test_nothing_right_is_no_success_and_says_why(tune, workload, tmp_path):
    narrowed(workload, block_size_x=[16], block_size_y=[8])
    planted(workload, "convolution.cu", "float sum = 0;", "float sum = 1;")
    done = tune(workload, "w=32", "h=16")
    assert done.returncode == 1
    assert "launchwise: no configuration is ok: 2 wrong" in done.stderr.splitlines()[-1]
    assert "  rows     2 wrong" in done.stdout
    told = next(line for line in done.stdout.splitlines() if line.startswith("  wrong "))
    assert "  wrong    2: output" in told
    assert "(tiled block_size_x=16 block_size_y=8 tile_size_x=1 tile_size_y=" in told
    # It is no success that need not be repeated.
    again = tune(workload, "w=32", "h=16", "--json")
    assert again.returncode == 1
    outcome = json.loads(again.stdout)["answers"][0]["outcomes"]["wrong"]
    assert (outcome["count"], outcome["alike"]) == (2, 2)
    assert outcome["reason"] in told
    assert outcome["configuration"]["block_size_x"] == 16
    page = tmp_path / "here/tuned/convolution/results/answers/local/convolution.html"
    assert "Configurations that are not ok" in page.read_text()


def test_interrupted_it_goes_on_where_it_stopped(tune, workload, tmp_path):
    cards = tmp_path / "slow.json"
    cards.write_text(json.dumps({"h200": [{**CARD, "pause_s": 0.15}]}))
    here = tmp_path / "here"
    journal = here / "tuned/convolution/results/journal/local/convolution/1.jsonl"
    with tune.started("tune", workload, "w=32", "h=16", cards=cards) as process:
        until = time.monotonic() + 100
        while not journal.is_file() or len(read_journal(journal)[1]) < 2:
            assert process.poll() is None, tune.said()[-3000:]
            assert time.monotonic() < until
            time.sleep(0.05)
        process.send_signal(signal.SIGINT)
        code = process.wait(60)
    assert code == 130, tune.said()[-3000:]
    assert "rows are kept; run the same command again to resume" in tune.said().splitlines()[-1]
    kept = read_journal(journal)[1]
    assert 2 <= len(kept) < 8
    tune.ok(workload, "w=32", "h=16")
    rows = pd.read_parquet(here / "tuned/convolution/results/sweeps/local/convolution.parquet")
    assert len(rows) == 8
    assert {row["measured_at"] for row in kept} <= set(rows["measured_at"])


def test_a_changed_file_is_something_to_do(tune, workload, tmp_path):
    narrowed(workload, block_size_x=[16], block_size_y=[8], tile_size_y=[1])
    tune.ok(workload, "w=32", "h=16")
    sweep = tmp_path / "here/tuned/convolution/results/sweeps/local/convolution.parquet"
    before = sweep.read_bytes()
    # No file that a kernel is made of.
    (workload / "notes.txt").write_text("words\n")
    again = tune.ok(workload, "w=32", "h=16")
    assert "Nothing to be done" in again.stderr
    assert sweep.read_bytes() == before
    source = workload / "convolution.cu"
    source.write_text(source.read_text() + "// words\n")
    anew = tune.ok(workload, "w=32", "h=16")
    assert "Nothing to be done" not in anew.stderr
    assert sweep.read_bytes() != before
    # A result that is gone is made again.
    (tmp_path / "here/tuned/convolution/results/answers/local/convolution.html").unlink()
    back = tune(workload, "w=32", "h=16")
    assert "page: tuned/convolution/results/answers/local/convolution.html" in back.stdout


def test_snakemake_goes_on_with_the_rows_that_are_there(tune, snakemake, workload, tmp_path):
    """Also where it made results itself before, and they were tuned for another problem since."""
    narrowed(workload, block_size_x=[16], block_size_y=[8], tile_size_y=[1])
    sweep = tmp_path / "here/tuned/convolution/results/sweeps/local/convolution.parquet"
    measured = []
    for problem in ("w=32", "w=32,40"):
        done = tune.ok(workload, problem, "h=16")
        rows = sorted(pd.read_parquet(sweep)["measured_at"])
        made = snakemake(done.stderr.splitlines()[0], "--forcerun", "describe", "sweep")
        assert made.returncode == 0, made.stderr[-3000:]
        assert "localrule gather:" in made.stderr
        assert sorted(pd.read_parquet(sweep)["measured_at"]) == rows
        measured.append(rows)
    assert set(measured[0]) < set(measured[1])


def test_three_sizes_make_a_study_with_its_report(tune, workload, tmp_path):
    narrowed(workload, block_size_y=[8])
    done = tune.ok(workload, "w=32,40,64", "h=16", "--folder", "there", "--gpu", "card", "--json")
    found = json.loads(done.stdout)
    assert (found["gpu"], found["device_name"]) == ("card", "Made-up h200")
    assert found["pages"][1] == "there/results/report/index.html"
    for path in found["pages"]:
        assert (tmp_path / "here" / path).is_file()
    assert "2-D convolution" in (tmp_path / "here" / found["pages"][1]).read_text()
    # Models learn from its ceilings, so these were measured.
    profile = json.loads((tmp_path / "here/there/results/gpus/card.json").read_text())
    assert profile["source"] == "measured"
    _answers_are_measured(tune, tmp_path / "here/there")


def _answers_are_measured(tune, project):
    """``recommend --measure`` in a project whose study measured this card."""
    (study,) = (path.name for path in (project / "results/final").iterdir())
    question = "recommend", study, "w=48", "h=16", "--json"
    expected = json.loads(tune.command(*question, inside="there").stdout)
    assert expected["basis"] == "within"
    macros = tune.command(*question[:-1], "--macros", inside="there").stdout.splitlines()
    best = expected["suggestions"][0]["configuration"]
    # Kernels of such a workload are built with macros that are named as its tunables.
    assert f"#define block_size_x {best['block_size_x']}" in macros
    done = tune.command(*question, "--top", "9", "--measure", "3", inside="there")
    assert done.returncode == 0, done.stderr[-3000:]
    found = json.loads(done.stdout)
    assert (found["gpu"], found["problem"]) == ("card", {"w": 48, "h": 16})
    assert found["basis"] == "measured"
    rows = pd.read_parquet(project / f"measured/{study}/results/sweeps/card/convolution.parquet")
    assert len(rows) == 3
    times = rows["time_ms"].dropna().sort_values().tolist()
    listed = [each["expected_ms"] for each in found["suggestions"]]
    assert listed == times[: len(listed)] or found["suggestions"][0]["is_usual"]
    assert expected["suggestions"][0]["configuration"] in [
        each["configuration"] for each in found["suggestions"]
    ]
    # What was measured stays; more goes on from there.
    more = tune.command(*question, "--measure", "4", inside="there")
    assert more.returncode == 0, more.stderr[-3000:]
    sweep = pd.read_parquet(project / f"measured/{study}/results/sweeps/card/convolution.parquet")
    columns = ["block_size_x", "block_size_y", "tile_size_x", "tile_size_y", "time_ms"]
    assert len(sweep) == 4
    assert len(sweep[columns].merge(rows[columns])) == 3
    # Another card is here.
    other = tune.command(*question, "--gpu", "a100_pcie_40gb", "--measure", "3", inside="there")
    assert other.returncode == 2
    assert other.stderr.startswith("launchwise: recommend: --measure: this machine has Made-up")


@pytest.mark.workloads
def test_a_workload_of_the_project_leaves_its_studies_out(tune, tmp_path):
    done = tune.ok("acoustic", "n=20", "dtype=float32", "order=2", "-n")
    found = tune.settings("tuned/acoustic")
    assert found["studies"] == {"acoustic_kernels": None, "acoustic_tile": None}
    assert found["sweeps"]["acoustic"]["problems"] == [
        {"n": [20], "dtype": ["float32"], "order": [2]}
    ]
    assert "sweep" in done.stderr
    assert not (tmp_path / "here" / "tuned" / "acoustic" / "results" / "sweeps").exists()


def test_settings_of_somebody_else_stay(tune, workload, tmp_path):
    own = tmp_path / "here" / "own" / "config.yaml"
    own.parent.mkdir()
    own.write_text("seed: 1\n")
    refused = tune(workload, "w=32", "h=16", "--folder", "own")
    assert (refused.returncode, refused.stdout) == (2, "")
    (said,) = refused.stderr.splitlines()
    assert "own/config.yaml: was not written by launchwise tune" in said
    assert own.read_text() == "seed: 1\n"
    own.write_text(HEADER)
    tune.ok(workload, "w=32", "h=16", "--folder", "own", "-n")
    assert tune.settings("own")["gpus"] == {
        "local": {"source": "live", "workloads": ["convolution"], "shards": 1}
    }


def test_a_machine_without_a_gpu_says_so_in_one_line(tune, workload, tmp_path):
    empty = tmp_path / "none.json"
    empty.write_text(json.dumps({"cpu": []}))
    done = tune(workload, "w=32", "h=16", cards=empty)
    assert done.returncode == 1
    assert done.stdout == ""
    (said,) = done.stderr.splitlines()
    lacking = "this machine has no NVIDIA GPU, or no driver of one"
    assert said == f"launchwise: tune: {lacking}; check --cpu and tune --dry-run need none"
    assert not list((tmp_path / "here").iterdir())
    strange = tune(workload, "w=32", "h=16", "--device", "A100")
    assert strange.returncode == 1
    (said,) = strange.stderr.splitlines()
    assert said.startswith("launchwise: tune: --device: name one model: this machine has ")
    assert not list((tmp_path / "here").iterdir())
    preview = tune.ok(workload, "w=32", "h=16", "--evaluations", "3", "--dry-run", cards=empty)
    assert "no NVIDIA GPU, or no driver of one: jobs as for sm_90" in preview.stderr
    assert "launchwise: rows: up to 3, problems: 1, builds: " in preview.stderr
    assert len({each.split()[0] for each in preview.stderr.split(" about ")[1:]}) == 1
    assert "\nsweep           1\n" in preview.stderr
