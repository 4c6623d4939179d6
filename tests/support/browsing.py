"""Pages of the report in Chromium."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any


def load(browser: Any, page: Path | str, desktop: bool = True) -> Any:
    """Open a page, by its file or its address, and wait for its scripts and its lookup; the
    browser. ``desktop``: at desktop width, logs of earlier pages dropped."""
    if desktop:
        browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
        browser.get_log("browser")
        browser.get_log("performance")
    browser.get("about:blank")
    browser.get(page.as_uri() if isinstance(page, Path) else page)
    # The driver may return while it still loads.
    ready = "return document.readyState === 'complete' && 'launchwiseDrawAll' in window"
    deadline = time.monotonic() + 20
    while not browser.execute_script(ready):
        assert time.monotonic() < deadline, "the page's script did not run"
        time.sleep(0.02)
    wait_for_answer(browser)
    return browser


def wait_for_answer(browser: Any) -> None:
    """Wait until the page's lookup has answered, if it has one."""
    browser.execute_async_script("Promise.resolve(window.launchwiseOpened).then(arguments[0])")


SETTLED = """
    const done = arguments[0];
    let last = '', same = 0;
    const look = () => {
      const now = [scrollX, scrollY, document.body.scrollHeight].join();
      same = now === last ? same + 1 : 0;
      last = now;
      if (same > 5) done(); else setTimeout(look, 25);
    };
    look();
"""
"""Waits until the page scrolls and grows no more."""
