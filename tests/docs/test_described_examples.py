"""The examples of "Describe a kernel" are lines of workloads that the tests verify."""

from __future__ import annotations

import re

import pytest
from samples import ROOT

PAGE = ROOT / "docs" / "how-to" / "describe_a_kernel.md"
EXAMPLE = re.compile(
    r"\]\(\.\./\.\./(?P<spec>[^)]*spec\.yaml)\)[^`]*```yaml\n(?P<text>.*?)```", re.S
)
EXAMPLES = [(match["spec"], match["text"]) for match in EXAMPLE.finditer(PAGE.read_text())]


def test_every_example_names_its_workload() -> None:
    assert len(EXAMPLES) == PAGE.read_text().count("```yaml") > 5


@pytest.mark.parametrize(("spec", "text"), EXAMPLES)
def test_an_example_is_part_of_its_workload(spec: str, text: str) -> None:
    verified = {line.strip() for line in (ROOT / spec).read_text().splitlines()}
    for line in text.splitlines():
        assert line.strip() in verified
