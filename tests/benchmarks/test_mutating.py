"""Mutants of a source: one change each, of logic alone."""

from pathlib import Path

import yaml
from harness.mutating import mutants

DATA = Path(__file__).with_name("data")
TEXT = (DATA / "mutated.txt").read_text()
MUTANTS = yaml.safe_load((DATA / "mutated.yaml").read_text())


def test_every_change_is_one_of_logic():
    found = mutants("a.py", TEXT)
    assert [[one.line, one.old, one.new] for one in found] == MUTANTS
    assert [one.line for one in found if one.at_import] == [8, 11]
