"""The page of health: verdicts on sweeps, what to measure again, and where numbers come from."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import asdict
from typing import Any, NamedTuple

import pandas as pd
import yaml

from launchwise.base.places import changes_since
from launchwise.experiment.discovery import crossed
from launchwise.measuring.source_states import watched_paths
from launchwise.report import wording
from launchwise.report.blocks import MISSING, Block, File, Fold, Section, Table, Text
from launchwise.report.fields import Field, decimals, field, grouped, table_of
from launchwise.report.pages.sweep_health import (
    LARGEST_DRIFT,
    MEDIAN_DRIFT,
    MOST_HELD_BACK,
    MOST_HUNG,
    MOST_MIXED,
    Health,
    behind,
    gpu_minutes,
    worst_first,
)
from launchwise.report.study_tables import Run, StudyData
from launchwise.workloads.parts import Value

LIMITS = (
    f"Sound: at most {100 * MOST_HELD_BACK:g} % of the timed rows throttled by power or heat, "
    f"drift of the reference kernel at most {100 * MEDIAN_DRIFT:g} % in the median and "
    f"{100 * LARGEST_DRIFT:g} % anywhere, at most {100 * MOST_HUNG:g} % of the rows hung or out of "
    f"memory, no result wrong, rows of several cards at most at {100 * MOST_MIXED:g} % of the "
    "problems, and no other sweep with a newer major version of the driver. Answers in doubt rest "
    "on rows beyond a limit; those that ran in turn with the usual choice on one card do not. On "
    "another card: how far apart a configuration's times in the sweep and in pairs are."
)


def section(studies: Sequence[StudyData], sweeps: Sequence[Health], at: str) -> Section:
    """Verdicts, and what to measure again. ``at``, when the report is written (ISO 8601), gives the
    ages of sweeps. Those of whole cards that recorded their conditions come first."""
    found = sorted(sweeps, key=worst_first)
    fields = _fields(ages(found, studies, at))
    slices = {gpu for study in studies for gpu in study.gpus if study.profiles[gpu].is_slice}
    first = [each for each in found if each.is_known and each.gpu not in slices] or found
    own, others = (
        wording.number(sum(each.minutes or 0.0 for each in found if bool(each.cards) == here) / 60)
        for here in (True, False)
    )
    caption = "Sweeps and their verdicts"
    imported = "" if others == "0" else f"; imported ones {others}, by their own times"
    took = f"Sweeps measured here took {own} GPU hours{imported}. {LIMITS}"
    blocks: list[Block] = [table_of(caption, fields[:SHOWN], first), Text(took, "note")]
    every = table_of(f"{caption}: slices, sweeps of others, and all figures", fields, found)
    blocks.append(Fold("Every sweep: conditions, clocks, cards and commits", [every]))
    if again := [each for each in found if each.complaints]:
        fold = "What to measure again"
        blocks.append(Fold(fold, [_again(again, studies), _settings(again, studies)], "again"))
    return Section("verdicts", "Health of the sweeps", blocks)


class Age(NamedTuple):
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
    changes = {
        workload: changes_since(
            {one for each in found if each.workload == workload for one in each.commits},
            watched_paths(folder),
        )
        for workload, folder in folders.items()
    }
    ages_: dict[tuple[str, str], Age] = {}
    for each in found:
        last = pd.to_datetime(each.last, utc=True, errors="coerce")
        days = None if pd.isna(last) or pd.isna(today) else max(0, (today - last).days)
        counts = changes.get(each.workload, {})
        known = [counts[one] for one in each.commits if one in counts]
        ages_[each.gpu, each.workload] = Age(days, max(known, default=None))
    return ages_


ROLES = {"sound": "good", "doubtful": "poor", "unknown": ""}

SHOWN = 11  # Fields that stand open


def _fields(ages_: Mapping[tuple[str, str], Age]) -> list[Field]:
    """What is said of a sweep; what is rarely asked for is the second line of a cell."""

    def age(each: Health) -> Age:
        return ages_[each.gpu, each.workload]

    return [
        field("sweep", "workload"),
        field("GPU", "gpu", detail=_drivers),
        field(
            "verdict",
            "verdict",
            role=lambda each: ROLES[each.verdict],
            detail=lambda each: "; ".join(each.complaints),
        ),
        field(
            "answers in doubt",
            lambda each: "{} of {}".format(*each.resting) if each.complaints else MISSING,
            number=True,
        ),
        *grouped(
            "on another card",
            field("median", _apart(1), wording.percent, "%", detail=_repeats),
            field("95 % within", _apart(2), wording.percent, "%"),
        ),
        field("GPU time", "minutes", decimals(1), "minutes"),
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
        field(
            "commits",
            lambda each: len(each.commits) or None,
            wording.count,
            "count",
            detail=lambda each: " to ".join(
                map(wording.short, each.commits[:: len(each.commits) - 1 or 1])
            ),
        ),
    ]


def _apart(place: int) -> Callable[[Health], float | None]:
    return lambda each: None if each.repeats is None else each.repeats[place]


def _repeats(each: Health) -> str:
    return f"{wording.count(each.repeats[0])} rows" if each.repeats else ""


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

    def minutes(each: Health) -> float | None:
        columns = columns_of[each.workload]
        rows = behind(each, studies)[0].sweeps[each.gpu][[*columns, "card", "measured_at"]]
        rows = rows.merge(pd.DataFrame(each.worst_problems, columns=columns), on=columns)
        return gpu_minutes(rows)

    fields = [
        field("sweep", "workload"),
        field("GPU", "gpu"),
        field("why", lambda each: "; ".join(each.complaints)),
        field("problems", lambda each: _named(each, columns_of[each.workload])),
        field("GPU time that they took", minutes, decimals(1), "minutes"),
        field(
            "answers that rest on it",
            lambda each: wording.listed(study.name for study in behind(each, studies)),
        ),
        field(
            "command, with the settings of the file",
            lambda each: (
                f"snakemake --cores all -- data/recorded/{each.gpu}/{each.workload}.parquet"
            ),
        ),
    ]
    return table_of("What to measure again", fields, found, "words")


def _settings(found: Sequence[Health], studies: Sequence[StudyData]) -> File:
    """What the settings must say for the commands of :func:`_again`."""
    columns_of = {study.spec.workload: study.problem_columns for study in studies}
    parts = [
        f"# {each.workload} on {each.gpu}: {wording.plural(len(each.worst_problems), 'problem')}\n"
        + anew_settings(each.gpu, each.workload, each.worst_problems, columns_of[each.workload])
        for each in found
    ]
    title = "Problems to measure again, as settings to copy (YAML)"
    return File("data/measure_again.yaml", title, "\n---\n".join(parts) + "\n")


def anew_settings(
    gpu: str, workload: str, keys: Collection[Sequence[Value]], columns: Sequence[str]
) -> str:
    """The settings that name rows of a sweep to measure again, as YAML. ``keys`` are values of each
    row, or of all rows of a problem, in the order of ``columns``."""
    entries = [dict(zip(columns, map(list, entry), strict=True)) for entry in crossed(keys)]
    said: Mapping[str, Any] = {
        "gpus": {gpu: {"source": "live", "extend": True}},
        "sweeps": {workload: {"anew": entries}},
    }
    return yaml.safe_dump(said, sort_keys=False, default_flow_style=None, width=100).rstrip()


def provenance(run: Run) -> Section:
    """This run, as a file; how it is written again, and where what it stands on lies."""
    files = ["--configfile", *run.settings_files] if run.settings_files else []
    again = Text(shlex.join(["snakemake", "--cores", "all", *files, "--", "report"]), "code")
    text = json.dumps(asdict(run), indent=1, sort_keys=True) + "\n"
    title = "Commit, settings, seed and packages of this report (JSON)"
    return Section("provenance", "Provenance", [Text(WHERE), again, File(PROVENANCE, title, text)])


WHERE = (
    "Rows of every sweep, sources and licences: data/README.md of the repository. Core-seconds of "
    "each stage: results/work. This report is written by:"
)
PROVENANCE = "data/provenance.json"  # Path of the facts of the run, below the report's folder
