"""Contests: who takes part, with which roles, as JSON holds it."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd

from launchwise.experiment.confirmation import Role
from launchwise.learning.contests import contest_of, plain
from launchwise.workloads.space import Configuration


def test_values_are_those_of_json() -> None:
    row = pd.Series({"variant": "block", "bx": np.int64(32), "by": 4.0, "n": 1}, dtype=object)
    found = plain(row, ["variant", "bx", "by"])
    assert json.dumps(found) == '{"variant": "block", "bx": 32, "by": 4}'


def test_roles_of_one_configuration_are_joined_and_the_last_are_left_out() -> None:
    one, two, three = ({"variant": "block", "bx": bx} for bx in (1, 2, 3))
    listed: list[tuple[Role, Configuration]] = [
        *(("baseline", one), ("usual", two), ("best", one), ("near", three), ("near", one)),
        *(("near", two), ("recommended", two)),
    ]
    found = contest_of({"n": 1}, listed, most=2)
    assert [(each.configuration["bx"], each.roles) for each in found.entrants] == [
        (1, ["baseline", "best", "near"]),
        (2, ["usual", "near", "recommended"]),
    ]
    assert len(contest_of({"n": 1}, listed, most=3).entrants) == 3
