"""What a tunable is worth, against values computed by hand (see tests/support/report_study.py)."""

import dataclasses
import math

import pandas as pd
import pytest

from launchwise.report.answer import tunables as tunables_
from launchwise.report.answer.tunables import tunables
from tests.support.report_study import configurations, study
from tests.support.shown import rows_of, tables


def whole():
    """The study with both other shapes of its two bx and by, ten times as slow."""
    made = study()
    for gpu, rows in made.sweeps.items():
        shaped = rows[(rows["variant"] == "block3d") & (rows["status"] == "ok")]
        others = shaped.assign(by=6 - shaped["by"], time_ms=10 * shaped["time_ms"])
        made.sweeps = {**made.sweeps, gpu: pd.concat([rows, others], ignore_index=True)}
    return made


def losses(made):
    """On the whole card, by tunable and value."""
    rows = tunables_.with_fractions(made.rows[made.rows["gpu"] == "big"], made.spec)
    found = tunables_.losses(rows, made.spec, made.profiles["big"])
    return pd.DataFrame(found).set_index(["tunable", "value"])


def test_a_value_loses_what_the_best_with_it_loses():
    found = losses(whole())
    # linear takes 2 and 8 ms where 1 and 4 are possible; the best of block3d is the best of all.
    assert found.loc[("variant", "linear"), "loss_percent"] == pytest.approx(100)
    assert found.loc[("variant", "block3d"), "worst_loss_percent"] == pytest.approx(0)
    # Narrow shapes: 1 of 1 and 5 of 4 ms; wide ones: 1.6 of 1 and 4 of 4 ms.
    assert found.loc[("bx", 32), "loss_percent"] == pytest.approx(100 * (math.sqrt(1.25) - 1))
    assert found.loc[("bx", 32), "worst_loss_percent"] == pytest.approx(25)
    assert found.loc[("bx", 64), "loss_percent"] == pytest.approx(100 * (math.sqrt(1.6) - 1))
    assert found.loc[("by", 2), "worst_loss_percent"] == pytest.approx(60)
    assert (found["problems"] == 2).all()


def test_a_slow_variant_is_no_fault_of_its_tunables():
    made = whole()
    linear = configurations(made.spec)[0]["variant"]
    slow = {
        gpu: rows.assign(
            time_ms=rows["time_ms"].where(rows["variant"] == linear, 50 * rows["time_ms"])
        )
        for gpu, rows in made.sweeps.items()
    }
    own = losses(dataclasses.replace(made, sweeps=slow, _known={}))
    before = losses(whole())
    for key in (("bx", 32), ("bx", 64), ("by", 2)):
        assert own.loc[key, "loss_percent"] == pytest.approx(before.loc[key, "loss_percent"])
    # The variant itself is.
    assert own.loc[("variant", "block3d"), "loss_percent"] > 1000


def test_a_tunable_with_one_value_is_left_out():
    # linear has no bz, and both shapes of block3d have 1.
    assert set(losses(whole()).index.get_level_values("tunable")) == {"variant", "bx", "by"}


def test_what_other_settings_lose_is_no_loss_of_a_value():
    made = study()
    # Each bx has a by of its own: either may be what makes a shape slow.
    assert set(losses(made).index.get_level_values("tunable")) == {"variant"}
    # The other by of the wide shape is tried at the smaller size alone; 32 x 4 is the fastest.
    rows = made.sweeps["big"]
    wide = rows[(rows["n"] == 102) & (rows["bx"] == 64)].assign(by=4, time_ms=3.0)
    made = dataclasses.replace(
        made, sweeps={"big": pd.concat([rows, wide], ignore_index=True)}, _known={}
    )
    found = losses(made)
    assert found.loc["bx", "problems"].tolist() == [1, 1]
    assert found.loc[("bx", 64), "loss_percent"] == pytest.approx(60)
    assert "by" not in found.index.get_level_values("tunable")
    # A failed row was tried. So is what the kernel cannot have: 1 024 threads per block at most.
    failed = made.sweeps["big"].replace({"time_ms": {3.0: math.nan}})
    failed["status"] = failed["status"].mask(failed["time_ms"].isna(), "failed")
    found = losses(dataclasses.replace(made, sweeps={"big": failed}, _known={}))
    assert found.loc[("bx", 64), "loss_percent"] == pytest.approx(60)
    long = rows["bx"].replace(64, 512).where(rows["variant"] == "block3d", rows["bx"])
    own = dataclasses.replace(made, sweeps={"big": rows.assign(bx=long)}, _known={})
    assert losses(own).loc[("bx", 512), "loss_percent"] == pytest.approx(60)


def test_values_are_compared_at_the_same_problems():
    made = study()
    rows = made.sweeps["big"]
    shaped = rows[(rows["variant"] == "block3d") & (rows["status"] == "ok")]
    small = shaped["n"] == shaped["n"].min()
    # 128 has the by of both, 64 that of the faster one at the smaller size alone; 256 is tried at
    # the larger size, where it is the fastest.
    both = [shaped.assign(bx=128, by=by, time_ms=3 * shaped["time_ms"]) for by in (2, 4)]
    wide = shaped[small & (shaped["bx"] == 64)].assign(by=4, time_ms=3.0)
    once = shaped[~small].assign(bx=256, by=4, time_ms=0.9 * shaped["time_ms"].min())
    rows = pd.concat([rows, *both, wide, once], ignore_index=True)
    keys = [*made.spec.problem_columns, *made.spec.tunable_columns]
    made.sweeps = {"big": rows.drop_duplicates(keys)}
    found = losses(made).loc["bx"]
    assert found["problems"].to_dict() == {32: 2, 64: 2, 128: 2, 256: 1}
    assert found["common"].to_dict() == {32: True, 64: True, 128: True, 256: False}
    assert tunables_.best_value(found.reset_index().to_dict("records"))["value"] != 256


def test_the_section_shows_every_value():
    section = tunables(whole())
    # The most sensitive first.
    (shown, _) = tables(section, folded=True)
    assert [(row.cells[0].text, row.cells[1].text, row.cells[1].detail) for row in shown.rows] == [
        ("bx", "11.8", "at 32; at most 25.0"),
        ("by", "11.8", "at 4; at most 25.0"),
        ("variant", "0.0", "at block3d; at most 0.0"),
    ]
    assert rows_of(section, "Values of tunables")[:3] == [
        ["big", "variant", "block3d", "2", "0.0", "0.0"],
        ["big", "variant", "linear", "2", "100.0", "100.0"],
        ["big", "bx", "32", "2", "11.8", "25.0"],
    ]
    assert "nan" not in repr(section).lower()


def test_one_configuration_leaves_nothing_to_say():
    made = study()
    linear = configurations(made.spec)[0]["variant"]
    alone = {gpu: rows[rows["variant"] == linear] for gpu, rows in made.sweeps.items()}
    assert tunables(dataclasses.replace(made, sweeps=alone, _known={})) is None
