"""The page of health: verdicts on sweeps, what to measure again, and where numbers come from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import pandas as pd

from launchwise.base.provenance import changes_since
from launchwise.measuring.source_states import watched_paths
from launchwise.report import measure_again, wording
from launchwise.report.blocks import MISSING, Block, Fold, Section, Table, Text
from launchwise.report.fields import field, grouped, of_texts, table_of
from launchwise.report.health.sweep_health import (
    LARGEST_DRIFT,
    MEDIAN_DRIFT,
    MOST_HELD_BACK,
    MOST_HUNG,
    MOST_MIXED,
    Health,
    of_studies,
    worst_first,
)
from launchwise.report.measure_again import anew_settings
from launchwise.report.study import Run, StudyData

LIMITS = (
    f"A sweep is sound if at most {100 * MOST_HELD_BACK:g} % of its timed rows were throttled by "
    f"power or heat, the reference kernel drifted by at most {100 * MEDIAN_DRIFT:g} % in the "
    f"median and {100 * LARGEST_DRIFT:g} % anywhere, at most {100 * MOST_HUNG:g} % of the rows "
    f"hung or ran out of memory, no result was wrong, at most {100 * MOST_MIXED:g} % of the "
    "problems mix rows of several cards, and no other sweep of the report has a newer major "
    "version of the driver. The reference kernel is one configuration that is timed repeatedly "
    "between the others. Imported sweeps do not record their conditions."
)


def section(studies: Sequence[StudyData], at: str) -> Section:
    """Verdicts, and what to measure again. ``at``, when the report is written (ISO 8601), gives the
    ages of sweeps."""
    found = sorted(of_studies(studies), key=worst_first)
    ages_ = ages(found, studies, at)
    blocks: list[Block] = [Text(LIMITS, "note")]
    blocks.append(_table(found, ages_))
    again = [each for each in found if each.complaints]
    if again:
        blocks += [_again(again, studies), _settings(again, studies)]
    blocks += measure_again.listed(studies)
    return Section("verdicts", "Verdicts", blocks)


@dataclass(frozen=True)
class Age:
    """Days since the last row of a sweep, and commits that changed its kernels since the first.
    None where it is not known."""

    days: int | None
    changes: int | None


def ages(
    found: Sequence[Health], studies: Sequence[StudyData], at: str
) -> dict[tuple[str, str], Age]:
    """GPU and workload of each sweep to its age."""
    folders = {study.spec.workload: study.folder.parents[1] for study in studies if study.folder}
    today = pd.to_datetime(at, utc=True, errors="coerce")
    changes: dict[tuple[str, str], int | None] = {}
    ages_: dict[tuple[str, str], Age] = {}
    for each in found:
        last = pd.to_datetime(each.last, utc=True, errors="coerce")
        days = None if pd.isna(last) or pd.isna(today) else max(0, (today - last).days)
        folder = folders.get(each.workload)
        counts = []
        for one in each.commits:
            if folder is not None and (each.workload, one) not in changes:
                changes[each.workload, one] = changes_since(one, watched_paths(folder))
            counts.append(changes.get((each.workload, one)))
        known = [count for count in counts if count is not None]
        ages_[each.gpu, each.workload] = Age(days, max(known) if known else None)
    return ages_


ROLES = {"sound": "good", "doubtful": "poor", "unknown": ""}


def _table(found: Sequence[Health], ages_: Mapping[tuple[str, str], Age]) -> Table:
    """A row per sweep; what is rarely asked for is the second line of a cell."""

    def age(each: Health) -> Age:
        return ages_[each.gpu, each.workload]

    fields = [
        field("sweep", "workload"),
        field("GPU", "gpu", detail=_drivers),
        field(
            "verdict",
            "verdict",
            role=lambda each: ROLES[each.verdict],
            detail=lambda each: "; ".join(each.complaints),
        ),
        field("age", lambda each: age(each).days, wording.count, "days", role="days", detail=_days),
        field("kernels changed", lambda each: age(each).changes, wording.count, "commits since"),
        field("rows", "rows", wording.count, "count"),
        field("throttled", "held_back", wording.percent, "% of timed"),
        *grouped(
            "drift of reference",
            field("median", "median_drift", wording.percent, "%"),
            field("largest", "largest_drift", wording.percent, "%"),
        ),
        field("stopped early", "slow", wording.count, "rows"),
        field(
            "no time",
            "no_time",
            wording.count,
            "rows",
            detail=lambda each: f"{each.wrong} wrong" if each.wrong else "",
        ),
        field("SM clock", "clocks_mhz", _clocks, "MHz"),
        field("cards", lambda each: each.cards or None, wording.count, "count"),
        field("commits", lambda each: len(each.commits) or None, wording.count, "count"),
    ]
    return table_of("Sweeps and their verdicts", fields, found)


def _drivers(each: Health) -> str:
    drivers = ", ".join(filter(None, each.drivers))
    return f"driver {drivers}" if drivers else ""


def _days(each: Health) -> str:
    return " to ".join(dict.fromkeys(filter(None, (each.first, each.last))))


def _clocks(limits: tuple[float, float] | None) -> str:
    return MISSING if limits is None else f"{limits[0]:.0f} to {limits[1]:.0f}"


def _named(each: Health, columns: Sequence[str]) -> str:
    worst = [
        wording.problem(dict(zip(columns, problem, strict=True)), columns)
        for problem in each.worst_problems
    ]
    if len(worst) == each.problems:
        return f"all {wording.count(len(worst))}"
    which = "; ".join(worst[:3]) + (f"; {len(worst) - 3} more" if len(worst) > 3 else "")
    return f"{which}; of {wording.count(each.problems)}"


def _again(found: Sequence[Health], studies: Sequence[StudyData]) -> Table:
    """Problems to measure again, the most affected first, and the command."""
    columns_of = {study.spec.workload: study.problem_columns for study in studies}

    def resting(each: Health) -> str:
        return wording.listed(
            study.name
            for study in studies
            if study.spec.workload == each.workload and each.gpu in study.sweeps
        )

    fields = [
        field("sweep", "workload"),
        field("GPU", "gpu"),
        field("why", lambda each: "; ".join(each.complaints)),
        field("problems", lambda each: _named(each, columns_of[each.workload])),
        field("answers that rest on it", resting),
        field("about", lambda each: each.repair_s / 60, wording.seconds, "min of the GPU"),
        field(
            "command, with the settings below",
            lambda each: (
                f"snakemake --cores all -- data/recorded/{each.gpu}/{each.workload}.parquet"
            ),
        ),
    ]
    return table_of("What to measure again", fields, found, "words")


def _settings(found: Sequence[Health], studies: Sequence[StudyData]) -> Fold:
    """What the settings must say for the commands of :func:`_again`."""
    columns_of = {study.spec.workload: study.problem_columns for study in studies}
    blocks: list[Block] = []
    for each in found:
        count = wording.plural(len(each.worst_problems), "problem")
        blocks.append(Text(f"{each.workload} on {each.gpu}: {count}", "label"))
        columns = columns_of[each.workload]
        said = anew_settings(each.gpu, each.workload, each.worst_problems, columns)
        blocks.append(Text(said, "code"))
    return Fold("Problems to measure again, as settings to copy", blocks)


MODELS = "data/{study}.models.json"
"""Path of the training records of a study's models, below the report's folder."""


def provenance(run: Run, studies: Sequence[StudyData]) -> Section:
    """This run, and the files that say where its numbers come from."""
    facts = [
        ("report written", wording.moment(run.written_at)),
        ("report's code, commit", wording.short(run.commit)),
        ("settings hash", run.settings_hash),
        ("seed of the settings", str(run.seed)),
    ]
    packages = of_texts("Packages", ("package", "version"), sorted(run.packages.items()), role="")
    found: list[Block] = [
        of_texts("This run", ("what", "value"), facts, role=""),
        Fold("Packages of the report's environment", [packages]),
        table_of("Hyper-parameters, searches and fits of the models", RECORDS, studies),
    ]
    return Section("provenance", "Provenance", found)


RECORDS = [
    field("study", "name"),
    field(
        "file",
        lambda study: MODELS.format(study=study.name),
        link=lambda study: MODELS.format(study=study.name),
    ),
]
