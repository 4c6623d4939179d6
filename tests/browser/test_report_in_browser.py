"""The report as people see it: opened from a file in headless Chromium."""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from launchwise.report import assemble
from launchwise.report.overview import Run
from tests.support.report_study import study

pytestmark = pytest.mark.browser

ROOT = Path(__file__).resolve().parents[2]
FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--window-size=1280,1000",
)
DRAWN = ".scatterlayer .trace path, .heatmaplayer image"
"""Marks of the kinds of plots that the report has, as plotly draws them."""


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """One Chromium with an empty profile, driven by the chromedriver beside it."""
    webdriver = pytest.importorskip("selenium.webdriver", reason="selenium is not installed")
    chromium = shutil.which("chromium") or shutil.which("google-chrome")
    driver = shutil.which("chromedriver")
    if chromium is None or driver is None:
        pytest.skip("chromium or chromedriver is not installed")
    options = webdriver.ChromeOptions()
    options.binary_location = chromium
    for flag in (*FLAGS, f"--user-data-dir={tmp_path_factory.mktemp('profile')}"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    service = webdriver.ChromeService(executable_path=driver)
    started = webdriver.Chrome(options=options, service=service)
    yield started
    started.quit()


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A whole report of the small study, with the published tables."""
    folder = ROOT / "kernels" / "acoustic" / "studies" / "acoustic_tile"
    run = Run("c" * 40, "2026-01-02T03:04:05+00:00", "0011223344556677", 7, {"numpy": "2"})
    html, _ = assemble.report([study(name="acoustic_tile", folder=folder)], run)
    path = tmp_path_factory.mktemp("report") / "index.html"
    path.write_text(html, encoding="utf-8")
    return path


@pytest.fixture
def opened(browser: Any, page: Path) -> Any:
    """The page, freshly loaded at desktop width, logs of earlier pages dropped."""
    browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
    browser.get_log("browser")
    browser.get_log("performance")
    load(browser, page)
    return browser


def load(browser: Any, page: Path) -> None:
    """Open the page and wait for its script: the driver may return while it still loads."""
    browser.get("about:blank")
    browser.get(page.as_uri())
    ready = "return document.readyState === 'complete' && 'launchwiseDrawAll' in window"
    deadline = time.monotonic() + 20
    while not browser.execute_script(ready):
        assert time.monotonic() < deadline, "the page's script did not run"
        time.sleep(0.02)


def test_loads_without_an_error_and_without_the_network(opened: Any, page: Path) -> None:
    opened.execute_script("return window.launchwiseDrawAll()")
    assert [entry for entry in opened.get_log("browser") if entry["level"] == "SEVERE"] == []
    events = [json.loads(entry["message"])["message"] for entry in opened.get_log("performance")]
    asked = {
        event["params"]["request"]["url"]
        for event in events
        if event["method"] == "Network.requestWillBeSent"
    }
    # chrome:// is the browser's own start page, still loading its parts when ours begins.
    own = ("data:", "blob:", "chrome://")
    outside = {url for url in asked if not url.startswith(own)}
    assert outside == {page.as_uri()}


def test_every_plot_has_marks(opened: Any) -> None:
    count = opened.execute_script("return window.launchwiseDrawAll()")
    assert count > 8
    script = """
        return [...document.querySelectorAll('.plot')].filter((plot) => {
          const svg = plot.querySelector('svg.main-svg');
          const box = svg && svg.getBoundingClientRect();
          return !svg || !box.width || !box.height || !plot.querySelector(arguments[0]);
        }).map((plot) => plot.id);
    """
    assert opened.execute_script(script, DRAWN) == []


def test_plots_in_view_are_drawn_without_being_asked(opened: Any) -> None:
    script = """
        const done = arguments[arguments.length - 1];
        const plot = document.querySelector('main > section .plot');
        plot.scrollIntoView();
        const look = () => plot.querySelector('svg.main-svg') ? done(true) : setTimeout(look, 20);
        look();
    """
    assert opened.execute_async_script(script) is True


def test_every_table_has_a_caption_and_cells(opened: Any) -> None:
    script = """
        return [...document.querySelectorAll('table')].map((table) => [
          table.caption ? table.caption.textContent.trim() : '',
          table.querySelectorAll('tbody td').length,
          [...table.rows].some((row) => row.cells.length === 0),
        ]);
    """
    tables = opened.execute_script(script)
    assert len(tables) > 10
    assert [table for table in tables if not table[0] or not table[1] or table[2]] == []


def test_contents_lead_to_their_sections(opened: Any) -> None:
    script = """
        document.documentElement.style.scrollBehavior = 'auto';
        return [...document.querySelectorAll('nav a')].map((link) => {
          link.click();
          const target = document.getElementById(link.hash.slice(1));
          const box = target && target.getBoundingClientRect();
          const end = window.scrollY + window.innerHeight >= document.body.scrollHeight - 2;
          return [link.hash, !!target && location.hash === link.hash && (end || box.top < 60)];
        });
    """
    links = opened.execute_script(script)
    assert len(links) > 10
    assert [link for link, works in links if not works] == []


def test_nothing_sticks_out_on_a_phone(opened: Any, page: Path) -> None:
    phone = {"width": 390, "height": 844, "deviceScaleFactor": 1, "mobile": True}
    opened.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", phone)
    load(opened, page)
    opened.execute_script("return window.launchwiseDrawAll()")
    script = "return document.documentElement.scrollWidth"
    assert opened.execute_script(script) <= 390


def test_lookup_answers_for_the_chosen_problem(opened: Any) -> None:
    script = """
        const size = document.querySelector('.lookup select[name="n"]');
        return ['102', '202'].map((value) => {
          size.value = value;
          size.dispatchEvent(new Event('change', {bubbles: true}));
          const row = document.querySelector('.answers tbody tr');
          return [...row.cells].map((cell) => cell.textContent);
        });
    """
    small, large = opened.execute_script(script)
    assert small[:3] == ["big", "block3d 32×4×1 row_padding=0", "1.000"]
    assert large[:3] == ["big", "block3d 64×2×1 row_padding=0", "4.000"]
