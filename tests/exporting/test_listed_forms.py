"""Forms that hold listed entries alone: what recommend says of these, and words for the others."""

import json
import math
import re
from collections import Counter
from dataclasses import replace
from typing import get_args, get_type_hints

import numpy as np
import pytest
from agreeing import changed
from drawn_questions import drawn

from launchwise.cli.answer_commands import export
from launchwise.exporting.exports import (
    ANY_SIZE,
    FORMATS,
    t4_contents,
    wisdom_text,
    write_config_files,
)
from launchwise.workloads.usual import read_config_files

ANY = {"hpp", "cmake", "python", "json", "triton"}
"""Formats that answer any size: see test_agreement.py and test_triton_answers.py."""

MAPPING = """\
file: "dtype={dtype},order={order},device_name={device}.json"
key: n
nearest: %s
devices: {%s}"""


@pytest.fixture(scope="module")
def questions(table):
    return drawn(table, 300, np.random.default_rng(11))


def test_every_format_is_drawn_against_recommend():
    formats = get_type_hints(export, include_extras=True)["format_"]
    names = {*get_args(get_args(formats)[0])}
    assert names == {*FORMATS, "triton", "config-files"} == ANY | {"wisdom", "t4", "config-files"}
    assert all(name in ANY_SIZE for name in ANY - {"cmake"})


def product(sizes):
    return math.prod(sizes[:3])


def by_wisdom(text, device, sizes):
    """The line that Kernel Launcher takes: device, then size, then nearest product, then time."""
    header, *lines = map(json.loads, text.splitlines())

    def far(line):
        own = line["problem_size"]
        apart = abs(product(own) - product(sizes))
        return line["environment"]["device_name"] != device, own != sizes, apart, line["time"]

    found = min(lines, key=far)
    return dict(zip(header["tunable_parameters"], found["config"], strict=True)), found


def test_wisdom_has_what_recommend_says_of_listed_problems_and_says_what_it_lacks(table, questions):
    text = wisdom_text(table)
    header, *lines = map(json.loads, text.splitlines())
    said = re.match(r"(\d+) problems are listed: (.*?)\. Kernel Launcher takes", header["note"])
    problems = {tuple(line["problem_size"]) for line in lines}
    assert int(said[1]) == len(problems)
    sizes = [one[0] for one in problems]
    assert said[2] == f"n from {min(sizes)} to {max(sizes)}; dtype float32, float64; order 2"
    assert header["note"].endswith(ANY_SIZE)
    compared = 0
    for one in questions:
        sizes = _sizes(one.problem.values())
        places = [n for n, each in enumerate(table.devices) if one.device in each.cuda_names]
        # Of problems that differ in texts alone, and of devices of one name, the first counts.
        alike = [each for each in table.entries if each.device in places and each.time_ms]
        alike = [each for each in alike if _sizes(each.problem) == sizes]
        if not alike:
            continue
        problem = table.problem(alike[0].problem)
        (first,) = table.answer(table.devices[alike[0].device].name, problem).suggestions
        own, line = by_wisdom(text, one.device, sizes)
        assert (own | first.configuration, line["time"]) == (
            {**own, "variant": first.configuration["variant"]},
            first.expected_ms,
        )
        compared += 1
    assert compared > 5


def _sizes(problem):
    return [each for each in problem if not isinstance(each, str)]


def test_a_wisdom_of_several_variants_names_them(table):
    assert "variant" not in json.loads(wisdom_text(table).splitlines()[0])["tunable_parameters"]
    # What has no time is no wisdom.
    timeless = tuple(replace(one, time_ms=None) for one in table.entries)
    (line,) = wisdom_text(changed(table, entries=timeless)).splitlines()
    assert json.loads(line)["note"].startswith("0 problems are listed. ")
    two = [dict(one) for one in table.stored.configurations]
    two[table.entries[0].choice]["variant"] = "other"
    text = wisdom_text(changed(table, configurations=tuple(two)))
    header, line, *_ = map(json.loads, text.splitlines())
    assert header["tunable_parameters"] == [*table.tunables]
    assert line["config"][0] == "other"


def test_t4_has_what_recommend_says_of_measured_problems_and_says_what_it_lacks(table, questions):
    contents, every = t4_contents(table), [(one.device, one.basis) for one in table.entries]
    own = {number for number, basis in every if basis == "measured"}
    for number, content in enumerate(contents.values()):
        note, results = content["metadata"]["note"], content["results"]
        listed = [
            one for one in every if one[0] == number and (number not in own or one[1] == "measured")
        ]
        assert len(results) == len(listed) > 0
        assert note.startswith(f"{len(results)} problems are listed")
        which = "measured ones alone" if number in own else "none of them measured"
        assert note.endswith(f"{which}. T4 has no rule for others. {ANY_SIZE}")
    compared = Counter()
    for one in questions:
        found = table.answer(one.device, one.problem) if table.limits.hold(one.problem) else None
        results = contents[found.gpu]["results"] if found and found.gpu in contents else []
        own = [each for each in results if one.problem.items() <= each["configuration"].items()]
        assert own or found is None or found.basis != "measured"
        if own:
            (first,), (value,) = found.suggestions, own[0]["measurements"]
            runtimes = [first.expected_ms] * (found.basis == "measured")
            assert first.configuration.items() <= own[0]["configuration"].items()
            assert (own[0]["times"]["runtimes"], value["value"]) == (runtimes, first.expected_ms)
            assert own[0]["objectives"] == [value["name"]] == ["time" if runtimes else "expected"]
            compared[value["name"]] += 1
    assert min(compared["time"], compared["expected"]) > 5


@pytest.mark.parametrize(("nearest", "words"), [("linear", "difference"), ("logarithmic", "ratio")])
def test_config_files_have_what_recommend_says_of_their_keys(
    table, questions, tmp_path, nearest, words
):
    path = tmp_path / "mapping.yaml"
    own_names = ", ".join(f"{one.name}: {one.name}" for one in table.devices)
    path.write_text(MAPPING % (nearest, own_names))
    mapping, spec = read_config_files(path, table.spec), table.spec
    plain = json.loads(json.dumps(table.plain()))
    *files, about = write_config_files(tmp_path / "out", plain, spec, mapping, path)
    keys = {each.name: json.loads(each.read_text()) for each in files}
    said = about.read_text()
    assert f"takes the key of the least {words} in the file of the other numbers" in said
    rows = [f"| {name} | {', '.join(own)} |" for name, own in keys.items()]
    assert {*rows} == {line for line in said.splitlines() if "device_name" in line}
    compared = 0
    for one in questions:
        device = next((each for each in table.devices if one.device in each.names), None)
        name = "dtype={dtype},order={order},device_name=".format(**one.problem)
        own = keys.get(f"{name}{device.name}.json" if device else "")
        if own and str(one.problem["n"]) in own:
            (first,) = table.answer(one.device, one.problem).suggestions
            values = own[str(one.problem["n"])]
            assert values == {name: first.configuration.get(name, values[name]) for name in values}
            compared += 1
    assert compared > 5
