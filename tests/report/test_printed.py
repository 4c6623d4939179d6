"""Figures and tables of the report as files: complete, readable, the same twice."""

from __future__ import annotations

import json
import math
import re
import zlib
from pathlib import Path
from xml.etree import ElementTree

import pandas as pd
import pyarrow.parquet as pq
import pytest

from launchwise.report.assemble import pages
from launchwise.report.blocks import Cell, Column, Drawing, Figure, Panel, Table, table
from launchwise.report.page import every_block
from launchwise.report.printed import drawings, figures, tables
from launchwise.report.printed.exports import CITATION, LIST, export
from tests.support.report_pages import RUN
from tests.support.report_study import study

SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Exports of every page of a small study."""
    found = tmp_path_factory.mktemp("exports")
    export(pages([study()], RUN), "tiles", found, RUN.citation)
    return found


def listed(folder: Path) -> dict[str, list[dict[str, object]]]:
    text = (folder / LIST).read_text(encoding="utf-8")
    found: dict[str, list[dict[str, object]]] = json.loads(text.split("] = ", 1)[1].rstrip(";\n"))
    return found


def test_every_figure_and_table_of_a_page_is_a_file_in_two_formats(folder: Path) -> None:
    for page in pages([study()], RUN):
        blocks = [
            block
            for block in every_block(page.sections)
            if isinstance(block, Figure | Drawing | Table)
        ]
        files = listed(folder)[page.path]
        assert [each["caption"] for each in files] == [block.caption for block in blocks]
        for each, block in zip(files, blocks, strict=True):
            names = [str(name) for name in each["files"]]  # type: ignore[attr-defined]
            kinds = ["csv", "parquet"] if isinstance(block, Table) else ["svg", "pdf"]
            assert [name.rsplit(".", 1)[1] for name in names] == kinds
            assert all((folder / name).stat().st_size > 0 for name in names)


def test_no_two_figures_or_tables_share_a_file(folder: Path) -> None:
    names = [name for page in listed(folder).values() for each in page for name in each["files"]]  # type: ignore[attr-defined]
    assert len(names) == len(set(names)) > 40
    written = [path for part in ("figures", "tables") for path in (folder / part).iterdir()]
    assert len(written) == len(names)


def test_every_figure_is_a_picture_that_says_where_it_comes_from(folder: Path) -> None:
    assert RUN.citation in (folder / CITATION).read_text(encoding="utf-8")
    assert "Commit ccccccc" in RUN.citation
    for path in (folder / "figures").glob("*.svg"):
        root = ElementTree.fromstring(path.read_text(encoding="utf-8"))
        assert root.tag == f"{SVG}svg"
        drawn = [each for each in root.iter() if each.tag in (f"{SVG}path", f"{SVG}rect")]
        assert len(drawn) >= 3
    for path in (folder / "figures").glob("*.pdf"):
        assert path.read_bytes().startswith(b"%PDF-")


def test_a_figure_is_the_same_bytes_twice(tmp_path: Path) -> None:
    blocks = [
        block
        for page in pages([study()], RUN)
        for block in every_block(page.sections)
        if isinstance(block, Figure)
    ]
    for place, figure in enumerate(blocks[:1]):
        once = figures.save(figure, tmp_path / f"a{place}", "cited")
        again = figures.save(figure, tmp_path / f"b{place}", "cited")
        assert [path.read_bytes() for path in once] == [path.read_bytes() for path in again]


def test_axes_of_a_figure_are_those_of_the_page() -> None:
    layout = {
        "xaxis": {"title": {"text": "n"}, "type": "log", "range": [1, 3]},
        "yaxis": {"title": {"text": "ms"}, "tickvals": [1, 2], "ticktext": ["one", "two"]},
    }
    trace = {"type": "scatter", "mode": "lines+markers", "x": [10, 100], "y": [1, None]}
    figure = Figure("f", "c", "a", [Panel("left", [trace], layout)])
    ax = figures.drawn(figure).axes[0]
    assert (ax.get_xlabel(), ax.get_xscale(), ax.get_xlim()) == ("n", "log", (10, 1000))
    assert [each.get_text() for each in ax.get_yticklabels()] == ["one", "two"]
    (line,) = ax.lines
    assert line.get_xdata().tolist() == [10, 100]
    assert math.isnan(line.get_ydata()[1])


@pytest.mark.parametrize(("count", "columns", "rows"), [(1, 1, 1), (2, 2, 1), (3, 3, 1), (4, 3, 2)])
def test_at_most_three_panels_stand_beside_each_other(count: int, columns: int, rows: int) -> None:
    layout: dict[str, dict[str, object]] = {"xaxis": {}, "yaxis": {}}
    panel = Panel("one", [{"type": "scatter", "mode": "markers", "x": [1], "y": [1]}], layout)
    width, height = figures.drawn(Figure("f", "c", "a", [panel])).get_size_inches()
    sheet = figures.drawn(Figure("f", "c", "a", [panel] * count))
    assert len(sheet.axes) == count
    assert sheet.get_size_inches().tolist() == pytest.approx([columns * width, rows * height])


def test_a_drawing_fills_its_paper(tmp_path: Path) -> None:
    line = '<path d="M0 12H96" stroke="black"/>'
    svg = f'<svg viewBox="0 0 96 48" xmlns="http://www.w3.org/2000/svg">{line}</svg>'
    _, path = drawings.save(Drawing("d", "c", "a", svg), tmp_path / "d", "cited")
    text = path.read_bytes()
    # Points, 72 of which are 96 pixels; y points upwards.
    assert re.search(rb"/MediaBox \[ 0 0 72 36 \]", text)
    streams = re.findall(rb"stream\r?\n(.*?)\r?\nendstream", text, flags=re.DOTALL)
    drawn = b"".join(zlib.decompress(one) for one in streams if one[:1] == b"x")
    assert b"0 27 m\n72 27 l" in drawn


def test_an_unknown_kind_of_plot_is_refused() -> None:
    layout: dict[str, dict[str, object]] = {"xaxis": {}, "yaxis": {}}
    panel = Panel("left", [{"type": "pie", "x": [], "y": []}], layout)
    with pytest.raises(ValueError, match="left: no 'pie' on paper"):
        figures.drawn(Figure("f", "c", "a", [panel]))


def test_an_unknown_element_of_a_drawing_is_refused(tmp_path: Path) -> None:
    svg = '<svg viewBox="0 0 9 9" xmlns="http://www.w3.org/2000/svg"><image/></svg>'
    with pytest.raises(ValueError, match="no 'image'"):
        drawings.save(Drawing("d", "c", "a", svg), tmp_path / "d", "cited")


def test_a_table_keeps_numbers_as_numbers_and_the_rest_as_text(tmp_path: Path) -> None:
    columns = [
        Column("GPU", number=False),
        Column("time", "ms", group="best"),
        Column("time", "ms", group="best"),
        Column("rows"),
        Column("range"),
    ]
    rows: list[list[str | Cell]] = [
        ["7", "1.5", "2e-05", "1\u202f200", "0.9 to 1.1"],
        [Cell("h200", detail="whole"), "–", "-3", "", "–"],
    ]
    paths = tables.save(table("Times", columns, rows), tmp_path / "times", "cited")
    names = ["GPU", "GPU, detail", "best: time (ms)", "best: time (ms) 2", "rows", "range"]
    for found in (pd.read_csv(paths[0], dtype={"GPU": str}), pd.read_parquet(paths[1])):
        assert list(found.columns) == names
        assert found["GPU"].tolist() == ["7", "h200"]
        assert found["best: time (ms)"].tolist()[0] == 1.5
        assert math.isnan(found["best: time (ms)"].tolist()[1])
        assert found["best: time (ms) 2"].tolist() == [2e-5, -3]
        assert found["rows"].tolist()[0] == 1200
        assert found["range"].tolist()[0] == "0.9 to 1.1"
    said = pq.read_schema(paths[1]).metadata
    assert (said[b"caption"], said[b"citation"]) == (b"Times", b"cited")
