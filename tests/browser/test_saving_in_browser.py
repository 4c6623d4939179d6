"""Figures and tables that a reader takes from a page, as files, in Chromium."""

import csv
import struct
from pathlib import Path
from xml.etree import ElementTree

import pytest

from launchwise.base.typed import read_yaml
from tests.support.browsing import load, media
from tests.support.report_pages import RUN
from tests.support.supervising import until

pytestmark = pytest.mark.browser

SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture
def saved(opened, tmp_path):
    """Folder that the browser saves files in."""
    allow = {"behavior": "allow", "downloadPath": str(tmp_path)}
    opened.execute_cdp_cmd("Browser.setDownloadBehavior", allow)
    yield tmp_path
    opened.execute_cdp_cmd("Browser.setDownloadBehavior", {"behavior": "default"})


def press(browser, inside, kind, folder, end=None):
    """Save by keyboard; the file once it is whole."""
    button = browser.execute_script(
        "const near = document.querySelector(arguments[0]);"
        "const box = near.closest('figure') ?? near.closest('.scroll').nextElementSibling;"
        "for (let at = box; at; at = at.parentElement) if (at.matches('details')) at.open = true;"
        "return [...box.querySelectorAll('.save button, button')]"
        ".find((one) => one.textContent === arguments[1])",
        inside,
        kind,
    )
    return saved_by(browser, button, end or f".{kind.lower()}", folder)


def saved_by(browser, button, end, folder):
    """The file that a button saves."""
    keys, before = pytest.importorskip("selenium.webdriver.common.keys").Keys, {*folder.iterdir()}
    button.send_keys(keys.ENTER)
    browser.execute_async_script("launchwiseSaved.then(() => arguments[0]())")

    def new():
        # It is empty until it is whole.
        files = [path for path in folder.iterdir() if path.suffix == end and path not in before]
        return [path for path in files if path.stat().st_size]

    return until(new, "a saved file")[0]


def rows_of(path):
    with path.open(encoding="utf-8", newline="") as file:
        return list(csv.reader(file))


def test_a_figure_is_saved_with_its_panels_and_its_legend(opened, saved):
    found = press(opened, "#fig-tiny-rate", "SVG", saved)
    assert found.name == "tiny-rate.svg"
    root = ElementTree.parse(found).getroot()
    caption = opened.execute_script(
        "return document.querySelector('#fig-tiny-rate figcaption').textContent"
    )
    assert root.findtext(f"{SVG}desc") == caption.strip()
    shown = opened.execute_script(
        "const box = document.querySelector('#fig-tiny-rate');"
        "return [[...box.querySelectorAll('.keys li, .panel-title')].map((one) => "
        "one.textContent.trim()), box.querySelectorAll('.panel').length]"
    )
    texts = [text.text for text in root.iter(f"{SVG}text")]
    assert set(shown[0]) <= set(texts)
    plots = [one for one in root.findall(f"{SVG}svg") if one.get("class") == "main-svg"]
    assert len(plots) == shown[1]
    assert all(list(plot.iter(f"{SVG}path")) for plot in plots)
    # Nothing is loaded from elsewhere, and no variable of the page is left.
    assert "var(" not in found.read_text(encoding="utf-8")
    # For print.
    picture = press(opened, "#fig-tiny-rate", "PNG", saved).read_bytes()
    width, height = struct.unpack(">II", picture[16:24])
    assert (width, height) == (3 * int(root.get("width", 0)), 3 * int(root.get("height", 0)))


def test_a_table_is_saved_as_csv_with_units(opened, saved):
    found = press(opened, "#tiny-sure table", "CSV", saved)
    assert found.name == "tiny-What-answers-reach-on-held-out-sizes-geometric-means.csv"
    heading, first, *_ = rows_of(found)
    assert heading[:4] == ["GPU", "answered by", "mean (of the best)", "speed-up (× usual)"]
    assert first[:4] == ["big", "kNN", "0.894", "1.79"]
    # What stands small in a cell has a column of its own.
    load(opened, opened.current_url.partition("tiny/")[0] + "index.html")
    heading, row = rows_of(press(opened, "#kernels table", "CSV", saved))
    assert [*heading[:2], heading[-1]] == ["kernel", "kernel, detail", "verdict"]
    assert [row[1], row[-1]] == ["2 test problems", "too few problems to tell"]


def test_a_table_is_saved_for_latex(opened, saved):
    found = press(opened, "#tiny-cost table", "LaTeX", saved, ".tex")
    assert found.name == "tiny-Time-that-the-baseline-loses-over-the-fastest.tex"
    lines = found.read_text(encoding="utf-8").splitlines()
    assert lines[:3] == [
        r"\begin{table}",
        r"\caption{Time that the baseline loses over the fastest}",
        r"\begin{tabular}{lrrr}",
    ]
    assert lines[4].startswith(r"problems & big, mean (\%, geometric) & big, most (\%) & ")
    assert r"float32, order=2 & 100 & 100 (at n=102) & 102 (all 2 sizes) \\" in lines[6]


def test_the_citation_is_saved_for_bibtex(opened, saved):
    button = opened.execute_script(
        "return [...document.querySelectorAll('footer button')]"
        ".find((one) => one.textContent === 'BibTeX')"
    )
    found = saved_by(opened, button, ".bib", saved)
    assert found.name == "launchwise.bib"
    assert found.read_text(encoding="utf-8") == RUN.bibtex
    cited = read_yaml(Path(__file__).resolve().parents[2] / "CITATION.cff")
    author = f"  author = {{{{{cited['authors'][0]['name']}}}}},"
    assert RUN.bibtex.splitlines()[:3] == [
        *("@software{launchwise2026,", author, f"  title = {{{cited['title']}}},")
    ]
    assert "  version = {1.2},\n" in RUN.bibtex


def test_a_table_built_by_a_script_is_named_by_what_was_asked(browser, folder, saved):
    load(browser, folder / "gpus.html")
    browser.execute_async_script("launchwiseCompared.then(() => arguments[0]())")
    found = press(browser, ".compared table", "CSV", saved)
    assert found.name.startswith("tiny-")
    assert "speed-relative-to-big" in found.name
    heading, *rows = rows_of(found)
    assert heading[0] == "GPU"
    assert all(len(row) == len(heading) for row in rows)
    speed = heading.index("speed (× big)")
    assert {row[0]: row[speed] for row in rows}["big"] == "1"


def test_every_figure_and_table_can_be_saved_and_paper_shows_no_button(browser, folder):
    for page in sorted(folder.rglob("*.html")):
        load(browser, page)
        counts = browser.execute_script(
            "const count = (what) => document.querySelectorAll(what).length;"
            "return [count('main figure'), count('main table'), "
            "[...document.querySelectorAll('.save button')].map((one) => one.textContent), "
            "[...document.querySelectorAll('.save button')].map((one) => one.ariaLabel)]"
        )
        figures, tables, kinds, labels = counts
        wanted = ["SVG", "PNG"] * figures + ["CSV", "LaTeX"] * tables + ["BibTeX"]
        assert sorted(kinds) == sorted(wanted)
        assert all(len(label) > 8 for label in labels)
    left = "return [...document.querySelectorAll('.save')].some((one) => one.offsetParent)"
    with media(browser, "print"):
        assert not browser.execute_script(left)
