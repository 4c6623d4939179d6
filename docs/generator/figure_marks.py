"""Marks in Markdown comments: where a figure of a document comes from.

Behind a figure ``<!-- = SOURCE VALUE -->`` names the value that it quotes (see
:mod:`figure_sources`); ``<!-- REASON -->`` says why it is no measurement of this project. On a line
of its own, a reason is that of the whole paragraph, list or table below.
``<!-- sources: NAME = SOURCE PATH; ... -->`` gives short names to sources, or to what stands at a
path in them, from there on.

Above a table ``<!-- table SOURCE PATH`` and lines in the form of rows make its rows: each element
that the path takes gives these lines once, with ``{VALUE}`` or ``{VALUE:FORMAT}`` filled in, values
relative to the element, or, behind ``/``, to the source; ``{*}`` is its name, ``[*]`` the same
within a path; ``{VALUE?}`` may be missing. Further sources and rows may follow.
"""

from __future__ import annotations

import re
from bisect import bisect
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from docs.generator.figure_sources import (
    Element,
    NoValueError,
    Sources,
    as_written,
    formatted,
    value_at,
)
from docs.generator.figure_text import NUMBER, figures

REASONS = frozenset({"definition", "setting", "example", "published", "estimate"})
"""First word of an exemption; after ``published:`` stands the publication."""

_PIECES = re.compile(
    r"(?P<code>^(?P<fence>```+|~~~+).*?^(?P=fence)\s*$|`[^`\n]+`)|<!--\s*(?P<mark>.*?)\s*-->",
    re.DOTALL | re.MULTILINE,
)
_FIGURE = re.compile(rf"(?<![\w.]){NUMBER}\Z")
_WORD = re.compile(r"(?<!\w)[A-Za-z]+\Z")
_HEAD = re.compile(r"\s*(?P<head>\|[^\n]*\n\|[-:| ]+\n)(?P<rows>(?:\|[^\n]*(?:\n|\Z))*)")
_BLOCK = re.compile(r"\s*(?P<block>.+?)(?=\n[ \t]*\n|\s*\Z)", re.DOTALL)
_FIELD = re.compile(r"\{([^{}:]*)(?::([^{}]*))?\}")


@dataclass(frozen=True)
class Span:
    """A part of a document that a mark speaks for, with what is to stand there."""

    start: int
    end: int
    text: str | None = None
    """None where the mark is an exemption."""


@dataclass
class Marked:
    """What the marks of a document say.

    ``spans``: parts that marks speak for.
    ``attached``: where marks stand directly behind a figure: start and end.
    ``complaints``: what is wrong with marks: one line each.
    """

    name: str
    text: str
    spans: list[Span] = field(default_factory=list)
    attached: list[tuple[int, int]] = field(default_factory=list)
    complaints: list[str] = field(default_factory=list)

    def complain(self, place: int, what: str) -> None:
        """Add a complaint about what stands at ``place``."""
        self.complaints.append(f"{self.name}:{self.text.count(chr(10), 0, place) + 1}: {what}")


def read_marks(name: str, text: str, root: Path) -> Marked:
    """Marks of a document; ``text`` is Markdown."""
    marked, sources = Marked(name, text), Sources(root)
    for piece in _PIECES.finditer(text):
        if piece["code"] is not None:
            continue
        mark, start, end = piece["mark"], piece.start(), piece.end()
        attached = start > 0 and not text[start - 1].isspace()
        try:
            if mark.startswith("sources:"):
                sources.name(mark.removeprefix("sources:"))
            elif mark.startswith("table "):
                marked.spans.append(_table(mark, text, end, sources))
            elif attached:
                marked.attached.append((start, end))
                marked.spans.append(_figure(mark, text, start, sources))
            elif _reason(mark) and text[:start].rstrip(" ")[-1:] in ("", "\n"):
                marked.spans.append(_exempt_block(mark, text, end))
        except NoValueError as error:
            marked.complain(start, f"{' '.join(mark.split())[:80]}: {error}")
    return marked


def _reason(mark: str) -> bool:
    return mark.partition(":")[0] in REASONS


def _exempt_block(mark: str, text: str, end: int) -> Span:
    _check_reason(mark)
    block = _BLOCK.match(text, end)
    if block is None:
        raise NoValueError("stands above nothing")
    return Span(*block.span("block"))


def _check_reason(mark: str) -> None:
    reason, _, publication = mark.partition(":")
    if reason not in REASONS or (reason == "published") != bool(publication.strip()):
        raise NoValueError(
            "is neither `= SOURCE VALUE` nor one of " + ", ".join(sorted(REASONS)) + "; "
            "published: needs its publication"
        )


def _figure(mark: str, text: str, start: int, sources: Sources) -> Span:
    number = _FIGURE.search(text, max(0, start - 40), start)
    if not mark.startswith("="):
        _check_reason(mark)
        number = number or _WORD.search(text, max(0, start - 40), start)
        if number is None:
            raise NoValueError("stands behind no figure")
        return Span(*number.span())
    if number is None:
        raise NoValueError("stands behind no number")
    source, _, value = " ".join(mark.removeprefix("=").split()).partition(" ")
    real = value_at(value, sources.content(source))
    return Span(*number.span(), as_written(real, number[0]))


def _table(mark: str, text: str, end: int, sources: Sources) -> Span:
    table = _HEAD.match(text, end)
    if table is None:
        raise NoValueError("stands above no table")
    columns = table["head"].splitlines()[0].count("|")
    rows = list(_rows(mark.removeprefix("table ").splitlines(), sources))
    if wrong := [row for row in rows if row.count("|") != columns]:
        raise NoValueError(f"a row has other columns than the head: {wrong[0]}")
    return Span(*table.span("rows"), "".join(f"{row}\n" for row in rows))


def _rows(lines: list[str], sources: Sources) -> Iterator[str]:
    """Rows of a table: each selection's elements with the templates below it."""
    selections: list[tuple[str, list[str]]] = []
    for line in map(str.strip, lines):
        if line.startswith("|"):
            selections[-1][1].append(line)
        elif line:
            selections.append((line, []))
    for selection, templates in selections:
        source, _, path = selection.partition(" ")
        whole = sources.content(source)
        for element in sources.elements(source, path):
            yield from (_filled_row(template, element, whole) for template in templates)


def _filled_row(template: str, element: Element, source: Any) -> str:
    return _FIELD.sub(lambda found: _filled(found, element, source), template)


def _filled(found: re.Match[str], element: Element, source: Any) -> str:
    path = found[1].removesuffix("?").replace("[*]", element.name)
    try:
        value = element.name if path == "*" else value_at(path, element.content, source)
    except NoValueError:
        if not found[1].endswith("?"):
            raise
        value = None
    return formatted(value, found[2] or "")


def rewritten(marked: Marked) -> str:
    """The document with the values of today."""
    text = marked.text
    for span in sorted(marked.spans, key=lambda one: one.start, reverse=True):
        if span.text is not None:
            text = text[: span.start] + span.text + text[span.end :]
    return text


def check(name: str, text: str, root: Path) -> list[str]:
    """What is wrong with the figures of a document: one line each, none where all is well."""
    marked = read_marks(name, text, root)
    for span in marked.spans:
        stands = text[span.start : span.end]
        if span.text is not None and span.text != stands:
            old, new = _first_difference(stands, span.text)
            marked.complain(span.start, f"{old!r} is {new!r} in the source (make figures)")
    _check_all_are_marked(marked)
    return marked.complaints


def _first_difference(stands: str, real: str) -> tuple[str, str]:
    old, new = stands.splitlines(), real.splitlines()
    for one, other in zip(old, new, strict=False):
        if one != other:
            return one, other
    return f"{len(old)} rows", f"{len(new)} rows"


def _check_all_are_marked(marked: Marked) -> None:
    """Complain about figures without a mark, and about exemptions of nothing."""
    plain, places = marked.text, [(0, 0)]
    for start, end in reversed(marked.attached):
        plain = plain[:start] + plain[end:]
    removed = 0
    for start, end in marked.attached:
        removed += end - start
        places.append((start - removed + end - start, removed))
    starts = [place for place, _ in places]

    def original(place: int) -> int:
        return place + places[bisect(starts, place) - 1][1]

    exempt = {span for span in marked.spans if span.text is None}
    for one in figures(plain):
        start, last = original(one.start), original(one.end - 1)
        speakers = {span for span in marked.spans if span.start <= last and start < span.end}
        exempt -= speakers
        if not speakers:
            words = " ".join(plain[max(0, one.start - 40) : one.end + 20].split())
            marked.complain(start, f"{one.text} has no mark: … {words} …")
    for span in sorted(exempt, key=lambda one: one.start):
        words = " ".join(marked.text[span.start : span.end].split())[:40]
        marked.complain(span.start, f"the exemption of {words!r} exempts nothing")
