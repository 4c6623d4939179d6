"""The published recipe of the acoustic study (config/paper.yaml), with either Tukey filter.

Three runs of the pipeline on the recorded sweeps, each on a copy of the project: the overlay as it
is; the overlay with one filter per problem; and the default models on the paper's tiles and test
problems alone. Where recorded sweeps hold the paper's program (variant openmp), the recipe runs on
its rows, too, with either filter; loops without tiles are then the baseline. The study's section
of the report shows the result.

Every time is that of one row of a sweep. Pairs, which took place at lower clocks on some GPUs, hold
untiled loops but few of the paper's tiles; a ratio of the two kinds would compare clocks as well.

    python benchmarks/paper_recipe.py kernels/acoustic/studies/acoustic_tile/recorded/recipe.json
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pandas as pd
import yaml
from harness.command_line import arguments, provenance
from harness.projects import ROOT, copied_project, read_settings, snakemake

from launchwise.base.storage import read_json, write_json
from launchwise.base.typed import read_yaml
from launchwise.learning.baselines import BASELINES
from launchwise.learning.truth import CANDIDATES
from launchwise.tables.files import read_facts

STUDY = "acoustic_tile"
SPLIT = "paper"
OVERLAY = ROOT / "config" / "paper.yaml"
SPEC = ROOT / "kernels" / "acoustic" / "spec.yaml"
WORKLOAD, PROGRAM, UNTILED = "acoustic", "openmp", "baseline: {variant: linear}"
DEFAULT_MODELS = ("c45", "knn", "tree", "forest", "xgboost", "lightgbm")
"""The paper's six, with the settings of ``config.yaml``."""
QUICK = {
    "gpus": {name: {"held_out": True} for name in ("h100", "h200.sm72", "h200.sm32")},
    "search": {"trials": 1},
    "studies": {STUDY: {"models": ["c45", "knn_printed"]}},
}
"""Settings of ``--smallest``."""

OF_MODEL = (
    *("kind", "trials", "parameters", "objective", "seconds_search", "seconds_fit"),
    *("rows", "leaves", "classes", "examples", "cross_validation"),
)
FIGURES = (
    *("problems", "percent_improved", "percent_runs_improved", "improvement_coefficient"),
    *("fraction_geometric_mean", "mape_percent"),
)


def runs(overlay: Mapping[str, Any]) -> dict[str, list[dict[str, Any]]]:
    """Name of each run to the settings laid over ``config.yaml``, the strongest last."""
    studies = overlay["studies"]
    theirs = {key: studies[STUDY][key] for key in ("candidates", "train_on", "splits")}
    own = {**studies, STUDY: {**theirs, "models": list(DEFAULT_MODELS)}}
    filtered = {"studies": {STUDY: {"fences": {"scope": "problem"}}}}
    return {
        "recipe": [dict(overlay)],
        "recipe_filter_per_problem": [dict(overlay), filtered],
        "default_models": [{"studies": own}],
    }


def program_runs(overlay: Mapping[str, Any]) -> dict[str, list[dict[str, Any]]]:
    """Further runs, on the rows of the paper's program; none where no recorded sweep has them.
    Tiles are candidates at the sizes that every GPU with such rows measured."""
    sizes = {gpu: found for gpu in read_settings(ROOT)["gpus"] if (found := program_sizes(gpu))}
    if not sizes:
        return {}
    known = set.intersection(*sizes.values())
    split = read_yaml(SPEC.parent / "studies" / STUDY / "study.yaml")["splits"][SPLIT]
    parts = {part: {"n": [n for n in split[part]["n"] if n in known]} for part in ("train", "test")}
    tiles = [each for each in read_yaml(SPEC)["tunables"]["tile_i"]["values"] if each]
    own = {
        "gpus": list(sizes),
        "candidates": {"variant": [PROGRAM], "tile_i": tiles},
        "splits": {SPLIT: parts},
    }
    filtered = {"studies": {STUDY: {"fences": {"scope": "problem"}}}}
    whole = [dict(overlay), {"studies": {STUDY: own}}]
    return {PROGRAM: whole, f"{PROGRAM}_filter_per_problem": [*whole, filtered]}


def program_sizes(gpu: str) -> set[int]:
    """Grids on which a GPU of ``config.yaml`` measured the program; none without a recorded sweep
    of the workload in the project."""
    path = ROOT / "data" / "recorded" / gpu / f"{WORKLOAD}.parquet"
    if not path.is_file():
        return set()
    rows = pd.read_parquet(path, columns=["n", "variant"])
    return set(rows.loc[rows["variant"] == PROGRAM, "n"])


def without_pairs(folder: Path) -> None:
    """Let rows of the sweeps alone judge a copy's study, tiles and untiled loops alike."""
    for path in (folder / "data" / "recorded").glob(f"*/{STUDY}.pairs.parquet"):
        path.unlink()


def with_own_baseline(folder: Path) -> None:
    """Let loops without tiles of the program be the baseline of a copy."""
    path = folder / SPEC.relative_to(ROOT)
    text = path.read_text()
    assert UNTILED in text
    path.write_text(text.replace(UNTILED, f"baseline: {{variant: {PROGRAM}}}"))


def measured(folder: Path, overlays: list[dict[str, Any]]) -> dict[str, Any]:
    """Run the study with ``overlays`` on the copy in ``folder`` and collect its figures."""
    files = [folder / f"overlay{number}.yaml" for number in range(len(overlays))]
    for path, overlay in zip(files, overlays, strict=True):
        path.write_text(yaml.safe_dump(overlay))
    given = ["-q", "--configfile", "config.yaml", *map(str, files)]
    target = f"results/evaluation/{STUDY}.summary.json"
    ran = snakemake(folder, "--cores", "1", "-q", *given, "--", target)
    found = collected(folder / "results")
    for name, model in found["models"].items():
        model["title"] = title(name, overlays)
    return {"wall_s": round(ran.seconds, 1), **found}


def title(model: str, overlays: list[dict[str, Any]]) -> str:
    """Title of a model in the strongest settings that have it; its name where none has."""
    found = model
    for settings in (read_settings(ROOT), *overlays):
        own = (settings.get("studies") or {}).get(STUDY) or {}
        for models in (settings.get("models") or {}, own.get("own_models") or {}):
            found = str(models[model]["title"]) if model in models else found
    return found


def collected(results: Path) -> dict[str, Any]:
    """Training rows, models and figures per GPU from the tables of a run."""
    facts = read_facts(results / "clean" / f"{STUDY}.parquet")
    summary = read_json(results / "evaluation" / f"{STUDY}.summary.json")["splits"][SPLIT]
    rows = pd.read_parquet(results / "evaluation" / f"{STUDY}.parquet")
    models = {}
    for path in sorted((results / "learnt" / STUDY).glob("*.parquet")):
        trained = read_facts(path)
        if path.stem in BASELINES or path.stem == CANDIDATES:
            continue
        (fold,) = trained["folds"]
        known = {**trained, **fold}
        models[path.stem] = {key: known[key] for key in OF_MODEL if key in known}
    shown = [*models, "oracle"]
    return {
        "fences": facts["fences"],
        "training": facts["counts"][0],
        "models": models,
        "gpus": {
            gpu: {
                name: {
                    **{key: found[key] for key in FIGURES},
                    **losses(rows[(rows["gpu"] == gpu) & (rows["model"] == name)]),
                }
                for name in shown
                if (found := part["models"].get(name))
            }
            for gpu, part in summary.items()
            if gpu != "all"
        },
    }


def losses(rows: pd.DataFrame) -> dict[str, float]:
    """Share of recommendations slower than untiled, %, and the worst speed-up over untiled."""
    speed_ups = rows["improvement"]
    return {
        "percent_slower": float(100 * (speed_ups < 1).mean()),
        "worst_speed_up": float(speed_ups.min()),
    }


def main() -> None:
    """Run the recipe with either filter, the default models, and the recipe on the program."""
    given = arguments(__doc__).parse_args()
    overlay = yaml.safe_load(OVERLAY.read_text())
    chosen = runs(overlay) | program_runs(overlay)
    if given.smallest:
        chosen = {"recipe": [*chosen["recipe"], QUICK]}
    found: dict[str, Any] = {}
    made_by = provenance()
    for name, overlays in chosen.items():
        with copied_project() as folder:
            without_pairs(folder)
            if name.startswith(PROGRAM):
                with_own_baseline(folder)
            found[name] = {"commit": made_by["commit"], **measured(folder, overlays)}
        print(f"{name:26} {found[name]['wall_s']:7.1f} s")
    settings = {"seed": read_settings(ROOT)["seed"], "overlay": overlay}
    write_json(given.output, {**made_by, **settings, "runs": found})


if __name__ == "__main__":
    main()
