"""A report of many GPUs still opens: tables paged or folded, pages no larger with every GPU."""

import pytest

from launchwise.report.site.assemble import MOST_GPUS
from launchwise.report.site.rendering import MOST_ROWS
from tests.support.browsing import choose, draw, load
from tests.support.many_gpus import copied
from tests.support.report_pages import files_of, write
from tests.support.report_study import study

pytestmark = [pytest.mark.browser, pytest.mark.slow]

OTHERS, FEW, MANY = 26, 60, 104
LAST = f"gpu{MANY - 1:04d}"


@pytest.fixture(scope="module")
def made(tmp_path_factory):
    """A report of many GPUs beside a second study; bytes of its files, and of one of few GPUs."""
    many = files_of(*(copied(study(), *one) for one in (("one", MANY), ("two", OTHERS))))
    few = files_of(copied(study(), "one", FEW))
    bytes_of = [{path: len(text.encode()) for path, text in files.items()} for files in (many, few)]
    return write(many, tmp_path_factory.mktemp("many")), *bytes_of


@pytest.fixture
def opened(browser, made):
    return lambda page: load(browser, made[0] / page)


def test_no_page_grows_with_every_gpu(made):
    _, many, few = made
    assert many["index.html"] < 300_000
    # A study's page names the GPUs in one list; all else of them is in files of their own.
    assert many["one/index.html"] - few["one/index.html"] < 100 * (MANY - FEW)
    for kind in ("answers", "rows"):
        per_gpu = {path: size for path, size in many.items() if path.startswith(f"data/{kind}/")}
        assert len(per_gpu) == MANY + OTHERS
        assert max(per_gpu.values()) < 20_000


def test_no_section_failed(made):
    pages = [path for path in made[0].rglob("*.html")]
    assert [p for p in pages if "could not be made" in p.read_text(encoding="utf-8")] == []


def test_the_lookup_answers_for_the_last_gpu(browser, opened):
    opened("index.html")
    assert choose(browser, "gpu", LAST).startswith("Use block3d")
    # Eight times as slow as the GPU whose rows it has.
    look = "launchwiseLook('one', arguments[0], [102, 'float32', 2]).then(arguments[1])"
    assert browser.execute_async_script(look, LAST)["entry"][5] == pytest.approx(16, rel=1e-3)


def test_gpus_are_compared_fifty_at_a_time(browser, opened):
    opened("gpus.html")
    browser.execute_async_script("launchwiseCompared.then(arguments[arguments.length - 1])")
    # Long lists of GPUs are folded; one box takes all slices in.
    assert (
        browser.execute_script(
            "return document.querySelectorAll('.gpus:not(.prices) details').length"
        )
        == 2
    )
    browser.execute_script("document.querySelectorAll('.gpus .every')[1].click()")
    browser.execute_async_script("setTimeout(arguments[0], 300)")
    count = "return document.querySelectorAll('.compared tbody tr').length"
    assert browser.execute_script(count) == 50
    assert (
        f"The first 50 of {MANY} GPUs"
        in browser.find_element("css selector", ".compared .note").text
    )
    for words, rows in (("Show 50 more", 100), ("Show all", MANY)):
        button = browser.find_element("xpath", f"//button[text()='{words}']")
        browser.execute_script("arguments[0].click()", button)
        browser.execute_async_script("setTimeout(arguments[0], 300)")
        assert browser.execute_script(count) == rows
    assert browser.find_elements("css selector", ".compared button:not(.save button)") == []


def test_long_tables_are_folded(browser, opened):
    for page in ("gpus.html", "one/index.html"):
        opened(page)
        longest = browser.execute_script(
            "return Math.max(...[...document.querySelectorAll('table')]"
            ".filter((one) => one.checkVisibility()).map((one) => one.tBodies[0].rows.length))"
        )
        assert longest <= MOST_ROWS, page
    assert browser.execute_script("return document.querySelectorAll('details').length") > 0


def test_a_study_shows_some_gpus_and_draws_any(browser, opened):
    opened("one/index.html")
    said = browser.execute_script("return document.getElementById('one-answer').innerText")
    assert f"This page shows {MOST_GPUS} of the study's {MANY} GPUs." in said
    assert f"on {LAST}: 3 configurations" in draw(browser, gpu=LAST)
