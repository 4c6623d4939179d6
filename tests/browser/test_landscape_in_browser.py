"""All configurations of any problem in Chromium: axes, problems, old links, keyboard."""

import pytest

from tests.support.browsing import draw, load
from tests.support.report_pages import files_of, write
from tests.support.report_study import study

pytestmark = pytest.mark.browser

CONTROLS, FIGURE = "tiny-explore", "fig-tiny-landscape"


DRAWN = """
    const node = document.querySelector('#fig-tiny-landscape .plot');
    return [node.data.map(({type, mode, name, x, y, z}) => ({type, mode, name, x, y, z})),
            node.layout.xaxis.title.text, node.layout.yaxis.title.text,
            document.querySelector('#fig-tiny-landscape figcaption').textContent,
            document.querySelector('.landscape-status').textContent];
"""


def drawn(browser):
    return browser.execute_script(DRAWN)


def test_a_tunable_as_axis_shows_its_values_and_the_fastest_of_each(opened):
    draw(opened, across="bx")
    traces, x, y, caption, said = drawn(opened)
    assert (x, y) == ("bx (threads)", "time (ms)")
    points = {trace["name"]: dict(zip(trace["x"], trace["y"], strict=True)) for trace in traces}
    assert points["block3d"] == {"32": pytest.approx(5, rel=1e-3), "64": pytest.approx(4)}
    # The variant linear has no bx.
    assert list(points) == ["block3d", "fastest with this value"]
    assert list(points["fastest with this value"]) == ["32", "64"]
    assert caption == (
        "Every configuration of n=202, float32, order=2, on big, of variants that have "
        "what the axes show."
    )
    assert said == (
        "n=202, float32, order=2, on big: 3 configurations; 1 within 2 % of the best, "
        "block3d 64×2×1. The slowest with repeats takes 2 times as long as the best."
    )


LABELS = """
    launchwisePanels().then((panels) => arguments[0]([
        panels['plot-tiny-landscape-0'].layout.yaxis.ticktext,
        document.querySelector('#fig-tiny-landscape .plot').layout.yaxis.ticktext]));
"""


def test_script_and_page_call_the_same_row_the_slowest(browser, tmp_path):
    made = study()
    for gpu, rows in made.sweeps.items():
        slowest = rows.groupby("n")["time_ms"].transform("max") == rows["time_ms"]
        made.sweeps[gpu] = rows.assign(status=rows["status"].mask(slowest, "slow"))
    opened = load(browser, write(files_of(made), tmp_path) / "tiny" / "index.html")
    ends = "return document.querySelector('.landscape-status').textContent.split('The slowest')[1]"
    first = opened.execute_script(ends)
    assert first.startswith(" with repeats takes ")
    draw(opened, across="place")
    assert opened.execute_script(ends).split(".")[0] == first.split(".")[0]
    of_page, of_script = opened.execute_async_script(LABELS)
    assert of_page == of_script


def test_it_follows_the_problem_and_the_gpu(opened):
    draw(opened, **{"p-n": "102"})
    *_, said = drawn(opened)
    assert said.startswith("n=102, float32, order=2, on big: 3 configurations, 1 more")
    assert "within 2 % of the best, block3d 32×4×1" in said
    draw(opened, gpu="big.sm4")
    traces, *_, said = drawn(opened)
    assert "on big.sm4: 3 configurations" in said
    assert min(y for trace in traces for y in trace["y"]) == pytest.approx(2)


def test_two_tunables_show_the_fastest_of_each_pair(opened):
    draw(opened, across="bx", up="by")
    (trace,), x, y, *_ = drawn(opened)
    assert (trace["type"], x, y) == ("heatmap", "bx (threads)", "by (threads)")
    assert (trace["x"], trace["y"]) == (["32", "64"], ["2", "4"])
    assert trace["z"] == [[None, 100], [pytest.approx(80, rel=2e-3), None]]
    keys = pytest.importorskip("selenium.webdriver.common.keys").Keys
    figure = opened.find_element("css selector", f"#{FIGURE} .panels")
    opened.execute_script("arguments[0].focus()", figure)
    figure.send_keys(keys.ARROW_RIGHT)
    said = opened.execute_script("return arguments[0].nextSibling.textContent", figure)
    assert said == "2, block3d 64×2×1, 64: 100"


def test_a_link_opens_the_same_figure_and_an_old_one_says_so(opened, folder):
    draw(opened, **{"p-n": "102"})
    draw(opened, across="by", up="share")
    before = drawn(opened)
    address = opened.execute_script("return location.href")
    assert "p-n=102" in address
    load(opened, address)
    opened.execute_async_script("launchwiseLandscape.then(() => arguments[0]())")
    assert drawn(opened) == before
    top = "return document.getElementById(arguments[0]).getBoundingClientRect().top"
    opened.execute_async_script("setTimeout(arguments[0], 700)")
    assert 0 <= opened.execute_script(top, CONTROLS) < 700
    page = (folder / "tiny" / "index.html").as_uri()
    load(opened, f"{page}#{CONTROLS}?gpu=gone&across=bx&p-n=7")
    opened.execute_async_script("launchwiseLandscape.then(() => arguments[0]())")
    said = drawn(opened)[-1]
    assert said.startswith("This report holds no gpu “gone”, no p-n “7”; the link is older. n=202")


def test_a_file_that_is_missing_is_named(opened, folder):
    rows = folder / "data" / "rows" / "tiny" / "big.sm4.js"
    text = rows.read_text(encoding="utf-8")
    rows.unlink()
    try:
        assert draw(opened, gpu="big.sm4") == (
            "The figure cannot be changed: the file data/rows/tiny/big.sm4.js is missing."
        )
    finally:
        rows.write_text(text, encoding="utf-8")
