"""GPU comparison in Chromium: its figures beside NumPy and SciPy's, links, bad links."""

import numpy as np
import pytest
from scipy import stats

from launchwise.report.blocks import Compared, Section
from launchwise.report.pages.card_ratios import mean_ratio
from launchwise.report.site.rendering import render
from launchwise.report.site.writing import script
from tests.support.browsing import load
from tests.support.report_pages import write

rng = np.random.default_rng(1)
PROBLEMS = 12
TIMES = {gpu: scale * np.exp(rng.normal(0, 0.3, PROBLEMS)) for gpu, scale in (
    ("big", 1.0), ("small", 2.0), ("twin", 1.0)
)}  # fmt: skip
TIMES["twin"] = TIMES["big"] * np.exp(np.resize([0.01, -0.01], PROBLEMS))
ERROR = 0.003
JOULES = 3 * TIMES["big"]
RECORDED = {"big": PROBLEMS, "twin": 8}
"""GPU to the number of problems, from the first, whose energy it recorded."""


def comparison():
    """Twelve problems on three measured GPUs, five of them on a predicted one, none on ``none``.

    The energy of one problem on ``twin`` is more than its card can spend.
    """
    names = [*TIMES, "sheet", "none"]
    entries = []
    for place, (gpu, times) in enumerate(TIMES.items()):
        for problem, time in enumerate(times):
            own = place == 0
            gain = [1.5, 1.4, 1.6] if own else [None] * 3
            known = problem < RECORDED.get(gpu, 0)
            joule = [JOULES[problem], 2 * JOULES[problem]] if known else [None, None]
            row = [time, ERROR, 2 * time, 0.5 * time, *gain, *joule]
            entries.append([place, problem, *row])
    for problem in range(5):
        time = 4 * TIMES["big"][problem]
        row = [time, None, None, 0.4 * time, *[None] * 5]
        entries.append([3, problem, *row])
    return {
        "parameters": [{"name": "n", "unit": ""}, {"name": "dtype", "unit": ""}],
        "gpus": [
            {"name": name, "basis": basis, "kind": "whole" if basis == "measured" else basis}
            for name in names
            for basis in ["predicted" if name == "sheet" else "measured"]
        ],
        "problems": [[100 + k, "float32"] for k in range(PROBLEMS)],
        "entries": entries,
        "above": [[list(TIMES).index("twin"), 3]],
        "ratios": [[0, 3, True, 5, 4.0, None, None], [3, 0, True, 5, 0.25, None, None]]
        + [
            [names.index(gpu), names.index(other), False, *ratio(gpu, other)]
            for gpu in TIMES
            for other in TIMES
            if gpu != other
        ],
        "within": "within 3.2 times",
    }


def ratio(gpu, other, problems=slice(None)):
    """Problems, ratio and its limits, as the report computes them."""
    logs = np.log(TIMES[other] / TIMES[gpu])[problems]
    mean, limits = mean_ratio(logs, np.full(len(logs), np.hypot(ERROR, ERROR)))
    return [len(logs), mean, *(limits or (None, None))]


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    folder = tmp_path_factory.mktemp("comparison")
    block = Compared(
        id="compare",
        studies=[("constructor", "One kernel")],
        first={"study": "constructor", "beside": "big"},
        tdp_w={"big": 700.0},
        prices={"big": [None, 3.6, "2026-11-01", "a cloud"]},
        table="data/card_ratios.csv",
    )
    text = render("GPUs", "", [Section("gpu-against-gpu", "GPU comparison", [block])])
    (folder / "gpus.html").write_text(text, encoding="utf-8")
    write(script("data/constructor.gpus.js", comparison()), folder)
    return folder / "gpus.html"


@pytest.fixture
def opened(browser, page):
    """The page, freshly loaded, its comparison shown."""
    return at(browser, page)


def at(browser, page, state=""):
    load(browser, page.as_uri() + state)
    browser.execute_async_script("launchwiseCompared.then(arguments[0])")
    return browser


def asked(browser, **question):
    """What the script computes, by GPU."""
    script = "launchwiseCompare('constructor', arguments[0]).then(arguments[arguments.length - 1])"
    wanted = {"gpus": "measured", "beside": "big", "problem": {}, **question}
    found = browser.execute_async_script(script, wanted)
    counts = {name: found[name] for name in ("problems", "energies")}
    return {row["gpu"]: {**row, **counts} for row in found["rows"]}


def tick(browser, *names):
    """Tick GPUs or untick them, and name a group by its title; what the comparison says then."""
    script = """
        const [names, done] = arguments;
        for (const name of names) {
          const label = [...document.querySelectorAll('.gpus label')]
            .find((one) => one.textContent.trim() === name);
          label.querySelector('input').click();
        }
        setTimeout(() => done(document.querySelector('.compared').innerText), 100);
    """
    return str(browser.execute_async_script(script, list(names)))


def test_means_and_intervals_are_those_of_numpy_and_scipy(opened):
    rows = asked(opened)
    for gpu, times in TIMES.items():
        row = rows[gpu]
        assert row["problems"] == PROBLEMS
        assert row["best"] == pytest.approx(stats.gmean(times))
        if gpu != "big":
            wanted = ratio(gpu, "big")
            assert [row["count"], row["speed"], *row["limits"]] == pytest.approx(wanted)
    big = rows["big"]
    assert big["limits"] == [None, None]
    assert (big["gain"], big["bound"]) == pytest.approx((1.5, 0.5))
    # Of the eight problems of which both cards that record energies have it.
    joule = stats.gmean(JOULES[: RECORDED["twin"]])
    assert big["energies"] == RECORDED["twin"]
    assert (big["joule"], rows["twin"]["joule"]) == pytest.approx((joule, joule))
    assert (big["above"], rows["twin"]["above"]) == (0, 1)
    assert big["jouleBeside"] == pytest.approx(0.5)
    # 1 kWh is 3.6e6 J; 3.6 euro per hour are a euro in 1e6 ms.
    assert big["perKwh"] == pytest.approx(3.6e6 / joule)
    alone = asked(opened, gpus="big,small")["big"]
    assert (alone["energies"], alone["joule"]) == pytest.approx((PROBLEMS, stats.gmean(JOULES)))
    assert big["perEuro"] == pytest.approx(1e6 / stats.gmean(TIMES["big"]))
    assert rows["small"]["joule"] is rows["small"]["perEuro"] is rows["small"]["gain"] is None


def test_all_gpus_keep_to_the_same_problems_but_for_speeds(opened):
    rows = asked(opened, gpus="all")
    assert {row["problems"] for row in rows.values()} == {5}
    # A ratio is the same whatever other GPUs are shown.
    assert rows["small"]["speed"] == pytest.approx(stats.gmean(TIMES["big"] / TIMES["small"]))
    sheet = rows["sheet"]
    assert (sheet["speed"], sheet["limits"]) == (0.25, [None, None])
    assert sheet["within"] == "within 3.2 times"
    assert "The same 12 problems" in opened.find_element("css selector", ".compared").text
    shown = tick(opened, "sheet")
    # Ratios of measured GPUs hold all twelve.
    assert "Speed relative to big over all problems of both GPUs" in shown
    assert "other columns over the same 5 problems on every GPU" in shown
    assert "sheet at 0.25 (within 3.2 times). One that costs less than the lower limit" in shown
    assert "within 3.2 times, 5 problems" in shown
    assert "Without any of these problems: none." in shown


def test_one_problem_has_the_error_of_its_repeats(opened):
    rows = asked(opened, problem={"n": "103"})
    row, wanted = rows["small"], ratio("small", "big", slice(3, 4))
    assert [row["count"], row["speed"], *row["limits"]] == pytest.approx(wanted)
    assert rows["big"]["gainLimits"] == [1.4, 1.6]


def test_a_reader_chooses_the_gpus_and_sends_them_as_a_link(browser, page):
    opened = at(browser, page)
    shown = tick(opened, "twin", "none", "big")
    assert "speed relative to small" in shown
    assert "No problem" not in shown
    address = str(opened.execute_script("return location.hash"))
    assert "gpus=small&" in address
    assert "Choose the GPUs" in tick(opened, "small")
    shown = tick(opened, "small", "sheet")
    assert "gpus=small%2Csheet&" in opened.execute_script("return location.hash")
    assert "The same 5 problems" in shown
    # A group at once, as one word.
    tick(opened, "whole cards")
    assert "gpus=whole%2Csheet&" in opened.execute_script("return location.hash")
    again = at(browser, page, address).find_element("css selector", ".compared")
    assert "The same 12 problems" in again.text
    assert [row.text.split()[0] for row in again.find_elements("css selector", "tbody tr")] == [
        "small"
    ]


def test_an_order_without_values_says_so(browser, page):
    energies = "#compare?study=constructor&gpus=big,twin&beside=big&sort=joule"
    shown = at(browser, page, energies).find_element("css selector", ".compared").text
    assert "J per run; 8 of 12 problems" in shown
    assert "sustained running slower than the time at one problem" in shown
    assert "Sorted by speed" not in shown
    lacking = "#compare?study=constructor&gpus=small,sheet&beside=small&sort=joule"
    shown = at(browser, page, lacking).find_element("css selector", ".compared").text
    assert "Sorted by speed: nothing is known of energy per run on these GPUs." in shown


def test_rows_say_basis_and_ties_and_are_sorted(opened):
    tick(opened, "sheet")
    rows = "[...document.querySelectorAll('.compared tbody tr')]"
    table = f"return {rows}.map((row) => row.innerText)"
    lines = opened.execute_script(table)
    assert [line.split()[0] for line in lines] == ["big", "twin", "small", "sheet"]
    assert "a tie" in lines[1]
    assert "a tie" not in lines[2]
    assert "undecided" not in " ".join(lines)
    kinds = opened.execute_script(f"return {rows}.map((row) => row.className)")
    assert kinds == ["measured", "measured", "measured", "predicted"]
    hatched = opened.execute_script(
        "return getComputedStyle(document.querySelector('tr.predicted td')).backgroundImage"
    )
    assert "repeating-linear-gradient" in hatched
    heads = opened.find_element("css selector", ".compared thead").text
    assert all(word in heads for word in ("TDP", "euro per hour", "per euro", "per kWh"))
    assert "physical limit" in heads
    assert "roofline" not in heads
    opened.execute_script(
        "const field = document.querySelector('.compare').elements.sort; field.value = 'name';"
        "field.dispatchEvent(new Event('change', {bubbles: true}))"
    )
    by_name = opened.execute_async_script(
        f"setTimeout(() => arguments[0]((() => {{ {table} }})()), 50)"
    )
    assert [line.split()[0] for line in by_name] == ["big", "sheet", "small", "twin"]


def test_a_link_opens_the_same_and_an_old_one_says_so(browser, page):
    state = "#compare?study=constructor&gpus=measured&beside=small&sort=name&n=101"
    text = at(browser, page, state).find_element("css selector", ".compared").text
    assert "One problem on every GPU; speed relative to small" in text
    for strange, words in {
        "study=gone": "holds no study “gone”; the link is older",
        "study=constructor&beside=gone": "holds no GPU “gone” for this study",
        "study=constructor&gpus=big,gone": "holds no GPU “gone” for this study",
        "study=constructor&sort=foo": "holds no order “foo”",
        "study=constructor&n=7": "holds no problem with n = 7",
    }.items():
        text = (
            at(browser, page, f"#compare?{strange}").find_element("css selector", ".compared").text
        )
        assert words in text
        assert "speed relative to big" in text


def test_a_study_without_its_file_says_so(browser, page, tmp_path):
    (tmp_path / "gpus.html").write_text(page.read_text(encoding="utf-8"), encoding="utf-8")
    text = at(browser, tmp_path / "gpus.html").find_element("css selector", ".compared").text
    assert "the file data/constructor.gpus.js is missing" in text
