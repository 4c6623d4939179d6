"""Numbers in a document that read like measured figures."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

NUMBER = r"(?:\d{1,3}(?:[ ]\d{3})+(?!\d)|\d+(?:\.\d+)?|\.\d+)(?:e-?\d+)?"
"""A number as documents write it: 1 250, 0.5, .98, 2e-5."""

WORDS = "two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|fifteen|twenty"
PARTS = "half|third|quarter|fifth|sixth|seventh|eighth|ninth|tenth"

_UNIT = (
    r"(?:%|percent\b|[mµun]?s\b(?!-)|min\b|minutes?\b|seconds?\b|milliseconds?\b|nanoseconds?\b"
    r"|hours?\b|days?\b|[kMGT]i?B\b|[kMGT]?FLOP\b|GPts\b|[MG]Hz\b|W\b|k?J\b|°C|cycles?\b"
    r"|x\b(?!\s+\d)|×(?!\s*\d)|times\b|-fold\b)"
)
_IN_TEXT = re.compile(
    rf"(?<![\w.^/@#\-]){NUMBER}(?![\w^]|\.\d)|(?<![\w.^/@#\-]){NUMBER}(?=x\b|[mµun]?s\b|[kMGT]i?B\b)"
)
_MEASURED = re.compile(rf"\s*-?{_UNIT}|\s+(?:[a-z]+\s+)?per\b|\s+of(?:\s+the|\s+all)?\s+\d")
_SECOND_OF_RATIO = re.compile(r"\d\s+of(?:\s+the|\s+all)?\s+$")
_BETWEEN = re.compile(r"\s*(?:,|,?\s+(?:and|or|to|against)|,\s*again|–|/)\s*")
_IN_WORDS = re.compile(
    rf"\b(?:{WORDS})\b(?=(?:\s+(?:and|to|or)\s+(?:{WORDS}))?\s+"
    rf"(?:times|seconds|minutes|hours|percent|orders)\b)|\b(?:{PARTS})s?(?=\s+of\b)|\btwice\s+(?:as|the)\b",
    re.IGNORECASE,
)
_NO_PROSE = re.compile(
    r"^(?P<fence>```+|~~~+).*?^(?P=fence)\s*$"  # code
    r"|<!--.*?-->|`[^`\n]+`|(?<=\])\([^)\s]*\)|\S*https?://\S+",
    re.DOTALL | re.MULTILINE,
)
_NAMED = re.compile(
    r"\b9[05]\s%(?=\sinterval)|\bmore\sthan\s2\s%|\bPython\s3\.11\b|\b20\s000\sreviews\b"
)
"""What is defined once and named often, such as when an answer is slower."""
_TABLE_ROW = re.compile(r"^\s*\|(?P<cells>.*)\|\s*$", re.MULTILINE)
_CELL = re.compile(rf"\s*\(?{NUMBER}")
_NAMES = re.compile(r"[^\W\d_]{3,}")
MOST_WORDS = 3  # Most words, of three letters or more, of a table's cell that holds a number
_TABLE_LINE = re.compile(r"^\s*\|(?:\s*:?-+:?\s*\|)+\s*$", re.MULTILINE)


@dataclass(frozen=True)
class Figure:
    """A number in a document: where it begins and ends, and its text."""

    start: int
    end: int
    text: str


def prose(text: str) -> str:
    """``text``, as long as it was, with code, comments and addresses replaced by ``·``."""
    for pattern in (_NO_PROSE, _NAMED):
        text = pattern.sub(lambda found: re.sub(r"[^\n]", "·", found[0]), text)
    return text


def figures(text: str) -> list[Figure]:
    """Numbers in a Markdown document that read like measured figures, in order.

    A number does that has a decimal point or an exponent, or is 1 000 or more; that a unit, "per",
    "times" or "of 24" follows; or that stands in a cell of a table behind the first column that
    says little else. One such number makes figures of all of its list ("15 and 11 s"). So do "three
    times", "a third of" and "twice as". Code, comments and addresses are left out.
    """
    plain = prose(text)
    found = {_figure(match) for match in _IN_WORDS.finditer(plain)}
    cells = list(_cells_of_numbers(plain))
    for numbers in _lists(plain):
        last = numbers[-1]
        if (
            _SECOND_OF_RATIO.search(plain, 0, numbers[0].start())
            or any(re.search(r"[.e ]", one[0]) for one in numbers)
            or any(_MEASURED.match(plain, one.end()) for one in numbers)
            or any(start <= last.start() < end for start, end in cells)
        ):
            found |= {_figure(one) for one in numbers}
    return sorted(found, key=lambda each: each.start)


def _lists(plain: str) -> Iterator[list[re.Match[str]]]:
    """Numbers that belong together, such as the two of "15 and 11 s"."""
    together: list[re.Match[str]] = []
    for one in _IN_TEXT.finditer(plain):
        if together and not _BETWEEN.fullmatch(plain, together[-1].end(), one.start()):
            yield together
            together = []
        together.append(one)
    if together:
        yield together


def _figure(match: re.Match[str]) -> Figure:
    return Figure(match.start(), match.end(), match[0])


def _cells_of_numbers(plain: str) -> Iterator[tuple[int, int]]:
    """Where tables hold cells that begin with a number and say little else: start and end. Heads
    and first columns are left out."""
    lines = {match.start() for match in _TABLE_LINE.finditer(plain)}
    for row in _TABLE_ROW.finditer(plain):
        if row.end() + 1 in lines or row.start() in lines:
            continue
        place = row.start("cells")
        for column, cell in enumerate(row["cells"].split("|")):
            if column and _CELL.match(cell) and len(_NAMES.findall(cell)) <= MOST_WORDS:
                yield place, place + len(cell)
            place += len(cell) + 1
