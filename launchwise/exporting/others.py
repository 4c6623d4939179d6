"""A table of answers for other tools: Kernel Launcher's wisdom, T4, and a package of CMake."""

from __future__ import annotations

import json
from typing import Any

from launchwise.exporting.cpp_names import cpp_name
from launchwise.exporting.table import AnswerTable, Entry

WISDOM_VERSION = 1


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


def cmake_config(table: AnswerTable) -> str:
    """Configuration of a package of CMake beside the C++ header: ``launchwise::<study>``."""
    target = f"launchwise::{cpp_name(table.study)}"
    place = f"${{CMAKE_CURRENT_SOURCE_DIR}}/{table.study}.cmake"
    return f"""\
# The header {table.study}.hpp as a target. Written by launchwise export {table.version}.
#   find_package({table.study} CONFIG REQUIRED PATHS {place})
#   target_link_libraries(program PRIVATE {target})
if(NOT TARGET {target})
  add_library({target} INTERFACE IMPORTED)
  target_include_directories({target} INTERFACE "${{CMAKE_CURRENT_LIST_DIR}}")
  target_compile_features({target} INTERFACE cxx_std_17)
endif()
"""


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
