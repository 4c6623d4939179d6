"""Every statement of a ratio of two GPUs on the pages of a report, wherever it stands."""

from __future__ import annotations

import csv
import math
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from recomputing.comparing import agrees
from recomputing.pages import ShownPage, ShownTable, read_page, read_script

NUMBER = re.compile(r"(?<![\w.])\d+\.\d+(?![\w.])")

COMPARES = re.compile(r"times as|faster|slower|relative to|\bover\b|\bthan\b|×|\bratio\b|\btie\b")
"""What a sentence that compares two GPUs says."""


class Statement(NamedTuple):
    """Numbers that a page gives for one GPU over another; ``study`` is empty for all studies."""

    page: str
    study: str
    gpu: str
    other: str
    numbers: tuple[str, ...]


def known(folder: Path) -> dict[tuple[str, str], list[tuple[str, list[float]]]]:
    """GPU and other to (name of study or kernel, ratio and its limits), each pair both ways."""
    found: dict[tuple[str, str], list[tuple[str, list[float]]]] = {}
    with open(folder / "data" / "card_ratios.csv", newline="", encoding="utf-8") as handle:
        for row in csv.DictReader(handle):
            numbers = [float(row[name]) for name in ("ratio", "low", "high") if row[name]]
            turned = [1 / numbers[0], *(1 / end for end in reversed(numbers[1:]))]
            found.setdefault((row["gpu"], row["other"]), []).append((row["name"], numbers))
            found.setdefault((row["other"], row["gpu"]), []).append((row["name"], turned))
    return found


def statements(folder: Path) -> Iterator[Statement]:
    """Of every page and every data script of the comparison."""
    gpus = {gpu for pair in known(folder) for gpu in pair}
    for path in sorted(folder.rglob("*.html")):
        name = path.relative_to(folder).as_posix()
        page = read_page(folder, name)
        study = name.partition("/")[0] if "/" in name else ""
        yield from _of_sentences(page, study, gpus)
        for table in page.tables:
            yield from _of_table(table, name, study, gpus)
    for path in sorted(folder.glob("data/*.gpus.js")):
        data, study = read_script(path), path.name.partition(".")[0]
        names = [each["name"] for each in data["gpus"]]
        for gpu, other, _, _, *numbers in data["ratios"]:
            texts = tuple(f"{one:.5g}" for one in numbers if one is not None)
            yield Statement(path.name, study, names[gpu], names[other], texts)


def _of_sentences(page: ShownPage, study: str, gpus: set[str]) -> Iterator[Statement]:
    """The first GPU that a sentence names, over each other one with the numbers behind its name.
    A sentence that gives the first a number of its own gives each GPU one, and compares none."""
    names = "|".join(sorted(map(re.escape, gpus), key=len, reverse=True))
    for _, said in page.sentences:
        if not COMPARES.search(said.text):
            continue
        named = re.finditer(rf"(?<![\w.])(?:{names})(?!\w|\.\w)", said.text)
        first, *rest = [*named] or [None]
        if not rest or NUMBER.search(said.text[first.end() : rest[0].start()]):
            continue
        for at, found in enumerate(rest):
            end = rest[at + 1].start() if at + 1 < len(rest) else len(said.text)
            if first[0] != found[0] and (numbers := NUMBER.findall(said.text[found.end() : end])):
                yield Statement(page.path, study, first[0], found[0], tuple(numbers))


def _of_table(table: ShownTable, page: str, study: str, gpus: set[str]) -> Iterator[Statement]:
    for row in table.rows:
        for heading, cell in zip(table.headings[1:], row[1:], strict=True):
            numbers = tuple(NUMBER.findall(f"{cell.text} {cell.detail}"))
            if heading.detail.startswith("per run"):
                continue  # cost
            # Two cards are named above the table, above the column, or at the beginning of the row.
            named = [(table.caption, "over"), (heading.text, "/"), (row[0].text, "over")]
            pairs = (re.fullmatch(rf"(\S+) {sign} (\S+)", text) for text, sign in named)
            pair = next((one for one in pairs if one and gpus >= {*one.groups()}), None)
            if pair and numbers:
                yield Statement(page, study, pair[1], pair[2], numbers)


def wrong(folder: Path) -> list[Statement]:
    """Statements whose numbers are not all of one ratio in the report's table."""
    table = known(folder)
    return [
        one
        for one in statements(folder)
        if not any(
            all(any(_fits(text, number) for number in numbers) for text in one.numbers)
            for name, numbers in table.get((one.gpu, one.other), [])
            if one.study in ("", name)
        )
    ]


def _fits(text: str, number: float) -> bool:
    """Whether a number rounds to a text; the file and the script's data round to five digits."""
    return agrees(text, number) or math.isclose(float(text), number, rel_tol=1e-4)
