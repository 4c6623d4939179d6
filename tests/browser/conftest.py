"""One Chromium for the tests of a worker."""

import shutil

import pytest

from tests.support.browsing import load
from tests.support.report_pages import files_of, write
from tests.support.report_study import study

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


@pytest.fixture(scope="session")
def browser(tmp_path_factory):
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
def folder(tmp_path_factory):
    """A report of the small study; files with another report have a fixture of their own."""
    return write(files_of(study()), tmp_path_factory.mktemp("report"))


@pytest.fixture
def opened(browser, folder):
    """The study's first page at desktop width."""
    return load(browser, folder / "tiny" / "index.html")
