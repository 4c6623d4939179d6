"""Write the pages of the report, and its summaries."""

import gc
import time
from pathlib import Path
from typing import Any

from launchwise.base.scripting import log, run


def main(
    files: dict[str, Any],
    kept_out: dict[str, dict[str, list[str]]],
    settings: dict[str, Any],
    settings_files: list[str],
    front: Path,
    archive: Path,
    cards: Path,
    prices: Path | None,
    gpus: list[str],
    threads: int,
) -> None:
    """Read every study; write the folder of pages, the same as a zip, and two tables per study.

    A study that cannot be read is named in its place.

    ``settings_files``: files of the settings; none where config.yaml is all.
    ``prices``: table of prices; None without one.
    ``gpus``: names that it may hold.
    """
    begun = time.monotonic()

    import pyarrow

    from launchwise.base.storage import new_folder, write_text
    from launchwise.gpus.datasheets import read_cards, read_prices
    from launchwise.report.site import writing
    from launchwise.report.site.assemble import Report
    from launchwise.report.site.reading import read_studies
    from launchwise.report.study_tables import Run

    # Garbage collection over millions of cells takes a tenth of the time and frees next to nothing.
    gc.disable()
    # Its own pool gives memory back to the system, which clears it for the next table.
    pyarrow.set_memory_pool(pyarrow.system_memory_pool())
    studies, missing = read_studies(files, settings, kept_out)
    facts = Run.of(settings, settings_files)
    datasheets = read_cards(cards)
    costs = {} if prices is None else read_prices(prices, gpus, datasheets)
    texts = writing.folder(Report(studies, facts, datasheets, costs, missing), threads)
    # Written anew: pages of studies that are gone would stay.
    folder = new_folder(front.parent)
    for path, text in texts.items():
        write_text(folder / path, text)
        log.info("%s: %.2f MB", path, len(text.encode()) / 1e6)
    writing.pack(folder, texts, archive)
    log.info("%d files in %.1f s", len(texts), time.monotonic() - begun)


if __name__ == "__main__":
    run(main)
