"""What a rule does not inherit is written again."""

from __future__ import annotations

import re

from samples import ROOT

RULE = re.compile(
    r"^(?:rule (\w+)|use rule (\w+) as (\w+) with):\n((?:[ \t].*\n|\n)*)", re.MULTILINE
)


def test_a_rule_that_inherits_from_a_local_one_is_local() -> None:
    """Else it becomes a job of the cluster."""
    found = [
        groups
        for path in (ROOT / "rules").glob("*.smk")
        for groups in RULE.findall(path.read_text())
    ]
    local = {name or new: "localrule: True" in body for name, _, new, body in found}
    inherited = {new: base for _, base, new, _ in found if base}
    assert {"record_blind", "blind_pairs", "recheck_pairs"} <= inherited.keys()
    assert [new for new, base in inherited.items() if local[base] and not local[new]] == []
