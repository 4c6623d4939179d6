"""``launchwise compare``: what it prints and writes, exit codes, mistakes."""

import json
import re
import shutil
from functools import cache

import numpy as np
import pandas as pd
import pytest
from command_line import launchwise, line_of
from compared import SPEC, made_up, steady, with_times, write_sweep
from samples import ROOT, SAXPY, STENCIL, measurements

from launchwise.base.typed import read_yaml
from launchwise.cli.app import main
from launchwise.tables.files import read_table
from launchwise.tables.measurements import measurement_schema
from launchwise.workloads.space import label
from launchwise.workloads.spec import load_spec

GPU, WORKLOAD = "test", SPEC.workload
OWN = [f"--workloads={folder.parent}" for folder in (SAXPY, STENCIL)]


SLOWER = (1.25, 1.28)


@cache
def sweep_before():
    return made_up()


def steady_places():
    return np.flatnonzero(steady(sweep_before()))


@pytest.fixture(autouse=True)
def at_root(monkeypatch):
    monkeypatch.chdir(ROOT)


@pytest.fixture(scope="module")
def old(tmp_path_factory):
    """A folder with a sweep of two workloads each."""
    folder = tmp_path_factory.mktemp("old")
    write_sweep(folder, sweep_before(), SPEC)
    other = load_spec(STENCIL)
    write_sweep(folder, measurements(other), other)
    return str(folder)


@pytest.fixture(scope="module")
def planted(tmp_path_factory):
    """A copy in which two rows are slower, one is wrong, one gone, and a best answer is stale."""
    folder = tmp_path_factory.mktemp("planted")
    new = sweep_before().assign(driver="590.1")
    for place, factor in zip(steady_places(), SLOWER, strict=False):
        new = with_times(new, [place], factor)
    best = sweep_before().loc[sweep_before()["status"] == "ok", "time_ms"].idxmax()
    new.loc[best, ["status", "reason", "time_ms"]] = ["wrong", "largest error 3.0", np.nan]
    new["times_ms"] = [
        np.array([]) if place == best else each for place, each in new["times_ms"].items()
    ]
    new.loc[best, "repeats"] = 0
    gone = next(place for place in steady_places()[2:] if place != best)
    write_sweep(folder, new.drop(index=gone), SPEC)
    return str(folder)


def test_changes_are_printed_by_name_and_exit_with_1(old, planted):
    done = launchwise("compare", old, planted, *OWN)
    assert (done.returncode, done.stderr) == (1, "")
    lines = done.stdout.splitlines()
    assert lines[:2] == [f"OLD {old}", f"NEW {planted}"]
    both = len(sweep_before()) - 1
    assert f"{WORKLOAD} on {GPU}: {both} rows in both" in done.stdout
    assert re.search(r"^  rows       \d+ same, 2 slower, 1 broken, 1 gone$", done.stdout, re.M)
    assert f"  driver     {both} of {both} rows differ; 580.0 -> 590.1" in lines
    slower = [line for line in lines if re.search(r" 1\.2[58]0 \(.* interval ", line)]
    # The one that lost most stands first.
    for place, factor, line in zip(steady_places()[1::-1], SLOWER[::-1], slower, strict=True):
        row = sweep_before().iloc[place]
        assert line.endswith(label(row, SPEC))
        assert f" {factor:.3f} (" in line
        assert f"n={row['n']}, " in line
    assert any(
        re.match(r"  broken     ok -> wrong  n=\d+.* \(largest error 3\.0\)$", each)
        for each in lines
    )
    assert f"worse: {WORKLOAD} on {GPU}: 2 rows slower" in lines
    assert f"worse: {WORKLOAD} on {GPU}: 1 row broken" in lines
    assert "only in OLD: stencil on test" in done.stdout


def test_a_stale_best_is_named_with_what_to_take(old, tmp_path, capsys):
    problem = sweep_before().iloc[steady_places()[0]][SPEC.problem_columns]
    own = np.logical_and.reduce(
        [sweep_before()[name] == problem[name] for name in SPEC.problem_columns]
    )
    ranked = sweep_before()[own & (sweep_before()["status"] == "ok")].sort_values("time_ms")
    write_sweep(tmp_path, with_times(sweep_before(), [ranked.index[0]], 3.0), SPEC)
    main(["compare", old, str(tmp_path), *OWN])
    text = capsys.readouterr().out
    (line,) = [each for each in text.splitlines() if each.startswith("  stale")]
    first, second = (label(ranked.iloc[place], SPEC) for place in (0, 1))
    assert f"  {first} takes " in line
    assert line.endswith(f"; take {second}")
    # A stale answer counts only where that is asked for.
    options = ["--fail-on", "stale"]
    assert main(["compare", old, str(tmp_path), *OWN, *options]) == 1
    assert "worse: saxpy on test: 1 best configuration stale" in capsys.readouterr().out


def test_nothing_worse_exits_with_0(old, tmp_path, capsys):
    faster = with_times(sweep_before(), steady_places()[:4], 0.8)
    write_sweep(tmp_path, faster, SPEC)
    assert main(["compare", old, str(tmp_path), *OWN]) == 0
    text = capsys.readouterr().out
    assert text.endswith("excludes 1\nnothing is worse\n")
    assert "4 faster" in text


@pytest.mark.parametrize(("options", "code"), read_yaml(ROOT / "tests/cli/data/exit_codes.yaml"))
def test_options_say_what_the_exit_code_is_for(options, code, old, planted, capsys):
    assert main(["compare", old, planted, *OWN, *options.split()]) == code
    assert ("worse: " in capsys.readouterr().out) == bool(code)


def test_json_and_csv_hold_every_row(old, planted, tmp_path, capsys):
    csv = tmp_path / "rows.csv"
    assert main(["compare", old, planted, *OWN, "--json", "-", "--csv", str(csv)]) == 1
    found = json.loads(capsys.readouterr().out)
    assert (found["version"], found["threshold"], found["confidence"]) == (1, 0.02, 0.99)
    assert found["complaints"] == [
        f"{WORKLOAD} on {GPU}: 2 rows slower",
        f"{WORKLOAD} on {GPU}: 1 row broken",
    ]
    assert {each["workload"] for each in found["only_old"]} == {"stencil"}
    (sweep,) = found["sweeps"]
    assert sweep["outcomes"]["slower"] == 2
    assert len(sweep["rows"]) == len(sweep_before()) == sum(sweep["outcomes"].values())
    assert len(sweep["answers"]) == sum(sweep["verdicts"].values())
    slower = [row for row in sweep["rows"] if row["outcome"] == "slower"]
    expected = sweep_before().iloc[steady_places()[:2]]
    assert sorted(row["old_time_ms"] for row in slower) == sorted(expected["time_ms"])
    by_time = expected.set_index("time_ms")
    for row in slower:
        before = by_time.loc[row["old_time_ms"]]
        assert row["problem"]["n"] == before["n"]
        assert row["configuration"]["threads"] == before["threads"]
        assert row["ratio"] == pytest.approx(SLOWER[list(by_time.index).index(before.name)])
        assert 1 < row["ratio_low"] < row["ratio_high"]
        assert (row["old_repeats"], row["new_driver"]) == (before["repeats"], "590.1")
    (gone,) = [row for row in sweep["rows"] if row["outcome"] == "gone"]
    assert (gone["new_status"], gone["new_time_ms"], gone["ratio"]) == (None, None, None)
    (driver,) = [each for each in sweep["differences"] if each["what"] == "driver"]
    assert driver == {
        **{"what": "driver", "old": ["580.0"], "new": ["590.1"]},
        **{"rows": len(sweep_before()) - 1, "of": len(sweep_before()) - 1},
    }
    table = pd.read_csv(csv)
    assert table["outcome"].tolist() == [row["outcome"] for row in sweep["rows"]]
    np.testing.assert_array_equal(
        table["ratio"], [np.nan if row["ratio"] is None else row["ratio"] for row in sweep["rows"]]
    )
    assert table["problem"][0] == " ".join(
        f"{name}={value}" for name, value in sweep["rows"][0]["problem"].items()
    )


def test_json_in_a_file_leaves_the_text(old, tmp_path, capsys):
    path = tmp_path / "found.json"
    assert main(["compare", old, old, *OWN, "--json", str(path), "--only", WORKLOAD]) == 0
    count = len(sweep_before())
    said = f"{count} rows in both, {count} of them the same measurement"
    assert said in capsys.readouterr().out
    assert json.loads(path.read_text())["outcomes"]["same"] == count


def test_gpus_of_other_names_are_compared_on_demand(old, tmp_path, capsys):
    write_sweep(tmp_path, with_times(sweep_before(), slice(None), 0.5).assign(gpu="other"), SPEC)
    options = ["--gpu", "test=other", "--only", WORKLOAD, "--top", "1"]
    main(["compare", old, str(tmp_path), *OWN, *options])
    text = capsys.readouterr().out
    assert f"saxpy on test and other: {len(sweep_before())} rows in both\n" in text
    assert "rows, each with the same configuration)" in text
    count = int(re.search(r"(\d+) faster", text).group(1))
    assert count > 50
    assert f"... and {count - 1} more (--top, --csv)" in text


def test_a_workload_elsewhere_is_named(tmp_path, capsys):
    public = ROOT / "data/public/workloads/pnpoly"
    shutil.copytree(public, tmp_path / "mine" / "polygon")
    known = measurement_schema(load_spec(public))
    sweep = read_table(ROOT / "data/public/gpus/rtx3090/pnpoly.parquet", known)
    spec = tmp_path / "mine" / "polygon" / "spec.yaml"
    spec.write_text(spec.read_text().replace("workload: pnpoly", "workload: polygon"))
    write_sweep(tmp_path / "rows", sweep.assign(workload="polygon"), load_spec(spec.parent))
    rows = str(tmp_path / "rows")
    said = line_of(capsys, "compare", rows, rows)
    assert "unknown workload 'polygon'" in said
    assert "--workloads names its folder" in said
    assert main(["compare", rows, rows, "--workloads", str(tmp_path / "mine")]) == 0


@pytest.mark.slow
def test_public_sweeps_are_compared_without_options():
    done = launchwise("compare", "data/public/gpus", "git:HEAD:data/public/gpus", "--top", "0")
    if "is not in a git repository" in done.stderr:
        pytest.skip("the tests run outside a repository")
    assert "pnpoly on rtx3090: 4092 rows in both" in done.stdout
    assert done.returncode == 0
