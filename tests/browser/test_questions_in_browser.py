"""The questions of docs/reference/report.md, by the clicks that it names."""

import re
from dataclasses import replace
from pathlib import Path

import pytest

from tests.support.browsing import SETTLED, load
from tests.support.report_pages import files_of, write
from tests.support.report_study import SCORE, study
from tests.support.slow_cases import first_of

pytestmark = pytest.mark.browser

ROOT = Path(__file__).resolve().parents[2]
TITLE = "A tiny study"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """The small study: with the energy of every run, a throttled sweep, a blind test."""
    made = study(name="acoustic_tile")
    sweeps = {
        gpu: rows.assign(energy_j=rows["time_ms"] * (1.0 if gpu == "big" else 0.25))
        for gpu, rows in made.sweeps.items()
    }
    sweeps["big"] = sweeps["big"].assign(throttle="hw_thermal")
    made = replace(made, sweeps=sweeps, blind={"big": SCORE})
    return write(files_of(made), tmp_path_factory.mktemp("report"))


PAGES = {"front page": "index.html", "a study": "acoustic_tile/index.html", "Health": "health.html"}
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


N_102 = {"n": "102"}
CHOICES = {
    "Which configuration for a size on a GPU?": {"kernel": TITLE, "GPU": "big", **N_102},
    "How sure is it, and what comes close?": N_102,
    "What is the speed-up over the baseline?": N_102,
}
"""Question to what is chosen besides the way."""

ANSWERS = {
    "Which configuration for a size on a GPU?": [
        (".answer .use", "Use block3d 32×4×1 row_padding=0"),
    ],
    "How sure is it, and what comes close?": [
        (".answer p", r"1 ms \(0\.998 to 1\.002, 95 %\)\."),
        (".answer p", r"Basis: measured on this GPU\."),
        (".answer .ranked tr", "block3d 64×2×1 row_padding=0"),
    ],
    "What is the speed-up over the baseline?": [
        (".answer p", r"2 times the speed of the baseline\."),
    ],
    "How does it get into the code?": [(".take textarea", "#define VARIANT_BLOCK3D 1")],
    "What must be launched?": [
        (".take textarea", r"\Ablock3d: block 64, 2, 1; grid \d+, \d+, \d+; "),
        (".take textarea", r"dynamic shared memory 0 bytes\Z"),
    ],
    "Is anything in doubt, and does it touch the answer?": [
        (".answer p", r"In doubt: 100 % of the rows throttled\. This answer rests on such rows\."),
    ],
    "Which kernel gains most from tuning?": [
        ("#kernels tbody tr", r"^A tiny study ?2\.00 ?1\.58 ?too few problems to tell"),
    ],
    "How does each kernel run on each GPU?": [
        ("th", "× big"),
        ("#kernels-by-gpu tbody tr", r"^big\.sm4 ?0\.50"),
    ],
    "Were answers tested on problems without a measurement?": [("#blind tbody tr", r"0\.974")],
    "Which GPU is faster for a kernel, and by how much?": [
        ("caption, p", "The same 2 problems on every GPU; speed relative to big"),
        (".compared tbody tr", r"^big\.sm4 ?0\.5 ?2 problems ?measured"),
    ],
    "Which GPU needs the least energy per run?": [
        # 2 J against a quarter of 4 ms: the slower one needs less.
        (".compared tbody tr", r"\Abig\.sm4.*\nbig(?!\.).*\Z"),
        (".compared th", "energy"),
    ],
    "How far do answers for unmeasured sizes fall short of the best?": [
        ("caption", "What answers reach, on held-out sizes"),
        ("#acoustic_tile-sure tbody tr", r"^big ?kNN ?0\.894"),
    ],
    "How far apart are the configurations of one problem?": [
        (".landscape-status", "configurations.* times as long"),
    ],
    "Which rule gives a good launch without a lookup?": [
        ("#acoustic_tile-answer tbody tr", r"^big ?n ≤ 102 ?block3d 32×4×1"),
    ],
    "What does the usual choice cost at each size?": [
        ("#acoustic_tile-cost caption", "Time that the baseline loses over the fastest"),
        ("#acoustic_tile-cost tbody tr", r"^float32, order=2 ?100 ?100at n=102"),
    ],
    "Which tunable matters most?": [
        ("#acoustic_tile-tunables .drawing text", "^(bx|by|variant)"),
    ],
    "Which model answers best?": [("tbody tr", "regression tree")],
    "How is the report cited, and how are its figures and tables saved?": [
        (".cite", "Cite as: "),
        ("footer button", "BibTeX"),
        ("figure .save button", "SVG"),
        (".scroll + .save button", "LaTeX"),
    ],
    "Was each sweep sound?": [
        ("tbody tr", r"^stencil ?big(driver 1\.0)? ?doubtful"),
        ("p", "Sound: at most 5 %"),
    ],
    "How old is a sweep, and did its kernels change since?": [
        ("th", "age days"),
        ("th", "kernels changed commits since"),
    ],
    "What must be measured again, and how long does it take?": [
        ("tr.words", r"data/recorded/big/stencil\.parquet"),
        ("th", "min of the GPU"),
    ],
    "With which driver was a GPU measured?": [("#verdicts tbody tr", r"driver 1\.0")],
    "Does any figure contradict another?": [
        ("#invariants p", r"No figure that is checked contradicts another\."),
    ],
}
"""Question to what is on the screen: elements, and a pattern of what they say."""

TO_ITS_END = """
    document.querySelector(arguments[0]).scrollIntoView({behavior: 'instant', block: 'end'})
"""


def test_the_documentation_lists_the_questions():
    assert list(ways()) == list(ANSWERS)
    assert len(ANSWERS) >= 20
    assert all(len(re.findall(r"\*\*(.+?)\*\*", way)) <= 1 for _, way in ways().values())


@pytest.mark.parametrize("question", first_of(ANSWERS, every=2))
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
    for name, option in CHOICES.get(question, {}).items():
        choose(browser, name, option)
    for selector, pattern in ANSWERS[question]:
        if selector in (".cite", "figure .save button", ".scroll + .save button"):
            browser.execute_script(TO_ITS_END, selector)
        assert re.search(pattern, seen(browser, selector), re.MULTILINE), (selector, pattern)
