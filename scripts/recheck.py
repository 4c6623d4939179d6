"""Compare repeated measurements of answers with the earlier ones."""

from pathlib import Path

from launchwise.base.scripting import log, run


def main(
    folder: Path,
    expected: Path,
    pairs: Path,
    before: Path | None,
    judged: Path | None,
    sweep: Path,
    precision: float,
    output: Path,
) -> None:
    """Write a verdict per problem.

    ``expected``: what the study's product expects.
    ``pairs``: what was measured now.
    ``before``, ``judged``: pairs that were measured before, and times that were judged from them,
        whose limits hold another visit; None without any.
    """
    from launchwise.base.storage import read_json
    from launchwise.learning.contests import verdicts
    from launchwise.tables.files import read_table, write_table
    from launchwise.tables.measurements import measurement_schema, pairs_schema, recheck_schema
    from launchwise.tables.times import times_schema, with_judged_limits
    from launchwise.workloads.spec import load_spec

    spec = load_spec(folder)
    earlier = None if before is None else read_table(before, pairs_schema(spec))
    if earlier is not None and judged is not None:
        earlier = with_judged_limits(earlier, read_table(judged, times_schema(spec)), spec)
    origins = [*spec.key_columns, "card", "driver", "toolkit"]
    found = verdicts(
        read_json(expected),
        read_table(pairs, pairs_schema(spec)),
        earlier,
        read_table(sweep, measurement_schema(spec), origins),
        spec,
        precision,
    )
    write_table(output, found, recheck_schema(spec), {})
    counts = found["verdict"].value_counts().to_dict()
    log.info("%s", ", ".join(f"{count} {verdict}" for verdict, count in counts.items()))


if __name__ == "__main__":
    run(main)
