"""Answers of heuristics and single models in the recorded blind tests.

    python benchmarks/blind_rivals.py benchmarks/results/blind_rivals.json

Every method learns from today's rows of the GPUs that the answers were learnt from, and is asked
for the problems of each blind test. So is today's product, which is no blind test any more.
All answers, those that were written down included, are judged by the test's sweep: the fastest of
its candidates over the answer. Methods are compared on the same resampled problems; the best of
them is named afterwards, so its figure is optimistic.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pandas as pd
from harness.ablated import Material, material_of
from harness.command_line import arguments, provenance
from harness.projects import ROOT

from launchwise.base.storage import write_json
from launchwise.gpus.profile import read_profile
from launchwise.learning.baselines import BASELINES
from launchwise.learning.blind.answering import Frozen, problem_of, read_frozen, whole
from launchwise.learning.blind.scoring import check_measured_after
from launchwise.learning.evaluate import Truth
from launchwise.learning.features import Domain
from launchwise.learning.final import learnt_from
from launchwise.learning.intervals import Means, resampled_means
from launchwise.learning.metrics import HARM_PERCENT, geometric_mean
from launchwise.learning.recommenders import recommender_class
from launchwise.learning.splits import Case
from launchwise.tables.files import read_table
from launchwise.tables.measurements import measurement_schema

RECORDED = ROOT / "data" / "recorded"
SMALLEST = ("h200", "tridiagonal_streams")
SEED = 2026
ANSWERS, TODAY = "answers", "committee"
MODELS = ("learnt", "knn", "forest", "xgboost", "lightgbm", TODAY)


@dataclass(frozen=True)
class Test:
    """A recorded blind test."""

    gpu: str
    study: str
    frozen: Frozen
    sweep: pd.DataFrame
    domain: Domain


def recorded_tests() -> list[tuple[str, str]]:
    """GPU and study of every blind test that was measured."""
    paths = sorted(RECORDED.glob("*/blind/*.sweep.parquet"))
    return [(path.parents[1].name, path.name.partition(".")[0]) for path in paths]


def read_test(gpu: str, study: str, material: Material) -> Test:
    """A blind test, and a domain that knows its GPU."""
    folder = RECORDED / gpu / "blind"
    frozen = read_frozen(folder / f"{study}.frozen.json")
    path = folder / f"{study}.sweep.parquet"
    sweep = read_table(path, measurement_schema(material.spec))
    check_measured_after(frozen, {str(path): sweep})
    material.profiles[gpu] = read_profile(RECORDED / gpu / "profile.json", gpu)
    return Test(gpu, study, frozen, sweep, material.domain())


def asked_configurations(test: Test, material: Material, models: tuple[str, ...]) -> pd.DataFrame:
    """Answers of every method: ``model``, GPU, problem and tunables, one row per problem."""
    spec = material.spec
    known = test.frozen.product["gpus"]
    sweeps = {gpu: rows for gpu, rows in material.sweeps.items() if gpu in known}
    learnt = learnt_from(material.study, test.domain, sweeps)
    cases = [Case(test.gpu, problem_of(each, spec)) for each in test.frozen.answers]
    choices = test.domain.keeping_features(test.domain.choices(cases))
    tables = []
    for name in (*BASELINES, *models):
        kind = BASELINES.get(name) or recommender_class(name, workload=spec.folder)
        recommender = kind(test.domain, **({"seed": SEED} if "seed" in kind.defaults else {}))
        recommender.fit(learnt.training)
        first = recommender.ranking(choices).first(1)
        tables.append(choices[spec.key_columns].iloc[first].assign(model=name))
    written = [
        {
            "gpu": test.gpu,
            **problem_of(each, spec),
            **whole(each["suggestions"][0]["configuration"], spec),
            "model": ANSWERS,
        }
        for each in test.frozen.answers
    ]
    return pd.concat([*tables, pd.DataFrame(written)], ignore_index=True)


def judged(test: Test, material: Material, models: tuple[str, ...]) -> pd.DataFrame:
    """Every method's answers with ``fraction`` of the best and ``gain`` over the usual choice.

    Both 0 where the answer has no time.
    """
    truth = Truth({test.gpu: test.sweep}, test.domain)
    found = truth.beside(asked_configurations(test, material, models))
    return found.assign(
        fraction=(found["best_ms"] / found["time_ms"]).fillna(0.0),
        gain=(found["usual_ms"] / found["time_ms"]).fillna(0.0),
    )


def figures(test: Test, rows: pd.DataFrame, problem_columns: list[str]) -> dict[str, Any]:
    """Mean fraction and slower answers of every method, and the answers beside the best of them."""
    means = resampled_means(rows, problem_columns, test.frozen.seed)
    methods = {
        str(name): {
            "fraction_geometric_mean": geometric_mean(mine["fraction"].to_numpy()),
            "fraction_interval": means.interval(str(name)),
            "harmed": int((mine["gain"] < 1 / (1 + HARM_PERCENT / 100)).sum()),
        }
        for name, mine in rows.groupby("model", sort=False)
    }
    return {
        "gpu": test.gpu,
        "study": test.study,
        "problems": len(test.frozen.answers),
        "new_gpu": test.gpu not in test.frozen.product["gpus"],
        "methods": methods,
        "beside_best_heuristic": _beside(methods, [*BASELINES], means),
        "beside_best_model": _beside(
            methods, [name for name in methods if name not in (*BASELINES, ANSWERS, TODAY)], means
        ),
    }


def _beside(methods: Mapping[str, Any], names: list[str], means: Means) -> dict[str, Any] | None:
    """The answers over the best of some methods; None without any."""
    if not names:
        return None
    best = max(names, key=lambda each: (methods[each]["fraction_geometric_mean"], each))
    of_best = methods[best]["fraction_geometric_mean"]
    return {
        "name": best,
        "fraction_geometric_mean": of_best,
        "ratio": methods[ANSWERS]["fraction_geometric_mean"] / of_best,
        "interval": means.ratio(ANSWERS, best),
    }


def main() -> None:
    """Ask every method for the problems of every blind test."""
    given = arguments(__doc__).parse_args()
    found = []
    for gpu, study in [SMALLEST] if given.smallest else recorded_tests():
        material = material_of(study)
        test = read_test(gpu, study, material)
        rows = judged(test, material, () if given.smallest else MODELS)
        found.append(figures(test, rows, material.spec.problem_columns))
        beside = found[-1]["beside_best_heuristic"]
        print(
            f"{gpu:6} {study:24} answers "
            f"{found[-1]['methods'][ANSWERS]['fraction_geometric_mean']:.3f}, "
            f"{beside['name']} {beside['fraction_geometric_mean']:.3f}",
            flush=True,
        )
    write_json(given.output, {**provenance(), "harm_percent": HARM_PERCENT, "tests": found})


if __name__ == "__main__":
    main()
