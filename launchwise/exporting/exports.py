"""Files of a table of answers: code, JSON, wisdom, T4, and what kernel libraries look up."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

from launchwise.base.errors import UserError
from launchwise.base.names import assigned, inside
from launchwise.base.storage import new_folder, write_json, write_text
from launchwise.exporting.languages import cpp_header, python_module, rendered
from launchwise.exporting.table import AnswerTable
from launchwise.learning.answers import MEASURED
from launchwise.workloads.parts import Value
from launchwise.workloads.spec import Spec
from launchwise.workloads.usual import DEVICE, ConfigFiles

WISDOM_VERSION = "1.0"  # Kernel Launcher ignores a file of another one
MOST_SIZES = 3  # Sizes of a problem that Kernel Launcher compares

ANY_SIZE = "launchwise recommend and the formats hpp, python, json and triton answer any size"
BETWEEN = {"linear": "the least difference", "logarithmic": "the least ratio"}
"""How a library measures which key is nearest to a size (`nearest` of a mapping), in words."""

FORMATS = {
    "hpp": "{study}.hpp",
    "json": "{study}.json",
    "python": "{study}.py",
    "wisdom": "{study}.wisdom",
    "t4": "t4",
    "cmake": "cmake",
}
"""Format to its file, or its folder: of T4 with a file per device, of CMake a package."""


def write_answers(folder: Path, table: AnswerTable, formats: Collection[str] = FORMATS) -> None:
    """Write some formats, by default every one, into ``folder``, which is made anew."""
    new_folder(folder)
    paths = {name: folder / file.format(study=table.study) for name, file in FORMATS.items()}
    texts = {"hpp": cpp_header, "python": python_module, "wisdom": wisdom_text}
    made = {name: of(table) for name, of in texts.items() if name in formats}
    for name, text in made.items():
        write_text(paths[name], text)
    if "json" in formats:
        write_json(paths["json"], table.plain())
    if "cmake" in formats:
        write_text(paths["cmake"] / f"{table.study}Config.cmake", rendered("package.cmake", table))
        write_text(paths["cmake"] / paths["hpp"].name, made.get("hpp") or cpp_header(table))
    if "t4" in formats:
        paths["t4"].mkdir()
        for device, content in t4_contents(table).items():
            file = inside(paths["t4"], f"{device}.json", table.study, "devices")
            write_json(file, content)


def wisdom_text(table: AnswerTable) -> str:
    """Lines of a wisdom file: a header, then one line per answer with a time. Only integer
    parameters are sizes there; of entries that differ in texts alone, the first one counts. Where
    all answers are of one variant it is no tunable."""
    lines, seen, problems = list[str](), set(), []
    variants = {table.configurations[one.choice][0] for one in table.entries}
    first = 1 if len(variants) == 1 else 0
    for entry in table.entries:
        problem = table.problem(entry.problem)
        sizes = [each for name, each in problem.items() if name not in table.texts][:MOST_SIZES]
        for device in table.devices[entry.device].cuda_names:
            if entry.time_ms is None or (device, *sizes) in seen:
                continue
            seen.add((device, *sizes))
            problems.append(problem)
            line = {
                "config": list(table.configurations[entry.choice][first:]),
                "problem_size": sizes,
                "time": entry.time_ms,
                "environment": {"device_name": device},
            }
            lines.append(json.dumps(line))
    header = {
        "tunable_parameters": list(table.tunables[first:]),
        "version": WISDOM_VERSION,
        "objective": "time",
        "key": table.study,
        "note": f"{listed(problems)}. Kernel Launcher takes the line of the device whose product "
        f"of sizes is nearest, of an unlisted device that of another one. {ANY_SIZE}",
    }
    return "\n".join([json.dumps(header), *lines]) + "\n"


def listed(problems: Sequence[Mapping[str, Value]]) -> str:
    """Which problems a file lists, in words."""
    every = list(dict.fromkeys(tuple(one.items()) for one in problems))
    values: dict[str, list[Any]] = {}
    for name, value in (pair for one in every for pair in one):
        values.setdefault(name, []).append(value)
    said = []
    for name, each in values.items():
        known = sorted(dict.fromkeys(each))
        is_range = len(known) > 1 and not isinstance(known[0], str)
        ends = f"from {known[0]} to {known[-1]}" if is_range else ", ".join(map(str, known))
        said.append(f"{name} {ends}")
    return f"{len(every)} problems are listed" + (f": {'; '.join(said)}" if said else "")


def t4_contents(table: AnswerTable) -> dict[str, dict[str, Any]]:
    """Content of a T4 file per device, by its name in the settings: measured answers alone; where
    there are none, each has an ``expected`` value and no time, which no reader of T4 takes for a
    measured one. T4 knows no problems: their parameters stand among those of the configuration."""
    found = {}
    for number, device in enumerate(table.devices):
        every = [one for one in table.entries if one.device == number and one.time_ms]
        measured = [one for one in every if one.basis == MEASURED]
        own, name = (measured, "time") if measured else (every, "expected")
        problems = [table.problem(one.problem) for one in own]
        which = "measured ones alone" if measured else "none of them measured"
        note = f"{listed(problems)}, {which}. T4 has no rule for others. {ANY_SIZE}"
        results = [
            {
                "configuration": {**problem, **table.configuration(one.choice)},
                "times": {"runtimes": [one.time_ms] if measured else []},
                **({"invalidity": "correct", "correctness": 1} if measured else {}),
                "objectives": [name],
                "measurements": [{"name": name, "value": one.time_ms, "unit": "milliseconds"}],
            }
            for one, problem in zip(own, problems, strict=True)
        ]
        found[device.name] = {"metadata": {"note": note}, "results": results}
    return found


Configured = tuple[dict[str, Value], dict[str, Value]]
"""A configuration in a file, and the problem that it was taken from."""


def write_config_files(
    folder: Path, table: Mapping[str, Any], spec: Spec, mapping: ConfigFiles, where: Path
) -> list[Path]:
    """Write a file for each name that answers make, and ``<study>.md``, which says what they list.

    ``table``: as :meth:`launchwise.exporting.contents.Contents.plain` gives it.
    ``where``: file of the mapping, for messages.
    Returns the files. Raises UserError when no problem is meant, or two of them have the same file
    and key, but not the same configuration.
    """
    files = config_files(table, spec, mapping, where)
    written = []
    for name, by_key in files.items():
        path = inside(folder, name, where, "file")
        path.parent.mkdir(parents=True, exist_ok=True)
        keyed = {str(key): by_key[key][0] for key in sorted(by_key)}
        write_text(path, json.dumps({**mapping.head, **keyed}, indent=4) + "\n")
        written.append(path)
    about = folder / f"{table['study']}.md"
    told = listed([problem for by_key in files.values() for _, problem in by_key.values()])
    between = BETWEEN[mapping.nearest]
    values: dict[str, Any] = {"mapping": mapping, "between": between, "any_size": ANY_SIZE}
    write_text(about, rendered("config_files.md", table, files=files, listed=told, **values))
    return [*written, about]


def config_files(
    table: Mapping[str, Any], spec: Spec, mapping: ConfigFiles, where: Path
) -> dict[str, dict[int, Configured]]:
    """Name of each file to its configurations by their keys; see :func:`write_config_files`."""
    found: dict[str, dict[int, Configured]] = {}
    devices = _device_names(table["devices"], mapping)
    for entry in table["entries"]:
        problem = dict(zip(table["parameters"], entry["problem"], strict=True))
        if not spec.value(mapping.where, problem):
            continue
        key = spec.value(mapping.key, problem)
        if not isinstance(key, int):
            raise UserError(where, "key", f"{mapping.key} is {key!r} for {assigned(problem)}")
        configured = _configuration(entry, table, spec, mapping), problem
        for device in devices[entry["device"]]:
            by_key = found.setdefault(_file_name(mapping, spec, problem, device), {})
            values, other = by_key.setdefault(key, configured)
            if values != configured[0]:
                both = f"{assigned(other)} and {assigned(problem)}"
                message = "have the same file and key, but not the same answer: choose one by where"
                raise UserError(where, "key", f"{both} {message}")
    if not found:
        message = f"no answer of {table['study']} is of such a problem: {mapping.where}"
        raise UserError(where, "where", message)
    return found


def _configuration(
    entry: Mapping[str, Any], table: Mapping[str, Any], spec: Spec, mapping: ConfigFiles
) -> dict[str, Value]:
    whole = dict(zip(table["tunables"], entry["configuration"], strict=True))
    renamed = mapping.renamed(spec.variants[str(whole["variant"])])
    return {**{other: whole[name] for name, other in renamed.items()}, **mapping.constants}


def _device_names(devices: Sequence[Mapping[str, Any]], mapping: ConfigFiles) -> list[list[str]]:
    """The library's names of each device; of devices with the same name, such as slices, one."""
    found, taken = [], set[str]()
    for device in devices:
        names = [name.replace(" ", "_") for name in device["cuda_names"] if name not in taken]
        taken.update(device["cuda_names"])
        found.append(
            [mapping.devices[device["name"]]] if device["name"] in mapping.devices else names
        )
    return found


def _file_name(mapping: ConfigFiles, spec: Spec, problem: Mapping[str, Value], device: str) -> str:
    name = mapping.file
    for part in mapping.parts:
        value = device if part == DEVICE else spec.value(part, problem)
        name = name.replace(f"{{{part}}}", str(value), 1)
    return name
