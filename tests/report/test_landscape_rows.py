"""What the landscape reads of a sweep."""

import math

import pytest

from launchwise.report.answer import landscape
from launchwise.report.site import rendering
from tests.support.report_study import TIMES_MS, study


def whole(texts):
    """Whole numbers of their digits, a text per place."""
    places = [[rendering.DIGITS.index(ord(one)) for one in text] for text in texts]
    every = zip(*places, strict=True)
    return [sum(64**place * digit for place, digit in enumerate(each)) for each in every]


def steps_of(found):
    """Of each problem, by configuration, steps above the least time; -1 without a time."""
    steps = [each - 1 for each in whole(found["times"])]
    count = len(found["configurations"][0])
    return [steps[at : at + count] for at in range(0, len(steps), count)]


def unpacked(found, place):
    """Times of a problem in ms, by configuration."""
    best = found["best_ms"][place]
    return [
        None if steps < 0 else best * math.exp(steps / landscape.STEPS)
        for steps in steps_of(found)[place]
    ]


@pytest.mark.parametrize("gpu", ["big", "big.sm4"])
def test_the_rows_come_back_within_a_per_mille(gpu):
    found = landscape.data(study(), gpu)
    assert found["problems"] == [["102", "float32", "2"], ["202", "float32", "2"]]
    assert found["baseline"] == 0
    variants = dict(zip(found["tunables"], found["configurations"], strict=True))["variant"]
    assert variants == ["linear", "block3d", "block3d"]
    assert found["forms"]["block3d"] == (["bx", "by", "bz"], ["row_padding"])
    for place, n in enumerate((102, 202)):
        assert unpacked(found, place) == pytest.approx(TIMES_MS[gpu, n], rel=1e-3)
    # A launch of the smaller size failed.
    assert found["untimed"] == [1, 0]


def test_a_configuration_without_a_time_has_none():
    made = study(gpus=("big",))
    rows = made.sweeps["big"]
    gone = (rows["n"] == 202) & (rows["bx"] == 64)
    made.sweeps["big"] = rows.assign(status=rows["status"].mask(gone, "failed"))
    found = landscape.data(made, "big")
    assert unpacked(found, 1)[2] is None
    assert found["untimed"] == [1, 1]
    assert found["best_ms"] == [1.0, 5.0]


def test_what_else_is_known_of_a_row_comes_back_beside_its_time():
    made = study(gpus=("big",))
    rows = made.sweeps["big"]
    count = len(rows)
    made.sweeps["big"] = rows.assign(
        relative_error=[0.0003 * (place + 1) ** 2 for place in range(count)],
        sm_clock_mhz=1980.0,
        energy_j=math.nan,
        registers=range(count),
    )
    found = landscape.data(made, "big")
    known = {one["title"]: one for one in found["known"]}
    timed = made.measured
    assert known["SM clock"]["values"] == [1980.0]
    assert known["SM clock"]["places"] == []
    # Nobody measured an energy.
    assert "energy" not in known
    # By problem, then by configuration, rows without a time left out.
    order = [
        (place, at)
        for place, times in enumerate(steps_of(found))
        for at, steps in enumerate(times)
        if steps >= 0
    ]
    assert len(order) == len(timed)
    for number, (place, at) in enumerate(order):
        n, _, _ = found["problems"][place]
        columns = zip(found["tunables"], found["configurations"], strict=True)
        values = {name: column[at] for name, column in columns}
        own = timed[timed["n"] == int(n)]
        for name, value in values.items():
            own = own[own[name] == value]
        (row,) = own.to_dict("records")
        shown = {
            title: one["values"][whole(one["places"])[number]]
            for title, one in known.items()
            if one["places"]
        }
        assert shown["registers"] == row["registers"]
        # Rounded up to 1 or 3 times a power of ten.
        assert row["relative_error"] * 100 <= shown["standard error"]
        assert shown["standard error"] <= max(0.1, row["relative_error"] * 100 * 10 / 3)


def test_the_lead_counts_what_is_near_the_best():
    made = study(gpus=("big",))
    rows = made.sweeps["big"]
    times = rows.groupby("n").cumcount().map({0: 1.0, 1: 1.015, 2: 1.1})
    made.sweeps["big"] = rows.assign(time_ms=times.where(rows["time_ms"].notna()))
    lead = landscape.landscape(made).blocks[0].lead
    assert "3 configurations (3 ok), 2 of them within 2 % of the best. " in lead
    assert "The slowest with repeats takes 1.10 times as long as the best." in lead


def test_what_another_tool_did_not_state_is_left_out_of_the_panel():
    made = study(gpus=("big",))
    rows = made.sweeps["big"]
    count = len(rows)
    made.sweeps["big"] = rows.assign(
        backend="imported", registers=[0, *[32] * (count - 1)], shared_bytes=0, repeats=0
    )
    known = {one["title"]: one for one in landscape.data(made, "big")["known"]}
    assert known["registers"]["values"] == [32, None]
    assert not {"shared memory", "repeats"} & {*known}
    made.sweeps["big"] = rows.assign(shared_bytes=0)
    known = {one["title"]: one for one in landscape.data(made, "big")["known"]}
    assert known["shared memory"]["values"] == [0]
