"""The whole row of a point, by click and by keyboard, in Chromium."""

import pytest

from tests.support.browsing import draw, violations

pytestmark = pytest.mark.browser

ROW = """
    const box = document.querySelector('.row');
    const pairs = [...box.querySelectorAll('dl div')].map((pair) => (
      [...pair.children].map((one) => one.textContent)));
    return [box.querySelector('.label').textContent, Object.fromEntries(pairs),
            box.querySelector('input').value];
"""


def row(browser):
    browser.execute_async_script("launchwiseRow.then(() => arguments[0]())")
    return browser.execute_script(ROW)


def click(browser, figure, marker):
    """Press the mouse on the marker of a plot; the row that it shows."""
    chains = pytest.importorskip("selenium.webdriver.common.action_chains")
    browser.execute_script("return launchwiseDrawAll()")
    point = browser.execute_script(
        "document.documentElement.style.scrollBehavior = 'auto';"
        "const plot = document.querySelector(arguments[0]);"
        "plot.scrollIntoView({block: 'center'});"
        "return plot.querySelectorAll('.scatterlayer .points path')[arguments[1]]",
        figure,
        marker,
    )
    chains.ActionChains(browser).move_to_element(point).pause(0.2).click().perform()
    return row(browser)


def test_a_click_on_the_landscape_shows_the_row(opened):
    name, found, text = click(opened, "#fig-tiny-landscape .plot", 1)
    assert name == "block3d 64×2×1"
    assert text == "variant=block3d row_padding=0 bx=64 by=2 bz=1"
    problem = {"GPU": "big", "n": "202", "dtype": "float32", "order": "2"}
    tunables = {"variant": "block3d", "row_padding": "0", "bx (threads)": "64"}
    measured = {"time": "4 ms", "speed": "100 % of the best", "place": "1 of 3", "status": "ok"}
    assert {**problem, **tunables, **measured}.items() <= found.items()
    assert violations(opened) == []


def test_another_gpu_and_other_axes_show_their_own_rows(opened):
    draw(opened, gpu="big.sm4", across="bx")
    name, found, _ = click(opened, "#fig-tiny-landscape .plot", 0)
    assert name == "block3d 64×2×1"
    assert (found["GPU"], found["time"]) == ("big.sm4", "8 ms")


def test_the_keyboard_opens_and_closes_a_row_of_the_fastest_by_size(opened):
    keys = pytest.importorskip("selenium.webdriver.common.keys").Keys
    figure = opened.find_element("css selector", "#fig-tiny-rate .panels")
    opened.execute_script("arguments[0].focus()", figure)
    figure.send_keys(keys.ARROW_RIGHT, keys.ENTER)
    name, found, _ = row(opened)
    assert name == "block3d 32×4×1"
    assert (found["n"], found["time"], found["place"]) == ("102", "1 ms", "1 of 3")
    box = opened.switch_to.active_element
    assert box.get_attribute("class") == "row"
    box.send_keys(keys.ESCAPE)
    assert opened.find_elements("css selector", ".row") == []
    assert opened.switch_to.active_element == figure


def test_a_row_is_closed_by_its_button_and_copied(opened):
    click(opened, "#fig-tiny-landscape .plot", 1)
    copy, close = opened.find_elements("css selector", ".row button")
    copy.click()
    opened.execute_async_script("setTimeout(arguments[0], 200)")
    assert copy.text == "Copied"
    close.click()
    assert opened.find_elements("css selector", ".row") == []
