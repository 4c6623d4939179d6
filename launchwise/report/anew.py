"""Rows to measure again, as settings to copy."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import yaml

from launchwise.workloads.parts import Value


def anew_settings(
    gpu: str,
    workload: str,
    keys: Collection[Sequence[Value]],
    columns: Sequence[str],
    along: str,
    **how: Any,
) -> str:
    """The settings that name rows of a sweep to measure again, as YAML.

    Parameters
    ----------
    keys
        Values of each row, or of all rows of a problem, in the order of ``columns``.
    columns
        Problem parameters and tunables.
    along
        Of ``columns``: rows that differ in it alone share an entry.
    how
        Further keys of the sweep, such as ``slow_factor``.
    """
    place = columns.index(along)
    groups: dict[tuple[Value, ...], list[Value]] = {}
    for key in keys:
        groups.setdefault((*key[:place], *key[place + 1 :]), []).append(key[place])
    others = [name for name in columns if name != along]
    entries = [
        {
            along: sorted(set(values)),
            **{name: [each] for name, each in zip(others, rest, strict=True)},
        }
        for rest, values in sorted(groups.items(), key=lambda entry: [*map(_order, entry[0])])
    ]
    said: Mapping[str, Any] = {
        "gpus": {gpu: {"source": "live", "extend": True}},
        "sweeps": {workload: {**how, "anew": entries}},
    }
    return yaml.safe_dump(said, sort_keys=False, default_flow_style=None, width=100).rstrip()


def _order(value: Value) -> tuple[bool, Any]:
    return isinstance(value, str), value
