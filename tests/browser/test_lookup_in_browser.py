"""The lookup of the report in Chromium, beside the recommender that it stands for."""

import math
from collections import Counter
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from exported import CONDITIONS
from products import product

from launchwise.base.expressions import evaluate
from launchwise.base.robust import outcome
from launchwise.base.vectors import nested
from launchwise.exporting.entries import by_objective
from launchwise.learning.splits import Case
from launchwise.report.blocks import Page, Section
from launchwise.report.pages import finder
from launchwise.report.site import writing
from launchwise.report.site.assemble import Report
from launchwise.tables.measurements import SPEEDUPS, faster_libraries
from tests.support import report_study
from tests.support.browsing import choose, load
from tests.support.report_pages import RUN, files_of, write

pytestmark = pytest.mark.browser

DRAWS, SEED = 500, 22
PARTS = {
    "granger_time": {"dtype": ["float32", "float64"], "countx": [5]},
    "tridiagonal_streams": {"memory": ["pinned"]},
}
"""Studies of the draws, and which part of a sweep each learns from."""


@pytest.fixture(scope="module")
def products(tmp_path_factory):
    folder = tmp_path_factory.mktemp("final")
    return {name: product(name, folder / name, **only) for name, only in PARTS.items()}


def front_page(studies, folder):
    """A front page that holds the lookup of studies."""
    block = finder.block(studies)
    front = Page("index.html", "Overview", "t", "", [Section("look-up", "Which?", [block])])
    files = {front.path: writing.html(front, Report(studies, RUN))}
    for study in studies:
        files |= writing.answer_files(study.name, finder.data(study))
    return write(files, folder) / front.path


@pytest.fixture(scope="module")
def page(products, tmp_path_factory):
    return front_page([one.study for one in products.values()], tmp_path_factory.mktemp("report"))


@pytest.fixture
def opened(browser, page):
    return load(browser, page)


def looked_up(browser, study, gpu, problem):
    script = "launchwiseLook(...[...arguments].slice(0, 3)).then(arguments[3])"
    return browser.execute_async_script(script, study, gpu, [*problem.values()])


def drawn(one, random):
    """A GPU, and an answered problem, or sizes from a quarter of the least to 4 times the most."""
    entries = one.table.entries
    entry = entries[random.integers(len(entries))]
    columns = one.final.spec.problem_columns
    problem = dict(zip(columns, entry.problem, strict=True))
    if random.random() < 0.5:
        for place, name in enumerate(columns):
            values = [each.problem[place] for each in entries]
            if name not in one.table.texts and one.final.spec.problem[name].values is None:
                low, high = min(map(int, values)) / 4, max(map(int, values)) * 4
                drawn_value = math.exp(random.uniform(math.log(low), math.log(high)))
                problem[name] = max(1, round(drawn_value))
    return Case(one.table.devices[entry.device].name, problem)


def test_500_answers_are_those_of_recommend(opened, products):
    random = np.random.default_rng(SEED)
    told = Counter()
    for _ in range(DRAWS):
        name = str(random.choice(list(PARTS)))
        one = products[name]
        case = drawn(one, random)
        found = looked_up(opened, name, case.gpu, case.problem)
        assert one.table.limits.hold(case.problem) == ("broken" not in found)
        if "broken" in found:
            told["refused"] += 1
            continue
        answer = one.table.answer(case.gpu, case.problem)
        told[answer.basis] += 1
        first, entry = answer.suggestions[0], found["entry"]
        assert found["configuration"] == first.configuration
        assert found["near"][1] == [*answer.answered_for.values()]
        assert found["far"] == answer.outside
        assert (entry[3] == entry[4]) == first.is_usual
        limits = [first.interval_ms or (None, None), first.gain_interval or (None, None)]
        said = [first.expected_ms, *limits[0], first.gain, *limits[1]]
        # The page rounds what it holds to five digits.
        shown = [value or 0 for value in entry[5:11]]
        assert shown == pytest.approx([value or 0 for value in said], rel=1e-4)
    assert min(told["measured"], told["within"], told["beyond"]) > 50
    assert told["refused"] > 0


def test_an_answer_by_another_objective_says_so(browser, products, tmp_path):
    one = products["granger_time"]
    table = replace(one.table, stored=by_objective(one.table.stored, "energy"))
    load(browser, front_page([replace(one.study, table=table)], tmp_path))
    assert "chosen by time: no energy is known of it here." in browser.page_source


def test_page_and_command_name_the_same_faster_libraries(browser, tmp_path):
    made, random, count = report_study.study(), np.random.default_rng(SEED), 16
    problem = made.answers[0]["problem"]
    ratio, width = np.exp(random.normal(size=(2, count)))
    # Less than six rounds have no interval.
    width = np.where(random.random(count) < 0.4, np.nan, np.maximum(width, 1 / width))
    rows = pd.DataFrame({"gpu": "big", "peer": [f"lib{k}." for k in range(count)], **problem})
    for name in SPEEDUPS:
        limits = {name: ratio, f"{name}_low": ratio / width, f"{name}_high": ratio * width}
        rows = rows.assign(version="1", **limits)
    faster = [one.split()[0] for one in faster_libraries(rows)["words"]]
    surest = rows.set_index("peer").loc[faster, "speedup"].idxmin()
    assert 1 < len(faster) < (ratio < 1).sum() > np.isnan(width[ratio.argmin()]) > 0
    load(browser, write(files_of(replace(made, peers={"big": rows})), tmp_path) / "index.html")
    assert choose(browser, "p-n", str(problem["n"])).startswith(f"Use {surest} (1)")
    cells = "return [...document.querySelectorAll('.ranked tbody tr')].map((row) => row.innerText)"
    beside = [row.split("\t") for row in browser.execute_script(cells) if "in pairs" in row]
    assert [ms for _, ms, _ in beside if len(ms.replace(".", "").lstrip("0")) < 3] == ["0.3"]
    few = [row for row in browser.execute_script(cells) if "too few rounds" in row]
    assert len(few) == np.isnan(width).sum()
    assert choose(browser, "p-n", "110").count("too few rounds") == len(few)
    notices = "return [...document.querySelectorAll('.answer .notice')].map((one) => one.innerText)"
    said = " ".join(browser.execute_script(notices))
    assert [one for one in rows["peer"] if one in said] == faster
    # None speaks for another kind of problems.
    kinds = {"this alone": f"n == {problem['n']}"}
    other = made.settings.model_copy(update={"peer_kinds": kinds})
    files = files_of(replace(made, peers={"big": rows}, settings=other))
    load(browser, write(files, tmp_path / "kinds") / "index.html")
    assert "lib1" not in choose(browser, "p-n", "110")
    verdicts = "return arguments[0].map(([low, high]) => launchwiseOutcome(low, high))"
    asked = rows[["speedup_low", "speedup_high"]].to_numpy()
    sent = [[None if np.isnan(end) else end for end in limits] for limits in asked.tolist()]
    assert browser.execute_script(verdicts, sent) == [outcome(*limits) for limits in asked]


CUT = """
    const fields = [...document.querySelectorAll('.finder input')];
    for (const one of fields) one.value = 123456789;
    setTimeout(() => arguments[0](fields.some((one) => one.scrollWidth > one.clientWidth)), 50);
"""


def test_answers_leave_the_front_page_one_screen(browser, page):
    opened = load(browser, page)
    size = {"width": 1440, "height": 900, "deviceScaleFactor": 1, "mobile": False}
    opened.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    for study in PARTS:
        choose(opened, "study", study)
        # The page's head and foot take 150 of 900 pixels.
        height = "return document.getElementById('look-up').offsetHeight"
        assert 300 < opened.execute_script(height) <= 640, study
        assert not opened.execute_async_script(CUT), study


def test_limits_mean_the_same_in_the_page(opened):
    asked = [(a, b, c) for a in range(-7, 8) for b in (-2, 0, 3, 5) for c in "xyz"]
    names = [dict(zip("abc", each, strict=True)) for each in asked]
    script = """
        const [tree, asked] = arguments;
        return asked.map((names) => Boolean(launchwiseValue(tree, names)));
    """
    for text in CONDITIONS:
        found = opened.execute_script(script, nested(text), names)
        assert found == [bool(evaluate(text, each)) for each in names]
        assert len(set(found)) == 2
