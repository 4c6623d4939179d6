"""Figures of the report's front page and GPUs page, computed a second time.

    snakemake --cores all -- report
    python benchmarks/recomputed.py results benchmarks/results/recomputed.json

The pages and their data scripts are read as a browser reads them. Each number is compared, to the
digits that are shown, with its value by :mod:`recomputing`, which starts from the tables of the
results. Status 1: some differ.
"""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Any

from harness.command_line import arguments, write_result
from harness.needs import end
from harness.projects import ROOT
from recomputing import answers, front, gpus, health, judged, ratios
from recomputing.comparing import Ledger
from recomputing.entries import entries, spread_of
from recomputing.material import Material
from recomputing.pages import read_page
from recomputing.sweeps import sweeps

from launchwise.base.storage import read_json
from launchwise.cli.words import read_experiment
from launchwise.experiment.experiment import Experiment

CARDS = ROOT / "data" / "cards.csv"

UNCOVERED = {"": "no value in the results", "What was measured": "limits and explanations in words"}
"""Beginning of a table's caption to why its other numbers are not compared."""


def recompute(experiment: Experiment, results: Path, project: Path, smallest: bool) -> Ledger:
    """Compare the pages of a report with the results beside it.

    ``results``: holds the tables and ``report/``.
    ``project``: the repository of the workloads, whose commits the GPUs page counts.
    ``smallest``: the front page alone.
    """
    folder, ledger = results / "report", Ledger()
    materials = [Material.of(experiment, name, results) for name in experiment.studies]
    settings = experiment.settings
    spread = spread_of(materials)
    found = {one.name: entries(one) for one in materials}
    of_cards = ratios.ratios(materials)
    known = sweeps(materials)
    judged.compare(materials, ledger)

    page = read_page(folder, "index.html")
    front.compare(page, materials, ledger)
    ratios.compare_front(page, materials, of_cards, ledger)
    answers.compare(folder, materials, settings.least_gain, ledger)
    health.compare_doubts(folder, materials, known, ledger)
    ledger.leave_unseen(page, UNCOVERED)
    if smallest:
        return ledger

    power = gpus.power_of(materials, CARDS)
    page = read_page(folder, "gpus.html")
    gpus.compare(page, folder, materials, found, spread, power, ledger)
    ratios.compare_gpus(page, folder, materials, of_cards, ledger)
    run = read_json(folder / "data" / "provenance.json")
    ledger.table(page.path, "data/provenance.json").same("seed", run["seed"], settings.seed)
    health.compare(page, run, materials, known, project, ledger)
    health.compare_contradictions(page, materials, ledger)
    ledger.leave_unseen(page, UNCOVERED)
    return ledger


def summary(ledger: Ledger) -> dict[str, Any]:
    """Counts by page and over all, and every table."""
    tables = [one.plain() for one in ledger.tables]
    pages = {}
    for page in dict.fromkeys(one["page"] for one in tables):
        own = [one for one in tables if one["page"] == page]
        pages[page] = {
            "figures": sum(one["figures"] for one in own),
            "differences": sum(one["differences"] for one in own),
            "uncovered": sum(sum(one["uncovered"].values()) for one in own),
        }
    total = {name: sum(one[name] for one in pages.values()) for name in ("figures", "differences")}
    return {**total, "pages": pages, "tables": tables}


def main() -> None:
    """Compare, write the file, and fail where something differs. Raises SystemExit: status 1, when
    figures differ; status 2, where no report was written."""
    given = arguments(__doc__, results="folder of finished results with their report")
    given.add_argument(
        "--settings",
        type=Path,
        nargs="+",
        default=[ROOT / "config.yaml"],
        help="settings of the results, overlays behind; their folder is the project's",
    )
    asked = given.parse_args()
    results = asked.results.resolve()
    if not (results / "report" / "index.html").is_file():
        end(f"a report in {results / 'report'} (snakemake --cores all -- report)")
    files = [path.resolve() for path in asked.settings]
    with contextlib.chdir(files[0].parent):
        experiment = read_experiment(files, files[0].parent)
        ledger = recompute(experiment, results, files[0].parent, asked.smallest)
    found = summary(ledger)
    for one in found["tables"]:
        for each in one["listed"]:
            print(f"{one['page']}, {one['table']}: {each}")
    for page, counts in found["pages"].items():
        print(page, ", ".join(f"{count} {name}" for name, count in counts.items()))
    write_result(asked.output, found)
    raise SystemExit(int(found["differences"] > 0))


if __name__ == "__main__":
    main()
