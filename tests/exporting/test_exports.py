"""Answers that leave the project: every exported form says what the Python answer says."""

from __future__ import annotations

import json
import runpy
import shutil
import subprocess
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from samples import ROOT

from launchwise.base.errors import UserError
from launchwise.base.expressions import evaluate
from launchwise.base.typed import read_yaml
from launchwise.cli.app import main
from launchwise.experiment.study import ModelEntry, Study
from launchwise.exporting.conditions import cpp_condition
from launchwise.exporting.cpp import cpp_header, cpp_name
from launchwise.exporting.files import FORMATS, write_answers
from launchwise.exporting.lookup import NEAR, SUGGESTIONS, lookup_entries
from launchwise.exporting.macros import macros_text
from launchwise.exporting.others import wisdom_text
from launchwise.exporting.table import AnswerTable, Entry, answer_table, asked_problems
from launchwise.gpus.profile import read_profile
from launchwise.importing.t1_t4 import is_t4, read_t4
from launchwise.learning.answering import MEASURED, answers, why_none
from launchwise.learning.features import Domain
from launchwise.learning.final import FACTS_FILE, Final, fit_final, read_final
from launchwise.learning.rechecking import drawn_answers
from launchwise.learning.splits import Case
from launchwise.tables.files import read_table
from launchwise.tables.measurements import measurement_schema
from launchwise.workloads import space
from launchwise.workloads.limits import is_simple
from launchwise.workloads.spec import Spec, load_spec

GPUS = ("h200", "h200.sm16")
UNKNOWN = "h200.sm32"
SIZES = (200, 256, 400, 512)


@pytest.fixture(scope="module")
def domain(acoustic_spec: Spec) -> Domain:
    folders = {gpu: ROOT / "data" / "recorded" / gpu for gpu in (*GPUS, UNKNOWN)}
    profiles = {gpu: read_profile(path / "profile.json", gpu) for gpu, path in folders.items()}
    return Domain(acoustic_spec, profiles)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, domain: Domain) -> Path:
    """The product of a study of a few sizes."""
    schema = measurement_schema(domain.spec)
    paths = {gpu: ROOT / "data" / "recorded" / gpu / "acoustic.parquet" for gpu in GPUS}
    sweeps = {gpu: read_table(path, schema) for gpu, path in paths.items()}
    sweeps = {
        gpu: rows[rows["n"].isin(SIZES) & (rows["order"] == 2)] for gpu, rows in sweeps.items()
    }
    study = Study(
        title="t",
        question="q",
        workload="acoustic",
        models=["chosen"],
        splits={"s": {"kind": "leave_one_gpu_out", "title": "t"}},
    )
    parameters = {"members": "knn, lightgbm, nearest_size"}
    entry = ModelEntry(kind="committee", title="chosen", parameters=parameters)
    found = tmp_path_factory.mktemp("final") / "tiles"
    fit_final(study, "chosen", entry, domain, sweeps, {}, list(paths.values()), 1, found)
    return found


@pytest.fixture(scope="module")
def final(folder: Path, domain: Domain) -> Final:
    return read_final(folder, domain)


@pytest.fixture(scope="module")
def table(final: Final) -> AnswerTable:
    return answer_table(final, "tiles", [UNKNOWN])


def problem(n: int, dtype: str = "float32") -> dict[str, Any]:
    return {"n": n, "dtype": dtype, "order": 2}


# Answers


def test_a_measured_problem_is_answered_by_its_fastest_row(final: Final) -> None:
    found = answers(final, [Case("h200", problem(512))])[0]
    rows = pd.read_parquet(ROOT / "data/recorded/h200/acoustic.parquet")
    rows = rows[(rows["n"] == 512) & (rows["dtype"] == "float32") & (rows["order"] == 2)]
    assert found.basis == MEASURED
    assert found.suggestions[0].expected_ms == rows["time_ms"].min()
    assert (found.suggestions[0].gain or 0) > 1.02


@pytest.mark.parametrize(
    ("gpu", "n", "basis"),
    [("h200", 300, "within"), ("h200", 900, "beyond"), (UNKNOWN, 256, "new_gpu")],
)
def test_an_unmeasured_problem_says_what_its_answer_rests_on(
    final: Final, gpu: str, n: int, basis: str
) -> None:
    found = answers(final, [Case(gpu, problem(n))], top=3)[0]
    assert found.basis == basis
    assert [each.rank for each in found.suggestions] == [1, 2, 3]
    assert found.suggestions[0].expected_ms is not None
    assert found.usual["variant"] == "block3d"


def test_what_gains_nothing_is_answered_by_what_is_usual(final: Final) -> None:
    usual = final.measured["usual_ms"]
    equal = replace(final, measured=final.measured.assign(time_ms=usual / 1.01))
    for found in answers(equal, [Case("h200", problem(n)) for n in SIZES]):
        assert found.suggestions[0].configuration == found.usual
        assert found.suggestions[0].is_usual
        assert "usual choice" in found.why


@pytest.mark.parametrize("least_gain", [0.95, 1.1])
def test_a_gain_that_is_not_sure_is_left_to_what_is_usual(final: Final, least_gain: float) -> None:
    sizes = [*SIZES, 222, 300, 450, 900]
    gpus = ("h200", UNKNOWN)
    cases = [
        Case(gpu, problem(n, t)) for gpu in gpus for n in sizes for t in ("float32", "float64")
    ]
    kept = 0
    for plain, careful in zip(
        answers(final, cases, top=3), answers(final, cases, 3, least_gain), strict=True
    ):
        first = plain.suggestions[0]
        if plain.basis == MEASURED:
            sure = first.gain
        else:
            sure = first.gain_interval and first.gain_interval[0]
        if first.is_usual or (sure is not None and sure >= least_gain):
            assert careful == plain
            continue
        kept += 1
        (only,) = careful.suggestions
        assert only.rank == 1
        assert only.is_usual
        assert only.configuration == careful.usual == plain.usual
        assert only.gain == pytest.approx(1)
        assert (only.expected_ms or 0) > 0
        assert f"{least_gain:g}" in careful.why
    assert 0 < kept < len(cases)


def test_what_leaves_the_project_or_is_rechecked_is_as_careful_as_asked(final: Final) -> None:
    careful = answer_table(final, "tiles", [UNKNOWN], least_gain=100.0)
    assert {round(entry.gain or 1, 6) for entry in careful.entries} == {1.0}
    assert all(each.is_usual for each in lookup_entries(final, [UNKNOWN], least_gain=100.0))
    assert all(
        each.suggestions[0].is_usual
        for each in drawn_answers(final, "h200", 20, "a seed", least_gain=100.0)
    )
    assert not drawn_answers(final, "h200", 20, "a seed")[0].suggestions[0].is_usual
    plain = answer_table(final, "tiles", [UNKNOWN])
    assert {entry.problem for entry in plain.entries} == {each.problem for each in careful.entries}


def test_a_missing_or_damaged_product_is_one_line(
    folder: Path, domain: Domain, tmp_path: Path
) -> None:
    with pytest.raises(UserError, match=r"is missing: make it with snakemake .* final_none"):
        read_final(tmp_path / "none", domain)
    copy = tmp_path / "tiles"
    shutil.copytree(folder, copy)
    facts = json.loads((copy / FACTS_FILE).read_text())
    (copy / FACTS_FILE).write_text(json.dumps({**facts, "workload": "granger"}))
    with pytest.raises(UserError, match="is of granger, not of acoustic"):
        read_final(copy, domain)


# The table


def test_the_table_holds_measured_sizes_and_sizes_between(table: AnswerTable, final: Final) -> None:
    sizes = {entry.problem[0] for entry in table.entries}
    assert set(SIZES) < sizes
    assert {min(sizes), max(sizes)} == {200, 512}
    own = [entry for entry in table.entries if entry.basis == MEASURED]
    assert len(own) == len(final.measured)
    assert {table.devices[entry.device][0] for entry in own} == set(GPUS)
    assert {table.devices[entry.device][0] for entry in table.entries} == {*GPUS, UNKNOWN}


def test_an_unlisted_size_takes_the_nearest_and_a_stranger_the_default(
    table: AnswerTable,
) -> None:
    near = table.lookup("h200", problem(10_000))
    assert near is not None
    assert near.problem[0] == 512
    assert table.lookup("h200", problem(300, "float16")) is None
    assert table.lookup("no such card", problem(256)) is None
    assert table.configuration(None) == space.baseline(final_spec(table))


def final_spec(table: AnswerTable) -> Spec:
    return load_spec(ROOT / "kernels" / table.workload)


def asked(table: AnswerTable) -> list[tuple[str, dict[str, Any]]]:
    """Every listed problem, and sizes and devices that are not listed."""
    devices = [name for pair in table.devices for name in pair] + ["no such card"]
    # Sizes below 20 and above 2048, and halves, are outside the ranges.
    more = {1, 7, 33, 333, 2048, 4096, 10**6}
    sizes = sorted({int(entry.problem[0]) for entry in table.entries} | more)
    types = ["float32", "float64", "float16"]
    return [(device, problem(n, dtype)) for device in devices for n in sizes for dtype in types]


def expected(table: AnswerTable, device: str, asked_for: dict[str, Any]) -> dict[str, Any] | None:
    if not table.limits.hold(asked_for):
        return None
    entry = table.lookup(device, asked_for)
    basis = "default" if entry is None else entry.basis
    known = (None, None) if entry is None else (entry.time_ms, entry.gain)
    return {**table.configuration(entry), "time_ms": known[0], "gain": known[1], "basis": basis}


def test_the_python_module_says_the_same_everywhere(table: AnswerTable, tmp_path: Path) -> None:
    write_answers(tmp_path / "out", table)
    module = runpy.run_path(str(tmp_path / "out" / "tiles.py"))
    for device, wanted in asked(table):
        assert module["recommend"](device, **wanted) == expected(table, device, wanted)
    with pytest.raises(TypeError, match="recommend"):
        module["recommend"]("h200", n=1)


def test_the_python_module_imports_nothing(table: AnswerTable, tmp_path: Path) -> None:
    write_answers(tmp_path / "out", table)
    assert "import " not in (tmp_path / "out" / "tiles.py").read_text()


def main_of(table: AnswerTable, questions: Iterable[tuple[str, dict[str, Any]]]) -> str:
    """A program that prints one answer per line."""
    numbers = table.tunables[1:]
    values = ", ".join(f"long(c.{name})" for name in numbers)
    calls = "\n".join(
        f'    show(tiles::recommend({json.dumps(device)}, {{{one["n"]}, "{one["dtype"]}", 2}}));'
        for device, one in questions
    )
    return f"""\
#include "tiles.hpp"
#include <cstdio>
#include <string>
namespace tiles = launchwise::tiles;
static void show(const std::optional<tiles::answer> &answer) {{
    if (!answer) {{
        std::puts("none");
        return;
    }}
    const auto &found = *answer;
    const auto &c = found.launch;
    std::printf("%s{" %ld" * len(numbers)} %.17g %.17g %s\\n", std::string(c.variant).c_str(),
        {values}, found.time_ms, found.gain, std::string(found.basis).c_str());
}}
static_assert(tiles::recommend("no such card", {{33, "float32", 2}})->time_ms == 0);
static_assert(!tiles::recommend("no such card", {{1, "float32", 2}}));
int main() {{
{calls}
}}
"""


@pytest.mark.skipif(shutil.which("g++") is None, reason="needs g++")
def test_the_header_compiles_alone_and_says_the_same_everywhere(
    table: AnswerTable, tmp_path: Path
) -> None:
    write_answers(tmp_path, table)
    questions = asked(table)
    (tmp_path / "main.cpp").write_text(main_of(table, questions))
    flags = ["-std=c++17", "-Wall", "-Wextra", "-Wpedantic", "-Werror"]
    command = ["g++", *flags, "main.cpp", "-o", "main"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    lines = subprocess.run([tmp_path / "main"], capture_output=True, text=True, check=True)
    found = [line.split() for line in lines.stdout.splitlines()]
    assert len(found) == len(questions)
    for words, (device, wanted) in zip(found, questions, strict=True):
        known = expected(table, device, wanted)
        if known is None:
            assert words == ["none"]
            continue
        *configuration, time_ms, gain, basis = known.values()
        count = len(configuration)
        assert words[:count] == [str(value) for value in configuration]
        assert float(words[count]) == (time_ms or 0)
        assert float(words[count + 1]) == (gain or 0)
        assert words[count + 2] == basis


def test_a_planted_mistake_in_the_header_is_seen(table: AnswerTable) -> None:
    entry = table.entries[0]
    other = replace(entry, configuration=(*entry.configuration[:-1], 77))
    changed = replace(table, entries=(other, *table.entries[1:]))
    assert cpp_header(changed) != cpp_header(table)
    first = dict(zip(table.parameters, entry.problem, strict=True))
    answer = expected(changed, table.devices[0][0], first)
    assert answer is not None
    assert answer[table.tunables[-1]] == 77


def test_names_that_cpp_reserves_are_changed() -> None:
    assert [cpp_name(name) for name in ("n", "register", "2d", "a-b")] == [
        "n", "register_", "_2d", "a_b"
    ]  # fmt: skip


def test_json_wisdom_and_t4_can_be_read(table: AnswerTable, tmp_path: Path) -> None:
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
        sweep = read_t4(path)
        measured = [one for one in table.entries if one.device == GPUS.index(gpu)]
        times = [one.time_ms for one in measured if one.basis == MEASURED]
        assert [row.time_ms for row in sweep.rows] == pytest.approx(times)


def test_macros_name_every_tunable(final: Final) -> None:
    found = answers(final, [Case("h200", problem(512))])[0]
    text = macros_text(found)
    for name, value in found.suggestions[0].configuration.items():
        wanted = (
            f"#define VARIANT_{value.upper()} 1"
            if name == "variant"
            else f"#define {name.upper()} {value}"
        )
        assert wanted in text.splitlines()


def test_entries_are_plain(table: AnswerTable) -> None:
    for entry in table.entries:
        assert isinstance(entry, Entry)
        assert all(type(value) in (int, str) for value in (*entry.problem, *entry.configuration))
        assert entry.time_ms is None or np.isfinite(entry.time_ms)


def test_the_default_experiment_has_an_answering_model_in_every_study() -> None:
    from launchwise.experiment.experiment import load_experiment
    from launchwise.learning.recommenders import COMMITTEE, answering_model

    experiment = load_experiment(read_yaml(ROOT / "config.yaml"), [ROOT / "config.yaml"], ROOT)
    for name, study in experiment.studies.items():
        models = {one: experiment.model_of(name, one).model_dump() for one in study.models}
        assert models[answering_model(models)]["kind"] == COMMITTEE


# Problems without an answer

INFEASIBLE = {"county": 20, "countx": 8, "rows": 40, "cols": 20, "dtype": "float32"}
FEASIBLE = {**INFEASIBLE, "rows": 100, "cols": 10}


@pytest.fixture(scope="module")
def fits_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A project with the product of a workload that rules problems out: rows >= 2 * cols + 8."""
    root = tmp_path_factory.mktemp("project")
    recorded = ROOT / "data" / "recorded" / "h200"
    domain = fits_domain()
    rows = read_table(recorded / "granger.parquet", measurement_schema(domain.spec))
    rows = rows[rows["county"].isin(sorted(rows["county"].unique())[:2])]
    study = Study(
        title="t",
        question="q",
        workload="granger",
        models=["knn"],
        splits={"s": {"kind": "leave_one_gpu_out", "title": "t"}},
    )
    entry = ModelEntry(kind="knn", title="knn", parameters={})
    found = root / "results" / "final" / "granger_time"
    path = recorded / "granger.parquet"
    fit_final(study, "knn", entry, domain, {"h200": rows}, {}, [path], 1, found)
    shutil.copy(ROOT / "config.yaml", root)
    for name in ("data", "kernels"):
        (root / name).symlink_to(ROOT / name)
    return root


def fits_domain() -> Domain:
    """What may be asked of the product."""
    recorded = ROOT / "data" / "recorded" / "h200"
    spec = load_spec(ROOT / "kernels" / "granger")
    return Domain(spec, {"h200": read_profile(recorded / "profile.json", "h200")})


@pytest.fixture(scope="module")
def fits(fits_folder: Path) -> Final:
    return read_final(fits_folder / "results" / "final" / "granger_time", fits_domain())


def test_a_problem_that_nothing_may_run_says_why(fits: Final) -> None:
    domain = fits.recommender.domain
    assert why_none(domain, Case("h200", FEASIBLE)) is None
    said = why_none(domain, Case("h200", INFEASIBLE))
    assert said == "no configuration may run it: rows >= 2 * cols + 8 does not hold"


def test_recommend_refuses_such_a_problem_in_one_line(
    fits_folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(fits_folder)
    words = {name: f"{name}={value}" for name, value in FEASIBLE.items()}
    assert main(["recommend", "granger_time", *words.values()]) == 0
    assert "on h200" in capsys.readouterr().out
    for changed, said in (
        ({"rows": "rows=40", "cols": "cols=20"}, "rows >= 2 * cols + 8 does not hold"),
        ({"rows": "rows=0"}, "rows: 0 is below the minimum"),
        ({"dtype": "dtype=float16"}, "dtype: 'float16' is not among"),
    ):
        for options in ([], ["--json"], ["--macros"]):
            asked = ["recommend", "granger_time", *{**words, **changed}.values(), *options]
            assert main(asked) == 2
            told = capsys.readouterr()
            assert told.out == ""
            assert told.err.count("\n") == 1
            assert said in told.err


def test_exports_hold_no_answer_to_such_problems(fits: Final, tmp_path: Path) -> None:
    bare = replace(fits, measured=fits.measured.assign(rows=2 * fits.measured["cols"] + 7))
    everything = answer_table(fits, "fits")
    assert everything.entries
    assert answer_table(bare, "fits").entries == ()
    assert lookup_entries(bare) == []
    write_answers(tmp_path, everything)
    plain = json.loads((tmp_path / "fits.json").read_text())
    assert plain["limits"]["conditions"] == ["rows >= 2 * cols + 8"]
    ranges = {one["parameter"]: one for one in plain["limits"]["ranges"]}
    assert set(ranges) == set(FEASIBLE)
    # Wisdom and T4 are looked up by problem: one that is not listed has no answer there.
    for line in (tmp_path / "fits.wisdom").read_text().splitlines()[1:]:
        _, _, rows, cols = json.loads(line)["problem_size"]
        assert rows >= 2 * cols + 8
    for result in json.loads((tmp_path / "t4" / "h200.json").read_text())["results"]:
        assert result["configuration"]["rows"] >= 2 * result["configuration"]["cols"] + 8


def test_the_python_module_answers_such_problems_by_none(fits: Final, tmp_path: Path) -> None:
    write_answers(tmp_path, answer_table(fits, "fits"))
    module = runpy.run_path(str(tmp_path / "fits.py"))
    assert module["recommend"]("h200", **FEASIBLE)["variant"]
    for device in ("h200", "no such card"):
        assert module["recommend"](device, **INFEASIBLE) is None
        assert module["recommend"](device, **{**FEASIBLE, "dtype": "float16"}) is None
        assert module["recommend"](device, **{**FEASIBLE, "rows": 0}) is None


@pytest.mark.skipif(shutil.which("g++") is None, reason="needs g++")
def test_the_header_answers_such_problems_by_an_empty_optional(fits: Final, tmp_path: Path) -> None:
    write_answers(tmp_path, answer_table(fits, "fits"))
    (tmp_path / "main.cpp").write_text("""\
#include "fits.hpp"
namespace fits = launchwise::fits;
static_assert(fits::recommend("h200", {20, 8, 100, 10, "float32"}));
static_assert(!fits::recommend("h200", {20, 8, 40, 20, "float32"}));
static_assert(fits::can_run({20, 8, 48, 20, "float32"}));
static_assert(!fits::can_run({20, 8, 47, 20, "float32"}));
static_assert(!fits::recommend("no such card", {20, 8, 0, 10, "float32"}));
static_assert(!fits::recommend("no such card", {20, 8, 100, 10, "float16"}));
int main() {}
""")
    flags = ["-std=c++17", "-Wall", "-Wextra", "-Wpedantic", "-Werror"]
    command = ["g++", *flags, "main.cpp", "-o", "main"]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


CONDITIONS = [
    "a >= 2 * b + 8 or c == 'x'",
    "a // -3 < b - 2 and a % 4 != 1",
    "not c in ('x', 'y') and (a if b else -a) <= 3",
    "1 < a <= b",
    "a or b",
]


@pytest.mark.skipif(shutil.which("g++") is None, reason="needs g++")
def test_conditions_mean_the_same_in_cpp(table: AnswerTable, tmp_path: Path) -> None:
    header = cpp_header(table).split("// Whether some")[0]
    members = {"a": "a", "b": "b", "c": "c"}
    asked = [(a, b, c) for a in range(-7, 8) for b in (-2, 0, 3, 5) for c in "xyz"]
    wanted = []
    calls = []
    for place, text in enumerate(CONDITIONS):
        assert is_simple(text)
        header += (
            f"constexpr bool c{place}([[maybe_unused]] long a, [[maybe_unused]] long b, "
            f"[[maybe_unused]] std::string_view c) {{ return bool("
            f"{cpp_condition(text, members, json.dumps)}); }}\n"
        )
        for a, b, c in asked:
            calls.append(f"std::putchar(c{place}({a}, {b}, \"{c}\") ? '1' : '0');")
            wanted.append("1" if evaluate(text, {"a": a, "b": b, "c": c}) else "0")
    source = f"#include <cstdio>\n{header}}}\nusing namespace launchwise::tiles;\n"
    source += "int main() {\n" + "\n".join(calls) + "\n}\n"
    (tmp_path / "main.cpp").write_text(source)
    command = ["g++", "-std=c++17", "-O0", "main.cpp", "-o", "main"]
    subprocess.run(command, cwd=tmp_path, check=True)
    said = subprocess.run([tmp_path / "main"], capture_output=True, text=True, check=True).stdout
    assert list(said) == wanted
    assert {"0", "1"} == set(wanted)


# The lookup of the report


def test_every_entry_is_the_answer_to_its_problem(final: Final) -> None:
    entries = lookup_entries(final, [UNKNOWN])
    asked = asked_problems(final)
    assert len(entries) == len(asked) * 3
    assert {entry.gpu for entry in entries} == {*GPUS, UNKNOWN}
    cases = [Case(entry.gpu, entry.problem) for entry in entries]
    for entry, answer in zip(entries, answers(final, cases, SUGGESTIONS), strict=True):
        first, *rest = answer.suggestions
        assert (entry.gpu, entry.problem, entry.basis) == (
            answer.gpu, answer.problem, answer.basis
        )  # fmt: skip
        assert entry.configuration == first.configuration
        assert (entry.time_ms, entry.gain) == (first.expected_ms, first.gain)
        assert (entry.time_low_ms, entry.time_high_ms) == (first.interval_ms or (None, None))
        for one in rest:
            close = one.gain is not None and first.gain is not None
            close = close and one.gain * NEAR >= first.gain
            assert (one.configuration in entry.others) == close
    assert any(entry.others for entry in entries)


def test_the_improvement_is_over_the_baseline_and_the_gain_over_the_usual_choice(
    final: Final,
) -> None:
    measured = final.measured.set_index(["gpu", "n", "dtype"])
    for entry in lookup_entries(final):
        if entry.basis != "measured" or entry.is_usual:
            continue
        row = measured.loc[(entry.gpu, entry.problem["n"], entry.problem["dtype"])]
        assert entry.improvement == row["baseline_ms"] / row["time_ms"]
        assert entry.gain == row["usual_ms"] / row["time_ms"]
    # A model's answer that is the baseline gains nothing over it.
    (asked,) = answers(final, [Case("h200", problem(300))], 400)
    ratios = {
        str(one.configuration["variant"]): one.improvement
        for one in asked.suggestions
        if one.configuration["variant"] == "linear"
    }
    assert ratios == {"linear": 1.0}
