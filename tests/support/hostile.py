"""Texts that try to be code, and an entry of each kind of file that holds them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import yaml

from launchwise.exporting.entries import Device, Entry, Stored
from launchwise.exporting.formulas import EXPORTED_FACTS, ExportedFormulas
from launchwise.exporting.table import AnswerTable
from launchwise.workloads.launch_shapes import LaunchExpressions, Limits
from launchwise.workloads.parts import Value
from launchwise.workloads.spec import Spec

CANARY = "canary"  # File that code of a hostile text writes into the current folder

TEXTS: tuple[str, ...] = tuple(
    yaml.safe_load(Path(__file__).with_name("hostile.yaml").read_text(encoding="utf-8"))
)
"""Quotes, ends of comments, tags, formulas, and characters that nobody sees."""

SPEC: dict[str, Any] = yaml.safe_load(
    Path(__file__).with_name("specs").joinpath("exported.yaml").read_text()
)


def spec_of(texts: Sequence[str]) -> Spec:
    """A workload with texts wherever one may stand, as if no check of a file had refused them."""
    plain = Spec.model_validate(SPEC)
    kind = plain.problem["kind"].model_copy(update={"values": [*texts]})
    mode = plain.tunables["mode"].model_copy(update={"values": [*texts], "neutral": texts[0]})
    changed = {
        "title": texts[0],
        "problem": {**plain.problem, "kind": kind},
        "tunables": {**plain.tunables, "mode": mode},
        "variants": {one: plain.variants["x"].model_copy() for one in texts},
        "baseline": {"variant": texts[0], "bx": 1, "mode": texts[0]},
    }
    return plain.model_copy(update=changed)


def table_of(texts: Sequence[str], name: str = "exported") -> AnswerTable:
    """A table of answers with hostile texts wherever one may stand."""

    class OfVersion(AnswerTable):
        version = texts[-1]

    facts = (0,) * len(EXPORTED_FACTS)
    devices = [
        Device(f"gpu{k}", (one,), facts, drivers=(one,), toolkits=(one,), days=(one, one))
        for k, one in enumerate(texts)
    ]
    entries = [
        Entry(k, (1, one), k, k, 1.0, None, basis=one, why=one) for k, one in enumerate(texts)
    ]
    configurations: list[dict[str, Value]] = [
        {"variant": one, "bx": 8, "mode": one} for one in texts
    ]
    stored = Stored(
        workload="exported",
        parameters=("n", "kind"),
        commits=tuple(texts),
        least_gain=None,
        devices=tuple(devices),
        configurations=tuple(configurations),
        candidates=(),
        features=(),
        entries=tuple(entries),
    )
    spec = spec_of(texts)
    kernels = {one: (LaunchExpressions(one, ("1",) * 3, ("1",) * 3, "0"),) for one in texts}
    formulas = ExportedFormulas(launches=kernels)
    return OfVersion(name, spec, stored, Limits(spec.problem), formulas)
