"""Contests: who takes part, with which roles, as JSON holds it."""

import json
from types import SimpleNamespace

import numpy as np
import pandas as pd

from launchwise.experiment.method import Confirmation
from launchwise.learning.contests import contest_of, contests_of_blind, contests_of_sweep, plain
from launchwise.learning.features import Domain
from launchwise.workloads import space
from tests.support.samples import profile
from tests.support.studies import study


def test_values_are_those_of_json():
    row = pd.Series({"variant": "block", "bx": np.int64(32), "by": 4.0, "n": 1}, dtype=object)
    found = plain(row, ["variant", "bx", "by"])
    assert json.dumps(found) == '{"variant": "block", "bx": 32, "by": 4}'


def test_who_takes_part_is_measured_and_near_the_fastest(stencil_spec):
    problem = {"n": 64, "dtype": "float32", "order": 2}
    listed = space.configurations(stencil_spec, problem)[:6]
    rows = pd.DataFrame([{"gpu": "test", **problem, **each, "status": "ok"} for each in listed])
    # The baseline, then the fastest, two within 2 % of it, and one beyond; the last has no time.
    rows["time_ms"] = [3.0, 1.0, 1.019, 1.01, 1.021, 0.9]
    rows.loc[5, "status"] = "failed"
    alone = pd.DataFrame([{**rows.iloc[0], "n": 65}])
    usual = {"when": "n == 64", "configuration": space.used(listed[3], stencil_spec)}
    domain = Domain(stencil_spec, {"test": profile()}, usual=[{**usual, "reason": "it is"}])
    sweep = pd.concat([rows, alone], ignore_index=True)
    first, second = contests_of_sweep(study("knn"), domain, sweep, Confirmation(near_percent=2))
    assert first.problem == problem
    assert [(listed.index(each.configuration), each.roles) for each in first.entrants] == [
        *((0, ["baseline"]), (3, ["usual", "near"]), (1, ["best"]), (2, ["near"]))
    ]
    assert second.problem == {**problem, "n": 65}
    assert [each.roles for each in second.entrants] == [["baseline", "usual", "best"]]
    # In a blind test the usual choice and the answer are those that were written down, whether they
    # have a time or not.
    usual_then, answer = (space.used(listed[place], stencil_spec) for place in (4, 5))
    asked = {"problem": problem, "usual": usual_then, "suggestions": [{"configuration": answer}]}
    frozen = SimpleNamespace(answers=[asked])
    (found,) = contests_of_blind(frozen, domain, rows, Confirmation(near_percent=2))
    assert [(listed.index(each.configuration), each.roles) for each in found.entrants] == [
        *((0, ["baseline"]), (4, ["usual"]), (1, ["best"]), (5, ["recommended"])),
        *((3, ["near"]), (2, ["near"])),
    ]


def test_the_fastest_of_each_design_takes_part(stencil_spec, one_gpu):
    problem = {"n": 64, "dtype": "float32", "order": 2}
    listed = space.configurations(stencil_spec, problem)[:40]
    rows = pd.DataFrame([{"gpu": "test", **problem, **each, "status": "ok"} for each in listed])
    rows["time_ms"] = np.linspace(3, 2, len(rows))
    wide = rows[(rows["bx"] == rows["bx"].max()) & (rows["variant"] != "linear")]
    narrow = rows[(rows["by"] == 1) & (rows["bz"] == 1) & (rows["bx"] < 64)]
    assert len(wide)
    assert len(narrow)
    designs = {
        "wide": {
            "title": "wide blocks",
            "candidates": {"bx": [int(rows["bx"].max())]},
            "constraints": ["variant != 'linear'"],
        },
        "narrow": {"title": "flat blocks", "constraints": ["by == 1 and bz == 1 and bx < 64"]},
        "none": {"title": "nothing", "constraints": ["bx > 100000"]},
    }
    asked = study("knn", designs=designs)
    (contest,) = contests_of_sweep(asked, one_gpu, rows, Confirmation(near_percent=0))
    places = {
        listed.index(each.configuration) for each in contest.entrants if "design" in each.roles
    }
    assert places == {int(wide["time_ms"].idxmin()), int(narrow["time_ms"].idxmin())}


def test_roles_of_one_configuration_are_joined_and_the_last_are_left_out():
    one, two, three = ({"variant": "block", "bx": bx} for bx in (1, 2, 3))
    listed = [
        *(("baseline", [one]), ("usual", [two]), ("best", [one])),
        *(("near", [three, one, two]), ("recommended", [two])),
    ]
    found = contest_of({"n": 1}, listed, most=2)
    assert [(each.configuration["bx"], each.roles) for each in found.entrants] == [
        (1, ["baseline", "best", "near"]),
        (2, ["usual", "near", "recommended"]),
    ]
    assert len(contest_of({"n": 1}, listed, most=3).entrants) == 3
