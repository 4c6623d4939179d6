"""C4.5 of this project beside Weka's J48, on the same examples.

    python benchmarks/against_weka.py benchmarks/results/weka.json

Examples are recorded rows of the acoustic stencil's tiles at the sizes that the published study
trains on: of cards and slices with such rows, its features, the tile as class. Three tables: every
row is an example; those within one Tukey filter over all times, as published; rows near the best of
their problem alone, with the weights of our default. As their trees are small, tables of random
numbers with a rule behind them stand beside. Both learn from each table with the same options
(-M 2 -C 0.25). Compared are leaves, the error on the examples, the score of ten folds,
the same for both, and the class of every example and of every problem that the study tests.
"""

from __future__ import annotations

import shutil
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import yaml
from harness.ablated import Material, material_of
from harness.command_line import arguments, write_result
from harness.j48 import J48, Examples
from harness.needs import end
from harness.projects import ROOT
from sklearn.model_selection import StratifiedKFold

from kernels.acoustic.recommenders.c45 import C45Recommender
from kernels.acoustic.recommenders.c45.tree import C45Tree
from launchwise.experiment.study import ProblemSplit
from launchwise.learning.features import Domain
from launchwise.learning.row_arrays import configuration_codes
from launchwise.learning.training_rows import fences_ms

KINDS = ("all", "filtered", "near_best")
STUDY, VARIANTS, FOLDS = "acoustic_tile", ("omp_tile", "openmp"), 10
GPUS = ("h100", "h200", "h200.sm72", "h200.sm32", "h200.sm16")
SEED, MADE = 2026, 40
DEBIAN = Path("/usr/share/java/weka.jar")  # where Debian's package has Weka


def domain_of(variant: str, known: Material) -> tuple[Domain, pd.DataFrame]:
    """The published features and the tiles of a variant; rows of every GPU that has some."""
    overlay = yaml.safe_load((ROOT / "config" / "paper.yaml").read_text())
    tables = [known.sweeps[gpu] for gpu in GPUS]
    rows = pd.concat([table[table["variant"] == variant] for table in tables], ignore_index=True)
    rows = rows[rows["time_ms"].notna() & ((rows["tile_i"] > 0) | (variant != "openmp"))]
    profiles = {gpu: known.profiles[gpu] for gpu in rows["gpu"].unique()}
    named = rows.astype({name: object for name in ("gpu", "dtype", "variant")})
    features = overlay["studies"][STUDY]["features"]
    domain = Domain(known.spec, profiles, {"variant": [variant]}, only_features=features)
    return domain, named.reset_index(drop=True)


def examples_of(
    domain: Domain, rows: pd.DataFrame, kind: str, sizes: ProblemSplit
) -> tuple[Examples, Examples, list[str]]:
    """Examples of the training sizes, one row per tested problem, and the features of both."""
    recommender = C45Recommender(domain, examples="near_best" if kind == "near_best" else "all")
    known = rows[rows["n"].isin(sizes.train["n"])]
    if kind == "filtered":
        times = known["time_ms"].to_numpy(float)
        low, high = fences_ms(times, np.zeros(len(times), np.int64), "global")
        known = known[(times >= low) & (times <= high)]
    chosen, weights = recommender.examples(known)
    table = domain.features(chosen)[domain.problem_features]
    columns = list(table.columns[table.nunique() > 1])
    codes = configuration_codes(chosen, domain.choice_columns, domain.spec)
    classes, numbers = np.unique(codes, return_inverse=True)
    train = Examples(table[columns].to_numpy(float), numbers, weights, len(classes))
    tested = rows[rows["n"].isin(sizes.test["n"])]
    asked = tested.drop_duplicates(["gpu", *domain.spec.problem_columns])
    values = domain.features(asked.reset_index(drop=True))[columns].to_numpy(float)
    none = np.zeros(len(values), np.int64)
    return train, Examples(values, none, np.ones(len(values)), len(classes)), columns


def made(seed: int) -> tuple[Examples, Examples]:
    """Examples with a rule behind noise, of even seeds with weights; and as many to ask about."""
    dice = np.random.default_rng(seed)
    count, classes = int(dice.integers(40, 600)), int(dice.integers(2, 7))
    values = np.column_stack([dice.integers(0, most, 2 * count) for most in (3, 6, 20, 1000)])
    steps = [values[:, 0], 2 * (values[:, 1] > 2), values[:, 2] > 9, values[:, 3] > 400]
    numbers = np.sum(steps, axis=0) % classes
    noisy = dice.random(2 * count) < dice.choice([0, 0.1, 0.3])
    numbers[noisy] = dice.integers(0, classes, noisy.sum())
    numbers[:classes] = range(classes)
    weights = np.ones(2 * count) if seed % 2 else dice.choice([0.25, 0.5, 1.0, 2.0], 2 * count)
    whole = Examples(values.astype(float), numbers, weights, classes)
    return whole.part(np.arange(count)), whole.part(np.arange(count, 2 * count))


def made_compared(j48: J48, tables: int) -> dict[str, Any]:
    """How often both agree on tables that are made."""
    rows = []
    for seed in range(tables):
        train, asked = made(seed)
        tree, theirs = own_tree(train), j48.tree(train)
        same = own_classes(tree, asked) == j48.predicted(train, asked)
        rows.append((tree.leaves, int(theirs["leaves"]), float(100 * same.mean())))
    leaves = [own for own, _, _ in rows]
    return {
        "tables": tables,
        "leaves_of_weka": [other for _, other, _ in rows],
        "least_leaves": min(leaves),
        "most_leaves": max(leaves),
        "tables_with_equal_leaves": sum(own == other for own, other, _ in rows),
        "least_percent_same": min(share for _, _, share in rows),
    }


def own_tree(train: Examples) -> C45Tree:
    """Our tree of some examples, with J48's options."""
    return C45Tree(2.0, 0.25).fit(train.features, train.classes, train.weights)


def own_classes(tree: C45Tree, asked: Examples) -> np.ndarray:
    """Class of each row: int64, shape (rows,)."""
    return np.asarray(tree.distributions(asked.features).argmax(axis=1))


def wrong_percent(found: np.ndarray, asked: Examples) -> float:
    """Weight of the examples with another class, %."""
    return float(100 * asked.weights[found != asked.classes].sum() / asked.weights.sum())


def compared(j48: J48, train: Examples, asked: Examples, folds: int) -> dict[str, Any]:
    """Figures of both trees, and how often they agree."""
    tree = own_tree(train)
    own = {name: own_classes(tree, table) for name, table in (("rows", train), ("tests", asked))}
    theirs = {"rows": j48.predicted(train, train), "tests": j48.predicted(train, asked)}
    scores: dict[str, list[float]] = {"ours": [], "weka": []}
    same = 0
    parts = StratifiedKFold(folds, shuffle=True, random_state=SEED)
    for learnt, left in parts.split(train.features, train.classes):
        part, rest = train.part(learnt), train.part(left)
        found = own_classes(own_tree(part), rest), j48.predicted(part, rest)
        for name, classes in zip(scores, found, strict=True):
            scores[name].append(100 - wrong_percent(classes, rest))
        same += int((found[0] == found[1]).sum())
    return {
        "examples": len(train.classes),
        "classes": train.count,
        "tested_problems": len(asked.classes),
        "ours": {
            "leaves": tree.leaves,
            "training_error_percent": wrong_percent(own["rows"], train),
            "folds_percent_right": float(np.mean(scores["ours"])),
        },
        "weka": {**j48.tree(train), "folds_percent_right": float(np.mean(scores["weka"]))},
        "percent_same": {
            "examples": float(100 * (own["rows"] == theirs["rows"]).mean()),
            "tested_problems": float(100 * (own["tests"] == theirs["tests"]).mean()),
            "fold_answers": 100 * same / len(train.classes),
        },
    }


def weka(jar: Path | None) -> tuple[str, Path]:
    """Java, and the archive of Weka: the one given, that of a package of Python, or Debian's."""
    java = shutil.which("java")
    if java is None:
        end("Java: apt-get install default-jre-headless")
    package = find_spec("weka")
    folders = (package and package.submodule_search_locations) or ()
    known = [jar] if jar else [*(Path(each, "lib", "weka.jar") for each in folders), DEBIAN]
    found = next((path for path in known if path.is_file()), None)
    if found is None:
        end(
            f"Weka's weka.jar ({jar or 'none found'}): apt-get install weka, or pip install "
            "python-weka-wrapper3, or --jar FILE"
        )
    return java, found


def main() -> None:
    """Compare on each table that recorded rows give."""
    parser = arguments(__doc__)
    parser.add_argument("--jar", type=Path, help="weka.jar, where none is installed")
    given = parser.parse_args()
    java, jar = weka(given.jar)
    j48 = J48(java, jar)
    material, found = material_of(STUDY), []
    sizes = material.study.splits["paper"]
    assert isinstance(sizes, ProblemSplit)
    for variant in VARIANTS[: 1 if given.smallest else None]:
        domain, rows = domain_of(variant, material)
        if given.smallest:
            rows = rows[(rows["gpu"] == GPUS[0]) & (rows["tx"] * rows["ty"] * rows["tz"] <= 4)]
        for kind in KINDS if len(rows) else ():
            train, asked, columns = examples_of(domain, rows.reset_index(drop=True), kind, sizes)
            one = compared(j48, train, asked, 2 if given.smallest else FOLDS)
            found.append({"variant": variant, "rows": kind, "features": columns, **one})
            print(variant, kind, one["ours"], one["weka"], one["percent_same"], flush=True)
    tables = made_compared(j48, 2 if given.smallest else MADE)
    print("made", tables)
    options = {"minimum": j48.minimum, "confidence": j48.confidence, "folds": FOLDS, "seed": SEED}
    result = {"options": options, "compared": found, "made": tables}
    write_result(given.output, result, weka=j48.version)


if __name__ == "__main__":
    main()
