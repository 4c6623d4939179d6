"""Write figures and tables of the report as files for papers and talks."""

from pathlib import Path
from typing import Any

from launchwise.base.scripting import log, run


def main(
    files: dict[str, Any],
    kept_out: dict[str, dict[str, list[str]]],
    settings: dict[str, Any],
    cards: Path,
    prices: Path | None,
    gpus: list[str],
    threads: int,
    output: Path,
) -> None:
    """Read every study; write a folder of files per study, and one of the pages about them all.

    Parameters
    ----------
    prices
        Table of prices; None without one.
    gpus
        Names that it may hold.
    """
    from launchwise.base.parallel import in_parallel
    from launchwise.base.storage import new_folder
    from launchwise.gpus.datasheets import read_cards
    from launchwise.gpus.prices import read_prices
    from launchwise.report.assemble import pages
    from launchwise.report.overview import Run
    from launchwise.report.printed.exports import export
    from launchwise.report.reading import read_studies
    from launchwise.report.site import OVERVIEW

    studies, missing = read_studies(files, settings, kept_out)
    facts = Run.of(settings)
    datasheets = read_cards(cards)
    costs = {} if prices is None else read_prices(prices, gpus, datasheets)
    every = pages(studies, facts, threads, datasheets, costs, missing)
    new_folder(output)

    def written(name: str) -> int:
        own = [page for page in every if (page.study or OVERVIEW) == name]
        listed = export(own, name, output / name, facts.citation)
        return sum(map(len, listed.values()))

    names = list(dict.fromkeys(page.study or OVERVIEW for page in every))
    for name, count in zip(names, in_parallel(written, names, threads), strict=True):
        log.info("%s: %d figures and tables", name, count)


if __name__ == "__main__":
    run(main)
