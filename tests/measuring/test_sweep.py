"""The supervisor with real measuring processes: resume, crash, hang, kill, torn journals."""

from collections import Counter

from supervising import expected_keys, names, rows_of, sweep

from launchwise.measuring.repeats import rows_to_table
from launchwise.tables.files import read_table, write_table
from launchwise.tables.measurements import measurement_schema

PROBLEMS = [{"n": 20, "dtype": "float32", "order": 2}, {"n": 21, "dtype": "float64", "order": 2}]


def test_a_sweep_measures_every_configuration_once(make_shard, tmp_path):
    shard = make_shard(PROBLEMS)
    sweep(shard, tmp_path / "journal.jsonl")
    rows = rows_of(tmp_path / "journal.jsonl")
    assert sorted(names(row, shard) for row in rows) == expected_keys(shard)
    assert Counter(row["status"] for row in rows) == {"ok": len(rows)}
    schema = measurement_schema(shard.spec)
    table = rows_to_table(rows, [], shard.spec)
    write_table(tmp_path / "sweep.parquet", table, schema)
    assert read_table(tmp_path / "sweep.parquet", schema).equals(table)
    assert (table["max_error"] <= table["tolerance"]).all()


def test_a_problem_that_does_not_fit_is_said_without_trying(make_shard, tmp_path):
    shard = make_shard(PROBLEMS[:1], script=tmp_path / "missing.py", memory_bytes=1000)
    sweep(shard, tmp_path / "journal.jsonl")
    rows = rows_of(tmp_path / "journal.jsonl")
    assert sorted(names(row, shard) for row in rows) == expected_keys(shard)
    assert {row["status"] for row in rows} == {"out_of_memory"}
    assert "the card has" in rows[0]["reason"]
