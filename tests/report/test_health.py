"""Verdicts on sweeps: each limit is passed on its own, and what is unknown is called so."""

import dataclasses
import subprocess
from functools import partial

import numpy as np
import pandas as pd
import pytest
import yaml

from launchwise.base.places import changes_since
from launchwise.measuring.earlier_rows import named
from launchwise.report.pages import finder, health_section, sweep_health
from launchwise.workloads.metrics import UNKNOWN
from tests.support.report_pages import html_of
from tests.support.report_study import study
from tests.support.shown import rows_of, tables

AT = "2026-06-15T00:00:00+00:00"
"""When the report of these tests is written."""


def sweep():
    """A sound sweep of 100 rows: ten problems, ten configurations."""
    rows = study().sweeps["big"]
    one = rows[rows["status"] == "ok"].iloc[:1]
    made = pd.concat([one] * 100, ignore_index=True)
    return made.assign(n=100 + np.arange(100) // 10, temperature_c=50.0, power_w=300.0)


def section_of(*studies):
    return health_section.section(studies, sweep_health.of_studies(studies), AT)


def of(rows):
    return sweep_health.health_of("big", rows, study().spec)


def capped(rows, count):
    reasons = np.where(np.arange(len(rows)) < count, "sw_power_cap", "")
    return rows.assign(throttle=reasons)


def drifting(rows, count, ratio):
    return rows.assign(control_ratio=np.where(np.arange(len(rows)) < count, ratio, 1.0))


def ended(rows, status, count):
    changed = rows.copy()
    changed.loc[: count - 1, ["status", "time_ms"]] = status, np.nan
    return changed


def mixed(rows, problems):
    """Every second row of so many problems on another card."""
    of_problem = np.arange(len(rows)) // 10
    other = (of_problem < problems) & (np.arange(len(rows)) % 2 == 1)
    return rows.assign(card=np.where(other, "f" * 16, rows["card"]))


def test_a_card_per_problem_mixes_nothing():
    rows = sweep()
    rows = rows.assign(card=[f"{n:016d}" for n in rows["n"]])
    assert (of(rows).cards, of(rows).mixed, of(rows).verdict) == (10, 0.0, "sound")


def test_rows_that_are_not_verified_mix_no_cards():
    """Those of a paper's program are no answer; what is measured in pairs is their ratio."""
    rows = mixed(sweep(), 2)
    assert of(rows).mixed == 0.2
    rows.loc[rows["card"] == "f" * 16, "status"] = "unverified"
    assert (of(rows).mixed, of(rows).worst_problems) == (0.0, ())


@pytest.mark.parametrize(
    ("driver", "said"), [("570.1", ["driver 570.1, others have 580.2"]), ("580.1", []), ("", [])]
)
def test_an_older_major_version_of_the_driver_is_a_complaint(driver, said):
    made = study()
    sweeps = {
        gpu: rows.assign(driver=driver if gpu == "big" else "580.2")
        for gpu, rows in made.sweeps.items()
    }
    big, other = sweep_health.of_studies([dataclasses.replace(made, sweeps=sweeps)])
    assert (big.complaints, other.complaints) == (said, [])
    # All of such a sweep is to be measured again.
    assert len(big.worst_problems) == (big.problems if said else 0)


def test_rows_that_pairs_measured_on_another_card_tell_how_far_visits_lie_apart():
    made = study(gpus=("big",))
    rows = made.sweeps["big"]
    for card, count in ((rows["card"].iloc[0], 0), ("f" * 16, (rows["status"] == "ok").sum())):
        again = rows.assign(card=card, time_ms=1.1 * rows["time_ms"])
        pairs = {"big": again[again["status"] == "ok"].drop(columns=["sweep_ms"], errors="ignore")}
        (found,) = sweep_health.of_studies([dataclasses.replace(made, pairs=pairs)])
        told = (count, pytest.approx(0.1), pytest.approx(0.1)) if count else None
        assert found.repeats == told


def test_a_sound_sweep_is_well():
    found = of(sweep())
    assert (found.verdict, found.complaints) == ("sound", [])
    assert (found.rows, found.cards, found.clocks_mhz) == (100, 1, (1980.0, 1980.0))


@pytest.mark.parametrize(
    ("change", "complaints"),
    [
        (lambda rows: capped(rows, 5), []),
        (lambda rows: capped(rows, 6), ["6 % of the rows throttled"]),
        (lambda rows: drifting(rows, 50, 0.97), []),
        (lambda rows: drifting(rows, 51, 0.97), ["drift of 3.0 % (median), 3.0 % (largest)"]),
        (lambda rows: drifting(rows, 1, 1.09), []),
        (lambda rows: drifting(rows, 1, 1.11), ["drift of 0.0 % (median), 11.0 % (largest)"]),
        (lambda rows: ended(rows, "out_of_memory", 5), []),
        (lambda rows: ended(rows, "timeout", 6), ["6.0 % of the rows hung or ran out of memory"]),
        # Configurations that cannot run are no fault of a sweep.
        (lambda rows: ended(rows, "failed", 50), []),
        (lambda rows: ended(rows, "wrong", 1), ["1 wrong result"]),
        (lambda rows: mixed(rows, 1), ["rows of several cards at 10 % of the problems"]),
    ],
)
def test_a_sweep_is_sound_up_to_each_limit(change, complaints):
    found = of(change(sweep()))
    assert found.complaints == complaints
    assert found.verdict == ("doubtful" if complaints else "sound")


def test_what_a_sweep_does_not_tell_is_no_good_mark():
    silent = sweep().assign(throttle=UNKNOWN, control_ratio=np.nan)
    assert of(silent).verdict == "unknown"
    assert of(ended(silent, "wrong", 1)).verdict == "doubtful"


def test_problems_that_suffered_are_named_most_first():
    rows = sweep()
    reasons = np.where(
        (rows["n"] == 103) | ((rows["n"] == 107) & (rows.index % 2 == 0)), "hw_thermal", ""
    )
    found = of(rows.assign(throttle=reasons))
    assert [problem[0] for problem in found.worst_problems] == [103, 107]
    # Of drift in the median, and of the largest.
    slow = of(rows.assign(control_ratio=np.where(rows["n"] > 103, 1.03, 1.0)))
    assert sorted(problem[0] for problem in slow.worst_problems) == [*range(104, 110)]
    fast = of(drifting(rows, 11, 0.89))
    assert [problem[0] for problem in fast.worst_problems] == [100, 101]


def test_every_complaint_names_its_problems_and_settings_to_copy_name_them_all():
    rows = sweep()
    # Each in a part of its own: three problems of mixed cards, then one throttled, one wrong.
    spoilt = mixed(rows, 3).assign(throttle=np.where(rows["n"] == 106, "hw_thermal", ""))
    spoilt.loc[spoilt["n"] == 108, "status"] = "wrong"
    found = of(spoilt)
    assert len(found.complaints) == 3
    assert sorted(problem[0] for problem in found.worst_problems) == [100, 101, 102, 106, 108]
    columns = study().problem_columns
    named_problems = found.gpu, found.workload, found.worst_problems, columns
    settings = yaml.safe_load(health_section.anew_settings(*named_problems))
    assert settings["gpus"] == {"big": {"source": "live", "extend": True}}
    chosen = named(spoilt, settings["sweeps"]["stencil"]["anew"])
    assert sorted(spoilt.loc[chosen, "n"].unique()) == [100, 101, 102, 106, 108]
    section = section_of(dataclasses.replace(study(("big",)), sweeps={"big": spoilt}))
    assert rows_of(section, "What to measure again")[0][3].endswith("; 2 more; of 10")


def test_answers_of_doubtful_sweeps_say_so_and_at_which_problems():
    made = study()
    assert finder.data(made, None, sweep_health.of_studies([made]))["doubts"] == {}
    rows = made.sweeps["big"]
    small = rows["n"] == 102
    hot = {"big": rows.assign(throttle=np.where(small, "hw_thermal", ""))}
    made = dataclasses.replace(made, sweeps={**made.sweeps, **hot}, _known={})
    data = finder.data(made, None, sweep_health.of_studies([made]))
    ((words, places),) = data["doubts"].values()
    assert list(data["doubts"]) == ["big"]
    assert words == "50 % of the rows throttled"
    assert [data["problems"][place] for place in places] == [[102, "float32", 2]]
    pages = html_of(made)
    command = "snakemake --cores all -- data/recorded/{}/"
    assert command.format("big") in pages["gpus.html"]
    assert command.format("big.sm4") not in pages["gpus.html"]


def test_the_worst_comes_first_with_the_answers_that_rest_on_it():
    made = study()
    rows = made.sweeps["big"]
    sweeps = {
        "big": rows,
        "slow": capped(rows, 1),
        "slowest": capped(rows, len(rows)),
        "silent": rows.assign(throttle=UNKNOWN, control_ratio=np.nan),
    }
    profiles = {gpu: made.profiles["big"] for gpu in sweeps}
    section = section_of(dataclasses.replace(made, sweeps=sweeps, profiles=profiles))
    table, every, again, *_ = tables(section, folded=True)
    assert [cell.text for cell in table.rows[0].cells[1:3]] == ["slowest", "doubtful"]
    assert table.rows[1].cells[1].text == "slow"
    # What recorded no conditions stands with the others alone.
    assert len(table.rows) == len(sweeps) - 1
    assert len(every.rows) == len(sweeps)
    columns = [column.title for column in again.columns]
    assert again.rows[0].cells[columns.index("answers that rest on it")].text == made.name


def test_ages_are_days_and_commits_that_changed_the_workload(tmp_path, monkeypatch):
    def git(*words):
        command = ["git", "-c", "user.name=a", "-c", "user.email=a@b", *words]
        return subprocess.run(
            command, cwd=tmp_path, check=True, capture_output=True, text=True
        ).stdout.strip()

    folder = tmp_path / "kernels" / "own" / "studies" / "own"
    folder.mkdir(parents=True)
    git("init", "-q")
    commits = []
    for content, name in (("a", "kernels/own/k.cu"), ("b", "README"), ("c", "kernels/own/k.cu")):
        (tmp_path / name).write_text(content)
        git("add", "-A")
        git("commit", "-q", "-m", content)
        commits.append(git("rev-parse", "HEAD"))
    monkeypatch.setattr(health_section, "changes_since", partial(changes_since, root=tmp_path))
    rows = sweep().assign(measured_at="2026-06-05T12:00:00+00:00")

    def ages_of(*named):
        made = rows.assign(commit=[named[k % len(named)] for k in range(len(rows))])
        of_study = dataclasses.replace(study(), folder=folder)
        (age,) = health_section.ages([of(made)], [of_study], AT).values()
        return age

    assert ages_of(commits[0]) == health_section.Age(10, 1)
    assert ages_of(commits[2]) == health_section.Age(10, 0)
    assert ages_of(commits[2], commits[0]) == health_section.Age(10, 1)
    # What git does not know, and what is no name of a commit, is unknown: nothing is run with it.
    for strange in ("0" * 40, "--output=" + str(tmp_path / "made"), "unknown"):
        assert ages_of(strange) == health_section.Age(10, None)
    assert not (tmp_path / "made").exists()
    # C for the compiler of OpenMP, Triton and C of the host are kernels as well.
    for name in ("openmp.c", "kernel.py", "host/solve.c", "host/deep/more.py", "k.h"):
        path = tmp_path / "kernels" / "own" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("import triton\n")
        git("add", "-A")
        git("commit", "-q", "-m", name)
        commits.append(git("rev-parse", "HEAD"))
        assert ages_of(commits[-1]) == health_section.Age(10, 0)
        assert ages_of(commits[-2]) == health_section.Age(10, 1), name
    (tmp_path / "kernels" / "own" / "openmp.c").unlink()
    git("commit", "-q", "-a", "-m", "gone")
    assert ages_of(commits[-1]) == health_section.Age(10, 1)
    commits.append(git("rev-parse", "HEAD"))
    # What studies ask of a workload, its tests and what prepares it change none of its kernels.
    for name in ("train.py", "tests/test_k.py", "examples/k.cu"):
        path = tmp_path / "kernels" / "own" / name
        path.parent.mkdir(exist_ok=True)
        path.write_text("pass\n")
    (folder / "study.yaml").write_text("title: own")
    git("add", "-A")
    git("commit", "-q", "-m", "study")
    assert ages_of(commits[-1]) == health_section.Age(10, 0)
    # What a branch changed counts from its merge on, also where it began before.
    last = git("rev-parse", "HEAD")
    git("checkout", "-q", "-b", "side", commits[-1])
    (tmp_path / "kernels" / "own" / "k.cu").write_text("d")
    git("commit", "-q", "-a", "-m", "side")
    git("checkout", "-q", "-")
    assert ages_of(last) == health_section.Age(10, 0)
    git("merge", "-q", "--no-edit", "side")
    assert ages_of(last) == ages_of(commits[-1]) == health_section.Age(10, 1)


@pytest.mark.parametrize(
    ("last", "now", "days"),
    [
        ("2026-06-05T12:00:00+00:00", AT, 10),
        ("2026-06-05T12:00:00+00:00", "unknown", None),
        ("", AT, None),
        # By a clock that was ahead.
        ("2026-06-16T12:00:00+00:00", AT, 0),
    ],
)
def test_an_age_is_known_where_both_days_are(last, now, days):
    found = of(sweep().assign(measured_at=last))
    (age,) = health_section.ages([found], [], now).values()
    assert age == health_section.Age(days, None)


def test_every_sweep_has_one_row():
    cards, every, *_ = tables(section_of(study(name="one"), study(name="two")), folded=True)
    assert [row.cells[1].text for row in cards.rows] == ["big"]
    assert [row.cells[1].text for row in every.rows] == ["big", "big.sm4"]


def test_rows_that_were_stopped_early_have_a_part_in_the_drift():
    rows = drifting(sweep(), 1, 2.0)
    rows.loc[0, "status"] = "slow"
    assert (of(rows).largest_drift, of(rows).verdict) == (1.0, "doubtful")
