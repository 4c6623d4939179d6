"""CSV files with a mapping of their columns."""

import foreign
import pytest
from samples import ROOT

from launchwise.base.errors import UserError
from launchwise.base.typed import read_yaml
from launchwise.importing.command import import_sweeps
from launchwise.importing.csv_mapping import Mapped, read_csv, read_mapping
from launchwise.importing.formats import read_sweeps

CASES = read_yaml(ROOT / "tests/importing/data/csv.yaml")

CSV = """n,x,mode,t1,t2,state
10,16,fast,1.5,2.5,ok
10,32,fast,1,3,ok
20,16,safe,,,failed to compile
20,32,safe,nan,4,ok"""

MAPPING = """
device: NVIDIA RTX A4000
problem: [n]
tunables: [x, mode]
repeats: [t1, t2]
unit: us
status: state
"""


def test_csv_with_a_mapping(tmp_path):
    path = foreign.write(tmp_path / "rows.csv", CSV)
    mapped = read_mapping(foreign.write(tmp_path / "columns.yaml", MAPPING))
    small, large = read_csv(path, mapped)
    assert (small.problem, large.problem) == ({"n": 10}, {"n": 20})
    assert small.tunables == {"x": [16, 32], "mode": ["fast"]}
    assert [row.time_ms for row in small.rows] == [0.002, 0.002]
    assert small.rows[0].times_ms == pytest.approx((0.0015, 0.0025))
    assert [(row.status, row.reason) for row in large.rows] == [
        ("failed", "failed to compile"),
        ("failed", "no time"),
    ]
    assert small.notes == ["converted from microseconds to milliseconds"]


def test_a_mapping_must_name_columns_of_the_file(tmp_path):
    path = foreign.write(tmp_path / "rows.csv", CSV)
    with pytest.raises(UserError, match="unknown column 'time'"):
        read_csv(path, Mapped(tunables=["x"], time="time", unit="ms"))
    with pytest.raises(UserError, match="neither a column of times nor of repeats"):
        read_csv(path, Mapped(tunables=["x"], unit="ms"))


@pytest.mark.parametrize(("text", "said"), CASES["unmapped"].items())
def test_csv_without_a_mapping_lists_its_columns(tmp_path, text, said):
    for name in ("rows.csv", "rows.txt"):
        with pytest.raises(UserError, match="is CSV: name a file") as caught:
            read_sweeps(foreign.write(tmp_path / name, text))
        assert said in caught.value.message


@pytest.mark.parametrize(
    ("last", "said"),
    [
        ("4,128,6.0", "holds one row per problem: winners alone, which are no sweep"),
        ("1,32,5.6\n4,128,6.0", "no configuration has a time for every problem"),
    ],
)
def test_one_row_per_problem_holds_winners_alone(tmp_path, last, said):
    path = foreign.write(tmp_path / "tuned.csv", f"M,threads,us\n1,64,5.4\n2,64,5.5\n{last}\n")
    mapping = {"device": "NVIDIA A4000", "problem": ["M"], "tunables": ["threads"], "time": "us"}
    columns = foreign.write(tmp_path / "columns.yaml", {**mapping, "unit": "us"})
    with pytest.raises(UserError, match=said):
        import_sweeps([path], "w", tmp_path / "k", tmp_path / "r", columns=columns)


def csv_rows(tmp_path, text, **mapping):
    """Rows of a CSV file with the columns n, x, time."""
    given = {"device": "A", "problem": ["n"], "tunables": ["x"], "time": "time", "unit": "ms"}
    path = foreign.write(tmp_path / "rows.csv", text)
    return [row for sweep in read_csv(path, Mapped(**{**given, **mapping})) for row in sweep.rows]


@pytest.mark.parametrize(("text", "message"), CASES["refused"])
def test_csv_that_would_be_read_wrongly_is_refused(tmp_path, text, message):
    with pytest.raises(UserError) as caught:
        csv_rows(tmp_path, text)
    assert message in str(caught.value)


def test_csv_as_spreadsheets_write_it(tmp_path):
    text = '\ufeffn; x; time\r\n1; "a"; 1,5\r\n1; b; 2\r\n1; c; InvalidConfig\r\n;;\r\n'
    rows = csv_rows(tmp_path, text, delimiter=";", decimal=",")
    assert [(row.configuration["x"], row.time_ms) for row in rows] == [
        *(("a", 1.5), ("b", 2.0), ("c", None))
    ]
    assert rows[2].reason == "InvalidConfig"


def test_a_column_may_name_the_devices(tmp_path):
    path = foreign.write(
        tmp_path / "rows.txt", "gpu,x,t,ok\nA,1,1,OK\nB,1,2,Passed\nA,2,3,no\nA,3,4,\n"
    )
    mapped = Mapped(
        devices="gpu", tunables=["x"], time="t", unit="s", status="ok", ok=["OK", "passed"]
    )
    # With a mapping, what is no JSON is CSV, whatever its name.
    found = {sweep.device_name: sweep.rows for sweep in read_sweeps(path, columns=mapped)}
    assert {name: [row.time_ms for row in rows] for name, rows in found.items()} == {
        "A": [1000.0, None, None],
        "B": [2000.0],
    }
    assert "not taken over" not in " ".join(read_csv(path, mapped)[0].notes)


def test_a_repeat_that_was_not_made_leaves_the_others(tmp_path):
    path = foreign.write(tmp_path / "rows.csv", "x,a,b\n1,2,\n2,3,4\n3,5,0\n")
    mapped = Mapped(device="A", tunables=["x"], repeats=["a", "b"], unit="ms")
    (sweep,) = read_csv(path, mapped)
    assert [(row.status, row.times_ms) for row in sweep.rows] == [
        *(("ok", (2.0,)), ("ok", (3.0, 4.0)), ("failed", ()))
    ]
    assert sweep.notes == ["1 rows lack some of their repeats"]


def test_rows_are_of_one_problem_where_all_its_parameters_agree(tmp_path):
    path = foreign.write(tmp_path / "rows.csv", "n,m,x,t\n1,1,1,2\n1,1,2,3\n1,2,1,4\n1,2,2,5\n")
    mapped = Mapped(device="A", problem=["n", "m"], tunables=["x"], time="t", unit="ms")
    assert [
        (each.problem, [row.time_ms for row in each.rows]) for each in read_csv(path, mapped)
    ] == [({"n": 1, "m": 1}, [2.0, 3.0]), ({"n": 1, "m": 2}, [4.0, 5.0])]
