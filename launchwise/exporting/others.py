"""A table of answers for other tools: Kernel Launcher's wisdom, and T4."""

from __future__ import annotations

import json
from typing import Any

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
