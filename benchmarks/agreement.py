"""The same answer everywhere: lookup, `launchwise recommend` and every export, random questions.

    python benchmarks/agreement.py benchmarks/results/agreement.json --project FOLDER

Asks the products of a finished main job (`results/final/`) about measured, datasheet-only and
unknown devices, and about problems that are listed, between listed ones, far beyond, tiny, odd and
impossible. The JSON file is read as "Use the answers" says, the Python module runs by
itself, the C++ header is compiled with g++, and the lookup is asked by the rule of the page.
"""

from __future__ import annotations

import contextlib
import tempfile
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from harness.ablated import material_of
from harness.agreement import Answering
from harness.command_line import arguments, provenance
from harness.projects import ROOT
from harness.questions import KINDS, drawn

from launchwise.base.storage import write_json
from launchwise.cli.products import load_final
from launchwise.cli.studies import find_profile, read_experiment
from launchwise.experiment.experiment import Experiment
from launchwise.experiment.study import ModelEntry
from launchwise.exporting.lookup import lookup_entries
from launchwise.exporting.table import answer_table
from launchwise.importing.cards import cuda_names
from launchwise.learning.final import Final, read_final
from launchwise.learning.product import fit_final
from launchwise.tables.times import judged_times

QUESTIONS, FEWEST, SEED = 500, 24, 7
SMALLEST = ("pnpoly_transfer",)


def fitted(name: str, experiment: Experiment, described: Sequence[str], folder: Path) -> Final:
    """A product of a single model, for the smallest size."""
    material = material_of(name)
    entry = ModelEntry(kind="knn", title="kNN")
    times = {gpu: judged_times(rows, None, material.spec) for gpu, rows in material.sweeps.items()}
    domain = material.domain()
    fit_final(material.study, "knn", entry, domain, material.sweeps, times, [], SEED, folder)
    others = {gpu: find_profile(gpu, experiment, "agreement") for gpu in described}
    return read_final(folder, replace(domain, profiles={**domain.profiles, **others}))


def of_product(name: str, final: Final, described: Sequence[str], count: int) -> dict[str, Any]:
    """Questions by kind, and those that were not answered alike."""
    entries = lookup_entries(final, described)
    table = answer_table(final, name, described, cuda_names=cuda_names())
    questions = drawn(table, count, np.random.default_rng([SEED, *name.encode()]))
    with tempfile.TemporaryDirectory() as folder:
        answering = Answering(final, entries, table, Path(folder, "export"))
        wrong = answering.disagreements(questions)
    kinds = Counter(one.kind for one in questions)
    return {
        "study": name,
        "questions": len(questions),
        "kinds": {kind: kinds[kind] for kind in KINDS},
        "bases": answering.bases(questions),
        "disagreements": len(wrong),
        "examples": wrong[:5],
    }


def main() -> None:
    """Ask the products of every study."""
    parser = arguments(__doc__ or "")
    parser.add_argument("--project", type=Path, default=ROOT, help="folder with results/final")
    given = parser.parse_args()
    root = given.project.resolve()
    with contextlib.chdir(root):
        experiment = read_experiment([root / "config.yaml"], root)
    settings = experiment.settings.gpus
    described = [gpu for gpu, entry in settings.items() if entry.source == "described"]
    studies = SMALLEST if given.smallest else tuple(experiment.studies)
    count = FEWEST if given.smallest else -(-QUESTIONS // len(studies))
    rows = []
    for name in studies:
        with tempfile.TemporaryDirectory() as folder:
            final = (
                fitted(name, experiment, described, Path(folder, name))
                if given.smallest
                else load_final(name, experiment, described)
            )
            rows.append(of_product(name, final, described, count))
        print(name, rows[-1]["questions"], rows[-1]["disagreements"], flush=True)
    total = {name: sum(one[name] for one in rows) for name in ("questions", "disagreements")}
    write_json(given.output, {**provenance(), "seed": SEED, **total, "studies": rows})


if __name__ == "__main__":
    main()
