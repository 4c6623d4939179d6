"""Measure answers again through Snakemake and read the verdicts, for people, as JSON and JUnit."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ET
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd
import yaml

import launchwise
from launchwise.base.errors import UserError
from launchwise.base.names import assigned
from launchwise.base.storage import write_text
from launchwise.cli.options import run_snakemake, snakemake_line
from launchwise.cli.recommending import FINAL, known_gpus
from launchwise.cli.words import find_profile, gpu_named, read_experiment
from launchwise.experiment.experiment import Experiment
from launchwise.experiment.loading import insist_on_kernel
from launchwise.gpus.profile import GpuProfile
from launchwise.learning.final import FACTS_FILE
from launchwise.measuring.cards import Card, cards, in_words
from launchwise.tables.files import read_table
from launchwise.tables.measurements import RECHECK_ORIGIN, VERDICTS, recheck_schema
from launchwise.workloads.space import label
from launchwise.workloads.spec import Spec

COMMAND = "recheck"
RESULTS = Path("results", "recheck")
NOT_MEASURED = 2  # Exit code when there is no verdict
RULES = ("recheck_contests", "recheck_pairs", "recheck")


@dataclass(frozen=True)
class Rechecked:
    study: str
    gpu: str
    spec: Spec
    table: pd.DataFrame  # as `launchwise.tables.measurements.recheck_schema` declares it


def rechecked(
    named: Sequence[str],
    gpu: str | None,
    cores: int,
    files: Sequence[Path],
    **changed: float | None,
) -> list[Rechecked]:
    """Measure the answers of studies again, for the project in this folder. ``named``: studies; all
    that have a product if there are none. ``changed``: ``problems`` and ``seconds``, where they are
    not those of the settings. Raises UserError when there is no such study or GPU, no product yet,
    or no card here that is the GPU. Raises SystemExit with :data:`NOT_MEASURED` when Snakemake
    fails; it has said why."""
    experiment = read_experiment(files, Path.cwd())
    gpus = {study: _gpu(study, gpu, experiment) for study in _studies(named, experiment)}
    paths = [RESULTS / gpu / f"{study}.parquet" for study, gpu in gpus.items()]
    if changed := {name: value for name, value in changed.items() if value is not None}:
        overlay = RESULTS / "settings.yaml"
        text = yaml.safe_dump({"recheck": changed})
        write_text(overlay, f"# Written by `launchwise recheck`.\n{text}")
        files = [*files, overlay]
    try:
        # These rules alone, anew, whatever else is out of date.
        options = ["--allowed-rules", *RULES, "--forcerun", *RULES]
        run_snakemake(snakemake_line(paths, cores, *options, files=files))
    except SystemExit as failed:
        # Its 1 would say that an answer is stale.
        raise SystemExit(NOT_MEASURED) from failed
    found = []
    for (study, gpu), path in zip(gpus.items(), paths, strict=True):
        spec = experiment.specs[experiment.studies[study].workload]
        found.append(Rechecked(study, gpu, spec, read_table(path, recheck_schema(spec))))
    return found


def _studies(asked: Sequence[str], experiment: Experiment) -> list[str]:
    for study in asked:
        insist_on_kernel(study, experiment, COMMAND)
        known_gpus(study, experiment)
    measurable = [
        study
        for study, entry in experiment.studies.items()
        if experiment.specs[entry.workload].has_kernel
    ]
    made = [
        study for study in measurable if (experiment.root / FINAL / study / FACTS_FILE).is_file()
    ]
    if not asked and not made:
        message = "no study has recommendations yet: make them with snakemake --cores all"
        if experiment.studies and not measurable:
            message = "all studies are of imported sweeps, without a kernel to measure again"
        raise UserError(COMMAND, "", message)
    return list(dict.fromkeys(asked)) or made


def _gpu(study: str, named: str | None, experiment: Experiment) -> str:
    """GPU of the settings that a card of this machine is."""
    present = cards()
    own = experiment.gpus_of(study)
    if named is not None:
        named = gpu_named(named, experiment, COMMAND, "--gpu")
    if named is not None and named not in own:
        message = f"{named} is no GPU of {study} (its GPUs: {', '.join(own)})"
        raise UserError(COMMAND, "--gpu", message)
    if not present:
        raise UserError(COMMAND, "", "this machine has no GPU, or no driver that can be asked")
    if named is not None:
        profile = find_profile(named, experiment, COMMAND)
        if not _fits(profile, present):
            message = f"{named} is {profile.device_name} ({profile.arch}), but this machine has"
            raise UserError(COMMAND, "--gpu", f"{message} {in_words(present)}")
        return named
    measured = known_gpus(study, experiment)
    known = {gpu: find_profile(gpu, experiment, COMMAND) for gpu in own if gpu in measured}
    fitting = [gpu for gpu, profile in known.items() if _fits(profile, present)]
    # A slice of a card has the card's name: the whole card is meant.
    whole = [gpu for gpu in fitting if experiment.settings.gpus[gpu].slice_sms is None]
    whole = [gpu for gpu in whole if known[gpu].sms == known[gpu].whole_card_sms]
    if not fitting:
        message = f"{study} measured {', '.join(measured)}; this machine has {in_words(present)}"
        raise UserError(COMMAND, "", message)
    chosen = whole or fitting
    if len(chosen) > 1:
        raise UserError(COMMAND, "--gpu", f"choose one; this machine has {', '.join(chosen)}")
    return chosen[0]


def _fits(profile: GpuProfile, present: Sequence[Card]) -> bool:
    return any(
        (one.device_name, one.arch) == (profile.device_name, profile.arch) for one in present
    )


def as_json_text(found: Sequence[Rechecked]) -> str:
    plain = [
        {
            "study": each.study,
            "gpu": each.gpu,
            "problems": json.loads(each.table.to_json(orient="records")),
        }
        for each in found
    ]
    return json.dumps(plain, indent=2)


def as_text(found: Sequence[Rechecked]) -> str:
    return "\n".join("\n".join(_lines(each)) for each in found)


def _lines(found: Rechecked) -> list[str]:
    table, spec = found.table, found.spec
    counts = table["verdict"].value_counts()
    said = ", ".join(f"{counts[name]} {name}" for name in VERDICTS if name in counts)
    lines = [f"{found.study} on {found.gpu}: {said}"]
    order = table["verdict"].map(VERDICTS.index).sort_values(kind="stable").index
    for _, row in table.loc[order].iterrows():
        lines += lines_of_row(row, spec)
    return lines + _changes(table)


def _problem(row: pd.Series, spec: Spec) -> str:
    return assigned({name: row[name] for name in spec.problem_columns})


def lines_of_row(row: pd.Series, spec: Spec) -> list[str]:
    configuration = {name: row[name] for name in spec.tunable_columns}
    lines = [f"  {row['verdict']:<7}  {_problem(row, spec)}: {label(configuration, spec)}"]
    if pd.notna(row["gain"]):
        default = "usual choice" if row["default"] == "usual" else "baseline"
        now = _ratio(row, "gain")
        known = f", {_ratio(row, 'known_gain')} before" if pd.notna(row["known_gain"]) else ""
        lines.append(f"           {now} times as fast as the {default}{known}")
    if row["reason"]:
        lines.append(f"           {row['reason']}")
    return lines


def _ratio(row: pd.Series, name: str) -> str:
    low, high = row[f"{name}_low"], row[f"{name}_high"]
    limits = f" ({low:.3g} to {high:.3g})" if pd.notna(low) else ""
    return f"{row[name]:.3g}{limits}"


def _changes(table: pd.DataFrame) -> list[str]:
    lines = []
    for name in RECHECK_ORIGIN:
        pairs: dict[tuple[Any, Any], None] = dict.fromkeys(
            zip(table[f"known_{name}"], table[name], strict=True)
        )
        lines += [
            f"  {name}: {old} before, {new} now" for old, new in pairs if old not in ("", new)
        ]
    return lines or ["  card, driver and toolkit are unchanged"]


def as_junit(found: Sequence[Rechecked]) -> str:
    """A suite per study and GPU, a test per problem: stale fails, unknown is skipped."""
    suites = ET.Element("testsuites", name="launchwise recheck")
    for each in found:
        counts = each.table["verdict"].value_counts()
        suite = ET.SubElement(
            suites,
            "testsuite",
            name=f"{each.study} on {each.gpu}",
            tests=str(len(each.table)),
            failures=str(counts.get("stale", 0)),
            skipped=str(counts.get("unknown", 0)),
            errors="0",
        )
        properties = ET.SubElement(suite, "properties")
        for name, value in _conditions(each).items():
            ET.SubElement(properties, "property", name=name, value=value)
        for _, row in each.table.iterrows():
            _add_test(suite, each, row)
    ET.indent(suites)
    return ET.tostring(suites, encoding="unicode", xml_declaration=True) + "\n"


def _conditions(found: Rechecked) -> dict[str, str]:
    names = ("card", "driver", "toolkit", "known_card", "known_driver", "known_toolkit")
    values = {name: ", ".join(dict.fromkeys(found.table[name])) for name in names}
    return {"launchwise": launchwise.__version__, **values}


def _add_test(suite: ET.Element, found: Rechecked, row: Any) -> None:
    name, group = _problem(row, found.spec), f"{found.study}.{found.gpu}"
    test = ET.SubElement(suite, "testcase", classname=group, name=name)
    kind = {"stale": "failure", "unknown": "skipped"}.get(row["verdict"])
    text = "\n".join(line.strip() for line in lines_of_row(row, found.spec))
    if kind:
        reason = row["reason"] or row["verdict"]
        ET.SubElement(test, kind, message=reason).text = text
    else:
        ET.SubElement(test, "system-out").text = text
