"""Pages of the report in Chromium."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any


def at_desktop(browser: Any) -> None:
    browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
    browser.get_log("browser")
    browser.get_log("performance")


def load(browser: Any, page: Path) -> None:
    """Open the page and wait for its script: the driver may return while it still loads."""
    browser.get("about:blank")
    browser.get(page.as_uri())
    ready = "return document.readyState === 'complete' && 'launchwiseDrawAll' in window"
    deadline = time.monotonic() + 20
    while not browser.execute_script(ready):
        assert time.monotonic() < deadline, "the page's script did not run"
        time.sleep(0.02)
