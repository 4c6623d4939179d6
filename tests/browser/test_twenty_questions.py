"""The twenty questions of docs/reference/report.md, by the clicks that it names."""

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
    sweeps["big.sm4"] = sweeps["big.sm4"].assign(throttle="sw_power_cap")
    made = replace(made, sweeps=sweeps, blind={"big": SCORE})
    return write(files_of(made), tmp_path_factory.mktemp("report"))


PAGES = {"front page": "index.html", "a study": "acoustic_tile/index.html", "Health": "health.html"}
"""Where a reader begins, to the page."""


def ways():
    """Question to where it begins and the way to its answer, from the documentation."""
    text = (ROOT / "docs" / "reference" / "report.md").read_text(encoding="utf-8")
    table = text.split("## Twenty questions")[1].split("\n## ")[0]
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


def answered_for_a_size(browser):
    choose(browser, "kernel", TITLE)
    choose(browser, "GPU", "big")
    choose(browser, "n", "102")
    assert "Use block3d 32×4×1 row_padding=0" in seen(browser, ".answer .use")


def sure(browser):
    choose(browser, "n", "102")
    said = seen(browser, ".answer p")
    assert "1 ms (0.998 to 1.002, 95 %)." in said
    assert "Basis: measured on this GPU." in said
    table = seen(browser, ".answer .ranked tr")
    assert "block3d 64×2×1 row_padding=0" in table


def gained(browser):
    choose(browser, "n", "102")
    assert "2 times the speed of the baseline." in seen(browser, ".answer p")


def taken(browser):
    assert "#define VARIANT_BLOCK3D 1" in seen(browser, ".take textarea")


def launched(browser):
    said = seen(browser, ".take textarea")
    assert re.match(r"block3d: block 64, 2, 1; grid \d+, \d+, \d+; ", said)
    assert said.endswith("dynamic shared memory 0 bytes")


def worth(browser):
    assert "Gain from tuning" in seen(browser, "h2")
    assert "2.00×, too few problems to tell" in seen(browser, ".drawing text")


def everywhere(browser):
    assert "× big" in seen(browser, "th")
    assert re.search(r"^big\.sm4 ?0\.50", seen(browser, "#kernels-by-gpu tbody tr"), re.M)


def blindly(browser):
    assert "0.974" in seen(browser, "#blind tbody tr")


def faster(browser):
    assert "The same 2 problems on every GPU; speed relative to big" in seen(browser, "caption, p")
    assert re.search(
        r"^big\.sm4 ?0\.5 ?2 problems ?measured", seen(browser, ".compared tbody tr"), re.M
    )


def least_energy(browser):
    rows = seen(browser, ".compared tbody tr").splitlines()
    # 2 J against a quarter of 4 ms: the slower one needs less.
    assert [re.match(r"big\.sm4|big", row)[0] for row in rows] == ["big.sm4", "big"]
    assert "energy" in seen(browser, ".compared th")


def short_of_the_best(browser):
    assert "What answers reach, on held-out sizes" in seen(browser, "caption")
    assert re.search(r"^big ?kNN ?0\.894", seen(browser, "#acoustic_tile-answer tbody tr"), re.M)


def apart(browser):
    assert "configurations" in seen(browser, ".landscape-status")
    assert "times as long" in seen(browser, ".landscape-status")


def matters(browser):
    assert "Sensitivity of the tunables" in seen(browser, "h2, h3")
    assert re.search(r"^(bx|by|variant)", seen(browser, "#acoustic_tile-tunables tbody tr"), re.M)


def best_model(browser):
    assert "regression tree" in seen(browser, "tbody tr")


def cited(browser):
    to = "document.querySelector(arguments[0]).scrollIntoView({behavior: 'instant', block: 'end'})"
    for selector, words in ((".cite", "Cite as: "), ("figure .save button", "SVG")):
        browser.execute_script(to, selector)
        assert words in seen(browser, selector)


def sound(browser):
    assert "A sweep is sound if" in seen(browser, "p")
    rows = seen(browser, "tbody tr")
    assert re.search(r"^stencil ?big(driver 1\.0)? ?sound", rows, re.M)
    assert re.search(r"^stencil ?big\.sm4(driver 1\.0)? ?doubtful", rows, re.M)


def old(browser):
    headings = seen(browser, "th")
    assert "age days" in headings
    assert "kernels changed commits since" in headings


def again(browser):
    rows = seen(browser, "tr.words")
    assert "data/recorded/big.sm4/stencil.parquet" in rows
    assert "min of the GPU" in seen(browser, "th")


def provenance(browser):
    assert "driver 1.0" in seen(browser, "#verdicts tbody tr")


def contradicted(browser):
    assert "No figure of this report contradicts another." in seen(browser, "#invariants p")


ANSWERS = {
    "Which configuration for a size on a GPU?": answered_for_a_size,
    "How sure is it, and what comes close?": sure,
    "What is the speed-up over the baseline?": gained,
    "How does it get into the code?": taken,
    "What must be launched?": launched,
    "Which kernel gains most from tuning?": worth,
    "How does each kernel run on each GPU?": everywhere,
    "Were answers tested on problems without a measurement?": blindly,
    "Which GPU is faster for a kernel, and by how much?": faster,
    "Which GPU needs the least energy per run?": least_energy,
    "How far do answers for unmeasured sizes fall short of the best?": short_of_the_best,
    "How far apart are the configurations of one problem?": apart,
    "Which tunable matters most?": matters,
    "Which model answers best?": best_model,
    "How is the report cited, and how are its figures saved?": cited,
    "Was each sweep sound?": sound,
    "How old is a sweep, and did its kernels change since?": old,
    "What must be measured again, and how long does it take?": again,
    "With which driver was a GPU measured?": provenance,
    "Does any figure contradict another?": contradicted,
}


def test_the_documentation_lists_the_twenty_questions():
    assert list(ways()) == list(ANSWERS)
    assert len(ANSWERS) == 20
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
    ANSWERS[question](browser)
