"""Readers and writers of the formats of other tuners."""

import json
import math
import re

import foreign
import pytest
from samples import ROOT

from launchwise.base.errors import UserError
from launchwise.base.typed import read_yaml
from launchwise.importing.foreign_sweep import as_time, as_value, problem_of
from launchwise.importing.formats import read_sweeps
from launchwise.importing.t1 import read_t1

CASES = read_yaml(ROOT / "tests/importing/data/formats.yaml")

FAILED = 2


@pytest.mark.parametrize("name", ["cache.json", "cache.json.gz"])
def test_a_cache_is_read_with_its_failures(tmp_path, name):
    found = foreign.read_one(foreign.write(tmp_path / name, foreign.cache()))
    assert (found.device_name, found.kernel_name) == ("NVIDIA RTX A4000", "blur_kernel")
    assert found.problem == {"w": 4096, "h": 2048}
    assert found.tunables == {"block_size_x": foreign.X, "tile": foreign.Y, "pad": foreign.PAD}
    assert len(found.rows) == len(foreign.space())
    failed = [row for row in found.rows if row.status != "ok"]
    assert [(row.status, row.time_ms, row.times_ms) for row in failed] == [
        ("failed", None, ())
    ] * FAILED
    assert {row.reason for row in failed} == {"CompilationFailedConfig", "RuntimeFailedConfig"}
    assert found.notes == ["not taken over: GFLOP/s, compile_time"]


def test_every_cut_of_a_cache_gives_the_rows_before_it(tmp_path):
    whole = json.dumps(foreign.cache(), indent=1)
    every = foreign.read_one(foreign.write(tmp_path / "whole.json", whole)).rows
    begin = whole.index('"cache"')
    counts = set()
    for end in range(begin + 12, len(whole), 29):
        path = foreign.write(tmp_path / "cut.json", whole[:end])
        found = foreign.read_one(path)
        counts.add(len(found.rows))
        # A row that is cut inside is none.
        assert found.rows == every[: len(found.rows)]
        assert "cut off" in found.notes[0]
    assert counts >= set(range(len(every)))


@pytest.mark.parametrize(("size", "problem"), CASES["sizes"])
def test_sizes_come_as_number_list_or_text(size, problem):
    assert problem_of(size) == problem


def test_values_and_times_of_every_type():
    assert [as_value(each) for each in ("16", 16.0, True, "a", "0.5", 0.5)] == [
        *(16, 16, 1, "a", "0.5", "0.5")
    ]
    assert [as_time(each) for each in ("1.5", 2, 0, -1.0, float("nan"), None, "x", True)] == [
        *(1.5, 2.0, None, None, None, None, None, None)
    ]


@pytest.mark.parametrize(
    ("change", "status", "reason"),
    [
        # Whatever its repeats say.
        *(({"time": time}, "failed", "no time") for time in (math.nan, 1e20, 0.0, -1.0)),
        ({"time": "InvalidConfig"}, "failed", "InvalidConfig"),
        ({"__error__": "TimeoutError", "times": []}, "timeout", "TimeoutError"),
        ({"time": "VerificationFailed"}, "wrong", "VerificationFailed"),
        ({"time": "OutOfMemory"}, "out_of_memory", "OutOfMemory"),
    ],
)
def test_failures_of_old_and_new_caches(tmp_path, change, status, reason):
    content = foreign.cache()
    content["cache"]["16,1,0"] |= change
    row = foreign.read_one(foreign.write(tmp_path / "cache.json", content)).rows[0]
    assert (row.status, row.reason, row.time_ms) == (status, reason, None)


def test_a_cache_may_lack_most_of_its_header_and_have_another_objective(tmp_path):
    content = foreign.cache(objective="GFLOP/s")
    for key in ("tune_params_keys", "tune_params", "device_name", "problem_size"):
        del content[key]
    first = content["cache"]["16,1,0"]
    first["GFLOP/s"], first["times"] = "RuntimeFailedConfig", []
    del first["time"]
    second = content["cache"]["16,2,0"]
    mean = second.pop("time")
    found = foreign.read_one(foreign.write(tmp_path / "cache.json", content))
    assert list(found.tunables) == ["block_size_x", "tile", "pad"]
    assert (found.device_name, found.problem) == ("", {})
    assert found.rows[0].reason == "RuntimeFailedConfig"
    assert found.rows[1].time_ms == pytest.approx(mean, rel=1e-15)


def test_a_cache_whose_entries_are_keys_alone(tmp_path):
    content = foreign.cache()
    for entry in content["cache"].values():
        for name in content["tune_params_keys"]:
            del entry[name]
    found = foreign.read_one(foreign.write(tmp_path / "cache.json", content))
    assert found.rows[1].configuration == {"block_size_x": 16, "tile": 2, "pad": 0}


def test_a_key_of_another_number_of_values_says_nothing(tmp_path):
    content = foreign.cache()
    content["cache"]["16,2,0,1"] = content["cache"].pop("16,2,0")
    del content["cache"]["16,2,0,1"]["pad"]
    with pytest.raises(UserError, match=r"cache\.16,2,0,1\.pad: is missing"):
        foreign.read_one(foreign.write(tmp_path / "cache.json", content))


def test_an_unknown_unit_is_refused(tmp_path):
    path = foreign.write(tmp_path / "t4.json", foreign.t4("fortnights"))
    with pytest.raises(UserError, match=r"metadata\.timeunit: 'fortnights' is no unit"):
        foreign.read_one(path)
    path = foreign.write(tmp_path / "ktt.json", foreign.ktt(unit=""))
    with pytest.raises(UserError, match=r"Metadata\.TimeUnit"):
        foreign.read_one(path)


def test_a_result_of_t4_may_hold_words_and_be_called_correct(tmp_path):
    content = foreign.t4()
    del content["metadata"]
    first, second, third = content["results"][:3]
    third["measurements"], third["times"] = [], {}
    first["measurements"][0]["value"] = "CompilationFailedConfig"
    second["measurements"] = []
    second["invalidity"] = "correctness"
    found = foreign.read_one(foreign.write(tmp_path / "t4.json", content))
    assert (found.rows[0].status, found.rows[0].reason) == ("failed", "CompilationFailedConfig")
    assert found.rows[1].status == "wrong"
    assert (found.rows[2].status, found.rows[2].reason) == ("failed", "no time")
    assert "states no unit of time" in found.notes[0]


def test_t1_is_read_without_running_it(tmp_path):
    space = read_t1(foreign.write(tmp_path / "t1.json", foreign.t1()))
    assert space.tunables == {"block_size_x": foreign.X, "tile": foreign.Y, "pad": foreign.PAD}
    assert space.defaults == {"block_size_x": 32, "tile": 2, "pad": 0}
    assert space.constraints == ["pad == 0 or block_size_x % 32 == 0"]
    assert (space.unread, space.problem) == ({}, {"w": 4096, "h": 2048})
    unreadable = "block_size_x in list(range(16, 65))"
    space = read_t1(foreign.write(tmp_path / "t1.json", foreign.t1(unreadable)))
    assert (space.constraints, list(space.unread)) == ([], [unreadable])
    assert "calls 'list'" in space.unread[unreadable]


@pytest.mark.parametrize(("values", "expected"), CASES["computed"])
def test_values_of_t1_may_be_computed(tmp_path, values, expected):
    content = foreign.t1()
    content["ConfigurationSpace"]["TuningParameters"][0]["Values"] = values
    assert (
        read_t1(foreign.write(tmp_path / "t1.json", content)).tunables["block_size_x"] == expected
    )


@pytest.mark.parametrize("values", CASES["uncomputed"])
def test_values_of_t1_that_are_no_list_are_refused(tmp_path, values):
    content = foreign.t1()
    content["ConfigurationSpace"]["TuningParameters"][0]["Values"] = values
    path = foreign.write(tmp_path / "t1.json", content)
    with pytest.raises(UserError, match=r"TuningParameters\.0\.Values"):
        read_t1(path)


def test_ktt_has_registers_and_microseconds(tmp_path):
    found = foreign.read_one(foreign.write(tmp_path / "ktt.json.gz", foreign.ktt()))
    assert (found.device_name, found.kernel_name) == ("NVIDIA RTX A4000", "Blur")
    assert found.problem == {}
    row = found.rows[0]
    assert row.time_ms == pytest.approx(foreign.time_of(16, 1, 0), rel=1e-14)
    assert row.extra == {"registers": 17, "shared_bytes": 512}
    assert [each.reason for each in found.rows if each.status != "ok"] == [
        "ComputationFailed"
    ] * FAILED
    assert found.notes[0] == "converted from microseconds to milliseconds"


@pytest.mark.parametrize(
    ("again", "rows", "note"),
    [
        (False, 15, "1 rows have times under a profiler alone, which are longer"),
        (True, 14, "1 rows under a profiler are left out: their configurations have rows without"),
    ],
)
def test_results_of_ktt_under_a_profiler_give_way_to_those_without(tmp_path, again, rows, note):
    content = foreign.ktt()
    first, second, *_ = content["Results"]
    first["ComputationResults"][0]["ProfilingData"] = {"Counters": []}
    first["TotalDuration"] *= 4
    if again:
        second["Configuration"] = first["Configuration"]
    found = foreign.read_one(foreign.write(tmp_path / "ktt.json", content))
    assert (len(found.rows), note in found.notes) == (rows, True)
    assert found.rows[0].time_ms == pytest.approx(
        foreign.time_of(16, 2 if again else 1, 0) * (1 if again else 4)
    )


@pytest.mark.parametrize(
    ("stated", "status"),
    [("ValidationFailed", "wrong"), ("ComputationFailed", "failed"), ("DeviceLimits", "failed")],
)
def test_a_failed_result_of_ktt_may_have_been_timed(tmp_path, stated, status):
    content = foreign.ktt()
    first = content["Results"][0]
    first["Status"] = stated
    assert first["TotalDuration"] > 0
    row = foreign.read_one(foreign.write(tmp_path / "ktt.json", content)).rows[0]
    assert (row.status, row.reason, row.time_ms, row.times_ms) == (status, stated, None, ())


def test_repeats_that_are_left_out_and_keys_that_repeat_are_said(tmp_path):
    given = foreign.cache()
    given["cache"]["16,1,0"]["times"][0] = 0.0
    given["cache"]["32,1,0"]["time"] *= 1.001
    text = json.dumps(given)
    first = json.dumps(given["cache"]["16,1,0"])
    text = text.replace('"cache": {', f'"cache": {{"16,1,0": {first}, ')
    notes = foreign.read_one(foreign.write(tmp_path / "cache.json", text)).notes
    assert "1 entries repeat a configuration: the last of each is kept" in notes
    assert "1 rows have a repeat that is no time: their repeats are left out" in notes
    assert "1 rows state a time that is not the mean of their repeats" in notes


@pytest.mark.parametrize("whole", [foreign.cache, foreign.t4])
def test_damage_in_the_middle_is_no_cut(tmp_path, whole):
    text = json.dumps(whole(), indent=1)
    ends = [place for place in range(len(text)) if text.startswith("},\n", place)]
    place = ends[len(ends) // 2]
    path = foreign.write(tmp_path / "some.json", text[:place] + text[place + 1 :])
    with pytest.raises(UserError):
        read_sweeps(path)
    # Nor where the end is missing, too.
    path = foreign.write(tmp_path / "cut.json", text[:place] + text[place + 1 : -40])
    with pytest.raises(UserError) as caught:
        read_sweeps(path)
    # The line on which the damaged entry begins: two brackets are open there.
    lines = text[:place].splitlines()
    begins = [number for number, line in enumerate(lines, 1) if re.match(r'  ["{]', line)]
    assert caught.value.where == f"{path}:{begins[-1]}"


def test_results_with_parameters_of_their_own_are_refused(tmp_path):
    given = foreign.t4()
    given["results"][3]["configuration"]["more"] = 1
    with pytest.raises(UserError, match=r"results\.3\.configuration: has the parameter more"):
        foreign.read_one(foreign.write(tmp_path / "t4.json", given))
    space = read_t1(foreign.write(tmp_path / "t1.json", foreign.t1()))
    space.tunables["other"] = [1]
    path = foreign.write(tmp_path / "cache.json", foreign.cache())
    with pytest.raises(UserError, match="have different parameters: other"):
        read_sweeps(path, space)


def test_results_of_several_kernels_are_refused(tmp_path):
    given = foreign.ktt()
    given["Results"][1]["KernelName"] = "another"
    with pytest.raises(UserError, match=r"Results: are of several kernels .Blur, another"):
        foreign.read_one(foreign.write(tmp_path / "ktt.json", given))
