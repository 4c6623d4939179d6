"""The questions of docs/reference/report.md, by the clicks that it names."""

import re
from dataclasses import replace
from pathlib import Path

import pytest

from launchwise.base.typed import read_yaml
from tests.report.test_report_pairs import with_library
from tests.support.browsing import SETTLED, load
from tests.support.report_pages import files_of, write
from tests.support.report_study import SCORE, study
from tests.support.slow_cases import first_of

pytestmark = pytest.mark.browser

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """The small study: with the energy of every run, a throttled sweep, a blind test, a faster
    library."""
    made = study(name="acoustic_tile")
    sweeps = {
        gpu: rows.assign(energy_j=rows["time_ms"] * (1.0 if gpu == "big" else 0.25))
        for gpu, rows in made.sweeps.items()
    }
    checked = {"max_error": 2e-6, "tolerance": 1e-5}
    sweeps["big"] = sweeps["big"].assign(throttle="hw_thermal", **checked)
    peers = with_library().peers["big"]
    peers = peers.assign(
        **{f"speedup{end}": peers[f"speedup{end}"] / 4 for end in ("", "_low", "_high")}
    )
    made = replace(made, sweeps=sweeps, blind={"big": SCORE}, peers={"big": peers})
    return write(files_of(made), tmp_path_factory.mktemp("report"))


QUESTIONS = read_yaml(ROOT / "tests/browser/data/questions.yaml")
PAGES = {"front page": "index.html", "a study": "acoustic_tile/index.html"}
PAGES |= {"GPUs and health": "gpus.html"}
"""Where a reader begins, to the page."""


def ways():
    """Question to where it begins and the way to its answer, from the documentation."""
    text = (ROOT / "docs" / "reference" / "report.md").read_text(encoding="utf-8")
    table = text.split("## Questions")[1].split("\n## ")[0]
    rows = [line.strip("| ").split(" | ") for line in table.splitlines() if line.startswith("| ")]
    return {question: (begin, way) for _, begin, question, way in rows[1:]}


CLICK = """
    const words = arguments[0];
    const target = [...document.querySelectorAll('a, summary, button')]
      .find((one) => one.textContent.trim() === words);
    target.click();
    if (target.tagName === 'SUMMARY') target.scrollIntoView();
"""
FOLLOW = """
    [...document.querySelectorAll('summary')]
      .find((one) => one.textContent.trim() === arguments[0])?.scrollIntoView();
"""
CHOOSE = """
    const [name, option, done] = arguments;
    const label = [...document.querySelectorAll('label, .take')]
      .find((one) => one.textContent.trim().startsWith(name));
    const field = label.querySelector('select, input');
    const same = (one) => one.textContent.trim() === option;
    field.value = field.options ? [...field.options].find(same).value : option;
    field.dispatchEvent(new Event('change', {bubbles: true}));
    setTimeout(done, 100);
"""
SEEN = """
    const [selector, words] = arguments;
    return [...document.querySelectorAll(selector)].filter((one) => {
      const box = one.getBoundingClientRect();
      return box.height && box.top >= 0 && box.top < innerHeight;
    }).map((one) => (
      one.matches('textarea') ? one.value : one.textContent.replace(/\\s+/g, ' ').trim()
    ));
"""


def seen(browser, selector):
    """What elements say that begin on the screen as it is."""
    return "\n".join(browser.execute_script(SEEN, selector))


def choose(browser, name, option):
    browser.execute_async_script(CHOOSE, name, option)


TO_ITS_END = """
    document.querySelector(arguments[0]).scrollIntoView({behavior: 'instant', block: 'end'})
"""


def test_the_documentation_lists_the_questions():
    assert list(ways()) == list(QUESTIONS)
    assert len(QUESTIONS) >= 20
    assert all(len(re.findall(r"\*\*(.+?)\*\*", way)) <= 1 for _, way in ways().values())


@pytest.mark.parametrize("question", first_of(QUESTIONS, every=2))
def test_the_way_leads_to_the_answer(browser, folder, question):
    begin, way = ways()[question]
    load(browser, folder / PAGES[begin])
    for words in re.findall(r"\*\*(.+?)\*\*", way):
        # Figures above what was clicked are drawn meanwhile; the page scrolls smoothly.
        for step in (CLICK, FOLLOW):
            browser.execute_script(step, words)
            browser.execute_async_script(SETTLED)
    for name, option in re.findall(r"([a-z ]+): \*(.+?)\*", way):
        choose(browser, name.strip(), option)
    for name, option in QUESTIONS[question].get("chosen", {}).items():
        choose(browser, name, option)
    for selector, pattern in QUESTIONS[question]["shown"]:
        if selector in (".cite", "figure .save button", ".scroll + .save button"):
            browser.execute_script(TO_ITS_END, selector)
        assert re.search(pattern, seen(browser, selector), re.MULTILINE), (selector, pattern)
