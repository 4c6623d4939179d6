"""What a page of the report shows: its tables, sentences and data scripts."""

from __future__ import annotations

import base64
import json
import re
import zlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

NUMBER = re.compile(r"(?<![\w.=-])[-+]?\d[\d\u202f]*(?:\.\d+)?(?:e[-+]?\d+)?(?![\w=]|\.\w)")
"""A number that is no part of a name, date or hash."""


@dataclass
class Shown:
    """A text of a page, and whether something was compared with it."""

    text: str = ""
    detail: str = ""
    seen: bool = False

    @property
    def numbers(self) -> int:
        """How many numbers it holds."""
        return len(NUMBER.findall(self.text)) + len(NUMBER.findall(self.detail))


Record = dict[str, Shown]  # a row: column to cell


@dataclass
class ShownTable:
    """A table; ``columns`` are headings with their unit in brackets, below their group."""

    section: str
    caption: str = ""
    groups: list[str] = field(default_factory=list)
    headings: list[Shown] = field(default_factory=list)
    rows: list[list[Shown]] = field(default_factory=list)

    @property
    def columns(self) -> list[str]:
        """Unique names: ``group: heading (unit)``."""
        groups = self.groups or [""] * len(self.headings)
        return [
            f"{group}: {named(one)}" if group else named(one)
            for group, one in zip(groups, self.headings, strict=True)
        ]

    def records(self) -> Iterator[Record]:
        """Its rows."""
        for row in self.rows:
            yield dict(zip(self.columns, row, strict=True))

    def rows_by(self, columns: Sequence[str]) -> dict[Any, Record]:
        """Texts of some columns, which count as compared, to rows; a text of one column."""
        found: dict[Any, Record] = {}
        for row in self._turned(columns[0]).records():
            key = tuple(row[name].text for name in columns)
            for name in columns:
                row[name].seen = True
            found[key if len(key) > 1 else key[0]] = row
        return found

    def _turned(self, first: str) -> ShownTable:
        """The table with a row per GPU, whichever way the page draws it."""
        if first in self.columns:
            return self
        found = ShownTable(self.section, self.caption, [], [Shown(first)])
        for row in self.rows:
            title, _, unit = row[0].text.removesuffix(")").rpartition(" (")
            found.headings.append(Shown(title, unit) if title else Shown(row[0].text))
        for place, heading in enumerate(self.headings):
            if place:
                found.rows.append([heading, *(row[place] for row in self.rows)])
        return found


def named(heading: Shown) -> str:
    """A heading with its unit in brackets."""
    return f"{heading.text} ({heading.detail})" if heading.detail else heading.text


@dataclass
class ShownPage:
    """A page: its tables and sentences in order."""

    path: str
    tables: list[ShownTable] = field(default_factory=list)
    sentences: list[tuple[str, Shown]] = field(default_factory=list)

    def tables_of(self, caption: str | tuple[str, ...]) -> list[ShownTable]:
        """Tables whose caption begins so, or with one of some."""
        return [one for one in self.tables if one.caption.startswith(caption)]


class _Reader(HTMLParser):
    """Fills a page; menus, controls and what is said to people without scripts are left out."""

    IGNORED = ("script", "style", "nav", "form", "noscript", "footer")
    INNER = ("detail", "unit")

    def __init__(self, path: str) -> None:
        super().__init__(convert_charrefs=True)
        self.page = ShownPage(path)
        self._section = ""
        self._ignored = 0
        self._into: Shown | None = None
        self._inner = 0
        self._row: list[Shown] = []
        self._part = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        given = {name: value or "" for name, value in attrs}
        kinds = given.get("class", "").split()
        if tag in self.IGNORED or "downloads" in kinds:
            self._ignored += 1
        elif self._ignored:
            self._ignored += tag == "details"
        elif tag == "section":
            self._section = given.get("id", "")
        elif tag == "table":
            self.page.tables.append(ShownTable(self._section))
        elif tag in ("thead", "tbody"):
            self._part = tag
        elif tag == "tr":
            self._row = []
            if self._part != "tbody":
                self._part = "groups" if "groups" in kinds else "thead"
        elif tag == "span" and (self._inner or given.get("class") in self.INNER):
            self._inner += 1
        elif tag in ("td", "th", "caption", "p", "li"):
            self._begin(tag, int(given.get("colspan", "1")))

    def _begin(self, tag: str, span: int) -> None:
        self._into = Shown()
        if tag in ("td", "th"):
            self._row += [self._into] * span
        elif tag in ("p", "li"):
            self.page.sentences.append((self._section, self._into))

    def handle_endtag(self, tag: str) -> None:
        if self._ignored:
            self._ignored -= tag in (*self.IGNORED, "details")
        elif tag == "span" and self._inner:
            self._inner -= 1
        elif tag == "tr":
            table = self.page.tables[-1]
            if self._part == "groups":
                table.groups = [each.text for each in self._row]
            elif self._part == "thead":
                table.headings = self._row
            else:
                table.rows.append(self._row)
        elif tag in ("td", "th", "caption", "p", "li") and self._into is not None:
            self._into.text, self._into.detail = self._into.text.strip(), self._into.detail.strip()
            if tag == "caption":
                self.page.tables[-1].caption = self._into.text
            self._into = None

    def handle_data(self, data: str) -> None:
        if not self._ignored and self._into is not None:
            text = re.sub(r"[ \t\n]+", " ", data)
            if self._inner:
                self._into.detail += text
            else:
                self._into.text += text


def read_page(folder: Path, path: str) -> ShownPage:
    """A page of a report's folder."""
    reader = _Reader(path)
    reader.feed((folder / path).read_text(encoding="utf-8"))
    reader.close()
    return reader.page


def read_script(path: Path) -> Any:
    """The value that a data script of the pages holds."""
    text = path.read_text(encoding="utf-8")
    return unpacked(json.loads(text.partition("] = ")[2].strip().removesuffix(";")))


def unpacked(text: str) -> Any:
    """The value of a text that is deflated and in base 85: in place of three digits of Python's
    library it has some that end no string and no element."""
    digits = text.replace(".", "&").replace(",", "<").replace(":", "`")
    return json.loads(zlib.decompress(base64.b85decode(digits)))
