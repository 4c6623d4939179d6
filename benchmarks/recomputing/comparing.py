"""Shown figures beside recomputed ones: what agrees, what differs, what was not compared."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from recomputing.pages import NUMBER, Record, Shown, ShownPage, ShownTable

MOST_LISTED = 50  # most differences of a table that the result lists; all are counted
FEW = 5  # values that a difference of long lists names

Figure = float | int | None
Wanted = str | Figure | Sequence[Figure]  # what a text must be, or the numbers that it must hold


@dataclass(frozen=True)
class Cell:
    """What a cell must say; its small print counts where ``detail`` is given. ``digits`` are
    significant ones, of numbers whose last digits before the point may be rounded."""

    text: Wanted
    detail: Wanted = None
    digits: int | None = None


Cells = Mapping[str, Wanted | Cell]  # column to what the cell of a row must say


def is_missing(value: Any) -> bool:
    """Whether there is no number: None or not finite."""
    return value is None or not math.isfinite(value)


def agrees(shown: str, value: Figure, digits: int | None = None) -> bool:
    """Whether a number rounds to what is shown of it.

    ``shown``: its text; what stands behind the last digit was rounded away.
    ``digits``: significant digits, of numbers whose last digits before the point may be rounded.
    """
    if is_missing(value):
        return False
    assert value is not None
    mantissa, _, exponent = shown.replace("\u202f", "").partition("e")
    unit = 10.0 ** (int(exponent or 0) - len(mantissa.partition(".")[2]))
    if digits is not None and value:
        # A value that rounding lifts to the next power of ten has a digit less.
        unit = max(unit, 10.0 ** (math.floor(math.log10(abs(value))) - digits + 1))
    number = float(shown.replace("\u202f", ""))
    return abs(number - value) <= unit / 2 * (1 + 1e-6) + 1e-12 * abs(value)


def rounds_to(shown: Figure, value: Figure, digits: int) -> bool:
    """Whether a number of a data script is a value to so many significant digits."""
    if is_missing(shown) or is_missing(value):
        return is_missing(shown) and is_missing(value)
    assert shown is not None
    assert value is not None
    if not value:
        return shown == 0
    unit = 10.0 ** (math.floor(math.log10(abs(value))) - digits + 1)
    return abs(shown - value) <= unit / 2 * (1 + 1e-6)


@dataclass
class Table:
    """Comparisons of one table or data file of a page.

    ``figures``: numbers and words compared.
    ``uncovered``: reason to the number of shown numbers that were not.
    """

    page: str
    name: str
    figures: int = 0
    different: int = 0
    differences: list[dict[str, Any]] = field(default_factory=list)
    uncovered: dict[str, int] = field(default_factory=dict)

    def _said(self, right: bool, place: str, shown: Any, recomputed: Any, count: int = 1) -> None:
        self.figures += count
        if right:
            return
        self.different += 1
        if len(self.differences) < MOST_LISTED:
            self.differences.append({"place": place, "shown": shown, "recomputed": recomputed})

    def numbers(self, place: str, shown: str, *values: Figure, digits: int | None = None) -> None:
        """Every number of a text, in order; a dash or nothing where all are missing."""
        texts = NUMBER.findall(shown)
        known = [value for value in values if not is_missing(value)]
        if not texts:
            self._said(not known, place, shown, list(values), max(1, len(values)))
            return
        right = len(texts) == len(values) and all(
            agrees(text, value, digits) for text, value in zip(texts, values, strict=True)
        )
        self._said(right, place, shown, list(values), len(values))

    def said(
        self, place: str, shown: str | Shown, wanted: Wanted, digits: int | None = None
    ) -> None:
        """A text that must be the same, or hold these numbers."""
        if isinstance(shown, Shown):
            shown.seen, shown = True, shown.text
        if isinstance(wanted, str):
            plain = [each.replace("\u202f", "") for each in (shown, wanted)]
            self._said(plain[0] == plain[1], place, shown, wanted)
        else:
            values = wanted if isinstance(wanted, Sequence) else [wanted]
            self.numbers(place, shown, *values, digits=digits)

    def row(self, place: str, row: Record, wanted: Cells) -> None:
        """The cells of a row."""
        for name, one in wanted.items():
            cell = one if isinstance(one, Cell) else Cell(one)
            self.said(f"{place}, {name}", row[name], cell.text, cell.digits)
            if cell.detail is not None:
                self.said(f"{place}, {name}, detail", row[name].detail, cell.detail)

    def same(self, place: str, shown: Any, value: Any) -> None:
        """Values of a data script, or names of rows, that must be equal; of lists what is not."""
        if isinstance(shown, list) and isinstance(value, list) and len(shown) > FEW:
            self._said(shown == value, place, _beside(shown, value), _beside(value, shown))
        else:
            self._said(shown == value, place, shown, value)

    def rounded(
        self, place: str, shown: Iterable[Figure], values: Sequence[Figure], digits: int
    ) -> None:
        """Numbers of a data script to so many digits; what both lack is no figure."""
        given = list(shown)
        if len(given) != len(values):
            self._said(False, place, f"{len(given)} numbers", f"{len(values)} numbers")
            return
        for at, (one, value) in enumerate(zip(given, values, strict=True)):
            known = not (is_missing(one) and is_missing(value))
            right = rounds_to(one, value, digits)
            self._said(right, f"{place}, number {at}", one, value, int(known))

    def plain(self) -> dict[str, Any]:
        """As JSON values."""
        return {
            "page": self.page,
            "table": self.name,
            "figures": self.figures,
            "differences": self.different,
            "listed": self.differences,
            "uncovered": self.uncovered,
        }


def _beside(values: Sequence[Any], others: Sequence[Any]) -> list[Any]:
    """The first values that are not those at their place among others."""
    rest: list[Any] = [*others[: len(values)], *[None] * (len(values) - len(others))]
    return [one for one, other in zip(values, rest, strict=True) if one != other][:FEW]


@dataclass
class Ledger:
    """Comparisons of a report, table by table."""

    tables: list[Table] = field(default_factory=list)

    def table(self, page: str, name: str) -> Table:
        """The comparisons of a table, begun if there are none."""
        for one in self.tables:
            if (one.page, one.name) == (page, name):
                return one
        self.tables.append(Table(page, name))
        return self.tables[-1]

    def beside(
        self,
        page: ShownPage,
        tables: str | Sequence[ShownTable],
        columns: Sequence[str],
        wanted: Mapping[Any, Cells | Callable[[Record], Cells]],
        name: str = "",
    ) -> None:
        """Compare the rows of some tables, or of those whose caption begins so; and no others.

        ``columns``: those that tell a row from others.
        ``wanted``: their texts (of one column a text) to the cells of the row, which may depend on
        it.
        ``name``: of the comparison, which then takes place even if the page lacks the table.
        """
        tables = page.tables_of(tables) if isinstance(tables, str) else tables
        if not tables and not name:
            return
        table = self.table(page.path, name or tables[0].caption)
        shown = {key: row for each in tables for key, row in each.rows_by(columns).items()}
        table.same("rows", sorted(shown), sorted(wanted))
        for key, row in shown.items():
            if (cells := wanted.get(key)) is not None:
                place = key if isinstance(key, str) else ", ".join(key)
                table.row(place, row, cells(row) if callable(cells) else cells)

    def leave(self, page: str, name: str, count: int, reason: str) -> None:
        """Count numbers that were not compared."""
        if count:
            uncovered = self.table(page, name).uncovered
            uncovered[reason] = uncovered.get(reason, 0) + count

    def leave_unseen(self, page: ShownPage, reasons: dict[str, str]) -> None:
        """Count every number of a page that nothing was compared with.

        ``reasons``: beginning of a table's caption to why; ``""`` for the others.
        """
        for table in page.tables:
            begins = sorted((one for one in reasons if table.caption.startswith(one)), key=len)
            unseen = sum(cell.numbers for row in table.rows for cell in row if not cell.seen)
            self.leave(page.path, table.caption, unseen, reasons[begins[-1]])
        said = sum(one.numbers for _, one in page.sentences if not one.seen)
        self.leave(page.path, "sentences", said, "limits and explanations in words")
