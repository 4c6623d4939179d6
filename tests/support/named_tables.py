"""A table of answers of what a test says by names, and the file of a fitted product's table."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from launchwise.exporting.building import answer_table
from launchwise.exporting.entries import Device, Entry, Places, Stored
from launchwise.exporting.formulas import exported_facts
from launchwise.exporting.table import AnswerTable, table_of, write_answer_table
from launchwise.learning.answers import Interval
from launchwise.learning.features import Domain
from launchwise.learning.final import read_final
from launchwise.workloads.parts import Value
from launchwise.workloads.space import baseline, used


def named_table(answers: Iterable[Mapping[str, Any]], domain: Domain, study: str) -> AnswerTable:
    """A table that holds these entries alone; keys as of
    :func:`launchwise.exporting.entries.named_answers`. What is not said is unknown, and a
    configuration the baseline."""
    spec, known = domain.spec, list(answers)
    names = list(dict.fromkeys(each["gpu"] for each in known))
    configurations = Places()
    of_baseline = used(baseline(spec), spec)

    def ends(each: Mapping[str, Any], low: str, high: str) -> Interval | None:
        return None if each.get(low) is None else (each[low], each[high])

    def times(each: Mapping[str, Any]) -> tuple[float | None, Interval | None]:
        return each.get("time_ms"), ends(each, "time_low_ms", "time_high_ms")

    def place(configuration: Mapping[str, Any]) -> int:
        return configurations.of_items(used(_plain(configuration), spec))

    entries = []
    for each in known:
        time_ms, interval_ms = times(each)
        others = each.get("others", ())
        entries.append(
            Entry(
                device=names.index(each["gpu"]),
                problem=tuple(_plain(each["problem"])[name] for name in spec.problem_columns),
                choice=place(each.get("configuration", of_baseline)),
                usual=place(each.get("usual", of_baseline)),
                time_ms=time_ms,
                gain=each.get("gain"),
                basis=each.get("basis", "measured"),
                interval_ms=interval_ms,
                gain_interval=ends(each, "gain_low", "gain_high"),
                improvement=each.get("improvement"),
                improvement_interval=ends(each, "improvement_low", "improvement_high"),
                paired=each.get("paired", False),
                blind=each.get("blind", False),
                alike=each.get("alike"),
                unsure=each.get("unsure"),
                others=tuple((place(one["configuration"]), *times(one)) for one in others),
            )
        )
    stored = Stored(
        workload=spec.workload,
        parameters=tuple(spec.problem_columns),
        commits=(),
        least_gain=None,
        devices=tuple(_device(name, domain) for name in names),
        configurations=tuple(dict(each) for each in configurations),
        candidates=(),
        features=(),
        entries=tuple(entries),
    )
    return table_of(domain, study, stored)


def _plain(values: Mapping[str, Any]) -> dict[str, Value]:
    """Without types of NumPy."""
    return {name: each if isinstance(each, str) else int(each) for name, each in values.items()}


def _device(name: str, domain: Domain) -> Device:
    profile = domain.profiles[name]
    return Device(name, (profile.device_name,), tuple(exported_facts(profile).values()))


def write_lookup(product: Path, domain: Domain) -> None:
    """The table of a product in ``results/final/<study>``, where ``recommend`` reads it."""
    table = answer_table(read_final(product, domain), product.name)
    write_answer_table(product.parents[1] / "lookup" / f"{product.name}.json", table)
