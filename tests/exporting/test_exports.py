"""Answers that leave the project: every exported form says what the Python answer says."""

import json
import runpy
from dataclasses import asdict, replace

import foreign
import pytest
from exported import GPUS, SIZES, STRICT, UNKNOWN, needs_gxx, problem, said_by_cpp
from samples import ROOT, STENCIL

import launchwise
from launchwise.base.typed import read_yaml
from launchwise.exporting.files import FORMATS, wisdom_text, write_answers
from launchwise.exporting.languages import cpp_header, cpp_name, macros_text
from launchwise.exporting.table import answer_table
from launchwise.importing.t4 import is_t4
from launchwise.learning.answering import answers
from launchwise.learning.answers import MEASURED, Answer, Suggestion
from launchwise.learning.splits import Case
from launchwise.workloads import space
from launchwise.workloads.launch_shapes import launch_shapes
from launchwise.workloads.loading import load_workload
from launchwise.workloads.spec import load_spec

USUAL = {"variant": "block3d", "bx": 32, "by": 8, "bz": 1}
"""The usual choice of the stencil, beside neutral values."""

# The table


def test_the_table_holds_measured_sizes_and_sizes_between(table, final):
    sizes = {entry.problem[0] for entry in table.entries}
    assert set(SIZES) < sizes
    assert {min(sizes), max(sizes)} == {200, 512}
    own = [entry for entry in table.entries if entry.basis == MEASURED]
    assert len(own) == len(final.measured)
    assert {table.devices[entry.device].name for entry in own} == set(GPUS)
    assert {table.devices[entry.device].name for entry in table.entries} == {*GPUS, UNKNOWN}


def test_an_unlisted_size_takes_the_nearest_and_a_stranger_the_default(table):
    near = table.lookup("card", problem(10_000))
    assert near is not None
    assert near.problem[0] == 512
    assert table.lookup("card", problem(300, "float16")) is None
    assert table.lookup("no such card", problem(256)) is None
    assert table.configuration(None) == space.baseline(final_spec(table))


def final_spec(table):
    assert table.workload == STENCIL.name
    return load_spec(STENCIL)


def asked(table):
    """Every listed problem, and sizes and devices that are not listed."""
    devices = [name for one in table.devices for name in one.names] + ["no such card"]
    # Sizes below 20 and above 2048, and halves, are outside the ranges.
    more = {1, 7, 33, 333, 2048, 4096, 10**6}
    sizes = sorted({int(entry.problem[0]) for entry in table.entries} | more)
    types = ["float32", "float64", "float16"]
    return [(device, problem(n, dtype)) for device in devices for n in sizes for dtype in types]


def expected(table, device, asked_for):
    if not table.limits.hold(asked_for):
        return None
    entry = table.lookup(device, asked_for)
    found = dict(time_ms=None, gain=None, basis="usual", problem=asked_for)
    chosen = table.configuration(entry)
    if entry is None:
        chosen = usual = {**chosen, **USUAL}
        assert table.usual_choice(asked_for) == usual
    else:
        known = dict(zip(table.parameters, entry.problem, strict=True))
        found = {**found, "basis": "nearest", "problem": known}
        if known == asked_for:
            found |= {"time_ms": entry.time_ms, "gain": entry.gain, "basis": entry.basis}
    shapes = launch_shapes(final_spec(table), asked_for, chosen)
    launches = [{**asdict(one), "block": [*one.block], "grid": [*one.grid]} for one in shapes]
    return {**chosen, **found, "launches": launches}


def test_the_python_module_says_the_same_everywhere(table, tmp_path):
    write_answers(tmp_path / "out", table)
    module = runpy.run_path(str(tmp_path / "out" / "tiles.py"))
    for device, wanted in asked(table):
        assert module["recommend"](device, **wanted) == expected(table, device, wanted)
    with pytest.raises(TypeError, match="recommend"):
        module["recommend"]("card", n=1)


def test_the_python_module_is_indented_by_steps_of_four(table, tmp_path):
    write_answers(tmp_path / "out", table)
    text = (tmp_path / "out" / "tiles.py").read_text()
    launches = text[text.index("_LAUNCHES = {") :].partition("\n}\n")[0].splitlines()
    blanks = [len(line) - len(line.lstrip()) for line in launches]
    # A variant, its kernels, and the bracket that closes them below the variant's name.
    assert blanks[:4] == [0, 4, 8, 4]
    assert set(blanks) == {0, 4, 8}


NEAREST = {
    # 204 / 21 is less than 2001 / 204, 205 / 21 more than 2001 / 205.
    (203, "float32", 2): (20, "float32", 2),
    (204, "float32", 2): (2000, "float32", 2),
    # 201 / 84 is less than 201 / 149 times 17 / 9, though their sums are the other way round.
    (200, "float64", 8): (83, "float64", 8),
    (400, "float64", 16): (148, "float64", 16),
}
"""Problem to the nearest one that a table has."""


@pytest.fixture
def few(table):
    """Few and far entries, all of one device."""
    assert table.parameters == ("n", "dtype", "order")
    one = table.entries[0]
    return replace(table, entries=tuple(replace(one, problem=each) for each in NEAREST.values()))


def test_the_nearest_size_is_nearest_in_proportion(few, tmp_path):
    write_answers(tmp_path / "out", few)
    recommend = runpy.run_path(str(tmp_path / "out" / "tiles.py"))["recommend"]
    device = few.devices[few.entries[0].device].name
    for asked_for, nearest in NEAREST.items():
        wanted = dict(zip(few.parameters, asked_for, strict=True))
        found = few.lookup(device, wanted)
        assert found is not None
        assert found.problem == nearest
        assert tuple(recommend(device, **wanted)["problem"].values()) == nearest


@needs_gxx
def test_the_nearest_size_of_the_header_is_nearest_in_proportion(few, tmp_path):
    device = few.devices[few.entries[0].device].name
    said = "\n".join(
        f'static_assert(tiles::recommend("{device}", {{{n}, "{dtype}", {order}}})'
        f"->answered_for.n == {nearest[0]});"
        for (n, dtype, order), nearest in NEAREST.items()
    )
    (tmp_path / "tiles.hpp").write_text(cpp_header(few))
    head = '#include "tiles.hpp"\nnamespace tiles = launchwise::tiles;\n'
    said_by_cpp(tmp_path, f"{head}{said}\nint main() {{}}\n")


def main_of(table, questions):
    """A program that prints one answer per line."""
    numbers = table.tunables[1:]
    values = ", ".join(f"long(c.{name})" for name in numbers)
    calls = "\n".join(
        f'    show({json.dumps(device)}, {{{one["n"]}, "{one["dtype"]}", 2}});'
        for device, one in questions
    )
    return f"""\
#include "tiles.hpp"
#include <cstdio>
#include <string>
namespace tiles = launchwise::tiles;
static void show(const char *device, const tiles::problem &asked) {{
    const auto answer = tiles::recommend(device, asked);
    if (!answer) {{
        std::puts("none");
        return;
    }}
    const auto &found = *answer;
    const auto &c = found.launch;
    std::printf("%s{" %ld" * len(numbers)} %.17g %.17g %s %ld", std::string(c.variant).c_str(),
        {values}, found.time_ms, found.gain, std::string(found.basis).c_str(),
        long(found.answered_for.n));
    const auto run = tiles::launches_of(asked, c);
    for (std::size_t i = 0; i < run.count; ++i) {{
        const auto &one = run.kernels[i];
        std::printf(" launch %ld %ld %ld %ld %ld %ld %ld", long(one.block[0]), long(one.block[1]),
            long(one.block[2]), long(one.grid[0]), long(one.grid[1]), long(one.grid[2]),
            one.shared_bytes ? long(*one.shared_bytes) : -1);
    }}
    std::puts("");
}}
static_assert(tiles::recommend("no such card", {{33, "float32", 2}})->time_ms == 0);
static_assert(!tiles::recommend("no such card", {{1, "float32", 2}}));
int main() {{
{calls}
}}
"""


@needs_gxx
def test_the_header_compiles_alone_and_says_the_same_everywhere(table, tmp_path):
    write_answers(tmp_path, table)
    questions = asked(table)
    said = said_by_cpp(tmp_path, main_of(table, questions), *STRICT)
    found = [line.split() for line in said.splitlines()]
    assert len(found) == len(questions)
    for words, (device, wanted) in zip(found, questions, strict=True):
        known = expected(table, device, wanted)
        if known is None:
            assert words == ["none"]
            continue
        *configuration, time_ms, gain, basis, taken_from, launches = known.values()
        count = len(configuration)
        assert words[:count] == [str(value) for value in configuration]
        assert float(words[count]) == (time_ms or 0)
        assert float(words[count + 1]) == (gain or 0)
        assert words[count + 2] == basis
        assert int(words[count + 3]) == taken_from.get("n", 0)
        shapes = words[count + 4 :]
        for one in launches:
            shared = -1 if one["shared_bytes"] is None else one["shared_bytes"]
            wanted_shape = map(str, [*one["block"], *one["grid"], shared])
            assert shapes[:8] == ["launch", *wanted_shape]
            shapes = shapes[8:]
        assert not shapes


def test_names_that_cpp_reserves_are_changed():
    assert [cpp_name(name) for name in ("n", "register", "2d", "a-b")] == [
        "n", "register_", "_2d", "a_b"
    ]  # fmt: skip


def test_json_wisdom_and_t4_can_be_read(table, tmp_path):
    write_answers(tmp_path, table)
    assert {path.name for path in tmp_path.iterdir()} == {
        file.format(study="tiles") for file in FORMATS.values()
    }
    plain = json.loads((tmp_path / "tiles.json").read_text())
    assert len(plain["entries"]) == len(table.entries)
    header, *lines = [json.loads(line) for line in wisdom_text(table).splitlines()]
    assert header["tunable_parameters"] == list(table.tunables)
    assert len({(line["environment"]["device_name"], *line["problem_size"]) for line in lines}) == (
        len(lines)
    )
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
    _, _, *lines = macros_text(found, final.spec).splitlines()
    variant = str(configuration["variant"])
    written = {name: value for _, name, value in map(str.split, lines)}
    assert written.pop(f"VARIANT_{variant.upper()}") == "1"
    own = {name: str(value) for name, value in configuration.items() if name != "variant"}
    assert written == {**own, "REAL": "float", "RADIUS": str(found.problem["order"] // 2)}
    build = load_workload(STENCIL, final.spec).build(found.problem, configuration)
    assert {*build.defines} <= {*written.items()}


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
    write_answers(tmp_path / "out", table)
    header = (tmp_path / "out" / "tiles.hpp").read_text()
    assert f"//   card: {device.measured}\n" in header
    assert f"export {launchwise.__version__};" in header
    # Nothing was measured there.
    assert table.devices[-1].name == UNKNOWN
    assert table.devices[-1].days == ()
    plain = json.loads((tmp_path / "out" / "tiles.json").read_text())
    assert plain["day"] == max(device.days[-1], table.devices[1].days[-1]) == table.day
    assert plain["version"] == launchwise.__version__
    write_answers(tmp_path / "again", answer_table(final, "tiles", [UNKNOWN]))
    for name in ("tiles.hpp", "tiles.py", "tiles.json"):
        assert (tmp_path / "again" / name).read_bytes() == (tmp_path / "out" / name).read_bytes()
