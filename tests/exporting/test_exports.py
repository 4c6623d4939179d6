"""Answers that leave the project: every exported form says what the Python answer says."""

import json
import re
import runpy
from dataclasses import replace

import foreign
import numpy as np
import pytest
from agreeing import changed
from answer_forms import Answering
from drawn_questions import Question
from exported import GPUS, SIZES, UNKNOWN, needs_gxx, problem, said_by_cpp
from hostile import SPEC, table_of
from hypothesis import given
from hypothesis import strategies as st
from samples import ROOT, STENCIL

import launchwise
from launchwise.base.typed import read_yaml
from launchwise.exporting.building import answer_table
from launchwise.exporting.exports import FORMATS, write_answers
from launchwise.exporting.formulas import ExportedFormulas
from launchwise.exporting.languages import KEYWORDS, cpp_header, cpp_name, macros_text
from launchwise.exporting.table import AnswerTable
from launchwise.importing.t4 import is_t4
from launchwise.learning.answering import answers
from launchwise.learning.answers import MEASURED, Answer, Suggestion
from launchwise.learning.splits import Case
from launchwise.workloads.declared.declared_workload import load_workload
from launchwise.workloads.launch_shapes import Limits
from launchwise.workloads.parts import ProblemParameter
from launchwise.workloads.spec import Spec, load_spec

# The table


def test_the_table_holds_measured_sizes_and_sizes_between(table, final):
    sizes = {entry.problem[0] for entry in table.entries}
    assert set(SIZES) < sizes
    assert {min(sizes), max(sizes)} == {200, 512}
    own = [entry for entry in table.entries if entry.basis == MEASURED]
    assert len(own) == len(final.measured)
    assert {table.devices[entry.device].name for entry in own} == set(GPUS)
    assert {table.devices[entry.device].name for entry in table.entries} == {*GPUS, UNKNOWN}


def test_the_python_module_refuses_what_is_no_problem(table, tmp_path):
    write_answers(tmp_path / "out", table)
    recommend = runpy.run_path(str(tmp_path / "out" / "tiles.py"))["recommend"]
    with pytest.raises(TypeError, match=r"recommend\(device, n, dtype, order\)"):
        recommend("card", n=1)
    for wrong in (341.5, "341", "many", None, float("nan"), True):
        with pytest.raises(ValueError, match="n must be a whole number"):
            recommend("card", **{**problem(1), "n": wrong})
    # Of either kind of number, a whole one is the same.
    for same in (341.0, np.int64(341)):
        assert recommend("card", **{**problem(1), "n": same}) == recommend("card", **problem(341))


NEAREST = {
    # 204 / 21 is less than 2001 / 204, 205 / 21 more than 2001 / 205.
    (203, "float32", 2): (20, "float32", 2),
    (204, "float32", 2): (2000, "float32", 2),
    # 201 / 84 is less than 201 / 149 times 17 / 9, though their sums are the other way round.
    (200, "float64", 8): (83, "float64", 8),
    (400, "float64", 16): (148, "float64", 16),
    # 150 / 100 is 225 / 150: of equally near ones the first is taken.
    (149, "float64", 2): (99, "float64", 2),
    (224, "float64", 2): (224, "float64", 2),
    # 3 and 1 are 5 from -1, 20 and 1 by a third of 17 / 3.
    (3, "float32", 16): (-1, "float32", 16),
}
"""Problem to the nearest one that a table has."""


@pytest.fixture
def few(table):
    """Few and far entries, all of one device, each another configuration; no model chooses."""
    assert table.parameters == ("n", "dtype", "order")
    one = replace(table.entries[0], basis="within")
    listed = enumerate(NEAREST.values())
    entries = tuple(replace(one, problem=each, choice=place) for place, each in listed)
    devices = tuple(replace(each, judge=None) for each in table.devices)
    return replace(changed(table, entries=entries, devices=devices), limits=Limits())


@needs_gxx
def test_the_nearest_size_is_nearest_in_proportion(few, tmp_path):
    device = few.devices[few.entries[0].device].name
    asked = [dict(zip(few.parameters, each, strict=True)) for each in NEAREST]
    found = [tuple(few.answer(device, each).answered_for.values()) for each in asked]
    assert found == [*NEAREST.values()]
    questions = [Question(device, each, "between") for each in asked]
    assert Answering(few, tmp_path / "out").disagreements(questions) == []


@given(st.text(min_size=1))
def test_any_name_is_an_identifier_of_cpp(name):
    assert re.fullmatch(r"[A-Za-z_]\w*", cpp_name(name), re.ASCII)
    assert cpp_name(name) not in KEYWORDS


HARD = ("new", "new_", "linux", "INT64_MAX", "SIZE_MAX", "detail", "launch", "asked")


@needs_gxx
@pytest.mark.parametrize("study", ["std", "detail", "launchwise", "unix", "class"])
def test_names_that_cpp_takes_otherwise_stay_apart(study, tmp_path):
    assert len({cpp_name(name) for name in (*HARD, "new__", "linux_")}) == len(HARD) + 2
    tunables = {name: {"kind": "launch", "values": [8], "neutral": 0} for name in HARD}
    named = {name: {"type": "integer", "minimum": 1} for name in ("typedef", "typedef_", "NULL")}
    spec = Spec.model_validate(
        {
            **SPEC,
            "problem": named,
            "tunables": tunables,
            "variants": {"x": {"tunables": [*HARD]}},
            "baseline": {"variant": "x", **dict.fromkeys(HARD, 8)},
            "work": {**SPEC["work"], **dict.fromkeys(("items", "bytes", "flop"), "NULL")}
            | {"footprint_bytes": "NULL"},
        }
    )
    known = table_of(["x"], study)
    changed = {
        "parameters": (*named,),
        "configurations": ({"variant": "x", **dict.fromkeys(HARD, 8)},),
        "entries": tuple(replace(one, problem=(1, 2, 3)) for one in known.entries),
    }
    least = ProblemParameter(type="integer", minimum=1)
    limits = Limits(dict.fromkeys(named, least))
    stored = known.stored.model_copy(update=changed)
    made = AnswerTable(study, spec, stored, limits, ExportedFormulas())
    (tmp_path / "hard.hpp").write_text(cpp_header(made))
    name = cpp_name(study)
    program = f"""#include "hard.hpp"
#include <cstdio>
int main() {{
    const auto found = launchwise::{name}::recommend("gpu0", {{1, 2, 3}});
    std::printf("%d %d", int(found->launch.{cpp_name("new")}), int(found->answered_for.NULL_));
}}"""
    # GNU defines `linux` and `unix`, too.
    assert said_by_cpp(tmp_path, program, "-std=gnu++17") == "8 3"


def test_every_format_is_written_and_t4_can_be_read(table, tmp_path):
    write_answers(tmp_path, table)
    assert {path.name for path in tmp_path.iterdir()} == {
        file.format(study="tiles") for file in FORMATS.values()
    }
    plain = json.loads((tmp_path / "tiles.json").read_text())
    assert {*plain["facts"]} >= {"gpu_sms", "gpu_l2_bytes"}
    assert {len(each["facts"]) for each in plain["devices"]} == {len(plain["facts"])}
    assert len(plain["entries"]) == len(table.entries)
    for gpu in GPUS:
        path = tmp_path / "t4" / f"{gpu}.json"
        assert is_t4(json.loads(path.read_text()))
        sweep = foreign.read_one(path)
        measured = [one for one in table.entries if one.device == GPUS.index(gpu)]
        times = [one.time_ms for one in measured if one.basis == MEASURED]
        assert [row.time_ms for row in sweep.rows] == pytest.approx(times)


def test_macros_name_every_tunable_and_are_those_of_a_build(final):
    found = answers(final, [Case("card", problem(512))])[0]
    configuration = found.suggestions[0].configuration
    of_tunables = {"AREA": "bx * by + 1000 * tz"}
    spec = final.spec.model_copy(update={"macros": {**final.spec.macros, **of_tunables}})
    _, _, *lines = macros_text(found, spec).splitlines()
    variant = str(configuration["variant"])
    written = {name: value for _, name, value in map(str.split, lines)}
    assert written.pop(f"VARIANT_{variant.upper()}") == "1"
    own = {name: str(value) for name, value in configuration.items() if name != "variant"}
    build = load_workload(STENCIL, spec).build(found.problem, {**spec.neutral, **configuration})
    assert {*build.defines} <= {*written.items()}
    assert written.pop("AREA") != "1001"
    assert written == {**own, "REAL": "float", "RADIUS": str(found.problem["order"] // 2)}


def test_macros_for_host_code_are_in_capitals():
    best = Suggestion(
        1, {"variant": "a-b", "bx": 8, "kind": "x y"}, 1.0, *[None] * 5, is_usual=True
    )
    answer = Answer("h200", {"n": 1}, MEASURED, [best], {}, "")
    lines = macros_text(
        answer, load_spec(ROOT / "docs" / "tutorial" / "example" / "saxpy")
    ).splitlines()
    assert lines[2:] == ["#define VARIANT_A_B 1", "#define BX 8", "#define KIND_X_Y 1"]


@pytest.mark.workloads
def test_the_default_experiment_has_an_answering_model_in_every_study():
    from launchwise.experiment.loading import load_experiment
    from launchwise.learning.recommenders import COMMITTEE, answering_model

    experiment = load_experiment(read_yaml(ROOT / "config.yaml"), [ROOT / "config.yaml"], ROOT)
    for name, study in experiment.studies.items():
        models = {one: experiment.model_of(name, one).model_dump() for one in study.models}
        assert models[answering_model(models)]["kind"] == COMMITTEE


def test_files_say_when_and_with_what_was_measured(table, final, sweeps, tmp_path):
    rows = sweeps["card"]
    device = table.devices[GPUS.index("card")]
    assert device.days == (rows["measured_at"].min()[:10], rows["measured_at"].max()[:10])
    assert device.drivers == tuple(sorted(rows["driver"].unique()))
    assert device.toolkits == tuple(sorted(rows["toolkit"].unique()))
    sms = [final.domain.profiles[one.name].sms for one in table.devices]
    assert [one.named_facts["gpu_sms"] for one in table.devices] == sms
    write_answers(tmp_path / "out", table)
    header = (tmp_path / "out" / "tiles.hpp").read_text()
    assert f"//   card: {device.measured}\n" in header
    assert f"export {launchwise.__version__};" in header
    # Nothing was measured there.
    assert table.devices[-1].name == UNKNOWN
    assert table.devices[-1].days == ()
    plain = json.loads((tmp_path / "out" / "tiles.json").read_text())
    assert plain["day"] == max(device.days[-1], table.devices[1].days[-1]) == table.day
    later = replace(device, days=("2020-01-01", "2031-01-01"))
    assert changed(table, devices=(later, device)).day == "2031-01-01"
    assert plain["version"] == launchwise.__version__
    write_answers(tmp_path / "again", answer_table(final, "tiles", [UNKNOWN]))
    for name in ("tiles.hpp", "tiles.py", "tiles.json"):
        assert (tmp_path / "again" / name).read_bytes() == (tmp_path / "out" / name).read_bytes()
