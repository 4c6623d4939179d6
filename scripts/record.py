"""Copy a live sweep, with its provenance, to data/recorded/."""

from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, Any

from launchwise.base.scripting import running
from launchwise.base.storage import write_json
from launchwise.tables.files import read_facts, read_table, write_table
from launchwise.tables.measurements import measurement_schema
from launchwise.workloads.spec import load_spec

if TYPE_CHECKING:
    from snakemake.script import snakemake


def main(folder: Path, sweep: str, how: dict[str, Any], outputs: Any) -> None:
    """Write the rows and their provenance."""
    spec = load_spec(folder)
    schema = measurement_schema(spec)
    table, facts = read_table(sweep, schema), read_facts(sweep)
    write_table(outputs.sweep, table, schema, facts)
    provenance = {
        "workload": spec.workload,
        "rows": len(table),
        "rows_by_status": dict(Counter(table["status"])),
        "problems": len(table[spec.problem_columns].drop_duplicates()),
        "first_measured_at": min(table["measured_at"]),
        "last_measured_at": max(table["measured_at"]),
        "method": how,
        **{
            name: sorted(set(table[name]))
            for name in ("commit", "card", "driver", "toolkit", "backend")
        },
        **facts,
    }
    write_json(outputs.provenance, provenance)


if __name__ == "__main__":
    with running(snakemake):
        main(
            Path(snakemake.params.folder),
            snakemake.input.sweep,
            snakemake.params.method,
            snakemake.output,
        )
