"""``launchwise load`` and ``worth``, ``export --at-most``: from a log to a table, and mistakes."""

import csv
import json
import runpy

import pytest
from command_line import line_of
from products import STUDY
from samples import ROOT, SAXPY

from launchwise.base.typed import read_yaml
from launchwise.cli import loads, recommending
from launchwise.cli.app import main
from launchwise.cli.words import read_experiment
from launchwise.experiment import load
from launchwise.exporting.exports import write_answers
from launchwise.learning.answers import MEASURED

CASES = read_yaml(ROOT / "tests/cli/data/loads.yaml")

GPU = "card.sm16"
LOG = """\
INFO ready
not found tuned config: n:256, dtype: torch.float32, order=8
not found tuned config: n:256, dtype: torch.float32, order=8
{"n": "400", "dtype": "float32", "order": 8, "count": 7}
n=300, dtype=float32, order=8, count=0
n=9000000, dtype=float32, order=8
"""


def read_in(capsys, text, *words, file="log.csv"):
    """What the command says of a file, and the load that it writes."""
    (loads.Path.cwd() / file).write_text(text)
    assert main(["load", file, "--as", "mine", "--workload", "kernels/stencil", *words]) == 0
    with open("loads/mine.csv") as handle:
        return capsys.readouterr().out.splitlines(), list(csv.DictReader(handle))


def test_lines_of_a_log_count_and_what_is_out_of_range_is_named(project, capsys):
    said, found = read_in(capsys, LOG, file="log.txt")
    assert [(each["n"], each["dtype"], each["count"]) for each in found] == [
        ("400", "float32", "7"),
        ("256", "float32", "2"),
    ]
    assert said[:5] == [
        "problems: 2, launches: 9, lines: 6",
        "lines that repeat a problem: 1, their counts are added",
        "problems without a launch: 1, left out",
        "lines that name no problem: 1",
        "outside of the range: 1, launches: 1",
    ]
    assert said[5].startswith("  n=9000000, dtype=float32, order=8: n: 9000000 is above")
    # What was written is read as it is.
    again, same = read_in(capsys, (project / "loads" / "mine.csv").read_text())
    assert same == found
    assert again[0] == "problems: 2, launches: 9, lines: 2"


def test_columns_and_patterns_name_what_holds_a_parameter(project, capsys):
    words = ("--column", "n=M", "--column", "count=calls", "--set", "order=8")
    _, found = read_in(capsys, "M,dtype,calls\n256,float32,3\n256,float32,4\n", *words)
    assert [each["count"] for each in found] == ["7"]
    pattern = ("--pattern", r"k_(?P<n>\d+)_(?P<dtype>\w+)$", "--set", "order=8")
    _, found = read_in(capsys, "k_256_float32\nk_300_float64\nother\n", *pattern)
    assert [(each["n"], each["dtype"]) for each in found] == [
        ("256", "float32"),
        ("300", "float64"),
    ]


LONG = 'n,dtype,order\n"' + "9" * 200_000  # And a quotation that does not end


@pytest.mark.parametrize(("text", "said"), [*CASES["files"].items(), (LONG, "log.csv: line 2: is")])
def test_a_mistake_in_a_file_is_told_in_a_line(project, capsys, text, said):
    (project / "log.csv").write_text(text)
    words = ("load", "log.csv", "--as", "mine", "--workload", "kernels/stencil")
    assert line_of(capsys, *words).startswith(said)


@pytest.mark.parametrize(("words", "said"), CASES["options"])
def test_a_mistake_in_an_option_is_told_in_a_line(project, capsys, words, said):
    (project / "log.txt").write_text(LOG)
    asked = ("load", "log.txt", "--workload", "kernels/stencil", *words)
    assert line_of(capsys, *asked).startswith(said)


def test_a_pattern_has_a_limit_of_time(project, capsys, monkeypatch):
    (project / "log.txt").write_text("a" * 60 + "!")
    monkeypatch.setattr(load, "READING_S", 0.1)
    words = ("load", "log.txt", "--as", "mine", "--workload", "kernels/stencil")
    line = line_of(capsys, *words, "--pattern", "(?P<n>(a+)+)$")
    assert line == "log.txt: takes more than 0.1 s of CPU time to read"


def test_what_is_asked_of_a_load_must_be_there(project, capsys):
    asked = ("worth", STUDY, "--gpu", GPU)
    assert line_of(capsys, *asked).startswith("worth: --load: name a load: launchwise load FILE")
    assert line_of(capsys, *asked, "--load", "min").startswith("worth: --load: unknown load 'min'")
    line = line_of(capsys, "export", STUDY, "--at-most", "0")
    assert line.startswith("export: Invalid value for '--at-most'")
    for option, value in (("--load", "mine"), ("--gpu", GPU)):
        line = line_of(capsys, "export", STUDY, option, value)
        assert line == f"export: {option}: chooses builds: needs --at-most"
    (project / "other.csv").write_text(f"workload,n,dtype\n{SAXPY.name},256,float32\n")
    line = line_of(capsys, *asked, "--load", "other.csv")
    assert line == "other.csv:2: workload: is of saxpy, not of stencil"
    path = project / "results" / "sweeps" / GPU / "stencil.parquet"
    path.parent.mkdir(parents=True)
    path.write_bytes(b"PAR1 and no more")
    (project / "other.csv").write_text("n,dtype,order\n256,float32,8\n")
    line = line_of(capsys, *asked, "--load", "other.csv")
    assert "stencil.parquet: is not a complete Parquet file" in line


def test_what_measures_or_chooses_by_time_refuses_another_objective(project, capsys):
    (project / "energy.yaml").write_text("objective: energy within 2%\n")
    files = ("--configfile", "config.yaml", "--configfile", "energy.yaml")
    asked = ("recommend", STUDY, "--gpu", GPU, "n=256", "dtype=float32", "order=8", *files)
    assert main([*asked]) == 0
    assert "; chosen by time: no energy is known of it here\n" in capsys.readouterr().out
    line = line_of(capsys, *asked, "--measure", "3")
    said = "the objective of the settings is energy within 2%"
    assert line == f"recommend: --measure: measures times: {said}"
    line = line_of(capsys, "export", STUDY, "--at-most", "2", *files)
    assert line == f"export: --at-most: chooses builds by time: {said}"
    (project / "energy.yaml").write_text("objective: watts\n")
    assert line_of(capsys, *asked).startswith("energy.yaml: objective: ")


@pytest.fixture
def loaded(project, capsys):
    """A load of measured sizes and one between them, to its launches."""
    sizes = {256: 5, 400: 1, 300: 3}
    lines = [f"{n},float32,8,{count}" for n, count in sizes.items()]
    read_in(capsys, "\n".join(["n,dtype,order,count", *lines]))
    return sizes


def test_worth_weighs_the_answers_that_recommend_gives(loaded, capsys):
    assert main(["worth", STUDY, "--load", "mine", "--gpu", GPU, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    usual = tuned = 0.0
    for each in found["problems"]:
        words = [f"{name}={value}" for name, value in each["problem"].items()]
        assert main(["recommend", STUDY, "--gpu", GPU, "--json", *words]) == 0
        first = json.loads(capsys.readouterr().out)["suggestions"][0]
        assert each["launches"] == loaded[each["problem"]["n"]]
        assert each["time_ms"] == first["expected_ms"]
        tuned += each["launches"] * first["expected_ms"] / 1e3
        usual += each["launches"] * first["expected_ms"] * (first["gain"] or 1) / 1e3
    assert found["gain"] == pytest.approx(usual / tuned)
    assert sum(each["share"] for each in found["problems"]) == pytest.approx(1)
    low, high = found["interval"] or (0, 99)
    assert low <= found["gain"] <= high
    reached = [each["reached"] for each in found["few_builds"]]
    assert reached == sorted(reached)
    assert main(["worth", STUDY, "--load", "mine", "--gpu", GPU]) == 0
    assert "problems: 3, launches: 9, lines: 3" in capsys.readouterr().out


def test_a_table_of_few_builds_holds_no_other(loaded, tmp_path):
    settings = read_experiment([loads.Path("config.yaml")], loads.Path.cwd(), STUDY)
    whole = loads.Loaded(STUDY, "mine", [GPU], settings, "export").table
    spec, used = whole.spec, {}
    for most in (1, 2):
        table, said = loads.few_builds(STUDY, most, "mine", [GPU], settings)
        assert " of the best speed of loads/mine.csv on card.sm16" in said[0]
        write_answers(tmp_path / str(most), table)
        answer = runpy.run_path(str(tmp_path / str(most) / f"{STUDY}.py"))["recommend"]
        used[most] = set()
        for entry in whole.entries:
            for n in (entry.problem[0], entry.problem[0] + 1):
                problem = {"n": n, "dtype": "float32", "order": 8}
                given, unknown = answer(GPU, **problem), answer("another", **problem)
                used[most] |= {spec.build_choice(spec.neutral | each) for each in (given, unknown)}
                own = table.answer(GPU, problem).suggestions[0].configuration
                assert own.items() <= given.items()
    counts = loads.Loaded(STUDY, None, [GPU], settings, "export").counts()
    own = [one for one in whole.entries if one.device == whole.number(GPU)]
    assert counts == {one.problem: 1 for one in own if one.basis == MEASURED}
    assert len(counts) < len(own)
    taken = (whole.configuration(entry.choice) for entry in whole.entries)
    every = {spec.build_choice(spec.neutral | each) for each in taken}
    assert len(used[1]) == 1 < len(every)
    assert used[1] <= used[2] <= every


def test_few_builds_are_chosen_from_the_product_that_is_there(loaded, capsys, monkeypatch):
    ran = []
    monkeypatch.setattr(recommending, "run_snakemake", lambda line: ran.append(line[-1]))
    asked = ("export", STUDY, "--at-most", "1", "--load", "mine", "--gpu", GPU)
    for format_, made in (("json", f"{STUDY}.json"), ("cmake", "cmake")):
        assert main([*asked, "--format", format_, "--output", f"few.{format_}"]) == 0
        folder = loads.Path("results", "export", f"{STUDY}.few")
        assert [each.name for each in folder.iterdir()] == [made]
    assert ran == []
    loads.Path("results", "lookup", f"{STUDY}.json").unlink()
    assert "is missing" in line_of(capsys, *asked)
    assert ran == [f"export_{STUDY}"]
