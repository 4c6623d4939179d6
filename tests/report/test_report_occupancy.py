"""The section on occupancy, against values set by hand (see tests/support/report_study.py)."""

import dataclasses

import numpy as np
import pandas as pd
import pytest

from launchwise.report import wording
from launchwise.report.answer.rates import occupancy, outermost
from launchwise.tables.files import read_table, write_table
from launchwise.tables.measurements import counters_schema
from launchwise.workloads.metrics import COUNTERS, absent
from tests.support.report_study import configurations, settings, study
from tests.support.shown import tables, texts


def counters(made):
    """Two sizes of NARROW (bx = 32) and WIDE (64); each run has a large launch and a small one."""
    rows = []
    for n, achieved in ((102, 0.2), (202, 0.4)):
        for configuration, more in zip(configurations(made.spec)[1:], (0.0, 0.2), strict=True):
            run = {"gpu": "big", "n": n, "dtype": "float32", "order": 2, **configuration}
            for position, (kernel, blocks) in enumerate(
                [("step", 10 * n), ("step", 4), ("finish", 1)]
            ):
                share = achieved + more if blocks > 4 else 0.01
                rows.append(
                    {
                        **run,
                        **{"position": position, "launches": 3, "kernel": kernel},
                        **{"grid_blocks": blocks, "block_threads": 128, "occupancy": 0.75},
                        **{"achieved_occupancy": share, "dram_throughput": 0.5},
                    }
                )
    return pd.DataFrame([{**absent(COUNTERS), **row} for row in rows])


def counted():
    """The study with counters of one of its GPUs."""
    made = study()
    return dataclasses.replace(
        made, settings=settings(counters={"by": ["bx"]}), counters={"big": counters(made)}
    )


def test_the_largest_launch_of_a_kernel_counts():
    made = counted()
    found = outermost(made.counters["big"], made.spec.key_columns)
    assert set(found["kernel"]) == {"step"}
    assert sorted(found["achieved_occupancy"]) == pytest.approx([0.2, 0.4, 0.4, 0.6])


def test_shares_of_peaks_name_no_cause():
    made = counted()
    wide = made.counters["big"]["bx"] == 64
    more = made.counters["big"].assign(
        l2_throughput=np.where(wide, 0.625, 0.25),
        l1_throughput=0.125,
        sm_throughput=np.nan,
        instructions_per_cycle=np.where(wide, 1.2345, np.nan),
    )
    # The profiler knows no throughput of memory of one of them.
    more["dram_throughput"] = more["dram_throughput"].mask(wide)
    (table,) = tables(occupancy(dataclasses.replace(made, counters={"big": more})))
    assert texts(table) == [
        ["float32, order=2", "32", "75", "30", "50", "25", "12", wording.MISSING],
        ["float32, order=2", "64", "75", "50", wording.MISSING, "62", "12", "1.23"],
    ]
    assert "bound" not in table.caption


def test_problems_that_were_chosen_are_named():
    made = counted()
    asked = settings(counters={"by": ["bx"], "among": {"n": [102, 202]}})
    section = occupancy(dataclasses.replace(made, settings=asked))
    assert "problems with n = 102 and 202 and each value of bx" in str(section.blocks[0])


def test_where_nobody_read_counters_there_is_no_section():
    assert occupancy(study()) is None
    assert occupancy(dataclasses.replace(counted(), settings=settings())) is None


def test_the_table_keeps_to_its_schema(tmp_path):
    made = counted()
    schema = counters_schema(made.spec)
    path = tmp_path / "tiny.counters.parquet"
    write_table(path, made.counters["big"], schema)
    assert len(read_table(path, schema)) == 12
    wrong = made.counters["big"].assign(occupancy=75.0)
    with pytest.raises(Exception, match="occupancy"):
        write_table(path, wrong, schema)
