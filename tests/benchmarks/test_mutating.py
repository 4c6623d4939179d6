"""Mutants of a source: one change each, of logic alone."""

from pathlib import Path

from harness.mutating import mutants

TEXT = Path(__file__).with_name("data").joinpath("mutated.txt").read_text()


def test_every_change_is_one_of_logic():
    found = mutants("a.py", TEXT)
    assert [(one.line, one.old, one.new) for one in found] == [
        (8, "2.5", "(2.5 + 1)"),
        (11, "0.5", "(0.5 + 1)"),
        (13, "max", "min"),
        (14, "<", "<="),
        (14, "and", "or"),
        (14, "not ", ""),
        (16, "values.sort()", "pass"),
        (17, "*=", "/="),
        (17, "1", "(1 + 1)"),
        (17, "is", "is not"),
        (17, "2", "(2 + 1)"),
        (18, "+", "-"),
        (18, "*", "/"),
        (18, "3", "(3 + 1)"),
    ]
    assert [one.line for one in found if one.at_import] == [8, 11]
