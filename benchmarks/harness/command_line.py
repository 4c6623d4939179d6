"""Command line and result format of every benchmark."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from harness.projects import ROOT
from launchwise.base.places import commit, now, versions
from launchwise.base.storage import write_json
from launchwise.base.work import usable_cores
from launchwise.measuring.cards import cards


def arguments(description: str | None, **inputs: str) -> argparse.ArgumentParser:
    """Parser with the arguments of every benchmark: the output file and ``--smallest``.

    ``description``: docstring of the benchmark: its first line is shown.
    ``**inputs``: paths that stand before the output: name to meaning.
    """
    parser = argparse.ArgumentParser(description=(description or "").partition("\n")[0])
    for name, meaning in inputs.items():
        parser.add_argument(name, type=Path, help=meaning)
    parser.add_argument("output", type=Path, help="JSON file for the result")
    parser.add_argument(
        "--smallest",
        action="store_true",
        help="smallest size, within seconds: shows that the benchmark runs, measures nothing",
    )
    return parser


def provenance(**peers: str) -> dict[str, Any]:
    """Commit, time, versions and cores of this run. ``**peers``: versions of the tools that
    launchwise is compared with."""
    return {
        "commit": commit(ROOT),
        "measured_at": now(),
        "versions": {**versions(), **peers},
        "host_cores": usable_cores(),
    }


def card_facts() -> dict[str, str]:
    """Name and driver of the first GPU."""
    card = cards()[0]
    return {"device": card.device_name, "driver": card.driver}


def write_result(path: Path, result: Mapping[str, Any], **peers: str) -> None:
    """Write what was measured, with :func:`provenance`."""
    write_json(path, {**provenance(**peers), **result})
