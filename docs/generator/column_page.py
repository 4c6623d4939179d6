"""Page of the columns of sweeps and of hardware counters."""

from __future__ import annotations

from collections.abc import Iterable

from docs.generator.markdown import escaped, page_head, table
from launchwise.base.typed import texts_below
from launchwise.workloads.metrics import (
    CIRCUMSTANCES,
    COUNTERS,
    KEYS,
    OLDEST,
    ORIGIN,
    RESULTS,
    SCHEMA_VERSION,
    Circumstances,
    Counter,
    Counters,
    Keys,
    Metric,
    Origin,
    Results,
)

_HEAD = ("column", "type", "unit", "meaning", "Nsight Compute", "since")


def column_page() -> str:
    """Text of the page."""
    lines = page_head(
        "Columns of sweeps and counters",
        "`sweeps/<gpu>/<workload>.parquet` has one row per problem and configuration, "
        "`counters/<gpu>/<study>.parquet` one per launch ([files](results.md))",
        f"The schema version is {SCHEMA_VERSION}. Tables since version {OLDEST} are read: a column "
        "that is newer than a table has its neutral value there (text: empty or `unknown`, number: "
        "missing, count: 0). Older tables are refused. Each column is one entry of "
        "`launchwise/workloads/metrics.py`",
    )
    parts: list[tuple[str, type, Iterable[Metric]]] = [
        ("Sweep: key", Keys, KEYS),
        ("Sweep: result", Results, RESULTS),
        ("Sweep: circumstances", Circumstances, CIRCUMSTANCES),
        ("Sweep: origin", Origin, ORIGIN),
        ("Hardware counters", Counters, COUNTERS),
    ]
    after = {
        "Sweep: key": "Then the problem's parameters, `variant` and the tunables.",
        "Sweep: result": "Then the workload's `stages` (ms) and `findings`.",
        "Hardware counters": "Before them: `gpu`, problem, configuration, `position` of the launch "
        "in its run from 0, number of `launches`, `kernel`, `grid_blocks`, `block_threads`.",
    }
    for title, entries, metrics in parts:
        meanings = texts_below(entries)
        rows = [_row(each, meanings[each.name]) for each in metrics]
        lines += [f"## {title}", "", *table(_HEAD, rows), ""]
        if title in after:
            lines += [after[title], ""]
    return "\n".join(lines)


def _row(metric: Metric, meaning: str) -> tuple[str, ...]:
    source = f"`{metric.source}`" if isinstance(metric, Counter) else ""
    since = str(metric.since) if metric.since > OLDEST else ""
    kind = {"times": "list of reals", "whole": "integer"}.get(metric.kind, metric.kind)
    return f"`{metric.name}`", kind, metric.unit, escaped(meaning), source, since
