"""The supervisor with real measuring processes: resume, crash, hang, kill, torn journals."""

from collections import Counter

import pytest
from supervising import expected_keys, names

from launchwise.experiment.method import Method, Repeats
from launchwise.measuring.journal import Journal, read_journal
from launchwise.measuring.rows import relative_error, rows_to_table
from launchwise.measuring.serving import Task, serve
from launchwise.measuring.sweep import measure_shard
from launchwise.tables.files import read_table, write_table
from launchwise.tables.measurements import measurement_schema
from launchwise.workloads.declared.declared_workload import load_workload
from launchwise.workloads.space import configurations
from launchwise.workloads.spec import load_spec
from tests.support.host_device import HostDevice, measured_rows

PROBLEMS = [{"n": 20, "dtype": "float32", "order": 2}, {"n": 21, "dtype": "float64", "order": 2}]


def run(shard, path):
    """Measure a shard and read its journal back."""
    with Journal(path, "print", shard.spec.key_columns) as journal:
        measure_shard(shard, journal)
    return read_journal(path)[1]


def test_a_sweep_measures_every_configuration_once(make_shard, tmp_path):
    shard = make_shard(PROBLEMS)
    rows = run(shard, tmp_path / "journal.jsonl")
    assert sorted(names(row, shard) for row in rows) == expected_keys(shard)
    assert Counter(row["status"] for row in rows) == {"ok": len(rows)}
    schema = measurement_schema(shard.spec)
    table = rows_to_table(rows, [], shard.spec)
    write_table(tmp_path / "sweep.parquet", table, schema)
    assert read_table(tmp_path / "sweep.parquet", schema).equals(table)
    assert (table["max_error"] <= table["tolerance"]).all()


@pytest.mark.parametrize(("slow_factor", "status"), [(1e18, "ok"), (3.0, "slow")])
def test_the_baseline_is_timed_well_even_where_it_is_known_to_be_far_from_the_best(
    stencil_copy, kernel_cache, slow_factor, status
):
    spec = load_spec(stencil_copy)
    repeats = Repeats(
        minimum=5, maximum=5, few=2, near=0.0, precision=0.99, coarse=0.99, budget_ms=1e6
    )
    method = Method(
        repeats=repeats, slow_factor=slow_factor, graph_below_us=0, control_s=0, rest=False
    )
    problem = {"n": 20, "dtype": "float32", "order": 2}
    default, other, *_ = configurations(spec, problem)
    # A later visit knows a best time that neither will reach.
    task = Task(problem, [default, other], best_ms=1e-9, mark_ms=1e-9)
    device = HostDevice(stencil_copy, spec.headers, cache=kernel_cache)
    said = []
    serve(device, load_workload(stencil_copy, spec), method, [task], 1, said.append)
    first, second = (event for event in said if event["event"] == "row")
    assert default.items() <= first.items()
    assert (first["status"], len(first["times_ms"])) == ("ok", 5)
    assert second["status"] == status
    few = second["times_ms"][:2]
    assert len(second["times_ms"]) <= 2 or relative_error(few) > 0.99


class Paced(HostDevice):
    """Tiles take ten times as long as all else."""

    def timed(self, work, repeats, flush):
        """Real launches, made-up times."""
        super().timed(work, repeats, flush)
        return [10.0 if "column" in work.launches[0].build.source else 1.0] * repeats


@pytest.mark.parametrize(("slow_factor", "status", "times"), [(1e9, "ok", 2), (3.0, "slow", 1)])
def test_what_is_not_near_the_best_of_its_own_visit_is_repeated_less(
    stencil_copy, kernel_cache, slow_factor, status, times
):
    spec = load_spec(stencil_copy)
    repeats = Repeats(minimum=5, maximum=5, few=2, near=0.1, budget_ms=1e6)
    method = Method(
        repeats=repeats, slow_factor=slow_factor, graph_below_us=0, control_s=0, rest=False
    )
    problem = {"n": 20, "dtype": "float32", "order": 2}
    device = Paced(stencil_copy, spec.headers, cache=kernel_cache)
    listed = configurations(spec, problem)
    tried = [listed[0], *(one for one in listed if one["variant"] == "column")][:3]
    rows = measured_rows(device, stencil_copy, spec, problem, tried, method)
    assert [(row["variant"], row["status"], len(row["times_ms"])) for row in rows] == [
        *(("linear", "ok", 5), ("column", status, times), ("column", status, times))
    ]


def test_a_problem_that_does_not_fit_is_said_without_trying(make_shard, tmp_path):
    shard = make_shard(PROBLEMS[:1], script=tmp_path / "missing.py", memory_bytes=1000)
    rows = run(shard, tmp_path / "journal.jsonl")
    assert sorted(names(row, shard) for row in rows) == expected_keys(shard)
    assert {row["status"] for row in rows} == {"out_of_memory"}
    assert "the card has" in rows[0]["reason"]
