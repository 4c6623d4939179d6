"""Problems that exported tables and the lookup hold: sizes between, and fewer without a sweep."""

from types import SimpleNamespace

import pandas as pd
import pytest

from launchwise.exporting.lookup import (
    UNMEASURED,
    asked_problems,
    distance,
    spread_problems,
)
from launchwise.workloads.spec import Spec

WORK = {"items": "n", "item": "points", "bytes": "n", "flop": "n", "footprint_bytes": "n"}


def spec_with(own, variant):
    """A workload with constraints of the problem, and of its variant."""
    return Spec.model_validate(
        {
            "workload": "vec",
            "title": "a vector",
            "problem": {
                "n": {"type": "integer", "minimum": 1, "maximum": 1 << 20},
                "k": {"type": "integer", "minimum": 1, "maximum": 64},
            },
            "tunables": {"threads": {"kind": "launch", "values": [32, 64]}},
            "variants": {"vec": {"tunables": ["threads"], "constraints": variant}},
            "constraints": own,
            "baseline": {"variant": "vec", "threads": 64},
            "work": WORK,
        }
    )


@pytest.mark.parametrize(
    ("own", "variant", "between"),
    [
        ([], [], [1774]),
        (["n % 256 == 0"], [], [1792]),
        ([], ["n % (4 * threads) == 0"], [1792]),
        (["n % 1024 == 0"], [], [2048]),
        (["n in (1024, 3072)"], [], []),
        (["n % (512 * k) == 0"], [], [2048]),
    ],
)
def test_sizes_between_measured_ones_fit(own, variant, between):
    measured = pd.DataFrame({"n": [1024, 3072], "k": [2, 2]})
    final = SimpleNamespace(spec=spec_with(own, variant), measured=measured)
    found = asked_problems(final)
    assert [problem["n"] for problem in found] == [1024, *between, 3072]
    assert {problem["k"] for problem in found} == {2}


def test_without_measurements_few_problems_cover_all_that_were_measured():
    sizes = [2**k for k in range(20)]
    measured = pd.DataFrame([{"n": n, "k": k} for n in sizes for k in (1, 8, 64)])
    final = product(measured.assign(gpu="card"))
    chosen = [(*each.values(),) for each in spread_problems(final)]
    every = {(int(n), int(k)) for n, k in measured.to_numpy()}
    assert len(chosen) == UNMEASURED < len(every)
    assert set(chosen) < every
    assert chosen == sorted(chosen)
    farthest = max(min(distance(one, own) for own in chosen) for one in every)
    # No two of them are nearer than the farthest of the others.
    apart = min(distance(a, b) for a in chosen for b in chosen if a != b)
    assert farthest <= apart
    assert len(spread_problems(product(final.measured.head(5)))) == 5


def product(measured):
    """What a product knows of two cards and a slice."""
    profiles = {name: SimpleNamespace(is_slice="." in name) for name in ("card", "other", "card.7")}
    domain = SimpleNamespace(profiles=profiles)
    made = SimpleNamespace(spec=spec_with([], []), measured=measured, domain=domain)
    return made


def test_problems_that_all_cards_measured_come_first():
    sizes = {"card": range(1, 400), "other": range(100, 108), "card.7": range(1, 50)}
    rows = [{"n": n, "k": 1, "gpu": gpu} for gpu, some in sizes.items() for n in some]
    found = [each["n"] for each in spread_problems(product(pd.DataFrame(rows)))]
    assert len(found) == UNMEASURED
    assert set(sizes["other"]) < set(found)
    assert {1, 399} < set(found)
