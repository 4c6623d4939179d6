"""Pages of the report in Chromium: opened, asked, shown on other media, read by axe-core."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import resources
from pathlib import Path
from typing import Any

MEDIA = "Emulation.setEmulatedMedia"


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


@contextmanager
def media(browser: Any, kind: str = "", scheme: str = "") -> Iterator[None]:
    """The open page is shown as on ``kind``, such as ``print``; pages loaded meanwhile are asked
    for the colours ``light`` or ``dark``."""
    wanted = [{"name": "prefers-color-scheme", "value": scheme}]
    browser.execute_cdp_cmd(MEDIA, {"media": kind, "features": wanted})
    try:
        yield
    finally:
        browser.execute_cdp_cmd(MEDIA, {"media": "", "features": []})


def violations(browser: Any, *rules: str) -> list[tuple[str, str]]:
    """Violations of these rules of axe-core, or of all, on the open page: rule and first place of
    each."""
    axe = resources.files("axe_core_python").joinpath("axe.min.js").read_text(encoding="utf-8")
    browser.execute_script(axe)
    run = "axe.run(arguments[0]).then((found) => arguments[1](found.violations))"
    found = browser.execute_async_script(run, {"runOnly": rules} if rules else {})
    return [(each["id"], each["nodes"][0]["html"][:200]) for each in found]


def choose(browser: Any, name: str, value: str) -> str:
    """Change a field of the lookup; what it says then."""
    script = """
        const [name, value, done] = arguments;
        const field = document.querySelector('.finder').elements[name];
        field.value = value;
        field.dispatchEvent(new Event('change', {bubbles: true}));
        setTimeout(() => Promise.resolve(window.launchwiseOpened).then(() => done()), 50);
    """
    browser.execute_async_script(script, name, value)
    return said(browser)


def said(browser: Any) -> str:
    """What the lookup says."""
    return str(browser.execute_script("return document.querySelector('.answer').innerText"))


def draw(browser: Any, **values: str) -> str:
    """Change fields of the landscape; what it says when it is drawn."""
    script = """
        const [values, done] = arguments;
        const fields = document.querySelector('.landscape').elements;
        for (const [name, value] of Object.entries(values)) fields[name].value = value;
        fields[Object.keys(values)[0]].dispatchEvent(new Event('change', {bubbles: true}));
        const said = () => document.querySelector('.landscape-status').textContent;
        launchwiseLandscape.then(() => done(said()));
    """
    return str(browser.execute_async_script(script, values))


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
