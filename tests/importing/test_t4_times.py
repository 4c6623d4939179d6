"""T4 whose objective is no time, and units of times."""

import json

import foreign
import pytest
from samples import ROOT

from launchwise.base.errors import UserError
from launchwise.base.typed import read_yaml
from launchwise.importing.foreign_sweep import Row
from launchwise.importing.t4 import invalidity_of

CASES = read_yaml(ROOT / "tests/importing/data/formats.yaml")


def t4(tmp_path, measurements, objectives, times=None, **metadata):
    """A T4 file of one result."""
    result = {
        "configuration": {"x": 16},
        "times": {} if times is None else times,
        "invalidity": "correct",
        "correctness": 1,
        "measurements": [
            dict(zip(("name", "value", "unit"), m, strict=True)) for m in measurements
        ],
        "objectives": objectives,
    }
    return foreign.write(tmp_path / "t4.json", {"metadata": metadata, "results": [result]})


@pytest.mark.parametrize(("measurements", "times", "note"), CASES["t4_times"])
def test_the_time_is_found_beside_another_objective(tmp_path, measurements, times, note):
    measured = [("GFLOP/s", 900.0, ""), *measurements]
    found = foreign.read_one(t4(tmp_path, measured, ["GFLOP/s"], times, timeunit="milliseconds"))
    assert found.rows[0].time_ms == pytest.approx(1.5, rel=1e-12)
    assert note in " ".join(found.notes)
    assert "the objective is GFLOP/s, no time" in " ".join(found.notes)


@pytest.mark.parametrize(("measurements", "objectives"), CASES["t4_without_times"])
def test_a_file_without_a_time_is_refused_with_its_objectives(tmp_path, measurements, objectives):
    path = t4(tmp_path, measurements, objectives, timeunit="milliseconds")
    with pytest.raises(UserError, match="hold no time: objectives") as caught:
        foreign.read_one(path)
    message = str(caught.value)
    assert ", ".join(objectives) in message
    assert all(name in message for name, *_ in measurements)


def test_an_objective_that_is_a_time_is_preferred(tmp_path):
    measured = [("time", 3.0, "ms"), ("kernel_time", 1.5, "ms"), ("GFLOP/s", 9.0, "")]
    found = foreign.read_one(t4(tmp_path, measured, ["GFLOP/s", "kernel_time"], timeunit="ms"))
    assert found.rows[0].time_ms == 1.5
    assert "no time" not in " ".join(found.notes)


def test_words_in_place_of_an_objective_are_a_failure(tmp_path):
    measured = [("GFLOP/s", "CompilationFailedConfig", ""), ("time", 1.5, "ms")]
    row = foreign.read_one(t4(tmp_path, measured, ["GFLOP/s"])).rows[0]
    assert (row.status, row.reason, row.time_ms) == ("failed", "CompilationFailedConfig", None)


@pytest.mark.parametrize("value", [1e20, 1.7976931348623157e308, float("inf"), float("nan"), 0, -1])
def test_a_time_that_stands_for_a_failure(tmp_path, value):
    row = foreign.read_one(t4(tmp_path, [("time", value, "ms")], ["time"])).rows[0]
    assert (row.status, row.reason, row.time_ms) == ("failed", "no time", None)


UNITS = {"s": 2e3, "ms": 2.0, "miliseconds": 2.0, "Microseconds": 2e-3, "µs": 2e-3, "ns": 2e-6}


@pytest.mark.parametrize("unit", UNITS)
@pytest.mark.parametrize("of_file", [True, False])
def test_units_are_converted_and_said(tmp_path, unit, of_file):
    time_ms, measured = UNITS[unit], [("time", 2.0, "" if of_file else unit)]
    stated = {"timeunit": unit} if of_file else {}
    found = foreign.read_one(t4(tmp_path, measured, ["time"], {"runtimes": [1.0, 3.0]}, **stated))
    (row,), said = found.rows, [*found.notes, ""][0]
    assert row.time_ms == pytest.approx(time_ms, rel=1e-12)
    assert row.times_ms == pytest.approx((time_ms / 2, time_ms * 1.5), rel=1e-12)
    told = "converted from" * (time_ms != 2.0) if of_file else "states the unit of its measurements"
    assert said.startswith(told)
    assert bool(said) == bool(told)


def test_a_measurement_states_its_own_unit_beside_the_files(tmp_path):
    path = t4(tmp_path, [("time", 2.0, "ms")], ["time"], {"runtimes": [1.0, 3.0]}, timeunit="us")
    row = foreign.read_one(path).rows[0]
    assert (row.time_ms, row.times_ms) == (2.0, (0.001, 0.003))


def test_a_file_of_ktt_in_t4_has_texts_and_registers(tmp_path):
    path = t4(tmp_path, [("time", 2000.0, "")], ["time"], timeunit="microseconds", device="A")
    content = path.read_text().replace('{"x": 16}', '{"x": "16", "v": "double2"}')
    compiled = '"compilation_data": {"registers": 40}, "correctness"'
    found = foreign.read_one(foreign.write(path, content.replace('"correctness"', compiled)))
    assert found.device_name == "A"
    assert found.rows[0].configuration == {"x": 16, "v": "double2"}
    assert (found.rows[0].time_ms, found.rows[0].extra) == (2.0, {"registers": 40})


def test_a_configuration_that_failed_makes_up_for_no_time_and_hides_none(tmp_path):
    def read(times):
        path = t4(tmp_path, [("GFLOP/s", 900.0, "")], ["GFLOP/s"], times)
        content = json.loads(path.read_text())
        failed = {**content["results"][0], "configuration": {"x": 32}, "invalidity": "compile"}
        content["results"].insert(0, {**failed, "times": {}, "measurements": []})
        return foreign.read_one(foreign.write(path, content))

    found = read({"runtimes": [1.0, 2.0]})
    assert [row.time_ms for row in found.rows] == [None, 1.5]
    assert "the mean of the repeats is the time" in " ".join(found.notes)
    with pytest.raises(UserError, match="hold no time"):
        read({})


@pytest.mark.parametrize(("status", "reason", "invalidity"), CASES["t4_failures"])
def test_a_failure_has_the_word_of_t4(status, reason, invalidity):
    assert invalidity_of(Row({"x": 1}, status, reason, (), None, {})) == invalidity
