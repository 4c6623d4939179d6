"""Writes the answers of a sweep: facts as JSON, and a page."""

from __future__ import annotations

from pathlib import Path

from launchwise.base.storage import write_json, write_text
from launchwise.gpus.profile import read_profile
from launchwise.report.answer_page import page as page_of
from launchwise.tables.answers import answers
from launchwise.tables.files import read_table
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
    about = {"workload": spec.workload, "gpu": gpu, "device_name": known.device_name}
    write_json(facts, {**about, "answers": [each.as_facts() for each in found]})
    write_text(page, page_of(spec, known, rows, found))
