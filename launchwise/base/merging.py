"""Merges mappings: settings over the YAML files of a workload's folder."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def merged(below: Mapping[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    """``below`` overridden by ``above``; neither is changed.

    Mappings are merged key by key, ``None`` takes a key away, and everything else, lists too, is
    replaced (JSON Merge Patch, RFC 7386).
    """
    found = dict(below)
    for key, value in above.items():
        if value is None:
            found.pop(key, None)
        elif isinstance(value, Mapping):
            inner = found.get(key)
            found[key] = merged(inner if isinstance(inner, Mapping) else {}, value)
        else:
            found[key] = value
    return found


def laid_over(below: Mapping[str, Any], above: Mapping[str, Any]) -> dict[str, Any]:
    """Settings files as Snakemake merges them: as :func:`merged`, but ``None`` is a value."""
    found = dict(below)
    for key, value in above.items():
        if isinstance(value, Mapping):
            inner = found.get(key)
            found[key] = laid_over(inner if isinstance(inner, Mapping) else {}, value)
        else:
            found[key] = value
    return found
