"""Every measured figure of the documents stands in a file of the repository."""

from __future__ import annotations

from pathlib import Path

import pytest
from samples import ROOT

from docs.generator.figure_sources import Quote, check, evaluated, read_quotes, rounds_to
from docs.generator.figure_text import figures
from docs.generator.generating import generated

TABLES = sorted((ROOT / "docs" / "figures").glob("*.yaml"))


def documents() -> list[str]:
    """README.md, the pages of ``docs/`` and the READMEs of benchmarks and workloads.

    Generated pages hold defaults and examples, and a test of their own compares them with the code.
    """
    made = set(generated(ROOT))
    paths = [
        ROOT / "README.md",
        *(ROOT / "docs").rglob("*.md"),
        ROOT / "benchmarks" / "README.md",
        *(ROOT / "kernels").glob("*/README.md"),
    ]
    return sorted(path.relative_to(ROOT).as_posix() for path in paths if path not in made)


QUOTES = {name: quotes for table in TABLES for name, quotes in read_quotes(table).items()}


@pytest.mark.parametrize("name", documents())
def test_every_figure_has_its_source(name: str) -> None:
    text = (ROOT / name).read_text(encoding="utf-8")
    assert check(name, text, QUOTES.get(name, []), ROOT) == []


def test_the_tables_name_documents_that_are_checked() -> None:
    assert len(documents()) > 30
    assert QUOTES.keys() <= set(documents())


@pytest.mark.parametrize(
    ("sentence", "wanted"),
    [
        ("It is 12 % faster.", ["12"]),
        ("It takes 15 and 11 s, or 3 to 4 ms.", ["15", "11", "3", "4"]),
        ("A copy reaches .98 of it, that is 4 079 GB/s.", [".98", "4 079"]),
        ("It takes 5s and 20ms, 7 × less.", ["5", "20", "7"]),
        ("It is 3x faster, four times smaller and takes a third of the memory.",
         ["3", "four", "third"]),
        ("Errors of 2e-5 and 1.5e-7; 89 rows per second; in 23 of 24 rows.",
         ["2e-5", "1.5e-7", "89", "23", "24"]),
        ("| a | b |\n|---|---|\n| 7 cards | 118, again 97 |\n", ["118", "97"]),
        ("It waits two or three minutes, 43 TFLOP/s later.", ["two", "three", "43"]),
        # None of these is measured.
        ("On an H200 with 16 cores and a grid of 512^3, order 2, 8 or 16 of sm_90.", []),
        ("See `time 3.5 ms`.\n\n```text\n5.3 ms\n```\n<!-- 3 % --> [link](a_2.5.md)", []),
        ("| a | 12 |\n|---|---|\n| stage 1 | stages 1 and 3 of a long plan of work |\n", []),
    ],
)  # fmt: skip
def test_what_reads_like_a_measured_figure(sentence: str, wanted: list[str]) -> None:
    assert [figure.text for figure in figures(sentence)] == wanted


PAGE = "The run takes 1.4 s (`n` = 512), 3 times as fast\nas before.\n"


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A repository with one result."""
    (tmp_path / "result.json").write_text(
        '{"runs": [{"n": 64, "s": 9.0}, {"n": 512, "s": 1.352, "before_s": 4.1}]}'
    )
    return tmp_path


def quote(text: str, *values: str) -> Quote:
    """A passage with its values in the result."""
    return Quote(text, "result.json", values)


RIGHT = quote(
    "{1.4} s (`n` = 512), {3} times as fast as", "runs/n=512/s", "runs/1/before_s over runs/1/s"
)


def test_a_document_whose_figures_stand_in_a_file_passes(root: Path) -> None:
    assert check("page.md", PAGE, [RIGHT], root) == []


def test_a_planted_figure_is_refused(root: Path) -> None:
    (complaint,) = check("page.md", PAGE + "It needs 17 % of the memory.\n", [RIGHT], root)
    assert complaint.startswith("page.md:3: 17 has no source and no exemption")


@pytest.mark.parametrize("planted", ["1.5 s", "1.35 s", "9.0 s"])
def test_a_changed_figure_is_refused(planted: str, root: Path) -> None:
    lacks, *without = check("page.md", PAGE.replace("1.4 s", planted), [RIGHT], root)
    assert "lacks the quote" in lacks
    assert len(without) == 2


def test_a_changed_result_is_refused(root: Path) -> None:
    path = root / "result.json"
    path.write_text(path.read_text().replace("1.352", "1.25"))
    complaints = check("page.md", PAGE, [RIGHT], root)
    assert [line.split(": ")[-1] for line in complaints] == ["runs/n=512/s is 1.25, not 1.4"]


def test_a_source_that_lacks_the_value_is_refused(root: Path) -> None:
    lost = quote(RIGHT.text, "runs/n=100/s", RIGHT.values[1])
    (complaint,) = check("page.md", PAGE, [lost], root)
    assert "result.json has no runs/n=100/s" in complaint


def test_a_source_that_does_not_exist_is_refused(root: Path) -> None:
    lost = Quote("{1.4} s (`n` = 512), {3} times", "lost.json", ("s", "n"))
    complaints = check("page.md", PAGE, [lost], root)
    assert len(complaints) == 2
    assert all("lost.json: cannot be read" in line for line in complaints)


def test_a_quote_that_fits_twice_is_refused(root: Path) -> None:
    (complaint,) = check("page.md", PAGE + PAGE, [RIGHT], root)
    assert "has 2 times" in complaint


def test_an_exemption_covers_its_quote_alone(root: Path) -> None:
    setting = Quote("every {20 ms}", "setting", exempt=True)
    text = "Samples every 20 ms take 20 ms.\n"
    (complaint,) = check("page.md", text, [setting], root)
    assert "20 has no source" in complaint


@pytest.mark.parametrize(
    ("group", "message"),
    [
        ("{exempt: measured, quotes: ['{3} s']}", "no reason"),
        ("{exempt: 'published:', quotes: ['{3} s']}", "no reason"),
        ("{quotes: {'{3} s': [a]}}", "one of from, computed, exempt"),
        ("{from: a.json, quotes: {'{3} and {4} s': [a]}}", "1 values"),
        ("{from: a.json, quotes: {'3 s': []}}", "0 values"),
        ("{from: a.json, quotes: {'{3} s': [3]}}", "names no value"),
        ("{from: results/a.json, quotes: {'{3} s': [a]}}", "is an output"),
    ],
)
def test_an_entry_without_source_or_reason_is_refused(
    group: str, message: str, tmp_path: Path
) -> None:
    path = tmp_path / "figures.yaml"
    path.write_text(f"page.md: [{group}]\n")
    with pytest.raises(ValueError, match=message):
        read_quotes(path)


@pytest.mark.parametrize(
    ("value", "figure", "holds"),
    [
        (0.6549, "0.65", True),
        (0.6551, "0.65", False),
        (1444, "1 444", True),
        (1443.4, "1 444", False),
        (1.97e-5, "2.0e-5", True),
        (1.97e-5, "1.9e-5", False),
        (0.9849, ".98", True),
    ],
)
def test_a_figure_is_its_value_rounded(value: float, figure: str, holds: bool) -> None:
    assert rounds_to(value, figure) is holds


def test_values_compute_from_left_to_right() -> None:
    content = {"a": [{"n": 1, "k": "x", "s": 2.0}, {"n": 1, "k": "y", "s": 6.0}]}
    assert evaluated("a/n=1&k=y/s minus a/0/s over a/0/s times 100", content) == 200
    assert evaluated("a/*/s/max plus a/*/s/min", content) == 8
