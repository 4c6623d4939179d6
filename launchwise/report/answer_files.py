"""Writes the answers of a sweep: facts as JSON, and a page."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from launchwise.base.storage import write_json, write_text
from launchwise.gpus.profile import read_profile
from launchwise.report.answer_page import page as page_of
from launchwise.tables.answers import answers
from launchwise.tables.files import read_facts, read_table
from launchwise.tables.measurements import measurement_schema
from launchwise.workloads.spec import load_spec


def write_answers(
    folder: Path,
    gpu: str,
    sweep: str | Path,
    profile: str | Path,
    facts: str | Path,
    page: str | Path,
) -> None:
    """Read a sweep of ``gpu`` and its profile; write the answers to ``facts`` and ``page``.

    Raises
    ------
    UserError
        When a file cannot be read.
    """
    spec = load_spec(folder)
    known = read_profile(profile, gpu)
    rows = read_table(sweep, measurement_schema(spec))
    found = answers(rows, spec)
    searches = searches_of(read_facts(sweep), len(rows))
    about = {"workload": spec.workload, "gpu": gpu, "device_name": known.device_name}
    listed = [each.as_facts() | searches.get(_key(each.problem), {}) for each in found]
    write_json(facts, {**about, "answers": listed})
    write_text(page, page_of(spec, known, rows, found))


def searches_of(facts: Mapping[str, Any], rows: int) -> dict[tuple[Any, ...], dict[str, Any]]:
    """Problem to ``search``: what its search said at its end, and the seconds that a row took.

    From one row to the next, all that is done between them counted.

    Parameters
    ----------
    facts
        Those of a sweep.
    rows
        Rows of the sweep.
    """
    shards = facts.get("shards", [])
    seconds = sum(each.get("seconds", {}).get("total", 0.0) for each in shards)
    return {
        _key(each["problem"]): {
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


def _key(problem: Mapping[str, Any]) -> tuple[Any, ...]:
    return tuple(sorted(problem.items()))
