"""Outputs replace links, and do not leave ``results/`` through them."""

import os
from pathlib import Path
from types import SimpleNamespace

import pytest
from hostile import table_of

from launchwise.base.errors import UserError
from launchwise.base.scripting import running
from launchwise.base.storage import new_folder, write_json, write_text
from launchwise.cli.recommending import copied
from launchwise.exporting.exports import write_answers
from launchwise.measuring.journal import Journal

VICTIM = "not ours"


@pytest.fixture
def victim(tmp_path, monkeypatch, own_log):
    """A file outside of the project, in whose folder the test runs."""
    (tmp_path / "elsewhere").mkdir()
    found = tmp_path / "elsewhere" / "victim"
    found.write_text(VICTIM)
    (tmp_path / "project" / "results").mkdir(parents=True)
    monkeypatch.chdir(tmp_path / "project")
    return found


def log_to(path):
    with running(SimpleNamespace(log=[str(path)])) as log:
        log.info("x")


def journal(path):
    with Journal(path, "f", ["n"]) as made:
        made.append({"n": 1})


@pytest.mark.parametrize(
    ("write", "name"),
    [
        (lambda path: write_text(path, "x"), "index.html"),
        (lambda path: write_json(path, {}), "facts.json"),
        (log_to, "x.log"),
        (journal, "1.jsonl"),
        (lambda path: copied(Path(__file__), path), "export.py"),
    ],
)
def test_a_link_in_the_place_of_an_output_is_replaced(victim, write, name):
    path = Path("results") / "x" / name
    path.parent.mkdir()
    path.symlink_to(victim)
    write(path)
    assert victim.read_text() == VICTIM
    assert not path.is_symlink()
    assert path.is_file()
    assert os.listdir(victim.parent) == ["victim"]


def test_a_holder_of_a_journal_is_no_link(victim):
    Path("results", "1.jsonl.holder").symlink_to(victim)
    journal(Path("results", "1.jsonl"))
    assert victim.read_text() == VICTIM


def test_a_linked_folder_in_the_place_of_one_is_replaced(victim):
    for make in (new_folder, lambda path: write_answers(path, table_of(["x"]))):
        Path("results", "out").symlink_to(victim.parent)
        make(Path("results", "out"))
        assert not Path("results", "out").is_symlink()
        assert victim.read_text() == VICTIM
        assert os.listdir(victim.parent) == ["victim"]
        new_folder("results/out").rmdir()


@pytest.mark.parametrize("absolute", [False, True])
def test_a_folder_that_leads_out_of_results_is_refused(victim, absolute):
    Path(".snakemake").mkdir()
    Path("results", "report").symlink_to(victim.parent)
    folder = Path("results", "report").absolute() if absolute else Path("results", "report")
    for name in ("victim", "new/deep"):
        with pytest.raises(UserError, match=r"leads out of .*results/ by a link"):
            write_text(folder / name, "x")
    with pytest.raises(UserError, match="leads out of"):
        new_folder(folder / "victim")
    with pytest.raises(SystemExit):
        log_to(folder / "x.log")
    assert victim.read_text() == VICTIM
    assert os.listdir(victim.parent) == ["victim"]


def test_results_may_be_a_link_as_a_whole(victim):
    Path("results").rmdir()
    Path("results").symlink_to(victim.parent)
    write_text("results/report/index.html", "x")
    new_folder("results/export")
    assert sorted(os.listdir(victim.parent)) == ["export", "report", "victim"]
    # A link from one place of it to another stays inside.
    Path("results", "last").symlink_to("report")
    write_text("results/last/index.html", "y")
    assert Path("results/report/index.html").read_text() == "y"
