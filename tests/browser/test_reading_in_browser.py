"""Reading a page in Chromium: points by keyboard, old links, paper, phones."""

import pytest

from tests.support.browsing import load, media


def test_arrow_keys_read_the_points_of_a_figure(opened):
    keys = pytest.importorskip("selenium.webdriver.common.keys").Keys
    figure = opened.find_element("css selector", "#fig-tiny-rate .panels")
    opened.execute_script("arguments[0].focus()", figure)
    said = []
    for key in (keys.ARROW_RIGHT, keys.ARROW_RIGHT, keys.ARROW_LEFT):
        figure.send_keys(key)
        said.append(opened.execute_script("return arguments[0].nextSibling.textContent", figure))
    assert said == [
        "big, block3d 32×4×1, 102: 1",
        "big, block3d 64×2×1, 202: 2",
        "big, block3d 32×4×1, 102: 1",
    ]
    assert opened.execute_script("return arguments[0].querySelector('.hovertext') !== null", figure)


def test_a_link_to_a_part_that_is_gone_says_so(browser, folder):
    load(browser, f"{(folder / 'tiny' / 'index.html').as_uri()}#tiny-gone")
    first = browser.find_element("css selector", "main .gone")
    assert "This page holds no part “tiny-gone”; the link is older" in first.text
    browser.execute_async_script(
        "location.hash = 'tiny-gpus'; setTimeout(arguments[arguments.length - 1], 100)"
    )
    assert browser.find_elements("css selector", ".gone") == []


def test_no_table_is_cut_on_paper(opened, folder):
    a4 = {"width": 718, "height": 1000, "deviceScaleFactor": 1, "mobile": False}
    with media(opened, "print"):
        opened.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", a4)
        for name in ("tiny/index.html", "index.html", "gpus.html"):
            load(opened, folder / name, desktop=False)
            opened.execute_script("document.querySelectorAll('details').forEach((f) => f.open = 1)")
            cut = opened.execute_script(
                "return [...document.querySelectorAll('table')].filter((table) => "
                "table.getBoundingClientRect().right > 719).map((table) => table.caption.innerText)"
            )
            assert cut == []
