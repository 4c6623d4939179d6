"""axe-core on a page in Chromium, in light or dark."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from importlib import resources
from typing import Any


@contextmanager
def in_scheme(driver: Any, scheme: str) -> Iterator[None]:
    """Pages loaded meanwhile are asked for the colours ``light`` or ``dark``."""
    wanted = [{"name": "prefers-color-scheme", "value": scheme}]
    driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": wanted})
    try:
        yield
    finally:
        driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})


def violations(driver: Any, *rules: str) -> list[tuple[str, str]]:
    """Violations of these rules, or of all, on the open page: rule and first place of each."""
    axe = resources.files("axe_core_python").joinpath("axe.min.js").read_text(encoding="utf-8")
    driver.execute_script(axe)
    run = "axe.run(arguments[0]).then((found) => arguments[1](found.violations))"
    found = driver.execute_async_script(run, {"runOnly": rules} if rules else {})
    return [(each["id"], each["nodes"][0]["html"][:200]) for each in found]
