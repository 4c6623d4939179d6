"""Problems that a table of answers holds: drawn ones, and fewer without a sweep."""

from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from launchwise.experiment.study import Range
from launchwise.exporting.building import DRAWN, UNMEASURED, drawn_problems, spread_problems
from launchwise.workloads.near_problems import distances
from launchwise.workloads.spec import Spec

MEASURED = pd.DataFrame({"n": [1024, 3072], "k": [2, 2]})
WORK = {"items": "n", "item": "points", "bytes": "n", "flop": "n", "footprint_bytes": "n"}


def spec_with(own):
    """A workload with constraints of the problem."""
    return Spec.model_validate(
        {
            "workload": "vec",
            "title": "a vector",
            "problem": {
                "n": {"type": "integer", "minimum": 1, "maximum": 1 << 20},
                "k": {"type": "integer", "minimum": 1, "maximum": 64},
            },
            "tunables": {"threads": {"kind": "launch", "values": [32, 64]}},
            "variants": {"vec": {"tunables": ["threads"], "constraints": []}},
            "constraints": own,
            "baseline": {"variant": "vec", "threads": 64},
            "work": WORK,
        }
    )


@pytest.mark.parametrize(
    ("own", "every"), [([], 1), (["n % 256 == 0"], 256), (["n % (128 * k) == 0"], 256)]
)
def test_drawn_problems_fit_and_nobody_measured_them(own, every):
    final = SimpleNamespace(spec=spec_with(own), measured=MEASURED)
    found = drawn_problems(final, None)
    sizes = [int(problem["n"]) for problem in found]
    assert {problem["k"] for problem in found} == {2}
    possible = {*range(1024, 3073, every)} - {1024, 3072}
    assert 0 < len(sizes) == len({*sizes} & possible) == min(4 * DRAWN, len(possible))


def test_nothing_is_drawn_where_nothing_else_fits():
    for own, rows in ((["n in (1024, 3072)"], MEASURED), ([], MEASURED.iloc[:1])):
        final = SimpleNamespace(spec=spec_with(own), measured=rows)
        assert drawn_problems(final, None) == []


def test_problems_are_drawn_from_what_a_study_declares():
    final = SimpleNamespace(spec=spec_with([]), measured=MEASURED)
    size = Range.model_validate({"minimum": 10, "maximum": 100_000, "scale": "logarithmic"})
    found = drawn_problems(final, {"n": size, "k": [1, 2, 3]})
    sizes = [int(problem["n"]) for problem in found]
    assert found == drawn_problems(final, {"n": size, "k": [1, 2, 3]})
    assert {problem["k"] for problem in found} == {1, 2, 3}
    # Three kinds of problems, thrice as many.
    assert len(found) == 3 * 4 * DRAWN
    assert 10 <= min(sizes) < 100
    assert 10_000 < max(sizes) <= 100_000


def test_without_measurements_few_problems_cover_all_that_were_measured():
    sizes = [2**k for k in range(20)]
    measured = pd.DataFrame([{"n": n, "k": k} for n in sizes for k in (1, 8, 64)])
    final = product(measured.assign(gpu="card"))
    chosen = [(*each.values(),) for each in spread_problems(final)]
    every = {(int(n), int(k)) for n, k in measured.to_numpy()}
    assert len(chosen) == UNMEASURED < len(every)
    assert set(chosen) < every
    assert chosen == sorted(chosen)
    farthest = distances([*every], chosen).min(axis=1).max()
    # No two of them are nearer than the farthest of the others.
    apart = distances(chosen, chosen)
    assert farthest <= apart[~np.eye(len(chosen), dtype=bool)].min()
    assert len(spread_problems(product(final.measured.head(5)))) == 5


def product(measured):
    """What a product knows of two cards and a slice."""
    profiles = {name: SimpleNamespace(is_slice="." in name) for name in ("card", "other", "card.7")}
    domain = SimpleNamespace(profiles=profiles)
    return SimpleNamespace(spec=spec_with([]), measured=measured, domain=domain)


def test_problems_that_all_cards_measured_come_first():
    sizes = {"card": range(1, 400), "other": range(100, 108), "card.7": range(1, 50)}
    rows = [{"n": n, "k": 1, "gpu": gpu} for gpu, some in sizes.items() for n in some]
    found = [each["n"] for each in spread_problems(product(pd.DataFrame(rows)))]
    assert len(found) == UNMEASURED
    assert set(sizes["other"]) < set(found)
    assert {1, 399} < set(found)
