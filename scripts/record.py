"""Copy a live sweep, with its provenance, to data/recorded/."""

from collections import Counter
from pathlib import Path
from typing import Any

from launchwise.base.scripting import run
from launchwise.base.storage import write_json
from launchwise.tables.files import read_facts, read_table, write_table
from launchwise.tables.measurements import measurement_schema
from launchwise.workloads.spec import load_spec


def main(
    folder: Path, sweep: Path, method: dict[str, Any], recorded: Path, provenance: Path
) -> None:
    """Write the rows and their provenance."""
    spec = load_spec(folder)
    schema = measurement_schema(spec)
    table, facts = read_table(sweep, schema), read_facts(sweep)
    write_table(recorded, table, schema, facts)
    found = {
        "workload": spec.workload,
        "rows": len(table),
        "rows_by_status": dict(Counter(table["status"])),
        "problems": len(table[spec.problem_columns].drop_duplicates()),
        "first_measured_at": min(table["measured_at"]),
        "last_measured_at": max(table["measured_at"]),
        "method": method,
        **{
            name: sorted(set(table[name]))
            for name in ("commit", "card", "driver", "toolkit", "backend")
        },
        **facts,
    }
    write_json(provenance, found)


if __name__ == "__main__":
    run(main)
