"""Tables: what is written comes back, and whatever does not fit is one line."""

import json
import os
import random

import numpy as np
import pandas as pd
import pyarrow
import pyarrow.parquet
import pytest
from samples import ROOT, measurements

from launchwise.base.errors import UserError
from launchwise.base.typed import read_yaml
from launchwise.tables import files as tables
from launchwise.tables.learning import (
    candidates_schema,
    evaluation_schema,
    removed_schema,
    said_schema,
    training_schema,
)
from launchwise.tables.measurements import measured_table, measurement_schema, pairs_schema

ONE = [{"n": [100], "dtype": ["float64"]}]


@pytest.fixture(scope="module")
def sweep(saxpy_spec):
    """A small valid sweep; its last row failed."""
    table = measurements(saxpy_spec, ONE).iloc[:12].reset_index(drop=True)
    last = len(table) - 1
    failed = {"status": "failed", "reason": "died", "repeats": 0, "times_ms": np.empty(0)}
    unknown = ("time_ms", "first_ms", "relative_error", "max_error", "tolerance")
    return assign(last, **failed, **dict.fromkeys(unknown, np.nan))(table)


def keyed(spec, count=4):
    """Key columns of some rows, with the columns that every later table begins with."""
    table = measurements(spec, ONE).iloc[:count][spec.key_columns].reset_index(drop=True)
    return table.assign(
        study="s",
        model="m",
        split="a",
        fold="b",
        folds="a/b",
        scope="problem",
        role="model",
        status="ok",
        basis="",
    )  # fmt: skip


def every_table(spec):
    """For each builder of a schema, a valid table of its kind."""
    table = keyed(spec)
    steps = np.arange(1.0, len(table) + 1)
    times = {
        **dict.fromkeys(("time_ms", "baseline_ms", "best_ms", "predicted_ms"), steps),
        **dict.fromkeys(("lower_ms", "upper_ms", "improvement", "fraction"), steps),
        **dict.fromkeys(("improved_runs", "spearman", "absolute_percentage_error"), steps),
        **dict.fromkeys(("best_of_5", "best_of_20"), steps),
        **dict.fromkeys(("expected_gain", "least_gain", "most_gain", "usual_ms", "gain"), steps),
    }
    whole = table.assign(**times, is_usual=False, configurations=3, needle_index=1)
    unknown = whole.assign(time_ms=np.nan, predicted_ms=np.nan, spearman=np.nan)
    return {
        "measurements": (measurement_schema(spec), measurements(spec, ONE)),
        "removed": (removed_schema(spec), whole),
        "training": (training_schema(spec), whole.assign(registers=32, spill_bytes=0)),
        "candidates": (candidates_schema(spec), whole),
        "said": (said_schema(), unknown.assign(rank=np.arange(len(table)), loss=-1.0, spread=0.0)),
        "evaluation": (evaluation_schema(spec), unknown.iloc[:1]),
    }


KINDS = ["measurements", "removed", "training", "candidates", "said", "evaluation"]


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_written_comes_back_with_its_provenance(tmp_path, saxpy_spec, kind):
    assert list(every_table(saxpy_spec)) == KINDS
    schema, table = every_table(saxpy_spec)[kind]
    path = tmp_path / "x.parquet"
    facts = {"commit": "abc", "seeds": [1, 2], "nested": {"a": None}}
    tables.write_table(path, table, schema, facts)
    found = tables.read_table(path, schema)
    assert tables.read_facts(path) == facts
    assert list(found.columns) == list(schema.columns)
    pd.testing.assert_frame_equal(
        found, table[list(schema.columns)].reset_index(drop=True), check_dtype=False, rtol=0, atol=0
    )
    assert os.listdir(tmp_path) == ["x.parquet"]
    content = path.read_bytes()
    tables.write_table(path, table, schema, facts)
    assert path.read_bytes() == content
    tables.write_table(path, table.iloc[:0], schema)
    assert tables.read_table(path, schema).empty


def assign(row=3, **values):
    """A change of one row."""

    def change(table):
        table = table.copy()
        for column, value in values.items():
            cells = list(table[column])
            cells[row] = value
            table[column] = cells
        return table

    return change


def retyped(column, kind):
    """A change of a column's type."""
    return lambda table: table.assign(**{column: table[column].astype(kind)})


def without(table):
    """The table without its statuses."""
    return table.drop(columns="status")


def renamed(name):
    """A change of the name of the times."""
    return lambda table: table.rename(columns={"time_ms": name})


def doubled(count, **values):
    """A change that repeats the first rows, with other values."""
    return lambda table: pd.concat([table, table.iloc[:count].assign(**values)], ignore_index=True)


def each(**values):
    """A change of every row."""
    return lambda table: table.assign(**values)


BAD_VALUES = read_yaml(ROOT / "tests/tables/data/bad_values.yaml")
BAD = [
    (without, "status: is missing"),
    (renamed("time_s"), "time_ms: is missing; time_s is not in ms"),
    (renamed("time_us"), "time_ms: is missing; time_us is not in ms"),
    (each(colour="red"), "colour: unknown column 'colour' (allowed: attempt, backend,"),
    (doubled(2), "2 duplicated rows (rows with the same gpu, n, dtype, variant,"),
    (doubled(1, time_ms=9.0), "1 duplicated rows"),
    (retyped("n", "str"), "n: must be of type int64, not text"),
    (retyped("n", "float64"), "n: must be of type int64, not float64"),
    (retyped("time_ms", "float32"), "time_ms: must be of type float64, not float32"),
    (each(gpu=3), "gpu: must be of type text, not int64"),
    (each(times_ms=1.0), "times_ms: must be of type object, not float64"),
    (
        assign(times_ms=np.array([1.0, np.nan, 1.0])),
        "times_ms: must hold positive, finite numbers; violated in 1 row, first in row 3",
    ),
    *((assign(**{column: value}), said) for column, value, said in BAD_VALUES),
]
"""A change of a sweep, and what is said of it."""


def foreign(path, table, note):
    """Write a Parquet file with launchwise's metadata and without its checks."""
    arrow = pyarrow.Table.from_pandas(table, preserve_index=False)
    text = json.dumps(note).encode()
    metadata = {**(arrow.schema.metadata or {}), tables.METADATA_KEY: text}
    pyarrow.parquet.write_table(arrow.replace_schema_metadata(metadata), path)


def note(**changes):
    """Metadata of a sweep."""
    good = {"kind": "measurements", "version": tables.SCHEMA_VERSION, "units": {}, "facts": {}}
    return {**good, **changes}


def test_a_foreign_file_that_fits_is_read(tmp_path, saxpy_spec, sweep):
    foreign(tmp_path / "x.parquet", sweep, note())
    schema = measurement_schema(saxpy_spec)
    assert len(tables.read_table(tmp_path / "x.parquet", schema)) == len(sweep)


def test_a_row_that_is_wrong_keeps_no_time(saxpy_spec, sweep):
    rows = sweep.to_dict("records")
    rows[3]["status"] = "wrong"
    found = measured_table(rows, saxpy_spec, {})
    assert found["time_ms"].isna().tolist() == (found["status"].isin(["wrong", "failed"])).tolist()


def paired(spec):
    """Times of two configurations in turn, three rounds."""
    table = keyed(spec, 2)[spec.key_columns].reset_index(drop=True)
    columns = pairs_schema(spec).columns
    value = {"str": "x", "float64": 1.0, "int64": 1, "bool": True, "object": None}
    rounds = [np.array([1.0, 2.0, 3.0])] * 2
    given = {name: value[one.kind] for name, one in columns.items()} | dict(table.items())
    given |= {"workload": spec.workload, "times_ms": rounds, "clocks_mhz": rounds, "status": "ok"}
    found = table.assign(**given)
    return found[list(columns)]


CLOCKS = "clocks_mhz: must hold clocks; violated in 1 row, first in row 0"
PAIRED_BAD = [
    ([1.0, -2.0, 3.0], CLOCKS),
    ([1.0, np.nan, 3.0], CLOCKS),
    (
        [1.0, 2.0],
        "clocks_mhz: must have one value per value of times_ms; violated in 1 row, first in row 0",
    ),
]


def test_rounds_have_a_clock_each(saxpy_spec):
    schema, table = pairs_schema(saxpy_spec), paired(saxpy_spec)
    schema.insist("pairs", table)
    for clocks, said in PAIRED_BAD:
        with pytest.raises(UserError) as caught:
            schema.insist("pairs", assign(0, clocks_mhz=np.array(clocks))(table))
        assert str(caught.value) == f"pairs: {said}"


@pytest.mark.parametrize("columns", [["time_ms", "gpu"], ["times_ms"]])
def test_a_part_is_returned_in_the_order_of_the_file_and_all_is_checked(
    tmp_path, saxpy_spec, sweep, columns
):
    path, schema = tmp_path / "x.parquet", measurement_schema(saxpy_spec)
    tables.write_table(path, sweep, schema)
    part = tables.read_table(path, schema)[[name for name in sweep if name in columns]]
    pd.testing.assert_frame_equal(tables.read_table(path, schema, columns), part)
    foreign(path, assign(time_ms=-1.0)(sweep), note())
    with pytest.raises(UserError, match="time_ms: must be above 0"):
        tables.read_table(path, schema, columns)


@pytest.mark.parametrize(("change", "said"), BAD, ids=[said for _, said in BAD])
def test_a_bad_table_is_neither_read_nor_written(tmp_path, saxpy_spec, sweep, change, said):
    table, path, schema = change(sweep), tmp_path / "x.parquet", measurement_schema(saxpy_spec)
    foreign(path, table, note())
    before = path.read_bytes()
    with pytest.raises(UserError) as caught:
        tables.read_table(path, schema)
    assert str(caught.value).startswith(f"{path}: {said}")
    # A stage may have columns beside the schema's: they are left out, and so is a twin's hint.
    if "unknown column" not in said:
        with pytest.raises(UserError) as caught:
            tables.write_table(path, table, schema)
        assert str(caught.value).startswith(f"{path}: {said.split(';')[0]}")
    assert path.read_bytes() == before
    assert os.listdir(tmp_path) == ["x.parquet"]


@pytest.mark.parametrize(
    ("metadata", "said"),
    [
        (note(units={"time_ms": "us"}), "time_ms: is in us, must be in ms"),
        (note(units={"spill_bytes": "kB"}), "spill_bytes: is in kB, must be in B"),
        (note(kind="training"), "holds training, not measurements"),
        (note(version=99), f"has schema version 99, {tables.UPDATE}"),
        (note(version=2), "has schema version 2, oldest read is 3: measure or import anew"),
        ({}, "its metadata was not written by launchwise"),
        ([], "its metadata was not written by launchwise"),
    ],
)
def test_a_file_that_says_another_thing_of_itself_is_refused(
    tmp_path, saxpy_spec, sweep, metadata, said
):
    path = tmp_path / "x.parquet"
    foreign(path, sweep, metadata)
    with pytest.raises(UserError) as caught:
        tables.read_table(path, measurement_schema(saxpy_spec))
    assert str(caught.value) == f"{path}: {said}"


def test_a_file_cut_anywhere_is_one_line(tmp_path, saxpy_spec, sweep):
    path, schema = tmp_path / "x.parquet", measurement_schema(saxpy_spec)
    tables.write_table(path, sweep, schema)
    content = path.read_bytes()
    for length in {0, 3, 4, 11, *range(12, len(content), 997), len(content) - 1}:
        path.write_bytes(content[:length])
        with pytest.raises(UserError, match="truncated") as caught:
            tables.read_table(path, schema)
        assert str(caught.value).startswith(f"{path}: ")


def test_a_bit_that_fell_over_is_no_other_time(tmp_path, saxpy_spec, sweep):
    path, schema = tmp_path / "x.parquet", measurement_schema(saxpy_spec)
    tables.write_table(path, sweep, schema)
    whole, written = path.read_bytes(), tables.read_table(path, schema)
    dice = random.Random(0)
    refused = []
    for _ in range(60):
        place = dice.randrange(len(whole))
        flipped = bytes([whole[place] ^ 1 << dice.randrange(8)])
        path.write_bytes(whole[:place] + flipped + whole[place + 1 :])
        try:
            pd.testing.assert_frame_equal(tables.read_table(path, schema), written)
        except UserError as error:
            refused.append(str(error))
    assert len(refused) > 10  # others hit statistics in the footer, which nobody reads
    assert not any("\n" in line for line in refused)


def test_what_is_no_table_of_ours_or_not_there_is_one_line(tmp_path, saxpy_spec, sweep):
    sweep.to_parquet(tmp_path / "theirs")
    (tmp_path / "text").write_text("gpu,n\n")
    for name, said in (
        ("theirs", "was not written by launchwise: its metadata is missing"),
        ("text", "is not a complete Parquet file"),
        ("gone", "is missing"),
    ):
        with pytest.raises(UserError, match=f"{name}: {said}"):
            tables.read_table(tmp_path / name, measurement_schema(saxpy_spec))
