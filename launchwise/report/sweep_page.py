"""The page of one workload on one GPU: what to use for each problem, and how the others ran."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from launchwise.base.storage import write_json, write_text
from launchwise.gpus.profile import GpuProfile, read_profile
from launchwise.report import theme, wording
from launchwise.report.answer.tunables import EVERY, losses, with_fractions
from launchwise.report.blocks import Block, Figure, Fold, Key, Panel, Section, Table, Text
from launchwise.report.fields import Field, field, of_texts, printed, significant, table_of
from launchwise.report.numbers import configuration_names
from launchwise.report.pages import gpu_comparison
from launchwise.report.site.rendering import render
from launchwise.tables.files import read_facts, read_table
from launchwise.tables.measurements import measurement_schema
from launchwise.tables.rows import fastest_rows, is_baseline, tied
from launchwise.workloads.metrics import MEASURED, TIMED
from launchwise.workloads.parts import Value
from launchwise.workloads.space import launch, plain, used
from launchwise.workloads.spec import Spec, load_spec

MOST_PROBLEMS = 12  # Most problems per figure; more are thinned out evenly

MOST_POINTS = 2000
"""Most configurations per panel; more are thinned out evenly from fastest to slowest."""

NONE_OK = "no configuration is ok"


def answers_page(
    spec: Spec, profile: GpuProfile, rows: pd.DataFrame, found: Sequence[Answer]
) -> str:
    """A self-contained HTML page of a sweep of the GPU, and of the answers found in it."""
    sections = [
        Section("answers", "Fastest configurations", [*_answers(spec, profile, found)]),
        Section("all", "Every configuration", [*_every(spec, rows)]),
        Section("tunables", "Effect of each tunable", [*_tunables(spec, rows, profile)]),
        gpu_comparison.attributes({profile.name: profile}),
    ]
    lead = (
        f"{spec.title} on {profile.device_name}: {wording.plural(len(found), 'problem')}, "
        f"{wording.plural(len(rows), 'measurement')}, "
        f"measured until {wording.moment(str(rows['measured_at'].max()))}, "
        f"commit {wording.short(str(rows['commit'].iloc[-1]))}."
    )
    title = f"{spec.title}: fastest configurations"
    return render(title, lead, [section for section in sections if section.blocks])


def _problem(spec: Spec) -> list[Field]:
    return [field(name, name, unit=one.unit, number=True) for name, one in spec.problem.items()]


def _named(row: Mapping[str, Any], spec: Spec) -> str:
    configuration = row["configuration"]
    return wording.configuration(configuration, spec) if configuration else NONE_OK


def _answers(spec: Spec, profile: GpuProfile, found: Sequence[Answer]) -> Iterator[Block]:
    most_gbs, of_what = profile.memory_bandwidth_gbs, "that of bus width and memory clock"
    if not profile.has_attributes_alone:
        most_gbs, of_what = profile.ceilings.copy_bandwidth_gbs, "a plain copy"

    def counted(timed: bool) -> Callable[[Mapping[str, Any]], int]:
        """Configurations with a time, or without one."""
        return lambda row: sum(n for name, n in row["statuses"].items() if (name in TIMED) == timed)

    four = significant(4)
    fields = [
        *_problem(spec),
        field("fastest configuration", partial(_named, spec=spec)),
        field("time", "time_ms", four, "ms"),
        field("default", "baseline_ms", four, "ms"),
        field("speed-up", "speedup", wording.number, "× default"),
        field("in a tie", "tied", wording.count, "others"),
        field("bandwidth", "bandwidth_gbs", four, "GB/s"),
        field(
            "of peak" if profile.has_attributes_alone else "of copies",
            lambda row: row["bandwidth_gbs"] and most_gbs and row["bandwidth_gbs"] / most_gbs,
            wording.percent,
            "%",
        ),
        field("timed", counted(True), wording.count),
        field("without a time", counted(False), wording.count),
    ]
    listed = [{**vars(each), **each.problem} for each in found]
    yield table_of("Fastest configuration of each problem", fields, listed)
    yield Text(
        "Times are medians of launches whose results were verified. A configuration ties with the "
        "fastest if their times differ by less than the measurement error. Bandwidth: minimum "
        f"traffic of the problem divided by the time; its share is relative to {of_what}.",
        "note",
    )
    yield from _outcomes(spec, found)
    titles = ("configuration", "what it is")
    key = of_texts("Forms of configurations", titles, wording.configuration_key(spec), role="")
    yield Fold("How to read a configuration", [key])


def _outcomes(spec: Spec, found: Sequence[Answer]) -> Iterator[Table]:
    """A row per problem and status; no table where all are ok."""
    outcomes = [
        {**each.problem, "status": status, **vars(outcome)}
        for each in found
        for status, outcome in each.outcomes.items()
    ]
    fields = [
        *_problem(spec),
        field("status", "status"),
        field("configurations", "count", wording.count),
        field("with this reason", "alike", wording.count),
        field("most frequent reason", "reason", printed, number=False),
        field("one of them", partial(_named, spec=spec)),
    ]
    if outcomes:
        yield table_of("Configurations that are not ok", fields, outcomes)


def _every(spec: Spec, rows: pd.DataFrame) -> Iterator[Block]:
    panels = []
    for title, own in _problems(spec, rows):
        timed = own[own["status"].isin(["ok", "slow"])].sort_values("time_ms", ignore_index=True)
        if timed.empty:
            continue
        drawn = timed.iloc[theme.thinned(len(timed), MOST_POINTS)]
        names = configuration_names(drawn, spec)
        traces = [_dots(drawn, "", theme.BLUE, hover=names, template="%{text}<br>%{y:.4~g} ms")]
        default = timed[is_baseline(timed, spec)]
        if len(default):
            style = {"size": 10, "shape": "diamond", "template": "%{y:.4~g} ms"}
            traces.append(_dots(default, "default", theme.ORANGE, **style))
        layout = theme.layout(
            theme.axis("configuration, from the fastest"),
            theme.log_axis("time (ms)", timed["time_ms"]),
        )
        panels.append(Panel(title, traces, layout))
    if panels:
        yield Figure(
            id="every",
            caption="Time of every configuration, sorted. Where few points lie at the left, the "
            "fastest are hard to find by chance.",
            alt="Points: times of all configurations in ascending order, the default marked.",
            panels=panels,
            keys=[
                Key("configuration", theme.BLUE, "circle"),
                Key("default", theme.ORANGE, "diamond"),
            ],
        )


def _dots(rows: pd.DataFrame, name: str, colour: str, **style: Any) -> dict[str, Any]:
    """Times of rows that are sorted by time, numbered."""
    style |= {"name": name, "colour_": colour, "opacity": 1}
    return theme.dots(rows.index + 1, rows["time_ms"], **style)


def _tunables(spec: Spec, rows: pd.DataFrame, profile: GpuProfile) -> Iterator[Block]:
    if found := losses(with_fractions(rows, spec, ["ok"]), spec, profile):
        yield Text(
            "Time that is lost over the best where a tunable has this value and all others are "
            "tuned, at the problems where two values were tried with all other settings of the "
            "fastest, or cannot be."
        )
        yield table_of("One value fixed, all others free", EVERY, found)


def _problems(spec: Spec, rows: pd.DataFrame) -> Iterator[tuple[str, pd.DataFrame]]:
    grouped = list(rows.groupby(spec.problem_columns, sort=False))
    for place in theme.thinned(len(grouped), MOST_PROBLEMS):
        values, own = grouped[place]
        named = dict(zip(spec.problem_columns, values, strict=True))
        yield wording.problem(named, spec.problem_columns), own


@dataclass(frozen=True)
class Outcome:
    """Configurations of one problem that have the same status."""

    count: int  # their number
    # The most frequent reason, '' where rows of this status have none. Reasons that differ only in
    # numbers count as one; this is the first of them.
    reason: str
    alike: int  # number of configurations with such a reason
    # One of them: the variant, and every tunable that it has, to their values.
    configuration: dict[str, Value]


@dataclass(frozen=True)
class Answer:
    """The fastest configuration of one problem on one GPU."""

    problem: dict[str, Value]  # problem parameter to its value
    # The variant, and every tunable that it has, to their values; None when nothing was timed.
    configuration: dict[str, Value] | None
    time_ms: float | None  # median time, ms
    relative_error: float | None  # its relative standard error
    baseline_ms: float | None  # time of the default configuration, ms; None when it was not timed
    tied: int  # other configurations that cannot be told apart by the errors of their repeats
    bandwidth_gbs: float | None  # least traffic of the problem divided by `time_ms`, GB/s
    # Threads per block and blocks per grid in x, y, z; None for work that the host drives.
    block: tuple[int, int, int] | None
    grid: tuple[int, int, int] | None
    statuses: dict[str, int]  # status to its number of configurations
    outcomes: dict[str, Outcome]  # status to what it is about; for every status but `ok`
    speedup: float | None = None  # time of the default divided by `time_ms`


def answers(rows: pd.DataFrame, spec: Spec) -> list[Answer]:
    """Answer of every problem of a sweep on one GPU, in the order of the sweep.

    ``rows``: a table of :func:`launchwise.tables.measurements.measurement_schema`.
    """
    grouped = rows.groupby(spec.problem_columns, sort=False)
    return [_answer(plain(own.iloc[0], spec.problem_columns), own, spec) for _, own in grouped]


def _answer(problem: dict[str, Value], rows: pd.DataFrame, spec: Spec) -> Answer:
    statuses = {str(name): int(count) for name, count in rows["status"].value_counts().items()}
    outcomes = {
        name: _outcome(rows[rows["status"] == name], spec) for name in statuses if name != "ok"
    }
    measured = rows[rows["status"].isin(MEASURED)]
    default = measured[is_baseline(measured, spec)]["time_ms"]
    baseline_ms = float(default.iloc[0]) if len(default) else None
    # A slow row is a single launch, far from the best.
    timed = measured[measured["status"] == "ok"]
    if timed.empty:
        return Answer(
            problem, None, None, None, baseline_ms, 0, None, None, None, statuses, outcomes
        )
    best = fastest_rows(timed, spec.problem_columns, spec).iloc[0]
    whole = plain(best, spec.tunable_columns)
    block, grid = _launched(spec, problem, whole)
    one_group = np.zeros(len(timed), dtype=np.int64)
    return Answer(
        problem=problem,
        configuration=used(whole, spec),
        time_ms=float(best["time_ms"]),
        relative_error=_number(best["relative_error"]),
        baseline_ms=baseline_ms,
        tied=int(tied(timed.assign(error=timed["relative_error"]), one_group).sum()) - 1,
        bandwidth_gbs=_number(best["bandwidth_gbs"]),
        block=block,
        grid=grid,
        statuses=statuses,
        outcomes=outcomes,
        speedup=None if baseline_ms is None else baseline_ms / float(best["time_ms"]),
    )


_NUMBERS = re.compile(r"-?\d+(?:\.\d+)?(?:e[+-]?\d+)?")


def _outcome(rows: pd.DataFrame, spec: Spec) -> Outcome:
    kinds = rows["reason"].astype(str).str.replace(_NUMBERS, "#", regex=True)
    (most, alike), *_ = Counter(kinds).most_common(1)
    first = rows[kinds == most].iloc[0]
    whole = plain(first, spec.tunable_columns)
    return Outcome(len(rows), str(first["reason"]), alike, used(whole, spec))


def _launched(
    spec: Spec, problem: Mapping[str, Any], configuration: Mapping[str, Any]
) -> tuple[tuple[int, int, int] | None, tuple[int, int, int] | None]:
    """Block and grid; None if the host drives the work or the sweep is imported."""
    variant = spec.variants[str(configuration["variant"])]
    if not spec.arguments or variant.block is None or variant.kernels:
        return None, None
    return launch(spec, problem, configuration)


def _number(value: Any) -> float | None:
    return float(value) if pd.notna(value) else None


def write_answers(
    folder: Path,
    gpu: str,
    sweep: str | Path,
    profile: str | Path,
    facts: str | Path,
    page: str | Path,
) -> None:
    """Read a sweep of ``gpu`` and its profile; write the answers to ``facts`` and ``page``. Raises
    UserError when a file cannot be read."""
    spec = load_spec(folder)
    known = read_profile(profile, gpu)
    rows = read_table(sweep, measurement_schema(spec))
    found = answers(rows, spec)
    searches = searches_of(read_facts(sweep), len(rows))
    about = {"workload": spec.workload, "gpu": gpu, "device_name": known.device_name}
    listed = [asdict(each) | searches.get(_of_problem(each.problem), {}) for each in found]
    write_json(facts, {**about, "answers": listed})
    write_text(page, answers_page(spec, known, rows, found))


def searches_of(facts: Mapping[str, Any], rows: int) -> dict[tuple[Any, ...], dict[str, Any]]:
    """Problem to ``search``: what its search said at its end, and the seconds that a row took.

    From one row to the next, all that is done between them counted.

    ``facts`` are those of a sweep, ``rows`` the number of its rows.
    """
    shards = facts.get("shards", [])
    seconds = sum(each.get("seconds", {}).get("total", 0.0) for each in shards)
    return {
        _of_problem(each["problem"]): {
            "search": {
                "within_percent": each["within_percent"],
                "chance_left": each["chance_left"],
                "started_from": each.get("started_from", 0),
                "seconds_per_row": seconds / rows,
            }
        }
        for shard in shards
        for each in shard.get("searched", [])
    }


def _of_problem(problem: Mapping[str, Any]) -> tuple[Any, ...]:
    return tuple(sorted(problem.items()))
