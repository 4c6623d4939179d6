"""Pages of the report in Chromium: time until usable, sizes, tab stops, width, printed pages, axe.

A page is usable once it has loaded and its lookup, if it has one, has answered. Times are medians
over loads in one Chromium. The stage that writes the report is timed as Snakemake with that stage
forced, less Snakemake with nothing to do (``own_s``); its script's own part stands beside it
(``script_s``: to read, make and write), the rest is Snakemake's bookkeeping.

A report of many GPUs is written from copies of recorded rows (:mod:`harness.many_gpus`) and
measured in the same way.

    snakemake --cores all -- report
    python benchmarks/report_pages.py benchmarks/results/report_pages.json
    python benchmarks/report_pages.py benchmarks/results/report_many_gpus.json --gpus 1000
"""

from __future__ import annotations

import base64
import os
import re
import resource
import statistics
import subprocess
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from harness.axe import in_scheme, violations
from harness.command_line import arguments, provenance
from harness.many_gpus import copied, recorded_study, write_report
from harness.needs import chromium
from harness.projects import ROOT, snakemake

from launchwise.base.storage import write_json
from launchwise.report import site, theme
from launchwise.report.blocks import Column, Figure, Page, Panel, Section, table

HOOK = """
  addEventListener('load', () => {
    Promise.all([window.launchwiseOpened, window.launchwiseCompared]).then(() => (
      requestAnimationFrame(() => { window.usableAt = performance.now(); })
    ));
    const inView = (node) => {
      const box = node.getBoundingClientRect();
      return box.height && box.top < innerHeight && !node.querySelector('.main-svg');
    };
    const look = () => {
      if ([...document.querySelectorAll('.plot')].some(inView)) requestAnimationFrame(look);
      else window.figuresAt = performance.now();
    };
    look();
  });
"""
"""Notes when a page is usable, and when the figures on its first screen are drawn."""

CONTROLS = "main select, main input, main button, main textarea"
MOST_STOPS = 40
COPIED_STUDY = "granger_time"
SCHEMES = ("light", "dark")
PHONE = {"width": 390, "height": 844, "deviceScaleFactor": 1, "mobile": True}
WAIT_S = 30.0
AXE_S = 600.0
"""Time limit of axe-core per page: it visits every cell of large tables."""


@contextmanager
def browser() -> Iterator[Any]:
    """A Chromium with an empty profile and a window of 1280 x 1000."""
    webdriver, program, driver = chromium()
    with tempfile.TemporaryDirectory() as profile:
        options = webdriver.ChromeOptions()
        options.binary_location = program
        for flag in ("--headless", "--no-sandbox", "--disable-gpu", "--window-size=1280,1000"):
            options.add_argument(flag)
        options.add_argument(f"--user-data-dir={profile}")
        started = webdriver.Chrome(
            options=options, service=webdriver.ChromeService(executable_path=driver)
        )
        try:
            command = "Page.addScriptToEvaluateOnNewDocument"
            started.execute_cdp_cmd(command, {"source": HOOK})
            started.set_script_timeout(AXE_S)
            yield started
        finally:
            started.quit()


def opened(driver: Any, page: Path) -> tuple[float, float]:
    """Milliseconds until a page is usable, and until the figures in view are drawn."""
    driver.get("about:blank")
    driver.get(page.as_uri())
    deadline = time.monotonic() + WAIT_S
    while True:
        usable, figures = driver.execute_script("return [window.usableAt, window.figuresAt]")
        if usable is not None and figures is not None:
            return float(usable), float(figures)
        if time.monotonic() > deadline:
            raise SystemExit(f"{page} is not usable after {WAIT_S:g} s")
        time.sleep(0.02)


def tab_stops(driver: Any) -> int:
    """Stops of the keyboard from the top until every control was reached; 0 without controls."""
    from selenium.webdriver.common.keys import Keys

    wanted = {one.id for one in driver.find_elements("css selector", CONTROLS)}
    stop = 0
    while wanted:
        stop += 1
        if stop > MOST_STOPS:
            raise SystemExit(f"{driver.current_url}: {len(wanted)} controls are out of reach")
        driver.switch_to.active_element.send_keys(Keys.TAB)
        wanted.discard(driver.switch_to.active_element.id)
    return stop


def printed_pages(driver: Any) -> int:
    """Pages on paper, folds closed."""
    data = driver.execute_cdp_cmd("Page.printToPDF", {"printBackground": True})["data"]
    return len(re.findall(rb"/Type\s*/Page[^s]", base64.b64decode(data)))


def violated(driver: Any, page: Path, scheme: str) -> list[str]:
    """Violations found by axe-core on a page with all its figures drawn."""
    with in_scheme(driver, scheme):
        opened(driver, page)
        driver.execute_script("return window.launchwiseDrawAll()")
        return [f"{scheme}: {rule}: {where}" for rule, where in violations(driver)]


def measure(driver: Any, folder: Path, page: Path, repeats: int) -> dict[str, Any]:
    """One row of the result."""
    opened(driver, page)
    times = [opened(driver, page) for _ in range(repeats)]
    stops, printed = tab_stops(driver), printed_pages(driver)
    driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", PHONE)
    opened(driver, page)
    driver.execute_script("return window.launchwiseDrawAll()")
    width = driver.execute_script("return document.documentElement.scrollWidth")
    driver.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
    found = [each for scheme in SCHEMES for each in violated(driver, page, scheme)]
    return {
        "page": page.relative_to(folder).as_posix(),
        "bytes": page.stat().st_size,
        "usable_ms": round(statistics.median(usable for usable, _ in times), 1),
        "usable_ms_most": round(max(usable for usable, _ in times), 1),
        "figures_in_view_ms": round(statistics.median(figures for _, figures in times), 1),
        "tab_stops": stops,
        "printed_pages": printed,
        "width_on_a_phone": width,
        "axe_violations": len(found),
        **({"violated": found} if found else {}),
    }


def processor_s() -> float:
    """Seconds that ended processes of this one took on all cores."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def stage_seconds(repeats: int) -> dict[str, Any]:
    """Seconds of Snakemake with the report forced and with nothing to do, in turn.

    ``core_s`` counts all cores: other work on the machine stretches it less than the time on a
    clock. Only files that changed run anything else.
    """
    walls: dict[str, list[float]] = {"forced": [], "nothing_to_do": []}
    cores: dict[str, list[float]] = {"forced": [], "nothing_to_do": []}
    scripts: list[float] = []
    for _ in range(repeats):
        for name, options in (("forced", ("--forcerun", "report")), ("nothing_to_do", ())):
            triggers = ("--rerun-triggers", "mtime")
            command, environment = snakemake(
                ROOT, "--cores", "2", *triggers, *options, "--", "report"
            )
            began, used = time.perf_counter(), processor_s()
            subprocess.run(command, cwd=ROOT, env=environment, check=True, capture_output=True)
            walls[name].append(time.perf_counter() - began)
            cores[name].append(processor_s() - used)
            if name == "forced":
                said = (ROOT / "results" / "logs" / "report.log").read_text()
                scripts.append(float(re.findall(r"files in ([\d.]+) s", said)[-1]))
    found: dict[str, Any] = {"repeats": repeats, "script_s": statistics.median(scripts)}
    for kind, values in (("s", walls), ("core_s", cores)):
        medians = {name: statistics.median(each) for name, each in values.items()}
        found |= {f"{name}_{kind}": round(median, 1) for name, median in medians.items()}
        found[f"own_{kind}"] = round(medians["forced"] - medians["nothing_to_do"], 1)
    return found


def smallest_report(folder: Path) -> None:
    """Two pages, one of them with a figure."""
    drawn = theme.line([1, 2], [1, 2], name="a", place=0)
    panel = Panel("", [drawn], theme.layout(theme.axis("x"), theme.axis("y")))
    values = table("Values", [Column("x")], [["1"]])
    for path, text in site.files(
        [
            Page("index.html", "Overview", "One", "", [Section("one", "One", [values])]),
            Page("two.html", "Two", "Two", "", [
                Section("two", "Two", [values, Figure("drawn", "A line", "A line", [panel])])
            ]),
        ]
    ).items():  # fmt: skip
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text, encoding="utf-8")


def many_gpus(folder: Path, gpus: int, studies: int) -> dict[str, Any]:
    """Write a report of many GPUs; what it took."""
    source = recorded_study(COPIED_STUDY, ROOT)
    copies = [copied(source, f"study{place}", gpus) for place in range(studies)]
    began, used = time.perf_counter(), processor_s() + time.process_time()
    sizes = write_report(copies, folder, 2)
    kinds: dict[str, int] = {}
    for path, size in sizes.items():
        kind = "/".join(path.split("/")[:2]) if path.startswith("data/") else path
        kind = re.sub(r"study\d+", "study", kind)
        kinds[kind] = kinds.get(kind, 0) + size
    return {
        "gpus": gpus,
        "studies": studies,
        "rows_per_study": sum(map(len, copies[0].sweeps.values())),
        "written_s": round(time.perf_counter() - began, 1),
        "written_core_s": round(processor_s() + time.process_time() - used, 1),
        "files": len(sizes),
        "bytes_by_kind": kinds,
    }


def main() -> None:
    """Measure and write the results."""
    parser = arguments(__doc__)
    parser.add_argument("--gpus", type=int, default=0, help="write a report of so many GPUs")
    parser.add_argument("--studies", type=int, default=10, help="with --gpus: in so many studies")
    parser.add_argument("--report", type=Path, default=ROOT / "results" / "report")
    parser.add_argument("--repeats", type=int, default=9)
    given = parser.parse_args()
    load = os.getloadavg()[0]
    with tempfile.TemporaryDirectory() as scratch, browser() as driver:
        folder = given.report.resolve()
        if given.smallest:
            folder = Path(scratch)
            smallest_report(folder)
        written = {}
        if given.gpus and not given.smallest:
            folder = Path(scratch)
            written = many_gpus(folder, given.gpus, given.studies)
        pages = sorted(folder.rglob("*.html"), key=lambda page: (len(page.parts), str(page)))
        if written:
            # The studies are alike.
            pages = [page for page in pages if "study" not in str(page) or "study0" in str(page)]
        rows = []
        for page in pages:
            rows.append(measure(driver, folder, page, 1 if given.smallest else given.repeats))
            print(rows[-1], flush=True)
        files = [path for path in folder.rglob("*") if path.is_file()]
        result = {
            **provenance(chromium=driver.capabilities["browserVersion"]),
            # Above the number of cores the machine did other work, and times are upper bounds.
            "load_before": round(load, 2),
            "repeats": given.repeats,
            **written,
            "folder_bytes": sum(path.stat().st_size for path in files),
            "most": {
                name: max(row[name] for row in rows)
                for name in ("usable_ms", "figures_in_view_ms", "tab_stops", "printed_pages",
                             "width_on_a_phone", "axe_violations")
            },
            "pages": rows,
        }  # fmt: skip
    if not given.smallest and not given.gpus:
        result["stage"] = stage_seconds(3)
    write_json(given.output, result)


if __name__ == "__main__":
    main()
