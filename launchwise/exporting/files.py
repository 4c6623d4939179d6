"""Files of a table of answers, one per format: code, JSON, Kernel Launcher's wisdom, T4."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from launchwise.base.names import inside
from launchwise.base.storage import new_folder, write_json, write_text
from launchwise.exporting.cpp import cpp_header
from launchwise.exporting.python import python_module
from launchwise.exporting.rendering import rendered
from launchwise.exporting.table import AnswerTable, Entry

WISDOM_VERSION = 1

FORMATS = {
    "hpp": "{study}.hpp",
    "json": "{study}.json",
    "python": "{study}.py",
    "wisdom": "{study}.wisdom",
    "t4": "t4",
    "cmake": "cmake",
}
"""Format to its file, or its folder: of T4 with a file per device, of CMake a package."""


def write_answers(folder: Path, table: AnswerTable) -> None:
    """Write every format into ``folder``, which is made anew."""
    new_folder(folder)
    paths = {name: folder / file.format(study=table.study) for name, file in FORMATS.items()}
    header = cpp_header(table)
    write_text(paths["hpp"], header)
    write_text(paths["python"], python_module(table))
    write_text(paths["wisdom"], wisdom_text(table))
    write_json(paths["json"], table.plain())
    paths["cmake"].mkdir()
    write_text(paths["cmake"] / f"{table.study}Config.cmake", rendered("package.cmake", table))
    write_text(paths["cmake"] / paths["hpp"].name, header)
    paths["t4"].mkdir()
    for device, content in t4_contents(table).items():
        file = inside(paths["t4"], f"{device}.json", table.study, "devices")
        write_json(file, content)


def wisdom_text(table: AnswerTable) -> str:
    """Lines of a wisdom file: a header, then one line per answer with a time.

    Kernel Launcher takes the entry of the same device and size, else of the nearest product of
    sizes. Only integer parameters are sizes there; of entries that differ in texts alone, the first
    one counts.
    """
    header = {
        "tunable_parameters": list(table.tunables),
        "version": WISDOM_VERSION,
        "objective": "time",
        "key": table.study,
    }
    lines, seen = [json.dumps(header)], set()
    for entry in table.entries:
        sizes = [
            value
            for name, value in zip(table.parameters, entry.problem, strict=True)
            if name not in table.texts
        ]
        for device in table.devices[entry.device].cuda_names:
            if entry.time_ms is None or (device, *sizes) in seen:
                continue
            seen.add((device, *sizes))
            line = {
                "config": list(entry.configuration),
                "problem_size": sizes,
                "time": entry.time_ms,
                "environment": {"device_name": device},
            }
            lines.append(json.dumps(line))
    return "\n".join(lines) + "\n"


def t4_contents(table: AnswerTable) -> dict[str, dict[str, Any]]:
    """Content of a T4 file per device, by its name in the settings: measured answers alone.

    T4 knows no problems: their parameters stand among those of the configuration.
    """
    return {
        device.name: {
            "results": [
                _result(table, entry)
                for entry in table.entries
                if entry.device == number and entry.basis == "measured" and entry.time_ms
            ]
        }
        for number, device in enumerate(table.devices)
    }


def _result(table: AnswerTable, entry: Entry) -> dict[str, Any]:
    problem = dict(zip(table.parameters, entry.problem, strict=True))
    measurement = {"name": "time", "value": entry.time_ms, "unit": "milliseconds"}
    return {
        "configuration": {**problem, **table.configuration(entry)},
        "times": {"runtimes": [entry.time_ms]},
        "invalidity": "correct",
        "correctness": 1,
        "measurements": [measurement],
        "objectives": ["time"],
    }
