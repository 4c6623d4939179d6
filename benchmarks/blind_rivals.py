"""Answers of heuristics and single models in the recorded blind tests.

    python benchmarks/blind_rivals.py benchmarks/results/blind_rivals.json

Every method learns from today's rows of the GPUs that the answers were learnt from, and is asked
for the problems of each blind test.
All answers, those that were written down included, are judged by the test's sweep: the fastest of
its candidates over the answer. Methods are compared on the same resampled problems; the best of
them is named afterwards, so its figure is optimistic. What ``triton.autotune`` chose for the
problems of a test, by timing them, comes from ``autotuned_blind.py``.
"""

from __future__ import annotations

import statistics
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import pandas as pd
from harness.ablated import Material, answers_by, judged_by, material_of
from harness.command_line import arguments, write_result
from harness.projects import ROOT

from launchwise.base.storage import read_json
from launchwise.gpus.profile import read_profile
from launchwise.learning.baselines import BASELINES
from launchwise.learning.blind import Frozen, check_measured_after, problem_of, read_frozen
from launchwise.learning.features import Domain
from launchwise.learning.merit import HARM_PERCENT, Means, geometric_mean, resampled_means
from launchwise.learning.product import learnt_from
from launchwise.learning.splits import Case
from launchwise.learning.truth import Truth
from launchwise.tables.files import read_table
from launchwise.tables.measurements import measurement_schema
from launchwise.workloads.space import whole

SMALLEST = ("h200", "tridiagonal_streams")
RECORDED = ROOT / "data" / "recorded"
SEED = 2026
AUTOTUNED = ROOT / "benchmarks" / "results" / "autotuned_blind.json"
ANSWERS = "answers"
MODELS = ("learnt", "knn", "forest", "xgboost", "lightgbm", "best_tree")


@dataclass(frozen=True)
class Test:
    """A recorded blind test; its problems are those of ``sweep``."""

    gpu: str
    study: str
    frozen: Frozen
    sweep: pd.DataFrame
    domain: Domain

    @property
    def cases(self) -> list[Case]:
        """Its problems, in the order of the answers."""
        spec = self.domain.spec
        return [Case(self.gpu, problem_of(each, spec)) for each in self.frozen.answers]

    @property
    def truth(self) -> Truth:
        """Its measurements, by case."""
        return Truth({self.gpu: self.sweep}, self.domain)

    def known(self, material: Material) -> dict[str, pd.DataFrame]:
        """Today's rows of the GPUs that the recorded answers were learnt from."""
        gpus = self.frozen.product["gpus"]
        return {gpu: rows for gpu, rows in material.sweeps.items() if gpu in gpus}


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
    learnt = learnt_from(material.study, test.domain, test.known(material))
    choices = test.domain.keeping_features(test.domain.choices(test.cases))
    tables = [
        answers_by(name, test.domain, learnt.training, choices, SEED).assign(model=name)
        for name in (*BASELINES, *models)
    ]
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


def figures(test: Test, rows: pd.DataFrame, problem_columns: list[str]) -> dict[str, Any]:
    """Mean fraction and slower answers of every method, and the answers beside the best of them.
    ``answers_slower`` counts problems to which the recorded answer is slower than the method's;
    ``answers_least`` is its speed over the method's where it is worst."""
    means = resampled_means(rows, problem_columns, test.frozen.seed)
    harm = 1 / (1 + HARM_PERCENT / 100)
    recorded = rows[rows["model"] == ANSWERS].set_index(problem_columns)["fraction"]

    def speed(mine: pd.DataFrame) -> pd.Series:
        # A method without a time for its answer has fraction 0: the recorded one is faster.
        return recorded / mine.set_index(problem_columns)["fraction"].reindex(recorded.index)

    methods = {
        str(name): {
            "fraction_geometric_mean": geometric_mean(mine["fraction"].to_numpy()),
            "fraction_interval": means.interval(str(name)),
            "harmed": int((mine["gain"] < harm).sum()),
            "answers_slower": int((speed(mine) < harm).sum()),
            "answers_least": float(speed(mine).min()),
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
            methods, [name for name in methods if name not in (*BASELINES, ANSWERS)], means
        ),
    }


def beside_autotuned(test: Test, known: Mapping[str, Any], answers: pd.DataFrame) -> dict[str, Any]:
    """What ``triton.autotune`` chose for problems of a test, beside the answers to the same ones.

    ``known``: result of ``autotuned_blind.py``.
    ``answers``: judged answers that were written down.
    """
    columns = test.domain.spec.problem_columns
    found: dict[str, Any] = {}
    for mode, choices in known["choices"].items():
        chosen = pd.DataFrame(
            {
                **{"gpu": test.gpu, "model": mode, "variant": "triton"},
                **{**each["problem"], **each["configuration"]},
            }
            for each in choices
        )
        own = judged_by(test.truth, chosen)
        same = answers.merge(own[columns], on=columns)
        means = resampled_means(pd.concat([own, same]), columns, test.frozen.seed)
        fractions = {
            "fraction_geometric_mean": own["fraction"],
            "answers_fraction_geometric_mean": same["fraction"],
        }
        found[mode] = {
            "problems": len(own),
            "configurations": statistics.mean(each["configurations"] for each in choices),
            "seconds": sum(each["seconds"] for each in choices),
            **{name: geometric_mean(each.to_numpy()) for name, each in fractions.items()},
            "answers_over_choices_interval": means.ratio(ANSWERS, mode),
        }
    return found


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
    autotuned, found = read_json(AUTOTUNED), []
    for gpu, study in [SMALLEST] if given.smallest else recorded_tests():
        material = material_of(study)
        test = read_test(gpu, study, material)
        models = () if given.smallest else MODELS
        rows = judged_by(test.truth, asked_configurations(test, material, models))
        found.append(figures(test, rows, material.spec.problem_columns))
        if autotuned["digest"] == test.frozen.digest:
            answers = rows[rows["model"] == ANSWERS]
            found[-1]["beside_autotuned"] = beside_autotuned(test, autotuned, answers)
        beside = found[-1]["beside_best_heuristic"]
        print(
            f"{gpu:6} {study:24} answers "
            f"{found[-1]['methods'][ANSWERS]['fraction_geometric_mean']:.3f}, "
            f"{beside['name']} {beside['fraction_geometric_mean']:.3f}",
            flush=True,
        )
    write_result(given.output, {"harm_percent": HARM_PERCENT, "tests": found})


if __name__ == "__main__":
    main()
