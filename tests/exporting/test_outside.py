"""Where a GPU measured nothing near, no answer says a time, whatever other GPUs measured."""

from dataclasses import replace

import pandas as pd
import pytest
from agreeing import changed
from exported import GPUS, problem
from stencil import sweep
from studies import entry, fit_product

from launchwise.exporting.building import answer_table
from launchwise.learning.final import read_final

CARD, SLICE = GPUS


@pytest.fixture(scope="module")
def table(tmp_path_factory, domain, stencil_spec):
    """Answers where a slice measured fewer sizes than its card, and one type."""
    types = ("float32", "float64")
    sizes = (200, 256, 300, 400, 512)
    rows = [sweep(stencil_spec, sizes, CARD, dtype, order=2) for dtype in types]
    sweeps = {
        CARD: pd.concat(rows, ignore_index=True),
        SLICE: sweep(stencil_spec, sizes[:3], SLICE, "float32", order=2),
    }
    folder = tmp_path_factory.mktemp("final") / "tiles"
    fit_product(folder, domain, sweeps, entry("knn"))
    return answer_table(read_final(folder, domain), "tiles")


def test_entries_and_their_neighbours_agree_on_what_a_gpu_measured(table):
    found = {"within": 0, "beyond": 0}
    for each in table.entries:
        n, dtype, _ = each.problem
        device = table.devices[each.device].name
        if each.basis == "measured":
            continue
        found[each.basis] += 1
        far = (n + 1) / 301 if device == SLICE and n > 300 else 1.0
        far = 0.0 if device == SLICE and dtype == "float64" else far
        for size in (n - 1, n, n + 1):
            answer = table.answer(device, problem(size, dtype))
            if size == n:
                assert answer.outside == far
            # The ends themselves were measured.
            if answer.basis != "measured":
                assert answer.basis == each.basis == ("within" if far == 1 else "beyond")
                assert (answer.suggestions[0].expected_ms is None) == (far != 1)
                assert ("no time is stated" in answer.why) == (far != 1)
    assert min(found.values()) > 10


def test_a_time_is_scaled_from_the_nearest_entry_that_has_one(table):
    """Where several sizes vary, the nearest one may be of a problem beyond."""
    entries = [
        replace(one, basis="beyond", time_ms=None) if one.problem[0] in range(330, 370) else one
        for one in table.entries
    ]
    n = min({*range(340, 360)} - {one.problem[0] for one in entries})
    found = changed(table, entries=tuple(entries)).answer(CARD, problem(n))
    assert found.basis == "within"
    assert found.suggestions[0].expected_ms > 0
    assert found.answered_for["n"] not in range(330, 370)
