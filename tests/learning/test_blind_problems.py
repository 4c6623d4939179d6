"""Problems of a blind test keep the constraints of the problem."""

from __future__ import annotations

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any, cast

import pandas as pd
import pytest
from samples import ROOT

from launchwise.base.errors import UserError
from launchwise.experiment.study import Blind
from launchwise.gpus.profile import read_profile
from launchwise.learning.blind.answering import draw_problems
from launchwise.learning.features import Domain
from launchwise.workloads.spec import Spec

WORK = {"items": "n", "item": "points", "bytes": "n", "flop": "n", "footprint_bytes": "n"}


def drawn(
    constraints: list[str], count: int, measured: Sequence[int] = (), largest: int = 1 << 29
) -> list[dict[str, Any]]:
    """Problems of a blind test of a workload with constraints, beside measured sizes."""
    spec = Spec.model_validate(
        {
            "workload": "vec",
            "title": "a vector",
            "problem": {"n": {"type": "integer", "minimum": 1, "maximum": 1 << 30}},
            "tunables": {"threads": {"kind": "launch", "values": [32, 64]}},
            "variants": {"vec": {"tunables": ["threads"]}},
            "constraints": constraints,
            "baseline": {"variant": "vec", "threads": 64},
            "work": WORK,
        }
    )
    profile = read_profile(ROOT / "data" / "recorded" / "h200" / "profile.json", "h200")
    domain: Any = SimpleNamespace(spec=spec, narrowed=spec, profiles={"h200": profile})
    blind = Blind(parameters={"n": {"minimum": 1000, "maximum": largest}}, problems=count)  # type: ignore[dict-item]
    tables = [pd.DataFrame({"n": [n]}) for n in measured]
    return draw_problems(blind, cast(Domain, domain), "h200", tables, 1)


@pytest.mark.parametrize("constraint", ["n % 3 == 0", "n % 4096 == 0", "log2(n) == log2(n) // 1"])
def test_drawn_problems_fit(constraint: str) -> None:
    spec_problems = drawn([constraint], 4)
    assert len({problem["n"] for problem in spec_problems}) == 4
    assert all(1000 <= problem["n"] <= 1 << 29 for problem in spec_problems)
    step = {"n % 3 == 0": 3, "n % 4096 == 0": 4096}.get(constraint)
    for problem in spec_problems:
        n = int(problem["n"])
        assert n % step == 0 if step else n & (n - 1) == 0


def test_what_any_table_holds_is_not_drawn() -> None:
    problems = drawn([], 3, [1000, 1003, 1004], largest=1005)
    assert {problem["n"] for problem in problems} == {1001, 1002, 1005}


def test_ranges_without_a_problem_that_fits_are_told() -> None:
    with pytest.raises(UserError, match="hold 0 problems that were not measured, not 4"):
        drawn(["n == 7"], 4)
