"""Mutants of a source: one change each, of logic alone."""

from harness.mutating import mutants

TEXT = '''\
"""A module; 1 < 2."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from x import y

LIMIT: "1" = 2.5


def largest(values: list[Any], least: float = 0.5) -> float:
    """At least 3."""
    found = max(values)  # ä < ö
    if found < least and not values:
        raise ValueError(f"{1 + 1} is wrong")
    values.sort()
    found *= 1 if found is None else 2
    return (found + LIMIT) * 3
'''


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
