"""Answers to problems of sizes that nothing learnt from, held against their measurements.

    python benchmarks/any_size.py benchmarks/results/any_size.json
    python benchmarks/any_size.py --drawn drawn_third benchmarks/results/any_size_third.json
    python benchmarks/any_size.py --contests results/blind/h200 OUTPUT

The third way also writes contests of today's answers: what the blind tests compared in pairs, the
first suggestions and the best of each problem, for the rule ``blind_pairs`` to run in turn.

The problems were drawn from the ranges that studies declare, of sizes that no sweep has, and every
candidate was measured, on an H200. Nothing learns from them
(``data/recorded/<gpu>/blind/drawn``; the figures of ``drawn_third`` came after all decisions, and
nothing was chosen by them). Products and tables are those of ``results/``.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from harness.command_line import arguments, write_result
from harness.projects import ROOT, own_experiment

from launchwise.experiment.method import Contests, write_contests
from launchwise.exporting.table import answer_of, read_answer_table
from launchwise.learning.answers import Answer
from launchwise.learning.blind import LISTED, read_frozen
from launchwise.learning.contests import Listed, configurations_in, contest_of
from launchwise.learning.features import read_domain
from launchwise.learning.final import Final, read_final
from launchwise.learning.merit import HARM_PERCENT, geometric_mean
from launchwise.learning.splits import cases_in
from launchwise.tables.files import read_table
from launchwise.tables.measurements import measurement_schema, pairs_schema
from launchwise.tables.times import judged_times
from launchwise.workloads.metrics import MEASURED
from launchwise.workloads.space import whole

BLIND = "data/recorded/*/blind"
SMALLEST = "granger_time"
FIRST = 5  # Suggestions that are compared


def judged(path: Path, final: Final) -> pd.DataFrame:
    """Judged times of candidates of a test, by its sweep and the pairs beside it."""
    spec = final.spec
    sweep = read_table(path, measurement_schema(spec))
    beside = path.with_name(path.name.replace(".sweep.", ".pairs."))
    pairs = read_table(beside, pairs_schema(spec)) if beside.is_file() else None
    rows = judged_times(sweep, [] if pairs is None else [pairs], spec, blind=True)
    rows = rows[rows["status"].isin(MEASURED)].reset_index(drop=True)
    return rows[final.domain.is_candidate(rows)].reset_index(drop=True)


def today(study: str, path: Path) -> tuple[Final, pd.DataFrame, list[Answer]]:
    """A study's product, judged times of a test's candidates, and today's answers to it."""
    experiment = own_experiment()
    asked = experiment.studies[study]
    folder, gpus = experiment.folders[asked.workload], experiment.gpus_of(study)
    profiles = [Path(f"results/gpus/{gpu}.json") for gpu in gpus]
    final = read_final(
        Path("results/final", study), read_domain(folder, gpus, profiles, asked.asked)
    )
    table = read_answer_table(Path(f"results/lookup/{study}.json"), final.domain)
    times = judged(path, final)
    cases = cases_in(times, final.spec)
    return final, times, [answer_of(table, final, case, LISTED, None) for case in cases]


def of_problem(times: pd.DataFrame, answer: Answer) -> pd.DataFrame:
    """Rows of an answer's problem, the fastest first."""
    own = times[(times[list(answer.problem)] == pd.Series(answer.problem)).all(axis=1)]
    return own.sort_values("time_ms")


def contests(study: str, path: Path, most: int) -> Contests:
    """Contests of the problems of a test: what was frozen before, today's first suggestions and the
    fastest by judged times, ``most`` of each, beside baseline and usual choice."""
    final, times, answers = today(study, path)
    domain, spec, before, found = final.domain, final.spec, frozen(path), []
    for answer in answers:
        own = of_problem(times, answer)
        first, *others = [whole(each.configuration, spec) for each in answer.suggestions[:most]]
        fastest = configurations_in(own[:most], domain)
        earlier = whole(before[_key(answer.problem)], spec)
        roles: Listed = [
            ("baseline", configurations_in(own[domain.is_baseline(own)], domain)),
            ("usual", [whole(answer.usual, spec)]),
            ("best", fastest[:1]),
            ("recommended", [first, earlier]),
            ("near", [*others, *fastest]),
        ]
        found.append(contest_of(answer.problem, roles, 4 * most))
    return Contests(study=study, workload=spec.workload, gpu=answers[0].gpu, contests=found)


def frozen(path: Path) -> dict[tuple[Any, ...], dict[str, Any]]:
    """Problems to the configurations that were answered before they were measured."""
    answers = read_frozen(
        path.with_name(path.name.replace(".sweep.parquet", ".frozen.json"))
    ).answers
    return {_key(one["problem"]): one["suggestions"][0]["configuration"] for one in answers}


def _key(problem: Mapping[str, Any]) -> tuple[Any, ...]:
    return tuple(sorted(problem.items()))


def scored(study: str, path: Path) -> pd.DataFrame:
    """A row per problem: time of the fastest over that of the answer and over the best of five
    suggestions, and time of the answer over the usual choice's; the answers frozen before as
    well."""
    final, times, answers = today(study, path)
    spec, before, rows = final.spec, frozen(path), []
    keys = times[spec.key_columns].itertuples(index=False, name=None)
    known = dict(zip(keys, times["time_ms"].tolist(), strict=True))

    def time_ms(found: Answer, configuration: Mapping[str, Any]) -> float:
        names = {**found.problem, **whole(configuration, spec), "gpu": found.gpu}
        return known.get(tuple(names[name] for name in spec.key_columns), np.inf)

    for found in answers:
        listed = [time_ms(found, one.configuration) for one in found.suggestions]
        best, usual = of_problem(times, found)["time_ms"].min(), time_ms(found, found.usual)
        rows.append(
            {
                "study": study,
                "fraction": best / listed[0],
                "best_of_5": best / min(listed[:FIRST]),
                "slower": bool(listed[0] > usual * (1 + HARM_PERCENT / 100)),
                "frozen": best / time_ms(found, before[_key(found.problem)]),
            }
        )
    return pd.DataFrame(rows)


def figures(rows: pd.DataFrame) -> dict[str, Any]:
    """Figures of some problems; an answer without a time counts as a thousandth of the best."""
    shares = {name: rows[name].clip(lower=1e-3) for name in ("fraction", "best_of_5", "frozen")}
    return {
        "problems": len(rows),
        **{name: geometric_mean(each.to_numpy()) for name, each in shares.items()},
        "p5": float(np.quantile(shares["fraction"], 0.05)),
        "slower": int(rows["slower"].sum()),
    }


def main() -> None:
    """Ask every study that such problems were measured for."""
    parser = arguments(__doc__)
    parser.add_argument("--contests", type=Path, help="folder for contests of today's answers")
    parser.add_argument("--drawn", default="drawn", help="folder of the recorded blind tests")
    given = parser.parse_args()
    found = []
    for path in sorted(ROOT.glob(f"{BLIND}/{given.drawn}/*.sweep.parquet")):
        study = path.name.partition(".")[0]
        if given.smallest and study != SMALLEST:
            continue
        if given.contests is not None:
            write_contests(given.contests / f"{study}.contests.json", contests(study, path, FIRST))
        found.append(scored(study, path))
    rows = pd.concat(found, ignore_index=True)
    studies = [{"study": name, **figures(own)} for name, own in rows.groupby("study")]
    for each in [*studies, {"study": "all", **figures(rows)}]:
        print(
            {name: round(one, 4) if isinstance(one, float) else one for name, one in each.items()}
        )
    write_result(given.output, {"studies": studies, "all": figures(rows)})


if __name__ == "__main__":
    main()
