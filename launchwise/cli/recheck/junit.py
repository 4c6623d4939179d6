"""Verdicts as a JUnit file, which the services of continuous integration show per test."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from collections.abc import Sequence
from typing import Any

import launchwise
from launchwise.cli.recheck.rechecking import Rechecked, lines_of_row, problem_of


def as_junit(found: Sequence[Rechecked]) -> str:
    """A suite per study and GPU, a test per problem: stale fails, unknown is skipped."""
    suites = ET.Element("testsuites", name="launchwise recheck")
    for each in found:
        counts = each.table["verdict"].value_counts()
        suite = ET.SubElement(
            suites,
            "testsuite",
            name=f"{each.study} on {each.gpu}",
            tests=str(len(each.table)),
            failures=str(counts.get("stale", 0)),
            skipped=str(counts.get("unknown", 0)),
            errors="0",
        )
        properties = ET.SubElement(suite, "properties")
        for name, value in _conditions(each).items():
            ET.SubElement(properties, "property", name=name, value=value)
        for _, row in each.table.iterrows():
            _add_test(suite, each, row)
    ET.indent(suites)
    return ET.tostring(suites, encoding="unicode", xml_declaration=True) + "\n"


def _conditions(found: Rechecked) -> dict[str, str]:
    names = ("card", "driver", "toolkit", "known_card", "known_driver", "known_toolkit")
    values = {name: ", ".join(dict.fromkeys(found.table[name])) for name in names}
    return {"launchwise": launchwise.__version__, **values}


def _add_test(suite: ET.Element, found: Rechecked, row: Any) -> None:
    name, group = problem_of(row, found.spec), f"{found.study}.{found.gpu}"
    test = ET.SubElement(suite, "testcase", classname=group, name=name)
    kind = {"stale": "failure", "unknown": "skipped"}.get(row["verdict"])
    text = "\n".join(line.strip() for line in lines_of_row(row, found.spec))
    if kind:
        reason = row["reason"] or row["verdict"]
        ET.SubElement(test, kind, message=reason).text = text
    else:
        ET.SubElement(test, "system-out").text = text
